"""Draws of sites: their law, and the probabilities that they report."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sl_discs import keys
from sl_discs.samplers.draws import draw_sites, log_prob_reversed, sites_of_mask, softmax_weights


def many_keys(count, seed=0):
    return jax.vmap(keys.fold, (None, 0))(keys.from_seed(seed), jnp.arange(count))


def sequence_probability(weights, sequence, replacement):
    left, probability = weights.astype(float).copy(), 1.0
    for site in sequence:
        probability *= left[site] / left.sum()
        if not replacement:
            left[site] = 0
    return probability


@pytest.mark.parametrize("num_sites", [5, 70, 3000])
def test_single_draws_follow_the_weights(num_sites):
    """Chi-squared over 200,000 draws; false-alarm rate 1e-6 with this seed fixed. 3000 sites: 94 blocks."""
    rng = np.random.default_rng(num_sites)
    logits = jnp.asarray(rng.normal(size=num_sites) * 2, jnp.float32)
    mask = jnp.asarray(rng.random(num_sites) < 0.8)
    weights = softmax_weights(logits, mask)
    draw = jax.vmap(lambda key: draw_sites(key, weights, num_sites, 1, replacement=True).sequence[0])
    sites = np.asarray(jax.jit(draw)(many_keys(200_000)))
    expected = np.where(mask, np.exp(np.asarray(logits, float)), 0)
    expected *= len(sites) / expected.sum()
    counts = np.bincount(sites, minlength=num_sites)
    assert not counts[~np.asarray(mask)].any()
    often = expected >= 5
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2.sf(statistic, often.sum() - 1) > 1e-6


@pytest.mark.parametrize("replacement", [False, True])
def test_sequences_have_the_probability_they_report(replacement):
    rng = np.random.default_rng(1)
    logits = jnp.asarray(rng.normal(size=40) * 3, jnp.float32)
    mask = jnp.arange(40) != 7
    weights = softmax_weights(logits, mask)
    plain = np.where(mask, np.exp(np.asarray(logits, float)), 0)
    draw = jax.jit(lambda key: draw_sites(key, weights, 40, 6, replacement=replacement))
    for key in many_keys(20, seed=2):
        drawn = draw(key)
        sequence = np.asarray(drawn.sequence[:6])
        assert (np.asarray(drawn.sequence[6:]) == 40).all()
        expected = np.log(sequence_probability(plain, sequence, replacement))
        np.testing.assert_allclose(drawn.log_prob, expected, rtol=1e-4)
        backwards = np.log(sequence_probability(plain, sequence[::-1], replacement))
        np.testing.assert_allclose(log_prob_reversed(weights, drawn, replacement=replacement), backwards, rtol=1e-4)
        beside = log_prob_reversed(weights, drawn, replacement=replacement, beside=lambda site: site + 1.0)
        np.testing.assert_allclose(beside, backwards + sum(set(sequence)) + len(set(sequence)), rtol=1e-4)
        assert set(np.flatnonzero(drawn.flips.mask)) == set(sequence)
        distinct = np.asarray(drawn.flips.sites)
        assert sorted(distinct[distinct < 40]) == sorted(set(sequence))


def test_dominant_sites_leave_the_others_their_probability():
    """Two sites outweigh the rest by e^70: float32 sums of all weights cannot see the rest, the draws must."""
    logits = jnp.concatenate([jnp.array([70.0, 69.0]), jnp.linspace(0, 2, 30)])
    weights = softmax_weights(logits, jnp.ones(32, bool))
    drawn = draw_sites(keys.from_seed(0), weights, 32, 4, replacement=False)
    plain = np.exp(np.asarray(logits, float))
    expected = np.log(sequence_probability(plain, np.asarray(drawn.sequence[:4]), False))
    np.testing.assert_allclose(drawn.log_prob, expected, rtol=1e-4)
    assert set(np.asarray(drawn.sequence[:2])) == {0, 1}


def test_enormous_logits_stay_finite():
    logits = jnp.array([5000.0, -5000.0, 4999.0, 0.0])
    weights = softmax_weights(logits, jnp.ones(4, bool))
    drawn = draw_sites(keys.from_seed(1), weights, 4, 4, replacement=False)
    assert np.isfinite(drawn.log_prob) and sorted(np.asarray(drawn.sequence[:4])) == [0, 1, 2, 3]


def test_lengths_may_differ_between_chains():
    weights = softmax_weights(jnp.zeros(50), jnp.ones(50, bool))
    lengths = jnp.arange(1, 41)

    def draw(key, length):
        return draw_sites(key, weights, 50, length, replacement=False)

    drawn = jax.vmap(draw)(many_keys(40), lengths)
    np.testing.assert_array_equal(drawn.flips.mask.sum(axis=1), lengths)
    np.testing.assert_array_equal((drawn.sequence < 50).sum(axis=1), lengths)


def test_sites_of_a_mask():
    mask = jax.random.bernoulli(jax.random.key(0), 0.3, (10, 77))
    flips = jax.vmap(sites_of_mask)(mask)
    for row, sites in zip(np.asarray(mask), np.asarray(flips.sites), strict=True):
        np.testing.assert_array_equal(sites[sites < 77], np.flatnonzero(row))
