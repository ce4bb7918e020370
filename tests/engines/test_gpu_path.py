"""Probabilities of a path, which the laws do not pin down: drawn back in another order it would be as exact."""

import jax.numpy as jnp
import numpy as np

from sl_discs.engines.gpu import path
from sl_discs.engines.gpu.target import softmax


def test_the_reverse_path_draws_the_last_site_first():
    weights = softmax(jnp.log(jnp.array([4.0, 1.0, 2.0, 3.0])), jnp.ones(4, bool))
    assert np.allclose(weights.total, 10 / 4)
    # Site 2 was drawn first, then 3, then 0.
    drawn = path.Path(jnp.array([1, 0, 1, 1], bool), jnp.zeros(4), jnp.array([2, -1, 0, 1]), jnp.float32(0))
    found = path._log_mass_reversed(weights, drawn, 3)
    np.testing.assert_allclose(found, np.log(np.array([10, 6, 3]) / 4).sum(), rtol=1e-6)


def test_weights_are_floored_and_zero_outside_the_mask():
    weights = softmax(jnp.array([200.0, -1000.0, 500.0]), jnp.array([True, True, False]))
    np.testing.assert_allclose(weights.weights, np.exp([0, -80, -np.inf]), rtol=1e-5)
