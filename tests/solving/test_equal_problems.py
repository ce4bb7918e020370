"""Laws over all kinds of problems: what states the same problem has the same answers, bounds and
proofs.

A problem times a power of two is the same bit for bit, and so is one whose values are whole
multiples of a unit with another constant, or with its terms in parts. Otherwise, and where only the
order of variables or terms changes, as by new labels, flipped signs of spins or exchanged zeros and
ones, the optimum is the same, and it is proved.
"""

import dataclasses

import numpy as np
import pytest
from enumerated import optimum
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.problems.problem import normal_form
from sl_discs.support.errors import InputError

SETS = "mis", "maxclique", "vertex_cover"
KINDS = (*SETS, "maxcut", "qubo", "ising")
# Whole numbers, whole multiples of a power of two, and numbers of 53 bits.
SIZES = {
    "whole": st.integers(-9, 9).map(float),
    "eighths": st.integers(-40, 40).map(lambda number: number / 8),
    "large": st.integers(-(2**30), 2**30).map(float),
    "real": st.floats(-3, 3).filter(lambda number: number == 0 or abs(number) > 1e-6),
}
# By provers alone; and chains, whose values are no proof, without reductions.
BY_CHAINS = {"sampler": "gwg", "steps": 40, "chains": 3, "annealing": (2.0, 0.25), "proofs": False}
HOW = {"provers": {}, "chains": BY_CHAINS, "both": {"presolve": False, "steps": 200, "chains": 2}}


@dataclasses.dataclass(frozen=True)
class Stated:
    """A problem in numbers: `own` [N] of variables (weights of nodes, where these count), and
    `coupled` of pairs.
    """

    kind: str
    own: np.ndarray | None
    pairs: list[tuple[int, int]]
    coupled: np.ndarray
    offset: float
    maximise: bool

    @property
    def is_form(self) -> bool:
        return self.kind in ("qubo", "ising")

    def problem(self, size, parts=False):
        """Returns the problem on `size` variables; of a form with terms in `parts`, each in both
        directions.
        """
        if self.kind in SETS:
            return getattr(sl_discs, self.kind)(edges(self.pairs), weight=self.own, num_nodes=size)
        if self.kind == "maxcut":
            return sl_discs.maxcut(edges(self.pairs), self.coupled, num_nodes=size)
        terms = dict(zip(self.pairs, self.coupled.tolist(), strict=True))
        if parts:
            terms = {pair: value / 2 for pair, value in terms.items()}
            terms |= {(j, i): value for (i, j), value in terms.items()}
        how = {"offset": self.offset, "maximise": self.maximise}
        own = dict(enumerate(self.own.tolist()))
        if self.kind == "ising":
            return sl_discs.ising(own, terms, **how)
        return sl_discs.qubo({(i, i): value for i, value in own.items()} | terms, **how)


def edges(pairs):
    return np.array(pairs, int).reshape(-1, 2)


@st.composite
def stated(draw, kinds=KINDS, sizes=tuple(SIZES), most=8):
    kind, size, number = (
        draw(st.sampled_from(kinds)),
        draw(st.integers(1, most)),
        SIZES[draw(st.sampled_from(sizes))],
    )
    every = [(i, j) for i in range(size) for j in range(i + 1, size)]
    pairs = sorted(draw(st.sets(st.sampled_from(every)))) if every else []
    own = np.array(draw(st.lists(number, min_size=size, max_size=size)))
    coupled = np.array(draw(st.lists(number, min_size=len(pairs), max_size=len(pairs))))
    if kind in SETS:
        own = draw(st.sampled_from([None, np.abs(own)]))
    offset = draw(st.sampled_from([0.0, 0.3, -2.0]))
    return size, Stated(kind, own, pairs, coupled, offset, draw(st.booleans()))


