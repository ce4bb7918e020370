"""Small targets as an engine plays them: batches, programs, chains, and whether the states they leave fit a law."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int8
from scipy import stats

from sl_discs.experiment import cpu_engine, engine, gpu_engine
from sl_discs.experiment.engine import Batch, Chains, init_chains
from sl_discs.experiment.mesh import Layout, make_mesh
from sl_discs.keys import Stream, chain_keys
from sl_discs.localization.schedule import LocalizationStep
from sl_discs.localization.transition import ProgramStep, StepKeys
from sl_discs.samplers.base import Sampler
from sl_discs.testing.cases import Case
from sl_discs.testing.conformance import total_variation
from sl_discs.testing.enumeration import Law, enumerate_law, state_index

# A statistical check fails an engine that is right with this probability.
FALSE_ALARM = 1e-6

ENGINES = ("reference", "cpu", "gpu")


def entry(name: str):
    """`advance(model, sampler, batch, chains, program, first_step)` of an engine, on one device.

    Args:
      name: one of `ENGINES`, the kernel for GPUs being interpreted; or `gpu body`, what that kernel does mapped over
        chains by JAX, which plays many chains faster.
    """
    if name == "reference":
        return functools.partial(engine.advance, mesh=make_mesh(Layout(1, 1)))
    if name == "cpu":
        return cpu_engine.advance
    return functools.partial(gpu_engine.advance, way={"gpu": "interpret", "gpu body": "mapped"}[name])


def batch_of(case: Case, num_chains: int, seed: int = 0) -> Batch:
    """One instance, the case's, with keys for its chains."""

    @jax.jit
    def build(params):
        keys = (chain_keys(seed, stream, jnp.arange(1), num_chains) for stream in (Stream.MCMC, Stream.OBSERVATION))
        return Batch(jax.tree.map(lambda leaf: leaf[None], params), jnp.asarray(case.mask)[None], StepKeys(*keys))

    return build(case.params.base)


def constant_program(case: Case, steps: int) -> ProgramStep:
    """One interval at the case's temperature; its tilt is that of an observation that never moves."""
    shape = (1, steps)
    temperature = np.full(shape, case.params.temperature, np.float32)
    if case.params.tilt is None:
        return ProgramStep(temperature, None)
    zeros = np.zeros(shape, np.float32)
    return ProgramStep(temperature, LocalizationStep(zeros + 1, zeros, zeros.astype(bool), zeros, zeros))


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


def play_at(advance, sampler: Sampler, case: Case, x: Int8[np.ndarray, "B N"], program: ProgramStep):
    """Plays a program from given states.

    Returns:
      the states afterwards [B, N], and the trace.
    """
    batch = batch_of(case, len(x))
    chains, trace = advance(case.model, sampler, batch, chains_at(case, sampler, batch, x), program, 1)
    return np.asarray(chains.chain.x)[0], trace


def check_invariance(advance, sampler: Sampler, case: Case, steps: int, num_chains: int) -> None:
    """Raises AssertionError unless exact draws, after some steps of an engine, are exact draws again.

    Args:
      advance: of the engine, with the signature of `experiment.engine.advance` without a mesh.
      sampler: one that stops adapting well before the last step.
      case: the target.
      steps: of each chain.
      num_chains: independent chains.
    """
    law = enumerate_law(case.model, case.params, case.mask, case.start)
    x = law.sample(np.random.default_rng(1), num_chains)
    final, trace = play_at(advance, sampler, case, x, constant_program(case, steps))
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
