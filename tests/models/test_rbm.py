"""The two densities of a Boltzmann machine and its log Z agree with sums over all states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from sl_discs import InputError
from sl_discs.models import functions
from sl_discs.testing.cases import all_states

RNG = np.random.default_rng(0)
PARAMS = functions.RBMParams(*(RNG.normal(size=shape).astype(np.float32) for shape in ((5, 3), 5, 3)))


def values(density, size):
    return np.asarray(jax.vmap(density, (None, 0))(PARAMS, jnp.asarray(all_states(size), jnp.float32)), np.float64)


def test_the_joint_density_sums_to_the_marginal_one():
    joint = values(functions.joint_log_density, 8).reshape(2**3, 2**5)  # hidden units have the higher bits
    np.testing.assert_allclose(special.logsumexp(joint, axis=0), values(functions.log_density, 5), rtol=1e-5)


def test_log_z_by_either_side():
    exact = special.logsumexp(values(functions.log_density, 5))
    other = functions.RBMParams(PARAMS.weights.T, PARAMS.hidden, PARAMS.visible)
    np.testing.assert_allclose((functions.log_z(PARAMS), functions.log_z(other)), exact, rtol=1e-6)
    with pytest.raises(InputError, match=r"^params have 21 units"):
        functions.log_z(functions.RBMParams(np.zeros((21, 22)), np.zeros(21), np.zeros(22)))
