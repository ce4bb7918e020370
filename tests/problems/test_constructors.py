"""Whatever form a problem comes in: its value at any answer is that of its definition, by its owner's own labels."""

import itertools
import math
from pathlib import Path

import dimod
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs import InputError

numbers = st.integers(-8, 8) | st.floats(-1e3, 1e3, allow_nan=False).map(lambda v: round(v, 3))
label = st.text(max_size=2) | st.integers(-3, 9) | st.tuples(st.integers(0, 3), st.text(max_size=1))
labels_of = st.lists(label, min_size=1, max_size=6, unique=True)
cheap = settings(max_examples=40, deadline=None)


@st.composite
def terms(draw, own=True):
    """Labels, and coefficients of pairs of them in any direction."""
    labels = draw(labels_of)
    pairs = st.tuples(st.sampled_from(labels), st.sampled_from(labels)).filter(lambda p: own or p[0] != p[1])
    count = len(labels) if own or len(labels) > 1 else 0
    return labels, draw(st.dictionaries(pairs, numbers, max_size=2 * count))


def some_sample(data, labels, values):
    return {label: data.draw(st.sampled_from(values)) for label in labels}


def assert_value(problem, sample, expected):
    """By label, by position, and back."""
    assert problem.value(sample) == pytest.approx(expected, rel=1e-12, abs=1e-9)
    state = problem.as_state(sample)
    assert dict(zip(problem.labels, problem.as_values(state).tolist(), strict=True)) == sample
    assert problem.value([sample[label] for label in problem.labels]) == problem.value(sample)


@cheap
@given(st.data(), terms(), numbers, st.booleans())
def test_a_qubo_of_a_dict(data, labelled, offset, maximise):
    labels, Q = labelled
    Q |= {(label, label): Q.get((label, label), 0) for label in labels}
    problem = sl_discs.qubo(Q, offset=offset, maximise=maximise)
    assert set(problem.labels) == set(labels) and problem.maximise == maximise
    sample = some_sample(data, labels, (0, 1))
    assert_value(problem, sample, offset + sum(q * sample[i] * sample[j] for (i, j), q in Q.items()))


@cheap
@given(st.data(), st.integers(1, 5), st.sampled_from([np.array, scipy.sparse.csr_array, scipy.sparse.coo_matrix]))
def test_a_qubo_of_a_matrix(data, size, form):
    Q = np.array(data.draw(st.lists(numbers, min_size=size**2, max_size=size**2))).reshape(size, size)
    problem = sl_discs.qubo(form(Q))
    assert problem.labels == range(size) and not problem.maximise
    x = np.array(data.draw(st.lists(st.sampled_from((0, 1)), min_size=size, max_size=size)))
    assert problem.value(x) == pytest.approx(x @ Q @ x, abs=1e-9)


@cheap
@given(st.data(), terms(own=False), numbers, st.booleans())
def test_an_ising_model_of_dicts(data, labelled, offset, maximise):
    labels, J = labelled
    h = {label: data.draw(numbers) for label in labels}
    problem = sl_discs.ising(h, J, offset=offset, maximise=maximise)
    sample = some_sample(data, labels, (-1, 1))
    assert set(problem.labels) == set(labels) and problem.spins and problem.maximise == maximise
    assert_value(problem, sample, dimod.ising_energy(sample, h, J, offset))


@cheap
@given(st.data(), st.integers(1, 5), st.booleans(), st.booleans())
def test_an_ising_model_of_arrays(data, size, sparse, dict_of_pairs):
    J = np.array(data.draw(st.lists(numbers, min_size=size**2, max_size=size**2))).reshape(size, size)
    h = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)))
    pairs = {(i, j): J[i, j] for i, j in itertools.product(range(size), repeat=2)}
    problem = sl_discs.ising(h, pairs if dict_of_pairs else scipy.sparse.coo_array(J) if sparse else J)
    s = np.array(data.draw(st.lists(st.sampled_from((-1, 1)), min_size=size, max_size=size)))
    assert problem.value(s) == pytest.approx(h @ s + s @ J @ s, abs=1e-9)
    assert sl_discs.ising(dict(enumerate(h)), J).value(s) == problem.value(s)
    assert sl_discs.ising(None, J).value(s) == pytest.approx(s @ J @ s, abs=1e-9)


@cheap
@given(st.data(), terms(own=False), numbers, st.sampled_from(["BINARY", "SPIN"]))
def test_a_bqm(data, labelled, offset, vartype):
    labels, quadratic = labelled
    linear = {label: data.draw(numbers) for label in labels}
    bqm = dimod.BinaryQuadraticModel(linear, quadratic, offset, vartype)
    problem = sl_discs.from_bqm(bqm)
    assert list(problem.labels) == list(bqm.variables) and not problem.maximise
    sample = some_sample(data, labels, (-1, 1) if vartype == "SPIN" else (0, 1))
    assert_value(problem, sample, bqm.energy(sample))


