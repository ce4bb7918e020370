"""What the native loops are made of: weights and their sums, flips taken back, the best state, and
arithmetic.
"""

import jax.numpy as jnp
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jitted import from_python

from sl_discs.engines.cpu import arithmetic, chain_state, chunk
from sl_discs.engines.cpu import tree as trees
from sl_discs.engines.cpu.chain_state import LoopTarget
from sl_discs.models import keys
from sl_discs.samplers.draws import softmax_weights

TILT_SCALE = np.float32(0.7)
draw, put, sum_all = map(from_python, (trees.draw, trees.put, trees.sum_all))
set_base, weigh_all, flip_sites = map(
    from_python, (chain_state.set_base, chain_state.weigh_all, chain_state.flip_sites)
)
weigh_proposal, take_back = map(from_python, (chain_state.weigh_proposal, chain_state.take_back))
note, write_out = map(from_python, (chunk.note, chunk.write_out))


def tree_of(weights):
    tree = trees.make_tree(len(weights))
    tree.weights[:] = weights
    sum_all(tree)
    return tree


def assert_sums_are_those_of_the_weights(tree, rtol):
    fresh = tree_of(tree.weights)
    np.testing.assert_allclose(tree.sums[3:], fresh.sums[3:], rtol=rtol)
    np.testing.assert_allclose(
        tree.sums[trees.TOTAL], tree.weights.sum(dtype=np.float64), rtol=rtol
    )


@pytest.mark.parametrize("size", [128, 384, 128 * 16 * 3 + 128])
def test_draws_are_in_proportion_to_weights(size):
    """Every quantile of (0, 1) leads to a site in proportion to its weight; sites of weight 0 are
    never drawn.
    """
    rng = np.random.default_rng(0)
    weights = (rng.random(size) * (rng.random(size) < 0.5)).astype(np.float32)
    tree = tree_of(weights)
    draws = 200 * size
    counts = np.bincount([draw(tree, (k + 0.5) / draws) for k in range(draws)], minlength=size)
    # Each site's quantiles are one interval, so counts are right to one.
    np.testing.assert_allclose(counts, draws * weights / weights.sum(dtype=np.float64), atol=1.01)
    last = draw(tree, 1 - 2.0**-53)
    assert weights[last] > 0


@given(
    st.lists(st.tuples(st.integers(0, 383), st.integers(-80, 80)), max_size=60),
    st.integers(0, 2**31),
)
@settings(max_examples=300, deadline=None)
def test_sums_follow_changes_of_weights_however_much_cancels(changes, seed):
    """Weights between 2^-80 and 2^80, put and taken away again: what is left is never made of
    rounding errors.
    """
    tree = tree_of(np.random.default_rng(seed).random(384).astype(np.float32))
    for site, exponent in changes:
        put(tree, site, np.float32(2.0**exponent))
        assert_sums_are_those_of_the_weights(tree, 1e-8)
    for site, _ in changes:
        put(tree, site, np.float32(0))
        assert_sums_are_those_of_the_weights(tree, 1e-8)


def a_chain(rng, dense, size=256, sites=250, degree=4):
    """A random sparse target with a tilt and a mask, and a chain at a random state."""
    rows = np.zeros((size, size), np.int8)
    for site in range(sites):
        for other in rng.choice(sites, degree // 2, replace=False):
            if other != site:
                rows[site, other] = rows[other, site] = rng.integers(1, 3)
    starts = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))])
    neighbours, weights = np.nonzero(rows)[1].astype(np.int32), rows[rows != 0]
    mask = (np.arange(size) < sites) & (rng.random(size) < 0.9)
    linear = (rng.normal(size=size) * (np.arange(size) < sites)).astype(np.float32)
    target = LoopTarget(
        linear, np.float32(-1.5), dense, rows if dense else rows[:0], starts, neighbours, weights,
        mask.astype(np.float32), np.flatnonzero(mask).astype(np.int32),
    )  # fmt: skip
    chain = chain_state.make_chain(size, np.int32)
    chain.spins[:] = np.where(np.arange(size) < sites, rng.choice([-1.0, 1.0], size), -1.0)
    chain.coupled[:] = rows.astype(np.int32) @ (chain.spins > 0)
    chain.y[:] = rng.normal(size=size)
    return chain, target, rows


