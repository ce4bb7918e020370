"""Stochastic localization returns the enumerated law: with the exact posterior mean, and with MCMC
on each engine.

Bounds on total variation hold sampling noise (0.4 sqrt(32/count)) and the discretisation of time.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engines_at_hand import ENGINES, each_engine
from localized import (
    BASES,
    COOLED,
    FINE,
    SHORT,
    check_law_of_annealed_levels,
    check_law_of_steps,
    check_localized,
    check_localized_law,
    exact_localization,
)  # fmt: skip
from several_values import potts_case

from sl_discs.engines.cpu.cpu_engine import Cpu
from sl_discs.engines.program import swap
from sl_discs.localization.algorithm import Localized
from sl_discs.localization.schedule import Localization, parse_alpha
from sl_discs.models import batching
from sl_discs.models.keys import StepKeys
from sl_discs.samplers.sampler import Chain
from sl_discs.samplers.single_site import Gibbs
from sl_discs.testing import ConformanceError, enumerate_law, standard_cases, total_variation

POTTS = potts_case("potts", 3, 3, (1.0, -2.0))
MIS, LATTICE = standard_cases()[0], standard_cases()[5]


def law_of(case):
    return enumerate_law(case.target, case.start)


def distance_of(case, plan):
    return total_variation(exact_localization(case, plan, 30_000), law_of(case))


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        pytest.param(MIS, {}, id="log_snr"),
        pytest.param(
            MIS, {"grid": "uniform", "K": 256, "eps": 1e-3, "eps_end": 1e-3}, id="uniform"
        ),
        pytest.param(MIS, {"integrator": "euler", "K": 256}, id="euler"),
        pytest.param(MIS, {"sigma": 4.0}, id="sigma 4", marks=pytest.mark.slow),
        pytest.param(MIS, {"alpha": "classic", "horizon": 30.0, "eps": 1e-3}, id="classic"),
        pytest.param(POTTS, {}, id="several values"),
    ],
)
def test_exact_posterior_mean_gives_the_law(case, changes):
    assert distance_of(case, dataclasses.replace(FINE, **changes)) < 0.03


def test_too_coarse_a_grid_is_seen():
    """Three levels miss the law by more than the bound, so the bound can be missed."""
    assert distance_of(MIS, dataclasses.replace(FINE, grid="uniform", K=3)) > 0.05


@pytest.mark.parametrize(("sigma", "localizes"), [(2.0, True), (10.0, False)])
def test_the_sign_of_the_observation_is_a_sample_only_where_the_run_localizes(sigma, localizes):
    plan = Localization(sigma=sigma, K=128)
    assert plan.localizes == localizes
    distance = distance_of(MIS, plan)
    assert distance < 0.04 if localizes else distance > 0.1


@pytest.mark.parametrize("name", BASES)
def test_types_are_promoted_explicitly(name):
    """As a user's jax_numpy_dtype_promotion=strict asks of every library."""
    arrays = (
        FINE.levels(200),
        jnp.zeros(2, jnp.uint32),
        MIS.target.params,
        MIS.target.mask,
        MIS.start,
    )
    sampler = BASES[name]

    def step(levels, key, params, mask, start):
        localized, target = Localized(sampler, levels), MIS.model.target(params, mask)
        state = localized.init_state(key, MIS.model.sites.shape(MIS.model.num_sites))
        return localized.kernel(StepKeys(key, key), target, Chain(start, target.init(start), state))

    with jax.numpy_dtype_promotion("strict"):
        jax.eval_shape(step, *arrays)
        jax.eval_shape(swap, jnp.zeros((2, 3)), jnp.zeros((2, 3), bool))


@pytest.mark.parametrize("alpha", ["geom(2,1)", "geom(2,2)", "classic"])
def test_each_spin_of_a_localized_observation_is_wrong_once_in_30_000(alpha):
    """sign(alpha x + sigma sqrt(t) Z) at the threshold, x = 1: Phi(-4) by the schedule's own
    numbers.
    """
    plan = Localization(alpha=alpha, sigma=1.0, eps_end=0.01)
    at_threshold = dataclasses.replace(plan, sigma=math.sqrt(plan.last_signal_to_noise() / 16))
    values = at_threshold.levels(10_000)
    # The last move adds up to alpha(t_K) and to a variance of sigma^2 t_K.
    signal = values.drift.sum(dtype=np.float64) + parse_alpha(alpha).value(
        np.array(at_threshold.eps)
    )
    variance = (
        values.first_noise.astype(np.float64) ** 2 + (values.noise.astype(np.float64) ** 2).sum()
    )
    assert signal / math.sqrt(variance) == pytest.approx(4, rel=1e-3)
    assert dataclasses.replace(at_threshold, sigma=0.999 * at_threshold.sigma).localizes
    assert not dataclasses.replace(at_threshold, sigma=1.001 * at_threshold.sigma).localizes


