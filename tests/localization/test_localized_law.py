"""Stochastic localization returns the enumerated law: with the exact posterior mean, and with MCMC.

Bounds on total variation hold sampling noise (0.4 sqrt(32/count)) and the discretisation of time.
"""

import dataclasses
import math

import numpy as np
import pytest

from sl_discs.localization.alpha import parse_alpha
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.gwg import GWG
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.path_auxiliary import PathAuxiliary
from sl_discs.testing import ConformanceError, enumerate_law, standard_cases, total_variation
from sl_discs.testing.localized import check_localized, exact_localization

MIS, LATTICE = standard_cases()[0], standard_cases()[5]
FINE = Localization(K=128, sigma=1.0, grid="log_snr", eps=1e-2, eps_end=1e-2, budget="identical", mc_ratio=0.75)
CLASSIC = dataclasses.replace(FINE, alpha="classic", horizon=30.0, eps=1e-3)
BASES = [Gibbs(), Metropolis(), GWG(), PathAuxiliary(num_flips=3), DMALA()]


def law_of(case):
    return enumerate_law(case.model, case.params, case.mask, case.start)


@pytest.mark.parametrize(
    "plan",
    [
        FINE,
        dataclasses.replace(FINE, grid="uniform", K=256, eps=1e-3, eps_end=1e-3),
        dataclasses.replace(FINE, integrator="euler", K=256),
        dataclasses.replace(FINE, sigma=4.0),
        CLASSIC,
    ],
    ids=["log_snr", "uniform", "euler", "sigma 4", "classic"],
)
def test_exact_posterior_mean_gives_the_law(plan):
    assert total_variation(exact_localization(MIS, plan, 30_000), law_of(MIS)) < 0.03


@pytest.mark.parametrize(("sigma", "localizes"), [(2.0, True), (10.0, False)])
def test_the_sign_of_the_observation_is_a_sample_only_where_the_run_localizes(sigma, localizes):
    plan = Localization(sigma=sigma, K=128)
    assert plan.localizes == localizes
    distance = total_variation(exact_localization(MIS, plan, 8_000), law_of(MIS))
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


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_mcmc_gives_the_law(base):
    plan = dataclasses.replace(FINE, K=64)
    assert check_localized(base, MIS, plan, chain_length=64 * 25, count=6_000, bound=0.06) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("case", [MIS, LATTICE], ids=lambda case: case.name)
def test_much_mcmc_gives_the_law_closely(base, case):
    check_localized(base, case, FINE, chain_length=128 * 40, count=20_000, bound=0.03)


def test_localization_without_its_tilt_is_found():
    class Untilted(Gibbs):
        def kernel(self, key, model, params, x, field, state, mask):
            return super().kernel(key, model, params._replace(tilt=None), x, field, state, mask)

    with pytest.raises(ConformanceError, match="localized samples"):
        check_localized(Untilted(), MIS, dataclasses.replace(FINE, K=64), chain_length=1_600, count=6_000, bound=0.06)
