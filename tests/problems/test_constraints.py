"""Constraints by label: what is refused, and that answers are checked against the constraints as given."""

import itertools
from fractions import Fraction

import dimod
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs import InputError
from sl_discs.reductions.penalised import penalised

cheap = settings(max_examples=60, deadline=None)
LABELS = ("a", 1, ("c", 2), "d", 5)
COMPARED = {"==": int.__eq__, "<=": int.__le__, ">=": int.__ge__}


@st.composite
def constraints(draw, labels=LABELS):
    chosen = draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
    numbers = {label: draw(st.integers(-6, 6).filter(bool)) for label in chosen}
    some = draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    bound = sum(number for number, taken in zip(numbers.values(), some, strict=True) if taken)
    return sl_discs.linear(numbers, draw(st.sampled_from(sorted(COMPARED))), bound)


def holds(constraint, sample):
    side = sum(number * sample[label] for label, number in constraint.coefficients.items())
    return COMPARED[constraint.sense](side, constraint.bound)


@cheap
@given(st.lists(constraints(), min_size=1, max_size=3))
def test_answers_are_checked_against_the_constraints_as_given(given_constraints):
    linear = {(label, label): k - 2.5 for k, label in enumerate(LABELS)}
    plain = sl_discs.qubo(linear)
    samples = [dict(zip(plain.labels, x, strict=True)) for x in itertools.product((0, 1), repeat=5)]
    try:
        problem = sl_discs.qubo(linear, constraints=given_constraints)
    except InputError as error:
        # Each is met by some assignment, so only two of them together can be impossible.
        assert "contradict" in str(error)
        assert not any(all(holds(one, sample) for one in given_constraints) for sample in samples)
        return
    feasible = problem.evaluate(np.stack([problem.as_state(sample) for sample in samples])).feasible
    for sample, found in zip(samples, feasible, strict=True):
        expected = [holds(one, sample) for one in given_constraints]
        assert found == all(expected) and len(problem.violated(sample)) == expected.count(False)
        assert problem.value(sample) == plain.value(sample)


def test_groups_are_sums():
    assert sl_discs.exactly(2, ["a", "b"]) == sl_discs.linear({"a": 1, "b": 1}, "==", 2)
    assert sl_discs.one_hot(range(2)) == sl_discs.linear({0: 1, 1: 1}, "==", 1)
    assert sl_discs.at_most(1, range(2), name="n") == sl_discs.linear({0: 1, 1: 1}, "<=", 1, name="n")
    assert sl_discs.at_least(1, range(2)) == sl_discs.linear({0: 1, 1: 1, 2: 0}, ">=", 1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sl_discs.exactly(1, []), "the group is empty"),
        (lambda: sl_discs.exactly(1, "abc"), "the group is 'abc'; expected labels"),
        (lambda: sl_discs.exactly(1, [["a", "b"]]), "['a', 'b'] is not a label"),
        (lambda: sl_discs.linear({"a": 10**5000}, "<=", 1), "the coefficient of 'a' has over 300 digits"),
        (lambda: sl_discs.one_hot(["a", "b", "a"], name="row"), "constraint 'row': 'a' is twice in the group"),
        (lambda: sl_discs.at_most(1.5, ["a"]), "the bound is 1.5; expected a whole number"),
        (lambda: sl_discs.linear({"a": 0.5}, "<=", 1), "the coefficient of 'a' is 0.5; expected a whole number"),
        (lambda: sl_discs.linear({"a": 0}, "<=", 1), "no variables"),
        (lambda: sl_discs.linear({"a": 2**20, "b": 1}, "<=", 1), "add up to more than 2^20"),
        (lambda: sl_discs.linear({"a": 1}, "<", 1), "sense is '<'; known: ==, <=, >="),
        (lambda: sl_discs.linear([1, 2], "<=", 1), "expected a dict"),
    ],
)
def test_bad_constraints_are_refused(make, words):
    with pytest.raises(InputError) as raised:
        make()
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("given_constraints", "words"),
    [
        ([sl_discs.one_hot(["a", "z"])], "constraints[0] (x['a'] + x['z'] == 1): 'z' is not a variable"),
        (
            [sl_discs.one_hot(["a", "b"]), sl_discs.exactly(3, ["a", "b"], name="many")],
            "constraints[1] ('many') holds for no assignment: the left-hand side is from 0 to 2",
        ),
        ([sl_discs.linear({"a": 2, "b": 4}, "==", 3)], "a multiple of 2"),
        (
            [sl_discs.linear({"a": 1, "b": -1}, ">=", 1), sl_discs.linear({"b": 2, "a": -2}, ">=", 0)],
            "constraints[0] (x['a'] + -1 x['b'] >= 1) and constraints[1] (2 x['b'] + -2 x['a'] >= 0) contradict each",
        ),
        (["a + b == 1"], "constraints[0] (a + b == 1) is not a constraint"),
        (sl_discs.one_hot(["a"]), "constraints is a Linear; expected a list"),
        (7, "constraints is a int; expected a list"),
    ],
)
def test_bad_lists_of_constraints_are_refused(given_constraints, words):
    with pytest.raises(InputError) as raised:
        sl_discs.qubo({("a", "b"): 1}, constraints=given_constraints)
    assert words in str(raised.value)


def test_without_constraints_it_is_a_qubo():
    assert sl_discs.qubo({("a", "b"): 1}, constraints=[]).kind == "qubo"


