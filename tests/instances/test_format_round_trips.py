"""What a file means is what is read: recognised without a suffix, every edge, value and label, in every format."""

import bz2
import gzip
import itertools
import json
import lzma
import sys
from fractions import Fraction

import format_writers as write
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.errors import InputError
from sl_discs.instances import text
from sl_discs.instances.archive import read_archive, write_archive
from sl_discs.instances.formats import read_instances
from sl_discs.instances.graph import Graph
from sl_discs.instances.graph_files import conflict_graph, write_dimacs, write_rudy

RANDOM = st.randoms(use_true_random=False)
POSITIVE = st.integers(0, 9).map(float)
EXAMPLES = settings(max_examples=40, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


def read(folder, content, **options):
    path = folder / "instance"
    path.write_bytes(content)
    (instance,) = read_instances(path, **options)
    assert instance.path == path and instance.content.name == "instance"
    return instance


def assert_graph(instance, name, edges, labels, weighted, rng):
    """The very edges, by label; and so the cut of random sides."""
    graph = instance.content
    assert instance.format == name and list(instance.labels) == labels and graph.num_nodes == len(labels)
    assert (graph.weights is None) == (not weighted)
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    ends = [frozenset(instance.labels[k] for k in pair) for pair in graph.edges.tolist()]
    assert len(ends) == len(edges)
    assert dict(zip(ends, weights.tolist(), strict=True)) == {frozenset(pair): w for pair, w in edges.items()}
    side = {label: rng.randrange(2) for label in labels}
    x = np.array([side[label] for label in instance.labels])
    cut = weights @ (x[graph.edges[:, 0]] != x[graph.edges[:, 1]])
    assert cut == sum(w for (u, v), w in edges.items() if side[u] != side[v])


def named(edges, names, weighted=True):
    return {(names[u], names[v]): w if weighted else 1.0 for (u, v), w in edges.items()}


@EXAMPLES
@given(graph=write.graphs(), rng=RANDOM)
def test_rudy(folder, graph, rng):
    labels = list(range(1, graph[0] + 1))
    instance = read(folder, write.rudy(graph, rng), format=None if graph[1] else "rudy")
    assert_graph(instance, "rudy", named(graph[1], labels), labels, bool(graph[1]), rng)


@EXAMPLES
@given(graph=write.graphs(), rng=RANDOM)
def test_rudy_without_weights(folder, graph, rng):
    n, edges = graph
    labels = list(range(1, n + 1))
    # With few edges the header may be the first of a list; with as many as nodes it may be a METIS file of a cycle.
    form = None if len(edges) > n + 1 else "rudy"
    instance = read(folder, write.rudy(graph, rng, weighted=False), format=form)
    assert_graph(instance, "rudy", named(edges, labels, False), labels, False, rng)


@EXAMPLES
@given(graph=write.graphs(), rng=RANDOM)
def test_dimacs(folder, graph, rng):
    labels = list(range(1, graph[0] + 1))
    content = write.dimacs(graph, rng)
    instance = read(folder, content)
    assert_graph(instance, "dimacs", named(graph[1], labels, False), labels, False, rng)
    rows = [row.split() for row in content.decode().split("\n")]
    given_weights = {int(row[1]): float(row[2]) for row in rows if row and row[0] == "n"}
    found = instance.content.node_weights
    assert (found is None) == (not given_weights)
    assert found is None or found.tolist() == [given_weights.get(label, 1) for label in labels]


@settings(EXAMPLES, max_examples=80)
@given(graph=write.graphs(POSITIVE), rng=RANDOM, weighted=st.booleans(), sizes=st.booleans(), ncon=st.integers(0, 2))
def test_metis(folder, graph, rng, weighted, sizes, ncon):
    labels = list(range(1, graph[0] + 1))
    content = write.metis(graph, rng, weighted, sizes, ncon)
    instance = read(folder, content, format="metis")
    assert_graph(instance, "metis", named(graph[1], labels, weighted), labels, weighted, rng)
    found = instance.content.node_weights
    assert found is None if ncon != 1 else found.tolist() == [3] * graph[0]
    # Lines of equal length, and a triangle, may also be rudy's edges.
    rows = [len(row.split()) for row in content.decode().split("\n") if row.strip() and row[0] != "%"]
    if len(set(rows)) > 1 and set(rows[1:]) != {2}:
        assert read(folder, content).format == "metis"


@EXAMPLES
@given(graph=write.graphs(), rng=RANDOM, weighted=st.booleans(), of_nodes=st.booleans(), data=st.data())
def test_what_networkx_writes(folder, graph, rng, weighted, of_nodes, data):
    """In GML labels are text, in JSON numbers, words and tuples; both keep weights."""
    n, edges = graph
    words = st.text('aä "&[]#0', min_size=1, max_size=4)
    labels = st.one_of(words, st.integers(-9, 9), st.tuples(st.integers(0, 9), words))
    names = data.draw(st.lists(labels, min_size=n, max_size=n, unique=True))
    written = nx.Graph()
    written.add_nodes_from((name, {"weight": k, "colour": "red"} if of_nodes else {}) for k, name in enumerate(names))
    written.add_edges_from((names[u], names[v], {"weight": w} if weighted else {}) for (u, v), w in edges.items())
    for key in "edges", "links":
        content = json.dumps(nx.node_link_data(written, edges=key))
        instance = read(folder, content.encode())
        assert_graph(instance, "node_link", named(edges, names, weighted), names, weighted and bool(edges), rng)
        found = instance.content.node_weights
        assert found is None if not of_nodes else found.tolist() == list(range(n))
    texts = list(map(str, names))
    if len(set(texts)) == n:
        content = "\n".join(nx.generate_gml(nx.relabel_nodes(written, dict(zip(names, texts, strict=True)))))
        instance = read(folder, ('# note\nCreator "a b"\nVersion 1\n' + content).encode())
        assert_graph(instance, "gml", named(edges, texts, weighted), texts, weighted and bool(edges), rng)
        content = "\n".join(nx.generate_graphml(nx.relabel_nodes(written, dict(zip(names, texts, strict=True)))))
        instance = read(folder, content.encode())
        assert_graph(instance, "graphml", named(edges, texts, weighted), texts, weighted and bool(edges), rng)


def test_gml_without_labels_has_the_numbers_of_its_nodes(folder):
    content = b'graph [\n node [ id 7 ]\n node [ id 3 label "b" ]\n edge [ source 3 target 7 ]\n]\n'
    assert read(folder, content).labels == (7, 3)


@settings(EXAMPLES, max_examples=80)
@given(graph=write.graphs(min_edges=1), rng=RANDOM, weighted=st.booleans(), text=st.booleans(), data=st.data())
def test_edge_list(folder, graph, rng, weighted, text, data):
    n, edges = graph
    some = st.from_regex(r"[a-zäß_][a-z0-9,;:é]{0,4}", fullmatch=True) if text else st.integers(0, 10**18)
    names = data.draw(st.lists(some, min_size=n, max_size=n, unique=True))
    # Recognition alone is another test's; a list of numbers may happen to look like a file with a header.
    content = write.edge_list(graph, rng, names, weighted)
    instance = read(folder, content, format="edge_list")
    rows = [row.split() for row in content.decode().split("\n") if row.strip() and "%" not in row]
    in_order = list(dict.fromkeys(word for row in rows for word in row[:2]))
    labels = in_order if text else sorted(map(int, in_order))
    assert_graph(instance, "edge_list", named(edges, names, weighted), labels, weighted, rng)


@settings(EXAMPLES, max_examples=80)
@given(graph=write.graphs(), rng=RANDOM, field=st.sampled_from(["pattern", "real"]), symmetric=st.booleans())
def test_matrix_market_graph(folder, graph, rng, field, symmetric):
    n, edges = graph
    edges = {pair: w for pair, w in edges.items() if w or field == "pattern"}
    entries = {(max(pair), min(pair)): w for pair, w in edges.items()}
    if not symmetric:
        entries |= {(j, i): w for (i, j), w in entries.items() if rng.random() < 0.7}
    entries |= {(i, i): 0.0 for i in range(n) if field == "real" and rng.random() < 0.2}
    symmetry = "symmetric" if symmetric else "general"
    labels = list(range(1, n + 1))
    instance = read(folder, write.coordinate(n, entries, rng, field, symmetry))
    meant = named(edges, labels, field == "real")
    assert_graph(instance, "matrix_market", meant, labels, field == "real", rng)
    matrix = np.zeros((n, n))
    for (u, v), w in edges.items():
        matrix[u, v] = matrix[v, u] = w if field == "real" else 1.0
    assert_graph(read(folder, write.array(matrix, symmetry)), "matrix_market", meant, labels, True, rng)


@EXAMPLES
@given(drawn=st.lists(write.graphs(), min_size=1, max_size=3), rng=RANDOM)
def test_archive(folder, drawn, rng):
    graphs = []
    for k, (n, edges) in enumerate(drawn):
        ends = np.array(list(edges), int).reshape(-1, 2)
        graphs.append(Graph.from_arrays(f"g{k}", n, ends, list(edges.values())))
    write_archive(folder / "graphs", graphs)
    found = read_instances(folder / "graphs")
    assert [instance.content.name for instance in found] == [graph.name for graph in graphs]
    for instance, (n, edges) in zip(found, drawn, strict=True):
        assert_graph(instance, "npz", edges, list(range(n)), True, rng)


def test_formula_is_its_conflict_graph(tmp_path):
    (tmp_path / "f").write_text("c a\np cnf 3 2\n1 -2\n3 0\n2 0\n%\n0\n")
    (instance,) = read_instances(tmp_path / "f", problem="mis")
    graph = conflict_graph("f", [(1, -2, 3), (2,)])
    assert instance.format == "cnf" and list(instance.labels) == ["1:1", "1:-2", "1:3", "2:2"]
    assert np.array_equal(instance.content.edges, graph.edges) and instance.content.reference == 2


def test_clauses_that_repeat_a_literal_are_solved(tmp_path):
    (tmp_path / "f.cnf").write_text("p cnf 2 3\n1 1 2 0\n-1 -1 0\n-2 -2 0\n")
    result = sl_discs.solve(sl_discs.read(tmp_path / "f.cnf"))
    assert list(result.labels) == ["1:1", "1:2", "2:-1", "3:-2"]
    assert result.best_value == 2 and result.optimal


def matrices(symmetric):
    def build(n):
        cells = st.lists(write.WEIGHT, min_size=n * n, max_size=n * n)
        full = cells.map(lambda values: np.array(values).reshape(n, n))
        return full.map(lambda m: np.triu(m) + np.triu(m, 1).T) if symmetric else full

    return st.integers(1, 5).flatmap(build)


def assert_values(form, spins, value):
    """The form is `value` of every state, exactly: all numbers are multiples of 1/4."""
    assert form.spins == spins
    for x in itertools.product([0, 1], repeat=form.num_variables):
        v = 2 * np.array(x) - 1 if spins else np.array(x)
        assert form.value(np.array(x)) == value(v)


@EXAMPLES
@given(matrix=matrices(symmetric=False), rng=RANDOM)
def test_qbsolv(folder, matrix, rng):
    n = len(matrix)
    instance = read(folder, write.qbsolv(n, matrix, rng), problem="qubo")
    assert instance.format == "qbsolv" and instance.labels == range(n) and not instance.content.maximise
    assert_values(instance.content, False, lambda v: v @ np.triu(matrix) @ v)


@EXAMPLES
@given(matrix=matrices(symmetric=False), rng=RANDOM, spins=st.booleans(), header=st.booleans(), data=st.data())
def test_coo(folder, matrix, rng, spins, header, data):
    n = len(matrix)
    names = data.draw(st.lists(st.integers(0, 10**18), min_size=n, max_size=n, unique=True).map(sorted))
    rows = [(names[i], names[j], matrix[i, j]) for i in range(n) for j in range(n)]
    rows += [(names[0], names[0], 0.5)]  # adds up
    rng.shuffle(rows)
    content = f"# vartype={'SPIN' if spins else 'BINARY'}\n".encode() if header else b""
    problem = "ising" if spins else "qubo"
    instance = read(folder, content + write.lines(rows, rng, "#"), problem=None if header else problem)
    assert instance.format == "coo" and list(instance.labels) == names and not instance.content.maximise
    linear, pairs = np.diag(matrix).copy(), matrix - np.diag(np.diag(matrix))
    linear[0] += 0.5
    assert_values(instance.content, spins, lambda v: linear @ v + v @ pairs @ v)


@EXAMPLES
@given(
    matrix=matrices(symmetric=False), rng=RANDOM, symmetric=st.booleans(), spins=st.booleans(), dense=st.booleans()
)
def test_matrix_market_model(folder, matrix, rng, symmetric, spins, dense):
    n = len(matrix)
    matrix = np.tril(matrix) + np.tril(matrix, -1).T if symmetric else matrix
    symmetry = "symmetric" if symmetric else "general"
    stored = {(i, j): matrix[i, j] for i in range(n) for j in range(n) if matrix[i, j] and (j <= i or not symmetric)}
    content = write.array(matrix, symmetry) if dense else write.coordinate(n, stored, rng, "real", symmetry)
    instance = read(folder, content, problem="ising" if spins else "qubo")
    assert list(instance.labels) == list(range(1, n + 1)) and not instance.content.maximise
    assert_values(instance.content, spins, lambda v: v @ matrix @ v)


@EXAMPLES
@given(
    numbers=st.lists(st.sampled_from([0.1, 0.3, 1.0, 1e15, -1e15]), min_size=1, max_size=6),
    spins=st.booleans(),
    v=st.booleans(),
)
def test_sums_of_the_numbers_in_a_file_are_rounded_once(folder, numbers, spins, v):
    """The diagonal of a matrix, which is a constant where variables are spins."""
    problem, n, exact = "ising" if spins else "qubo", len(numbers), float(sum(map(Fraction, numbers)))
    diagonal = "".join(f"{k} {k} {one}\n" for k, one in enumerate(numbers, 1))
    matrix = f"%%MatrixMarket matrix coordinate real general\n{n} {n} {n}\n{diagonal}".encode()
    market = read(folder, matrix, problem=problem)
    assert market.content.value(np.full(n, v)) == (exact if v or spins else 0)


def test_a_constant_in_a_comment_counts(folder):
    qubo = b"c scale : 1.0\nc offset : 2.5\np qubo 0 7 2 0\nc linear terms\n2 2 1.5\n6 6 -0.5\n"
    assert read(folder, qubo).content.offset == 2.5
    assert sl_discs.solve(sl_discs.read(folder / "instance")).best_value == 2.0
    assert read(folder, b"# vartype=SPIN\n# Constant = -1\n0 1 2\n").content.offset == -1
    matrix = b"%%MatrixMarket matrix coordinate real symmetric\n% offset: 3\n2 2 1\n2 1 4\n"
    assert read(folder, matrix, problem="qubo").content.offset == 3


def test_a_heading_is_no_edge(folder):
    instance = read(folder, b'"from" "to"\n1 2\n2 3\n1 3\n')
    assert instance.labels == range(1, 4) and instance.content.num_edges == 3


def test_graphs_of_pace(folder):
    instance = read(folder, b"c vertex cover of PACE\np td 5 5\n1 2\n2 3\n3 4\n4 5\n1 5\n")
    assert instance.labels == range(1, 6) and instance.content.num_edges == 5
    assert sl_discs.solve(sl_discs.read(folder / "instance", "vertex_cover")).best_value == 3


def test_a_list_of_coefficients_needs_dimod(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "dimod.serialization", None)
    with pytest.raises(InputError, match=r"instance: .* the extra `dimod`; install it with: pip install dimod"):
        read(folder, b"# vartype=SPIN\n0 1 2\n")


# Of which all edges of a graph add up to less than 1e307.
FINITE = st.floats(-4e305, 4e305)


@EXAMPLES
@given(graph=write.graphs(FINITE, min_edges=1))
def test_written_weights_come_back_bit_by_bit(folder, graph):
    n, edges = graph
    original = Graph.from_arrays("g", n, np.array(list(edges)), list(edges.values()))
    write_rudy(folder / "g", original)
    again = read_instances(folder / "g")[0].content
    assert np.array_equal(again.edges, original.edges)
    assert again.weights.tobytes() == original.weights.tobytes()
    if (original.weights != 1).any():
        with pytest.raises(InputError, match="no weights"):
            write_dimacs(folder / "g", original)
    plain = Graph.from_arrays("g", n, original.edges)
    write_dimacs(folder / "g", plain)
    (instance,) = read_instances(folder / "g")
    assert instance.format == "dimacs" and instance.content.num_nodes == n
    assert np.array_equal(instance.content.edges, plain.edges) and instance.content.weights is None


@EXAMPLES
@given(graph=write.graphs(), data=st.data())
def test_written_weights_of_nodes_come_back_bit_by_bit(folder, graph, data):
    n, edges = graph
    of_nodes = data.draw(st.lists(st.floats(0, 1e300), min_size=n, max_size=n))
    original = Graph.from_arrays("g", n, np.array(list(edges), int).reshape(-1, 2), node_weights=of_nodes)
    write_dimacs(folder / "g", original)
    assert read_instances(folder / "g")[0].content.node_weights.tolist() == of_nodes
    plain = Graph.from_arrays("plain", n, original.edges)
    write_archive(folder / "g", [plain, original])
    assert [one.node_weights.tolist() for one in read_archive(folder / "g")] == [[1] * n, of_nodes]
    with pytest.raises(InputError, match="no weights of nodes"):
        write_rudy(folder / "g", original)


def test_compressed_files_are_read_as_plain_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK_BYTES", 2**13)
    rng = np.random.default_rng(5)
    pairs = {(int(u), int(v)) for u, v in rng.integers(1, 1_001, (4_000, 2)) if u < v}
    content = f"1000 {len(pairs)}\n".encode() + "".join(f"{u} {v} {u % 7 - 3}\n" for u, v in pairs).encode()
    (tmp_path / "plain").write_bytes(content)
    (plain,) = read_instances(tmp_path / "plain")
    assert {tuple(pair) for pair in (plain.content.edges + 1).tolist()} == pairs
    half = len(content) // 2
    for pack in (gzip.compress, bz2.compress, lambda part: lzma.compress(part, preset=0)):
        (tmp_path / "g.txt.any").write_bytes(pack(content[:half]) + pack(content[half:]))
        (packed,) = read_instances(tmp_path / "g.txt.any")
        assert packed.content.name == "g" and plain.content.name == "plain"
        assert np.array_equal(plain.content.edges, packed.content.edges)
        assert np.array_equal(plain.content.weights, packed.content.weights)


@pytest.mark.parametrize(
    ("content", "problem", "name"),
    [
        ("3 2\n1 2 1\n2 3 -1\n", None, "rudy"),
        ("4 6\n1 2\n1 3\n1 4\n2 3\n2 4\n3 4\n", None, "rudy"),
        ("4 6 0\n1 2 1\n1 3 1\n1 4 1\n2 3 1\n2 4 1\n3 4 1\n", "mis", "rudy"),
        ("4 6 0\n1 2 1\n1 3 1\n1 4 1\n2 3 1\n2 4 1\n3 4 1\n", None, "rudy"),
        ("3 3 0\n1 2 1\n1 3 1\n2 3 1\n", "mis", "rudy"),
        ("3 2\n2\n1 3\n2\n", None, "metis"),
        ("4 6\n2 3 4\n1 3 4\n1 2 4\n1 2 3\n", None, "metis"),
        ("3 1\n\n3\n2\n", None, "metis"),
        ("0 1\n1 2\n0 2\n", None, "edge_list"),
        ("1 2\n1 3\n2 3\n", None, "edge_list"),
        ("1 2 5\n1 3 5\n", "maxcut", "edge_list"),
        ('"from" "to"\n1 2\n2 3\n1 3\n', "maxcut", "edge_list"),
        ("# pairs\nSource Target Weight\n1 2 5\n2 3 4\n", None, "edge_list"),
        ("c pairs\np td 3 2\n1 2\n2 3\n", "mis", "dimacs"),
        ("1 2 5\n1 3 5\n", "qubo", "coo"),
        ("1 1 5\n1 3 5\n", None, "coo"),
        ("# a vartype=SPIN\n0 1 1\n", None, "coo"),
        ("\ufeff2 1\n1 2 5\n", None, "rudy"),
    ],
)
def test_files_without_a_tag_follow_the_stated_rules(tmp_path, content, problem, name):
    (tmp_path / "f").write_text(content, encoding="utf-8")
    assert read_instances(tmp_path / "f", problem=problem)[0].format == name


@pytest.mark.parametrize(
    ("content", "problem", "names"),
    [
        ("3 2\n1 2\n2 3\n", None, "rudy edge_list"),
        ("4 5\n1 2\n1 3\n1 4\n2 3\n2 4\n", "mis", "rudy edge_list"),
        ("4 3 0\n1 2 1\n1 3 1\n1 4 1\n", "mis", "rudy edge_list"),
        ("4 3 0\n1 2 1\n1 3 1\n1 4 1\n", "qubo", "rudy coo"),
        ("3 3 0\n1 2 1\n1 3 1\n2 3 1\n", None, "rudy coo"),
        ("4 3\n0 1\n1 2\n2 3\n", None, "rudy edge_list"),
        ("3 0\n", None, "rudy edge_list"),
        ("3 3\n2 3\n1 3\n1 2\n", None, "metis rudy"),
        ("4 4\n2 4\n1 3\n2 4\n1 3\n", None, "metis rudy"),
        ("4 4\n1 2\n2 3\n3 4\n1 4\n", None, "metis rudy"),
        ("0 1 0.5\n1 1 5\n", None, "edge_list coo"),
        ("2 1 11\n5 2 7\n5 1 7\n", "mis", "metis edge_list"),
        ("1 2 5\n1 3 5\n", None, "edge_list coo"),
    ],
)
def test_a_file_that_fits_two_formats_is_refused(tmp_path, content, problem, names):
    (tmp_path / "f").write_text(content)
    with pytest.raises(InputError) as caught:
        read_instances(tmp_path / "f", problem=problem)
    assert all(f"--format={name}" in str(caught.value) for name in names.split())


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("g.edges", "3 2\n1 2\n2 3\n", "edge_list"),
        ("g.rudy.gz", "3 2\n1 2\n2 3\n", "rudy"),
        ("g.GRAPH", "3 3\n2 3\n1 3\n1 2\n", "metis"),
        ("g.coo", "1 2 5\n1 3 5\n", "coo"),
        ("g.edges", "p edge 2 1\ne 1 2\n", "dimacs"),
    ],
)
def test_the_suffix_counts_where_a_file_has_no_tag(tmp_path, name, content, form):
    pack = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(pack(content.encode()))
    assert read_instances(tmp_path / name)[0].format == form