def check_same(first, second, unit=1.0, constant=None):
    """Compares two results bit for bit, the values of the second one in another unit, or with
    another constant.
    """
    assert first.states.tobytes() == second.states.tobytes()
    assert first.final_states.tobytes() == second.final_states.tobytes()
    assert (first.optimal, first.bound_by, first.stopped) == (
        second.optimal,
        second.bound_by,
        second.stopped,
    )
    assert (first.presolved, first.steps, first.acceptance) == (
        second.presolved,
        second.steps,
        second.acceptance,
    )
    if constant is not None:
        return
    assert (first.values * unit).tobytes() == second.values.tobytes()
    assert (first.bound is None) == (second.bound is None)
    assert first.bound is None or first.bound * unit == second.bound
    names = ["best", "mean"]
    if first.values.any():  # temperatures of a problem that is 0 are not its own
        names.append("temperature")
    for name in names:
        assert (getattr(first.trajectory, name) * unit).tobytes() == getattr(
            second.trajectory, name
        ).tobytes()


def check_true(problem, result):
    """Compares an answer and its bound with the optimum by enumeration."""
    sign, best = (1 if problem.maximise else -1), optimum(problem)
    assert problem.value(result.best_sample) == result.best_value
    assert sign * result.best_value <= sign * best
    assert result.bound is None or sign * result.bound >= sign * best
    assert not result.optimal or result.best_value == best


def in_units(how, unit):
    return (
        how | {"annealing": tuple(unit * one for one in how["annealing"])}
        if "annealing" in how
        else how
    )


def check_scaled(case, how, exponent):
    size, given = case
    unit, own = 2.0**exponent, given.own
    if given.kind in SETS and own is None:
        own = np.ones(size)
    scaled = dataclasses.replace(
        given,
        own=None if own is None else own * unit,
        coupled=given.coupled * unit,
        offset=given.offset * unit,
    )
    problem = given.problem(size)
    first = sl_discs.solve(problem, seed=1, **HOW[how])
    check_true(problem, first)
    check_same(
        first, sl_discs.solve(scaled.problem(size), seed=1, **in_units(HOW[how], unit)), unit
    )


few, many = (
    settings(max_examples=40, derandomize=True),
    settings(max_examples=1_000, derandomize=True),
)
scaling = given(stated(), st.sampled_from(tuple(HOW)), st.integers(-60, 60))
test_a_power_of_two_changes_nothing = few(scaling(check_scaled))
test_a_power_of_two_changes_nothing_in_many_examples = pytest.mark.slow(many(scaling(check_scaled)))


def check_restated(case, how, constant):
    """Terms of forms in parts, and another constant where values are whole multiples of a unit.

    Parts may be multiples of half the unit alone, in which sums are larger: up to 2^33 they are
    whole numbers.
    """
    size, given = case
    problem, parts = given.problem(size), given.problem(size, parts=True)
    first = sl_discs.solve(problem, seed=1, **HOW[how])
    check_true(problem, first)
    in_parts = sl_discs.solve(parts, seed=1, **HOW[how])
    check_true(problem, in_parts)
    moved = dataclasses.replace(given, offset=constant).problem(size)
    second = sl_discs.solve(moved, seed=1, **HOW[how])
    check_true(moved, second)
    assert first.optimal == second.optimal == in_parts.optimal
    # A state stands for those whose values differ by less than doubles of that size do.
    hides_none = len(set(first.values.tolist())) == len(set(second.values.tolist()))
    if normal_form(problem).integer_values and normal_form(parts).integer_values:
        check_same(first, in_parts)
    if normal_form(problem).integer_values and hides_none:
        check_same(first, second, constant=constant)


restating = given(
    stated(("qubo", "ising")),
    st.sampled_from(tuple(HOW)),
    st.sampled_from([0.0, 0.1, -7.0, 2.0**70, 1e-30]),
)
test_parts_of_terms_and_constants_change_nothing = few(restating(check_restated))
test_parts_of_terms_and_constants_in_many_examples = pytest.mark.slow(
    many(restating(check_restated))
)


