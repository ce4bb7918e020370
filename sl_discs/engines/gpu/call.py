"""The three ways to run an interval on G x B chains: on a GPU, in Pallas's interpreter, or mapped by JAX."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int

from sl_discs.engines.contract import StepKeys
from sl_discs.engines.gpu.play import FusedChain, Instance, play
from sl_discs.localization.schedule import Levels
from sl_discs.samplers.base import Info, Sampler

# `triton` is the kernel; the others run the same mathematics without a GPU, for tests and debugging.
WAYS = ("triton", "interpret", "mapped")

# Sites of each vector per thread of the kernel; a warp has 32 threads, and a program at most 16 warps.
_SITES_PER_THREAD = 8
_MOST_WARPS = 16


def padded_size(num_sites: int) -> int:
    """The power of two to which a chain's vectors are padded."""
    return max(8, pl.next_power_of_2(num_sites))


def _num_warps(size: int) -> int:
    return min(max(size // (32 * _SITES_PER_THREAD), 1), _MOST_WARPS)


def play_all(
    way: str,
    sampler: Sampler,
    instances: Instance,
    keys: StepKeys,
    levels: Levels | None,
    level: Int[Array, ""],
    temperature: Float[Array, "B E"],
    done: Int[Array, ""],
    chains: FusedChain,
) -> tuple[FusedChain, Int[Array, ""], Info]:
    """Plays E steps on each of G x B chains.

    Args:
      way: one of `WAYS`.
      sampler: one of `play.STEPS`.
      instances: leaves [G, ...].
      keys: leaves [G, B, 2].
      levels: leaves [K], or None.
      level: number of the first step's level.
      temperature: of each chain's steps.
      done: steps done before.
      chains: leaves [G, B, ...].

    Returns:
      the chains, the level of the next step, and the means of the steps' infos.
    """
    arguments = (instances, keys, levels, level, temperature, done, chains)
    steps = temperature.shape[-1]
    next_level = level if levels is None else jnp.searchsorted(levels.last, done + steps).astype(jnp.int32)
    if way == "mapped":
        over_chains = jax.vmap(functools.partial(play, sampler), (None, 0, None, None, 0, None, 0))
        chains, info = jax.vmap(over_chains, (0, 0, None, None, None, None, 0))(*arguments)
        return chains, next_level, info

    def kernel(instance, keys, levels, level, temperature, done, chain, chain_out, info_out):
        instance = Instance(instance.rows, *(leaf[...] for leaf in instance[1:]))
        keys = StepKeys(*((key[0], key[1]) for key in keys))
        chain = jax.tree.map(lambda leaf: leaf[...], chain)
        after = play(sampler, instance, keys, levels, level[...], temperature, done[...], chain)

        def store(reference, value):
            reference[...] = value

        jax.tree.map(store, (chain_out, info_out), after)

    grid = chains.best.shape
    scalar = jax.ShapeDtypeStruct(grid, jnp.float32)
    results = (
        jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), chains),
        Info._make((scalar, scalar)),
    )

    def over(axes):
        """Block specs for whole leaves, except that a program sees only its own index on these axes of the grid."""

        def block(leaf):
            rest = leaf.shape[len(axes) :]
            return pl.BlockSpec(
                (None,) * len(axes) + rest, lambda *place: (*(place[axis] for axis in axes), *(0 for _ in rest))
            )

        return lambda tree: jax.tree.map(block, tree)

    of_all, of_instance, of_chain, of_both = over(()), over((0,)), over((1,)), over((0, 1))
    chains, info = pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[
            of_instance(instances), of_both(keys), of_all(levels), of_all(level), of_chain(temperature),
            of_all(done), of_both(chains),
        ],
        out_specs=of_both(results),
        out_shape=results,
        interpret=way == "interpret",
        compiler_params=triton.CompilerParams(num_warps=_num_warps(chains.best_spins.shape[-1]), num_stages=1),
        name="sl_discs_play",
    )(*arguments)  # fmt: skip
    return chains, next_level, info
