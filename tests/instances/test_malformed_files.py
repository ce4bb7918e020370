"""Files that are wrong: one line that names the file, the line and the remedy, before any harm."""

import bz2
import gzip
import io
import lzma
import os
import re
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs import errors
from sl_discs.commands import convert
from sl_discs.errors import InputError
from sl_discs.instances import text
from sl_discs.instances.archive import read_archive, write_archive
from sl_discs.instances.discs_files import load_pickle
from sl_discs.instances.formats import read_instances
from sl_discs.instances.graph import Graph

MM = "%%MatrixMarket matrix coordinate"
REAL, PATTERN = f"{MM} real general\n", f"{MM} pattern symmetric\n"
ARRAY = "%%MatrixMarket matrix array real general\n"
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 4096\n"
SHORT = ": damaged or cut short"


def archive_of(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def zip_of(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    """Memory of 4 GiB, whatever machine the tests are on."""
    monkeypatch.setattr(errors, "usable_memory", lambda: 4 * errors.GIB)


# Content, what the message says after the name of the file, and the format where it is named.
GRAPHS = {
    "empty": ("", ": the file is empty"),
    "blank": (" \n\n\t\n", ": .*nothing but blanks"),
    "comments": ("# one\n# two\n", ": the file ends where a graph or model should be"),
    "binary": (bytes(range(256)) * 8, ": a binary file"),
    "utf-16": ("3 1\n1 2 1\n".encode("utf-16"), ": .*text in UTF-16; give text in UTF-8"),
    "labels not utf-8": (b"\xff \xfe\n\xfa \xfb\n", r": label .* UTF-8", "edge_list"),
    # Other text than graphs
    "a Git LFS pointer": (
        LFS,
        ": a Git LFS pointer, not the file itself; fetch that with: git lfs pull",
        "edge_list",
    ),
    "a web page": ("<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n", ": a web page, perhaps of an error"),
    "an error": ("AccessDenied Request\nhas expired\n", ":1: 'AccessDenied Request' begins no format"),
    "row names": ('"1" 10 20\n"2" 20 30\n', ":1: .* begins no format"),
    "names of nodes": ("alice bob\nbob carol\n", ":1: .* or any words with --format=edge_list"),
    "comments of C": ("// edges\n1 2\n2 3\n", ":1: '// edges' begins no format"),
    "comments within": ("1 2\n// edges\n2 3\n", ":2: '//' is not a whole number"),
    "fractions as labels": ("1.0 2.0\n2.0 3.0\n", ":1: '1.0 2.0' begins no format"),
    "a list with times": ("1 2 1 1083\n2 3 1 1084\n", ":1: .* begins no format that is read .lists with a time"),
    "OR-Library": ("1\n2 1\n1 2 3\n", ":1: '1' begins no format that is read .OR-Library's bqp begins like this"),
    "shortest paths": ("c a\np sp 3 2\na 1 2 4\n", ": files of 'p sp' are not read; those of p cnf, p qubo, p edge"),
    "xml": ("<gexf></gexf>", ":1: '<gexf></gexf>' begins no format that is read"),
    # Archives and packed files
    "zip": (zip_of("a.txt", "1 2"), ": array 'names' is missing"),
    "cut zip": (zip_of("a.txt", "1 2")[:30], ": not an .npz archive, or cut short"),
    "cut gzip": (gzip.compress(b"3 1\n1 2 1\n" * 99)[:-9], SHORT),
    "cut bzip2": (bz2.compress(b"3 1\n1 2 1\n")[:-9], SHORT),
    "damaged xz": (lzma.compress(b"2 1\n1 2 1\n").replace(b"YZ", b"XX"), SHORT),
    "gzip and more": (gzip.compress(b"2 1\n1 2 1\n") + b"more", SHORT),
    # rudy
    "rudy: too few": ("3 3\n1 2 1\n2 3 1\n", ":1: the header promises 3 edges, but there are 2"),
    "rudy: too few, unweighted": ("9 5\n1 2\n2 3\n", ":1: the header promises 5 edges, .* say --format=edge_list"),
    "rudy: node 4": ("3 2\n\n# x\n1 2 1\n2 4 1\n", ":5: node 4, but nodes are 1 to 3"),
    "rudy: negative": ("3 2\n1 2 1\n-1 2 1\n", ":3: '-1' is not a whole number"),
    "rudy: nan": ("3 2\n1 2 1\n2 3 nan\n", ":3: 'nan' is not a finite number"),
    "rudy: long": ("3 2\n1 2 1\n2 " + "9" * 5000 + " 1\n", ":3: '9{40}...' is not a whole number"),
    "rudy: columns": ("3 3\n1 2 1\n2 3 1\n1 3\n", ":4: '1 3' where every line should be"),
    "rudy: carriage return": ("3 2\n1 2 1\n2 3\r1\n", ":.* a line is not an edge"),
    "rudy: loop": ("3 2\n1 2 1\n2 2 1\n", ":3: an edge from node 2 to itself"),
    "rudy: repeated": ("3 3\n1 2 1\n1 3 1\n2 1 1\n", ":4: edge 2 1 is listed a second time"),
    "rudy: 10^15 nodes": ("1000000000000000 1\n1 2 1\n", ":1: 1000000000000000 nodes; at most 2\\^31 - 1"),
    "rudy: 10^9 nodes": (
        "1000000000 1\n1 2 1\n",
        ":1: a single chain on 1000000000 nodes would take about 186.3 GiB of memory, and there are 4.0 GiB",
    ),
    # DIMACS
    "dimacs: no counts": ("c a\np edge\n", ":2: 'p edge' is not a header"),
    "dimacs: negative": ("p edge -3 1\ne 1 2\n", ":1: 'p edge -3 1' is not a header"),
    "dimacs: too few": ("p edge 3 3\ne 1 2\ne 2 1\n", ":1: the header promises 3 edges on 2 lines, but there are 1"),
    "dimacs: unknown line": ("p edge 3 1\nq 1 2\n", ":2: 'q 1 2' where every line should be an edge, 'e i j'"),
    "dimacs: node 4": ("p edge 3 2\ne 1 2\nc x\ne 4 1\n", ":4: node 4, but nodes are 1 to 3"),
    "dimacs: negative weight": ("p edge 3 1\nn 2 -1\ne 1 2\n", ":2: the weight of node 2 is -1.0"),
    "dimacs: two weights": ("p edge 3 1\nn 1 2\nn 2 2\nn 1 3\n", ":4: node 1 has a weight already"),
    "pace: with e": ("p td 3 2\ne 1 2\ne 2 3\n", ":2: 'e 1 2' where every line should be an edge, 'i j'"),
    # METIS
    "metis: too few lines": ("4 3 1\n2 5\n1 5 3 1\n2 1\n", ":1: the header promises 4 lines", "metis"),
    "metis: too many lines": ("2 1\n2\n1\n1 2\n", ":4: '1 2' after the last of 2 nodes", "metis"),
    "metis: one way": ("3 1\n2\n\n\n", ":2: neighbour 2 does not have this node in its own line"),
    "metis: range": ("3 2\n2\n1 4\n2\n", ":3: neighbour 4, but nodes are 1 to 3"),
    "metis: loop": ("3 2\n2\n1 2\n\n", ":3: node 2 is its own neighbour"),
    "metis: twice": ("3 2\n2 2\n1 1\n\n", ":2: neighbour 2 is listed twice", "metis"),
    "metis: edges": ("3 3\n2\n1 3\n2\n", ":1: the header promises 3 edges, but there are 2"),
    "metis: fmt": ("3 2 7\n2\n1 3\n2\n", ":1: '3 2 7' is not a header", "metis"),
    "metis: parity": (
        "3 2 1\n2 1\n1 1 3\n2 1\n",
        ":3: '1 1 3' where every line should be whole n",
        "metis",
    ),
    "metis: weights": ("3 2 1\n2 1\n1 2 3 1\n2 1\n", ":2: the weight to neighbour 2 differs", "metis"),
    "metis: word": ("3 2\n2\n1 x 3\n2\n", ":3: '1 x 3' where every line should be whole numbers"),
    # Edge lists
    "list: columns": ("0 1\n1 2\n2\n", ":3: '2' where every line"),
    "list: networkx": ("0 1 {}\n", ":1: '{}' is not a finite number"),
    "list: csv": ("0,1\n1,2\n", ":1: '0,1' begins no format"),
    "list: loop": ("a b\nb b\n", ":2: an edge from node .* to itself", "edge_list"),
    "list: conflict": ("0 1 2\n1 2 2\n1 0 3\n", ":3: edge 1 0 was given before with another weight", "edge_list"),
    "list: heading": ("# pairs\nbegin end\n1 2\n2 3\n", ":2: 'begin end' above numbers reads as", "edge_list"),
    # Matrix Market, by SciPy
    "mm: complex": (f"{MM} complex general\n1 1 0\n", ":1: a complex, general matrix, which defines neither"),
    "mm: bad size": (REAL + "2 2\n", ": not a readable MatrixMarket file"),
    "mm: not square": (REAL + "2 3 0\n", ": a matrix of 2 by 3"),
    "mm: no rows": (ARRAY + "0 0\n0\n", ": a matrix of 0 by 0"),
    "mm: too few": (PATTERN + "3 3 2\n2 1\n", ": not a readable MatrixMarket file .*[Tt]runcated"),
    "mm: 10^15 entries": (PATTERN + "3 3 1000000000000000\n2 1\n", ": the header promises 10{15} entries"),
    "mm: twice": (REAL + "3 3 2\n2 1 5\n2 1 5\n", ": an entry is given twice"),
    "mm: disagree": (REAL + "3 3 2\n2 1 5\n1 2 4\n", ": edge 1 2 was given before with another weight than 4.0"),
    "mm: diagonal": (REAL + "3 3 2\n2 1 5\n2 2 4\n", ": an edge from node 2 to itself"),
    # SAT formulas
    "cnf: too few": ("p cnf 2 2\n1 2 0\n", ":1: the header promises 2 clauses"),
    "cnf: literal": ("p cnf 2 1\n1 3 0\n", ":2: '3' is not a literal of 2 variables"),
    "cnf: unfinished": ("p cnf 2 1\n1 2\n", ":2: the last clause does not end with 0"),
    "cnf: late header": ("1 2 0\np cnf 2 1\n", ":1: '1 2 0' is not a header", "cnf"),
    "cnf: many edges": (
        "p cnf 5000 1\n" + " ".join(map(str, range(1, 5001))) + " 0\n",
        ": 12497500 conflicts between literals",
    ),
    "cnf: nothing": ("p cnf 1 1\n0\n", ": no clause has a literal"),
    # By networkx
    "gml: cut short": ("graph [\n node [ id 1 ]\n", r": not a graph in GML \(expected ']', found EOF"),
    "gml: directed": ("graph [ directed 1 node [ id 1 ] ]", ": bad: a directed graph or multigraph"),
    "gml: loop": ("graph [ node [ id 7 ] edge [ source 7 target 7 ] ]", ": an edge from node 7 to itself"),
    "gml: no nodes": ("graph [ ]", ": .*the graph is empty"),
    "graphml: cut short": ("<graphml><graph>\n", r": not a graph in GraphML \(no element found: line 2"),
    "json: other content": ('{"best_value": 3}', r": not a graph in node-link JSON \(no lists 'nodes' and 'edges'"),
    "json: deep": ('{"nodes":' + "[" * 10**5, ": not a graph in node-link JSON"),
    "json: a node twice": (
        '{"nodes": [{"id": 1}, {"id": 1}], "edges": []}',
        r": .* \(a node or edge is listed twice",
    ),
    "json: several edges": (
        '{"multigraph": true, "nodes": [{"id": 1}], "links": []}',
        ": bad: a directed graph or multi",
    ),
    "json: a weight of some nodes": (
        '{"nodes": [{"id": 1, "weight": 2}, {"id": 2}], "links": []}',
        ": bad: node 2 has no weight; give every node one",
    ),
}
MODELS = {
    "qbsolv: topology": ("p qubo chimera128 2 0 0\n", ":1: .* is not a header"),
    "qbsolv: couplers": ("c\np qubo 0 2 1 2\n0 0 1\n0 1 1\n", ":2: the header promises 2 couplers"),
    "qbsolv: order": ("p qubo 0 2 0 1\n1 0 1\n", ":2: coupler 1 0; the smaller node comes first"),
    "qbsolv: twice": ("p qubo 0 2 0 2\n0 1 1\n0 1 1\n", ":3: the coefficient of 0 and 1 was given before"),
    "qbsolv: two offsets": ("c offset = 2\nc offset = 3\np qubo 0 1 1 0\n0 0 1\n", ": .* the offset '3'"),
    "qbsolv: scale": ("c scale : 2\np qubo 0 1 1 0\n0 0 1\n", ": a comment with the scale '2'"),
    "coo: vartype": ("# vartype=TERNARY\n0 1 1\n", ": vartype='TERNARY'; expected BINARY or SPIN"),
    "coo: nothing": ("# vartype=BINARY\n", ": no coefficients"),
    "coo: a word": ("# vartype=BINARY\n0 0 1\n0 1 x\n", ":3: 'x' is not a finite number"),
    "coo: spins": ("# vartype=SPIN\n0 1 1\n", ": coo holds a model of spins; use problem=ising"),
    "a graph": ("2 1\n1 2 1\n", ": rudy holds a graph, but qubo needs a quadratic model"),
    "a sum that overflows": (REAL + "2 2 2\n1 1 1e308\n2 2 1e308\n", ": bad: coefficients that add up to more than"),
}


def write(folder, content):
    path = folder / "bad.any"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def assert_refused(path, says, memory=2**27, **options):
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read_instances(path, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert re.match(re.escape(str(path)) + "(?:" + says + ")", str(caught.value))
    assert len(str(caught.value).splitlines()) == 1 and ";" in str(caught.value)
    assert peak < memory


@pytest.mark.parametrize("case", [*GRAPHS, *MODELS])
def test_malformed_files(tmp_path, case):
    content, says, *form = (GRAPHS | MODELS)[case]
    options = {"format": form[0] if form else None, "problem": "qubo" if case in MODELS else None}
    assert_refused(write(tmp_path, content), says, **options)


def test_commands_say_it_in_one_line(tmp_path, capsys):
    path = write(tmp_path, "3 2\n1 2 1\n2 2 1\n")
    assert convert.main(["convert", str(path), str(tmp_path / "out.npz")]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"error: {path}:3: ") and len(err.splitlines()) == 1
    assert not (tmp_path / "out.npz").exists()


SAMPLES = [
    b"4 3\n1 2 1\n1 3 -2.5\n3 4 1e3\n",
    b"c a\np edge 4 3\nn 1 2\ne 1 2\ne 1 3\ne 3 4\n",
    b"4 3 11 2\n1 1 2 5 3 1\n1 1 1 5\n1 1 1 1 4 2\n2 2 3 2\n",
    b"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 0\n2 1 4\n3 2 -1\n",
    b"p cnf 3 2\n1 -2 3 0\n-1 2 0\n",
    b"c offset = 2\np qubo 0 3 2 1\n0 0 1\n2 2 1\n0 2 -3\n",
    b"# vartype=SPIN\n0 0 1\n0 7 2\n",
    gzip.compress(b"3 2\n1 2 1\n2 3 1\n"),
    archive_of(names=np.array(["g"]), num_nodes=np.array([2]), edge_ptr=np.array([0, 1]), edges=np.array([[0, 1]])),
]


@settings(max_examples=300, deadline=None)
@given(
    content=st.sampled_from(SAMPLES),
    cut=st.tuples(st.integers(0, 10**4), st.integers(0, 4)),
    put=st.binary(max_size=3) | st.text("0123456789 -.e\n", max_size=4).map(str.encode),
    problem=st.sampled_from([None, "maxcut", "qubo", "ising"]),
)
def test_damage_gives_another_file_or_one_line(tmp_path_factory, content, cut, put, problem):
    start = cut[0] % len(content)
    path = write(tmp_path_factory.getbasetemp(), content[:start] + put + content[start + cut[1] :])
    try:
        found = read_instances(path, problem=problem)
    except InputError as error:
        assert str(error).startswith(str(path)) and len(str(error).splitlines()) == 1
    else:
        assert all(len(instance.labels) > 0 for instance in found)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_bombs_unpack_to_the_limit_and_no_further(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(text, "_UNPACKED_BYTES", 2**20)
    path = write(tmp_path, pack(b"0 1\n" * 2**16) * 100)
    assert path.stat().st_size < 2**18 < 100 * 2**18
    assert_refused(path, r": unpacks to more than \d MiB, far beyond its own size; .*plain file")


def test_what_is_no_file(tmp_path, monkeypatch):
    assert_refused(tmp_path, ": a folder")
    assert_refused(tmp_path / "absent", ": no such file")
    os.mkfifo(tmp_path / "pipe")
    assert_refused(tmp_path / "pipe", ": not a regular file")


def test_a_pointer_of_git_lfs_is_no_file_of_any_kind(tmp_path):
    for name in "g.edges", "g.npz", "g.mtx":
        (tmp_path / name).write_text(LFS)
        assert_refused(tmp_path / name, ": a Git LFS pointer, not the file itself; fetch that with: git lfs pull")
    for read in load_pickle, read_archive:
        with pytest.raises(InputError, match=r"g\.npz: a Git LFS pointer"):
            read(tmp_path / "g.npz")


def test_what_does_not_go_together(tmp_path):
    (tmp_path / "g.edges").write_text("alice bob\nbob eve\n")
    assert_refused(tmp_path / "g.edges", ":1: 'alice bob' is not an edge between .* say --format=edge_list")
    path = write(tmp_path, "p qubo 0 2 0 1\n0 1 3\n")
    assert_refused(path, ": qbsolv holds a quadratic model, but mis needs a graph", problem="mis")
    for wrong, says in (({"problem": "sat"}, "unknown problem 'sat'"), ({"format": "gexf"}, "unknown format 'gexf'")):
        with pytest.raises(InputError, match=says):
            read_instances(path, **wrong)
    assert_refused(path, ": not a zip archive, so its format is not npz", format="npz")
    write_archive(tmp_path / "g.npz", [Graph.from_arrays("g", 2, [(0, 1)])])
    assert_refused(tmp_path / "g.npz", ": a zip archive, so its format is not rudy", format="rudy")
