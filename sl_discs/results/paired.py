"""Differences between a sampler's SL variant and the sampler itself, taken instance by instance.

Instances differ from each other far more than samplers do, so only the paired difference has a standard error that is
informative about the samplers.
"""

from __future__ import annotations

from sl_discs.errors import InputError
from sl_discs.experiment.record import ExperimentRecord
from sl_discs.results.summary import Spread, best_values, percent_of_reference


def sl_pairs(record: ExperimentRecord) -> list[tuple[str, str]]:
    """(`sl_x`, `x`) for each sampler x whose SL variant is in the record too, in the record's order.

    Raises:
      InputError: the two samplers of a pair did not run on the same instances in the same order.
    """
    pairs = [(f"sl_{name}", name) for name in record.samplers if f"sl_{name}" in record.samplers]
    for sl_name, name in pairs:
        ours, theirs = ([i.name for i in record.samplers[key].instances] for key in (sl_name, name))
        if ours != theirs:
            raise InputError(
                f"{record.dataset}: {sl_name} and {name} have different instances; "
                "run both on the same ones, in the same order"
            )
    return pairs


def paired_differences(record: ExperimentRecord) -> dict[str, Spread]:
    """Spread over instances of best(sl_x) - best(x) in units of the objective, keyed `sl_x - x`.

    Raises:
      InputError: as `sl_pairs`.
    """
    differences = {}
    for sl_name, name in sl_pairs(record):
        ours, theirs = (best_values(record.samplers[key]) for key in (sl_name, name))
        differences[f"{sl_name} - {name}"] = Spread.of(ours - theirs)
    return differences


def paired_percent_differences(record: ExperimentRecord) -> dict[str, Spread]:
    """`paired_differences` in percentage points of the reference; empty unless every instance has a reference.

    Raises:
      InputError: as `sl_pairs`.
    """
    differences = {}
    for sl_name, name in sl_pairs(record):
        ours, theirs = (percent_of_reference(record.samplers[key]) for key in (sl_name, name))
        if ours is not None and theirs is not None:
            differences[f"{sl_name} - {name}"] = Spread.of(ours - theirs)
    return differences
