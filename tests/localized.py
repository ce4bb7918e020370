"""Tests on enumerable targets that stochastic localization samples from the target."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from chains import batch_of, chains_at, play_program
from jaxtyping import Int8

from sl_discs import keys
from sl_discs.engines.base import Engine, Program
from sl_discs.keys import Stream, chain_keys
from sl_discs.localization.algorithm import init_localized, observe, tilt_of
from sl_discs.localization.schedule import Localization
from sl_discs.models.base import Target, TargetModel
from sl_discs.models.quadratic import QuadraticModel, quadratic_params
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.langevin import DLMC, DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Exchange, Gibbs, Metropolis
from sl_discs.testing.cases import Case, enumerate_law, states_of
from sl_discs.testing.conformance import ConformanceError, total_variation

# Base samplers of each kind, for checks of the engines.
BASES = {
    "gibbs": Gibbs(),
    "metropolis": Metropolis(),
    "exchange": Exchange(),
    "gwg": GWG(),
    "path_auxiliary": PathAuxiliary(adaptive=True, adapt_until=100),
    "dmala": DMALA(expected_flips=1.5),
    "dlmc": DLMC(expected_flips=1.5),
}
FINE = Localization(K=128, sigma=1.0, grid="log_snr", eps=1e-2, eps_end=1e-2, budget="identical", mc_ratio=0.75)
_SHORT = dataclasses.replace(FINE, K=32, sigma=2.0)


def _untilted(case: Case) -> Target:
    """The case's target; a tilt of its own would belong to the model, as localization puts its own in its place."""
    if case.target.tilt is not None or not case.mask.all():
        raise ValueError(f"{case.name}: choose a target without tilt and mask")
    return case.target


def exact_localization(
    case: Case, localization: Localization, count: int, seed: int = 0
) -> Int8[np.ndarray, "count N"]:
    """Final samples of localization with the exact posterior mean in place of MCMC, one step per level."""
    target = _untilted(case)
    levels = jax.tree.map(jnp.asarray, dataclasses.replace(localization, budget="identical").levels(localization.K))
    sites, num_sites = case.model.sites, case.model.num_sites

    @jax.jit
    def play(levels, noise):  # which are arguments, so that all schedules of one K share a program
        states = jnp.asarray(states_of((sites.num_values,) * num_sites))
        spins = jax.vmap(sites.spins)(states).astype(jnp.float32)
        log_law = TargetModel().forward(target, states)

        def posterior_mean(tilt):
            weights = jax.nn.softmax(log_law + jnp.sum(spins * tilt, axis=range(1, spins.ndim)))
            return jnp.tensordot(weights, spins, 1)

        def one(key):
            first = init_localized(keys.fold(key, 0), (), sites.shape(num_sites), noise)

            def level(state, number):
                mean = posterior_mean(tilt_of(levels, state))
                return observe(keys.fold(key, 1 + number), levels, state, (), mean), None

            state, _ = jax.lax.scan(level, first, jnp.arange(localization.K))
            return sites.decode(state.y)

        return jax.vmap(one)(chain_keys(seed, Stream.OBSERVATION, np.arange(count), 1)[:, 0])

    return np.asarray(play(levels, jnp.float32(localization.initial_noise())))


def localized_samples(
    engine: Engine,
    sampler: Sampler,
    case: Case,
    localization: Localization,
    chain_length: int,
    count: int,
    seed: int = 0,
) -> Int8[np.ndarray, "count N"]:
    """Final samples of localization with a base sampler, `count` chains of chain_length steps.

    Args:
      engine: the engine used, see `engines.entry`.
      sampler: the base sampler.
      case: a target without tilt and mask.
      localization: its hyperparameters.
      chain_length: steps of each chain.
      count: chains.
      seed: of everything.
    """
    temperature = np.full(chain_length, _untilted(case).temperature, np.float32)
    program = Program(temperature, localization.levels(chain_length))
    batch = batch_of(case, count, seed)

    @jax.jit
    def random_states(mask):
        starts = chain_keys(seed, Stream.INITIAL_STATE, np.arange(1), count)[0]
        return jax.vmap(case.model.sites.random, (0, None))(starts, mask[0])

    chains = chains_at(case, sampler, batch, random_states(batch.mask), localization.initial_noise())
    chains, _ = play_program(engine, case.model, sampler, batch, chains, program)
    return np.asarray(case.model.sites.decode(np.asarray(chains.chain.state.y)))[0]


def check_localized(
    engine: Engine,
    sampler: Sampler,
    case: Case,
    localization: Localization,
    *,
    chain_length: int = 4_000,
    count: int = 20_000,
    bound: float = 0.03,
    seed: int = 0,
) -> float:
    """Checks that localization with a base sampler and engine is within `bound` of the target in total variation.

    Arguments are those of `localized_samples`.

    Returns:
      the distance, of which about 0.4 sqrt(states/count) is sampling noise and the rest discretisation.

    Raises:
      ConformanceError: the distance is larger.
    """
    samples = localized_samples(engine, sampler, case, localization, chain_length, count, seed)
    law = enumerate_law(case.target, case.start)
    distance = total_variation(samples, law)
    if distance > bound:
        raise ConformanceError(f"{case.name}: localized samples are {distance:.3f} from the target, bound {bound}")
    return distance


def _three_sites() -> Case:
    """Small enough for few levels, steps and chains."""
    terms = Coefficients(np.array([0.5, 1.0, -0.3]), np.array([(0, 1), (1, 2)]), np.array([-2.0, 1.0]), 1.0)
    params = jax.tree.map(jnp.asarray, quadratic_params(terms, 3, None))
    start = np.zeros(3, np.int8)
    model = QuadraticModel(3, "int16")
    return Case("three sites", Target(model, params, jnp.float32(0.8), start == 0), start)


def check_localized_law(engine: Engine, base: Sampler, count: int = 2_000, bound: float = 0.05) -> float:
    """`check_localized` in a short form, for each engine with each base sampler.

    The distance is 0.007 with so few levels, and 0.02 by chance with 2,000 chains.
    """
    return check_localized(engine, base, _three_sites(), _SHORT, chain_length=32 * 16, count=count, bound=bound)