def test_sampling_is_refused():
    problem = sl_discs.qubo({("a", "b"): 1}, constraints=[sl_discs.one_hot(["a", "b"])])
    with pytest.raises(InputError, match="can only be solved"):
        sl_discs.sample(problem)


def model_of_dimod():
    model = dimod.ConstrainedQuadraticModel()
    a, b, s = dimod.Binary("a"), dimod.Binary("b"), dimod.Spin("s")
    model.set_objective(a * s + 3 * b - 2 * a * b - s + 0.5)
    model.add_constraint(a + 0.5 * b - 0.1 * s - 0.25 <= 1, label="cap")
    model.add_constraint(a + b + s >= 0, label=("row", 1))
    return model


def test_a_model_of_dimod():
    model = model_of_dimod()
    problem = sl_discs.from_cqm(model)
    for values in itertools.product((0, 1), repeat=3):
        sample = dict(zip(problem.labels, values, strict=True))
        theirs = sample | {"s": 2 * sample["s"] - 1}
        assert problem.value(sample) == model.objective.energy(theirs)
        broken = [label for label in model.constraints if model.violations(theirs)[label] > 1e-9]
        assert [word.split("(", 1)[1] for word in problem.violated(sample)] == [f"{str(one)!r})" for one in broken]


def test_models_of_dimod_that_are_refused():
    def refused(change, words):
        model = model_of_dimod()
        change(model)
        with pytest.raises(InputError) as raised:
            sl_discs.from_cqm(model)
        assert words in str(raised.value)

    a, b = dimod.Binary("a"), dimod.Binary("b")
    refused(lambda model: model.add_variable("INTEGER", "n"), "the variable 'n' is INTEGER")
    refused(lambda model: model.add_constraint(a * b <= 0, label="q"), "the constraint 'q' is quadratic")
    refused(lambda model: model.add_constraint(a + b <= 1, label="w", weight=2.0), "the constraint 'w' is soft")
    refused(lambda model: model.add_constraint(a + np.pi * b <= 1, label="p"), "has the coefficient 3.14159")
    refused(lambda model: model.add_constraint(a + b >= 3, label="no"), "('no') holds for no assignment")
    with pytest.raises(InputError, match="a dict where a dimod ConstrainedQuadraticModel is expected"):
        sl_discs.from_cqm({})
    with pytest.raises(InputError, match="no variables"):
        sl_discs.from_cqm(dimod.ConstrainedQuadraticModel())


wide = st.builds(
    lambda sign, part, power: sign * part * 10.0**power,
    st.sampled_from([-1, 1]),
    st.floats(0.1, 1),
    st.sampled_from([-3, 0, 9, 16]),
)


@cheap
@given(st.data())
def test_models_of_dimod_are_converted_exactly(data):
    """Spins become zeros and ones without rounding, also where coefficients have many sizes, and so do bounds."""
    types = data.draw(st.lists(st.sampled_from(["SPIN", "BINARY"]), min_size=1, max_size=5))
    model = dimod.QuadraticModel()
    for variable, kind in enumerate(types):
        model.add_variable(kind, variable)
        model.set_linear(variable, data.draw(wide))
    for one, other in itertools.combinations(range(len(types)), 2):
        if data.draw(st.booleans()):
            model.set_quadratic(one, other, data.draw(wide))
    model.offset = data.draw(wide)
    cqm = dimod.ConstrainedQuadraticModel()
    cqm.set_objective(model)
    if data.draw(st.booleans()):
        side = dimod.QuadraticModel()
        side.add_variable(types[0], 0)
        side.set_linear(0, 1)
        cqm.add_constraint(side, "<=", 0, label="c")
    problem = sl_discs.from_cqm(cqm)

    def exact(sample):
        v = [2 * x - 1 if kind == "SPIN" else x for x, kind in zip(sample, types, strict=True)]
        pairs = sum(Fraction(number) * v[a] * v[b] for (a, b), number in model.quadratic.items())
        return Fraction(model.offset) + pairs + sum(Fraction(model.linear[k]) * v[k] for k in range(len(v)))

    values = {x: exact(x) for x in itertools.product((0, 1), repeat=len(types))}
    feasible = [float(value) for x, value in values.items() if not problem.violated(x)]
    assert [problem.value(x) for x in values] == [float(value) for value in values.values()]
    states = np.array(list(values), np.int8)
    assert problem.evaluate(states).values.tolist() == [float(value) for value in values.values()]
    assert float(problem.bound(2.0)) <= min(feasible)
    assert sl_discs.solve(problem).best_value == min(feasible)
    if problem.constrained:
        with_penalties = penalised(problem, np.array([4.0]))
        held = states[problem.evaluate(states).feasible]
        lifted = with_penalties.problem.evaluate(with_penalties.extend(held)).values
        assert lifted.tolist() == problem.evaluate(held).values.tolist()


def test_a_small_field_beside_large_couplings_is_not_lost():
    a, b = dimod.Spin("a"), dimod.Spin("b")
    cqm = dimod.ConstrainedQuadraticModel()
    cqm.set_objective(1e9 * a * b + 0.1 * a + 1e9)
    problem = sl_discs.from_cqm(cqm)
    assert problem.value({"a": 0, "b": 1}) == -0.1 == sl_discs.solve(problem).best_value
