"""Batches of instances of one padded size, so that compiled programs are shared: shapes, bytes,
arrays and keys.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from sl_discs.chains.annealing import ChainSettings
from sl_discs.engines.devices import local_devices
from sl_discs.engines.program import Batch, Engine, StepKeys
from sl_discs.models.functions import Terms
from sl_discs.models.keys import Stream, chain_keys
from sl_discs.models.model import Model
from sl_discs.models.quadratic import (
    QuadraticModel,
    field_dtype,
    quadratic_params,
    sparse_is_cheaper,
)
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.sampler import Sampler, asks_for_gains
from sl_discs.support.errors import InputError
from sl_discs.support.memory import GIB, USABLE, usable_memory

# How a batch of instances x chains is divided among devices.
#
# Chains are independent and keys are functions of (seed, instance, chain, step), so results do not
# depend on the division. Devices only communicate if the chains of an instance share their
# adaptation: one number per chain and step.


class Layout(NamedTuple):
    """The numbers of parts into which the instances of a batch, and the chains of each instance,
    are divided.
    """

    instances: int
    chains: int


def best_layout(num_devices: int, num_instances: int, num_chains: int) -> Layout:
    """Returns the layout with the fewest chains on the busiest device and, among equal ones, the
    most instance parts.
    """

    def chains_a_device(layout: Layout) -> int:
        return math.ceil(num_instances / layout.instances) * math.ceil(num_chains / layout.chains)

    parts = [k for k in range(num_devices, 0, -1) if num_devices % k == 0]
    return min((Layout(k, num_devices // k) for k in parts), key=chains_a_device)


def devices_for(
    engine: Engine, sampler: Sampler, settings: ChainSettings
) -> tuple[int, Layout | None]:
    """Returns the number of devices that share a batch, and its division among them; None if that
    depends on it.

    An engine on the host divides work itself.

    Raises:
      InputError: there are not that many devices.
    """
    there = engine.num_devices()
    if settings.use_devices > there:
        raise InputError(
            f"config.experiment.use_devices is {settings.use_devices}, but there are {there} "
            "devices"
        )
    if engine.on_host:
        return 1, None
    count = settings.use_devices or there
    # Chains that share their adaptation stay together: surplus chains would take part in it.
    return count, Layout(count, 1) if sampler.couples_chains else None


# The benchmark's families are padded by at most 20 %; after 64, ..., 512 these sizes fit 600, 800,
# 1100 and 1347 nodes.
_SIZES = (*range(64, 513, 64), 640, 832, 1152, 1408)
_QUANTUM, _GROWTH = 64, 1.25


def padded_size(num_nodes: int) -> int:
    """Returns the padded number of sites, which takes few values, so that few programs are
    compiled.
    """
    for size in _SIZES:
        if num_nodes <= size:
            return size
    while size < num_nodes:
        size = _QUANTUM * math.ceil(size * _GROWTH / _QUANTUM)
    return size


@dataclasses.dataclass(frozen=True)
class Shape:
    """The shape of a batch, on which its compiled program depends.

    Attributes:
      num_sites: sites of each instance, including padding.
      num_instances: a multiple of the layout's instance parts.
      num_chains: chains of each instance, a multiple of the layout's chain parts; surplus chains
        are run and dropped.
      degree: length of neighbour lists; None: dense rows.
      layout: division of the batch among devices.
    """

    num_sites: int
    num_instances: int
    num_chains: int
    degree: int | None
    layout: Layout


@dataclasses.dataclass(frozen=True)
class Pack:
    """A planned batch: positions in the list of instances, and these with the last repeated to fill
    the shape.
    """

    shape: Shape
    positions: list[int]
    filled: list[int]


def plan(
    terms: Iterable[Terms],
    per_batch: int,
    num_chains: int,
    num_devices: int = 1,
    layout: Layout | None = None,
) -> list[Pack]:
    """Groups instances by padded size and divides each group into batches of equal size.

    Args:
      terms: terms of each instance, iterated over once.
      per_batch: largest number of instances in a batch, unless there are more devices to fill.
      num_chains: chains of each instance.
      num_devices: number of devices for a batch.
      layout: division among the devices; None: as even as possible.
    """
    groups: dict[int, list[int]] = {}
    degrees = []
    for position, term in enumerate(terms):
        groups.setdefault(padded_size(term.num_sites), []).append(position)
        degrees.append(term.max_degree())
    packs = []
    for num_sites, positions in sorted(groups.items()):
        degree = max(degrees[k] for k in positions)
        lists = degree if sparse_is_cheaper(degree, num_sites) else None
        count = math.ceil(len(positions) / max(per_batch, num_devices))
        chosen_layout = layout or best_layout(
            num_devices, math.ceil(len(positions) / count), num_chains
        )
        size = chosen_layout.instances * math.ceil(len(positions) / count / chosen_layout.instances)
        chains = chosen_layout.chains * math.ceil(num_chains / chosen_layout.chains)
        if (size, chains) == chosen_layout:
            # XLA compiles a single chain to scalar code, whose exponentials differ in the last
            # bits.
            size *= 2
        shape = Shape(num_sites, size, chains, lists, chosen_layout)
        for start in range(0, len(positions), size):
            chosen = positions[start : start + size]
            filled = chosen + [chosen[-1]] * (size - len(chosen))
            packs.append(Pack(shape, chosen, filled))
    return packs


def shape_of_one(
    terms: Terms, num_chains: int, num_devices: int = 1, layout: Layout | None = None
) -> Shape:
    """Returns the shape of a batch of one instance, which fills all its places; arguments as in
    `plan`.
    """
    [pack] = plan([terms], 1, num_chains, num_devices, layout)
    return pack.shape


# Bytes of batches: couplings, states, temporaries of a step and traces, which grow with the batch.
# The estimate is meant to be an upper bound, too large by a factor of at most three for large
# batches.

# Bytes per matrix entry (the entry, and its float32 copy in products) and per list entry (index and
# weight).
_DENSE, _LISTED = 5, 8
# Bytes per site and chain: state, field, two best states and observation before and after a call
# (30), and about a dozen float32 vectors in a step.
_CHAIN_SITE = 80
# Bytes for value, acceptance and hops of a chain at a logged step.
LOGGED_BYTES = 12
# Bytes per step for the temperatures of proposals and their temporaries.
_WEIGHTED_STEP = 80


def batch_bytes(shape: Shape, num_logged: int, engine: str) -> int:
    """Bytes of a batch on a device of its layout; other engines than the reference copy the
    couplings.
    """
    instances = shape.num_instances // shape.layout.instances
    chains = shape.num_chains // shape.layout.chains
    size = shape.num_sites
    couplings = size**2 * _DENSE if shape.degree is None else size * max(shape.degree, 1) * _LISTED
    if engine == "cuda":
        couplings += size**2 * _DENSE  # rows of bytes or float32, also of instances that have lists
    elif engine != "reference":
        couplings += couplings
    return instances * (couplings + chains * (size * _CHAIN_SITE + num_logged * LOGGED_BYTES))


def program_bytes(num_steps: int, weighted: bool) -> int:
    """Bytes of a run's program on the host; `weighted`: on `cpu`, the sampler's proposals have own
    temperatures.
    """
    return num_steps * weighted * _WEIGHTED_STEP


def memory_of_a_device(memory_gib: float) -> int | None:
    """Bytes that batches may take on each device of this process; None if unknown.

    CPU devices share the machine's memory. `memory_gib` overrides what the system reports, except
    0.
    """
    if memory_gib:
        return int(min(memory_gib * GIB, sys.maxsize))  # which may be infinite
    devices = local_devices()
    if devices[0].platform != "cpu":
        limit = (devices[0].memory_stats() or {}).get("bytes_limit")
        return limit and int(limit * USABLE)
    there = usable_memory()
    return there and there // len(devices)


def build_batch(
    terms: Sequence[Terms],
    instance_ids: Sequence[int],
    shape: Shape,
    seed: int,
    sampler: Sampler | None = None,
) -> tuple[Model, Batch]:
    """Returns the arrays of a batch, on the host.

    Args:
      terms: terms of the instance in each place of the shape, of one class; log-densities of one
        function.
      instance_ids: each instance's position in the whole dataset, from which its keys are folded.
      shape: shape of the batch.
      seed: seed of the chains.
      sampler: that a log-density is for; None: one that asks for gains.

    Raises:
      InputError: the sampler asks for gains, and a log-density cannot be differentiated.
    """
    if sampler is not None:
        for term in terms:
            sampler.check_terms(term)
    params = [
        quadratic_params(term, shape.num_sites, shape.degree)
        if isinstance(term, Coefficients)
        else term.arrays()
        for term in terms
    ]
    dtypes = jax.tree.map(lambda *leaves: np.result_type(*leaves), *params)
    stacked = jax.tree.map(
        lambda dtype, *leaves: np.stack(leaves).astype(dtype, copy=False), dtypes, *params
    )
    mask = np.stack([np.arange(shape.num_sites) < term.num_sites for term in terms])
    keys = step_keys(instance_ids, shape, seed)

    def asking() -> str:
        return type(sampler).__name__ if sampler is None or asks_for_gains(sampler) else ""

    first = terms[0]
    if isinstance(first, Coefficients):
        model: Model = QuadraticModel(shape.num_sites, field_dtype(stacked.coupling))
    else:
        model = first.model(shape.num_sites, asking)
    return model, Batch(stacked, mask, keys)


def step_keys(instance_ids: Sequence[int], shape: Shape, seed: int) -> StepKeys:
    """Keys [G, B, 2] of the chains' steps."""
    streams = (Stream.MCMC, Stream.OBSERVATION)
    return StepKeys(
        *(chain_keys(seed, stream, np.array(instance_ids), shape.num_chains) for stream in streams)
    )