@cheap
@given(st.data(), terms(own=False))
def test_cuts_of_graphs_in_every_form(data, labelled):
    labels, weights = labelled
    graph = nx.Graph()
    graph.add_nodes_from(labels)
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in weights.items())
    place = {label: k for k, label in enumerate(graph)}
    edges = np.array([(place[u], place[v]) for u, v in graph.edges], int).reshape(-1, 2)
    numbers = np.array([graph.edges[edge]["weight"] for edge in graph.edges], float)
    adjacency = nx.to_scipy_sparse_array(graph, dtype=float)
    sample = some_sample(data, labels, (0, 1))
    expected = sum(w for u, v, w in graph.edges.data("weight") if sample[u] != sample[v])
    assert_value(sl_discs.maxcut(graph), sample, expected)
    x = [sample[label] for label in graph]
    canonical = sl_discs.Graph.from_arrays("g", len(graph), edges, numbers)
    for problem in (
        sl_discs.maxcut(edges, numbers, num_nodes=len(graph)),
        sl_discs.maxcut(adjacency),
        sl_discs.maxcut(scipy.sparse.triu(adjacency)),
        sl_discs.maxcut(adjacency.toarray()),
        sl_discs.maxcut(np.tril(adjacency.toarray())),
        sl_discs.maxcut(canonical),
    ):
        assert problem.labels == range(len(graph)) and problem.maximise
        assert problem.value(x) == pytest.approx(expected, abs=1e-9)


def test_labels_are_those_that_were_given():
    assert sl_discs.qubo({(3, 1): 1.0, (2, 0): 1.0}).labels == range(4)
    assert sl_discs.qubo({(7, 1): 1.0}).labels == (1, 7)
    assert sl_discs.qubo({("b", "a"): 1.0}).labels == ("b", "a")
    assert sl_discs.ising({"z": 1.0}, {("a", "z"): 2.0}).labels == ("z", "a")
    assert sl_discs.maxcut(nx.Graph([(2, 1), (1, 0)])).labels == range(3)
    assert sl_discs.mis(nx.Graph([("x", 0)])).labels == ("x", 0)
    assert sl_discs.mis([[0, 4]]).num_variables == 5


