"""Resampled chains: the law at the new temperature, the same run however it is cut, and nothing lost on the way."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chains import batch_of, chains_at
from test_run import SETTINGS, assert_equal, method, only, play, random_dataset

from sl_discs.engines.base import Best, ChainStates
from sl_discs.errors import InputError
from sl_discs.experiment.chains import Population, places_after
from sl_discs.experiment.settings import Settings
from sl_discs.keys import Stream, chain_keys
from sl_discs.localization.algorithm import LocalizedState
from sl_discs.models.quadratic import QuadraticField
from sl_discs.samplers.base import Chain
from sl_discs.samplers.path import GWG
from sl_discs.testing import enumerate_law, standard_cases, total_variation

POPULATION = dataclasses.replace(SETTINGS, resample_every=50, resample_strength=2.0, t_schedule="linear")


def test_every_chain_goes_on_as_often_as_its_weight_says():
    rng = np.random.default_rng(0)
    for size in (1, 7, 32):
        log_weights = rng.normal(scale=2, size=size) - 700
        expected = size * np.exp(log_weights + 700) / np.exp(log_weights + 700).sum()
        uniforms = (np.arange(2_000) + 0.5) / 2_000
        copies = np.array([np.bincount(places_after(log_weights, u), minlength=size) for u in uniforms])
        assert (copies >= np.floor(expected - 1e-9)).all() and (copies <= np.ceil(expected + 1e-9)).all()
        np.testing.assert_allclose(copies.mean(axis=0), expected, atol=2e-3)


def test_who_goes_on_stays_in_place():
    chosen = places_after(np.log([0.5, 0.01, 0.24, 0.25]), 0.3)
    assert chosen[0] == 0 and sorted(chosen) == [0, 0, 2, 3]
    np.testing.assert_array_equal(places_after(np.zeros(9), 0.99), np.arange(9))


@pytest.mark.parametrize(("strength", "right"), [(1.0, True), (2.0, False)])
def test_draws_of_one_temperature_become_draws_of_the_next(strength, right):
    """2^15 chains; the noise of the total variation is about 0.01."""
    case = next(case for case in standard_cases() if case.target.tilt is None and case.mask.all())
    before, after = 2.0, 1.0
    laws = {}
    for temperature in (before, after):
        target = dataclasses.replace(case.target, temperature=jnp.float32(temperature))
        laws[temperature] = enumerate_law(target, case.start)
    size = 2**15
    settings = Settings(
        batch_size=size, chain_length=4, log_every_steps=2, resample_every=2, resample_strength=strength
    )
    population = Population(settings, np.array([before, before, after, after], np.float32))
    x = laws[before].sample(np.random.default_rng(0), size)
    chains = chains_at(case, GWG(), batch_of(case, size), x)
    field = chains.chain.field
    value = jax.vmap(lambda x, field: case.model.value(case.target.params, x, field))(
        chains.chain.x[0], jax.tree.map(lambda leaf: leaf[0], field)
    )
    assert population.is_due(2) and not population.is_due(3) and not population.is_due(4)
    keys = chain_keys(0, Stream.INITIAL_STATE, jnp.arange(1), size)
    found = population.resample(chains, value[None], keys, 2)
    assert total_variation(x, laws[after]) > 0.1
    assert (total_variation(np.asarray(found.chain.x[0]), laws[after]) < 0.03) is right
    rebuilt = jax.vmap(case.model.init, (None, 0))(case.target.params, found.chain.x[0])
    np.testing.assert_allclose(found.chain.field.coupled[0], rebuilt.coupled, atol=1e-5)


def test_a_chain_goes_on_with_all_that_it_carries():
    """Two instances; the surplus chain of each, past `batch_size`, is neither copied nor replaced."""
    shape = 2, 5
    rng = np.random.default_rng(3)
    mark = np.arange(10, dtype=np.float32).reshape(shape)
    field = QuadraticField(mark[..., None], mark, mark)
    whole = mark.astype(np.int32)
    state = LocalizedState((whole,), whole, whole, mark[..., None], mark[..., None])
    chain = Chain(mark[..., None].astype(np.int8), field, state)
    best = Best(mark, mark[..., None].astype(np.int8))
    settings = Settings(batch_size=4, chain_length=200, resample_every=100, resample_strength=1.0)
    population = Population(settings, np.linspace(1.0, 0.2, 200).astype(np.float32))
    keys = chain_keys(0, Stream.INITIAL_STATE, jnp.arange(2), 5)
    value = rng.normal(scale=3, size=shape).astype(np.float32)
    value[:, 4] = 1e3
    found = population.resample(ChainStates(chain, best, best), value, keys, 100)
    leaves = [np.asarray(leaf).reshape(shape) for leaf in jax.tree.leaves(found.chain)]
    for leaf in leaves:
        np.testing.assert_array_equal(leaf, leaves[0])
    assert (leaves[0] != mark).any() and (leaves[0] // 5 == mark // 5).all()
    np.testing.assert_array_equal(leaves[0][:, 4], mark[:, 4])
    assert (leaves[0][:, :4] % 5 < 4).all()
    jax.tree.map(np.testing.assert_array_equal, found.best, best)


@pytest.mark.parametrize(
    ("engine", "chosen"),
    [pytest.param("reference", method("gwg"), marks=pytest.mark.slow), ("cpu", method("sl_path_auxiliary", K=20))],
)
def test_an_instance_alone_or_with_others(engine, chosen):
    settings = dataclasses.replace(POPULATION, engine=engine)
    dataset = random_dataset(3)
    together = play(dataset, chosen, settings)
    alone = play(only(dataset, 1), chosen, settings)
    assert (alone.instances[0].best, alone.instances[0].final) == (
        together.instances[1].best,
        together.instances[1].final,
    )
    np.testing.assert_array_equal(alone.trajectory[:, 0], together.trajectory[:, 1])
    without = play(dataset, chosen, dataclasses.replace(settings, resample_every=0))
    assert (without.trajectory[0] == together.trajectory[0]).all()
    assert (without.hops != together.hops).any()


def test_weights_that_are_equal_change_nothing():
    dataset, chosen = random_dataset(2), method("gwg")
    equal = dataclasses.replace(POPULATION, resample_strength=0.0)
    assert_equal(play(dataset, chosen, equal), play(dataset, chosen, dataclasses.replace(equal, resample_every=0)))


def test_impossible_resamplings_are_refused():
    with pytest.raises(InputError, match=r"resample_every is 75; expected 0, or a multiple of log_every_steps = 50"):
        dataclasses.replace(SETTINGS, resample_every=75)
