"""Tests on enumerable targets that stochastic localization samples from the target."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from chains import FALSE_ALARM, play_program, quadratic_case
from jaxtyping import Int8
from single_steps import SAMPLERS, USUAL

from sl_discs.chains.chains import program_of
from sl_discs.engines.program import Engine
from sl_discs.experiment.settings import Settings
from sl_discs.localization.algorithm import LocalizedState, observe, tilt_of
from sl_discs.localization.method import Method
from sl_discs.localization.schedule import Levels, Localization
from sl_discs.models import keys
from sl_discs.models.keys import Stream, chain_keys
from sl_discs.models.model import Target, TargetModel
from sl_discs.samplers.langevin import DLMC, DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.sampler import Sampler
from sl_discs.testing.conformance import (
    Case,
    ConformanceError,
    chi_squared,
    enumerate_law,
    state_index,
    states_of,
    total_variation,
)
from sl_discs.testing.oracle import kernel_of

# Every base sampler, for checks of the engines; few flips suit the few sites of the targets.
BASES = {name: SAMPLERS[label] for name, label in USUAL.items()} | {
    "gwg": GWG(),
    "path_auxiliary": PathAuxiliary(adaptive=True, adapt_until=100),
    "dmala": DMALA(expected_flips=1.5),
    "dlmc": DLMC(expected_flips=1.5),
}
FINE = Localization(
    K=128, sigma=1.0, grid="log_snr", eps=1e-2, eps_end=1e-2, budget="identical", mc_ratio=0.75
)
SHORT = dataclasses.replace(FINE, K=32, sigma=2.0)


def exact_localization(
    case: Case, localization: Localization, count: int, seed: int = 0
) -> Int8[np.ndarray, "count N"]:
    """Final samples of localization with the exact posterior mean in place of MCMC, one step per
    level.
    """
    levels = jax.tree.map(
        jnp.asarray, dataclasses.replace(localization, budget="identical").levels(localization.K)
    )
    chains = chain_keys(seed, Stream.OBSERVATION, np.arange(count), 1)[:, 0]
    return np.asarray(_play_exactly(case.target, levels, chains))


@jax.jit
def _play_exactly(target: Target, levels: Levels, chains):
    """Returns the final samples of chains with these keys; all schedules of one K share a
    program.
    """
    sites, num_sites = target.model.sites, target.model.num_sites
    states = jnp.asarray(states_of((sites.num_values,) * num_sites))
    spins = jax.vmap(sites.spins)(states).astype(jnp.float32)
    log_law = TargetModel().forward(target, states)

    def posterior_mean(tilt):
        weights = jax.nn.softmax(log_law + jnp.sum(spins * tilt, axis=range(1, spins.ndim)))
        return jnp.tensordot(weights, spins, 1)

    def one(key):
        y = levels.first_noise * keys.normals(keys.fold(key, 0), sites.shape(num_sites))
        first = LocalizedState((), jnp.int32(0), jnp.int32(0), y, jnp.zeros_like(y))

        def level(state, number):
            mean = posterior_mean(tilt_of(levels, state))
            return observe(keys.fold(key, 1 + number), levels, state, (), mean), None

        state, _ = jax.lax.scan(level, first, jnp.arange(levels.drift.size))
        return sites.decode(state.y)

    return jax.vmap(one)(chains)


def check_localized(
    engine: Engine, sampler: Sampler, case: Case, localization: Localization, *, chain_length: int, count: int,
    bound: float, annealing: Mapping[str, float] | None = None,
) -> None:  # fmt: skip
    """Checks that localization with a base sampler and engine is within `bound` of the target in
    total variation.

    The distance has sampling noise of about 0.4 sqrt(states/count); the rest is discretisation.

    Args:
      engine: that plays the chains.
      sampler: the base sampler.
      case: a target without tilt and mask.
      localization: its hyperparameters.
      chain_length: steps of each chain.
      count: chains.
      bound: on the distance.
      annealing: fields of `Settings` whose temperatures end at the case's; by default it is
        constant.
    """
    constant = {"t_schedule": "constant", "init_temperature": float(case.target.temperature)}
    settings = Settings(chain_length=chain_length, log_every_steps=1, **(annealing or constant))
    program = program_of(Method("sl", sampler, localization), settings)
    starts = jnp.asarray(chain_keys(0, Stream.INITIAL_STATE, np.arange(1), count)[0])
    x = jax.jit(jax.vmap(case.model.sites.random, (0, None)))(starts, jnp.asarray(case.mask))
    chains, _ = play_program(engine, case, sampler, x, program)
    samples = np.asarray(case.model.sites.decode(chains.chain.state.y))[0]
    distance = total_variation(samples, enumerate_law(case.target, case.start))
    if distance > bound:
        raise ConformanceError(
            f"{case.name}: localized samples are {distance:.3f} from the target, bound {bound}"
        )


THREE_SITES = quadratic_case([0.5, 1.0, -0.3], [(0, 1), (1, 2)], [-2.0, 1.0], temperature=0.8)


def check_localized_law(engine: Engine, base: Sampler) -> None:
    """`check_localized` in a short form on three sites, for each engine with each base sampler.

    The distance is 0.007 with so few levels, and 0.02 by chance with 2,000 chains.
    """
    check_localized(engine, base, THREE_SITES, SHORT, chain_length=32 * 16, count=2_000, bound=0.05)


# From ten times the temperature of `THREE_SITES`, which is reached after half of the steps of each
# annealing.
COOLS_HALFWAY = {"init_temperature": 8.0, "decay_rate": 1e-2, "final_temperature": 0.8}
COOLED = dataclasses.replace(SHORT, anneal="level", mc_ratio=0.4)


def check_law_of_annealed_levels(
    engine: Engine, base: Sampler, localization: Localization = COOLED
) -> None:
    """Checks a run in which U is of the second halves of levels: it has the law of the last
    temperature only if the annealing is over by then in every level.
    """
    steps = 32 * 32
    check_localized(
        engine,
        base,
        THREE_SITES,
        localization,
        chain_length=steps,
        count=2_000,
        bound=0.05,
        annealing=COOLS_HALFWAY,
    )


def check_law_of_steps(engine: Engine, sampler: Sampler, anneal: str) -> None:
    """Checks the states after 14 steps of three levels without tilt: their law is the product of
    the oracle's matrices at the temperatures of Algorithm 1's two loops, with the annealing begun
    in each level. A correct engine fails with probability 1e-6.
    """
    budgets, count = (7, 4, 3), 20_000
    localization = Localization(K=3, budget="exp_decay", n_min=2, r=0.1, tilt=False, anneal=anneal)
    settings = Settings(chain_length=14, log_every_steps=1, init_temperature=3.0, decay_rate=0.1)
    program = program_of(Method("sl", sampler, localization), settings)
    assert tuple(np.diff(program.levels.last, prepend=-1)) == budgets
    x = np.zeros((count, 3), np.int8)
    chains, _ = play_program(engine, THREE_SITES, sampler, x, program)
    # f of `THREE_SITES` at every state, with its ties, and which sites are coupled.
    first, second, third = states_of((2, 2, 2)).T.astype(np.float64)
    f = 0.5 * first + second - 0.3 * third - 2 * first * second + second * third
    coupled, law = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool), np.eye(8)[0]
    for done, steps in zip((0, 7, 11), budgets, strict=True):
        for step in range(1, steps + 1):
            log_density = f / (3 * 0.1 ** (step / steps))
            number = done + step - 1
            law = (
                law
                @ kernel_of(
                    sampler, log_density, np.ones(3, bool), coupled=coupled, done=number
                ).transitions
            )
    counts = np.bincount(state_index(np.asarray(chains.chain.x)[0]), minlength=8)
    _, p_value = chi_squared(counts[None], count * law[None])
    if p_value < FALSE_ALARM:
        raise ConformanceError(f"states after {sum(budgets)} steps: p = {p_value:.1e}")
