"""What a model makes of a quadratic form is worth what the form says, on every state."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.instances.form import FormValues, QuadraticForm
from sl_discs.models.terms import form_coefficients, form_of_spins, from_spin, spin_form, to_spin


@st.composite
def forms(draw):
    """Terms that repeat, stand in both directions and on the diagonal; quarters, so that sums are
    exact.

    Half of the forms couple every two variables equally, beside the other terms.
    """
    size = draw(st.integers(1, 5))
    number = st.integers(-40, 40).map(lambda quarters: quarters / 4)
    pairs = draw(
        st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=12)
    )
    couplings = draw(st.lists(number, min_size=len(pairs), max_size=len(pairs)))
    if draw(st.booleans()):
        everywhere = list(itertools.combinations(range(size), 2))
        pairs, couplings = pairs + everywhere, couplings + [draw(number)] * len(everywhere)
    linear = draw(st.lists(number, min_size=size, max_size=size))
    spins, maximise = draw(st.booleans()), draw(st.booleans())
    pairs = np.array(pairs, np.int64).reshape(-1, 2)
    return QuadraticForm.from_arrays(
        "form", linear, pairs, couplings, draw(number), spins=spins, maximise=maximise
    )


@settings(deadline=None)
@given(forms())
def test_value_and_model_agree_with_the_definition(form):
    terms = form_coefficients(form)
    assert (terms.edges[:, 0] < terms.edges[:, 1]).all() and (terms.weights != 0).all()
    sign, values = 1 if form.maximise else -1, FormValues(form)
    for x in itertools.product((0, 1), repeat=form.num_variables):
        v = [2 * bit - 1 if form.spins else bit for bit in x]
        value = form.offset + sum(c * one for c, one in zip(form.linear, v, strict=True))
        for (a, b), coupling in zip(form.pairs, form.couplings, strict=True):
            value += coupling * v[a] * v[b]
        assert values(np.array([x]))[0] == value
        assert terms.values(np.array([x], np.int8))[0] == sign * value


@settings(deadline=None)
@given(forms())
def test_spins_and_zeros_and_ones_have_equal_values(form):
    """With and without a background, at a temperature, and back."""
    states = np.array([*itertools.product((0, 1), repeat=form.num_variables)], np.int8)
    spins, sign, terms = 2.0 * states - 1, 1 if form.maximise else -1, form_coefficients(form)
    values = sign * FormValues(form)(states)
    for spin, temperature in (
        (spin_form(form), 1.0),
        (to_spin(terms), 1.0),
        (to_spin(terms, 0.25), 0.25),
    ):
        assert not spin.matrix().diagonal().any()
        np.testing.assert_array_equal(spin.matrix() @ spins.T, spin.times(spins.T))
        found = (
            spin.constant
            + spins @ spin.fields
            + np.einsum("sn,ns->s", spins, spin.times(spins.T)) / 2
        )
        np.testing.assert_array_equal(temperature * found, values)
        np.testing.assert_array_equal(temperature * from_spin(spin).values(states), values)
    again = form_of_spins(spin_form(form), like=form)
    assert (again.spins, again.maximise) == (form.spins, form.maximise)
    assert (sign * FormValues(again)(states)).tolist() == values.tolist()


def test_an_equal_coupling_of_all_is_a_background():
    """Of which no list is made, as of a penalty on a number of variables; one more coupling stands
    beside it.
    """
    pairs = np.array([*itertools.combinations(range(6), 2), (1, 4)])
    terms = form_coefficients(
        QuadraticForm.from_arrays("form", np.zeros(6), pairs, np.full(16, 1.5))
    )
    assert (terms.background, terms.edges.tolist(), terms.weights.tolist()) == (
        -1.5,
        [[1, 4]],
        [-3.0],
    )


@pytest.mark.parametrize("spread", [0, 60, 2_000])
@pytest.mark.parametrize("spins", [False, True])
def test_values_of_many_terms_are_rounded_once(spread, spins):
    """Numbers over up to 2,000 binary orders of magnitude, in pairs that repeat, turn round and
    meet themselves.
    """
    rng = np.random.default_rng(spread)
    numbers = np.ldexp(rng.normal(size=1_230), rng.integers(-spread // 2, spread // 2 + 1, 1_230))
    pairs = rng.integers(0, 30, (1_200, 2))
    form = QuadraticForm.from_arrays("form", numbers[:30], pairs, numbers[30:], 1e9, spins=spins)
    states = rng.integers(0, 2, (11, 30))
    for state, value in zip(
        2 * states - 1 if spins else states, FormValues(form)(states), strict=True
    ):
        products = form.couplings * state[pairs[:, 0]] * state[pairs[:, 1]]
        assert value == math.fsum([1e9, *form.linear * state, *products])
