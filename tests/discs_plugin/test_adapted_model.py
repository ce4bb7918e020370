"""What a base sampler sees: the tilt in all three methods, and each method from the others; with 2 and 3 values.

For two values, coordinates are states; for three, they are one-hot vectors.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sl_discs.discs_plugin.base_sampler import AdaptedModel, AdaptedParams, States
from sl_discs.models.sites import Categories, TwoValues
from sl_discs.testing.cases import states_of

SHAPE = (2, 2)
FORMS = {2: States(SHAPE), 3: States(SHAPE, 3)}
STATES = {q: jnp.asarray(states_of((q,) * 4).reshape(-1, *SHAPE), jnp.int32) for q in FORMS}
TILTS = {q: np.random.default_rng(q).normal(size=form.spin_shape).astype(np.float32) for q, form in FORMS.items()}
MATRIX = np.random.default_rng(0).normal(size=(12, 12)) * (1 - np.kron(np.eye(4), np.ones((3, 3))))
COUPLINGS = {2: (MATRIX + MATRIX.T)[::3, ::3], 3: MATRIX + MATRIX.T}


class Values:
    """Values alone, of states in integers or coordinates, linear in each site."""

    def __init__(self, form):
        self.form = form

    def forward(self, params, x):
        z = self.form.coordinates(x).reshape(x.shape[0], -1).astype(jnp.float32)
        return params * jnp.einsum("bi,ij,bj->b", z, COUPLINGS[self.form.num_values], z) / 2


class Gradients(Values):
    def get_value_and_grad(self, params, x):
        assert x.shape[1:] == self.form.spin_shape
        x = x.astype(jnp.float32)
        return self.forward(params, x), jax.grad(lambda z: jnp.sum(self.forward(params, z)))(x)


class FourRatios(Values):
    """As DISCS's MaxCut."""

    def logratio_in_neighborhood(self, params, x):
        value, grad = Gradients(self.form).get_value_and_grad(params, x)
        return value, self.form.gains(x, grad), 1, None


class ThreeRatios(Values):
    """As DISCS's MIS."""

    def logratio_in_neighborhood(self, params, x):
        return FourRatios(self.form).logratio_in_neighborhood(params, x)[1:]


class AbstractGradient(ThreeRatios):
    """As a model of DISCS that leaves the abstract method alone."""

    def get_value_and_grad(self, params, x):
        raise NotImplementedError


def value_of(q, x, tilt):
    return Values(FORMS[q]).forward(2.0, x) + jnp.sum((FORMS[q].spins(x) * tilt).reshape(len(x), -1), axis=1)


def exact_gains(q, tilt):
    """Of every entry of the coordinates: a flip of the site, or its change to the value."""
    value, gains = value_of(q, STATES[q], tilt), []
    for i, j in itertools.product(range(2), range(2)):
        for v in [None] if q == 2 else range(q):
            new = 1 - STATES[q][:, i, j] if v is None else v
            gains.append(value_of(q, STATES[q].at[:, i, j].set(new), tilt) - value)
    return jnp.stack(gains, axis=1).reshape(-1, *FORMS[q].spin_shape)


@pytest.mark.parametrize("q", FORMS)
@pytest.mark.parametrize("model", [Values, Gradients, FourRatios, ThreeRatios, AbstractGradient])
@pytest.mark.parametrize("tilted", [False, True])
def test_all_methods_agree_with_enumeration(q, model, tilted):
    form, states = FORMS[q], STATES[q]
    tilt = TILTS[q] if tilted else jnp.zeros(form.spin_shape)
    value, gains = value_of(q, states, tilt), exact_gains(q, tilt)
    origin = jnp.roll(states, 3, axis=0)
    params = AdaptedParams(2.0, jnp.broadcast_to(tilt, gains.shape), origin) if tilted else AdaptedParams(2.0)
    adapted = AdaptedModel(model(form), form)
    shift = jnp.sum((form.spins(origin) * tilt).reshape(len(states), -1), axis=1)
    z = form.coordinates(states)
    np.testing.assert_allclose(adapted.forward(params, states), value - shift, atol=1e-5)
    ratio_value, ratios, _, neighbor = adapted.logratio_in_neighborhood(params, z)
    np.testing.assert_allclose(ratio_value, value - shift, atol=1e-5)
    np.testing.assert_allclose(ratios, gains, atol=2e-5)
    place = 2 if q == 2 else 2 * q + 1
    wanted = 1 - states[:, 1, 0] if q == 2 else 1
    np.testing.assert_array_equal(neighbor(None, states, jnp.full(len(states), place))[:, 1, 0], wanted)
    grad_value, grad = adapted.get_value_and_grad(params, z)
    np.testing.assert_allclose(grad_value, value - shift, atol=1e-5)
    np.testing.assert_allclose(form.gains(z, grad), gains, atol=2e-5)


