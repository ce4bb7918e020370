"""Low-rank localization against enumeration and closed forms, and that it knows when it does not
apply.

With seeds fixed and limits of 5 standard errors of 16 groups a right method fails a comparison with
probability below 2e-4; where all is in closed form draws are independent, and 5 errors mean 1e-6.
"""

import numpy as np
import pytest
from estimates import LIMIT, check, check_calibrated, truth_of

import sl_discs
import truths
from sl_discs.models.terms import to_spin
from sl_discs.sampling.directions import GradientFit, even_axes, find_directions


def planted(size, noise, strengths, *, field=0.5, seed=0):
    """Couplings with orthogonal planted patterns, Gaussian ones beside, and a weak field along the
    first pattern.
    """
    rng = np.random.default_rng(seed)
    patterns = np.where(np.arange(size) % 4 < 2, 1, -1), np.where(np.arange(size) % 2 == 0, 1, -1)
    signs = rng.choice([-1, 1], size)
    couplings = noise * np.triu(rng.normal(size=(size, size)), 1) / np.sqrt(size)
    for strength, pattern in zip(strengths, patterns, strict=False):
        couplings += np.triu(strength / size * np.outer(pattern * signs, pattern * signs), 1)
    first = patterns[0] * signs
    return sl_discs.ising(-field / size * first, -couplings), first


@pytest.mark.parametrize(
    ("strengths", "noise", "engine"),
    [
        ((1.6,), 0.15, "auto"),
        pytest.param((1.6,), 0.15, "reference", marks=pytest.mark.slow),
        pytest.param((1.4, 1.3), 0.1, "auto", marks=pytest.mark.slow),
    ],
    ids=["one direction", "on the reference", "two directions"],
)
def test_the_law_by_enumeration(strengths, noise, engine):
    problem, _ = planted(12, noise, strengths)
    samples = sl_discs.sample(problem, 1.0, 2000, "low_rank", seed=1, engine=engine)
    assert samples.how["directions"] == len(strengths) and samples.reliable, samples.verdict
    check(samples, truth_of(problem, 1.0))


def test_offsets_labels_and_temperatures():
    """What is given in zeros and ones, and maximised, with a constant."""
    rng = np.random.default_rng(3)
    matrix = 0.2 * rng.normal(size=(9, 9)) + 2.0 - 18.0 * np.eye(9)
    problem = sl_discs.qubo(matrix, offset=-3.5, maximise=True)
    check(sl_discs.sample(problem, 5.0, 2000, "low_rank", seed=2), truth_of(problem, 5.0))


