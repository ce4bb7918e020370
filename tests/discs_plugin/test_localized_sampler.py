"""The localized sampler around samplers of DISCS's kind, here the stand-in's: equality, laws, cost, state.

Bounds on total variation hold sampling noise (0.4 sqrt(32/6000) = 0.03) and the discretisation of time.
"""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from localized import FINE
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

BASES = ["onesite", "ball", "sldiscs_gibbs"]


def pairs(shape):
    config = whole_config("sl_onesite", shape=shape)
    model = importlib.import_module("discs.models.pairs").build_model(config)
    bias = jnp.linspace(-1.0, 1.5, 5).reshape(shape)
    return model, {"bias": bias, "temperature": jnp.float32(0.8)}


def base_sampler(name, shape, chains):
    if name == "sldiscs_gibbs":
        return OwnSampler(Gibbs(), chains, States(shape))
    config = whole_config(f"sl_{name}", shape=(int(np.prod(shape)),))
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


@pytest.mark.parametrize("shape", [(5,), (1, 5)])
@pytest.mark.parametrize("name", slow_except(BASES, ("ball", "sldiscs_gibbs")))
def test_without_tilt_it_is_the_base_sampler(standin, name, shape):
    model, params = pairs(shape)
    base = base_sampler(name, shape, chains=7)
    x = model.get_init_samples(jax.random.PRNGKey(3), 7)
    plain, _ = play(base, model, params, x, 64)
    flat = localized_sampler(name, shape, Localization(K=8, tilt=False), 64, 7)
    localized, state = play(flat, model, params, x, 64)
    np.testing.assert_array_equal(plain, localized)
    assert int(state["steps"]) == 64 and int(state["num_ll_calls"]) > 0
    # So that the equality could fail; the law of the tilted chain is tested below.
    tilted = localized_sampler(name, shape, Localization(K=8, sigma=0.5), 64, 7)
    assert (play(tilted, model, params, x, 64)[0] != plain).any()


@pytest.mark.parametrize("name", slow_except(BASES, ("ball", "sldiscs_gibbs")))
def test_it_returns_the_law(standin, name):
    model, params = pairs((5,))
    chains, steps = 6_000, 128 * 12
    sampler = localized_sampler(name, (5,), FINE, steps, chains)
    _, state = play(sampler, model, params, jnp.zeros((chains, 5), jnp.int32), steps)
    states = all_states(5)
    weights = np.exp(np.asarray(model.forward(params, jnp.asarray(states, jnp.float32)), np.float64))
    law = Law(states, weights / weights.sum())
    assert total_variation(np.asarray(sampler.final_sample(state)), law) < 0.06
    assert np.isfinite(state["chains"].y).all() and (state["chains"].level == FINE.K - 1).all()


def test_a_sampler_that_goes_chain_by_chain_has_random_numbers_for_each(standin):
    """With a tilt it gets batches of one chain; equal chains with equal tilts must not stay equal."""
    model, params = pairs((5,))
    base, x, tilt = base_sampler("ball", (5,), 64), jnp.zeros((64, 5), jnp.int32), jnp.zeros((64, 5))
    state = base.make_init_state(jax.random.PRNGKey(0))
    new_x, after, _ = base.step(model, jax.random.PRNGKey(1), x, params, state, None, tilt)
    assert set(np.flatnonzero(np.asarray(new_x).any(axis=0))) == set(range(5))
    assert {key: leaf.shape for key, leaf in after.items()} == {key: leaf.shape for key, leaf in state.items()}


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


@pytest.mark.parametrize("name", ["onesite", "sldiscs_gibbs"])
def test_noise_is_drawn_in_a_branch_also_when_mapped_over_graphs(standin, name):
    """So that localization costs next to nothing in a step."""
    model, params = pairs((5,))
    sampler = localized_sampler(name, (5,), Localization(K=8), 64, 4)
    states = jax.vmap(sampler.make_init_state)(jax.random.split(jax.random.PRNGKey(0), 3))
    keys = jax.random.split(jax.random.PRNGKey(1), 3)
    step = jax.vmap(functools.partial(sampler.step, model=model))
    many = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), params)
    traced = jax.make_jaxpr(lambda rng, x, p, s: step(rng=rng, x=x, model_param=p, state=s))(
        keys, jnp.zeros((3, 4, 5), jnp.int32), many, states
    )
    normals = [branch for primitive, branch in _primitives(traced.jaxpr) if primitive == "sqrt"]
    assert len(normals) == 2 and all(normals)


@pytest.mark.parametrize("name", ["onesite", "sldiscs_gibbs"])
def test_observations_begin_with_the_first_key_and_levels_end_as_scheduled(standin, name):
    """The state is the same everywhere at first, as DISCS replicates it; the first step's key tells graphs apart."""
    model, params = pairs((5,))
    sampler = localized_sampler(name, (5,), Localization(K=4, n_min=2), 20, 2)
    state, x = sampler.make_init_state(jax.random.PRNGKey(0)), jnp.zeros((2, 5), jnp.int32)
    step = jax.jit(functools.partial(sampler.step, model))
    first = [np.asarray(step(jax.random.PRNGKey(k), x, params, state)[1]["chains"].y).ravel() for k in (1, 2)]
    assert len(np.unique(first)) == 20
    levels, moved = [], []
    for number in range(24):
        before = state["chains"].y
        x, state, _ = step(jax.random.PRNGKey(number), x, params, state)
        levels.append(int(jnp.max(state["chains"].level)))
        moved.append(bool(jnp.any(state["chains"].y != before)))
    last = Localization(K=4, n_min=2).levels(20).last
    assert levels == [min(int((last <= number).sum()), 3) for number in range(24)]
    assert [number for number in range(1, 24) if moved[number]] == list(last)


def test_a_batch_of_another_size_is_refused(standin):
    model, params = pairs((5,))
    sampler = localized_sampler("onesite", (5,), Localization(K=8), 64, 4)
    state = sampler.make_init_state(jax.random.PRNGKey(0))
    with pytest.raises(InputError, match=r"got states of shape \(3, 5\), but was built for \(4, 5\)"):
        sampler.step(model, jax.random.PRNGKey(0), jnp.zeros((3, 5), jnp.int32), params, state)


def test_dtypes_are_settled_before_the_first_step_and_a_broken_sampler_is_named(standin):
    state = base_sampler("onesite", (5,), 4).make_init_state(jax.random.PRNGKey(0))
    assert state["scale"].dtype == jnp.float32 and state["steps"].dtype == jnp.int32

    class Broken:
        def make_init_state(self, rng):
            return {"num_ll_calls": jnp.int32(0), "steps": jnp.int32(0)}

        def step(self, model, rng, x, model_param, state, x_mask=None):
            return jnp.zeros(3) + jnp.zeros(4), state, 1.0

    with pytest.raises(InputError, match="sampler 'broken' does not take states of 5 sites"):
        BaseSampler("broken", Broken(), States((5,)))
