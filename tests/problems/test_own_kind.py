"""A problem on graphs that is not part of the package, as CONTRIBUTING describes."""

import dataclasses
import itertools
import math
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs.commands.main import main
from sl_discs.instances.formats import FORMATS, Format
from sl_discs.models.terms import Coefficients, merged_pairs
from sl_discs.problems.graph_kind import GraphKind
from sl_discs.problems.kind import KINDS, Evaluated, Kind
from sl_discs.support import own_code
from sl_discs.support.errors import InputError


def _model(graph, penalty):
    return Coefficients(np.ones(graph.num_nodes), graph.edges, np.ones(graph.num_edges), -1.0)


def _count(edges, chosen):
    return float(np.count_nonzero(chosen) - np.count_nonzero(edges.inside(chosen)))


KIND = GraphKind(
    name="sparse_set",
    task="A set of nodes, less the edges inside.",
    problem="sparse set",
    unit="size less edges",
    recounted="recounted from the edges as given",
    model=_model,
    count=_count,
    penalty=None,
)


@pytest.fixture
def sparse_set():
    yield sl_discs.register_problem(KIND)
    del KINDS["sparse_set"]


@pytest.mark.parametrize("part", [nx.complete_graph(7), nx.wheel_graph(7)])
@pytest.mark.parametrize(
    "keywords", [{}, {"time_limit": 60}, {"sampler": "metropolis", "steps": 30_000}]
)
@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.usefixtures("limits_in_cpu_time")
def test_only_enumeration_proves_something(sparse_set, part, keywords, copies):
    optimum = max(
        sum(chosen) - sum(chosen[u] * chosen[v] for u, v in part.edges)
        for chosen in itertools.product((0, 1), repeat=7)
    )
    problem = sparse_set(nx.disjoint_union_all([part] * copies))
    if "time_limit" in keywords:
        keywords = keywords | {"target": copies * optimum}
    result = sl_discs.solve(problem, seed=1, chains=4, **keywords)
    assert (
        result.best_value == copies * optimum
        and problem.value(result.best_sample) == result.best_value
    )
    assert result.optimal == (copies == 1) and result.bound == (
        result.best_value if copies == 1 else None
    )
    assert result.presolved == ""


def test_a_bound_that_an_answer_passes_proves_nothing():
    """It is dropped, and said to be; whatever else is known counts."""
    wrong = GraphKind(
        **vars(KIND) | {"name": "wrong", "bound": lambda graph: 1.0, "bounded_by": "a guess"}
    )
    try:
        small, large = (sl_discs.register_problem(wrong)(nx.path_graph(size)) for size in (7, 40))
        proved, open_ended = (sl_discs.solve(one, steps=4_000, chains=2) for one in (small, large))
    finally:
        del KINDS["wrong"]
    assert (
        proved.optimal
        and proved.best_value == proved.bound == 4
        and proved.bound_by == "enumeration"
    )
    assert open_ended.best_value > 1 and open_ended.bound is None and not open_ended.optimal
    assert open_ended.bound_by == "a guess is left out: an answer passes its bound"


