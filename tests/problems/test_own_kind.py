"""A problem on graphs that is not part of the package, as CONTRIBUTING describes."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs.errors import InputError
from sl_discs.models.terms import Coefficients
from sl_discs.problems.graph_kind import GRAPH_KINDS, GraphKind
from sl_discs.problems.kind import KINDS


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
    del KINDS["sparse_set"], GRAPH_KINDS["sparse_set"]


@pytest.mark.parametrize("part", [nx.complete_graph(7), nx.wheel_graph(7)])
@pytest.mark.parametrize("keywords", [{}, {"time_limit": 60}, {"sampler": "metropolis", "steps": 30_000}])
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
    assert result.best_value == copies * optimum and problem.value(result.best_sample) == result.best_value
    assert result.optimal == (copies == 1) and result.bound == (result.best_value if copies == 1 else None)
    assert result.presolved == "" and result.sampler != "exchange"


def test_it_is_sampled(sparse_set):
    problem = sparse_set(nx.path_graph(2))
    samples = sl_discs.sample(problem, temperature=1.0, draws=100, method="exact")
    assert samples.log_z[0] == pytest.approx(math.log(1 + 3 * math.e))


def test_names_are_taken_once(sparse_set):
    assert sl_discs.register_problem(KIND) is not None
    with pytest.raises(InputError, match="there is a problem 'sparse_set' already"):
        sl_discs.register_problem(GraphKind(**vars(KIND) | {"count": lambda edges, chosen: 0.0}))
    with pytest.raises(InputError, match="expected a GraphKind"):
        sl_discs.register_problem(_model)
