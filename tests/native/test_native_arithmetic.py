"""Arithmetic and draws of the native loops against the reference's."""

import jax.numpy as jnp
import numpy as np
import pytest

from sl_discs import keys

numba = pytest.importorskip("numba", reason="the CPU engine needs numba: pip install 'sl_discs[cpu]'")

from sl_discs.native import arithmetic, weights  # noqa: E402 (needs numba)


@numba.njit(fastmath=arithmetic.FUSED)
def exponentials(x, out):
    for i in range(x.shape[0]):
        out[i] = arithmetic.exp_nonpositive(x[i])


def test_the_exponential_is_within_four_units_in_the_last_place():
    x = np.linspace(-80, 0, 200_001).astype(np.float32)
    out = np.empty_like(x)
    exponentials(x, out)
    exact = np.exp(x.astype(np.float64))
    assert np.max(np.abs(out - exact) / np.spacing(exact.astype(np.float32))) < 4
    assert out[-1] == 1


@pytest.mark.parametrize("values", [[-3.0, 2.0, -7.0], [-3.0, -2.5], [0.0, -0.0, -1e30], [5.0]], ids=str)
def test_largest(values):
    assert arithmetic.largest(np.array(values, np.float32)) == max(values)


def test_random_numbers_are_those_of_the_keys():
    key = np.array([123, 2**32 - 5], np.uint32)
    first, second = arithmetic.threefry(key[0], key[1], np.uint32(7), np.uint32(1))
    np.testing.assert_array_equal(keys.fold(jnp.asarray(key), 7), [first, second])
    out = np.empty(751, np.float32)
    arithmetic.normals(key[0], key[1], out)
    np.testing.assert_allclose(out, keys.normals(jnp.asarray(key), (751,)), atol=1e-4)


def test_weights_and_their_draws():
    """Every quantile of (0, 1)^2 leads to a site in proportion to its weight; masked sites are never drawn."""
    rng = np.random.default_rng(0)
    size = 96
    spins = rng.choice([-1.0, 1.0], size).astype(np.float32)
    coupled, tilt = rng.normal(size=(2, size)).astype(np.float32)
    linear = np.ones(size, np.float32)
    mask = (np.arange(size) < 90).astype(np.float32)
    found, sums = np.zeros(size, np.float32), np.zeros(3, np.float32)
    total = weights.set_weights(spins, coupled, linear, np.float32(-1.5), np.float32(0.7), tilt, mask, found, sums)
    logits = -spins * ((linear - 1.5 * coupled) * 0.7 + tilt)
    wanted = mask * np.exp(logits - logits[mask > 0].max())
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_allclose(sums, wanted.reshape(-1, 3).sum(axis=0), rtol=1e-5)
    assert total == pytest.approx(wanted.sum(), rel=1e-5)
    grid = (np.arange(300) + 0.5).astype(np.float32) / 300
    counts = np.zeros(size)
    for first in grid:
        for second in grid:
            counts[weights.draw(found, sums, total, first, second)] += 1
    np.testing.assert_allclose(counts / counts.sum(), wanted / wanted.sum(), atol=2e-3)
    assert counts[90:].sum() == 0
    heaviest = int(np.argmax(found))
    assert weights.take(found, sums, heaviest) == 1
    np.testing.assert_allclose(weights.total_of(sums), wanted.sum() - 1, rtol=1e-5)
