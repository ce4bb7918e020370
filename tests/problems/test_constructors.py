"""Whatever form a problem comes in: its value at any answer is that of its definition, by its
owner's own labels.
"""

import itertools
import math
import warnings
from pathlib import Path

import dimod
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs import InputError
from sl_discs.solving.options import as_states

numbers = st.integers(-8, 8) | st.floats(-1e3, 1e3, allow_nan=False).map(lambda v: round(v, 3))
label = st.text(max_size=2) | st.integers(-3, 9) | st.tuples(st.integers(0, 3), st.text(max_size=1))
labels_of = st.lists(label, min_size=1, max_size=6, unique=True)
cheap = settings(max_examples=40, deadline=None)


@st.composite
def terms(draw, own=True):
    """Labels, and coefficients of pairs of them in any direction."""
    labels = draw(labels_of)
    pairs = st.tuples(st.sampled_from(labels), st.sampled_from(labels)).filter(
        lambda p: own or p[0] != p[1]
    )
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
    assert_value(
        problem, sample, offset + sum(q * sample[i] * sample[j] for (i, j), q in Q.items())
    )


@cheap
@given(
    st.data(),
    st.integers(1, 5),
    st.sampled_from([np.array, scipy.sparse.csr_array, scipy.sparse.coo_matrix]),
)
def test_a_qubo_of_a_matrix(data, size, form):
    Q = np.array(data.draw(st.lists(numbers, min_size=size**2, max_size=size**2))).reshape(
        size, size
    )
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
    J = np.array(data.draw(st.lists(numbers, min_size=size**2, max_size=size**2))).reshape(
        size, size
    )
    h = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)))
    pairs = {(i, j): J[i, j] for i, j in itertools.product(range(size), repeat=2)}
    problem = sl_discs.ising(
        h, pairs if dict_of_pairs else scipy.sparse.coo_array(J) if sparse else J
    )
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
    zeros = {label: int(value > 0) for label, value in sample.items()}
    assert_value(sl_discs.qubo(bqm.to_qubo()), zeros, bqm.energy(sample))


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


def test_every_public_name_is_found_and_documented():
    """`__init__.pyi` is what editors and type checkers see, and what is loaded."""
    stub = (Path(sl_discs.__file__).parent / "__init__.pyi").read_text()
    loaded = {line.split()[-1] for line in stub.splitlines() if line.startswith("from ")}
    assert set(sl_discs.__all__) == loaded | {"__version__"}
    for name in loaded:
        found = getattr(sl_discs, name)
        assert found.__name__ == name and found.__doc__
    with pytest.raises(AttributeError, match="maxcuts"):
        sl_discs.maxcuts  # noqa: B018


def dict_model(value):
    """A dimod model that keeps Python's numbers, as its dict-based classes do."""
    return dimod.BinaryQuadraticModel(
        {"a": 1, "b": 2}, {("a", "b"): value}, 0, "BINARY", dtype=object
    )


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
        weights = (
            source.weights
            if hasattr(source, "weights")
            else [*source.linear, *source.couplings, source.offset]
        )
        assert value in [int(weight) for weight in weights if weight is not None]
    for value in 2**53 + 1, -(2**53) - 1, 3 * 2**60 + 1:
        with pytest.raises(InputError):
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


def quadratic_model(label, bias):
    model = dimod.QuadraticModel()
    model.add_variable("BINARY", label)
    model.set_linear(label, bias)
    return model


@pytest.mark.parametrize(
    "model",
    [
        lambda: dimod.ConstrainedQuadraticModel.from_bqm(dimod.BQM({"a": -1.5}, {}, 0, "BINARY")),
        lambda: quadratic_model("a", -1.5),
        lambda: dimod.BinaryPolynomial({"a": -1.5, "ab": 1, "abc": 2}, "BINARY"),
        dimod.DiscreteQuadraticModel,
    ],
)
def test_other_models_of_dimod_are_read_as_the_message_says(model):
    model = model()
    with pytest.raises(
        InputError, match="a dimod BinaryQuadraticModel is expected; give"
    ) as caught:
        sl_discs.from_bqm(model)
    call = (
        str(caught.value)
        .partition("; give ")[2]
        .partition(", which has")[0]
        .partition(" with a")[0]
    )
    if isinstance(model, dimod.DiscreteQuadraticModel):
        model.add_variable(2, "a")
        model.set_linear("a", [1, -1.5])
    bqm = eval(call, {"dimod": dimod, "model": model, "strength": 5.0})
    best = sl_discs.solve(sl_discs.from_bqm(bqm)).best_value
    assert best == pytest.approx(-1.5)


