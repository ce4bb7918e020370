"""Does stochastic localization return the target's law? Tests on enumerable targets."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int8

from sl_discs import keys
from sl_discs.engines.contract import Engine, Program, init_chains
from sl_discs.engines.registry import get_engine
from sl_discs.keys import Stream, chain_keys
from sl_discs.localization.algorithm import final_sample, init_observation, localized_step
from sl_discs.localization.schedule import Localization
from sl_discs.models.tilted import Tilted, TiltedParams
from sl_discs.samplers.base import Sampler
from sl_discs.testing.cases import Case
from sl_discs.testing.conformance import ConformanceError, total_variation
from sl_discs.testing.engines import batch_of, play_program
from sl_discs.testing.enumeration import all_states, enumerate_law


def _untilted(case: Case) -> TiltedParams:
    """The case's parameters; a tilt of its own would belong to the target, which localization tilts."""
    if case.params.tilt is not None or not case.mask.all():
        raise ValueError(f"{case.name}: choose a target without tilt and mask")
    return case.params


def exact_localization(
    case: Case, localization: Localization, count: int, seed: int = 0
) -> Int8[np.ndarray, "count N"]:
    """Final samples of localization with the exact posterior mean in place of MCMC, one step a level."""
    params = _untilted(case)
    levels = dataclasses.replace(localization, budget="identical").levels(localization.K)
    states = jnp.asarray(all_states(case.model.num_sites))
    spins = 2 * states.astype(jnp.float32) - 1
    tilted = Tilted(case.model)
    log_law = jax.vmap(lambda x: tilted.value(params, x, tilted.init(params, x)))(states)

    def posterior_mean(tilt):
        return jax.nn.softmax(log_law + spins @ tilt) @ spins, None

    def one(key):
        observation = init_observation(keys.fold(key, 0), (case.model.num_sites,), localization.initial_noise())

        def level(observation, number):
            key_of_step = keys.fold(key, 1 + number)
            observation, *_ = localized_step(key_of_step, levels, number, number, observation, posterior_mean)
            return observation, None

        observation, _ = jax.lax.scan(level, observation, jnp.arange(localization.K))
        return final_sample(observation)

    chains = chain_keys(seed, Stream.OBSERVATION, jnp.arange(count), 1)[:, 0]
    return np.asarray(jax.jit(jax.vmap(one))(chains))


def localized_samples(
    sampler: Sampler,
    case: Case,
    localization: Localization,
    chain_length: int,
    count: int,
    seed: int = 0,
    engine: Engine | None = None,
) -> Int8[np.ndarray, "count N"]:
    """Final samples of localization with a base sampler, `count` chains of chain_length steps.

    `engine` is the reference engine by default.
    """
    params = _untilted(case)
    batch = batch_of(case, count, seed)
    temperature = np.full(chain_length, params.temperature, np.float32)
    program = Program(temperature, localization.levels(chain_length))
    x = np.random.default_rng(seed).integers(0, 2, (1, count, case.model.num_sites), np.int8)
    chains = jax.jit(functools.partial(init_chains, case.model, sampler))(
        batch, x, np.float32(localization.initial_noise())
    )
    chains, _ = play_program(engine or get_engine("reference"), case.model, sampler, batch, chains, program)
    return np.asarray(final_sample(chains.chain.observation))[0]


def check_localized(
    sampler: Sampler,
    case: Case,
    localization: Localization,
    *,
    chain_length: int = 4_000,
    count: int = 20_000,
    bound: float = 0.03,
    seed: int = 0,
    engine: Engine | None = None,
) -> float:
    """Localization with this base sampler comes within `bound` of the target in total variation.

    Returns:
      the distance, of which about 0.4 sqrt(states/count) is sampling noise and the rest discretisation.

    Raises:
      ConformanceError: it does not.
    """
    samples = localized_samples(sampler, case, localization, chain_length, count, seed, engine)
    law = enumerate_law(case.model, case.params, case.mask, case.start)
    distance = total_variation(samples, law)
    if distance > bound:
        raise ConformanceError(f"{case.name}: localized samples are {distance:.3f} from the target, bound {bound}")
    return distance
