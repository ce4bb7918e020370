"""Checks before a run that its batches fit into memory; reduces them if they do not, or refuses the run.

The estimate counts everything that grows with the batch: couplings, states, temporaries of a step, and traces. It is
meant to be an upper bound, too large by a factor of at most three for large batches.
"""

from __future__ import annotations

import dataclasses
import sys

from sl_discs.engines.registry import local_devices
from sl_discs.errors import GIB, USABLE, InputError, check_memory, in_words, usable_memory
from sl_discs.experiment.batches import Pack, Shape
from sl_discs.experiment.chains import batches_of, engine_for, instances_at_once, largest_size
from sl_discs.experiment.settings import Settings
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import Method

# Bytes per matrix entry (the entry, and its float32 copy in products) and per list entry (index and weight).
_DENSE, _LISTED = 5, 8
# Bytes per site and chain: state, field, two best states and observation before and after a call (30), and about a
# dozen float32 vectors in a step.
_CHAIN_SITE = 80
# Bytes for value, acceptance and hops of a chain at a logged step.
_LOGGED = 12
# Bytes per step for the temperatures of proposals and their temporaries.
_WEIGHTED_STEP = 80


def batch_bytes(shape: Shape, num_logged: int, engine: str) -> int:
    """Bytes of a batch on a device of its layout; other engines than the reference copy the couplings."""
    instances, chains = shape.num_instances // shape.layout.instances, shape.num_chains // shape.layout.chains
    size = shape.num_sites
    couplings = size**2 * _DENSE if shape.degree is None else size * max(shape.degree, 1) * _LISTED
    if engine != "reference":
        couplings += couplings
    return instances * (couplings + chains * (size * _CHAIN_SITE + num_logged * _LOGGED))


def program_bytes(num_steps: int, weighted: bool) -> int:
    """Bytes of a run's program on the host; `weighted`: on `cpu`, the sampler's proposals have own temperatures."""
    return num_steps * weighted * _WEIGHTED_STEP


def memory_of_a_device(memory_gib: float) -> int | None:
    """Bytes that batches may take on each device of this process; None if unknown.

    CPU devices share the machine's memory. `memory_gib` overrides what the system reports, except 0.
    """
    if memory_gib:
        return int(min(memory_gib * GIB, sys.maxsize))  # which may be infinite
    devices = local_devices()
    if devices[0].platform != "cpu":
        limit = (devices[0].memory_stats() or {}).get("bytes_limit")
        return limit and int(limit * USABLE)
    there = usable_memory()
    return there and there // len(devices)


def _largest(dataset: Dataset, penalty: float, methods: list[Method], settings: Settings) -> tuple[int, Pack]:
    """Bytes per device of the largest batch of all methods, and that batch."""
    num_logged = settings.chain_length // settings.log_every_steps
    found = []
    for method in methods:
        engine, _ = engine_for(dataset, method.sampler, settings)
        # Batches of an engine on the host are in one place and may use the memory of all CPU devices.
        share = len(local_devices()) if engine.on_host else 1
        packs = batches_of(dataset, penalty, method.sampler, settings, engine)
        found += [(batch_bytes(pack.shape, num_logged, engine.name) // share, pack) for pack in packs]
    return max(found, key=lambda pair: pair[0])


def fit_to_memory(
    dataset: Dataset, penalty: float, methods: list[Method], settings: Settings
) -> tuple[Settings, str]:
    """Settings whose batches fit into memory; if necessary, instances per batch are halved until they do.

    Args:
      dataset: the instances.
      penalty: penalty of the problem's model.
      methods: all methods to run.
      settings: the user's settings.

    Returns:
      the settings, and a line about the change (empty if nothing was changed).

    Raises:
      InputError: the smallest possible batch, or the records of all instances, would not fit.
    """
    num_logged = settings.chain_length // settings.log_every_steps
    count = len(dataset.graphs)
    check_memory(
        f"what {settings.batch_size} chains of each of {count} instances record at {num_logged} logged steps",
        3 * count * settings.batch_size * num_logged * _LOGGED,  # they are joined and summarised at the end
        "log less often (config.experiment.log_every_steps), or give fewer chains or instances",
    )
    limit = memory_of_a_device(settings.memory_gib)
    if limit is None:
        return settings, ""
    wanted = max(
        instances_at_once(engine_for(dataset, method.sampler, settings)[0], settings, largest_size(dataset))
        for method in methods
    )
    at_once = min(wanted, count)
    fitted = settings
    while True:
        need, pack = _largest(dataset, penalty, methods, fitted)
        if need <= limit:
            break
        if at_once == 1:
            largest = max((dataset.graphs[k] for k in pack.members), key=lambda graph: graph.num_nodes)
            raise InputError(
                f"{largest.name} ({largest.num_nodes} sites, {settings.batch_size} chains) takes about "
                f"{in_words(need)} on a device with {in_words(limit)}; give fewer chains "
                "(config.experiment.batch_size), or config.experiment.memory_gib if there is more"
            )
        at_once //= 2
        fitted = dataclasses.replace(settings, instances_per_batch=at_once)
    if fitted is settings:
        return settings, ""
    return fitted, (
        f"{wanted} instances per batch would not fit into {in_words(limit)} per device: using {at_once} per batch, "
        f"about {in_words(need)}; the results are the same"
    )