def expected_weights(chain, target, rate):
    """The reference's weights; their largest is 1."""
    local = (target.linear + target.scale * chain.coupled) * rate / 2 + TILT_SCALE * chain.y
    found = softmax_weights(jnp.asarray(-chain.spins * local), jnp.asarray(target.mask > 0))
    return np.asarray(found)


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
@pytest.mark.parametrize("rate", [0.3, 4.0, 80.0])
def test_weights_are_the_reference_s_after_flips_and_after_taking_them_back(dense, rate):
    rng = np.random.default_rng(5)
    chain, target, rows = a_chain(rng, dense)
    slope = set_base(chain, target, np.float32(rate), TILT_SCALE)
    tree, other = trees.make_tree(256), trees.make_tree(256)
    weigh_all(chain, target, slope, tree)
    in_places = []
    for turn in range(60):
        state, field, weights = chain.spins.copy(), chain.coupled.copy(), tree.weights.copy()
        count = 1 + turn % 3
        chain.flipped[:count] = rng.choice(target.open_sites, count, replace=False)
        changes, touched = flip_sites(chain, target, count)
        np.testing.assert_allclose(
            changes.observed, chain.y @ (chain.spins - state), rtol=1e-4, atol=1e-5
        )
        in_place = weigh_proposal(chain, target, slope, tree, other, touched)
        in_places.append(in_place)
        proposed = tree if in_place else other
        np.testing.assert_array_equal(chain.coupled, rows.astype(np.int32) @ (chain.spins > 0))
        wanted, found = (
            expected_weights(chain, target, np.float32(rate)),
            proposed.weights / proposed.weights.max(),
        )
        seen = wanted > 1e-12
        np.testing.assert_allclose(found[seen], wanted[seen], rtol=3e-4 if rate > 10 else 1e-4)
        assert (found[target.mask == 0] == 0).all() and (found[target.mask > 0] > 0).all()
        assert_sums_are_those_of_the_weights(proposed, 1e-8)
        if turn % 2:
            take_back(chain, target, tree, in_place, touched, count)
            np.testing.assert_array_equal(chain.spins, state)
            np.testing.assert_array_equal(chain.coupled, field)
            np.testing.assert_array_equal(tree.weights, weights)
            assert_sums_are_those_of_the_weights(tree, 1e-8)
        elif not in_place:
            tree, other = other, tree
    assert any(in_places) != dense or (rate > 10 and not dense)


def test_the_best_state_is_kept_through_any_history():
    rng = np.random.default_rng(2)
    size = 128
    record, spins = chunk.make_best_state(size), -np.ones(size, np.float32)
    record.value[0] = best = -np.inf
    for turn in range(3_000):
        flips = int(rng.integers(1, 6))
        flipped = rng.choice(size, flips, replace=False).astype(np.int32)
        spins[flipped] *= -1
        value = float(rng.integers(0, 1_000)) if turn % 500 < 5 else 0.0
        note(record, value, spins, flipped, flips)
        if value > best:
            best, best_spins = value, spins.copy()
        if turn % 97 == 0:
            write_out(record, spins)
            np.testing.assert_array_equal(record.spins, best_spins)
        assert record.value[0] == best
    write_out(record, spins)
    np.testing.assert_array_equal(record.spins, best_spins)


# Elementary functions and random numbers against NumPy's and the reference's.


def over(function):
    return numba.vectorize(["float32(float32)"])(function)


def test_exponentials_and_logarithms():
    x = np.linspace(-125, 125, 200_001).astype(np.float32)
    exact = np.exp2(x.astype(np.float64))
    assert (
        np.max(
            np.abs(over(lambda x: arithmetic.exp2(x))(x) - exact)
            / np.spacing(exact.astype(np.float32))
        )
        < 4
    )
    exp_nonpositive = over(lambda x: arithmetic.exp_nonpositive(x))
    assert exp_nonpositive(np.float32([-1e9, -86.7, -0.0])).tolist() == [0, 0, 1]
    np.testing.assert_allclose(exp_nonpositive(-x[x > 0] / 2), np.exp(-x[x > 0] / 2.0), rtol=1e-5)
    log = over(lambda x: arithmetic.log(x))
    for x, rtol in (
        (np.exp(np.linspace(-80, 80, 100_001)), 3e-7),
        (1 + np.linspace(-0.3, 0.4, 10_001), 1e-6),
    ):
        np.testing.assert_allclose(
            log(x.astype(np.float32)), np.log(np.float64(np.float32(x))), rtol=rtol, atol=1e-7
        )


def test_random_numbers_are_those_of_the_keys():
    key = np.array([123, 2**32 - 5], np.uint32)
    first, second = from_python(arithmetic.threefry)(key[0], key[1], np.uint32(7), np.uint32(1))
    np.testing.assert_array_equal(keys.fold(jnp.asarray(key), 7), [first, second])
    uniforms = np.empty(752, np.float32)
    from_python(arithmetic.fill_uniforms)(key[0], key[1], uniforms)
    normal_pair = from_python(arithmetic.normal_pair)
    pairs = [normal_pair(*pair) for pair in uniforms.reshape(2, -1).T]
    np.testing.assert_allclose(
        np.transpose(pairs).ravel(), keys.normals(jnp.asarray(key), (752,)), atol=1e-4
    )
