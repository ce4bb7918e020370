"""Draws of sites: their law, and the probabilities that they report."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chains import FALSE_ALARM
from marks import slow_except

from sl_discs.models import batching, keys
from sl_discs.models.batching import over_chains
from sl_discs.samplers.draws import (
    draw_site,
    draw_sites,
    invert_cdf,
    log_probability,
    softmax_weights,
)
from sl_discs.testing.conformance import chi_squared


def many_keys(count, seed=0):
    return jax.vmap(keys.fold, (None, 0))(keys.from_rng(jax.random.key(seed)), jnp.arange(count))


def sequence_probability(weights, sequence, replacement):
    left, probability = weights.astype(float).copy(), 1.0
    for site in sequence:
        probability *= left[site] / left.sum()
        if not replacement:
            left[site] = 0
    return probability


def both_ways(weights, drawn, replacement):
    return [
        log_probability(weights, drawn, replacement=replacement, backwards=backwards)
        for backwards in (False, True)
    ]


def assert_drawn_by(counts, law):
    """Chi-squared; what has no probability is never drawn."""
    assert not counts[law == 0].any()
    expected = law * (counts.sum() / law.sum())
    assert chi_squared(counts[law > 0], expected[law > 0])[1] > FALSE_ALARM


@pytest.mark.parametrize("num_sites", slow_except([5, 70, 3000], [70]))
def test_single_draws_follow_the_weights(num_sites):
    rng = np.random.default_rng(num_sites)
    logits = jnp.asarray(rng.normal(size=num_sites) * 2, jnp.float32)
    mask = jnp.asarray(rng.random(num_sites) < 0.8)
    weights = softmax_weights(logits, mask)
    sites = jax.jit(jax.vmap(lambda key: draw_site(key, weights)))(many_keys(200_000))
    law = np.where(mask, np.exp(np.asarray(logits, float)), 0)
    assert_drawn_by(np.bincount(sites, minlength=num_sites), law)


@pytest.mark.parametrize("replacement", [False, True])
def test_sequences_follow_the_weights(replacement):
    """3 of 5 sites in order, one masked."""
    mask = jnp.arange(5) != 2
    weights = softmax_weights(jnp.array([0.5, -2.0, 3.0, 1.0, 0.0]), mask)
    draw = jax.vmap(
        lambda key: draw_sites(key, weights, jnp.int32(3), 5, replacement=replacement).sites[:3]
    )
    found = np.asarray(jax.jit(draw)(many_keys(200_000, seed=4)))
    law = [
        sequence_probability(np.asarray(weights), sequence, replacement)
        for sequence in itertools.product(range(5), repeat=3)
    ]
    assert_drawn_by(np.bincount(found @ [25, 5, 1], minlength=125), np.array(law))


@pytest.mark.parametrize("replacement", [False, True])
def test_draws_do_not_depend_on_how_many_a_turn_makes(replacement, monkeypatch):
    """On GPUs a single turn makes all of them."""
    weights = softmax_weights(jnp.linspace(-2, 2, 50), jnp.arange(50) % 7 > 0)
    lengths = jnp.array([1, 2, 8, 9, 30, 17, 16, 40])

    def draw(key, length):
        drawn = draw_sites(key, weights, length, 50, replacement=replacement)
        return drawn.sites[:50], drawn.flips, both_ways(weights, drawn, replacement)

    in_turns = jax.jit(over_chains(draw))(many_keys(8), lengths)
    monkeypatch.setattr(batching, "_decides_cheaply", lambda: False)
    at_once = jax.jit(over_chains(lambda *given: draw(*given)))(many_keys(8), lengths)
    for one, other in zip(in_turns[:2], at_once[:2], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(in_turns[2], at_once[2], rtol=1e-5)


@pytest.mark.parametrize("replacement", [False, True])
def test_sequences_have_the_probability_they_report(replacement):
    logits = jnp.asarray(np.random.default_rng(1).normal(size=40) * 3, jnp.float32)
    mask = jnp.arange(40) != 7
    weights = softmax_weights(logits, mask)
    plain = np.where(mask, np.exp(np.asarray(logits, float)), 0)

    @jax.jit
    def draw(key):
        drawn = draw_sites(key, weights, jnp.int32(6), 9, replacement=replacement)
        return drawn, both_ways(weights, drawn, replacement)

    for key in many_keys(20, seed=2):
        drawn, probabilities = draw(key)
        sequence = np.asarray(drawn.sites[:6])
        assert (np.asarray(drawn.sites[6:]) == 40).all() and drawn.length == 6
        for found, ordered in zip(probabilities, (sequence, sequence[::-1]), strict=True):
            np.testing.assert_allclose(
                found, np.log(sequence_probability(plain, ordered, replacement)), rtol=1e-4
            )
        assert set(np.flatnonzero(drawn.flips)) == set(sequence)


@pytest.mark.parametrize(
    "logits",
    [[70, 69, *np.linspace(0, 2, 30)], [5000, -5000, 4999, 0]],
    ids=["two sites dominate", "enormous"],
)
def test_dominant_sites_leave_the_others_their_probability(logits):
    """Float32 sums of all weights cannot see the rest, the draws must."""
    logits = np.float32(logits)
    weights = softmax_weights(jnp.asarray(logits), jnp.ones(len(logits), bool))
    drawn = jax.jit(lambda key: draw_sites(key, weights, jnp.int32(4), 4, replacement=False))(
        many_keys(1)[0]
    )
    found = log_probability(weights, drawn, replacement=False)
    plain = np.exp(np.maximum(np.float64(logits) - logits.max(), -80))
    sites = np.asarray(drawn.sites)
    np.testing.assert_allclose(found, np.log(sequence_probability(plain, sites, False)), rtol=1e-4)
    assert set(sites[:2]) == set(np.argsort(logits)[-2:]) and len(set(sites)) == 4


def test_rounding_never_leads_to_a_place_without_weight():
    """Running sums need not stay the same where weights are 0: their rounding depends on
    the place.
    """
    rng = np.random.default_rng(0)
    shape = (50, 333)
    weights = np.where(rng.random(shape) < 0.5, 0, 10.0 ** rng.uniform(-6, 0, shape)).astype(
        np.float32
    )
    # At 0, just below 1, and on both sides of every running sum.
    running = np.asarray(jax.vmap(jnp.cumsum)(jnp.asarray(weights)))
    edges = running / running[:, -1:]
    uniforms = np.concatenate(
        [np.zeros((50, 1), np.float32), edges, np.nextafter(edges, np.float32(0))], axis=1
    )
    uniforms = np.minimum(uniforms, np.float32(1 - 2.0**-24))
    places = jax.jit(jax.vmap(jax.vmap(invert_cdf, (0, None))))(uniforms, jnp.asarray(weights))
    assert (np.take_along_axis(weights, np.asarray(places), axis=1) > 0).all()
