"""Small targets in the form that engines take, and programs that are played on them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sl_discs.engines.program import (
    Batch,
    ChainStates,
    Engine,
    Program,
    StepKeys,
    StepTemperatures,
    Trace,
    init_chains,
)
from sl_discs.localization.schedule import Levels
from sl_discs.models.keys import Stream, chain_keys
from sl_discs.models.model import Target
from sl_discs.models.quadratic import QuadraticModel, field_dtype, quadratic_params
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.sampler import Sampler
from sl_discs.testing.conformance import Case

# The probability with which a statistical check fails a correct engine.
FALSE_ALARM = 1e-6


def quadratic_case(linear, edges, weights, scale=1.0, mask=None, temperature=1.0) -> Case:
    """f(x) = c.x + scale times the sum of the weights of the edges whose ends are both 1; it starts
    at 0.
    """
    edges = np.array(edges, np.int32).reshape(-1, 2)
    params = quadratic_params(
        Coefficients(np.float64(linear), edges, np.float64(weights), scale), len(linear), None
    )
    model = QuadraticModel(len(linear), field_dtype(params.coupling))
    mask = np.ones(len(linear), bool) if mask is None else np.array(mask)
    target = Target(model, jax.tree.map(jnp.asarray, params), jnp.float32(temperature), mask)
    return Case("quadratic", target, np.zeros(len(linear), np.int8))


def random_edges(rng, num_sites, degree):
    """The edges of a random graph of this mean degree."""
    return np.argwhere(np.triu(rng.random((num_sites, num_sites)) < degree / num_sites, 1))


def batch_of(case: Case, num_chains: int, seed: int = 0) -> Batch:
    """One instance, the case's, with keys for its chains."""
    keys = (
        chain_keys(seed, stream, np.arange(1), num_chains)
        for stream in (Stream.MCMC, Stream.OBSERVATION)
    )
    params = jax.tree.map(lambda leaf: np.asarray(leaf)[None], case.target.params)
    return Batch(params, np.asarray(case.mask)[None], StepKeys(*keys))


def copied(tree):
    """Arrays in buffers of their own, which engines may reuse; JAX alone would compile a program
    for each shape.
    """
    return jax.tree.map(lambda leaf: jnp.array(np.asarray(leaf)), tree)


def chains_at(
    case: Case, sampler: Sampler, batch: Batch, x, levels: Levels | None = None
) -> ChainStates:
    """Chains before their first step at states [B, N]; `levels` as in `init_chains`."""
    return init_chains(case.model, sampler, batch, np.asarray(x, np.int8)[None], levels)


def program_at(temperature, levels: Levels | None = None, **fields) -> Program:
    """A program with these temperatures [T] of its steps."""
    return Program(StepTemperatures(np.asarray(temperature, np.float32)), levels, **fields)


def play_program(
    engine: Engine, case: Case, sampler: Sampler, x, program: Program, intervals: int = 1, *,
    calls: int = 1, batch: Batch | None = None, steps: int | None = None,
) -> tuple[ChainStates, Trace]:  # fmt: skip
    """Plays `steps` of a program, or the whole of one with temperatures by step, from states [B, N]
    of one instance.

    Each of equal calls has `intervals` intervals.
    """
    batch = batch or batch_of(case, len(x))
    chains, traces = chains_at(case, sampler, batch, x, program.levels), []
    steps = len(program.temperature.whole()) if steps is None else steps
    play, every = engine.prepare(case.model, sampler, batch, program), steps // (calls * intervals)
    for call in range(calls):
        chains, trace = play(copied(chains), call * intervals * every, intervals, every)
        traces.append(jax.tree.map(np.asarray, trace))
    return jax.tree.map(np.asarray, chains), jax.tree.map(
        lambda *leaves: np.concatenate(leaves), *traces
    )


def check_independence(
    engine: Engine, case: Case, sampler: Sampler, x, program: Program, calls: int = 4
) -> ChainStates:
    """Checks that chains depend neither on how a run is cut into calls nor on the other chains;
    returns them.

    Every fifth chain is played once more, without the others and in several calls.
    """
    batch, chosen = batch_of(case, len(x)), np.arange(0, len(x), 5)
    alone = batch._replace(keys=StepKeys(*(keys[:, chosen] for keys in batch.keys)))
    once, _ = play_program(engine, case, sampler, x, program, calls, batch=batch)
    some, _ = play_program(engine, case, sampler, x[chosen], program, calls=calls, batch=alone)
    all_of_them = jax.tree.map(lambda leaf: leaf[:, chosen], once)
    np.testing.assert_array_equal(all_of_them.chain.x, some.chain.x)
    np.testing.assert_array_equal(all_of_them.best.x, some.best.x)
    # Sums of real numbers, such as the posterior mean, are made in parts.
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5),
        all_of_them,
        some,
    )
    return once
