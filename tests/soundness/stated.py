"""Problems in numbers, with their values and optima from their definitions alone, in fractions."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections.abc import Mapping
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

import sl_discs
from sl_discs.problems import Problem
from sl_discs.problems.problem import normal_form
from sl_discs.solving.provers.integer import integer_prover
from sl_discs.solving.workers import WORKERS, workers_of

SETS = "mis", "maxclique", "vertex_cover"
FORMS = "qubo", "ising"
KINDS = (*SETS, "maxcut", *FORMS)


@dataclasses.dataclass(frozen=True)
class Stated:
    """A problem of a kind on `size` variables.

    Attributes:
      own: [N] numbers of variables: weights of nodes, or linear coefficients; None: there are none.
      coupled: numbers by pair; for sets only the pairs count.
      parts: of each number of a form, the factors of the parts in which it is given, at most two.
    """

    kind: str
    size: int
    own: tuple[float, ...] | None
    coupled: Mapping[tuple[int, int], float | Fraction]
    offset: float = 0.0
    maximise: bool = True
    parts: tuple[float, ...] = (1.0,)

    def problem(self) -> Problem:
        """Returns the problem as a user gives it."""
        edges = np.array(list(self.coupled), int).reshape(-1, 2)
        if self.kind in SETS:
            make = getattr(sl_discs, self.kind)
            return make(edges, weight=self.own, num_nodes=self.size)
        if self.kind == "maxcut":
            weights = np.array(list(self.coupled.values()))
            return sl_discs.maxcut(edges, weights, num_nodes=self.size)
        terms = {}
        for (i, j), number in self.coupled.items():
            ends = (i, j), (j, i)
            terms |= {end: part * number for end, part in zip(ends, self.parts, strict=False)}
        keywords = {"offset": self.offset, "maximise": self.maximise}
        own = dict(enumerate(self.own or [0.0] * self.size))
        if self.kind == "ising":
            return sl_discs.ising(own, terms, **keywords)
        return sl_discs.qubo({(i, i): number for i, number in own.items()} | terms, **keywords)

    @property
    def sign(self) -> int:
        """1 where the largest value is the best, -1 otherwise."""
        if self.kind in FORMS:
            return 1 if self.maximise else -1
        return -1 if self.kind == "vertex_cover" else 1

    def value(self, state) -> Fraction | None:
        """Returns the exact value of a state of zeros and ones; None: it has a conflict."""
        state = [int(one) for one in state]
        if self.kind in SETS:
            if any(state[i] == state[j] == self._conflict for i, j in self._conflicts()):
                return None
            own = self.own or [1.0] * self.size
            return sum((Fraction(own[i]) for i in range(self.size) if state[i]), Fraction(0))
        if self.kind == "maxcut":
            cut = (w for (i, j), w in self.coupled.items() if state[i] != state[j])
            return sum(map(Fraction, cut), Fraction(0))
        v = [2 * one - 1 for one in state] if self.kind == "ising" else state
        linear = sum(Fraction(h) * one for h, one in zip(self.own or [], v, strict=False))
        pairs = sum(Fraction(k) * v[i] * v[j] for (i, j), k in self.coupled.items())
        return Fraction(self.offset) + linear + pairs

    @property
    def _conflict(self) -> int:
        """The value that two ends of a conflict must not share."""
        return 0 if self.kind == "vertex_cover" else 1

    def _conflicts(self) -> list[tuple[int, int]]:
        if self.kind != "maxclique":
            return list(self.coupled)
        joined = {frozenset(pair) for pair in self.coupled}
        pairs = itertools.combinations(range(self.size), 2)
        return [pair for pair in pairs if frozenset(pair) not in joined]

    def terms(self) -> tuple[list[Fraction], dict[tuple[int, int], Fraction], Fraction]:
        """Returns linear coefficients, those of pairs and a constant, of a function of zeros and
        ones that is maximised: the best value of feasible states, times the sign.
        """
        linear = [Fraction(self.sign) * Fraction(one) for one in self.own or [0.0] * self.size]
        pairs = {pair: Fraction(self.sign) * Fraction(k) for pair, k in self.coupled.items()}
        constant = Fraction(self.sign) * Fraction(self.offset)
        if self.kind in SETS:
            linear = [Fraction(self.sign) * Fraction(w) for w in self.own or [1.0] * self.size]
            penalty = 1 + 2 * sum(map(abs, linear))
            pairs = {}
            constant = Fraction(0)
            for i, j in self._conflicts():
                pairs[i, j] = -penalty
                if self._conflict == 0:
                    linear[i] += penalty
                    linear[j] += penalty
                    constant -= penalty
        elif self.kind == "maxcut":
            for (i, j), weight in pairs.items():
                linear[i] += weight
                linear[j] += weight
            pairs = {pair: -2 * weight for pair, weight in pairs.items()}
        elif self.kind == "ising":
            constant += sum(pairs.values()) - sum(linear)
            linear = [2 * field for field in linear]
            for (i, j), coupling in pairs.items():
                linear[i] -= 2 * coupling
                linear[j] -= 2 * coupling
            pairs = {pair: 4 * coupling for pair, coupling in pairs.items()}
        return linear, pairs, constant

    def optimum(self, values: dict[int, int] | None = None) -> Fraction | None:
        """Returns the best value, by elimination, of states that have these values, zeros and ones
        by variable; None: they all have conflicts.
        """
        linear, pairs, constant = self.terms()
        values = values or {}
        kept = [i for i in range(self.size) if i not in values]
        constant += sum(linear[i] for i, value in values.items() if value)
        left = {}
        for (i, j), weight in pairs.items():
            if i not in values and j not in values:
                left[kept.index(i), kept.index(j)] = weight
            elif i in values and j in values:
                constant += weight * values[i] * values[j]
            elif i in values:
                linear[j] += weight * values[i]
            else:
                linear[i] += weight * values[j]
        best = highest([linear[i] for i in kept], left, constant)
        if self.kind in SETS and best < -sum(map(Fraction, self.own or [1.0] * self.size)):
            return None
        return self.sign * best


def highest(
    linear: list[Fraction], pairs: dict[tuple[int, int], Fraction], constant: Fraction
) -> Fraction:
    """Returns the largest value of a quadratic function of zeros and ones: bucket elimination of
    the variable with the fewest neighbours, in whole multiples of the least unit.
    """
    unit = math.lcm(*(one.denominator for one in [*linear, *pairs.values(), constant]))
    tables = [((i,), np.array([0, int(unit * one)], object)) for i, one in enumerate(linear)]
    tables += [
        (pair, np.array([[0, 0], [0, int(unit * one)]], object)) for pair, one in pairs.items()
    ]
    near: dict[int, set[int]] = {i: set() for i in range(len(linear))}
    for i, j in pairs:
        near[i].add(j)
        near[j].add(i)
    most = int(unit * constant)
    while near:
        gone = min(near, key=lambda one: len(near[one]))
        around = near.pop(gone)
        assert len(around) < 18, "too wide to be eliminated"
        scope = (*sorted(around), gone)
        total = np.zeros((2,) * len(scope), object)
        for variables, table in tables:
            if gone in variables:
                order = np.argsort([scope.index(one) for one in variables])
                shape = [2 if one in variables else 1 for one in scope]
                total = total + table.transpose(order).reshape(shape)
        tables = [one for one in tables if gone not in one[0]]
        best = total.max(axis=-1)
        if around:
            tables.append((scope[:-1], best))
        else:
            most += int(best)
        for one in around:
            near[one] = (near[one] | around) - {one, gone}
    return Fraction(most, unit)


def by_highs(stated: Stated) -> Fraction:
    """Returns the best value by an integer program with a variable for each product."""
    linear, pairs, _ = stated.terms()
    if stated.kind in SETS:
        linear = [Fraction(stated.sign) * Fraction(w) for w in stated.own or [1.0] * stated.size]
    size = len(linear)
    costs = [-float(one) for one in linear]
    rows, low, high = [], [], []

    def bounded(entries: dict[int, float], least: float, most: float) -> None:
        rows.append(entries)
        low.append(least)
        high.append(most)

    for (i, j), weight in pairs.items():
        if stated.kind in SETS:
            least, most = (1, 2) if stated.kind == "vertex_cover" else (0, 1)
            bounded({i: 1, j: 1}, least, most)
            continue
        product = len(costs)
        costs.append(-float(weight))
        bounded({i: 1, j: 1, product: -1}, -np.inf, 1)
        bounded({i: 1, product: -1}, 0, np.inf)
        bounded({j: 1, product: -1}, 0, np.inf)
    matrix = sparse.lil_array((len(rows), len(costs)))
    for row, entries in enumerate(rows):
        for column, entry in entries.items():
            matrix[row, column] = entry
    constraints = optimize.LinearConstraint(matrix.tocsr(), low, high) if rows else ()
    found = optimize.milp(
        costs,
        constraints=constraints,
        integrality=np.ones(len(costs)),
        bounds=optimize.Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    value = stated.value(np.rint(found.x[:size]))
    assert found.success and value is not None
    return value


def stated_of(problem: Problem) -> Stated:
    """Returns a problem, such as what reductions leave of another one, in numbers."""
    source = problem.source
    if problem.kind not in FORMS:
        numbers = np.ones(source.num_edges) if source.weights is None else source.weights
        own = None if source.node_weights is None else tuple(source.node_weights.tolist())
        coupled = dict(zip(map(tuple, source.edges.tolist()), numbers.tolist(), strict=True))
        return Stated(problem.kind, source.num_nodes, own, coupled)
    coupled = collections.defaultdict(Fraction)
    for i, j, coupling in zip(*source.pairs.T.tolist(), source.couplings, strict=True):
        coupled[min(i, j), max(i, j)] += Fraction(coupling)
    own = tuple(source.linear.tolist())
    return Stated(
        problem.kind, problem.num_variables, own, dict(coupled), source.offset, problem.maximise
    )


def check_result(case: Stated, optimum: Fraction, result: sl_discs.Result) -> None:
    """An answer, all chains, the bound and the proof, by their definitions."""
    exact = case.value([result.best_sample[k] > 0 for k in range(case.size)])
    assert result.feasible and result.best_value == float(exact)
    of_chains = [case.value(state > 0) for state in result.states]
    assert result.values.tolist() == [float(value) for value in of_chains]
    assert result.best_value == case.sign * max(case.sign * result.values)
    assert case.sign * exact <= case.sign * optimum
    assert not result.optimal or exact == optimum
    if result.bound is not None and not result.optimal:
        assert case.sign * Fraction(result.bound) >= case.sign * optimum
    assert result.optimal or result.stopped != "bound"
    assert "left out" not in result.bound_by


def solve(case: Stated, **keywords) -> sl_discs.Result:
    """Solves a problem; without integer programs where numbers are not whole: they would go on, in
    a process, for what rounding leaves open.
    """
    problem = case.problem()
    with pytest.MonkeyPatch.context() as patch:
        if not normal_form(problem).integer_values:
            workers = workers_of(problem)
            provers = tuple(one for one in workers.provers if one is not integer_prover)
            patch.setitem(WORKERS, case.kind, workers._replace(provers=provers))
        return sl_discs.solve(problem, **keywords)


# What is drawn.


def _real(rng, count):
    return rng.normal(size=count)


# Numbers of each class; those of one class may be too unlike for sums in double precision.
NUMBERS = {
    "whole": lambda rng, count: rng.integers(-9, 10, count),
    "equal": lambda rng, count: np.full(count, rng.choice([-3, -1, 1, 2])),
    "signs": lambda rng, count: rng.choice([-1, 1], count),
    "negative": lambda rng, count: -rng.integers(1, 10, count),
    "mostly zero": lambda rng, count: rng.integers(-3, 4, count) * (rng.random(count) < 0.3),
    "eighths": lambda rng, count: rng.integers(-40, 41, count) / 8,
    "large": lambda rng, count: rng.integers(-(2**24), 2**24, count),
    "hundredths": lambda rng, count: rng.integers(-300, 301, count) / 100,
    "real": _real,
    "sixteen sizes": lambda rng, count: _real(rng, count) * 10.0 ** rng.integers(-8, 9, count),
    "hidden": lambda rng, count: rng.choice([1e17, -1e17, *[1.0, -1.0, 3e-9] * 3], count),
    "tiny": lambda rng, count: _real(rng, count) * 2.0**-70,
    "huge": lambda rng, count: _real(rng, count) * 2.0**70,
}
# Classes whose values are whole multiples of a unit, below 2^53 of them.
EXACT = "whole", "equal", "signs", "negative", "mostly zero", "eighths", "large"


def _small(rng) -> nx.Graph:
    return nx.gnp_random_graph(int(rng.integers(1, 10)), rng.random(), seed=int(rng.integers(1e9)))


def _band(rng) -> nx.Graph:
    """Nodes in a row, joined to some of the next six: nothing that rules remove, and narrow."""
    size, density = int(rng.integers(20, 41)), rng.uniform(0.4, 0.9)
    graph = nx.empty_graph(size)
    for i in range(size):
        graph.add_edges_from(
            (i, j) for j in range(i + 1, min(i + 7, size)) if rng.random() < density
        )
    return graph


def _trees(rng) -> nx.Graph:
    """A core of which rules leave some, with trees and a second component around it."""
    size, more = int(rng.integers(5, 10)), int(rng.integers(8, 16))
    graph = nx.gnp_random_graph(size, rng.uniform(0.7, 1.0), seed=int(rng.integers(1e9)))
    graph.add_edges_from((int(rng.integers(node)), node) for node in range(size, size + more))
    return nx.disjoint_union(graph, nx.path_graph(int(rng.integers(1, 4))))


def _several(rng) -> nx.Graph:
    """Components of which rules leave some."""
    sizes = rng.integers(5, 10, int(rng.integers(2, 5))).tolist()
    return nx.disjoint_union_all(
        nx.gnp_random_graph(size, rng.uniform(0.5, 1.0), seed=int(rng.integers(1e9)))
        for size in sizes
    )


def _small_world(rng) -> nx.Graph:
    """Sparse and with many triangles, on which all rules of sets are met."""
    return nx.watts_strogatz_graph(int(rng.integers(20, 33)), 6, 0.2, seed=int(rng.integers(1e9)))


def _torus(rng) -> nx.Graph:
    sides = int(rng.integers(4, 7)), int(rng.integers(5, 7))
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(*sides, periodic=True))


GRAPHS = {
    "small": _small,
    "band": _band,
    "trees": _trees,
    "several": _several,
    "small world": _small_world,
    "torus": _torus,
}


# Terms whole, halved, and split into parts of both signs.
PARTS = (1.0,), (0.5, 0.5), (2.0, -1.0)


def stated(kind: str, graph: str, numbers: str, seed: int, weighted=True) -> Stated:
    """Returns a problem on a random graph of a family or, for cliques, on its complement."""
    rng = np.random.default_rng(seed)
    drawn = GRAPHS[graph](rng)
    size = len(drawn)
    # Cliques of what is sparse are found at once, and elimination is of the missing edges.
    if kind == "maxclique" and size > 12:
        drawn = nx.complement(drawn)
    order = rng.permutation(size).tolist()
    pairs = sorted(tuple(sorted((order[u], order[v]))) for u, v in drawn.edges)
    some = NUMBERS[numbers]
    coupled = dict(zip(pairs, map(float, some(rng, len(pairs))), strict=True))
    own = tuple(map(float, some(rng, size)))
    if kind in SETS:
        own = tuple(map(abs, own))
    if kind == "maxcut" or not weighted:
        own = None
    return Stated(kind, size, own, coupled)


@st.composite
def problems(
    draw, kinds=KINDS, graphs=tuple(GRAPHS), numbers=tuple(NUMBERS), weighted=(False, True)
) -> Stated:
    """A problem of one of the kinds, on a graph of one of the families, in either sense."""
    choices = [draw(st.sampled_from(names)) for names in (kinds, graphs, numbers)]
    case = stated(*choices, draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from(weighted)))
    if case.kind not in FORMS:
        return case
    changes = {"offset": [0.0, 0.3, -2.0, 2.0**70], "maximise": [False, True], "parts": PARTS}
    return dataclasses.replace(
        case, **{name: draw(st.sampled_from(values)) for name, values in changes.items()}
    )


# How it is tested.

_MANY = 60
_TIMES = [1, pytest.param(_MANY, marks=pytest.mark.slow)]


def law(examples: int, *strategies):
    """Decorates a function of what the strategies draw, which checks one example."""

    def decorate(check):
        @pytest.mark.parametrize("times", _TIMES, ids=["few", "many"])
        def test(times):
            few = settings(
                max_examples=times * examples,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            few(given(*strategies)(check))()

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        return test

    return decorate
