"""Ladders of temperatures whose chains swap states, and states in traces, on each engine that has
them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chains import (
    FALSE_ALARM,
    batch_of,
    chains_at,
    copied,
    play_program,
    program_at,
    quadratic_case,
)
from engines_at_hand import ENGINES
from marks import slow_except

from sl_discs.engines.program import ChainTemperatures, ClockTemperatures, Program
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.path import PathAuxiliary
from sl_discs.samplers.single_site import Gibbs
from sl_discs.support.errors import InputError
from sl_discs.testing.conformance import all_states, chi_squared, state_index

pytestmark = pytest.mark.usefixtures("quickly_compiled")
NAMES = ("reference", "cpu", "in step")
LADDER = np.array([0.5, 1.5, np.inf], np.float32)
_SITES, _STATES = 3, 8


def _case(mask=(True, True, True, True)):
    """Three coupled sites; and a fourth, on which f does not depend."""
    return quadratic_case([0.5, 1.0, -0.25, 0], [(0, 1), (1, 2)], [-2.0, 1.0], mask=mask)


def _values(states):
    x = np.float64(states)
    return (
        x @ [0.5, 1.0, -0.25, 0][: x.shape[-1]] - 2 * x[..., 0] * x[..., 1] + x[..., 1] * x[..., 2]
    )


def _program(temperatures, copies: int, **fields) -> Program:
    return Program(ChainTemperatures(np.tile(np.float32(temperatures), copies)), None, **fields)


def _gibbs(engine):
    return Gibbs(scan="sequential" if engine == "in step" else "random")


def _play(engine, x, program, steps, intervals, calls=1, case=None, sampler=None):
    sampler = sampler or _gibbs(engine)
    return play_program(
        ENGINES[engine], case or _case(), sampler, x, program, intervals, calls=calls, steps=steps
    )


@pytest.mark.parametrize("engine", slow_except(NAMES, ["cpu", "in step"]))
def test_the_places_of_a_ladder_are_independent_with_the_laws_of_their_temperatures(engine):
    """From one state far from all of these laws; an engine that is right fails with probability
    `FALSE_ALARM`.
    """
    copies = 10_000
    x = np.tile(np.int8([1, 1, 0, 0]), (copies * len(LADDER), 1))
    chains, trace = _play(engine, x, _program(LADDER, copies, ladder=len(LADDER)), 20 * 4, 20)
    assert 0.2 < 2 * trace.swaps.mean() < 0.9
    laws = np.exp(_values(all_states(_SITES)) / np.float64(LADDER)[:, None])
    joint = np.einsum("i,j,k->ijk", *laws / laws.sum(axis=1, keepdims=True)).ravel()
    places = state_index(chains.chain.x[0, :, :_SITES]).reshape(copies, len(LADDER))
    counts = np.bincount(places @ [_STATES**2, _STATES, 1], minlength=joint.size)
    assert chi_squared(counts, joint * copies)[1] > FALSE_ALARM


@pytest.mark.parametrize("engine", slow_except(NAMES, ["cpu", "in step"]))
def test_at_equal_temperatures_every_pair_of_the_parity_swaps_and_states_go_round(engine):
    ladder, intervals = 5, 24
    labels = np.tile(np.pad(all_states(_SITES)[:ladder], ((0, 0), (0, 1))), (2, 1))
    program, case = (
        _program(np.ones(ladder), 2, ladder=ladder, keeps_states=True),
        _case((False, False, False, True)),
    )
    chains, trace = _play(
        engine, labels, program, 3 * intervals, intervals // 2, calls=2, case=case
    )
    lower = np.arange(ladder) < ladder - 1
    # The first interval has number 1.
    expected = [(np.arange(ladder) % 2 == n % 2) & lower for n in range(1, intervals + 1)]
    np.testing.assert_array_equal(trace.swaps[:, 0], np.tile(expected, (1, 2)))
    replicas, seen = np.arange(ladder), []
    for interval, pairs in enumerate(expected):
        seen.append(replicas.copy())
        np.testing.assert_array_equal(
            state_index(trace.states[interval, 0, :, :_SITES]), replicas[0]
        )
        for r in np.flatnonzero(pairs):
            replicas[[r, r + 1]] = replicas[[r + 1, r]]
    places = np.argsort(seen, axis=1)
    # A replica moves by a place an interval, but for one of rest at each end.
    np.testing.assert_array_equal(places[2 * ladder :], places[: -2 * ladder])
    assert (places.min(axis=0) == 0).all() and (places.max(axis=0) == ladder - 1).all()
    states = chains.chain.x[0, :, :_SITES]
    np.testing.assert_array_equal(state_index(states), np.tile(replicas, 2))
    np.testing.assert_allclose(
        trace.value[-1, 0], _values(all_states(_SITES))[np.tile(seen[-1], 2)], atol=1e-6
    )
    np.testing.assert_allclose(
        chains.chain.field.coupled[0, :, 1], -2 * states[:, 0] + states[:, 2], atol=1e-6
    )
    # Each place has met every state.
    np.testing.assert_allclose(
        chains.best.value, _values(all_states(_SITES))[:ladder].max(), atol=1e-6
    )


@pytest.mark.parametrize(
    ("engine", "sampler"),
    [
        *((engine, None) for engine in NAMES),
        *(
            pytest.param(engine, PathAuxiliary(adaptive=True), marks=pytest.mark.slow)
            for engine in NAMES[:2]
        ),
    ],
)
def test_one_call_or_several_are_the_same_run(engine, sampler):
    """The kept states are those of the chains at the ends of calls."""
    x = np.tile(all_states(4), (3, 1))
    program = _program(LADDER, len(x) // len(LADDER), ladder=len(LADDER), keeps_states=True)
    once = _play(engine, x, program, 36, 12, sampler=sampler)
    several = _play(engine, x, program, 36, 3, calls=4, sampler=sampler)
    jax.tree.map(np.testing.assert_array_equal, once, several)
    field = jax.vmap(_case().model.init, (None, 0))(
        _case().target.params, jnp.asarray(once[0].chain.x[0])
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a[0], b, atol=1e-5), once[0].chain.field, field
    )
    assert (once[0].best.value >= once[0].best_logged.value).all()


@pytest.mark.parametrize("engine", slow_except(NAMES, ["cpu", "in step"]))
def test_kept_states_are_those_of_the_chains_and_change_nothing(engine):
    x = all_states(4)
    program = _program([0.7], len(x), keeps_states=True)
    chains, trace = _play(engine, x, program, 40, 10)
    plain, without = _play(engine, x, program._replace(keeps_states=False), 40, 10)
    assert without.states is None and without.swaps is None and trace.swaps is None
    jax.tree.map(
        np.testing.assert_array_equal, (chains, trace._replace(states=None)), (plain, without)
    )
    assert trace.states.dtype == np.int8 and trace.states.shape == (10, 1, 16, 4)
    half, _ = _play(engine, x, program, 20, 5)
    np.testing.assert_array_equal(trace.states[4], half.chain.x)
    np.testing.assert_array_equal(trace.states[-1], chains.chain.x)


@pytest.mark.parametrize("kind", [ChainTemperatures, ClockTemperatures])
@pytest.mark.parametrize("engine", NAMES)
def test_a_run_goes_on_with_programs_of_other_temperatures(engine, kind):
    """As a ladder that is adapted does, and an annealing that follows the clock; `cpu` keeps
    weights of sites.
    """
    case, x = _case(), np.tile(all_states(4), (2, 1))
    sampler = PathAuxiliary(num_flips=2) if engine == "cpu" else _gibbs(engine)
    batch, each = (
        ENGINES[engine].load(case.model, sampler, batch_of(case, len(x))),
        np.float32([2, np.inf, 0.3]),
    )
    wanted, _ = _play(
        engine, x, Program(ClockTemperatures(each.repeat(5)), None), 15, 1, calls=3, sampler=sampler
    )
    found = chains_at(case, sampler, batch, x)
    for call, now in enumerate(each):
        values = np.full(len(x) if kind is ChainTemperatures else 15, now)
        play = ENGINES[engine].prepare(case.model, sampler, batch, Program(kind(values), None))
        found, _ = play(copied(found), 5 * call, 1, 5)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)


@pytest.mark.parametrize("engine", NAMES)
def test_an_external_field_is_part_of_the_target_of_its_chain_alone(engine):
    """Chains with a field are those of a problem with that field; each has its own."""
    x, h = np.tile(all_states(4), (2, 1)), np.float32([0.5, -1, 0, 0.25])
    fields = np.repeat(np.stack([h, -h]), len(x) // 2, axis=0)[None]
    program = program_at(np.full(30, 1.0))
    found, _ = _play(engine, x, program._replace(field=fields), 30, 3)
    for half, sign in enumerate((1, -1)):
        of_half = slice(half * len(x) // 2, (half + 1) * len(x) // 2)
        # <s, h> = 2 <x, h> - sum h
        tilted = quadratic_case(
            np.array([0.5, 1.0, -0.25, 0]) + 2 * sign * h, [(0, 1), (1, 2)], [-2.0, 1.0]
        )
        wanted, _ = _play(engine, x, program, 30, 3, case=tilted)
        np.testing.assert_array_equal(found.chain.x[:, of_half], wanted.chain.x[:, of_half])


@pytest.mark.parametrize("engine", NAMES[:2])
def test_a_program_that_cannot_be_played_is_refused(engine):
    x, program = all_states(_SITES), _program([1.0], 8, ladder=3)
    with pytest.raises(InputError, match="8 chains do not form whole ladders of 3"):
        _play(engine, np.pad(x, ((0, 0), (0, 1))), program, 12, 1)
    apart = {"levels": Localization(K=3).levels(12)}, {"field": np.zeros((1, 8, 4), np.float32)}
    for fields in apart:
        with pytest.raises(InputError, match="have different targets and cannot swap states"):
            _play(engine, np.pad(x, ((0, 0), (0, 1))), program._replace(ladder=4, **fields), 12, 1)
