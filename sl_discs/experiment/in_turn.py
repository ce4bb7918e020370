"""Instances of a CPU core played some after the others, so that what a step works on stays in the core's cache.

All at once, a step of many instances streams every array of every chain through memory; one by one, kernels of a few
microseconds wait for each other. A sampler knows how many sites of chains suit it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax

_Batch, _Chains, _Trace = TypeVar("_Batch"), TypeVar("_Chains"), TypeVar("_Trace")


def group_size(num_instances: int, num_chains: int, num_sites: int, most_sites: int) -> int:
    """How many of G instances of B chains of N sites to play together: a divisor of G.

    Args:
      num_instances: G.
      num_chains: B.
      num_sites: N.
      most_sites: the largest G B N that is played together, if G is more than 1.
    """
    most = max(most_sites // (num_chains * num_sites), 1)
    return max(size for size in range(1, num_instances + 1) if num_instances % size == 0 and size <= most)


def play_in_turn(
    play: Callable[[_Batch, _Chains], tuple[_Chains, _Trace]], size: int, batch: _Batch, chains: _Chains
) -> tuple[_Chains, _Trace]:
    """play(batch, chains) of `size` instances at a time, which do not depend on each other.

    Args:
      play: takes leaves [G, ...]; returns such chains, and a trace with leaves [L, G, ...].
      size: of a group; a divisor of G.
      batch: of all instances.
      chains: likewise.
    """
    num_instances = jax.tree.leaves(chains)[0].shape[0]
    if size == num_instances:
        return play(batch, chains)

    def one_group(chains, first):
        def part(leaf):
            return lax.dynamic_slice_in_dim(leaf, first, size)

        played, trace = play(jax.tree.map(part, batch), jax.tree.map(part, chains))
        chains = jax.tree.map(
            lambda leaf, new: lax.dynamic_update_slice_in_dim(leaf, new, first, axis=0), chains, played
        )
        return chains, trace

    def join(leaf):
        leaf = jnp.moveaxis(leaf, 0, 1)
        return leaf.reshape(leaf.shape[0], num_instances, *leaf.shape[3:])

    chains, traces = lax.scan(one_group, chains, jnp.arange(0, num_instances, size))
    return chains, jax.tree.map(join, traces)
