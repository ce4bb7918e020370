"""The fixes' own mathematics; what they do to DISCS's samplers is tested in test_upstream.py."""

import math
import types

import jax
import jax.numpy as jnp
import numpy as np

from sl_discs.discs_plugin import fixes


def test_probability_of_a_path_whose_first_pick_has_all_the_mass():
    """1 - p is 0 in float32; the picks after it still have probabilities that sum to one."""
    log_prob = jax.nn.log_softmax(jnp.array([[0.0, -20.0, -21.0, -22.0]]), axis=1)
    orders = jnp.array([(0, i, *(j for j in (1, 2, 3) if j != i)) for i in (1, 2, 3)])
    found = fixes._log_prob_in_order(jnp.broadcast_to(log_prob, (3, 4)), orders, 2)
    np.testing.assert_allclose(jnp.sum(jnp.exp(found)), 1.0, rtol=1e-5)


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
