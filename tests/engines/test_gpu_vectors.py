"""Draws and random numbers of the fused kernel, against the weights and the keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sl_discs import keys
from sl_discs.engines.gpu import vectors


@pytest.mark.parametrize("num_sites", [1, 6, 7, 16])
def test_random_numbers_are_those_of_the_keys(num_sites):
    key = jnp.array([123, 2**32 - 5], jnp.uint32)
    np.testing.assert_array_equal(
        vectors.uniforms((key[0], key[1]), num_sites, 16)[:num_sites], keys.uniforms(key, (num_sites,))
    )
    np.testing.assert_array_equal(jnp.stack(keys.fold_words((key[0], key[1]), 7)), keys.fold(key, 7))


def test_every_quantile_leads_to_a_site_in_proportion_to_its_weight():
    weights = jnp.array([0, 3, 0, 1e-30, 0.5, 0, 0.25, 0], jnp.float32)
    quantiles = (jnp.arange(30_000, dtype=jnp.float32) + 0.5) / 30_000
    draw = jax.vmap(lambda u: vectors.draw_site(u, weights, jnp.cumsum(weights), jnp.sum(weights)))
    counts = np.bincount(draw(quantiles), minlength=8)
    np.testing.assert_allclose(counts / counts.sum(), weights / weights.sum(), atol=1e-4)
    assert counts[weights == 0].sum() == 0


def test_rounding_never_leads_to_a_site_without_weight():
    """Prefix sums of a tree may stay below the total, or fall."""
    weights = jnp.array([0, 1, 0, 1, 0, 0], jnp.float32)
    short = jnp.array([0, 0.9, 0.8, 1.9, 1.95, 1.9], jnp.float32)
    for quantile, site in ((0, 1), (0.44, 1), (0.46, 3), (0.96, 3), (0.999, 3)):
        assert vectors.draw_site(jnp.float32(quantile), weights, short, jnp.float32(2)) == site
    assert vectors.draw_site(jnp.float32(0.5), 0 * weights, 0 * weights, jnp.float32(0)) == 0
