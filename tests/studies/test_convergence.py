"""Algorithm 1 in NumPy: its laws on enumerable targets, what U is made of, and the study in small.

Total variation of 20,000 draws from a law on eight states is below 0.02 but for one time in a million.
"""

import dataclasses

import numpy as np
import pytest

import convergence
import small_runs
from convergence import SCHEDULE, Size, fitted_rate, noise_floor, total_variation
from sl_discs.models.quadratic import from_spin

FORM = small_runs.glass(3, 2.0, 0.5, seed=4)
LAW = small_runs.law_of(FORM)
DRAWS, NOISE = 20_000, 0.02


def error(mean, levels, **options):
    plan = dataclasses.replace(SCHEDULE, K=levels)
    states, _ = small_runs.localize(FORM, plan, mean, DRAWS, **options)
    return total_variation(small_runs.counts_of(states), LAW)


def test_the_exact_mean_gives_the_law_with_many_levels_alone():
    exact = small_runs.exact_mean(FORM)
    assert error(exact, 128) < NOISE < 0.08 < error(exact, 2)


def test_a_state_in_the_place_of_the_mean_needs_no_levels():
    """Given Y_s, Y_t is Y_s + (alpha(t) - alpha(s)) X + noise with X drawn from the posterior: no discretisation."""
    last, mean = (small_runs.gibbs_mean(FORM, 60, collected) for collected in (1, 60))
    assert error(last, 2) < NOISE < 0.08 < error(mean, 2)


def test_rao_blackwell_and_tap():
    assert error(small_runs.gibbs_mean(FORM, 8, 8, rao_blackwell=True), 64) < NOISE
    weak = small_runs.glass(3, 0.2, 0.5, seed=4)
    tilt = np.random.default_rng(0).normal(size=(50, 3))
    exact, tap = (mean(None, tilt, tilt)[0] for mean in (small_runs.exact_mean(weak), small_runs.tap_mean(weak)))
    assert np.abs(exact - tap).max() < 0.01


def test_chains_that_share_a_mean_are_chains_of_one_law():
    rng, tilt = np.random.default_rng(0), np.full((2_000, 3), 0.1)
    u, states = small_runs.gibbs_mean(FORM, 30, 1, sharing=4)(rng, tilt, np.ones((2_000, 3)))
    assert states.shape == (2_000, 12)
    again, _ = small_runs.gibbs_mean(FORM, 1, 1, sharing=4)(rng, tilt, states)
    exact = small_runs.exact_mean(FORM)(rng, tilt[:1], tilt)[0]
    for found in (u, again):
        np.testing.assert_allclose(found.mean(axis=0), exact[0], atol=0.05)
    np.testing.assert_allclose(u.std(axis=0), np.sqrt(1 - exact[0] ** 2) / 2, rtol=0.1)


def test_quadrature_is_enumeration():
    form = small_runs.curie_weiss(6, 1.4, 0.02)
    tilt = np.random.default_rng(1).normal(size=(20, 6)) * 3
    wanted = small_runs.exact_mean(form)(None, tilt, tilt)[0]
    found = small_runs.curie_weiss_mean(1.4, 0.02, 6)(None, tilt, tilt)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.slow
def test_the_engines_agree():
    """The setting `mc_ratio` decides likewise: one state, however few levels there are, or a mean that needs many."""
    import jax
    import jax.numpy as jnp
    from localized import localized_samples

    from sl_discs.engines.registry import get_engine
    from sl_discs.models.quadratic import QuadraticModel, quadratic_params
    from sl_discs.models.terms import Coefficients
    from sl_discs.samplers.single_site import Gibbs
    from sl_discs.testing.cases import Case

    c, J, _ = from_spin(FORM)
    pairs = np.array([(0, 1), (0, 2), (1, 2)], np.int32)
    terms = Coefficients(c, pairs, J[pairs[:, 0], pairs[:, 1]], 1.0)
    params = jax.tree.map(jnp.asarray, quadratic_params(terms, 3, None))
    model = QuadraticModel(3, "float32")
    case = Case("glass", model.target(params, np.ones(3, bool)), np.zeros(3, np.int8))
    found = []
    for ratio in (1e-9, 1.0):
        plan = dataclasses.replace(SCHEDULE, K=2, budget="identical", mc_ratio=ratio)
        draws = localized_samples(get_engine("reference"), Gibbs(), case, plan, 2 * 180, 4_000)
        found.append(total_variation(small_runs.counts_of(2.0 * draws - 1), LAW))
    assert found[0] < 0.035 and found[1] > 0.06


def test_fits_and_noise():
    rows = [{"levels": K, "error": 3 / K**1.5, "above": 3 / K**1.5, "floor": 0.01} for K in (2, 4, 8, 16, 512)]
    assert fitted_rate(rows, "levels") == (pytest.approx(1.5), 4)
    assert fitted_rate(rows[2:], "levels") is None
    # Of two equal states: E|p - 1/2| = sqrt(1/(2 pi n)).
    assert noise_floor(np.array([0.5, 0.5]), 10_000) == pytest.approx((2 * np.pi * 10_000) ** -0.5, rel=0.4)


def test_the_magnetisation_has_the_enumerated_law():
    target = convergence.magnetised(6)
    states = small_runs.spins(6)
    up, law = (states > 0).sum(axis=1), small_runs.law_of(target.form)
    np.testing.assert_allclose(target.law, np.bincount(up, law, minlength=7))
    assert target.observe(states).tolist() == [1, 6, 15, 20, 15, 6, 1]


def test_a_stopped_study_goes_on_and_gives_the_same_page(tmp_path):
    size = Size(chains=200, levels=(2, 4), sweeps=(1, 2), work=4, sites=(3,))
    convergence.run(tmp_path, size)
    page = (tmp_path / "convergence.md").read_bytes()
    cells = sorted((tmp_path / "cells").iterdir())
    for path in cells[::2]:
        path.unlink()
    found = convergence.run(tmp_path, size)
    assert (tmp_path / "convergence.md").read_bytes() == page and sorted((tmp_path / "cells").iterdir()) == cells
    assert {len(rows) for rows in found.values()} == {4, 8, 12, 14}
    assert (tmp_path / "convergence.png").stat().st_size > 10_000
