"""Ladders of temperatures whose chains exchange states, and states in traces, on each engine that has them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chains import FALSE_ALARM, batch_of, chains_at, copied
from marks import slow_except

from sl_discs.engines.base import Program
from sl_discs.engines.registry import get_engine
from sl_discs.errors import InputError
from sl_discs.localization.schedule import Localization
from sl_discs.models.quadratic import QuadraticModel, quadratic_params
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.path import PathAuxiliary
from sl_discs.samplers.single_site import Gibbs
from sl_discs.testing.cases import Case, all_states, state_index
from sl_discs.testing.conformance import chi_squared

ENGINES = ("reference", "cpu")
LADDER = np.array([0.5, 1.5, np.inf], np.float32)
_SITES, _STATES = 3, 8


def _case(mask=(True, True, True, True)) -> Case:
    """Three coupled sites; and a fourth, on which f does not depend."""
    terms = Coefficients(np.array([0.5, 1.0, -0.25, 0]), np.array([(0, 1), (1, 2)]), np.array([-2.0, 1.0]), 1.0)
    params = jax.tree.map(jnp.asarray, quadratic_params(terms, 4, None))
    start, model = np.zeros(4, np.int8), QuadraticModel(4, "int16")
    return Case("three sites and one", model.target(params, np.array(mask)), start)


def _values(states):
    x = np.float64(states)
    return x @ [0.5, 1.0, -0.25, 0][: x.shape[-1]] - 2 * x[..., 0] * x[..., 1] + x[..., 1] * x[..., 2]


def _laws(ladder):
    """[R, 8] the law of the three sites at each temperature."""
    weights = np.exp(_values(all_states(_SITES)) / np.float64(ladder)[:, None])
    return weights / weights.sum(axis=1, keepdims=True)


def _program(temperatures, copies: int, steps: int, **fields) -> Program:
    return Program(np.tile(np.float32(temperatures), (steps, copies)), None, **fields)


def _play(engine, case, x, program, intervals, *, calls=1, sampler=None, seed=0):
    """Plays all of a program in equal calls; the chains and the trace of each call."""
    sampler = sampler or Gibbs()
    batch = batch_of(case, len(x), seed)
    chains = chains_at(case, sampler, batch, x)
    play = get_engine(engine).prepare(case.model, sampler, batch, program)
    every = len(program.temperature) // (calls * intervals)
    traces = []
    for call in range(calls):
        chains, trace = play(copied(chains), call * intervals * every, intervals, every)
        traces.append(jax.tree.map(np.asarray, trace))
    return jax.tree.map(np.asarray, chains), jax.tree.map(lambda *leaves: np.concatenate(leaves), *traces)


def _p_value_of_ladders(x, laws) -> float:
    """Of the joint law of the three sites of all places being the product of the places' laws."""
    places = state_index(x[0, :, :_SITES]).reshape(-1, len(laws))
    joint = np.einsum("i,j,k->ijk", *laws).ravel()
    index = np.ravel_multi_index(tuple(places.T), (_STATES,) * len(laws))
    counts = np.bincount(index, minlength=joint.size)
    return chi_squared(counts, joint * len(places))[1]


@pytest.mark.parametrize("engine", slow_except(ENGINES, ["cpu"]))
def test_the_places_of_a_ladder_are_independent_with_the_laws_of_their_temperatures(engine):
    """From one state far from all of these laws; an engine that is right fails with probability `FALSE_ALARM`."""
    copies = 10_000
    x = np.tile(np.int8([1, 1, 0, 0]), (copies * len(LADDER), 1))
    program = _program(LADDER, copies, 20 * 4, ladder=len(LADDER))
    chains, trace = _play(engine, _case(), x, program, 20)
    assert 0.2 < 2 * trace.exchanged.mean() < 0.9
    assert _p_value_of_ladders(chains.chain.x, _laws(LADDER)) > FALSE_ALARM