SEVERAL = [name for name, base in BASES.items() if base.several_values]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "gibbs")) for n in SEVERAL]
)
def test_mcmc_on_several_values_gives_the_law(name):
    check_localized(
        ENGINES["reference"],
        BASES[name],
        POTTS,
        SHORT,
        chain_length=32 * 16,
        count=4_000,
        bound=0.06,
    )


SEQUENTIAL = {
    f"{name}, sequential": dataclasses.replace(BASES[name], scan="sequential")
    for name in ("gibbs", "metropolis")
}
METHODS = BASES | SEQUENTIAL
FAST = {
    "reference": ("gibbs",),
    "cpu": BASES,
    "in step": SEQUENTIAL,
    "one lane": ("gwg",),
    "cuda": BASES,
}


@each_engine(METHODS, FAST)
def test_each_engine_gives_the_law(engine, name):
    check_localized_law(ENGINES[engine], METHODS[name])


WITHOUT_ADAPTATION = {
    name: base for name, base in METHODS.items() if not getattr(base, "adaptive", False)
}


@each_engine(WITHOUT_ADAPTATION, FAST | {"cpu": ("gwg", "dmala", "metropolis")})
class TestAnnealingInsideEachLevel:
    """Each engine: with the tilt, and the control without it."""

    def test_it_localizes_to_the_law_of_the_last_temperature(self, engine, name):
        check_law_of_annealed_levels(ENGINES[engine], METHODS[name])

    def test_without_tilt_it_is_the_base_sampler_annealed_in_each_level(self, engine, name):
        check_law_of_steps(ENGINES[engine], METHODS[name], "level")


def test_an_annealing_over_the_run_is_told_from_one_inside_each_level():
    with pytest.raises(ConformanceError, match="localized samples"):
        check_law_of_annealed_levels(
            ENGINES["cpu"], Gibbs(), dataclasses.replace(COOLED, anneal="run")
        )
    with pytest.raises(ConformanceError, match="states after 14 steps"):
        check_law_of_steps(ENGINES["cpu"], BASES["gwg"], "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("case", [MIS, LATTICE], ids=lambda case: case.name)
def test_much_mcmc_gives_the_law_closely(name, case):
    check_localized(
        ENGINES["reference"],
        BASES[name],
        case,
        FINE,
        chain_length=128 * 40,
        count=20_000,
        bound=0.03,
    )


@pytest.mark.parametrize("spoiled", ["tilt_scale", "drift", "noise"])
def test_localization_without_one_of_its_parts_is_found(spoiled):
    class Spoiled(Cpu):
        """Plays levels without one of their parts."""

        def prepare(self, model, sampler, batch, program):
            levels = program.levels._replace(
                **{spoiled: np.zeros_like(getattr(program.levels, spoiled))}
            )
            return super().prepare(model, sampler, batch, program._replace(levels=levels))

    with pytest.raises(ConformanceError, match="localized samples"):
        check_localized_law(Spoiled(), Gibbs())


@pytest.mark.parametrize("on_cpu", [True, False])
def test_the_end_of_a_level_moves_only_the_chains_that_reached_it(on_cpu, monkeypatch):
    """A branch on CPUs, a select on GPUs."""
    monkeypatch.setattr(batching, "_decides_cheaply", lambda: on_cpu)
    step = jax.jit(
        jax.vmap(lambda ends, y: batching.cond_for_batch(ends, lambda y, by: y + by, y, 3.0))
    )
    np.testing.assert_array_equal(step(jnp.array([True, False]), jnp.array([1.0, 2.0])), [4.0, 2.0])
    np.testing.assert_array_equal(
        step(jnp.array([False, False]), jnp.array([1.0, 2.0])), [1.0, 2.0]
    )
