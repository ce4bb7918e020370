"""Stochastic localization returns the enumerated law: with the exact posterior mean, and with MCMC on each engine.

Bounds on total variation hold sampling noise (0.4 sqrt(32/count)) and the discretisation of time.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chains import ENGINES, known_to
from localized import BASES, FINE, check_localized, check_localized_law, exact_localization
from scipy import stats
from several_values import potts_case

from sl_discs import batching
from sl_discs.engines.base import exchange
from sl_discs.engines.cpu.engine import Cpu
from sl_discs.engines.registry import get_engine
from sl_discs.keys import StepKeys
from sl_discs.localization.algorithm import Localized, init_localized
from sl_discs.localization.schedule import Localization, parse_alpha
from sl_discs.models.quadratic import QuadraticModel, quadratic_params
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.base import Chain
from sl_discs.samplers.single_site import Gibbs
from sl_discs.testing import ConformanceError, enumerate_law, standard_cases, total_variation

POTTS = potts_case("potts", 3, 3, (1.0, -2.0))
MIS, LATTICE = standard_cases()[0], standard_cases()[5]
CLASSIC = dataclasses.replace(FINE, alpha="classic", horizon=30.0, eps=1e-3)


def law_of(case):
    return enumerate_law(case.target, case.start)


@pytest.mark.parametrize(
    "plan",
    [
        FINE,
        dataclasses.replace(FINE, grid="uniform", K=256, eps=1e-3, eps_end=1e-3),
        dataclasses.replace(FINE, integrator="euler", K=256),
        pytest.param(dataclasses.replace(FINE, sigma=4.0), marks=pytest.mark.slow),
        CLASSIC,
    ],
    ids=["log_snr", "uniform", "euler", "sigma 4", "classic"],
)
def test_exact_posterior_mean_gives_the_law(plan):
    assert total_variation(exact_localization(MIS, plan, 30_000), law_of(MIS)) < 0.03


@pytest.mark.parametrize("name", ["gibbs", "metropolis", "exchange", "gwg", "path_auxiliary", "dmala", "dlmc"])
def test_types_are_promoted_explicitly(name):
    """As a user's jax_numpy_dtype_promotion=strict asks of every library."""
    arrays = FINE.levels(200), jnp.zeros(2, jnp.uint32), MIS.target.params, MIS.target.mask, MIS.start
    sampler, size = BASES[name], MIS.model.num_sites

    def step(levels, key, params, mask, start):
        state = init_localized(key, sampler.init_state(size), MIS.model.sites.shape(size), jnp.float32(1))
        target = MIS.model.target(params, mask)
        return Localized(sampler, levels).kernel(StepKeys(key, key), target, Chain(start, target.init(start), state))

    with jax.numpy_dtype_promotion("strict"):
        jax.eval_shape(step, *arrays)
        jax.eval_shape(exchange, jnp.zeros((2, 3)), jnp.zeros((2, 3), bool))


def test_exact_posterior_mean_gives_the_law_of_several_values():
    assert total_variation(exact_localization(POTTS, FINE, 30_000), law_of(POTTS)) < 0.03


@pytest.mark.slow
def test_sites_of_two_values_localize_alike_by_flips_and_by_categories():
    """At a sigma where sign(Y) is noise, its law depends on the distances of the spins: here they must be equal."""
    coarse = dataclasses.replace(FINE, sigma=8.0)
    potts = potts_case("three sites", 2, 3, (1.0, -2.0))
    first = exact_localization(potts, coarse, 30_000)
    linear, couplings = np.asarray(potts.target.params.linear, float), np.array([1.0, -2.0])
    # [x_i = x_j] = 1 - x_i - x_j + 2 x_i x_j
    field = linear[:, 1] - linear[:, 0] - couplings[[0, 0, 1]] - np.array([0.0, couplings[1], 0.0])
    terms = Coefficients(field, np.array([(0, 1), (1, 2)]), 2 * couplings, 1.0)
    quadratic = jax.tree.map(jnp.asarray, quadratic_params(terms, 3, None))
    case = potts._replace(target=QuadraticModel(3).target(quadratic, potts.mask))
    np.testing.assert_allclose(law_of(case).probabilities, law_of(potts).probabilities, atol=1e-6)
    second = exact_localization(case, coarse, 30_000, seed=1)
    counts = np.stack([np.bincount(law_of(case).numbers(samples), minlength=8) for samples in (first, second)])
    assert stats.chi2_contingency(counts).pvalue > 1e-6
    assert total_variation(second, law_of(case)) > 0.05


