"""Tuned settings in files, `configs/sampler/tuned/<dataset>/<method>.json`, and the datasets that
they are for.

`studies/tuning/main.py` writes them.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.experiment.sweep_file import read_config
from sl_discs.instances.dataset import find_family
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import build_method
from sl_discs.support.documents import parse_json
from sl_discs.support.errors import FormatError, InputError, errors_of
from sl_discs.support.files import open_regular

Names = tuple[str, str, str]  # problem, graph_type and cfg_str, as in DISCS's flags


def parse_dataset(text: str) -> Names:
    """Returns the names in `mis/er_density/r-0.10` or `maxclique/rb`; InputError if there is no
    such dataset.
    """
    problem, *rest = text.split("/")
    if len(rest) not in (1, 2):
        raise InputError(
            f"--dataset={text} is not understood; write problem/graph_type/cfg_str, or the first "
            "two"
        )
    names = problem, rest[0], rest[1] if len(rest) > 1 else "_"
    find_family(*names)
    return names


def experiment_fields(path: Path) -> dict[str, Any]:
    """Returns the fields of an experiment config."""
    fields = read_config(path, "configs/experiment/mis/er_density.py").get("experiment")
    if not isinstance(fields, dict):
        raise InputError(
            f"{path}: its field experiment is {fields!r}; expected a ConfigDict of fields"
        )
    return fields


def part_of(dataset: Dataset, first: int, stop: int) -> Dataset:
    """Graphs first..stop-1 of those that were loaded."""
    return dataclasses.replace(
        dataset, graphs=dataset.graphs[first:stop], index=dataset.index[first:stop]
    )


ANNEALING_FIELDS = ("t_schedule", "init_temperature", "final_temperature", "decay_rate")


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Settings to try: config fields of the sampler, including its name, and the annealing fields
    of `Settings`.
    """

    sampler: dict[str, Any]
    experiment: dict[str, Any]

    def settings(self, settings: Settings) -> Settings:
        """Returns the given settings with this candidate's annealing."""
        return dataclasses.replace(settings, **self.experiment)


def read_tuned(path: str | os.PathLike, settings: Settings | None = None) -> Candidate:
    """Returns the settings in a file of tuned settings; InputError if they are invalid or do not
    fit a run's `settings`.
    """
    try:
        with open_regular(path) as file:
            record = parse_json(file.read())
        candidate = Candidate(dict(record["sampler"]), dict(record["experiment"]))
    except InputError:
        raise
    except (ValueError, KeyError, TypeError):
        raise FormatError(
            f"{path}: not a file of tuned settings; studies/tuning/main.py writes them"
        ) from None
    odd = sorted(candidate.experiment.keys() ^ set(ANNEALING_FIELDS))
    if odd:
        raise InputError(
            f"{path}: experiment needs the fields {', '.join(ANNEALING_FIELDS)} alone; see "
            f"{odd[0]!r}"
        )
    with errors_of(path):
        settings_from(candidate.experiment)
        build_method(candidate.sampler)
        if settings is not None:
            candidate.settings(settings)
    return candidate
