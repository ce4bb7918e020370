"""What states the same problem has the same answers, bounds, proofs and draws.

A problem in another unit, a power of two, or in the other sense is the same bit for bit, and so is
one whose values are whole multiples of a unit with another constant, or with its terms in parts.
With other labels, flipped signs of spins, exchanged zeros and ones, or as a problem of another
kind, the optimum is the same, and it is proved.
"""

import dataclasses
import itertools
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from stated import EXACT, FORMS, KINDS, PARTS, SETS, Stated, check_result, law, problems, solve

import sl_discs
from sl_discs.problems.problem import normal_form
from sl_discs.support.errors import InputError

SEEDS = st.integers(0, 2**32 - 1)


class Changed(NamedTuple):
    """A problem stated in another way; its values are those before, times a unit, and a constant."""

    stated: Stated
    unit: Fraction = Fraction(1)
    constant: Fraction = Fraction(0)


def numbers(case, unit):
    """All numbers of a problem, in another unit."""
    own = case.own
    if case.kind in SETS and own is None:
        own = (1.0,) * case.size
    return dataclasses.replace(
        case,
        own=None if own is None else tuple(unit * one for one in own),
        coupled={pair: unit * one for pair, one in case.coupled.items()},
        offset=unit * case.offset,
    )


def scaled(case, rng):
    unit = 2.0 ** int(rng.choice([-60, -7, -1, 1, 3, 60]))
    return Changed(numbers(case, unit), Fraction(unit))


def negated(case, rng):
    other = numbers(case, -1.0)
    return Changed(dataclasses.replace(other, maximise=not case.maximise), Fraction(-1))


def moved(case, rng):
    offset = float(rng.choice([0.1, -7.0, 2.0**70, 1e-30]))
    constant = Fraction(offset) - Fraction(case.offset)
    return Changed(dataclasses.replace(case, offset=offset), constant=constant)


def in_parts(case, rng):
    return Changed(dataclasses.replace(case, parts=PARTS[rng.integers(len(PARTS))]))


def relabelled(case, rng):
    order = rng.permutation(case.size)
    if (order == np.arange(case.size)).all():
        order = np.roll(order, 1)
    coupled = {tuple(sorted(order[[i, j]].tolist())): one for (i, j), one in case.coupled.items()}
    own = case.own
    if own is not None:
        own = tuple(np.array(own)[np.argsort(order)].tolist())
    return Changed(dataclasses.replace(case, own=own, coupled=coupled))


def turned(case, rng):
    """Spins with flipped signs, zeros and ones exchanged, or nodes on the other side of a cut."""
    turn = rng.random(case.size) < 0.5
    turn[rng.integers(case.size)] = True
    sign = np.where(turn, -1.0, 1.0)
    own = np.array(case.own or [0.0] * case.size)
    coupled = {(i, j): one * sign[i] * sign[j] for (i, j), one in case.coupled.items()}
    constant = Fraction(0)
    if case.kind == "maxcut":
        across = (Fraction(one) for (i, j), one in case.coupled.items() if turn[i] != turn[j])
        return Changed(dataclasses.replace(case, coupled=coupled), constant=-sum(across))
    if case.kind == "qubo":
        # x becomes 1 - x where it is turned.
        constant = -Fraction(own[turn].sum())
        linear = own * sign
        for (i, j), one in case.coupled.items():
            constant -= Fraction(one) * int(turn[i] and turn[j])
            linear[i] += one * sign[i] * turn[j]
            linear[j] += one * sign[j] * turn[i]
        own = linear
    else:
        own = own * sign
    return Changed(
        dataclasses.replace(case, own=tuple(own.tolist()), coupled=coupled), constant=constant
    )


def of_another_kind(case, rng):
    """Sets, cliques of the complement, and what covers leave out; cuts and zeros and ones as
    spins, and spins as zeros and ones.
    """
    if case.kind in SETS:
        total = sum(map(Fraction, case.own or [1.0] * case.size))
        kind = str(rng.choice([kind for kind in SETS if kind != case.kind]))
        coupled = case.coupled
        if "maxclique" in (kind, case.kind):
            pairs = itertools.combinations(range(case.size), 2)
            coupled = {pair: 1.0 for pair in pairs if pair not in coupled}
        other = dataclasses.replace(case, kind=kind, coupled=coupled)
        if "vertex_cover" in (kind, case.kind):
            return Changed(other, Fraction(-1), total)
        return Changed(other)
    linear, pairs, constant = case.terms()
    if case.kind == "ising":
        own = tuple(float(one) for one in linear)
        coupled = {pair: float(one) for pair, one in pairs.items()}
        other = Stated("qubo", case.size, own, coupled)
    else:
        fields = [one / 2 for one in linear]
        for (i, j), one in pairs.items():
            fields[i] += one / 4
            fields[j] += one / 4
        coupled = {pair: float(one / 4) for pair, one in pairs.items()}
        constant += sum(linear) / 2 + sum(pairs.values()) / 4
        other = Stated("ising", case.size, tuple(map(float, fields)), coupled)
    return Changed(other, Fraction(case.sign), -constant)


