"""The adapter for models of DISCS, against values enumerated for every kind of model, with 2 and 3
values.

For two values, coordinates are states; for three, they are one-hot vectors.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sl_discs.discs_plugin.upstream import AdaptedModel, AdaptedParams, States
from sl_discs.testing.conformance import states_of

SHAPE = (2, 2)
FORMS = {2: States(SHAPE), 3: States(SHAPE, 3)}
STATES = {q: jnp.asarray(states_of((q,) * 4), jnp.int32) for q in FORMS}
TILTS = {
    q: np.random.default_rng(q).normal(size=form.spin_shape).astype(np.float32)
    for q, form in FORMS.items()
}
MATRIX = np.random.default_rng(0).normal(size=(12, 12)) * (1 - np.kron(np.eye(4), np.ones((3, 3))))
COUPLINGS = {2: (MATRIX + MATRIX.T)[::3, ::3], 3: MATRIX + MATRIX.T}


class Values:
    """Values alone, of states [B, 2, 2] in integers or coordinates, linear in each site."""

    def __init__(self, form):
        self.form = form

    def forward(self, params, x):
        q = self.form.num_values
        assert x.shape[1:3] == SHAPE
        z = jax.nn.one_hot(x, q) if q > 2 and x.ndim == 3 else x
        z = z.reshape(x.shape[0], -1).astype(jnp.float32)
        return params * jnp.einsum("bi,ij,bj->b", z, COUPLINGS[q], z) / 2


class Gradients(Values):
    def get_value_and_grad(self, params, x):
        x = x.astype(jnp.float32)
        return self.forward(params, x), jax.grad(lambda z: jnp.sum(self.forward(params, z)))(x)


class FourRatios(Values):
    """As DISCS's MaxCut."""

    def logratio_in_neighborhood(self, params, x):
        value, grad = Gradients(self.form).get_value_and_grad(params, x)
        own = jnp.sum(grad * x, axis=-1, keepdims=True)
        return value, (1 - 2 * x) * grad if self.form.num_values == 2 else grad - own, 1, None


class ThreeRatios(Values):
    """As DISCS's MIS, and as a model of DISCS that leaves the abstract method alone."""

    def logratio_in_neighborhood(self, params, x):
        return FourRatios(self.form).logratio_in_neighborhood(params, x)[1:]

    def get_value_and_grad(self, params, x):
        raise NotImplementedError


def tilted_part(q, x, tilt):
    return jnp.sum(
        (jax.vmap(FORMS[q].sites.spins)(x.astype(jnp.int8)) * tilt).reshape(len(x), -1), axis=1
    )


def value_of(q, x, tilt):
    return Values(FORMS[q]).forward(2.0, x.reshape(-1, *SHAPE)) + tilted_part(q, x, tilt)


def exact_gains(q, tilt):
    """Of every entry of the coordinates: a flip of the site, or its change to the value."""
    value, gains = value_of(q, STATES[q], tilt), []
    for site in range(4):
        for v in [None] if q == 2 else range(q):
            new = 1 - STATES[q][:, site] if v is None else v
            gains.append(value_of(q, STATES[q].at[:, site].set(new), tilt) - value)
    return jnp.stack(gains, axis=1).reshape(-1, *FORMS[q].spin_shape)


def gains_of(form, x, grad):
    return jax.vmap(form.sites.gains)(x.astype(jnp.int8), grad)


@pytest.mark.parametrize("q", FORMS)
@pytest.mark.parametrize("model", [Values, Gradients, FourRatios, ThreeRatios])
@pytest.mark.parametrize("tilted", [False, True])
def test_all_methods_agree_with_enumeration(q, model, tilted):
    form, states = FORMS[q], STATES[q]
    tilt = TILTS[q] if tilted else jnp.zeros(form.spin_shape)
    value, gains = value_of(q, states, tilt), exact_gains(q, tilt)
    origin = jnp.roll(states, 3, axis=0)
    params = (
        AdaptedParams(2.0, jnp.broadcast_to(tilt, gains.shape), origin)
        if tilted
        else AdaptedParams(2.0)
    )
    adapted = AdaptedModel(model(form), form)
    value, z = value - tilted_part(q, origin, tilt), form.coordinates(states)
    np.testing.assert_allclose(adapted.forward(params, states), value, atol=2e-5)
    ratio_value, ratios, _, neighbor = adapted.logratio_in_neighborhood(params, z)
    np.testing.assert_allclose(ratio_value, value, atol=2e-5)
    np.testing.assert_allclose(ratios, gains, atol=2e-5)
    place, wanted = (2, 1 - states[:, 2]) if q == 2 else (2 * q + 1, 1)
    np.testing.assert_array_equal(
        neighbor(None, states, jnp.full(len(states), place))[:, 2], wanted
    )
    grad_value, grad = adapted.get_value_and_grad(params, z)
    np.testing.assert_allclose(grad_value, value, atol=2e-5)
    np.testing.assert_allclose(gains_of(form, states, grad), gains, atol=2e-5)


@pytest.mark.parametrize("q", FORMS)
def test_masked_sites_do_not_count_and_are_never_proposed(q):
    form, states = FORMS[q], STATES[q]
    params = AdaptedParams(2.0, None, jnp.zeros_like(states), jnp.array([True, False, True, True]))
    adapted = AdaptedModel(Gradients(form), form)
    z = form.coordinates(states)
    held = states.at[:, 1].set(0)
    np.testing.assert_array_equal(adapted.forward(params, states), value_of(q, held, 0.0))
    value, grad = adapted.get_value_and_grad(params, z)
    plain = AdaptedModel(Gradients(form), form).get_value_and_grad(
        AdaptedParams(2.0), form.coordinates(held)
    )
    np.testing.assert_array_equal(value, plain[0])
    np.testing.assert_array_equal(grad[:, 2:], plain[1][:, 2:])
    others = np.ones(z.shape, bool) if q == 2 else np.asarray(z == 0)
    for gains in (gains_of(form, states, grad), adapted.logratio_in_neighborhood(params, z)[1]):
        assert gains[:, 1][others[:, 1]].max() < -1e8


def test_models_of_two_values_are_given_floats_on_request():
    class Picky(Values):
        def forward(self, params, x):
            assert x.dtype == jnp.float32
            return super().forward(params, x)

    adapted = AdaptedModel(Picky(FORMS[2]), FORMS[2], as_floats=True)
    np.testing.assert_array_equal(
        adapted.forward(AdaptedParams(2.0), STATES[2]), value_of(2, STATES[2], 0.0)
    )
    assert (
        adapted.logratio_in_neighborhood(AdaptedParams(2.0), STATES[2])[2] == 5
    )  # all neighbours are evaluated
