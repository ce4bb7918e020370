"""Divides instances into batches of equal shape by their padded size, so that compiled programs are shared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from sl_discs.engines.base import Batch, StepKeys
from sl_discs.keys import Stream, chain_keys
from sl_discs.models.base import Model, Params
from sl_discs.models.functions import Density, density_model, density_params
from sl_discs.models.quadratic import quadratic_model, quadratic_params, sparse_is_cheaper
from sl_discs.models.terms import Coefficients, Terms
from sl_discs.samplers.base import Sampler, asks_for_gains

# How a batch of instances x chains is divided among devices.
#
# Chains are independent and keys are functions of (seed, instance, chain, step), so results do not depend on the
# division. Devices only communicate if the chains of an instance share their adaptation: one number per chain and
# step.


class Layout(NamedTuple):
    """The numbers of parts into which the instances of a batch, and the chains of each instance, are divided."""

    instances: int
    chains: int


def best_layout(num_devices: int, num_instances: int, num_chains: int) -> Layout:
    """The layout with the fewest chains on the busiest device and, among equal ones, the most instance parts."""

    def chains_a_device(layout: Layout) -> int:
        return math.ceil(num_instances / layout.instances) * math.ceil(num_chains / layout.chains)

    parts = [k for k in range(num_devices, 0, -1) if num_devices % k == 0]
    return min((Layout(k, num_devices // k) for k in parts), key=chains_a_device)


# The benchmark's families are padded by at most 20 %; after 64, ..., 512 these sizes fit 600, 800, 1100 and 1347
# nodes.
_SIZES = (*range(64, 513, 64), 640, 832, 1152, 1408)
_QUANTUM, _GROWTH = 64, 1.25


def padded_size(num_nodes: int) -> int:
    """The padded number of sites, which takes few values, so that few programs are compiled."""
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
      num_chains: chains of each instance, a multiple of the layout's chain parts; surplus chains are run and dropped.
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
    """A planned batch: positions in the list of instances, where the last one is repeated to fill the shape."""

    shape: Shape
    members: list[int]
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
    for num_sites, members in sorted(groups.items()):
        degree = max(degrees[k] for k in members)
        lists = degree if sparse_is_cheaper(degree, num_sites) else None
        count = math.ceil(len(members) / max(per_batch, num_devices))
        chosen_layout = layout or best_layout(num_devices, math.ceil(len(members) / count), num_chains)
        size = chosen_layout.instances * math.ceil(len(members) / count / chosen_layout.instances)
        chains = chosen_layout.chains * math.ceil(num_chains / chosen_layout.chains)
        if (size, chains) == chosen_layout:
            # XLA compiles a single chain to scalar code, whose exponentials differ in the last bits.
            size *= 2
        shape = Shape(num_sites, size, chains, lists, chosen_layout)
        for start in range(0, len(members), size):
            chosen = members[start : start + size]
            filled = chosen + [chosen[-1]] * (size - len(chosen))
            packs.append(Pack(shape, chosen, filled))
    return packs


def shape_of_one(terms: Terms, num_chains: int, num_devices: int = 1, layout: Layout | None = None) -> Shape:
    """The shape of a batch of one instance, which fills all its places; arguments as in `plan`."""
    [pack] = plan([terms], 1, num_chains, num_devices, layout)
    return pack.shape


# Of each class of terms: the arrays on the host, and the model.
_MODELS: dict[type, tuple[Callable[..., Params], Callable[..., Model]]] = {
    Coefficients: (quadratic_params, quadratic_model),
    Density: (density_params, density_model),
}


def build_batch(
    terms: Sequence[Terms], names: Sequence[int], shape: Shape, seed: int, sampler: Sampler | None = None
) -> tuple[Model, Batch]:
    """The arrays of a batch, on the host.

    Args:
      terms: terms of the instance in each place of the shape, of one class; log-densities of one function.
      names: each instance's position in the whole dataset, from which its keys are folded.
      shape: shape of the batch.
      seed: seed of the chains.
      sampler: that a log-density is for; None: one that asks for gains.

    Raises:
      InputError: the sampler asks for gains, and a log-density cannot be differentiated.
    """
    params_of, model_of = _MODELS[type(terms[0])]
    params = [params_of(term, shape.num_sites, shape.degree) for term in terms]
    dtypes = jax.tree.map(lambda *leaves: np.result_type(*leaves), *params)
    stacked = jax.tree.map(lambda dtype, *leaves: np.stack(leaves).astype(dtype, copy=False), dtypes, *params)
    mask = np.stack([np.arange(shape.num_sites) < term.num_sites for term in terms])
    keys = step_keys(names, shape, seed)

    def asking() -> str:
        return type(sampler).__name__ if sampler is None or asks_for_gains(sampler) else ""

    model = model_of(terms[0], shape.num_sites, stacked, asking)
    return model, Batch(stacked, mask, keys)


def step_keys(names: Sequence[int], shape: Shape, seed: int) -> StepKeys:
    """Keys [G, B, 2] of the chains' steps."""
    streams = (Stream.MCMC, Stream.OBSERVATION)
    return StepKeys(*(chain_keys(seed, stream, np.array(names), shape.num_chains) for stream in streams))


def initial_keys(names: Sequence[int], shape: Shape, seed: int):
    """Keys [G, B, 2] of the chains' initial states."""
    return chain_keys(seed, Stream.INITIAL_STATE, np.array(names), shape.num_chains)
