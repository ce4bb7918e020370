"""What a base sampler sees: the tilt in all three methods, and each method from the others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sl_discs.discs_plugin.adapted_model import AdaptedModel, AdaptedParams, flip_site, tag, untag
from sl_discs.testing.enumeration import all_states

SHAPE = (2, 2)
STATES = jnp.asarray(all_states(4).reshape(-1, *SHAPE), jnp.int32)
TILT = jnp.array([[0.5, -1.0], [0.25, 2.0]])
COUPLING = jnp.array([[0.0, 1.0, -0.5, 0.0], [1.0, 0.0, 0.0, 2.0], [-0.5, 0.0, 0.0, 0.3], [0.0, 2.0, 0.3, 0.0]])


class Values:
    """Values alone."""

    def forward(self, params, x):
        flat = x.reshape(x.shape[0], -1).astype(jnp.float32)
        return params * jnp.einsum("bi,ij,bj->b", flat, COUPLING, flat) / 2


class Gradients(Values):
    def get_value_and_grad(self, params, x):
        x = x.astype(jnp.float32)
        return self.forward(params, x), jax.grad(lambda z: jnp.sum(self.forward(params, z)))(x)


class FourRatios(Values):
    """As DISCS's MaxCut."""

    def logratio_in_neighborhood(self, params, x):
        value, grad = Gradients().get_value_and_grad(params, x)
        return value, (1 - 2 * x) * grad, 1, None


class ThreeRatios(Values):
    """As DISCS's MIS."""

    def logratio_in_neighborhood(self, params, x):
        return FourRatios().logratio_in_neighborhood(params, x)[1:]


class AbstractGradient(ThreeRatios):
    """As a model of DISCS that leaves the abstract method alone."""

    def get_value_and_grad(self, params, x):
        raise NotImplementedError


def expected(tilt):
    """Values and exact gains of all states."""
    spins = 2 * STATES - 1
    value = Values().forward(2.0, STATES) + jnp.sum(spins * tilt, axis=(1, 2))
    flipped = [
        (value_of(flip_site(None, STATES, jnp.full(len(STATES), site)), tilt) - value).reshape(-1)
        for site in range(4)
    ]
    return value, jnp.stack(flipped, axis=1).reshape(STATES.shape)


def value_of(x, tilt):
    return Values().forward(2.0, x) + jnp.sum((2 * x - 1) * tilt, axis=(1, 2))


@pytest.mark.parametrize("model", [Values, Gradients, FourRatios, ThreeRatios, AbstractGradient])
@pytest.mark.parametrize("tilted", [False, True])
def test_all_methods_agree_with_enumeration(model, tilted):
    tilt = TILT if tilted else jnp.zeros(SHAPE)
    value, gains = expected(tilt)
    origin = jnp.roll(STATES, 3, axis=0)
    tilts = jnp.broadcast_to(tilt, STATES.shape)
    params = AdaptedParams(2.0, tilts, origin) if tilted else AdaptedParams(2.0)
    adapted = AdaptedModel(model())
    shift = jnp.sum((2 * origin - 1) * tilt, axis=(1, 2))
    np.testing.assert_allclose(adapted.forward(params, STATES), value - shift, atol=1e-5)
    ratio_value, ratios, _, neighbor = adapted.logratio_in_neighborhood(params, STATES)
    np.testing.assert_allclose(ratio_value, value - shift, atol=1e-5)
    np.testing.assert_allclose(ratios, gains, atol=1e-5)
    np.testing.assert_array_equal(neighbor(None, STATES, jnp.full(len(STATES), 2))[:, 1, 0], 1 - STATES[:, 1, 0])
    grad_value, grad = adapted.get_value_and_grad(params, STATES)
    np.testing.assert_allclose(grad_value, value - shift, atol=1e-5)
    np.testing.assert_allclose((1 - 2 * STATES) * grad, gains, atol=1e-5)


def test_tagged_states_find_their_tilt():
    """Values of other states of some chains, in any number, use those chains' tilts."""
    chains = 5
    x = STATES[:chains]
    tilts = jnp.arange(chains * 4, dtype=jnp.float32).reshape(chains, *SHAPE)
    params = AdaptedParams(2.0, tilts, x)
    tagged = tag(x)
    np.testing.assert_array_equal(untag(tagged), x)
    neighbours = jnp.stack([tagged[3], tagged[3].at[0, 1].set((tagged[3, 0, 1] + 1) % 2), tagged[1]])
    found = AdaptedModel(Values(), tagged=True).forward(params, neighbours)
    origin = x[jnp.array([3, 3, 1])]
    tilt = tilts[jnp.array([3, 3, 1])]
    wanted = Values().forward(2.0, neighbours & 1) + 2 * jnp.sum(((neighbours & 1) - origin) * tilt, axis=(1, 2))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_masked_sites_do_not_count_and_are_never_proposed():
    mask = jnp.array([[True, False], [True, True]])
    origin = jnp.zeros_like(STATES)
    params = AdaptedParams(2.0, None, origin, mask)
    adapted = AdaptedModel(Gradients())
    held = STATES.at[:, 0, 1].set(0)
    np.testing.assert_array_equal(adapted.forward(params, STATES), Values().forward(2.0, held))
    _, grad = adapted.get_value_and_grad(params, STATES)
    assert ((1 - 2 * STATES) * grad)[:, 0, 1].max() < -1e8
    np.testing.assert_array_equal(grad[:, 1], Gradients().get_value_and_grad(2.0, held)[1][:, 1])
    _, ratios, _, _ = adapted.logratio_in_neighborhood(params, STATES)
    assert ratios[:, 0, 1].max() < -1e8


def test_states_are_floats_on_request_and_get_the_models_shape():
    class Picky(Values):
        def forward(self, params, x):
            assert x.dtype == jnp.float32 and x.shape[1:] == SHAPE
            return super().forward(params, x)

    flat = STATES.reshape(-1, 4)
    adapted = AdaptedModel(Picky(), float_states=True, shape=SHAPE)
    np.testing.assert_array_equal(adapted.forward(AdaptedParams(2.0), flat), Values().forward(2.0, STATES))
    _, ratios, calls, _ = adapted.logratio_in_neighborhood(AdaptedParams(2.0), flat)
    assert ratios.shape == flat.shape and calls == 5
