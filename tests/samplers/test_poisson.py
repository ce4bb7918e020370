"""Independent flips drawn as points: each site's probability, independence, and the two forms of a set of flips."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sl_discs import keys
from sl_discs.batching import over_chains
from sl_discs.reductions import sum_log1p_sites
from sl_discs.samplers.draws import in_blocks
from sl_discs.samplers.poisson import flips_of_odds, poisson_limit

DRAWS = 50_000


def draw_many(odds, max_points, draws=DRAWS):
    root = keys.from_seed(5)
    scale = jnp.float32(2)
    blocks = in_blocks(jnp.asarray(odds, jnp.float32) / scale)
    one = over_chains(lambda number: flips_of_odds(keys.fold(root, number), blocks, scale, len(odds), max_points))
    return jax.jit(one)(jnp.arange(draws))


# 2,100 sites are more blocks than are written out term by term.
@pytest.mark.parametrize(("num_sites", "total"), [(5, 0.5), (40, 3.0), (100, 30.0), (2_100, 3.0)])
def test_every_site_flips_with_its_probability(num_sites, total):
    """One z a site and one for the variance of their number; false-alarm rate 1e-6 in all, with this seed fixed."""
    odds = np.random.default_rng(0).gamma(0.5, size=num_sites)
    odds[num_sites // 2] = 0
    odds *= total / odds.sum()
    flips = draw_many(odds, poisson_limit(total))
    mask = np.asarray(flips.mask)
    expected = odds / (1 + odds)
    assert not mask[:, num_sites // 2].any()
    seen = expected * DRAWS > 10
    z = (mask.mean(axis=0) - expected)[seen] / np.sqrt((expected * (1 - expected))[seen] / DRAWS)
    # Rare flips are skewed: a bound twice as wide serves them.
    assert np.abs(z).max() < 2 * stats.norm.isf(1e-6 / (2 * num_sites))
    assert (z**2).sum() < stats.chi2.isf(1e-7, seen.sum()) * 1.1
    numbers = mask.sum(axis=1)
    variance = (expected * (1 - expected)).sum()
    assert abs(numbers.var() / variance - 1) < 8 * np.sqrt(3 / DRAWS)


def test_list_and_mask_name_the_same_sites():
    flips = draw_many(np.full(50, 0.2), poisson_limit(10.0), 2_000)
    for mask, sites, length, count in zip(*(np.asarray(leaf) for leaf in flips), strict=True):
        assert count == mask.sum()
        listed = sites[sites < 50]
        np.testing.assert_array_equal(np.sort(listed), np.flatnonzero(mask))
        assert (sites[length:] == 50).all() and (length == 0 or sites[length - 1] < 50)


def test_points_end_at_their_limit():
    mask = np.asarray(draw_many(np.full(64, 2.0), 16, 100).mask)
    assert mask.sum(axis=1).max() <= 16 and mask.any(axis=1).all()


@pytest.mark.parametrize("num_sites", [1, 31, 100, 5_000])
def test_sum_of_logarithms_is_that_of_products(num_sites):
    values = np.random.default_rng(1).exponential(size=num_sites).astype(np.float32)
    values[::3] = 1e-7
    values[0] = 1e9
    expected = np.log1p(values.astype(np.float64)).sum()
    scale = jnp.float32(0.5)
    for bound in (values.sum(), 1e30):
        followed = sum_log1p_sites(jnp.asarray(values) / scale, scale, bound)
        np.testing.assert_allclose(followed, expected, rtol=2e-6)
    tiny = np.full(num_sites, 1e-9, np.float32)
    followed = sum_log1p_sites(jnp.asarray(tiny), jnp.float32(1), 1.0)
    np.testing.assert_allclose(followed, num_sites * 1e-9, rtol=1e-5)


@pytest.mark.parametrize("total", [3.0, 80.0, 1e4])
def test_products_of_equal_factors_stay_within_float32(total):
    """The largest product of factors whose excesses have a given sum is that of equal ones."""
    values = jnp.full(1_500, total / 1_500, jnp.float32)
    followed = sum_log1p_sites(values, jnp.float32(1), total)
    np.testing.assert_allclose(followed, 1_500 * np.log1p(total / 1_500), rtol=1e-5)