def change(case, rng, *changes):
    """Applies one of the changes that a problem of this kind has; one that changes nothing does
    not count as an example.
    """
    only_of_forms = moved, in_parts, negated
    known = [
        one
        for one in changes
        if (one not in only_of_forms or case.kind in FORMS)
        and (one is not turned or case.kind not in SETS)
        and (one is not relabelled or case.size > 1)
    ]
    assume(known)
    changed = known[rng.integers(len(known))](case, rng)
    assume(changed.stated != case)
    return changed


# Provers alone, chains alone, without reductions, and both.
BY_CHAINS = {"sampler": "gwg", "steps": 40, "chains": 3, "annealing": (2.0, 0.25), "proofs": False}
HOW = {"provers": {}, "chains": BY_CHAINS, "both": {"presolve": False, "steps": 200, "chains": 2}}


def check_same(first, second, changed):
    """Compares two results bit for bit, up to the unit and the constant of the second one."""
    assert first.states.tobytes() == second.states.tobytes()
    assert first.final_states.tobytes() == second.final_states.tobytes()
    for name in "optimal", "bound_by", "stopped", "presolved", "steps", "acceptance":
        assert getattr(first, name) == getattr(second, name)
    unit = float(changed.unit)
    if changed.constant:
        return
    assert (first.values * unit).tolist() == second.values.tolist()
    assert (first.bound is None) == (second.bound is None)
    assert first.bound is None or first.bound * unit == second.bound
    names = ["best", "mean"]
    # Temperatures of a problem without terms are not its own.
    if any(changed.stated.own or ()) or any(changed.stated.coupled.values()):
        names.append("temperature")
    for name in names:
        size = abs(unit) if name == "temperature" else unit
        one, other = (getattr(result.trajectory, name) for result in (first, second))
        assert (one * size).tolist() == other.tolist()


def solved(case, how, unit=1):
    keywords = dict(HOW[how])
    if "annealing" in keywords:
        keywords["annealing"] = tuple(float(abs(unit)) * one for one in keywords["annealing"])
    return solve(case, seed=1, **keywords)


@law(45, problems(graphs=("small", "trees")), st.sampled_from(tuple(HOW)), SEEDS)
def test_units_senses_constants_and_parts_change_no_bit(case, how, seed):
    changed = change(case, np.random.default_rng(seed), scaled, negated, moved, in_parts)
    optimum = case.optimum()
    first = solved(case, how)
    second = solved(changed.stated, how, changed.unit)
    check_result(case, optimum, first)
    check_result(changed.stated, changed.unit * optimum + changed.constant, second)
    whole = all(normal_form(one.problem()).integer_values for one in (case, changed.stated))
    # The signs of terms bound those in parts that do not merge by more.
    assert first.optimal == second.optimal or not (whole or how != "chains")
    # A state stands for those whose values differ by less than doubles of that size do.
    hides_none = len(set(first.values.tolist())) == len(set(second.values.tolist()))
    if changed.unit != 1 or (whole and hides_none):
        check_same(first, second, changed)


@law(45, problems(numbers=EXACT), SEEDS)
def test_labels_signs_and_kinds_change_no_optimum_and_no_proof(case, seed):
    rng = np.random.default_rng(seed)
    case = dataclasses.replace(case, offset=0.0)
    changed = change(case, rng, relabelled, turned, of_another_kind)
    optimum = case.optimum()
    first = solve(case)
    check_result(case, optimum, first)
    second = solve(changed.stated)
    check_result(changed.stated, changed.unit * optimum + changed.constant, second)
    assert first.optimal and second.optimal


METHODS = "exact", "chain", "tempering", "localization", "low_rank"


# Numbers of like sizes, which chains in single precision can draw.
ALIKE = *EXACT, "hundredths", "real"


@law(
    40,
    problems(KINDS, ("small",), ALIKE),
    st.sampled_from(METHODS),
    st.sampled_from([0.7, 3.0]),
    SEEDS,
)
def test_equal_problems_have_equal_draws(case, method, temperature, seed):
    """At the temperature in the same unit, with another constant, and with terms in parts."""
    rng = np.random.default_rng(seed)
    changed = scaled(case, rng)
    unit = float(changed.unit)
    other = changed.stated
    if case.kind in FORMS:
        other = dataclasses.replace(
            other, offset=unit * float(rng.choice([0.3, 2.0**70])), parts=(0.5, 0.5)
        )
    how = {"method": method, "draws": 16, "groups": 4, "seed": 1}
    if method == "localization":
        how |= {"K": 8, "sigma": 1.0}
    try:
        first = sl_discs.sample(case.problem(), temperature, **how)
    except InputError:  # low_rank, without a direction, and what is cold beside its numbers
        with pytest.raises(InputError):
            sl_discs.sample(other.problem(), temperature * unit, **how)
        return
    second = sl_discs.sample(other.problem(), temperature * unit, **how)
    assert first.states.tobytes() == second.states.tobytes()
    # Beside a constant in whose rounding all values agree, the error of the value is unknown.
    errors = [samples.mean().error for samples in (first, second)]
    hidden = np.isnan(errors[1]) and not np.isnan(errors[0])
    assert second.reliable == (first.reliable and not hidden)
