"""The three ways to play an interval on G x B chains: on a GPU, in Pallas's interpreter, or mapped by JAX."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Int

from sl_discs.fused.play import FusedChain, Instance, play
from sl_discs.localization.transition import ProgramStep, StepKeys
from sl_discs.samplers.base import Info, Sampler

# `triton` is the kernel; the others are the same mathematics where there is no GPU: tests, and looking for errors.
WAYS = ("triton", "interpret", "mapped")

# Sites that one thread of the kernel holds of each vector; a warp has 32 threads, a program at most 16 warps.
_SITES_PER_THREAD = 8
_MOST_WARPS = 16


def padded_size(num_sites: int) -> int:
    """The power of two that a chain's vectors are padded to."""
    return max(8, pl.next_power_of_2(num_sites))


def _num_warps(size: int) -> int:
    return min(max(size // (32 * _SITES_PER_THREAD), 1), _MOST_WARPS)


def _block(leaf, axes: int) -> pl.BlockSpec:
    """A whole leaf but for its first `axes` axes, of which the program takes its own place."""
    rest = leaf.shape[axes:]
    return pl.BlockSpec((None,) * axes + rest, lambda g, b: (g, b)[:axes] + (0,) * len(rest))


def play_all(
    way: str,
    sampler: Sampler,
    instances: Instance,
    keys: StepKeys,
    program: ProgramStep,
    first_step: Int[Array, ""],
    chains: FusedChain,
) -> tuple[FusedChain, Info]:
    """Plays E steps on each of G x B chains.

    Args:
      way: one of `WAYS`.
      sampler: one of `play.STEPS`.
      instances: leaves [G, ...].
      keys: leaves [G, B, 2].
      program: leaves [E].
      first_step: number of the first step.
      chains: leaves [G, B, ...].
    """
    if way == "mapped":
        over_chains = jax.vmap(functools.partial(play, sampler), (None, 0, None, None, 0))
        return jax.vmap(over_chains, (0, 0, None, None, 0))(instances, keys, program, first_step, chains)

    def kernel(instance, keys, program, first_step, chain, chain_out, info_out):
        instance = Instance(instance.rows, *(leaf[...] for leaf in instance[1:]))
        keys = StepKeys(*((key[0], key[1]) for key in keys))
        after = play(sampler, instance, keys, program, first_step[...], jax.tree.map(lambda leaf: leaf[...], chain))

        def store(reference, value):
            reference[...] = value

        jax.tree.map(store, (chain_out, info_out), after)

    arguments = (instances, keys, program, first_step, chains)
    axes = (1, 2, 0, 0, 2)
    grid = chains.best.shape
    scalar = jax.ShapeDtypeStruct(grid, jnp.float32)
    results = (jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), chains), Info(scalar, scalar))

    def blocks(tree, axes):
        return jax.tree.map(lambda leaf: _block(leaf, axes), tree)

    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[blocks(*pair) for pair in zip(arguments, axes, strict=True)],
        out_specs=blocks(results, 2),
        out_shape=results,
        interpret=way == "interpret",
        compiler_params=triton.CompilerParams(num_warps=_num_warps(chains.best_spins.shape[-1]), num_stages=1),
        name="sl_discs_play",
    )(*arguments)