@pytest.mark.parametrize("q", FORMS)
def test_tagged_states_find_their_tilt(q):
    """Values of other states of some chains, in any number, use those chains' tilts."""
    form, chains = FORMS[q], 5
    x = STATES[q][-chains:]
    tilts = jnp.arange(chains * np.prod(form.spin_shape), dtype=jnp.float32).reshape(chains, *form.spin_shape)
    params = AdaptedParams(2.0, tilts, x)
    tagged = form.tag(x)
    np.testing.assert_array_equal(form.untag(tagged), x)
    neighbours = jnp.stack([tagged[3], tagged[3].at[0, 1].set((tagged[3, 0, 1] + 1) % q), tagged[1]])
    found = AdaptedModel(Values(form), form, tagged=True).forward(params, neighbours)
    own, states = jnp.array([3, 3, 1]), form.untag(neighbours)
    moved = (form.spins(states) - form.spins(x[own])) * tilts[own]
    wanted = Values(form).forward(2.0, states) + jnp.sum(moved.reshape(3, -1), axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert np.ptp(np.asarray(found)) > 1


@pytest.mark.parametrize("q", FORMS)
def test_masked_sites_do_not_count_and_are_never_proposed(q):
    form, mask = FORMS[q], jnp.array([[True, False], [True, True]])
    params = AdaptedParams(2.0, None, jnp.zeros_like(STATES[q]), mask)
    adapted, z = AdaptedModel(Gradients(form), form), form.coordinates(STATES[q])
    held = STATES[q].at[:, 0, 1].set(0)
    np.testing.assert_array_equal(adapted.forward(params, STATES[q]), Values(form).forward(2.0, held))
    value, grad = adapted.get_value_and_grad(params, z)
    held_value, held_grad = Gradients(form).get_value_and_grad(2.0, form.coordinates(held))
    np.testing.assert_array_equal(value, held_value)
    changes = form.gains(z, grad)[:, 0, 1]
    changes = changes if q == 2 else changes[z[:, 0, 1] == 0]
    assert changes.max() < -1e8
    np.testing.assert_array_equal(grad[:, 1], held_grad[:, 1])
    _, ratios, _, _ = adapted.logratio_in_neighborhood(params, z)
    assert ratios[:, 0, 1].max() < -1e8


@pytest.mark.parametrize("q", FORMS)
def test_states_get_the_models_shape_and_are_floats_on_request(q):
    class Picky(Values):
        def forward(self, params, x):
            assert x.shape[1:] == SHAPE and x.dtype == (jnp.float32 if q == 2 else jnp.int32)
            return super().forward(params, x)

    form, flat = States((4,), q), STATES[q].reshape(-1, 4)
    adapted = AdaptedModel(Picky(FORMS[q]), form, float_states=True, shape=SHAPE)
    np.testing.assert_array_equal(adapted.forward(AdaptedParams(2.0), flat), Values(FORMS[q]).forward(2.0, STATES[q]))
    if q == 2:  # the other model has no such ratios to evaluate on coordinates
        _, ratios, calls, _ = adapted.logratio_in_neighborhood(AdaptedParams(2.0), flat)
        assert ratios.shape == flat.shape and calls == 5


@pytest.mark.parametrize("q", [2, 3, 5])
def test_spins_and_gains_are_those_of_the_models_of_sl_discs(q):
    """So that a sampler of sl_discs and one of DISCS are localized in the same way."""
    form, sites = States((3,), q), Categories((q,) * 3) if q > 2 else TwoValues()
    x = states_of((q,) * 3)
    spins = jax.vmap(sites.spins)(jnp.asarray(x))
    np.testing.assert_allclose(form.spins(jnp.asarray(x, jnp.int32)), spins, atol=1e-6)
    np.testing.assert_array_equal(form.decode(form.spins(form.coordinates(jnp.asarray(x, jnp.int32)))), x)
    y = np.random.default_rng(0).normal(size=(50, *form.spin_shape)).astype(np.float32)
    np.testing.assert_array_equal(form.decode(jnp.asarray(y)), sites.decode(jnp.asarray(y)))
    gradients = jnp.asarray(np.random.default_rng(1).normal(size=(len(x), *form.spin_shape)), jnp.float32)
    gains = form.gains(form.coordinates(jnp.asarray(x, jnp.int32)), gradients)
    np.testing.assert_allclose(jax.vmap(sites.gains)(jnp.asarray(x), gradients), gains, atol=1e-6)
