"""The backend of networkx: its answers obey the laws of networkx's functions, and are best on small
graphs.
"""

import fractions
import importlib.metadata
import inspect
import itertools
import random
import sys
import tomllib
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import call

from sl_discs import InputError, networkx_backend

ROOT = Path(__file__).parents[1]
NAME = "sl_discs"
APPROX = nx.approximation
SERVED = {
    "maximum_independent_set": APPROX.maximum_independent_set,
    "max_clique": APPROX.max_clique,
    "max_weight_clique": nx.max_weight_clique,
    "min_weighted_vertex_cover": APPROX.min_weighted_vertex_cover,
    "one_exchange": APPROX.one_exchange,
}
EXAMPLES = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module", autouse=True)
def registered():
    """Registers the backend as its entry points do, also where the package is only on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nx.config, "fallback_to_nx", False)
        if NAME not in nx.utils.backends.backends:
            entry = importlib.metadata.EntryPoint(
                NAME, "sl_discs.networkx_backend", "networkx.backends"
            )
            info = networkx_backend.get_info()
            config = nx.utils.Config(
                **{**nx.config.backends, NAME: nx.utils.Config(**info["default_config"])}
            )
            patch.setitem(nx.utils.backends.backends, NAME, entry)
            patch.setitem(nx.utils.backends.backend_info, NAME, info)
            patch.setattr(nx.config, "backends", config)
            dispatched = nx.utils.backends._dispatchable
            patch.setattr(dispatched, "__call__", dispatched._call_if_any_backends_installed)
        yield


@st.composite
def graphs(draw, kind=nx.Graph, loops=True):
    """Up to seven nodes with labels of any type, in any order, whole weights of nodes and real ones
    of edges.
    """
    n = draw(st.integers(0, 7))
    label = st.one_of(
        st.integers(-3, 9),
        st.text("ab", max_size=2),
        st.tuples(st.integers(0, 1), st.integers(0, 1)),
    )
    labels = draw(st.lists(label, min_size=n, max_size=n, unique=True))
    pairs = [(u, v) for u in labels for v in labels if loops or u != v]
    graph = kind()
    graph.add_nodes_from((node, {"weight": draw(st.integers(-2, 9))}) for node in labels)
    for u, v in draw(st.lists(st.sampled_from(pairs), max_size=16)) if pairs else []:
        graph.add_edge(
            u,
            v,
            **draw(
                st.fixed_dictionaries({}, optional={"w": st.integers(-8, 8).map(lambda k: k / 4)})
            ),
        )
    return graph


def subsets(graph):
    return (
        set(chosen)
        for size in range(len(graph) + 1)
        for chosen in itertools.combinations(graph, size)
    )


def independent(graph, chosen):
    return not any(u in chosen and v in chosen for u, v in graph.edges if u != v)


def is_clique(graph, chosen):
    return all(graph.has_edge(u, v) for u, v in itertools.combinations(chosen, 2))


@EXAMPLES
@given(graphs())
def test_sets_and_cliques_are_the_largest(graph):
    for name, valid in ("maximum_independent_set", independent), ("max_clique", is_clique):
        found = SERVED[name](graph, backend=NAME)
        assert type(found) is set and found <= set(graph) and valid(graph, found)
        assert len(found) == max(len(chosen) for chosen in subsets(graph) if valid(graph, chosen))


@EXAMPLES
@given(st.one_of(graphs(), graphs(nx.MultiGraph)), st.booleans())
def test_cliques_are_the_heaviest(graph, counted):
    weight = dict(graph.nodes.data("weight")) if counted else dict.fromkeys(graph, 1)
    arguments = {} if counted else {"weight": None}
    found, total = nx.max_weight_clique(graph, backend=NAME, **arguments)
    assert type(found) is list and len(set(found)) == len(found) and is_clique(graph, found)
    assert type(total) is int and total == sum(weight[node] for node in found)
    assert total == max(
        sum(weight[v] for v in chosen) for chosen in subsets(graph) if is_clique(graph, chosen)
    )
    assert total == nx.max_weight_clique(graph, backend="networkx", **arguments)[1]


@EXAMPLES
@given(
    st.one_of(graphs(), graphs(nx.MultiGraph), graphs(nx.DiGraph)),
    st.sampled_from([None, "weight", "w"]),
)
def test_covers_are_the_lightest(graph, attribute):
    found = APPROX.min_weighted_vertex_cover(graph, attribute, backend=NAME)
    weight = dict(graph.nodes(data=attribute, default=1))
    covers = [
        one for one in subsets(graph) if all(u in one or v in one for u, v, *_ in graph.edges)
    ]
    assert type(found) is set and found in covers
    assert sum(weight[v] for v in found) == min(sum(weight[v] for v in one) for one in covers)


@EXAMPLES
@given(graphs(), st.sampled_from([None, "w"]), st.integers(0, 2**32 - 1))
def test_cuts_are_the_heaviest(graph, weight, seed):
    value, (one, other) = APPROX.one_exchange(graph, weight=weight, seed=seed, backend=NAME)
    assert type(one) is type(other) is set and one | other == set(graph) and not one & other
    assert value == nx.cut_size(graph, one, weight=weight)
    assert value == max(nx.cut_size(graph, chosen, weight=weight) for chosen in subsets(graph))


def test_what_networkx_refuses_is_refused():
    for name in ("maximum_independent_set", "max_clique", "one_exchange"):
        for kind in nx.DiGraph, nx.MultiGraph:
            with pytest.raises(nx.NetworkXNotImplemented):
                SERVED[name](kind([(0, 1)]), backend=NAME)
    graph = nx.path_graph(3)
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.max_weight_clique(nx.DiGraph([(0, 1)]), backend=NAME)
    with pytest.raises(KeyError):
        nx.max_weight_clique(graph, backend=NAME)
    nx.set_node_attributes(graph, 1.5, "weight")
    with pytest.raises(ValueError):
        nx.max_weight_clique(graph, backend=NAME)
    with pytest.raises(InputError):
        APPROX.one_exchange(nx.Graph([(0, 1, {"weight": np.nan})]), weight="weight", backend=NAME)


@pytest.mark.parametrize(
    "weight", [2**53 + 1, -(10**400), float("inf")], ids=["inexact", "large", "infinite"]
)
def test_weights_beyond_double_precision_are_left_to_networkx(weight):
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, weight, "weight")
    nx.set_edge_attributes(graph, weight, "weight")
    calls = {"min_weighted_vertex_cover": {}, "one_exchange": {"seed": 1}}
    if isinstance(weight, int):
        calls["max_weight_clique"] = {}
    for name, arguments in calls.items():
        with pytest.raises(NotImplementedError):
            SERVED[name](graph, weight="weight", backend=NAME, **arguments)
        with nx.config(backend_priority=[NAME]):
            found = SERVED[name](graph, weight="weight", **arguments)
        assert found == SERVED[name](graph, weight="weight", backend="networkx", **arguments)
    assert (
        len(APPROX.min_weighted_vertex_cover(graph, backend=NAME)) == 2
    )  # which does not look at them


@pytest.mark.parametrize("one", [True, 2**53, np.float32(0.5), fractions.Fraction(1, 4)], ids=repr)
def test_weights_are_numbers_of_any_type(one):
    graph = nx.cycle_graph(5)
    nx.set_node_attributes(graph, one, "weight")
    nx.set_edge_attributes(graph, one, "weight")
    assert APPROX.one_exchange(graph, weight="weight", backend=NAME)[0] == 4 * (
        1 if one == 1 else one
    )
    assert len(APPROX.min_weighted_vertex_cover(graph, "weight", backend=NAME)) == 3
    if isinstance(one, int):
        assert nx.max_weight_clique(graph, backend=NAME)[1] == 2 * one


def test_a_cut_is_never_below_the_one_it_starts_from(monkeypatch):
    graph = nx.gnp_random_graph(24, 0.3, seed=0)
    planted = {*range(12), "elsewhere"}
    found = APPROX.one_exchange(graph, planted, seed=0, backend=NAME)[0]
    assert found >= nx.cut_size(graph, planted)
    # As it would be if the search found nothing as good.
    monkeypatch.setattr(networkx_backend, "_solved", lambda *arguments, **more: (set(), False))
    value, (one, other) = APPROX.one_exchange(graph, planted, backend=NAME)
    assert value == nx.cut_size(graph, planted)
    assert (one, other) == (set(range(12)), set(range(12, 24)))


def test_equal_seeds_give_equal_answers():
    graph = nx.gnp_random_graph(40, 0.1, seed=0)
    for make in (lambda: 3, lambda: random.Random(3), lambda: np.random.default_rng(3)):
        first, again = (APPROX.one_exchange(graph, seed=make(), backend=NAME) for _ in range(2))
        assert first == again


@pytest.mark.usefixtures("limits_in_cpu_time")
def test_time_limits_are_checked_and_may_be_configured():
    graph = nx.gnp_random_graph(30, 0.5, seed=0)
    for function in SERVED.values():
        arguments = {"weight": None} if function is nx.max_weight_clique else {}
        with pytest.raises(InputError):
            function(graph, backend=NAME, time_limit=0, **arguments)
        with nx.config.backends[NAME](time_limit=-1), pytest.raises(InputError):
            function(graph, backend=NAME, **arguments)
    assert len(APPROX.max_clique(graph, backend=NAME, time_limit=5)) == len(
        APPROX.max_clique(graph, backend=NAME)
    )


def test_a_clique_without_a_proof_is_told(monkeypatch):
    solved = networkx_backend._solved
    monkeypatch.setattr(
        networkx_backend, "_solved", lambda *arguments, **more: (solved(*arguments)[0], False)
    )
    with pytest.warns(RuntimeWarning, match="not proved to be the heaviest"):
        assert nx.max_weight_clique(nx.complete_graph(3), None, backend=NAME)[1] == 3


def test_nothing_is_cached_of_a_graph_that_may_change():
    graph = nx.path_graph(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            found = APPROX.max_clique(graph, backend=NAME)
        graph._adj[0][2] = graph._adj[2][0] = {}
        assert len(found) == 2 and APPROX.max_clique(graph, backend=NAME) == {0, 1, 2}


def test_arguments_are_those_of_networkx_and_more():
    names = {
        name for name in dir(networkx_backend) if name in nx.utils.backends._registered_algorithms
    }
    assert names == set(SERVED) == set(networkx_backend.get_info()["functions"])
    for name, function in SERVED.items():
        ours = list(inspect.signature(getattr(networkx_backend, name)).parameters.values())
        theirs = list(inspect.signature(function.orig_func).parameters.values())
        assert [(one.name, one.default) for one in ours[: len(theirs)]] == [
            (one.name, one.default) for one in theirs
        ]
        extra = networkx_backend.get_info()["functions"][name]["additional_parameters"]
        assert {one.name for one in ours[len(theirs) :]} == {
            text.partition(" ")[0] for text in extra
        }


def in_networkx(tmp_path, *arguments, **environment):
    """Runs Python in a process where the entry points of pyproject.toml are installed."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    folder = tmp_path / "sl_discs-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: sl_discs\nVersion: 0.1.0\n")
    lines = (
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in found.items())
        for group, found in points.items()
    )
    (folder / "entry_points.txt").write_text("\n".join(lines))
    return call(sys.executable, *arguments, cwd=tmp_path, path=[tmp_path, *sys.path], **environment)