def test_it_is_sampled(sparse_set):
    problem = sparse_set(nx.path_graph(2))
    samples = sl_discs.sample(problem, temperature=1.0, draws=100, method="exact")
    assert samples.log_z[0] == pytest.approx(math.log(1 + 3 * math.e))


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A folder with the page's file of a kind and a file of a graph with weights of either sign;
    the best value.
    """
    for known in KINDS, sys.modules:
        monkeypatch.setitem(known, "agreement", None)  # what is put here is removed at the end
        del known["agreement"]
    monkeypatch.setattr(own_code, "_IMPORTED", {})
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir(tmp_path)
    code = Path(__file__).parents[2] / "examples" / "own" / "agreement.py"
    Path("agreement.py").write_text(code.read_text())
    rng = np.random.default_rng(0)
    weights = {edge: round(rng.normal(), 2) for edge in nx.gnp_random_graph(14, 0.5, seed=2).edges}
    Path("people.edges").write_text(
        "".join(f"{u} {v} {weight}\n" for (u, v), weight in weights.items())
    )
    groups = itertools.product((0, 1), repeat=14)
    return max(
        math.fsum(w for (u, v), w in weights.items() if group[u] == group[v]) for group in groups
    )


@pytest.mark.parametrize("given", ["agreement.py", "agreement"])
def test_commands_know_an_imported_kind(people, given, capsys):
    known = f"--import={given}", "--problem=agreement"
    assert (
        main(["sl-discs", "solve", "people.edges", *known, "--save=groups.json", "--seed=1"]) == 0
    )
    out = capsys.readouterr().out
    assert f"best {people:.12g}" in out and "optimal, proved by" in out and "edges, weighted" in out
    assert main(["sl-discs", "check", "people.edges", "groups.json", f"--import={given}"]) == 0
    assert "counted: good" in capsys.readouterr().out
    assert (
        main(["sl-discs", "sample", "people.edges", *known, "--temperature=1", "--draws=2000"]) == 0
    )
    assert "agreement" in capsys.readouterr().out
    result = sl_discs.solve(sl_discs.read("people.edges", "agreement"), seed=0)
    assert result.optimal and result.best_value == people
    # What its rules leave of a larger one has the value of the cut with the other signs.
    larger, rng = nx.gnp_random_graph(60, 0.1, seed=1), np.random.default_rng(1)
    signs = {edge: float(rng.choice([-1, -1, 1, 2])) for edge in larger.edges}
    nx.set_edge_attributes(larger, signs, "weight")
    result = sl_discs.solve(sys.modules["agreement"].agreement(larger), seed=0)
    nx.set_edge_attributes(larger, {edge: -sign for edge, sign in signs.items()}, "weight")
    cut = sl_discs.solve(sl_discs.maxcut(larger), seed=0)
    assert (
        result.optimal and cut.optimal and result.best_value == sum(signs.values()) + cut.best_value
    )
    assert result.presolved == cut.presolved and re.match(
        r"[1-9]\d* of 60 variables left", cut.presolved
    )


def test_a_problem_that_no_code_registers_is_named(people, capsys):
    said = r"problem is 'agreement'; known: qubo, .* and one that register_problem or --import=FILE adds$"
    for arguments in (["solve", "people.edges"], ["sample", "people.edges", "--temperature=1"]):
        assert main(["sl-discs", *arguments, "--problem=agreement"]) == 2
        assert re.match(f"error: --{said}", capsys.readouterr().err)
    with pytest.raises(InputError, match=said):
        sl_discs.read("people.edges", "agreement")


@dataclasses.dataclass(frozen=True)
class Clauses:
    """A formula of clauses with two literals, another source than graphs and quadratic forms."""

    name: str
    num_variables: int
    literals: np.ndarray  # [M, 2] v or -v for the variable v - 1

    own_problem: ClassVar[str] = "max_2_sat"
    words: ClassVar[tuple[str, str, str]] = ("formula", "variable", "clause")
    coefficients: ClassVar[dict] = {}

    @property
    def num_terms(self):
        return len(self.literals)

    def satisfied(self, state):
        return int((state[np.abs(self.literals) - 1] == (self.literals > 0)).any(axis=1).sum())


def _clauses_model(clauses, penalty):
    """A clause is not satisfied where the product of (constant + slope x) of its literals is 1."""
    slopes = np.where(clauses.literals > 0, -1.0, 1.0)
    constants = (clauses.literals > 0).astype(float)
    ends = np.abs(clauses.literals).astype(np.int32) - 1
    linear = np.zeros(clauses.num_variables)
    np.add.at(linear, ends, -slopes * constants[:, ::-1])
    pairs, weights = merged_pairs(clauses.num_variables, ends, -slopes.prod(axis=1))
    constant = clauses.num_terms - constants.prod(axis=1).sum()
    return Coefficients(linear, pairs, weights, 1.0, constant=float(constant))


class ClausesKind(Kind):
    def accepts(self, source):
        return isinstance(source, Clauses)

    def evaluator(self, source):
        def evaluate(states):
            values = np.array([source.satisfied(state) for state in states], float)
            return Evaluated(values, np.ones(len(states), bool), states)

        return evaluate

    def exact_values(self, source, states):
        return [Fraction(source.satisfied(state)) for state in states]

    def fixed(self, source, penalty, state, free):
        raise NotImplementedError


def _read_clauses(source):
    rows = np.array([line.split() for _, line in source.lines()], int)
    size = int(np.abs(rows).max())
    return [(Clauses(source.name, size, rows), range(1, size + 1))]


def test_a_kind_may_have_a_source_and_a_format_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(FORMATS, "two_sat", Format("", _read_clauses, rb"-?[1-9]\d* -?[1-9]\d*\n"))
    kind = ClausesKind(name="max_2_sat", recounted="recounted", model=_clauses_model, maximise=True)
    monkeypatch.setitem(KINDS, "max_2_sat", kind)
    path = tmp_path / "formula"
    path.write_text("1 2\n1 -2\n-1 3\n-1 -3\n2 -3\n")
    problem = sl_discs.read(path)
    assert sl_discs.solve(problem, seed=0).best_value == 4
    states = np.array(list(itertools.product((0, 1), repeat=3)), np.int8)
    assert problem.terms().values(states).tolist() == problem.evaluate(states).values.tolist()
    with pytest.raises(InputError, match=r"mis is not posed on a Clauses; .*max_2_sat$"):
        sl_discs.read(path, "mis")
    assert main(["sl-discs", "solve", str(path), "--seed=0"]) == 0
    assert "3 variables, 5 clauses" in capsys.readouterr().out
    target = str(tmp_path / "out.npz")
    assert main(["sl-discs", "convert", str(path), target]) == 2
    assert "holds a formula, which cannot be written" in capsys.readouterr().err
