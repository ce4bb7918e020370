"""Pickles: graphs of every protocol are read; everything that could do more than hold data is
refused by name.
"""

import collections
import copyreg
import os
import pickle
import struct
import tracemalloc

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.instances.discs_files import iter_pickles, load_pickle
from sl_discs.instances.graph import graph_from_networkx
from sl_discs.support.errors import InputError

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def save(path, *objects, protocol=4):
    path.write_bytes(b"".join(pickle.dumps(item, protocol=protocol) for item in objects))
    return path


@settings(max_examples=40, deadline=None)
@given(
    num_nodes=st.integers(1, 8),
    seed=st.integers(0, 1000),
    protocol=st.sampled_from(PROTOCOLS),
    weighted=st.booleans(),
    touched=st.booleans(),
)
def test_networkx_round_trip(tmp_path_factory, num_nodes, seed, protocol, weighted, touched):
    rng = np.random.default_rng(seed)
    graph = nx.Graph()
    graph.add_nodes_from(rng.permutation(num_nodes).tolist())
    for u in range(num_nodes):
        for v in range(u):
            if rng.random() < 0.5:
                graph.add_edge(
                    u, v, **({"weight": np.float32(rng.integers(-3, 4))} if weighted else {})
                )
    if touched:  # networkx then stores its views in the pickle
        _ = graph.edges, graph.nodes, graph.degree, graph.adj
    path = save(tmp_path_factory.mktemp("p") / "g.pkl", graph, protocol=protocol)
    read = graph_from_networkx(load_pickle(path), "g", weighted)
    edges = sorted((min(e), max(e)) for e in graph.edges)
    assert read.num_nodes == num_nodes and read.edges.tolist() == [list(e) for e in edges]
    if weighted:
        assert read.weights.tolist() == [graph.edges[e]["weight"] for e in edges]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_values_keep_type_and_content(tmp_path, protocol):
    for value in (
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        np.array(["a", "bc"]),
        np.arange(0),
        np.int32(-3),
        np.bool_(True),
    ):
        read = load_pickle(save(tmp_path / "v.pkl", value, protocol=protocol))
        assert read.dtype.newbyteorder("=") == value.dtype.newbyteorder("=")
        assert np.array_equal(read, value)
    plain = [
        {"a": (1, 2.5, None, True)},
        {3},
        frozenset({4}),
        b"\xff",
        b"",
        collections.OrderedDict(x=1),
    ]
    assert load_pickle(save(tmp_path / "v.pkl", plain, protocol=protocol)) == plain


def test_graphs_of_networkx_1_and_2(tmp_path):
    adjacency = {0: {1: {"weight": 2}}, 1: {0: {"weight": 2}}}
    for state in (
        {"graph": {}, "node": {0: {}, 1: {}}, "adj": adjacency, "edge": adjacency},
        {"node_dict_factory": dict, "graph": {}, "_node": {0: {}, 1: {}}, "_adj": adjacency},
    ):
        old = nx.Graph.__new__(nx.Graph)
        old.__dict__.clear()
        old.__dict__.update(state)
        graph = graph_from_networkx(
            load_pickle(save(tmp_path / "g.pkl", old, protocol=2)), "g", weighted=True
        )
        assert graph.edges.tolist() == [[0, 1]] and graph.weights.tolist() == [2]


def test_pickles_back_to_back(tmp_path):
    path = save(tmp_path / "test-0", (1, 2), [3], {})
    assert list(iter_pickles(path)) == [(1, 2), [3], {}]
    with pytest.raises(InputError):
        load_pickle(path)


class Calls:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls_are_refused_by_name(tmp_path, protocol):
    mark = tmp_path / "mark"
    for function in (os.system, eval, getattr, np.fromfile, nx.read_adjlist):
        path = save(tmp_path / "bad.pkl", [1, Calls(function, f"touch {mark}")], protocol=protocol)
        with pytest.raises(InputError):
            load_pickle(path)
        assert not mark.exists()


def text(value):
    return b"\x8c" + bytes([len(value)]) + value.encode()


def named(module, name):
    return text(module) + text(name) + b"\x93"


def scalar(code, argument):
    """A call of NumPy's function for a scalar of a type."""
    dtype = named("numpy", "dtype") + text(code) + b"\x85R"
    return named("numpy.core.multiarray", "scalar") + dtype + argument + b"\x86R."