@st.composite
def files(draw):
    """A file in a format that has no tag, the format, the problem (None: not said), and the graph in it."""
    rng = draw(RANDOM)
    graph = draw(write.graphs(POSITIVE, min_edges=1, max_nodes=6))
    n, edges = graph
    first = draw(st.integers(0, 1))
    weighted = draw(st.booleans())
    name = draw(st.sampled_from(["rudy", "torus", "metis", "edge_list", "coo"]))
    problem = draw(st.sampled_from([None, "qubo" if name == "coo" else "mis"]))
    if name == "rudy":
        content = write.rudy(graph, rng, weighted)
    elif name == "torus":
        content = write.rudy(graph, rng, True, torus=True)
    elif name == "metis":
        content = write.metis(graph, rng, weighted, draw(st.booleans()), draw(st.integers(0, 1)))
    elif name == "edge_list":
        content = write.edge_list(graph, rng, range(first, first + n), weighted)
    else:
        rows = [(u + first, v + first, w) for (u, v), w in edges.items()]
        rows += [(u + first, u + first, 1) for u in range(n) if rng.random() < 0.3]
        content = write.lines(rows, rng)
    return content, "rudy" if name == "torus" else name, problem


@settings(EXAMPLES, max_examples=300)
@given(file=files())
def test_no_file_is_read_as_one_of_another_format(folder, file):
    content, name, problem = file
    try:
        assert read(folder, content, problem=problem).format == name
    except InputError as error:
        assert f"--format={name}" in str(error)


def test_progress_counts_the_bytes_on_the_disk_once(tmp_path):
    path = tmp_path / "g"
    path.write_bytes(b"".join(b"%d %d\n" % (k, k + 1) for k in range(180_000)))
    steps = []
    assert read_instances(path, progress=steps.append)[0].content.num_edges == 180_000
    assert sum(steps) == path.stat().st_size and len(steps) >= 2
