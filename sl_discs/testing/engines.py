"""Small targets as an engine plays them: batches, programs, chains, and whether the states they leave fit a law."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int8
from scipy import stats

from sl_discs.engines.contract import Batch, Chains, Engine, Program, StepKeys, Trace, init_chains
from sl_discs.experiment.mesh import Layout, make_mesh
from sl_discs.keys import Stream, chain_keys
from sl_discs.localization.schedule import Levels
from sl_discs.models.base import Model
from sl_discs.samplers.base import Sampler
from sl_discs.testing.cases import Case
from sl_discs.testing.conformance import total_variation
from sl_discs.testing.enumeration import Law, enumerate_law, state_index

# A statistical check fails an engine that is right with this probability.
FALSE_ALARM = 1e-6


def batch_of(case: Case, num_chains: int, seed: int = 0) -> Batch:
    """One instance, the case's, with keys for its chains."""

    @jax.jit
    def build(params):
        keys = (chain_keys(seed, stream, jnp.arange(1), num_chains) for stream in (Stream.MCMC, Stream.OBSERVATION))
        return Batch(jax.tree.map(lambda leaf: leaf[None], params), jnp.asarray(case.mask)[None], StepKeys(*keys))

    return build(case.params.base)


def constant_program(case: Case, steps: int) -> Program:
    """Steps at the case's temperature; its tilt is that of an observation in a level that never ends."""
    temperature = np.full(steps, case.params.temperature, np.float32)
    if case.params.tilt is None:
        return Program(temperature, None)
    number, whole = np.ones(1, np.float32), np.ones(1, np.int32)
    return Program(temperature, Levels(number, whole * np.iinfo(np.int32).max // 2, whole, number, number))


def chains_at(case: Case, sampler: Sampler, batch: Batch, x: Int8[np.ndarray, "B N"]) -> Chains:
    """Chains for `constant_program` at the given states; the observation is the case's tilt."""
    tilt = case.params.tilt

    @jax.jit
    def build(batch):
        states = jnp.asarray(x, jnp.int8)[None]
        chains = init_chains(case.model, sampler, batch, states, None if tilt is None else 0.0)
        if tilt is None:
            return chains
        observation = chains.chain.observation._replace(y=jnp.broadcast_to(tilt, states.shape))
        return chains._replace(chain=chains.chain._replace(observation=observation))

    return build(batch)


def p_value(states: Int8[np.ndarray, "S N"], law: Law) -> float:
    """Of independent states under a law, by chi-squared; 0 where a state is impossible."""
    counts = np.bincount(state_index(states), minlength=len(law.probabilities))
    if counts[law.probabilities == 0].sum() > 0:
        return 0.0
    expected = law.probabilities * len(states)
    used = expected > 5
    statistic = ((counts[used] - expected[used]) ** 2 / expected[used]).sum()
    return float(stats.chi2.sf(statistic, used.sum() - 1))


def play_program(
    engine: Engine, model: Model, sampler: Sampler, batch: Batch, chains: Chains, program: Program, intervals: int = 1
) -> tuple[Chains, Trace]:
    """Plays a whole program in one call, on one device."""
    play = engine.prepare(model, sampler, batch, program, make_mesh(Layout(1, 1)), threads=0)
    return play(chains, 0, intervals, len(program.temperature) // intervals)


def play_at(
    engine: Engine, sampler: Sampler, case: Case, x: Int8[np.ndarray, "B N"], program: Program, seed: int = 0
) -> tuple[Chains, Trace]:
    """`play_program` from given states; leaves of the chains are [1, B, ...]."""
    batch = batch_of(case, len(x), seed)
    return play_program(engine, case.model, sampler, batch, chains_at(case, sampler, batch, x), program)


def states_after(engine: Engine, sampler: Sampler, case: Case, x, program: Program) -> Int8[np.ndarray, "B N"]:
    """The states after `play_at`."""
    return np.asarray(play_at(engine, sampler, case, x, program)[0].chain.x)[0]


def check_invariance(engine: Engine, sampler: Sampler, case: Case, steps: int, num_chains: int) -> None:
    """Raises AssertionError unless exact draws, after some steps of an engine, are exact draws again.

    Args:
      engine: that plays.
      sampler: one that stops adapting well before the last step.
      case: the target.
      steps: of each chain.
      num_chains: independent chains.
    """
    law = enumerate_law(case.model, case.params, case.mask, case.start)
    x = law.sample(np.random.default_rng(1), num_chains)
    chains, trace = play_at(engine, sampler, case, x, constant_program(case, steps))
    final = np.asarray(chains.chain.x)[0]
    assert (final[:, ~case.mask] == case.start[~case.mask]).all(), "a masked site moved"
    assert (final != x).any(), "nothing moved"
    distance = total_variation(final, law)
    assert p_value(final, law) > FALSE_ALARM, f"the law is not left invariant: total variation {distance:.4f}"
    assert 0 < trace.acceptance.mean() <= 1 and trace.hops.mean() > 0, "the trace is not that of moving chains"


def same_law_p_value(one: Int8[np.ndarray, "S N"], other: Int8[np.ndarray, "S N"]) -> float:
    """Of the hypothesis that two equally large samples of independent states have one law, by chi-squared."""
    counts = np.stack([np.bincount(state_index(states), minlength=2 ** states.shape[-1]) for states in (one, other)])
    counts = counts[:, counts.sum(axis=0) > 10]
    statistic = ((counts[0] - counts[1]) ** 2 / counts.sum(axis=0)).sum()
    return float(stats.chi2.sf(statistic, counts.shape[1] - 1))
