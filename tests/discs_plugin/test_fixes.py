"""The fixes' own mathematics; what they do to DISCS's samplers is tested in test_upstream.py."""

import itertools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sl_discs.discs_plugin import fixes


def test_probability_of_a_path_against_the_definition():
    log_prob = jax.nn.log_softmax(jnp.array([[0.3, -1.0, 2.0, 0.5], [5.0, 0.0, 0.0, -3.0]]), axis=1)
    for order in itertools.permutations(range(4)):
        for length in range(1, 5):
            found = fixes._log_prob_in_order(log_prob, jnp.array([order, order]), length)
            for row in range(2):
                prob, left, wanted = np.exp(np.float64(log_prob[row])), 1.0, 0.0
                for site in order[:length]:
                    wanted += math.log(prob[site] / left)
                    left -= prob[site]
                np.testing.assert_allclose(found[row], wanted, atol=1e-4)


def test_probability_of_a_path_whose_first_pick_has_all_the_mass():
    """1 - p is 0 in float32; the picks after it still have probabilities that sum to one."""
    log_prob = jax.nn.log_softmax(jnp.array([[0.0, -20.0, -21.0, -22.0]]), axis=1)
    orders = jnp.array([(0, i, *(j for j in (1, 2, 3) if j != i)) for i in (1, 2, 3)])
    found = fixes._log_prob_in_order(jnp.broadcast_to(log_prob, (3, 4)), orders, 2)
    np.testing.assert_allclose(jnp.sum(jnp.exp(found)), 1.0, rtol=1e-5)


@pytest.mark.parametrize("per_chain", [True, False])
def test_scale_in_log_space(per_chain):
    sampler = types.SimpleNamespace(adaptive=True, co_opt_prob=per_chain)
    rates = jnp.array([[1.0, 2.0], [3.0, -1.0]])
    stats = fixes._scale_of_each_chain(sampler, rates)
    sums = np.exp(np.asarray(rates)).sum(axis=1, keepdims=True)
    wanted = np.log(sums if per_chain else sums.mean())
    np.testing.assert_allclose(stats["log_z"], wanted, rtol=1e-6)
    np.testing.assert_allclose(stats["log_tau"], math.log(3) - wanted, rtol=1e-5)
    assert np.isfinite(fixes._scale_of_each_chain(sampler, 1_000 * rates)["log_tau"]).all()


def test_first_scale_is_stored_and_never_nan():
    def update(
        state, acc, local_stats
    ):  # as DISCS's: the logarithm of a number of flips that may be negative
        state["log_z"] = local_stats["log_z"]
        flips = jnp.exp(state["log_tau"] + state["log_z"]) + 3 * (acc - 0.5)
        state["log_tau"] = jnp.log(flips) - state["log_z"]

    sampler = types.SimpleNamespace(adaptive=True, co_opt_prob=False)
    stats = {"log_tau": jnp.float32(math.log(3) - 2.0), "log_z": jnp.float32(2.0)}
    mended = fixes._with_first_scale(update)
    state = {"steps": jnp.int32(1), "log_tau": jnp.float32(0), "log_z": jnp.float32(0)}
    mended(sampler, state, 0.5, stats)
    np.testing.assert_allclose(state["log_tau"], math.log(3) - 2.0, rtol=1e-6)
    state |= {"steps": jnp.int32(2), "log_tau": jnp.float32(-2.0)}
    mended(sampler, state, 0.0, stats)
    assert float(state["log_tau"]) == -2.0