def test_labels_of_frames_and_series_count_and_not_their_order():
    names = list("bac")
    weights = pd.DataFrame([[-5.0, 3, 0], [1, -4, 0], [0, 0, 2]], index=names, columns=names)
    for frame in weights, weights[["c", "a", "b"]], weights.loc[["a", "c", "b"]]:
        problem = sl_discs.qubo(frame)
        assert list(problem.labels) == list(frame.index)
        for x in itertools.product([0, 1], repeat=3):
            sample = dict(zip("abc", x, strict=True))
            expected = sum(weights.loc[i, j] * sample[i] * sample[j] for i in names for j in names)
            assert (
                problem.value(sample)
                == expected
                == problem.value(pd.Series(sample)[["c", "b", "a"]])
            )
    cut = pd.DataFrame([[0, 5, 0], [5, 0, 1], [0, 1, 0]], index=names, columns=names)
    for frame in cut, cut[["c", "a", "b"]]:
        found = sl_discs.solve(sl_discs.maxcut(frame))
        assert (
            found.best_value == 6
            and found.best_sample["a"] != found.best_sample["b"] == found.best_sample["c"]
        )
    for entries in [[0, 1], [0, 0]], [[0, 0], [1, 0]]:  # a triangle of two nodes, not two edges
        pair = sl_discs.mis(pd.DataFrame(entries, index=["a", "b"], columns=["a", "b"]))
        assert pair.num_variables == 2 and sl_discs.solve(pair).best_value == 1
    fields = pd.Series({"c": 3.0, "a": -1.0, "b": 2.0})
    for couplings in cut, cut.stack(), {("b", "a"): 10.0, ("a", "c"): 2.0}:
        model = sl_discs.ising(fields, couplings)
        assert model.value({"a": 1, "b": -1, "c": 1}) == -1 - 2 + 3 - 10 + 2
    cover = sl_discs.mis(cut, weight=pd.Series({"c": 1.5, "b": 1, "a": 2}))
    assert sl_discs.solve(cover).best_value == 2.5
    starts = pd.DataFrame([[1, 0, 0], [0, 1, 1]], columns=["a", "b", "c"])
    assert as_states(cover, starts, 2).tolist() == [[0, 1, 0], [1, 0, 1]]
    assert as_states(cover, starts.iloc[0], 2).tolist() == [[0, 1, 0]]


def test_lists_are_read_as_the_same_array_is():
    for edges in (
        [[0, 1, 0], [1, 0, 1], [0, 1, 0]],
        [[0, 2.5], [2.5, 0]],
        [[0, 1], [1, 0]],
        [[0, 1], [1, 2]],
        [(0, 1), (1, 2), (0, 2)],
        [[0, 3]],
    ):
        one, other = sl_discs.maxcut(edges).source, sl_discs.maxcut(np.array(edges)).source
        assert one.num_nodes == other.num_nodes and one.edges.tolist() == other.edges.tolist()
        assert (one.weights is None) == (other.weights is None)
        assert one.weights is None or one.weights.tolist() == other.weights.tolist()
    assert sl_discs.maxcut(pd.DataFrame({"s": [0, 1, 5], "t": [1, 2, 0]})).num_variables == 6


def test_weights_of_edges_under_another_name_are_told_and_used():
    graph = nx.Graph([("a", "b", {"cost": 2.5, "id": 1}), ("b", "c", {"cost": 1.5, "id": 2})])
    with pytest.warns(
        UserWarning, match=r"of edges under cost do not count; weights='cost' uses them"
    ) as told:
        assert sl_discs.solve(sl_discs.maxcut(graph)).best_value == 2
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sl_discs.solve(sl_discs.maxcut(graph, weights="cost")).best_value == 4
        assert sl_discs.solve(sl_discs.mis(graph)).best_value == 2


def test_a_masked_entry_of_a_matrix_is_no_edge_and_no_coupling():
    path = hidden([[0.0, 1, 9], [1, 0, 1], [9, 1, 0]], [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    for matrix in path, path.astype(int), path.astype(bool), np.ma.masked_equal(path.data, 9):
        assert sl_discs.maxcut(matrix).source.edges.tolist() == [[0, 1], [1, 2]]
        assert [
            sl_discs.solve(make(matrix)).best_value for make in (sl_discs.mis, sl_discs.maxcut)
        ] == [2, 2]
    model = sl_discs.qubo(hidden([[1.0, 5], [0, 1]], [[0, 1], [0, 0]]), maximise=True)
    assert sl_discs.solve(model).best_value == 2
    model = sl_discs.ising(
        hidden([1.0, 7.0], [0, 1]), np.ma.masked_invalid([[0, math.nan], [2.0, 0]])
    )
    assert model.value([1, 1]) == 3 and model.value([1, -1]) == -1
    no_mask = np.ma.masked_array([[0, 1], [2, 3]])
    assert sl_discs.maxcut(no_mask).source.edges.tolist() == [[0, 1], [2, 3]]


def test_neighbours_are_those_of_the_edges_in_order():
    """Whatever the order and direction of the edges; a node without edges has none."""
    graph = sl_discs.maxcut(
        [[3, 1], [0, 3], [2, 1], [0, 1]], weights=[5.0, 6.0, 7.0, 8.0], num_nodes=5
    ).source
    near = graph.neighbours
    assert near is graph.neighbours and near.starts.tolist() == [0, 2, 5, 6, 8, 8]
    assert near.others.tolist() == [1, 3, 0, 2, 3, 1, 0, 1]
    entries = np.stack([np.repeat(np.arange(5), np.diff(near.starts)), near.others], axis=1)
    np.testing.assert_array_equal(np.sort(near.ends[near.numbers]), np.sort(entries))
    expected = nx.to_numpy_array(nx.Graph([(3, 1), (0, 3), (2, 1), (0, 1)]), nodelist=range(4))
    np.testing.assert_array_equal(near.matrix(np.ones(4)).toarray()[:4, :4], expected)
    assert near.matrix(graph.weights)[1, 2] == near.matrix(graph.weights)[2, 1] == 7.0


def test_sums_beyond_the_range_are_refused_without_a_warning():
    with warnings.catch_warnings(), pytest.raises(InputError, match="1e307"):
        warnings.simplefilter("error")
        sl_discs.qubo(np.full((2, 2), 1e308))