def relabelled(given, order):
    """Returns the same problem, variable i of which is number order[i]."""
    pairs = [tuple(sorted((order[i], order[j]))) for i, j in given.pairs]
    own = given.own
    if own is not None:
        own = np.empty(len(order))
        own[order] = given.own
    return dataclasses.replace(given, pairs=pairs, own=own)


def flipped(given, flip):
    """Returns the problem with the signs of some spins flipped, or some zeros and ones exchanged;
    whole numbers.
    """
    sign = np.where(flip, -1.0, 1.0)
    ends = edges(given.pairs)
    coupled = given.coupled * sign[ends].prod(axis=1)
    own, offset = given.own * sign, given.offset
    if given.kind == "qubo":
        # x becomes 1 - x where it is flipped.
        offset += given.own[flip].sum()
        for (i, j), value in zip(given.pairs, given.coupled.tolist(), strict=True):
            offset += value * flip[i] * flip[j]
            own[i] += value * sign[i] * flip[j]
            own[j] += value * sign[j] * flip[i]
    return dataclasses.replace(given, own=own, coupled=coupled, offset=offset)


def check_equivalent(case, order, flip, exponent):
    size, given = case
    given = dataclasses.replace(given, offset=0.0)
    order = np.argsort(order[:size])
    others = [relabelled(given, order)]
    if given.is_form:
        others.append(flipped(given, np.array(flip[:size])))
    first = sl_discs.solve(given.problem(size))
    check_true(given.problem(size), first)
    for other in others:
        unit = 2.0**exponent
        own = None if other.own is None else other.own * unit
        problem = dataclasses.replace(
            other, own=own, coupled=other.coupled * unit, offset=other.offset * unit
        ).problem(size)
        second = sl_discs.solve(problem)
        check_true(problem, second)
        scale = unit if given.kind not in SETS or own is not None else 1.0
        assert second.optimal == first.optimal and second.best_value == scale * first.best_value


ordering = given(
    stated(sizes=("whole", "eighths", "large")),
    st.permutations(range(8)),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.integers(-60, 60),
)
test_labels_and_signs_change_no_optimum_and_no_proof = few(ordering(check_equivalent))
test_labels_and_signs_in_many_examples = pytest.mark.slow(many(ordering(check_equivalent)))


def check_drawn(case, method, exponent, constant, temperature):
    """Draws of a problem and those of it in another unit, at the temperature in that unit, with
    another constant, and with the terms of a form in parts.
    """
    size, given = case
    unit, own = 2.0**exponent, given.own
    if given.kind in SETS and own is None:
        own = np.ones(size)
    scaled = dataclasses.replace(
        given,
        own=None if own is None else own * unit,
        coupled=given.coupled * unit,
        offset=constant * unit,
    )
    how = {"method": method, "draws": 16, "groups": 4, "seed": 1}
    if method == "localization":
        how |= {"K": 8, "sigma": 1.0}
    try:
        first = sl_discs.sample(given.problem(size), temperature, **how)
    except InputError:  # low_rank, without a direction
        with pytest.raises(InputError):
            sl_discs.sample(scaled.problem(size, parts=True), temperature * unit, **how)
        return
    second = sl_discs.sample(scaled.problem(size, parts=True), temperature * unit, **how)
    assert first.states.tobytes() == second.states.tobytes()
    assert first.reliable == second.reliable


drawing = given(
    stated(),
    st.sampled_from(("exact", "chain", "tempering", "localization", "low_rank")),
    st.integers(-60, 60),
    st.sampled_from([0.0, 0.3, -7.0]),
    st.sampled_from([0.7, 3.0]),
)
test_equal_problems_have_equal_draws = few(drawing(check_drawn))
test_equal_problems_have_equal_draws_in_many_examples = pytest.mark.slow(many(drawing(check_drawn)))
