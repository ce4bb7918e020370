"""What a file means is what is read: every edge, value and label, in every format, and never as
another format.
"""

import bz2
import contextlib
import decimal
import gzip
import itertools
import json
import lzma
import re
import subprocess
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sl_discs
from sl_discs.instances.form import FormValues
from sl_discs.instances.formats import FORMATS, read_instances
from sl_discs.instances.graph import Graph
from sl_discs.instances.graph_files import conflict_graph, read_cnf, write_dimacs, write_rudy
from sl_discs.support.errors import InputError, NotSupported

RANDOM = st.randoms(use_true_random=False)
EXAMPLES = settings(max_examples=40, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


def read(folder, content, **options):
    path = folder / "instance"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (instance,) = read_instances(path, **options)
    assert instance.path == path and instance.content.name == "instance"
    return instance


# Writers of a graph, (n, {(u, v): weight}) with u < v and nodes from 0 on: the content, and the
# labels of the nodes.


WEIGHTS = st.integers(0, 9)


@st.composite
def graphs(draw, weights=WEIGHTS):
    n = draw(st.integers(2, 7))
    pairs = list(itertools.combinations(range(n), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    return n, {pair: draw(weights) for pair in chosen}


def turned(edges, rng):
    """Edges in any order and direction."""
    rows = [(u, v, w) if rng.random() < 0.5 else (v, u, w) for (u, v), w in edges.items()]
    rng.shuffle(rows)
    return rows


def lines(rows, rng, comment=None):
    """Words as lines with any blanks between them, and comments and empty lines if the format has
    comments.
    """
    text = []
    for row in rows:
        if comment and rng.random() < 0.2:
            text.append(rng.choice([comment + " 7 7 7", "", "  "]))
        blank, end = rng.choice([" ", "\t", "   "]), rng.choice(["", " "])
        text.append(" " * rng.randrange(2) + blank.join(map(str, row)) + end)
    end = rng.choice(["\n", "\r\n"])
    return end.join(text) + (end if rng.random() < 0.7 else "")


def rudy(n, edges, weighted, rng):
    rows = [(u + 1, v + 1, *([w] if weighted else [])) for u, v, w in turned(edges, rng)]
    return lines([(n, len(edges), *rng.choice([[], [0]])), *rows], rng, "#"), range(1, n + 1)


def dimacs(n, edges, weighted, rng):
    rows = [
        ("e", u + 1, v + 1) for u, v, _ in turned(edges, rng) for _ in range(rng.choice([1, 1, 2]))
    ]
    rows += [("e", v, u) for _, u, v in rows if rng.random() < 0.3]
    promised = rng.choice([len(edges), 2 * len(edges), len(rows)])
    return lines([("p", rng.choice(["edge", "col"]), n, promised), *rows], rng, "c"), range(
        1, n + 1
    )


def metis(n, edges, weighted, rng):
    rows = (
        [(n, len(edges), f"{int(weighted):03d}")]
        if weighted or rng.random() < 0.5
        else [(n, len(edges))]
    )
    for node in range(n):
        near = [(v if u == node else u, w) for u, v, w in turned(edges, rng) if node in (u, v)]
        rows.append(
            [word for other, w in near for word in ([other + 1, w] if weighted else [other + 1])]
        )
    text = "".join(
        ("% a\n" if rng.random() < 0.2 else "") + " ".join(map(str, row)) + "\n" for row in rows
    )
    return text, range(1, n + 1)


def edge_list(n, edges, weighted, rng):
    names = sorted(rng.sample(range(30), n)) if rng.random() < 0.5 else range(n)
    rows = [(names[u], names[v], *([w] if weighted else [])) for u, v, w in turned(edges, rng)]
    rows += [(v, u, *w) for u, v, *w in rows if rng.random() < 0.3]
    return lines(rows, rng, "%"), names


def matrix_market(n, edges, weighted, rng):
    symmetric = rng.random() < 0.5
    entries = {(v + 1, u + 1): w or 1 for (u, v), w in edges.items()}
    if not symmetric:
        entries |= {(j, i): w for (i, j), w in entries.items() if rng.random() < 0.7}
    rows = [(*pair, *([w] if weighted else [])) for pair, w in entries.items()]
    rng.shuffle(rows)
    banner = f"{'real' if weighted else 'pattern'} {'symmetric' if symmetric else 'general'}"
    text = lines([(n, n, len(rows)), *rows], rng)
    return f"%%MatrixMarket matrix coordinate {banner}\n% 7 7 7\n{text}", range(1, n + 1)


def array(n, edges, weighted, rng):
    values = "".join(
        f"{edges.get((min(i, j), max(i, j)), 0)}\n" for j in range(n) for i in range(n)
    )
    return f"%%MatrixMarket matrix array real general\n{n} {n}\n{values}", range(1, n + 1)


def as_networkx(n, edges, weighted, names):
    graph = nx.Graph()
    graph.add_nodes_from(names, colour="red")
    graph.add_edges_from(
        (names[u], names[v], {"weight": w} if weighted else {}) for (u, v), w in edges.items()
    )
    return graph


def gml(n, edges, weighted, rng):
    names = [rng.choice('aä "&[]#0') + str(node) for node in range(n)]
    return "# note\nVersion 1\n" + "\n".join(
        nx.generate_gml(as_networkx(n, edges, weighted, names))
    ), names


def graphml(n, edges, weighted, rng):
    names = [rng.choice('aä "&<') + str(node) for node in range(n)]
    return "\n".join(nx.generate_graphml(as_networkx(n, edges, weighted, names))), names


def node_link(n, edges, weighted, rng):
    names = [rng.choice([node - 3, f"x{node}", (node, "é")]) for node in range(n)]
    return json.dumps(
        nx.node_link_data(
            as_networkx(n, edges, weighted, names), edges=rng.choice(["edges", "links"])
        )
    ), names


WRITERS = {
    writer.__name__: writer
    for writer in (rudy, dimacs, metis, edge_list, matrix_market, array, gml, graphml, node_link)
}


@EXAMPLES
@given(graph=graphs(), rng=RANDOM, weighted=st.booleans())
@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_is_what_is_read(folder, name, graph, rng, weighted):
    """With the format named, and where its first lines tell; a repeated last line is not lost in
    silence.
    """
    n, edges = graph
    content, labels = WRITERS[name](n, edges, weighted, rng)
    weighted = name == "array" or (weighted and name != "dimacs")
    meant = {(labels[u], labels[v]): w if weighted else 1 for (u, v), w in edges.items()}
    if name == "array":
        name, meant = "matrix_market", {pair: w for pair, w in meant.items() if w}
    if name == "matrix_market" and weighted:
        meant = {pair: w or 1 for pair, w in meant.items()}
    if name == "edge_list":  # where nodes without an edge do not exist
        labels = [label for label in labels if any(label in pair for pair in meant)]
    for problem in None, "mis":
        instance = read(folder, content, format=name, problem=problem)
        found = instance.content
        assert instance.format == name
        assert list(instance.labels) == list(labels)
        assert found.num_nodes == len(labels)
        assert (found.weights is None) == (not weighted)
        ends = [frozenset(instance.labels[k] for k in pair) for pair in found.edges.tolist()]
        weights = [1] * len(ends) if found.weights is None else found.weights.tolist()
        assert len(ends) == len(meant)
        assert dict(zip(ends, weights, strict=True)) == {
            frozenset(pair): w for pair, w in meant.items()
        }
        if FORMATS[name].begins and name != "edge_list":
            assert read(folder, content, problem=problem).format == name
    last = content.rstrip().rpartition("\n")[2].strip()
    if name in ("rudy", "dimacs", "edge_list", "matrix_market") and last[0] not in "#%c":
        with contextlib.suppress(InputError):  # a line too many is refused, or remarked on
            assert any(
                one.lost
                for one in read(folder, f"{content.rstrip()}\n{last}\n", format=name).remarks
            )


# What is left out of a file is said.

WORDS = ["#tag", "%b", "u", "v", "source", "target", "7", "12", "é", "a,b", "{x}"]


@settings(max_examples=200, deadline=None)
@given(
    graph=graphs(), names=st.permutations(WORDS), data=st.sampled_from([True, False, ["weight"]])
)
def test_names_that_networkx_writes_come_back_or_are_reported(folder, graph, names, data):
    """Names that begin like comments, or read as headings or numbers, are read, remarked on or
    refused.
    """
    n, edges = graph
    written = as_networkx(n, edges, True, names)
    try:
        instance = read(
            folder, "\n".join(nx.generate_edgelist(written, data=data)), format="edge_list"
        )
    except InputError:
        assert not set(names[:n]).isdisjoint(WORDS[:8])
        return
    found = instance.content
    ends = [frozenset(str(instance.labels[k]) for k in pair) for pair in found.edges.tolist()]
    weights = [1] * len(ends) if found.weights is None else found.weights.tolist()
    came_back = dict(zip(ends, weights, strict=True)) == {
        frozenset((names[u], names[v])): w if data else 1 for (u, v), w in edges.items()
    }
    assert came_back or any(remark.lost for remark in instance.remarks)


KEY = '<key id="{0}" for="{0}" attr.name="{1}" attr.type="double"><default>4</default></key>'
GRAPHML = (
    "<graphml>{}<graph>{}<edge source='b' target='c'/><node id='b'/><node "
    "id='c'/></graph></graphml>"
)
MIRRORED = "%%MatrixMarket matrix coordinate real general\n% a\n3 3 3\n1 2 5\n2 1 5\n1 3 5\n"
# Files, the problem of which they lose something, and the best value of what was read.
LEFT_OUT = {
    "a comment": ("edge_list", "1 2\n#tag 2\n", "maxcut", 1),
    "edges again": ("edge_list", "1 2\n2 3\n1 2\n", "maxcut", 2),
    "a heading": ("edge_list", "u v\na b\n", "mis", 1),
    "cost": ("edge_list", "a b {'cost': 3}\n", "maxcut", 1),
    "edges of dimacs": ("dimacs", "p edge 3 3\ne 1 2\ne 1 3\ne 1 2\n", "maxcut", 2),
    "edges mirrored": ("matrix_market", MIRRORED, "maxcut", 10),
    "zeros": ("matrix_market", MIRRORED.replace("1 3 5", "1 3 0"), "mis", 2),
    "cost of graphml": ("graphml", GRAPHML.format(KEY.format("edge", "cost"), ""), "maxcut", 1),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_was_left_out_is_said_and_leaves_no_proof(folder, case):
    name, content, problem, best = LEFT_OUT[case]
    (folder / "instance").write_text(content)
    with pytest.warns(UserWarning) as said:
        read_problem = sl_discs.read(folder / "instance", problem, format=name)
        result = sl_discs.solve(read_problem, time_limit=1)
    assert result.best_value == best and result.bound is None and not result.optimal
    assert len(said) == 1 and result.bound_by
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if "edges" in case or "cost" in case:  # which independent sets do not miss
            assert sl_discs.solve(sl_discs.read(folder / "instance", "mis", format=name)).optimal


def test_defaults_of_graphml_are_those_of_each_node_and_edge(folder):
    both = KEY.format("all", "weight")
    content = GRAPHML.format(KEY.format("edge", "weight") + KEY.format("node", "weight"), "")
    for text in (
        content,
        GRAPHML.format(both, ""),
        GRAPHML.format(both.replace('for="all"', ""), ""),
    ):
        found = read(folder, text).content
        assert found.weights.tolist() == [4] and found.node_weights.tolist() == [4, 4]
    given = (
        "<node id='a'><data key='node'>1</data></node><edge source='a' target='b'><data "
        "key='edge'>1</data></edge>"
    )
    found = read(folder, content.replace("<graph>", f"<graph>{given}")).content
    assert sorted(found.weights) == [1, 4] and sorted(found.node_weights) == [1, 4, 4]


@pytest.mark.parametrize("weights", ["-1", '"heavy"', None])
def test_weights_of_nodes_that_do_not_count_do_no_harm(folder, weights):
    nodes = f'{{"id": 1, "weight": {weights}}}' if weights else '{"id": 1}'
    (folder / "g.json").write_text(f'{{"nodes": [{nodes}, {{"id": 2, "weight": 1}}], "edges": []}}')
    assert sl_discs.solve(sl_discs.read(folder / "g.json", "maxcut")).optimal
    with pytest.warns(UserWarning, match="do not count"):
        assert sl_discs.solve(sl_discs.read(folder / "g.json", "mis")).optimal
    with pytest.raises(InputError):
        sl_discs.read(folder / "g.json", "mis", weights=True)


@pytest.mark.parametrize(
    ("content", "weights"),
    [
        ("p edge 3 1\nn 3 2.5\ne 1 2\nn 1 0\n", [0, 1, 2.5]),
        ("p edge 3 1\nv 3 2.5\nv 1 0\ne 1 2\n", [0, 1, 2.5]),
        ("p edge 3 1\nd 2\nv 0.5 0.5\nx 1\ne 1 2\n", None),
        ("% a\n3 1 10\n4 2\n5 1\n6\n", [4, 5, 6]),
        ('{"nodes": [{"id": 1, "weight": 2}, {"id": 2, "weight": 0.5}], "links": []}', [2, 0.5]),
    ],
)
def test_weights_of_nodes(folder, content, weights):
    found = read(
        folder, content, format="metis" if content.startswith("%") else None
    ).content.node_weights
    assert found is None if weights is None else found.tolist() == weights


def networkx_text(name, graph):
    if name == "node_link":
        return json.dumps(nx.node_link_data(graph, edges="edges"))
    return "\n".join((nx.generate_gml if name == "gml" else nx.generate_graphml)(graph))


NETWORKX = pytest.mark.parametrize("name", ["gml", "graphml", "node_link"])


@NETWORKX
def test_numbers_under_another_name_are_told_and_used_when_named(folder, name):
    graph = nx.Graph()
    graph.add_nodes_from("abc", cost=2.5)
    graph.add_weighted_edges_from([("a", "b", 1), ("b", "c", 7), ("a", "c", 9)], weight="value")
    nx.set_edge_attributes(graph, "red", "colour")
    instance = read(folder, networkx_text(name, graph))
    assert instance.content.weights is None
    assert [one.of for one in instance.remarks] == ["edges", "nodes"]
    path = folder / "instance"
    with pytest.warns(UserWarning, match="weight=value uses"):
        assert sl_discs.solve(sl_discs.read(path, "maxcut")).best_value == 2
    assert sl_discs.solve(sl_discs.read(path, "maxcut", weight="value")).best_value == 16
    with pytest.raises(InputError):
        sl_discs.read(path, "vertex_cover", weights=True)
    assert sl_discs.solve(sl_discs.read(path, "vertex_cover", weight="cost")).best_value == 5
    with pytest.raises(InputError):
        sl_discs.read(path, "maxcut", weight="cost")
    for other in "rudy", "edge_list":
        with pytest.raises(InputError):
            read(folder, "2 1\n1 2 1\n", weight="value", format=other)


@NETWORKX
def test_directions_do_not_count_but_must_agree(folder, name):
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(
        [("a", "b", -0.5), ("b", "c", 2.5), ("a", "c", 1.5), ("c", "a", 1.5)]
    )
    read(folder, networkx_text(name, graph))
    with pytest.warns(UserWarning, match="listed again"):
        problem = sl_discs.read(folder / "instance", "maxcut")
        assert sl_discs.solve(problem, time_limit=1).best_value == 4
    graph.edges["c", "a"]["weight"] = 2.0
    with pytest.raises(InputError):
        read(folder, networkx_text(name, graph))


@NETWORKX
def test_ends_of_edges_must_be_listed(folder, name):
    text = networkx_text(name, nx.relabel_nodes(nx.path_graph(3), {0: "a", 1: "b", 2: "c"}))
    node = {
        "gml": r"node \[\s+id 2[^]]*\]",
        "graphml": r'<node id="c"\s*/>',
        "node_link": r', \{"id": "c"\}',
    }[name]
    shorter = re.sub(node, "", text)
    assert shorter != text and read(folder, text).content.num_nodes == 3
    with pytest.raises(InputError):
        read(folder, shorter)
    if name == "graphml":
        plain = re.sub(r" xmlns[:\w]*=\S+| xsi:\S+=\"[^\"]*\"", "", text)
        assert read(folder, plain).content.num_edges == 2


# Tables with commas or semicolons, and the best value of what their message makes of them.
TABLES = {
    "commas": ("1,2\n2,3\n1,3\n", "maxcut", 2),
    "commas and blanks": ("a, b, 2\nb, c, 4\n", "maxcut", 6),
    "semicolons": ("\ufeffSource;Target;Weight\n1;2;3,5\n2;3;1\n1;3;2\n", "maxcut", 5.5),
    "couplings with commas": ("0,0,-1\n1,1,2\n0,1,-3.5\n2,2,1\n", "qubo", -2.5),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_are_refused_with_the_command_that_parts_their_columns(folder, monkeypatch, case):
    content, problem, best = TABLES[case]
    monkeypatch.chdir(folder)
    path = folder / "other.txt"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_instances(path, problem=problem)
    command = re.search(r"tr '.*(?=, or)", str(caught.value))
    subprocess.run(command[0], shell=True, check=True)
    name = "coo" if problem == "qubo" else "edge_list"
    assert sl_discs.solve(sl_discs.read("NEW.edges", problem, format=name)).best_value == best


# SAT formulas.

LITERAL = st.integers(1, 4).flatmap(lambda v: st.sampled_from([v, -v]))
FORMULA = st.lists(st.lists(LITERAL, max_size=3).map(tuple), min_size=1, max_size=4).filter(any)


@EXAMPLES
@given(clauses=FORMULA, breaks=RANDOM)
def test_an_independent_set_satisfies_clauses(folder, clauses, breaks):
    """In any layout of the file: one node of each clause that can be satisfied with the others, and
    no more.
    """
    words = " ".join(" ".join(map(str, (*clause, 0))) for clause in clauses).split(" ")
    body = "".join(word + breaks.choice([" ", "\n", "\nc note\n", "  \t"]) for word in words)
    (folder / "f.cnf").write_text(f"c first\np cnf 4 {len(clauses)} \n{body}\n%\n0\n\n")
    assert read_cnf(folder / "f.cnf") == clauses
    graph = conflict_graph("f", clauses)
    assert graph.num_nodes == sum(map(len, clauses)) and graph.reference == sum(map(bool, clauses))
    signs = itertools.product([False, True], repeat=4)
    most = max(
        sum(any((x > 0) == s[abs(x) - 1] for x in clause) for clause in clauses) for s in signs
    )
    sets = (np.array(x) for x in itertools.product([0, 1], repeat=graph.num_nodes))
    assert most == max(x.sum() for x in sets if not (x[graph.edges].all(axis=1)).any())


def test_nodes_follow_the_clauses(folder):
    graph = conflict_graph("f", [(1, 2, 3), (-1, 2, -3)])
    assert graph.edges.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [2, 5], [3, 4], [3, 5], [4, 5]]
    instance = read(folder, "p cnf 2 3\n1 1 2 0\n-1 -1 0\n-2 -2 0\n", problem="mis")
    assert list(instance.labels) == ["1:1", "1:2", "2:-1", "3:-2"]
    assert instance.content.reference == 3


# Quadratic models. All numbers are multiples of 1/4, so that sums are exact.

MATRICES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.integers(-40, 40), min_size=n * n, max_size=n * n).map(
        lambda values: np.reshape(values, (n, n)) / 4
    )
)


@EXAMPLES
@given(matrix=MATRICES, rng=RANDOM, spins=st.booleans())
@pytest.mark.parametrize("name", ["qbsolv", "biqmac", "mqlib", "coo", "coordinate", "array"])
def test_models_have_the_values_that_were_written(folder, name, matrix, rng, spins):
    """v'Mv, with an upper triangle in qbsolv, a symmetric M for Biq Mac and MQLib, and a linear
    diagonal in coo.
    """
    n = len(matrix)
    labels = range(1, len(matrix) + 1)
    spins = spins and name in ("coo", "coordinate", "array")
    linear = np.zeros(n)
    if name == "qbsolv":
        matrix, labels = np.triu(matrix), range(n)
        rows = [(i, j, matrix[i, j]) for i, j in np.argwhere(matrix).tolist()]
        own = np.count_nonzero(np.diag(matrix))
        header = ("p", "qubo", rng.choice([0, "unconstrained"]), n, own, len(rows) - own)
        content = lines([header, *rows], rng, "c")
    elif name in ("biqmac", "mqlib"):
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
        pairs = [rng.choice([(i, j), (j, i)]) for i in range(n) for j in range(i, n)]
        content = "# Vars Non-zeros\n" + lines(
            [(n, len(pairs)), *((i + 1, j + 1, matrix[i, j]) for i, j in pairs)], rng
        )
    elif name == "coo":
        labels = sorted(rng.sample(range(10**18), n))
        rows = [(labels[i], labels[j], matrix[i, j]) for i in range(n) for j in range(n)]
        rows += [(labels[0], labels[0], 0.5)]  # adds up
        rng.shuffle(rows)
        content = f"# vartype={'SPIN' if spins else 'BINARY'}\n" + lines(rows, rng, "#")
        linear = np.diag(matrix) + 0.5 * np.eye(n)[0]
        matrix = matrix - np.diag(np.diag(matrix))
    else:
        rows = [(i + 1, j + 1, matrix[i, j]) for i, j in np.argwhere(matrix).tolist()]
        sparse = lines([(n, n, len(rows)), *rows], rng)
        values = (
            sparse if name == "coordinate" else "\n".join(map(str, [f"{n} {n}", *matrix.T.ravel()]))
        )
        content = f"%%MatrixMarket matrix {name} real general\n{values}"
    format = "matrix_market" if name in ("coordinate", "array") else name
    instance = read(folder, content, format=format, problem="ising" if spins else "qubo")
    form = instance.content
    assert list(instance.labels) == list(labels) and not instance.remarks
    assert form.spins == spins and form.maximise == (name == "mqlib")
    for x in itertools.product([0, 1], repeat=n):
        v = 2 * np.array(x) - 1 if spins else np.array(x)
        assert FormValues(form)(np.array([x]))[0] == linear @ v + v @ matrix @ v


def test_a_constant_in_a_comment_counts(folder):
    qubo = "c scale : 1.0\nc offset : 2.5\np qubo 0 7 2 0\nc linear terms\n2 2 1.5\n6 6 -0.5\n"
    assert read(folder, qubo).content.offset == 2.5
    assert sl_discs.solve(sl_discs.read(folder / "instance")).best_value == 2.0
    for comment, offset in (
        ("Constant = -1", -1),
        ("ObjectiveOffset -1.5", -1.5),
        ("offset is unknown\n# constant 1 of 2", 0),
    ):
        text = f"# vartype=SPIN\n# {comment}\n0 1 2\n"
        assert read(folder, text).content.offset == offset
    matrix = "%%MatrixMarket matrix coordinate real symmetric\n% offset: 3\n2 2 1\n2 1 4\n"
    assert read(folder, matrix, problem="qubo").content.offset == 3


# Numbers.


@EXAMPLES
@given(graph=graphs(st.floats(-4e305, 4e305)), data=st.data())
def test_written_weights_come_back_bit_by_bit(folder, graph, data):
    n, edges = graph
    weights = data.draw(st.lists(st.floats(0, 1e300), min_size=n, max_size=n))
    original = Graph.from_arrays("g", n, np.array(list(edges)), list(edges.values()))
    heavy = Graph.from_arrays("g", n, original.edges, node_weights=weights)
    for write, other, written in (
        (write_rudy, write_dimacs, original),
        (write_dimacs, write_rudy, heavy),
    ):
        name = "g.rudy" if write is write_rudy else "g.clq"
        write(folder / name, written)
        found = read_instances(folder / name)[0].content
        for one, same in zip(vars(found).values(), vars(written).values(), strict=True):
            assert (one is None) == (same is None) and np.array_equal(one, same)
        if written is heavy or (original.weights != 1).any():
            with pytest.raises(InputError):
                other(folder / name, written)


NUMERALS = st.from_regex(r"[-+]?[0-9]{0,20}[.]?[0-9]{0,18}([eE][-+]?[0-9]{1,3})?", fullmatch=True)


@settings(max_examples=300, deadline=None)
@given(word=NUMERALS.filter(len) | st.text("0123456789+-.eE_infa", min_size=1, max_size=7))
def test_numbers_are_those_of_python_or_refused(folder, word):
    """Those with an exponent as rounded; others are exact from 2^53 on."""
    try:
        expected = float(word)
        good = abs(expected) < 1e307 and not set(word) & set("_infa")
    except ValueError:
        good = False
    if good and abs(expected) >= 2**53 and "e" not in word.lower():
        good = decimal.Decimal(word) == decimal.Decimal(expected)
    try:
        value = read(folder, f"3 2\n1 2 1\n2 3 {word}\n", format="rudy").content.weights[1]
    except InputError as error:
        assert not good and str(error).startswith(f"{folder / 'instance'}:")
    else:
        assert good and value.tobytes() == np.float64(expected).tobytes()


LARGE = [
    ("metis", "2 1 1\n2 {0}\n1 {0}\n"),
    ("edge_list", "# names\nsource target weight\n5 9 1\n9 7 {}\n"),
    ("edge_list", "a b 007.5\nb c {}\n"),
    ("matrix_market", "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 {}\n"),
    ("coo", "# vartype=SPIN\n0 1 {}\n"),
]


@pytest.mark.parametrize(("name", "text"), LARGE)
def test_whole_numbers_beyond_2_to_the_53_are_exact_or_refused(folder, name, text):
    content = read(folder, text.format(2**53 + 2), format=name).content
    assert (
        int((content.weights if isinstance(content, Graph) else content.couplings)[-1]) == 2**53 + 2
    )
    with pytest.raises(InputError):
        read(folder, text.format(2**53 + 1), format=name)


# Which format a file is in.


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("\ufeffc a\np edge 2 1\ne 1 2\n", "dimacs"),
        ("c pairs\np td 3 2\n1 2\n2 3\n", "dimacs"),
        ("# a\na b {'weight': 2}\n", "edge_list"),
        ("# a\n# vartype=SPIN\n0 1 2\n", "coo"),
        ("c a\np qubo 0 2 0 1\n0 1 3\n", "qbsolv"),
    ],
)
def test_a_format_is_known_by_its_first_lines_or_asked_for(folder, content, name):
    assert read(folder, content).format == name
    (folder / "g.rudy").write_text(content)
    assert read_instances(folder / "g.rudy")[0].format == name
    with pytest.raises(NotSupported):
        read(folder, "3 2\n1 2\n2 3\n")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_read_as_plain_ones(folder, pack):
    (folder / "g.GRAPH.any").write_bytes(pack(b"3 3\n2 3\n1 3") + pack(b"\n1 2\n"))
    (instance,) = read_instances(folder / "g.GRAPH.any")
    assert (instance.content.name, instance.format, instance.content.num_edges) == ("g", "metis", 3)
