"""Files that are wrong: one line that names the file, the line and the remedy, before any harm."""

import contextlib
import gzip
import io
import itertools
import lzma
import re
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.instances import text
from sl_discs.instances.archive import read_archive, write_archive
from sl_discs.instances.discs_files import load_pickle
from sl_discs.instances.formats import FORMATS, read_instances
from sl_discs.instances.graph import Graph
from sl_discs.support import memory
from sl_discs.support.errors import InputError

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
    monkeypatch.setattr(memory, "usable_memory", lambda: 4 * memory.GIB)


# Content, what the message says after the name of the file, and the format where it is named.
GRAPHS = {
    "empty": ("", ": the file is empty"),
    "binary": (bytes(range(256)) * 8, ": a binary file"),
    "utf-16": ("3 1\n1 2 1\n".encode("utf-16"), ": .*text in UTF-16; give text in UTF-8"),
    "labels not utf-8": (b"a \xfe\n\xfa \xfb\n", r":1: not an edge.* can't decode", "edge_list"),
    # Other text than graphs
    "names of nodes": (
        "alice bob\nbob carol\n",
        ": neither its first lines nor a suffix tells the format; say --format",
    ),
    "shortest paths": ("c a\np sp 3 2\na 1 2 4\n", ": neither its first lines nor a suffix tells"),
    # Archives and packed files
    "zip": (
        zip_of("a{}.txt", "1 2"),
        r": an archive of another program, with a\{\}.txt; unpack it",
    ),
    "dimacs in bits": (
        b"16\nc a\np col 4 3\n\0\x80\xc0",
        ": a binary file, or text in UTF-16",
    ),
    "cut zip": (zip_of("a.txt", "1 2")[:30], ": not an .npz archive, or cut short"),
    "cut gzip": (gzip.compress(b"3 1\n1 2 1\n" * 99)[:-9], SHORT),
    "damaged xz": (lzma.compress(b"2 1\n1 2 1\n").replace(b"YZ", b"XX"), SHORT),
    # rudy
    "rudy: too few": ("9 5\n1 2\n2 3\n", ":1: the header promises 5 edges"),
    "rudy: node 4": ("3 2\n\n# x\n1 2 1\n2 4 1\n", ":5: 2 and 4, but nodes are 1 to 3"),
    "rudy: nan": ("3 2\n1 2 1\n2 3 nan\n", ":3: '2 3 nan' where every line"),
    "rudy: loop": ("3 2\n1 2\n2 2\n", ":3: an edge from node 2 to itself"),
    "rudy: repeated": ("3 3\n1 2 1\n1 3 1\n2 1 1\n", ":4: edge 2 1 is listed a second time"),
    "rudy: 10^15 nodes": (
        "1000000000000000 1\n1 2 1\n",
        ":1: 1000000000000000 nodes; at most 2\\^31 - 1",
    ),
    "rudy: 10^9 nodes": (
        "1000000000 1\n1 2 1\n",
        ":1: a single chain on 1000000000 nodes would take about 186.3 GiB of memory, and there "
        "are 4.0 GiB",
    ),
    # DIMACS
    "dimacs: too few": (
        "p edge 3 3\ne 1 2\ne 2 1\n",
        ":1: the header promises 3 edges on 2 lines, but there are 1",
    ),
    "dimacs: unknown line": (
        "p edge 3 1\nq 1 2\n",
        ":2: 'q 1 2' where every line should be an edge, 'e i j'",
    ),
    "dimacs: node 4": ("p edge 3 2\ne 1 2\nc x\ne 4 1\n", ":4: 4 and 1, but nodes are 1 to 3"),
    "dimacs: negative weight": (
        "p edge 3 1\nn 2 -1\ne 1 2\n",
        ": bad: the weight of node 2 is -1.0",
    ),
    # METIS
    "metis: too few lines": (
        "4 3 1\n2 5\n1 5 3 1\n2 1\n",
        ":1: the header promises 4 lines",
        "metis",
    ),
    "metis: one way": ("3 1\n2\n\n\n", ":2: neighbour 2 does not have this node in its own line"),
    "metis: range": ("3 2\n2\n1 4\n2\n", ":3: 2 and 4, but nodes are 1 to 3"),
    "metis: edges": ("3 3\n2\n1 3\n2\n", ":1: the header promises 3 edges, but there are 2"),
    "metis: weights": (
        "3 2 1\n2 1\n1 2 3 1\n2 1\n",
        ":3: edge 2 1 was given before with another weight",
        "metis",
    ),
    # Edge lists
    "list: columns": ("0 1\n1 2\n2\n", ":3: '2' where every line", "edge_list"),
    "list: leading zeros": (
        "0" * 5000 + "1 2\n2 x\n",
        ":1: '0000.*' where every line",
        "edge_list",
    ),
    "list: digits": ("1 2 " + "1" * 10**5 + "x\n", ":1: '1 2 111.*' where every line", "edge_list"),
    "list: attributes": ("1 2 {}\n1 3 {(\n", ":2: not an edge, .*never closed"),
    "list: conflict": (
        "0 1 2\n1 2 2\n1 0 3\n",
        ":3: edge 1 0 was given before with another weight",
        "edge_list",
    ),
    # Matrix Market, by SciPy
    "mm: complex": (f"{MM} complex general\n1 1 0\n", ":1: .* defines neither"),
    "mm: two numbers": (
        PATTERN + "3 2\n2 1\n3 2\n",
        ":2: '3 2' is not a header; write 'ROWS COLUMNS ENTRIES'",
    ),
    "mm: not square": (REAL + "2 3 0\n", ":2: a matrix of 2 by 3"),
    "mm: too few": (PATTERN + "3 3 2\n2 1\n", ":2: the header promises 2 entries, but there are 1"),
    "mm: a dense one": (ARRAY + "2 2\n1\n", ":2: the header promises 4 entries, but there are 1"),
    "mm: 10^15 entries": (
        PATTERN + "3 3 1000000000000000\n2 1\n",
        ":2: the header promises 10{15} entries",
    ),
    "mm: twice": (REAL + "3 3 2\n2 1 5\n2 1 5\n", ":4: the entry of 2 and 1 is given twice"),
    "mm: diagonal": (REAL + "3 3 2\n2 1 5\n2 2 4\n", ":4: an edge from node 2 to itself"),
    # SAT formulas
    "cnf: too few": ("p cnf 2 2\n1 2 0\n", ":1: the header promises 2 clauses"),
    "cnf: literal": ("p cnf 2 1\n1 3 0\n", ":2: '3' is not a literal of 2 variables"),
    "cnf: many edges": (
        "p cnf 5000 1\n" + " ".join(map(str, range(1, 5001))) + " 0\n",
        ": 12497500 conflicts between literals",
    ),
    "cnf: nothing": ("p cnf 1 1\n0\n", ": bad: the graph is empty"),
    # By networkx
    "gml: cut short": (
        "graph [\n node [ id 1 ]\n",
        r": not a graph in GML \(expected ']', found EOF",
    ),
    "graphml: cut short": (
        "<graphml><graph>\n",
        r": not a graph in GraphML \(no element found: line 2",
    ),
    "graphml: a value twice": (
        "<graphml><key id='k' for='edge' attr.name='weight' attr.type='double'/><graph><node "
        "id='a'/><node id='b'/>"
        "<edge source='a' target='b'><data key='k'>2</data><data "
        "key='k'>3</data></edge></graph></graphml>",
        ": .*something is listed twice",
    ),
    "graphml: a weight of XML": (
        "<graphml><graph><node id='a'/><node id='b'/><edge source='a' target='b' weight='3'/>"
        "</graph></graphml>",
        ": .*weight is an attribute of an element <edge>",
    ),
    "json: a label": ('{"nodes":\n[{"id": {}}], "edges": []}', ": {} is not a label"),
    "json: a label of an edge": (
        '{"nodes":\n[{"id": 1}], "edges": [{"source": 1, "target": [1, {}]}]}',
        ": {} is not a label",
    ),
    "json: a number as a node": ('{"nodes":\n[1], "edges": []}', ": .* not an object"),
    "json: a list as an edge": ('{"nodes":\n[{"id": 1}], "edges": [[1, 1]]}', ": .* not an object"),
    "gml: entities": ("<!DOCTYPE g [<!ENTITY a 'b'>]><graphml/>", ": .*entities are not read"),
    "json: both": (
        '{"nodes": [{}], "edges": [], "links": []}',
        ": .*lists edges and links beside the nodes",
    ),
    "json: a name twice": ('{"nodes": [], "nodes": [], "edges": []}', ": .* twice"),
    "json: other content": (
        '{"best_value": 3}',
        r": not a graph in node-link JSON \(no lists 'nodes' and 'edges'",
    ),
}
MODELS = {
    "qbsolv: couplers": ("c\np qubo 0 2 1 2\n0 0 1\n0 1 1\n", ":2: the header promises 2 couplers"),
    "qbsolv: twice": (
        "p qubo 0 2 0 2\n0 1 1\n0 1 1\n",
        ":3: the coefficient of 0 and 1 was given before",
    ),
    "qbsolv: scale": ("c scale : 2\np qubo 0 1 1 0\n0 0 1\n", ": a comment with the scale '2'"),
    "coo: vartype": ("# vartype=TERNARY\n0 1 1\n", ": vartype='TERNARY'; expected BINARY or SPIN"),
    "biqmac: too few": (
        "3 3\n1 1 2\n1 2 2\n",
        ":1: the header promises 3 entries, but there are 2",
    ),
    "biqmac: twice": ("3 3\n1 1 2\n1 2 2\n2 1 2\n", ":4: the entry of 2 and 1 was given before"),
    "a sum that overflows": (
        REAL + "2 2 2\n1 1 1e308\n2 2 1e308\n",
        ": bad: coefficients that add up to more than",
    ),
}


