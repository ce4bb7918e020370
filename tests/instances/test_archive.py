"""Archives of graphs and models: the same bits come back; what is damaged or contradictory is
refused by name.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.instances.archive import (
    count_graphs,
    read_archive,
    read_forms,
    write_archive,
    write_forms,
)
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats import read_instances
from sl_discs.instances.graph import Graph
from sl_discs.support.errors import InputError

NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
# Of which a few add up to a finite number.
FINITE = st.floats(-1e300, 1e300)


@st.composite
def graphs(draw, weighted):
    n = draw(st.integers(1, 9))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weights = draw(st.lists(FINITE, min_size=len(edges), max_size=len(edges))) if weighted else None
    nodes = draw(st.lists(st.floats(0, 1e300), min_size=n, max_size=n)) if weighted else None
    reference = draw(st.none() | st.floats(0, 100))
    return Graph.from_arrays(
        draw(NAME), n, np.array(edges, int).reshape(-1, 2), weights, reference, nodes
    )


@st.composite
def forms(draw):
    n = draw(st.integers(1, 5))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=6))
    linear, couplings = (draw(st.lists(FINITE, min_size=k, max_size=k)) for k in (n, len(pairs)))
    flags = {name: draw(st.booleans()) for name in ("spins", "maximise")}
    reference = draw(st.none() | FINITE)
    return QuadraticForm.from_arrays(
        draw(NAME), linear, pairs, couplings, draw(FINITE), reference=reference, **flags
    )


def bits(one):
    return [
        value.tobytes() if isinstance(value, np.ndarray) else value for value in vars(one).values()
    ]


@settings(max_examples=30, deadline=None)
@given(data=st.data(), weighted=st.booleans())
def test_the_same_graphs_come_back_in_any_range(tmp_path_factory, data, weighted):
    path = tmp_path_factory.mktemp("archive") / "any.name"
    drawn = data.draw(st.lists(graphs(weighted), min_size=1, max_size=4))
    write_archive(path, drawn)
    assert count_graphs(path) == len(drawn)
    first = data.draw(st.integers(0, len(drawn)))
    stop = data.draw(st.integers(first, len(drawn)))
    assert list(map(bits, read_archive(path, first, stop))) == list(map(bits, drawn[first:stop]))
    assert [bits(instance.content) for instance in read_instances(path)] == list(map(bits, drawn))
    assert list(path.parent.iterdir()) == [path]  # no temporary file is left
    with pytest.raises(InputError):
        read_archive(path, 0, len(drawn) + 1)


def test_graphs_without_weights_have_ones_beside_others(tmp_path):
    plain = Graph.from_arrays("plain", 3, [(0, 1)])
    weighted = Graph.from_arrays("weighted", 2, [(0, 1)], [2.5], None, [0.5, 3])
    write_archive(tmp_path / "a.npz", [plain, weighted])
    found = read_archive(tmp_path / "a.npz")
    assert [graph.weights.tolist() for graph in found] == [[1], [2.5]]
    assert [graph.node_weights.tolist() for graph in found] == [[1, 1, 1], [0.5, 3]]


@settings(max_examples=30, deadline=None)
@given(drawn=st.lists(forms(), min_size=1, max_size=3))
def test_the_same_models_come_back(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("forms") / "any.name"
    write_forms(path, drawn)
    assert list(map(bits, read_forms(path))) == list(map(bits, drawn))
    found = read_instances(path)
    assert [bits(instance.content) for instance in found] == list(map(bits, drawn))
    assert all(instance.labels == range(instance.content.num_variables) for instance in found)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    write_archive(path, [Graph.from_arrays("older", 2, [(0, 1)])])
    before = path.read_bytes()
    with path.open("rb") as reader:
        write_archive(path, [Graph.from_arrays("old", 2, [(0, 1)])])
        assert reader.read() == before

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(InputError):
        write_archive(path, [Graph.from_arrays("new", 2, [(0, 1)])])
    assert read_archive(path)[0].name == "old"
    assert list(tmp_path.iterdir()) == [path]