NAN = math.nan
BAD = {
    "a self-loop": (sl_discs.maxcut, (nx.Graph([(0, 0), (0, 1)]),), "self-loop at node 0"),
    "an edge twice": (sl_discs.maxcut, ([[0, 1], [1, 0]],), "more than once"),
    "the name of a file": (sl_discs.maxcut, ("G1.rudy",), r"read a file with sl_discs.read\('G1.rudy', 'maxcut'\)"),
    "a NaN weight between labels": (
        sl_discs.maxcut,
        (nx.Graph([("b", "c", {"weight": 1.0}), ("a", ("b", 1), {"weight": NAN})]),),
        r"the weight of edge \('a', \('b', 1\)\) is nan; expected a finite number",
    ),
    "a QUBO with a NaN": (sl_discs.qubo, ({("a", "b"): NAN},), "Q at 'a', 'b' is nan"),
    "a key that is no pair": (sl_discs.qubo, ({"ab": 1},), "'ab'; expected a pair"),
    "a label beside an array": (sl_discs.ising, (np.ones(2), {(0, "a"): 1}), "'a' is not one of the labels"),
    "no BQM": (sl_discs.from_bqm, ({},), "dict where a dimod"),
}
OPTIONS = {
    "penalty": (sl_discs.mis, [[0, 1]], ["2", True, NAN, 0.5]),
    "num_nodes": (sl_discs.maxcut, [[0, 1]], [2.5, "2", -1]),
    "offset": (sl_discs.qubo, np.eye(2), [None, "1", math.inf]),
    "maximise": (sl_discs.ising, {"a": 1.0}, ["no", None, 1]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_explained(case):
    constructor, arguments, message = BAD[case]
    with pytest.raises(InputError, match=message):
        constructor(*arguments)


@pytest.mark.parametrize("option", OPTIONS)
def test_bad_options_are_named(option):
    constructor, content, values = OPTIONS[option]
    arguments = (content, {}) if constructor is sl_discs.ising else (content,)
    for value in values:
        with pytest.raises(InputError, match=f"{option} is "):
            constructor(*arguments, **{option: value})


def test_bad_answers_are_explained():
    problem = sl_discs.ising({"a": 1.0, "b": 1.0}, {})
    for sample, message in (
        ({"a": 1}, "no value for 'b'"),
        ({"a": 1, "b": 0}, "'b' is 0; expected -1 or 1"),
        ([1, 1, 1], "shape"),
    ):
        with pytest.raises(InputError, match=message):
            problem.value(sample)


def test_every_public_name_is_found_and_documented():
    """`__init__.pyi` is what editors and type checkers see, and what is loaded."""
    stub = (Path(sl_discs.__file__).parent / "__init__.pyi").read_text()
    assert set(sl_discs.__all__) == {line.split()[-1] for line in stub.splitlines() if line.startswith("from ")}
    for name in sl_discs.__all__:
        found = getattr(sl_discs, name)
        assert name == "__version__" or (found.__name__ == name and found.__doc__)
    with pytest.raises(AttributeError, match="maxcuts"):
        sl_discs.maxcuts  # noqa: B018


def dict_model(value):
    """A dimod model that keeps Python's numbers, as its dict-based classes do."""
    return dimod.BinaryQuadraticModel({"a": 1, "b": 2}, {("a", "b"): value}, 0, "BINARY", dtype=object)


EXACT = {
    "edges": lambda value: sl_discs.maxcut([(0, 1), (1, 2)], [1, value]),
    "array": lambda value: sl_discs.maxcut([(0, 1)], np.array([value])),
    "dict": lambda value: sl_discs.qubo({("a", "b"): value, ("a", "a"): 0.5}),
    "matrix": lambda value: sl_discs.qubo([[0, value], [0, 0]]),
    "bqm": lambda value: sl_discs.from_bqm(dict_model(value)),
}


@pytest.mark.parametrize("name", EXACT)
def test_whole_numbers_beyond_2_to_the_53_are_exact_or_refused(name):
    for value in 2**53 + 2, -3 * 2**60:
        source = EXACT[name](value).source
        weights = source.weights if hasattr(source, "weights") else [*source.linear, *source.couplings, source.offset]
        assert value in [int(weight) for weight in weights if weight is not None]
    for value in 2**53 + 1, -(2**53) - 1, 3 * 2**60 + 1:
        with pytest.raises(InputError, match=rf"{value} is beyond 2\^53 and not exact"):
            EXACT[name](value)


@pytest.mark.parametrize(("whole", "terms"), [(True, 15), (False, 30)])
def test_both_entries_of_a_pair_become_one_term_where_their_sum_is_exact(whole, terms):
    rng = np.random.default_rng(0)
    Q = rng.integers(1, 9, (6, 6)).astype(float) if whole else rng.normal(size=(6, 6))
    problem = sl_discs.qubo(Q)
    assert len(problem.source.couplings) == terms
    for x in rng.integers(0, 2, (20, 6)):
        assert problem.value(x) == math.fsum(Q[np.ix_(x > 0, x > 0)].ravel())


def hidden(values, mask):
    return np.ma.masked_array(values, mask=mask)


def test_a_masked_entry_of_a_matrix_is_no_edge_and_no_coupling():
    path = hidden([[0.0, 1, 9], [1, 0, 1], [9, 1, 0]], [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    for matrix in path, path.astype(int), path.astype(bool), np.ma.masked_equal(path.data, 9):
        assert sl_discs.maxcut(matrix).source.edges.tolist() == [[0, 1], [1, 2]]
        assert [sl_discs.solve(make(matrix)).best_value for make in (sl_discs.mis, sl_discs.maxcut)] == [2, 2]
    model = sl_discs.qubo(hidden([[1.0, 5], [0, 1]], [[0, 1], [0, 0]]), maximise=True)
    assert sl_discs.solve(model).best_value == 2
    model = sl_discs.ising(hidden([1.0, 7.0], [0, 1]), np.ma.masked_invalid([[0, NAN], [2.0, 0]]))
    assert model.value([1, 1]) == 3 and model.value([1, -1]) == -1
    no_mask = np.ma.masked_array([[0, 1], [2, 3]])
    assert sl_discs.maxcut(no_mask).source.edges.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: sl_discs.maxcut(hidden([[0, 1], [1, 2], [0, 2]], [[0, 0], [0, 0], [0, 1]])),
        lambda: sl_discs.maxcut([[0, 1], [1, 2]], hidden([1.0, 2.0], [0, 1])),
        lambda: sl_discs.mis(nx.path_graph(2)).evaluate(hidden([[1, 0]], [[0, 1]])),
        lambda: sl_discs.solve(sl_discs.mis(nx.path_graph(2)), initial_states=hidden([1, 0], [0, 1])),
    ],
)
def test_masked_entries_elsewhere_are_refused(make):
    with pytest.raises(InputError, match="masked entries; fill them"):
        make()
