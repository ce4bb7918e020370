"""The localized sampler around samplers of DISCS's kind, here the stand-in's: equality, laws, cost, state.

Bounds on total variation hold sampling noise (0.4 sqrt(32/6000) = 0.03) and the discretisation of time.
"""

import functools
import importlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_except
from test_register import whole_config

from sl_discs.discs_plugin.base_sampler import BaseSampler, States
from sl_discs.discs_plugin.localized_sampler import LocalizedSampler
from sl_discs.discs_plugin.own import OwnSampler
from sl_discs.errors import InputError
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.single_site import Gibbs
from sl_discs.testing import total_variation
from sl_discs.testing.cases import Law, all_states

BASES = ["onesite", "ball", "nearby", "sldiscs_gibbs"]
FINE = Localization(K=64, sigma=1.0, grid="log_snr", eps=1e-2, eps_end=1e-2, budget="identical", mc_ratio=0.75)


def pairs(shape):
    config = whole_config("sl_onesite", shape=shape)
    model = importlib.import_module("discs.models.pairs").build_model(config)
    bias = jnp.linspace(-1.0, 1.5, 5).reshape(shape)
    return model, {"bias": bias, "temperature": jnp.float32(0.8)}


def base_sampler(name, shape, chains):
    if name == "sldiscs_gibbs":
        return OwnSampler(Gibbs(), chains, States(shape))
    config = whole_config(f"sl_{name}", shape=shape)
    sampler = importlib.import_module(f"discs.samplers.{name}").build_sampler(config)
    return BaseSampler(name, sampler, States(shape))


def localized_sampler(name, shape, localization, steps, chains):
    if name == "sldiscs_gibbs":
        return OwnSampler(Gibbs(), chains, States(shape), localization, steps)
    return LocalizedSampler(base_sampler(name, shape, chains), localization, steps, chains)


def play(sampler, model, params, x, steps, seed=0):
    """One scan over `step`: the state must keep its structure, shapes and dtypes."""

    def step(carry, number):
        x, state = carry
        x, state, _ = sampler.step(model, jax.random.PRNGKey(number), x, params, state)
        return (x, state), x

    state = sampler.make_init_state(jax.random.PRNGKey(seed))
    (_, state), visited = jax.jit(lambda carry: jax.lax.scan(step, carry, seed + jnp.arange(steps)))((x, state))
    return visited, state


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("ball", (5,)),
        ("sldiscs_gibbs", (1, 5)),
        *(
            pytest.param(name, shape, marks=pytest.mark.slow)
            for name, shape in [
                *((name, (5,)) for name in ("onesite", "nearby", "sldiscs_gibbs")),
                *((name, (1, 5)) for name in ("onesite", "nearby")),
            ]
        ),
    ],
)
def test_without_tilt_it_is_the_base_sampler(standin, name, shape):
    model, params = pairs(shape)
    base = base_sampler(name, shape, chains=7)
    x = model.get_init_samples(jax.random.PRNGKey(3), 7)
    plain, _ = play(base, model, params, x, 64)
    flat = localized_sampler(name, shape, Localization(K=8, tilt=False), 64, 7)
    localized, state = play(flat, model, params, x, 64)
    np.testing.assert_array_equal(plain, localized)
    assert int(state["steps"]) == 64 and int(state["num_ll_calls"]) > 0


def test_with_a_tilt_it_is_another_one(standin):
    """So that the equality above could fail; the law of each one's tilted chain is tested below."""
    model, params = pairs((5,))
    base = base_sampler("onesite", (5,), chains=7)
    x = model.get_init_samples(jax.random.PRNGKey(3), 7)
    tilted = LocalizedSampler(base, Localization(K=8, sigma=0.5), 64, 7)
    assert (play(tilted, model, params, x, 64)[0] != play(base, model, params, x, 64)[0]).any()


@pytest.mark.parametrize("name", slow_except(BASES, ("onesite", "sldiscs_gibbs")))
def test_it_returns_the_law(standin, name):
    model, params = pairs((5,))
    # `ball` goes through the chains one by one, and changes the same site in all of them.
    chains, steps = (1_500 if name == "ball" else 6_000), 64 * 25
    sampler = localized_sampler(name, (5,), FINE, steps, chains)
    _, state = play(sampler, model, params, jnp.zeros((chains, 5), jnp.int32), steps)
    states = all_states(5)
    weights = np.exp(np.asarray(model.forward(params, jnp.asarray(states, jnp.float32)), np.float64))
    law = Law(states, weights / weights.sum())
    bound = 0.10 if name == "ball" else 0.06
    assert total_variation(np.asarray(sampler.final_sample(state)), law) < bound
    assert np.isfinite(state["chains"].y).all() and (state["chains"].level == FINE.K - 1).all()