STREAMS = {
    "dotted name": named("networkx.classes.graph", "Graph.__init__") + b".",
    "the rest of copyreg": named("copyreg", "add_extension") + b".",
    "alter a class": named("networkx.classes.graph", "Graph")
    + b"N}"
    + text("nodes")
    + b"K\x01s\x86b.",
    "alter a builtin": named("builtins", "dict") + b"N}" + text("get") + b"K\x01s\x86b.",
    "alter a function": named("_codecs", "encode") + b"N}" + text("x") + b"K\x01s\x86b.",
    "other codec": named("_codecs", "encode") + text("x") + text("rot13") + b"\x86R.",
    "object dtype": named("numpy", "dtype") + text("O8") + b"\x85R.",
    "scalar too short": scalar("f8", b"C\x02ab"),
    "scalar of a length": scalar("u1", b"K\x01"),
    "bytes of a length": named("builtins", "bytes") + b"K\x05\x85R.",
    "reconstruct a container": named("copyreg", "_reconstructor")
    + named("builtins", "dict")
    + named("builtins", "object")
    + b"N\x87R.",
    "graph with another state": named("networkx.classes.graph", "Graph") + b")\x81K\x01b.",
    "huge bytes": b"\x8e" + struct.pack("<Q", 2**62) + b".",
    "huge memo": b"Nr" + struct.pack("<I", 2**29) + b".",
    "huge memo in text": b"Np300000000\n.",
    "huge frame": b"\x95" + struct.pack("<Q", 2**33) + b"N.",
    "text of no length": named("numpy", "dtype") + text("S0") + b"\x85R.",
    "call of a type": named("builtins", "list") + b"]\x85R.",
    "a name for the terminal": named("os\n\x1b[2J", "system") + b".",
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_hand_made_streams_are_refused(tmp_path, stream):
    (tmp_path / "bad.pkl").write_bytes(b"\x80\x04" + stream)
    tracemalloc.start()
    with pytest.raises(InputError) as caught:
        load_pickle(tmp_path / "bad.pkl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value).isprintable() and peak < 2**22


def test_graphs_without_a_state_are_refused(tmp_path):
    for kind in "Graph", "DiGraph":
        (tmp_path / "g.pkl").write_bytes(
            b"\x80\x04" + named(f"networkx.classes.{kind.lower()}", kind) + b")\x81."
        )
        with pytest.raises(InputError):
            graph_from_networkx(load_pickle(tmp_path / "g.pkl"), "g")


def test_a_registered_extension_code_is_refused_by_name(tmp_path):
    copyreg.add_extension("os", "system", 250)
    try:
        (tmp_path / "bad.pkl").write_bytes(b"\x80\x02\x82\xfa.")
        with pytest.raises(InputError):
            load_pickle(tmp_path / "bad.pkl")
    finally:
        copyreg.remove_extension("os", "system", 250)


def test_a_refused_module_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "payload.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bad.pkl").write_bytes(b"\x80\x04" + named("payload", "x") + b".")
    with pytest.raises(InputError):
        load_pickle(tmp_path / "bad.pkl")
    assert not (tmp_path / "mark").exists()


def test_a_file_cut_short_is_refused(tmp_path):
    path = tmp_path / "g.pkl"
    whole = pickle.dumps((nx.path_graph(4), (np.float64(3), np.arange(4))), protocol=4)
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load_pickle(path)


@settings(max_examples=200, deadline=None)
@given(
    position=st.integers(0, 10**6), value=st.integers(0, 255), protocol=st.sampled_from([0, 2, 4])
)
def test_a_changed_byte_gives_data_or_input_error(tmp_path_factory, position, value, protocol):
    whole = bytearray(
        pickle.dumps((nx.path_graph(4), (np.float64(3), np.arange(4))), protocol=protocol)
    )
    position %= len(whole)
    whole[position] = value
    path = tmp_path_factory.mktemp("p") / "g.pkl"
    path.write_bytes(whole)
    try:
        read = load_pickle(path)
        graph = graph_from_networkx(read[0] if isinstance(read, tuple) and read else read, "g")
    except InputError as error:
        assert str(error).startswith((str(path), "g"))
    else:
        assert ((graph.edges >= 0) & (graph.edges < graph.num_nodes)).all()


def test_labels_that_are_not_numbers_give_positions():
    graph = nx.Graph()
    graph.add_nodes_from(["c", "a", "b"])
    graph.add_edge("b", "c", weight=2.0)
    assert graph_from_networkx(graph, "g", weighted=True).edges.tolist() == [[0, 2]]


def test_graphs_that_are_not_simple_are_refused():
    absurd, asymmetric = nx.path_graph(2), nx.path_graph(3)
    absurd.edges[0, 1]["weight"] = "heavy"
    del asymmetric._adj[0][1]
    for graph in (nx.MultiGraph([(0, 1)]), absurd, asymmetric, [1]):
        with pytest.raises(InputError):
            graph_from_networkx(graph, "g", weighted=True)