@pytest.mark.parametrize("size", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_curie_weiss_is_in_closed_form(size):
    truth = truths.curie_weiss(size, 0.8, field=0.5 / size)
    samples = sl_discs.sample(truth.problem, truth.temperature, 4000, "low_rank")
    assert samples.how["means"] == "in closed form" and samples.reliable
    assert samples.log_z.mean == pytest.approx(truth.log_z, abs=1e-6)
    weight = samples.expectation(lambda states: states.sum(axis=1) > 0)
    assert abs(weight.mean - truth.mode_weight) < LIMIT * weight.error and weight.error < 0.01


def test_a_glassy_rest_is_called_unreliable():
    problem, _ = planted(100, 2.0, (6.0,))
    samples = sl_discs.sample(problem, 1.0, 400, "low_rank")
    assert not samples.reliable
    assert "the spectrum of the remaining coupling is" in samples.verdict.reasons[0]
    assert any("R-hat" in reason for reason in samples.verdict.reasons), samples.verdict


def test_auto_takes_it_where_it_applies():
    """Where it does not, auto goes on to tempering: see the bipartite graph in test_sample."""
    problem, _ = planted(120, 0.1, (1.6,), field=0.3)
    found = sl_discs.sample(problem, 1.0, 1000)
    assert found.method == "low_rank" and found.reliable and "few directions" in found.chosen


@pytest.mark.usefixtures("limits_in_cpu_time")
def test_a_time_limit_gives_draws():
    problem, _ = planted(10, 0.15, (1.6,))
    samples = sl_discs.sample(problem, 1.0, method="low_rank", time_limit=0.5)
    assert len(samples) >= 1000 and samples.log_z.error < 0.1


def test_eigenvalues_of_a_large_sparse_coupling():
    """Two communities of 10,000 that know nothing of each other."""
    size, rng = 20_000, np.random.default_rng(0)
    ends = rng.integers(0, size, (30 * size, 2))
    ends = ends[(ends[:, 0] % 2 == ends[:, 1] % 2) & (ends[:, 0] != ends[:, 1])]
    couplings = {(int(a), int(b)): -0.04 for a, b in ends}
    problem = sl_discs.ising({}, couplings)
    found = find_directions(to_spin(problem.terms(), 1.0))
    assert found is not None and found.loadings.shape == (size, 2) and found.width < 1
    sides = np.where(np.array(problem.labels) % 2 == 0, 1, -1) / np.sqrt(size)
    both = np.stack([np.ones(size) / np.sqrt(size), sides], axis=1)
    vectors = found.loadings / np.linalg.norm(found.loadings, axis=0)
    np.testing.assert_allclose(np.linalg.svd(both.T @ vectors, compute_uv=False), 1, atol=0.03)


def test_spin_terms_and_the_width_of_the_rest():
    problem, _ = planted(30, 0.2, (1.5,))
    spin = to_spin(problem.terms(), 2.0)
    values = np.linalg.eigvalsh(spin.matrix())
    found = find_directions(spin)
    np.testing.assert_allclose(found.eigenvalues, values[::-1][:2])
    assert found.width == pytest.approx(values[-2] - values[0])
    # The rest has no part in the direction.
    left = spin.matrix() - found.loadings @ found.loadings.T
    strength = np.linalg.norm(found.loadings)
    assert np.linalg.norm(left @ found.loadings) == pytest.approx(
        strength * (strength**2 - values[-1]), rel=1e-6
    )
    states = np.random.default_rng(0).integers(0, 2, (5, 30))
    spins = 2 * states - 1
    f = (
        0.5 * np.einsum("si,ij,sj->s", spins, spin.matrix(), spins)
        + spins @ spin.fields
        + spin.constant
    )
    dense = problem.terms().listed()
    x = states.astype(float)
    pairs = dense.scale * (x[:, dense.edges[:, 0]] * x[:, dense.edges[:, 1]]) @ dense.weights
    np.testing.assert_allclose(f, (dense.constant + x @ dense.linear + pairs) / 2.0)


def test_gradients_of_polynomials_are_fitted_exactly():
    box = np.array([[-2.0, 3.0], [-1.0, 4.0]])
    fit = GradientFit(box, 7)
    x, y = fit.nodes.T
    gradients = np.stack([3 * x**2 * y - 2 * y, x**3 - 2 * x + 2 * y], axis=1)
    axes = even_axes(box, 0.5)
    found = fit(gradients[None], axes)[0]
    a, b = np.meshgrid(*axes, indexing="ij")
    expected = a**3 * b - 2 * a * b + b**2
    np.testing.assert_allclose(found - found[0, 0], expected - expected[0, 0], atol=1e-8)
    noisy = gradients + np.random.default_rng(0).normal(size=(16, *gradients.shape))
    assert 0.5 < fit.misfit(noisy) < 1.8
    rough = noisy + 5 * np.sign(np.sin(40 * fit.nodes))
    assert fit.misfit(rough) > 5


@pytest.mark.slow
def test_standard_errors_are_calibrated():
    problem, _ = planted(12, 0.2, (1.6,))
    check_calibrated(
        lambda seed: sl_discs.sample(problem, 1.0, 1000, "low_rank", seed=seed),
        truth_of(problem, 1.0),
    )