def test_networkx_knows_the_backend_and_loads_nothing_for_it(tmp_path):
    code = """
import sys, networkx as nx
assert nx.config.backends.sl_discs.time_limit is None
assert "sl_discs" in nx.approximation.max_clique.backends and "time_limit" in nx.approximation.max_clique.__doc__
nx.utils.backends._load_backend("sl_discs")
assert not {"jax", "numba", "numpy", "scipy"} & set(sys.modules)
assert nx.approximation.max_clique(nx.complete_graph(5), backend="sl_discs") == set(range(5))
"""
    done = in_networkx(tmp_path, "-W", "error::RuntimeWarning", "-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_tests_of_networkx_itself(tmp_path):
    files = (
        "tests.test_max_weight_clique", "tests.test_clique",
        "approximation.tests.test_maxcut", "approximation.tests.test_vertex_cover", "approximation.tests.test_clique",
    )  # fmt: skip
    modules = [f"networkx.algorithms.{name}" for name in files]
    options = {"NETWORKX_TEST_BACKEND": NAME, "NETWORKX_FALLBACK_TO_NX": "True"}
    done = in_networkx(
        tmp_path,
        "-m",
        "pytest",
        "-q",
        "-rx",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        *modules,
        **options,
    )
    assert done.returncode == 0, done.stdout
