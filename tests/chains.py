"""Small targets in the form that engines take, batches and chains, and the samplers that an engine knows."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int8

from sl_discs.batching import AnyArray
from sl_discs.engines.base import Batch, ChainStates, Engine, Program, StepKeys, Trace, Tree, init_chains
from sl_discs.engines.registry import get_engine
from sl_discs.keys import Stream, chain_keys
from sl_discs.models.base import Model
from sl_discs.samplers.base import Sampler
from sl_discs.testing.cases import Case

# The probability with which a statistical check fails a correct engine.
FALSE_ALARM = 1e-6

ENGINES = ("reference", "cpu", "cuda")


def known_to(name: str, samplers: Mapping[str, Sampler]) -> list[str]:
    """The names of those samplers that an engine can run on this machine."""
    return [key for key, sampler in samplers.items() if get_engine(name).obstacle(sampler) is None]


def batch_of(case: Case, num_chains: int, seed: int = 0) -> Batch:
    """One instance, the case's, with keys for its chains."""

    @jax.jit
    def build(params):
        keys = (chain_keys(seed, stream, np.arange(1), num_chains) for stream in (Stream.MCMC, Stream.OBSERVATION))
        return Batch(jax.tree.map(lambda leaf: leaf[None], params), jnp.asarray(case.mask)[None], StepKeys(*keys))

    return build(case.target.params)


def copied(tree: Tree) -> Tree:
    """Arrays in buffers of their own, which engines may reuse; JAX alone would compile a program for each shape."""
    return jax.tree.map(lambda leaf: jnp.array(np.asarray(leaf)), tree)


def chains_at(
    case: Case, sampler: Sampler, batch: Batch, x: Int8[AnyArray, "B N"], noise: float | None = None
) -> ChainStates:
    """Chains before their first step at the given states; `noise` as in `init_chains`."""
    return copied(init_chains(case.model, sampler, batch, np.asarray(x, np.int8)[None], noise))


def play_program(
    engine: Engine,
    model: Model,
    sampler: Sampler,
    batch: Batch,
    chains: ChainStates,
    program: Program,
    intervals: int = 1,
) -> tuple[ChainStates, Trace]:
    """Plays a whole program in one call, on one device."""
    play = engine.prepare(model, sampler, batch, program)
    return play(chains, 0, intervals, len(program.temperature) // intervals)
