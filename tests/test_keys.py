"""The random streams: the generator's words, and that no two names meet."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from scipy import stats

from sl_discs.models import keys
from sl_discs.models.keys import Stream, chain_keys


def test_block_function_is_threefry_2x32():
    key = jnp.array([0x13198A2E, 0x03707344], jnp.uint32)
    first, second = jnp.arange(50, dtype=jnp.uint32), jnp.arange(50, dtype=jnp.uint32) + 7
    reference = threefry_2x32(key, jnp.concatenate([first, second]))
    np.testing.assert_array_equal(jnp.concatenate(keys.threefry(*key, first, second)), reference)


def test_numbers_have_their_laws():
    """Kolmogorov-Smirnov on 100,000 numbers each; false-alarm rate 1e-6 with this seed fixed."""
    key = keys.from_rng(jax.random.key(3))
    uniforms = np.asarray(keys.uniforms(keys.fold(key, 0), (100_001,)))
    assert uniforms.min() >= 0 and uniforms.max() < 1
    assert stats.kstest(uniforms, "uniform").pvalue > 1e-6
    assert (
        stats.kstest(np.asarray(keys.normals(keys.fold(key, 1), (100_000,))), "norm").pvalue > 1e-6
    )
    exponentials = np.asarray(keys.exponentials(keys.fold(key, 2), (100_000,)))
    assert exponentials.min() > 0
    assert stats.kstest(exponentials, "expon").pvalue > 1e-6


def test_every_chain_step_and_purpose_has_a_key_of_its_own():
    all_keys = [
        np.asarray(chain_keys(0, stream, jnp.arange(5), 4)).reshape(-1, 2) for stream in Stream
    ]
    all_keys = np.concatenate(all_keys)
    stepped = [
        np.asarray(jax.vmap(keys.fold, (0, None))(jnp.asarray(all_keys), step))
        for step in range(20)
    ]
    words = np.concatenate([all_keys, *stepped])
    assert len(np.unique(words, axis=0)) == len(words)


def test_keys_do_not_depend_on_what_else_is_run():
    alone = chain_keys(7, Stream.MCMC, jnp.array([3]), 2)
    together = chain_keys(7, Stream.MCMC, jnp.arange(8), 5)
    np.testing.assert_array_equal(alone[0], together[3, :2])
    assert not np.array_equal(alone, chain_keys(8, Stream.MCMC, jnp.array([3]), 2))
    assert not np.array_equal(alone, chain_keys(7 + 2**32, Stream.MCMC, jnp.array([3]), 2))


def test_jax_keys_of_either_kind_are_accepted():
    typed = jax.random.key(5)
    np.testing.assert_array_equal(keys.from_rng(typed), keys.from_rng(jax.random.PRNGKey(5)))
