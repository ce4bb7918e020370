"""Schedules of stochastic localization: budgets, grids, alphas, and the arrays they compile
into.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sl_discs.localization.algorithm import LocalizedState, observe, tilt_of
from sl_discs.localization.method import build_method, method_fields
from sl_discs.localization.schedule import (
    Classic,
    Geometric,
    Levels,
    Localization,
    level_budgets,
    log_snr,
    parse_alpha,
    time_grid,
)
from sl_discs.models import keys
from sl_discs.solving.options import SolveOptions


@given(
    levels=st.integers(1, 300),
    n_min=st.integers(1, 40),
    extra=st.integers(0, 20_000),
    decay=st.floats(1e-4, 1),
    budget=st.sampled_from(["exp_decay", "identical"]),
)
def test_budgets_spend_the_chain_exactly(levels, n_min, extra, decay, budget):
    chain_length = levels * n_min + extra
    steps = level_budgets(budget, chain_length, levels, n_min, decay)
    assert steps.sum() == chain_length and len(steps) == levels
    if budget == "exp_decay":
        assert steps.min() >= n_min
        assert (np.diff(steps) <= 1).all()  # falling, up to the step that a remainder adds
    else:
        assert steps.max() - steps.min() <= 1


@pytest.mark.parametrize(
    "alpha", [Classic(5.0), Geometric(2, 1), Geometric(1, 1), Geometric(3, 0.5)]
)
def test_grids_are_increasing_and_even_in_their_variable(alpha):
    for grid in ("uniform", "log_snr"):
        times = time_grid(alpha, grid, 50, 1e-3, 1e-2)
        assert times[0] == 1e-3 and np.isclose(times[-1], alpha.horizon - 1e-2)
        assert (np.diff(times) > 0).all()
        even = times if grid == "uniform" else log_snr(alpha, times)
        np.testing.assert_allclose(np.diff(even), np.diff(even).mean(), rtol=1e-6)
    t = np.linspace(0.1, 0.9, 9)
    numeric = (alpha.value(t + 1e-6) - alpha.value(t - 1e-6)) / 2e-6
    np.testing.assert_allclose(alpha.derivative(t), numeric, rtol=1e-6)


def test_names_of_alpha():
    assert parse_alpha("classic", 3.0) == Classic(3.0)
    assert parse_alpha("GEOM(2, 1)") == Geometric(2, 1)
    assert Geometric(2, 1).value(np.array(0.25)) == pytest.approx(0.25 / np.sqrt(0.75))


@pytest.mark.parametrize("integrator", ["exponential", "euler"])
@pytest.mark.parametrize("budget", ["exp_decay", "identical"])
def test_levels(integrator, budget):
    plan = Localization(
        K=20, sigma=3.0, integrator=integrator, budget=budget, mc_ratio=0.3, n_min=2
    )
    levels = plan.levels(1_000)
    assert all(len(leaf) == 20 for leaf in levels[:-1]) and levels.last[-1] == 999
    assert levels.first_noise == pytest.approx(3 * math.sqrt(plan.eps))
    times = time_grid(Geometric(), "uniform", 20, plan.eps, plan.eps_end)
    alpha = Geometric().value(times)
    sizes = np.diff(levels.last, prepend=-1)
    np.testing.assert_array_equal(levels.collected, np.maximum(1, np.ceil(0.3 * sizes - 1e-9)))
    np.testing.assert_allclose(levels.tilt_scale, alpha[:-1] / (9 * times[:-1]), rtol=1e-5)
    np.testing.assert_allclose(levels.noise, 3 * np.sqrt(np.diff(times)), rtol=1e-5)
    slope = (
        np.diff(alpha)
        if integrator == "exponential"
        else np.diff(times) * Geometric().derivative(times[:-1])
    )
    np.testing.assert_allclose(levels.drift, slope, rtol=1e-5)
    ends = levels.last.tolist()
    assert [levels.at(step) for step in (0, ends[0], ends[0] + 1, ends[5], 999, 1_000, 2_000)] == [
        0, 0, 1, 5, 19, 19, 19,
    ]  # fmt: skip


def test_the_steps_of_a_level_are_those_of_the_algorithm():
    """`tilt_of` and `observe` against Algorithm 1 written out: two loops, over levels and over the
    steps of each.
    """
    levels = Localization(K=6, sigma=2.0, n_min=3, mc_ratio=0.4).levels(40)
    rng = np.random.default_rng(0)
    visited = rng.choice([-1, 1], size=(40, 5)).astype(np.int8)
    keys_of_steps = jax.vmap(keys.fold, (None, 0))(keys.from_rng(jax.random.key(1)), jnp.arange(40))
    y = y_0 = rng.normal(size=5).astype(np.float32)
    start = LocalizedState((), jnp.int32(0), jnp.int32(0), jnp.asarray(y_0), jnp.zeros(5))
    arrays = Levels(*map(jnp.asarray, levels))

    @jax.jit
    def play(state):
        def step(state, given):
            key, spins = given
            return observe(key, arrays, state, (), spins), (
                tilt_of(arrays, state),
                keys.normals(key, (5,)),
            )

        return jax.lax.scan(step, state, (keys_of_steps, jnp.asarray(visited)))

    state, (tilts, normals) = play(start)
    begin = 0
    for k in range(6):
        stop = levels.last[k] + 1
        for step in range(begin, stop):
            np.testing.assert_allclose(tilts[step], levels.tilt_scale[k] * y, rtol=1e-4, atol=1e-5)
        mean = visited[stop - levels.collected[k] : stop].mean(axis=0)
        y = y + levels.drift[k] * mean + levels.noise[k] * np.asarray(normals[stop - 1])
        begin = stop
    np.testing.assert_allclose(state.y, y, rtol=1e-4, atol=1e-5)
    assert not state.mean.any() and (int(state.level), int(state.step)) == (5, 40)


def test_methods_from_config_fields():
    method = build_method({"name": "sl_gwg", "sigma": 3, "num_flips": 2})
    assert method.localization.sigma == 3.0 and method.sampler.num_flips == 2
    assert (
        build_method({"name": "gwg", "use_fast_path": True}).localization is None
    )  # a field of DISCS's
    assert set(method_fields("sl_gwg")) > set(method_fields("gwg"))


@pytest.mark.parametrize(
    ("paper", "name"), [("GWG", "gwg"), ("SL-PAS", "sl_path_auxiliary"), ("SL-DMALA", "sl_dmala")]
)
def test_samplers_have_the_papers_names_too(paper, name):
    assert method_fields(paper) == method_fields(name)
    assert build_method({"name": paper}) == build_method({"name": name})
    assert SolveOptions(paper).sampler == name
