"""Elementary functions and random numbers of the native loops against NumPy's and the reference's."""

import jax.numpy as jnp
import numba
import numpy as np

from sl_discs import keys
from sl_discs.engines.cpu import arithmetic
from sl_discs.engines.cpu.jit import from_python


def over(function):
    @numba.njit
    def loop(x, out):
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    def apply(x):
        x = np.asarray(x, np.float32)
        out = np.empty_like(x)
        loop(x, out)
        return out

    return apply


def test_the_exponential_is_within_four_units_in_the_last_place():
    x = np.linspace(-125, 125, 200_001).astype(np.float32)
    exact = np.exp2(x.astype(np.float64))
    assert np.max(np.abs(over(arithmetic.exp2)(x) - exact) / np.spacing(exact.astype(np.float32))) < 4
    assert over(arithmetic.exp_nonpositive)([-1e9, -86.7, -0.0]).tolist() == [0, 0, 1]
    np.testing.assert_allclose(over(arithmetic.exp_nonpositive)(-x[x > 0] / 2), np.exp(-x[x > 0] / 2.0), rtol=1e-5)


def test_the_logarithm():
    x = np.exp(np.linspace(-80, 80, 100_001)).astype(np.float32)
    np.testing.assert_allclose(over(arithmetic.log)(x), np.log(x.astype(np.float64)), rtol=3e-7, atol=1e-7)
    near = 1 + np.linspace(-0.3, 0.4, 10_001).astype(np.float32)
    np.testing.assert_allclose(over(arithmetic.log)(near), np.log(near.astype(np.float64)), rtol=1e-6, atol=1e-9)


def test_random_numbers_are_those_of_the_keys():
    key = np.array([123, 2**32 - 5], np.uint32)
    first, second = from_python(arithmetic.threefry)(key[0], key[1], np.uint32(7), np.uint32(1))
    np.testing.assert_array_equal(keys.fold(jnp.asarray(key), 7), [first, second])
    uniforms = np.empty(752, np.float32)
    from_python(arithmetic.fill_uniforms)(key[0], key[1], uniforms)
    normal_pair = from_python(arithmetic.normal_pair)
    pairs = [normal_pair(*pair) for pair in uniforms.reshape(2, -1).T]
    np.testing.assert_allclose(np.transpose(pairs).ravel(), keys.normals(jnp.asarray(key), (752,)), atol=1e-4)