def _primitives(jaxpr, inside_branch=False):
    """Pairs of a primitive's name and whether it is only met inside of a branch."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name, inside_branch
        branch = inside_branch or equation.primitive.name == "cond"
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from _primitives(inner, branch)


@pytest.mark.parametrize(("name", "count"), [("onesite", 2), ("sldiscs_gibbs", 2)])
def test_noise_is_drawn_in_a_branch_also_when_mapped_over_graphs(standin, name, count):
    model, params = pairs((5,))
    sampler = localized_sampler(name, (5,), Localization(K=8), 64, 4)
    states = jax.vmap(sampler.make_init_state)(jax.random.split(jax.random.PRNGKey(0), 3))
    keys = jax.random.split(jax.random.PRNGKey(1), 3)
    step = jax.vmap(functools.partial(sampler.step, model=model))
    many = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), params)
    traced = jax.make_jaxpr(lambda rng, x, p, s: step(rng=rng, x=x, model_param=p, state=s))(
        keys, jnp.zeros((3, 4, 5), jnp.int32), many, states
    )
    found = list(_primitives(traced.jaxpr))
    normals = [branch for name, branch in found if name == "sqrt"]
    assert len(normals) == count and all(normals)
    assert "cond" in {name for name, _ in found}


@pytest.mark.parametrize("name", ["onesite", "sldiscs_gibbs"])
def test_graphs_and_devices_have_observations_of_their_own(standin, name):
    """The state is the same everywhere at first, as DISCS replicates it; the first step's key tells them apart."""
    model, params = pairs((5,))
    sampler = localized_sampler(name, (5,), Localization(K=8), 64, 4)
    state = sampler.make_init_state(jax.random.PRNGKey(0))
    x = jnp.zeros((4, 5), jnp.int32)
    step = jax.jit(lambda key: sampler.step(model, key, x, params, state)[1]["chains"].y)
    ys = [step(jax.random.PRNGKey(k)) for k in (1, 2)]
    values = np.concatenate([np.asarray(y).ravel() for y in ys])
    assert len(np.unique(values)) == len(values)


@pytest.mark.parametrize("name", ["onesite", "sldiscs_gibbs"])
def test_levels_end_when_the_schedule_says(standin, name):
    model, params = pairs((5,))
    plan = Localization(K=4, n_min=2)
    sampler = localized_sampler(name, (5,), plan, 20, 2)
    state = sampler.make_init_state(jax.random.PRNGKey(0))
    step = jax.jit(functools.partial(sampler.step, model))
    x, levels, moved = jnp.zeros((2, 5), jnp.int32), [], []
    for number in range(24):
        before = state["chains"].y
        x, state, _ = step(jax.random.PRNGKey(number), x, params, state)
        levels.append(int(state["chains"].level.max()))
        moved.append(bool((state["chains"].y != before).any()))
    last = plan.levels(20).last
    assert [number for number in range(1, 24) if moved[number]] == list(last)
    assert levels == [min(int((last <= number).sum()), 3) for number in range(24)]


@pytest.mark.parametrize("name", ["onesite", "sldiscs_gibbs"])
def test_states_of_another_shape_are_refused(standin, name):
    model, params = pairs((5,))
    sampler = localized_sampler(name, (5,), Localization(K=8), 64, 4)
    with pytest.raises(InputError, match=r"states of shape \(3, 5\), but was built for \(4, 5\)"):
        sampler.step(
            model,
            jax.random.PRNGKey(0),
            jnp.zeros((3, 5), int),
            params,
            sampler.make_init_state(jax.random.PRNGKey(0)),
        )


def test_a_model_with_ratios_alone(standin):
    """Three results, a neighbour function of two arguments, and no gradient: every sampler runs on it."""
    model = importlib.import_module("discs.models.ratios").build_model(None)
    params = {"bias": jnp.array([0.5, -1.0, 1.5, 0.0])}
    for name, (start, seed) in itertools.product(["onesite", "nearby"], [(0, 0)]):
        base = base_sampler(name, (4,), 4_000)
        visited, _ = play(base, model, params, jnp.full((4_000, 4), start, jnp.int32), 60, seed)
        expected = jax.nn.sigmoid(params["bias"])
        np.testing.assert_allclose(visited[-1].mean(axis=0), expected, atol=5 * 0.5 / np.sqrt(4_000))


def test_dtypes_are_settled_before_the_first_step(standin):
    base = base_sampler("onesite", (5,), 4)
    state = base.make_init_state(jax.random.PRNGKey(0))
    assert state["scale"].dtype == jnp.float32 and state["steps"].dtype == jnp.int32


def test_a_sampler_that_cannot_be_traced(standin):
    class Broken:
        def make_init_state(self, rng):
            return {"num_ll_calls": jnp.int32(0), "steps": jnp.int32(0)}

        def step(self, model, rng, x, model_param, state, x_mask=None):
            return jnp.zeros(3) + jnp.zeros(4), state, 1.0

    with pytest.raises(InputError, match=r"sampler 'broken' does not take states of shape \(5,\)"):
        BaseSampler("broken", Broken(), States((5,)))
