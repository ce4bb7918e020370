"""Archives of graphs and models: the same bits come back; what is damaged or contradictory is refused by name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.errors import InputError
from sl_discs.instances.archive import KEYS, count_graphs, read_archive, read_forms, write_archive, write_forms
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats import read_instances
from sl_discs.instances.graph import Graph


@st.composite
def graphs(draw, weighted):
    num_nodes = draw(st.integers(1, 9))
    pairs = [(u, v) for u in range(num_nodes) for v in range(u + 1, num_nodes)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weight = st.floats(-1e6, 1e6)
    weights = draw(st.lists(weight, min_size=len(edges), max_size=len(edges))) if weighted else None
    reference = draw(st.none() | st.floats(0, 100))
    name = draw(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5))
    return Graph.from_arrays(name, num_nodes, np.array(edges, int).reshape(-1, 2), weights, reference)


def same(a: Graph, b: Graph) -> bool:
    weights = a.weights is b.weights is None or np.array_equal(a.weights, b.weights)
    heads = (a.name, a.num_nodes, a.reference) == (b.name, b.num_nodes, b.reference)
    return heads and weights and np.array_equal(a.edges, b.edges)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), weighted=st.booleans())
def test_round_trip_of_any_range(tmp_path_factory, data, weighted):
    path = tmp_path_factory.mktemp("archive") / "a.npz"
    originals = data.draw(st.lists(graphs(weighted), max_size=4))
    if weighted and not any(graph.num_edges for graph in originals):
        originals.append(Graph.from_arrays("w", 2, [(0, 1)], [2.5]))
    write_archive(path, originals)
    assert count_graphs(path) == len(originals)
    first = data.draw(st.integers(0, len(originals)))
    stop = data.draw(st.integers(first, len(originals)))
    read = read_archive(path, first, stop)
    assert len(read) == stop - first
    assert all(same(a, b) for a, b in zip(originals[first:stop], read, strict=True))
    assert list(path.parent.iterdir()) == [path]  # no temporary file is left


def arrays(**changes):
    whole = {
        "names": np.array(["a", "b"]),
        "num_nodes": np.array([3, 2]),
        "edge_ptr": np.array([0, 2, 3]),
        "edges": np.array([[0, 1], [1, 2], [0, 1]], np.uint16),
        "edge_weight": np.ones(3),
        "reference": np.array([1.0, np.nan]),
    }
    return {key: value for key, value in {**whole, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"edges": None}, "'edges' is missing"),
        ({"names": None}, "'names' is missing"),
        ({"edges": np.ones((3, 2))}, "expected integers"),
        ({"edges": np.zeros((3, 3), int)}, "shape"),
        ({"edge_ptr": np.array([0, 3])}, "edge_ptr"),
        ({"edge_ptr": np.array([0, 4, 3])}, "edge_ptr must rise"),
        ({"edge_ptr": np.array([1, 2, 3])}, "edge_ptr must rise"),
        ({"edge_ptr": np.array([0, 2, 9])}, "edge_ptr must rise"),
        ({"num_nodes": np.array([3.0, 2.0])}, "num_nodes"),
        ({"num_nodes": np.array([2, 2])}, "nodes are 0..1"),
        ({"num_nodes": np.array([0, 2])}, "empty"),
        ({"edge_weight": np.ones(2)}, "edge_weight"),
        ({"edge_weight": np.array([1, np.nan, 1])}, "nan"),
        ({"edge_weight": np.array([1, np.inf, 1])}, "inf"),
        ({"reference": np.ones(3)}, "reference"),
        ({"edges": np.array([[0, 0], [1, 2], [0, 1]])}, "self-loop"),
        ({"edges": np.array([[0, 1], [1, 0], [0, 1]])}, "more than once"),
        ({"edges": np.array([[0, 1], [1, -1], [0, 1]])}, "nodes are 0..2"),
        ({"names": np.array(["a", None], dtype=object)}, "Object arrays cannot be loaded"),
    ],
)
def test_malformed_archives_are_refused_by_name(tmp_path, changes, says):
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays(**changes))
    with pytest.raises(InputError, match=says) as caught:
        read_archive(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cut_or_foreign_file_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    write_archive(path, [Graph.from_arrays(str(k), 3, [(0, 1)]) for k in range(20)])
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"a\.npz"):
            read_archive(path)
    with pytest.raises(InputError, match="no such file"):
        read_archive(tmp_path / "absent.npz")
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(InputError, match=r"not an \.npz"):
        read_archive(tmp_path / "one.npy")


def test_flipped_bytes_never_escape_as_another_error(tmp_path):
    path = tmp_path / "a.npz"
    write_archive(path, [Graph.from_arrays(str(k), 3, [(0, 1)]) for k in range(20)])
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        damaged = whole.copy()
        damaged[rng.integers(len(whole))] ^= rng.integers(1, 256, dtype=np.uint8)
        path.write_bytes(damaged.tobytes())
        try:
            read_archive(path)
        except InputError:
            refused += 1
    assert refused > 100


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    write_archive(path, [Graph.from_arrays("old", 2, [(0, 1)])])

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(InputError, match="No space left"):
        write_archive(path, [Graph.from_arrays("new", 2, [(0, 1)])])
    assert read_archive(path)[0].name == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_range_outside_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    write_archive(path, [Graph.from_arrays("g", 2, [(0, 1)])])
    with pytest.raises(InputError, match="holds 1"):
        read_archive(path, 0, 2)


def test_weights_beyond_2_to_the_53_are_exact_or_refused(tmp_path):
    path = tmp_path / "a.npz"
    write_archive(path, [Graph.from_arrays("a", 2, [(0, 1)])])
    arrays = dict(np.load(path))
    np.savez(path, **arrays, edge_weight=[2**53 + 2])
    assert read_archive(path)[0].weights.tolist() == [2**53 + 2]
    np.savez(path, **arrays, edge_weight=[2**53 + 1])
    with pytest.raises(InputError, match=r"graph 0: a: weights: 9007199254740993 is beyond 2\^53"):
        read_archive(path)


# Of which a few add up to a finite number.
FINITE = st.floats(-1e300, 1e300)


@st.composite
def forms(draw):
    n = draw(st.integers(1, 5))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=6))
    linear, couplings = (draw(st.lists(FINITE, min_size=k, max_size=k)) for k in (n, len(pairs)))
    return QuadraticForm.from_arrays(
        draw(st.text("aé1-", max_size=4)),
        linear,
        pairs,
        couplings,
        draw(FINITE),
        spins=draw(st.booleans()),
        maximise=draw(st.booleans()),
        reference=draw(st.none() | FINITE),
        offset_rest=draw(st.lists(FINITE.filter(bool), max_size=2)),
    )


def bits(form):
    numbers = np.array([*form.offsets, *form.linear, *form.couplings]).tobytes()
    return form.name, form.spins, form.maximise, form.reference, form.num_variables, form.pairs.tolist(), numbers


@settings(max_examples=40, deadline=None)
@given(drawn=st.lists(forms(), max_size=3))
def test_the_same_bits_come_back(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("forms") / "any.name"
    write_forms(path, drawn)
    assert [bits(form) for form in read_forms(path)] == [bits(form) for form in drawn]
    found = read_instances(path)
    assert [bits(instance.content) for instance in found] == [bits(form) for form in drawn]
    assert all(instance.labels == range(instance.content.num_variables) for instance in found)


def test_whole_numbers_of_models_beyond_2_to_the_53_are_exact_or_refused(tmp_path):
    path = tmp_path / "a.npz"
    form = QuadraticForm.from_arrays("a", [0.0, 0.0], [(0, 1)], [1.0])
    for key in "linear", "couplings", "offset":
        write_forms(path, [form])
        arrays = dict(np.load(path))
        arrays[key] = np.full(len(arrays[key]), 2**53 + 2)
        np.savez(path, **arrays)
        assert read_forms(path)[0].num_variables == 2
        np.savez(path, **arrays | {key: arrays[key] - 1})
        with pytest.raises(InputError, match=r"model 0: a: .*9007199254740993 is beyond 2\^53"):
            read_forms(path)


def test_no_archive_of_models(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_forms(tmp_path / "absent.npz")
    write_archive(tmp_path / "graphs.npz", [Graph.from_arrays("g", 2, [(0, 1)])])
    with pytest.raises(InputError, match="'num_variables' is missing"):
        read_forms(tmp_path / "graphs.npz")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (dict.fromkeys(KEYS[2:3]), "'linear' is missing"),
        ({"names": np.arange(2)}, "names is int64"),
        ({"num_variables": np.array([2.0, 1.0])}, "num_variables is float64"),
        ({"num_variables": np.array([4, -1])}, "negative"),
        ({"num_variables": np.array([2, 2])}, r"linear is float64 of shape \(3,\)"),
        ({"pair_ptr": np.array([0, 1])}, "pair_ptr is int64"),
        ({"pair_ptr": np.array([0, 2, 1])}, "pair_ptr must rise from 0"),
        ({"pairs": np.array([[0, 1, 1]])}, r"pairs is int64 of shape \(1, 3\)"),
        ({"pairs": np.array([[0, 2]])}, r"model 0: a: pair 0 is \(0, 2\)"),
        ({"couplings": np.array([1.0, 2.0])}, "couplings is float64"),
        ({"couplings": np.array([np.nan])}, "model 0: a: coupling 0 is nan"),
        ({"spins": np.array([0, 1])}, "spins is int64 .* truth values"),
        ({"offset": np.array([0, np.inf])}, "model 1: b: offset is inf"),
        ({"offset_rest": np.array([[0], [np.nan]])}, "model 1: b: offset is nan"),
        ({"offset_rest": np.array([1.0, 2.0])}, r"offset_rest is float64 of shape \(2,\)"),
        ({"offset_rest": np.zeros((3, 1))}, r"offset_rest is float64 of shape \(3, 1\)"),
    ],
)
def test_contradictions_are_refused(tmp_path, changes, says):
    two = [QuadraticForm.from_arrays("a", [1.0, 2.0], [(0, 1)], [3.0]), QuadraticForm.from_arrays("b", [1.0], [], [])]
    write_forms(tmp_path / "good.npz", two)
    assert sorted(np.load(tmp_path / "good.npz")) == sorted(KEYS)  # with the rest of no offset, as it always was
    with np.load(tmp_path / "good.npz") as good:
        arrays = {key: array for key, array in ({**good, **changes}).items() if array is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=rf"bad\.npz: .*{says}"):
        read_forms(tmp_path / "bad.npz")