SEVERAL = [
    pytest.param(base, id=name, marks=[] if name == "gibbs" else pytest.mark.slow)
    for name, base in BASES.items()
    if base.several_values
]


@pytest.mark.parametrize("base", SEVERAL)
def test_mcmc_on_several_values_gives_the_law(base):
    short = dataclasses.replace(FINE, K=32, sigma=2.0)
    check_localized(get_engine("reference"), base, POTTS, short, chain_length=32 * 16, count=4_000, bound=0.06)


@pytest.mark.parametrize(("sigma", "localizes"), [(2.0, True), (10.0, False)])
def test_the_sign_of_the_observation_is_a_sample_only_where_the_run_localizes(sigma, localizes):
    plan = Localization(sigma=sigma, K=128)
    assert plan.localizes == localizes
    distance = total_variation(exact_localization(MIS, plan, 30_000), law_of(MIS))
    assert distance < 0.04 if localizes else distance > 0.1


@pytest.mark.parametrize("alpha", ["geom(2,1)", "geom(2,2)", "classic"])
def test_each_spin_of_a_localized_observation_is_wrong_once_in_30_000(alpha):
    """sign(alpha x + sigma sqrt(t) Z) at the threshold, x = 1: Phi(-4) by the schedule's own numbers."""
    plan = Localization(alpha=alpha, sigma=1.0, eps_end=0.01)
    at_threshold = dataclasses.replace(plan, sigma=math.sqrt(plan.last_signal_to_noise() / 16))
    values = at_threshold.levels(10_000)
    times = at_threshold.times(10_000)
    assert times[-1] < 1 - at_threshold.eps_end
    # The last move adds up to alpha(t_K) and to a variance of sigma^2 t_K.
    signal = values.drift.sum(dtype=np.float64) + parse_alpha(alpha).value(np.array(at_threshold.eps))
    variance = at_threshold.initial_noise() ** 2 + (values.noise.astype(np.float64) ** 2).sum()
    assert signal / math.sqrt(variance) == pytest.approx(4, rel=1e-3)
    assert dataclasses.replace(at_threshold, sigma=0.999 * at_threshold.sigma).localizes
    assert not dataclasses.replace(at_threshold, sigma=1.001 * at_threshold.sigma).localizes


def test_too_coarse_a_grid_is_seen():
    """Three levels miss the law by more than the bound, so the bound can be missed."""
    coarse = dataclasses.replace(FINE, grid="uniform", K=3)
    assert total_variation(exact_localization(MIS, coarse, 30_000), law_of(MIS)) > 0.05


@pytest.mark.parametrize(
    ("engine", "base"),
    [
        pytest.param(
            engine,
            base,
            id=f"{engine}-{type(base).__name__}",
            marks=[] if engine == "cpu" or isinstance(base, Gibbs) else pytest.mark.slow,
        )
        for engine in ENGINES
        for base in map(BASES.get, known_to(engine, BASES))
    ],
)
def test_each_engine_gives_the_law(engine, base):
    check_localized_law(get_engine(engine), base)


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES.values(), ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("case", [MIS, LATTICE], ids=lambda case: case.name)
def test_much_mcmc_gives_the_law_closely(base, case):
    check_localized(get_engine("reference"), base, case, FINE, chain_length=128 * 40, count=20_000, bound=0.03)


@pytest.mark.parametrize(
    "spoiled", ["tilt_scale", "drift", "noise"], ids=["no tilt", "no drift", "no noise but that of the start"]
)
def test_localization_without_one_of_its_parts_is_found(spoiled):
    class Spoiled(Cpu):
        """Plays levels without one of their parts."""

        def prepare(self, model, sampler, batch, program):
            levels = program.levels._replace(**{spoiled: np.zeros_like(getattr(program.levels, spoiled))})
            return super().prepare(model, sampler, batch, program._replace(levels=levels))

    with pytest.raises(ConformanceError, match="localized samples"):
        check_localized_law(Spoiled(), Gibbs())


@pytest.mark.parametrize("on_cpu", [True, False])
def test_the_end_of_a_level_moves_only_the_chains_that_reached_it(on_cpu, monkeypatch):
    """A branch on CPUs, a select on GPUs."""
    monkeypatch.setattr(batching, "_decides_cheaply", lambda: on_cpu)
    step = jax.jit(jax.vmap(lambda ends, y: batching.cond_for_batch(ends, lambda y, by: y + by, y, 3.0)))
    np.testing.assert_array_equal(step(jnp.array([True, False]), jnp.array([1.0, 2.0])), [4.0, 2.0])
    np.testing.assert_array_equal(step(jnp.array([False, False]), jnp.array([1.0, 2.0])), [1.0, 2.0])
