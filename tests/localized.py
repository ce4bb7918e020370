"""Tests on enumerable targets that stochastic localization samples from the target."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from chains import play_program, quadratic_case
from jaxtyping import Int8

from sl_discs import keys
from sl_discs.engines.base import Engine, Program
from sl_discs.keys import Stream, chain_keys
from sl_discs.localization.algorithm import init_localized, observe, tilt_of
from sl_discs.localization.schedule import Localization
from sl_discs.models.base import TargetModel
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
SHORT = dataclasses.replace(FINE, K=32, sigma=2.0)


def exact_localization(
    case: Case, localization: Localization, count: int, seed: int = 0
) -> Int8[np.ndarray, "count N"]:
    """Final samples of localization with the exact posterior mean in place of MCMC, one step per level."""
    levels = jax.tree.map(jnp.asarray, dataclasses.replace(localization, budget="identical").levels(localization.K))
    sites, num_sites = case.model.sites, case.model.num_sites

    @jax.jit
    def play(levels, noise):  # which are arguments, so that all schedules of one K share a program
        states = jnp.asarray(states_of((sites.num_values,) * num_sites))
        spins = jax.vmap(sites.spins)(states).astype(jnp.float32)
        log_law = TargetModel().forward(case.target, states)

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


def check_localized(
    engine: Engine, sampler: Sampler, case: Case, localization: Localization, *, chain_length: int, count: int,
    bound: float,
) -> None:  # fmt: skip
    """Checks that localization with a base sampler and engine is within `bound` of the target in total variation.

    The distance has sampling noise of about 0.4 sqrt(states/count); the rest is discretisation.

    Args:
      engine: that plays the chains.
      sampler: the base sampler.
      case: a target without tilt and mask.
      localization: its hyperparameters.
      chain_length: steps of each chain.
      count: chains.
      bound: on the distance.
    """
    temperature = np.full(chain_length, case.target.temperature, np.float32)
    program = Program(temperature, localization.levels(chain_length))
    starts = jnp.asarray(chain_keys(0, Stream.INITIAL_STATE, np.arange(1), count)[0])
    x = jax.jit(jax.vmap(case.model.sites.random, (0, None)))(starts, jnp.asarray(case.mask))
    chains, _ = play_program(engine, case, sampler, x, program, noise=localization.initial_noise())
    samples = np.asarray(case.model.sites.decode(chains.chain.state.y))[0]
    distance = total_variation(samples, enumerate_law(case.target, case.start))
    if distance > bound:
        raise ConformanceError(f"{case.name}: localized samples are {distance:.3f} from the target, bound {bound}")


def check_localized_law(engine: Engine, base: Sampler) -> None:
    """`check_localized` in a short form on three sites, for each engine with each base sampler.

    The distance is 0.007 with so few levels, and 0.02 by chance with 2,000 chains.
    """
    case = quadratic_case([0.5, 1.0, -0.3], [(0, 1), (1, 2)], [-2.0, 1.0], temperature=0.8)
    check_localized(engine, base, case, SHORT, chain_length=32 * 16, count=2_000, bound=0.05)