# A header with 10^8 nodes or variables in each format that has one.
HUGE = {
    "rudy": "{} 1\n1 2 1\n",
    "dimacs": "p edge {} 1\nn 1 2\ne 1 2\n",
    "metis": "{} 1\n2\n1\n",
    "cnf": "p cnf {} 1\n1 -2 0\n",
    "qbsolv": "c a\np qubo 0 {} 1 0\n0 0 1\n",
    "biqmac": "{} 1\n1 1 1\n",
    "mqlib": "{} 1\n1 1 1\n",
    "matrix_market": PATTERN + "% a\n{0} {0} 1\n2 1\n",
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
    form = form or [name for name in ("rudy", "metis", "biqmac") if case.startswith(name)] or [None]
    options = {"format": form[0], "problem": "qubo" if case in MODELS else None}
    assert_refused(write(tmp_path, content), says, **options)


@pytest.mark.parametrize("name", [*HUGE, "npz"])
def test_a_huge_header_is_refused_before_anything_of_its_size_is_made(tmp_path, monkeypatch, name):
    """On any machine: 10^6 nodes may stand alone, and more in a longer file."""
    monkeypatch.setattr(memory, "usable_memory", lambda: None)
    sizes = (10**8, 10**6) if name != "npz" else (10**9, 10**6)
    for size in sizes:
        if name == "npz":
            write_archive(tmp_path / "bad.any", [Graph("g", size, np.array([[0, 1]], np.int32))])
        else:
            write(tmp_path, HUGE[name].format(size))
        if size > 10**6:
            line = 1 + HUGE.get(name, "{").partition("{")[0].count("\n")
            where = ": graph 0: g" if name == "npz" else f":{line}"
            says = rf"{where}: {size} nodes, nearly all without a term in \d+ bytes; correct"
            assert_refused(tmp_path / "bad.any", says, memory=2**20, format=name)
        elif name != "metis":  # which has a line for each node
            assert read_instances(tmp_path / "bad.any", format=name)


SAMPLES = [
    b"4 3\n1 2 1\n1 3 -2.5\n3 4 1e3\n",
    b"c a\np edge 4 3\nn 1 2\ne 1 2\ne 1 3\ne 3 4\n",
    b"4 3 11 2\n1 1 2 5 3 1\n1 1 1 5\n1 1 1 1 4 2\n2 2 3 2\n",
    b"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 0\n2 1 4\n3 2 -1\n",
    b"p cnf 3 2\n1 -2 3 0\n-1 2 0\n",
    b"c offset = 2\np qubo 0 3 2 1\n0 0 1\n2 2 1\n0 2 -3\n",
    b"# vartype=SPIN\n0 0 1\n0 7 2\n",
    b"# ObjectiveOffset 2\n3 3\n1 1 -3\n1 2 2\n3 3 1\n",
    b"graph [ node [ id 7 cost 1 ] node [ id 3 ] edge [ source 3 target 7 value 2 ] ]",
    b'{"nodes": [{"id": 1}, {"id": [2, 3], "x": 1}], "edges": [{"source": 1, "target": [2, 3], '
    b'"weight": 2}]}',
    b"<graphml><graph><node id='a'/><node id='b'/><edge source='a' target='b'/></graph></graphml>",
    b"u;v;w\n1;2;3,5\n2;3;1\n",
    b"0 1 2\n1 0 3\n2 3 0\n",
    gzip.compress(b"3 2\n1 2 1\n2 3 1\n"),
    archive_of(
        names=np.array(["g"]),
        num_nodes=np.array([2]),
        edge_ptr=np.array([0, 1]),
        edges=np.array([[0, 1]]),
    ),
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


PIECES = (
    "\n",
    " ",
    "#\n",
    "c\n",
    "%\n",
    "1",
    "1 ",
    "1 1\n",
    "a",
    ",",
    "<a>",
    "<node id='a'/>",
    "[",
    "{}",
    "c offset : 1\n",
)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "npz"])
def test_a_piece_that_is_repeated_takes_little_in_any_format(tmp_path, name):
    """Of 32 KiB, each byte takes at most 512 of memory, whether it is read or refused."""
    for piece, begin in itertools.product(PIECES, {"", HUGE.get(name, "").format(2)}):
        path = write(tmp_path, begin + piece * (2**15 // len(piece)) + "x")
        tracemalloc.start()
        with contextlib.suppress(InputError):
            read_instances(path, format=name)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**24, piece


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_bombs_unpack_to_the_limit_and_no_further(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(text, "_UNPACKED_BYTES", 2**20)
    path = write(tmp_path, pack(b"0 1\n" * 2**16) * 100)
    assert path.stat().st_size < 2**18 < 100 * 2**18
    assert_refused(path, r": unpacks to more than \d MiB, far beyond its own size; .*yourself")


def test_a_pointer_of_git_lfs_is_no_file_of_any_kind(tmp_path):
    (tmp_path / "g.npz").write_text(LFS)
    for read in read_instances, load_pickle, read_archive:
        with pytest.raises(
            InputError, match=r"g\.npz: a Git LFS pointer, not the file itself; fetch"
        ):
            read(tmp_path / "g.npz")


def test_what_does_not_go_together(tmp_path):
    (tmp_path / "g.edges").write_text("alice bob\nbob eve\n")
    assert_refused(
        tmp_path / "g.edges",
        ":1: 'alice bob' where every line should be an edge, .* or any words with "
        "--format=edge_list",
    )
    path = write(tmp_path, "p qubo 0 2 0 1\n0 1 3\n")
    with pytest.raises(InputError, match="format is 'gexf'"):
        read_instances(path, format="gexf")
    assert_refused(path, ": not an .npz archive", format="npz")
    write_archive(tmp_path / "g.npz", [Graph.from_arrays("g", 2, [(0, 1)])])
    assert_refused(tmp_path / "g.npz", ": the file ends where the header", format="rudy")
