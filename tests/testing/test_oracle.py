"""The oracle's kernels are Markov kernels that are reversible where they should be, and the known
ones.
"""

import dataclasses

import numpy as np
import pytest
from single_steps import SAMPLERS, small_targets

from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Exchange, Gibbs, Metropolis
from sl_discs.testing.conformance import chi_squared
from sl_discs.testing.oracle import kernel_of, kernel_of_steps, numbers_of_flips

REVERSIBLE = {label: one for label, one in SAMPLERS.items() if one.counts_sweeps}
REVERSIBLE["exchange, single=0.1"] = Exchange(single=0.1)
REVERSIBLE |= {
    f"{label}, {balancing}": dataclasses.replace(one, balancing_fn_type=balancing)
    for label, one in SAMPLERS.items()
    for balancing in ("SQRT", "RATIO", "MAX", "MIN")
    if getattr(one, "adjusted", hasattr(one, "num_flips"))
}


def law_of(log_density):
    law = np.exp(log_density - log_density.max())
    return law / law.sum()


@pytest.mark.parametrize(
    "heat", [1.0, 1.3], ids=["own proposals", "proposals of another temperature"]
)
@pytest.mark.parametrize("label", REVERSIBLE)
def test_detailed_balance(label, heat):
    sampler = REVERSIBLE[label]
    for target in [*small_targets(3), *small_targets(4)]:
        for temperature in (0.4, 2.0):
            log_density, proposed = (
                target.log_density(temperature),
                target.log_density(heat * temperature),
            )
            coupled = target.couplings != 0
            kernel = kernel_of(
                sampler, log_density, target.mask, coupled=coupled, proposed=proposed
            )
            assert (kernel.transitions > -1e-15).all() and (kernel.acceptance < 1 + 1e-12).all()
            np.testing.assert_allclose(kernel.transitions.sum(axis=1), 1, atol=1e-12)
            law = law_of(log_density)
            flow = law[:, None] * kernel.transitions
            np.testing.assert_allclose(flow, flow.T, atol=1e-12)
            np.testing.assert_allclose(law @ kernel.transitions, law, atol=1e-12)


@pytest.mark.parametrize("rule", [Gibbs, Metropolis])
def test_a_sequential_sweep_is_invariant_but_not_reversible(rule):
    """It tries each open site once: a sweep of four free sites under Gibbs is an
    independent draw.
    """
    for target in small_targets(4):
        log_density, sites = target.log_density(0.7), int(target.mask.sum())
        sweep = kernel_of_steps(
            rule(scan="sequential"), log_density, target.mask, sites
        ).transitions
        law = law_of(log_density)
        np.testing.assert_allclose(law @ sweep, law, atol=1e-12)
        flow = law[:, None] * sweep
        assert (np.abs(flow - flow.T).max() > 1e-3) == target.couplings.any()
    draws = kernel_of_steps(Gibbs(scan="sequential"), np.zeros(16), np.ones(4, bool), 4)
    np.testing.assert_allclose(draws.transitions, 1 / 16)
    np.testing.assert_allclose(draws.acceptance, 1 / 2)


@pytest.mark.parametrize("scaling", ["normalized", "fixed"])
def test_dula_leaves_another_law(scaling):
    target = small_targets(4)[0]
    log_density = target.log_density(0.7)
    kernel = kernel_of(
        DMALA(scaling=scaling, step_size=0.5, adjusted=False), log_density, target.mask
    )
    np.testing.assert_allclose(kernel.transitions.sum(axis=1), 1, atol=1e-12)
    law = law_of(log_density)
    assert np.abs(law @ kernel.transitions - law).sum() / 2 > 0.01


def test_one_flip_of_either_path_is_the_same_and_two_are_not():
    target = small_targets(4)[0]
    log_density = target.log_density(1.0)

    def difference(num_flips):
        kernels = [
            kernel_of(kind(num_flips=num_flips), log_density, target.mask).transitions
            for kind in (GWG, PathAuxiliary)
        ]
        return np.abs(kernels[0] - kernels[1]).max()

    assert difference(1) < 1e-15 and difference(2) > 0.1


def test_a_site_drawn_twice_flips_once():
    """Without couplings and on equal weights, two of two sites: half of the draws name one site
    twice.
    """
    log_density, mask = np.zeros(4), np.ones(2, bool)
    for kind, row in ((GWG, [0, 0.25, 0.25, 0.5]), (PathAuxiliary, [0, 0, 0, 1])):
        kernel = kernel_of(kind(num_flips=2), log_density, mask)
        np.testing.assert_allclose(kernel.transitions[0], row)


@pytest.mark.parametrize("num_sites", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [GWG, PathAuxiliary])
def test_a_sampler_is_ergodic_where_all_states_are_reached(kind, num_sites):
    values = np.random.default_rng(num_sites).normal(size=2**num_sites)
    for num_flips in (1, 2, 3, 4, 5):
        sampler = kind(num_flips=num_flips)
        steps = kernel_of(sampler, values, np.ones(num_sites, bool)).transitions
        reached = np.linalg.matrix_power(steps + np.eye(len(values)), len(values)) > 0
        assert sampler.is_ergodic(num_sites) == reached.all()


def test_numbers_of_flips():
    assert numbers_of_flips(2.6, 4, frozen=False) == {3: 1.0}
    assert numbers_of_flips(2.6, 2, frozen=False) == {2: 1.0}
    assert numbers_of_flips(2.6, 4, frozen=True) == pytest.approx({2: 0.9, 3: 0.1})
    assert numbers_of_flips(2.0, 4, frozen=True) == pytest.approx({1: 0.5, 2: 0.5})
    assert numbers_of_flips(1.2, 4, frozen=True) == pytest.approx({1: 1.0})


def test_chi_squared_keeps_its_false_alarm_rate_where_cells_are_rare():
    """One cell expects 0.01 counts: a test that let it stand alone would fail in one of 100
    repetitions.
    """
    rng = np.random.default_rng(0)
    law = np.array([0.5, 0.3, 0.199, 0.00099, 0.00001])
    law /= law.sum()
    values = np.array(
        [chi_squared(rng.multinomial(1_000, law), 1_000 * law)[1] for _ in range(4_000)]
    )
    assert values.min() > 1e-5
    assert abs((values < 0.1).mean() - 0.1) < 5 * np.sqrt(0.1 * 0.9 / len(values))
