"""Instances played some after the others against all at once."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sl_discs.experiment.in_turn import group_size, play_in_turn

COUNTS = st.integers(1, 40)


@given(COUNTS, COUNTS, COUNTS, st.integers(1, 10_000))
def test_groups_are_the_largest_that_fit_and_all_alike(num_instances, num_chains, num_sites, most_sites):
    size = group_size(num_instances, num_chains, num_sites, most_sites)
    assert num_instances % size == 0
    assert size == 1 or size * num_chains * num_sites <= most_sites
    for larger in range(size + 1, num_instances + 1):
        assert num_instances % larger or larger * num_chains * num_sites > most_sites


def test_groups_keep_the_order_of_instances_and_of_the_trace():
    """With groups of 1, 2, 3 and 6 of 6 instances."""

    def play(batch, chains):
        assert batch.shape[0] == chains["x"].shape[0]
        trace = jnp.arange(5)[:, None, None] + chains["x"] * 10
        return {"x": chains["x"] + batch[:, None]}, {"value": trace}

    batch, x = jnp.arange(6) * 100, jnp.arange(12).reshape(6, 2)
    for size in (1, 2, 3, 6):
        chains, trace = play_in_turn(play, size, batch, {"x": x})
        np.testing.assert_array_equal(chains["x"], x + batch[:, None])
        np.testing.assert_array_equal(trace["value"], jnp.arange(5)[:, None, None] + x * 10)