@pytest.mark.parametrize("engine", slow_except(ENGINES, ["cpu"]))
def test_at_equal_temperatures_every_pair_of_the_parity_exchanges_and_states_go_round(engine):
    ladder, intervals = 5, 24
    labels = np.tile(np.pad(all_states(_SITES)[:ladder], ((0, 0), (0, 1))), (2, 1))
    program = _program(np.ones(ladder), 2, 3 * intervals, ladder=ladder, keeps_states=True)
    chains, trace = _play(engine, _case((False, False, False, True)), labels, program, intervals // 2, calls=2)
    lower = np.arange(ladder) < ladder - 1
    # The first interval has number 1.
    expected = [(np.arange(ladder) % 2 == n % 2) & lower for n in range(1, intervals + 1)]
    np.testing.assert_array_equal(trace.exchanged[:, 0], np.tile(expected, (1, 2)))
    walkers, seen = np.arange(ladder), []
    for interval, pairs in enumerate(expected):
        seen.append(walkers.copy())
        np.testing.assert_array_equal(state_index(trace.states[interval, 0, :, :_SITES]), walkers[0])
        for r in np.flatnonzero(pairs):
            walkers[[r, r + 1]] = walkers[[r + 1, r]]
    places = np.argsort(seen, axis=1)
    # A walker moves by a place an interval, but for one of rest at each end.
    np.testing.assert_array_equal(places[2 * ladder :], places[: -2 * ladder])
    assert (places.min(axis=0) == 0).all() and (places.max(axis=0) == ladder - 1).all()
    states = chains.chain.x[0, :, :_SITES]
    np.testing.assert_array_equal(state_index(states), np.tile(walkers, 2))
    np.testing.assert_allclose(trace.value[-1, 0], _values(all_states(_SITES))[np.tile(seen[-1], 2)], atol=1e-6)
    np.testing.assert_allclose(chains.chain.field.coupled[0, :, 1], -2 * states[:, 0] + states[:, 2], atol=1e-6)
    # Each place has met every state.
    np.testing.assert_allclose(chains.best.value, _values(all_states(_SITES))[:ladder].max(), atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "sampler",
    [Gibbs(), pytest.param(PathAuxiliary(adaptive=True, adapt_until=20), marks=pytest.mark.slow)],
    ids=["gibbs", "path"],
)
def test_one_call_or_several_are_the_same_run(engine, sampler):
    x = np.tile(all_states(4), (3, 1))
    program = _program(LADDER, len(x) // len(LADDER), 36, ladder=len(LADDER), keeps_states=True)
    once = _play(engine, _case(), x, program, 12, sampler=sampler)
    several = _play(engine, _case(), x, program, 3, calls=4, sampler=sampler)
    jax.tree.map(np.testing.assert_array_equal, once, several)
    field = jax.vmap(_case().model.init, (None, 0))(_case().target.params, jnp.asarray(once[0].chain.x[0]))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, atol=1e-5), once[0].chain.field, field)
    assert (once[0].best.value >= once[0].best_logged.value).all()


@pytest.mark.parametrize("engine", slow_except(ENGINES, ["cpu"]))
def test_kept_states_are_those_of_the_chains_and_change_nothing(engine):
    x = all_states(4)
    program = _program([0.7], len(x), 40, keeps_states=True)
    chains, trace = _play(engine, _case(), x, program, 10)
    plain, without = _play(engine, _case(), x, program._replace(keeps_states=False), 10)
    assert without.states is None and without.exchanged is None and trace.exchanged is None
    jax.tree.map(np.testing.assert_array_equal, (chains, trace._replace(states=None)), (plain, without))
    assert trace.states.dtype == np.int8 and trace.states.shape == (10, 1, 16, 4)
    batch = batch_of(_case(), len(x))
    play = get_engine(engine).prepare(_case().model, Gibbs(), batch, program)
    chains = chains_at(_case(), Gibbs(), batch, x)
    for interval in range(10):
        chains, _ = play(copied(chains), 4 * interval, 1, 4)
        np.testing.assert_array_equal(trace.states[interval], chains.chain.x)


class _Present:
    """Temperatures that are what they are when they are asked for, as a ladder that is being adapted has them."""

    def __init__(self, num_chains: int):
        self.now = None
        self._num_chains = num_chains

    def __getitem__(self, places):
        if places.stop == 0:
            return np.zeros((0, self._num_chains), np.float32)
        return np.full((places.stop - places.start, self._num_chains), self.now, np.float32)


@pytest.mark.parametrize("engine", ENGINES)
def test_temperatures_of_chains_may_change_between_calls(engine):
    case, sampler, x = _case(), PathAuxiliary(num_flips=2), np.tile(all_states(4), (2, 1))
    batch, present = batch_of(case, len(x)), _Present(len(x))
    play = get_engine(engine).prepare(case.model, sampler, batch, Program(present, None))
    program = Program(np.repeat(np.float32([2, np.inf, 0.3]), 5)[:, None] * np.ones((1, len(x)), np.float32), None)
    known = get_engine(engine).prepare(case.model, sampler, batch, program)
    found = wanted = chains_at(case, sampler, batch, x)
    for call, present.now in enumerate((2, np.inf, 0.3)):
        found, wanted = (copied(chains) for chains in (found, wanted))
        found, wanted = play(found, 5 * call, 1, 5)[0], known(wanted, 5 * call, 1, 5)[0]
        jax.tree.map(np.testing.assert_array_equal, found, wanted)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_that_cannot_be_played_is_refused(engine):
    case = _case()
    batch = batch_of(case, 8)
    program = _program([1.0], 8, 12, ladder=3)
    with pytest.raises(InputError, match="8 chains do not form whole ladders of 3"):
        get_engine(engine).prepare(case.model, Gibbs(), batch, program)
    localized = program._replace(ladder=4, levels=Localization(K=3).levels(12))
    with pytest.raises(InputError, match="localized chains"):
        get_engine(engine).prepare(case.model, Gibbs(), batch, localized)
