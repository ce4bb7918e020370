"""The Ising lattice: its function of the spins, the law of its field, and its random stream."""

import itertools

import numpy as np
import pytest

from sl_discs.errors import InputError
from sl_discs.instances.generators import IsingLattice
from sl_discs.problems.kind import KINDS


def test_the_model_is_the_sum_over_bonds_and_fields():
    """f of every state of 2 x 3 spins, bond by bond; the lattice does not wrap round."""
    form = IsingLattice((2, 3), 0.7, 0.5, 1.5).draw(3, 1)
    terms = KINDS["ising"].terms(form)
    couplings = np.zeros((6, 6))
    couplings[tuple(terms.edges.T)] = terms.scale * terms.weights
    bonds = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    for x in itertools.product((0, 1), repeat=6):
        x = np.array(x)
        s = 2 * x - 1
        expected = 0.7 * sum(s[i] * s[j] for i, j in bonds) + form.linear @ s
        assert form.value(x) == pytest.approx(expected)
        assert terms.constant + terms.linear @ x + x @ couplings @ x == pytest.approx(expected)


def test_the_field_is_uniform_around_the_disc():
    lattice = IsingLattice((60, 40), mu=0.5, init_sigma=0.0)
    field = -lattice.draw(0, 0).linear.reshape(60, 40)
    for i, j in itertools.product(range(60), range(40)):
        inside = (i / 60 - 0.5) ** 2 + (j / 40 - 0.5) ** 2 < 0.5 / np.pi
        assert field[i, j] == (0.5 if inside else -0.5)
    assert abs(np.mean(field > 0) - 0.5) < 0.01  # half of the lattice
    random = IsingLattice((60, 40), mu=0.0, init_sigma=1.5).draw(0, 0).linear
    assert (
        np.abs(random).max() < 1.5 and abs(random.mean()) < 0.06 and random.std() == pytest.approx(1.5 / 3**0.5, 0.03)
    )


def test_a_field_is_a_function_of_seed_shape_and_number():
    lattice = IsingLattice((3, 3))
    field = lattice.draw(0, 0).linear
    np.testing.assert_allclose(field[:3], [0.9875381690892672, -0.0349281216237487, 1.3155798276160553], rtol=1e-12)
    assert (IsingLattice((3, 3), lambdaa=0.1).draw(0, 0).linear == field).all()
    for other in (lattice.draw(1, 0), lattice.draw(0, 1)):
        assert (other.linear != field).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shape": (5,)}, r"shape is \(5,\)"),
        ({"shape": (5, 0)}, "a side of model_config.shape is 0"),
        ({"shape": (10**6, 10**6)}, "would take about"),
        ({"lambdaa": float("nan")}, "model_config.lambdaa is nan"),
        ({"lambdaa": -1e300}, "model_config.lambdaa is -1e\\+300; expected at most 1e\\+30"),
        ({"mu": "much"}, "model_config.mu is 'much'"),
    ],
)
def test_what_is_no_lattice_is_refused(fields, message):
    with pytest.raises(InputError, match=message):
        IsingLattice(**fields).draw(0, 0)
