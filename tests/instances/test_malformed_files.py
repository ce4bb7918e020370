"""Files that are wrong: one line that names the file, the line and the remedy, in little memory, before any harm."""

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
REAL, PATTERN, ARRAY = (
    f"{MM} real general\n",
    f"{MM} pattern symmetric\n",
    "%%MatrixMarket matrix array real general\n",
)


def archive_of(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def zip_of(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 4096\n"
EMPTY = {"names": ["g"], "num_nodes": [2], "edge_ptr": [0, 1], "edges": [[0, 1]]}


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    """Memory of 4 GiB, whatever machine the tests are on."""
    monkeypatch.setattr(errors, "usable_memory", lambda: 4 * errors.GIB)


# Content, what the message says after the name of the file, and options.
GRAPHS = {
    "empty": ("", ": the file is empty"),
    "blank": (" \n\n\t\n", ": .*nothing but blanks"),
    "comments": ("# one\n# two\n", ": only comments"),
    "binary": (bytes(range(256)) * 8, ": a binary file"),
    "utf-16": ("3 1\n1 2 1\n".encode("utf-16"), ": text in UTF-16, .* save it as UTF-8"),
    "utf-16 without a mark": ("3 1\n1 2 1\n".encode("utf-16-be"), ": text in UTF-16BE, .* save it as UTF-8"),
    "utf-16 packed": (gzip.compress("3 1\n1 2 1\n".encode("utf-16-le")), ": text in UTF-16LE"),
    "utf-32": ("3 1\n1 2 1\n".encode("utf-32"), ": text in UTF-32"),
    "one line": ("x" * 5000, ":1: 'x{40}...' begins no format that is read; those are rudy, dimacs"),
    "not utf-8": (b"\xff\xfd\n\xfa \xfb\n", r":1: .* begins no format"),
    "labels not utf-8": (b"\xff \xfe\n\xfa \xfb\n", r": label .* UTF-8", "edge_list"),
    # Other text than graphs
    "a Git LFS pointer": (LFS, ": a Git LFS pointer, not the file itself; fetch that with: git lfs pull"),
    "a Git LFS pointer, named a list": (LFS, ": a Git LFS pointer", "edge_list"),
    "a web page": ("<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n", ": a web page, perhaps of an error"),
    "an error": ("AccessDenied Request\nhas expired\n", ":1: 'AccessDenied Request' begins no format"),
    "row names": ('"1" 10 20\n"2" 20 30\n', ":1: .* begins no format"),
    "names of nodes": ("alice bob\nbob carol\n", ":1: .* or any words with --format=edge_list"),
    "an unknown heading": ("begin end\n1 2\n2 3\n", ":1: 'begin end' begins no format"),
    "comments of C": ("// edges\n1 2\n2 3\n", ":1: '// edges' begins no format"),
    "comments of Pajek": ("*Vertices 3\n1 2\n2 3\n", ":1: .* begins no format"),
    "comments of assemblers": ("; edges\n1 2\n2 3\n", ":1: '; edges' begins no format"),
    "comments within": ("1 2\n// edges\n2 3\n", ":2: '//' is not a whole number"),
    "fractions as labels": ("1.0 2.0\n2.0 3.0\n", ":1: '1.0 2.0' begins no format"),
    "a list with times": (
        "1 2 1 1083\n2 3 1 1084\n1 3 1 1085\n",
        ":1: .* begins no format that is read .lists with a time",
    ),
    "OR-Library": ("1\n2 1\n1 2 3\n", ":1: '1' begins no format that is read .OR-Library's bqp begins like this"),
    "shortest paths": ("c a\np sp 3 2\na 1 2 4\n", ": files of 'p sp' are not read; those of p cnf, p qubo, p edge"),
    "pace: too few": ("p td 3 3\n1 2\n2 3\n", ":1: the header promises 3 edges, but there are 2"),
    "pace: with e": ("p td 3 2\ne 1 2\ne 2 3\n", ":2: 'e 1 2' where every line should be an edge, 'i j'"),
    "zip": (zip_of("a.txt", "1 2"), ": array 'names' is missing"),
    "cut zip": (zip_of("a.txt", "1 2")[:30], ": not an .npz archive, or cut short"),
    "archive without edges": (archive_of(names=np.array(["a"])), ": array 'num_nodes' is missing"),
    "zip bomb": (
        zip_of("edges.npy", bytes(2**20)).replace((2**20).to_bytes(4, "little"), (2**29).to_bytes(4, "little")),
        ": unpacks to 512 MiB",
    ),
    "cut gzip": (gzip.compress(b"3 1\n1 2 1\n" * 99)[:-9], ": damaged or cut short"),
    "cut bzip2": (bz2.compress(b"3 1\n1 2 1\n")[:-9], ": damaged or cut short"),
    "cut xz": (lzma.compress(b"3 1\n1 2 1\n")[:-9], ": damaged or cut short"),
    "gzip and more": (gzip.compress(b"2 1\n1 2 1\n") + b"more", ": damaged or cut short"),
    "damaged gzip": (gzip.compress(b"2 1\n1 2 1\n")[:-6] + b"abcdef", ": damaged or cut short"),
    "damaged xz": (lzma.compress(b"2 1\n1 2 1\n").replace(b"YZ", b"XX"), ": damaged or cut short"),
    "no xz": (b"\xfd7zXZ\x00junk", ": damaged or cut short"),
    "gzip of nothing": (gzip.compress(b""), ": .*nothing but blanks"),
    # rudy
    "rudy: too few": ("3 3\n1 2 1\n2 3 1\n", ":1: the header promises 3 edges, but there are 2"),
    "rudy: too many": ("3 1\n1 2 1\n2 3 1\n", ":1: the header promises 1 edges, but there are 2"),
    "rudy: too few, unweighted": ("9 5\n1 2\n2 3\n", ": the first line reads as a header of 5 edges, but 2 lines"),
    "rudy: more, unweighted": ("4 6\n1 2\n1 3\n1 4\n2 3\n2 4\n3 4\n4 3\n", ": the first line reads as a header of 6"),
    "rudy: third number": ("4 6 7\n1 2 1\n1 3 1\n1 4 1\n2 3 1\n2 4 1\n3 4 1\n", ":1: '4 6 7' is not a header"),
    "rudy: node 0": ("3 2\n0 1 1\n1 2 1\n", ":2: node 0, but nodes are 1 to 3"),
    "rudy: node 4": ("3 2\n\n# x\n1 2 1\n2 4 1\n", ":5: node 4, but nodes are 1 to 3"),
    "rudy: negative": ("3 2\n1 2 1\n-1 2 1\n", ":3: '-1' is not a whole number"),
    "rudy: word": ("3 2\n1 2 1\n2 3 x\n", ":3: 'x' is not a finite number"),
    "rudy: nan": ("3 2\n1 2 1\n2 3 nan\n", ":3: 'nan' is not a finite number"),
    "rudy: long": ("3 2\n1 2 1\n2 " + "9" * 5000 + " 1\n", ":3: '9{40}...' is not a whole number"),
    "rudy: columns": ("3 3\n1 2 1\n2 3 1\n1 3\n", ":4: '1 3' where every line should be"),
    "rudy: loop": ("3 2\n1 2 1\n2 2 1\n", ":3: an edge from node 2 to itself"),
    "rudy: repeated": ("3 3\n1 2 1\n1 3 1\n2 1 1\n", ":4: edge 2 1 is listed a second time"),
    "rudy: 10^15 nodes": ("1000000000000000 1\n1 2 1\n", ":1: 1000000000000000 nodes; at most 2\\^31 - 1"),
    "rudy: 10^9 nodes": (
        "1000000000 1\n1 2 1\n",
        ":1: a single chain on 1000000000 nodes would take about 186.3 GiB of memory, and there are 4.0 GiB",
    ),
    "rudy: 10^15 edges": ("9 1000000000000000\n1 2 1\n", ":1: the header promises 1000000000000000 edges"),
    "rudy: digits without end": ("9" * 5000 + " 1\n1 2\n", ":1: '9{40}...' is not a whole number"),
    # DIMACS
    "dimacs: no counts": ("p edge\n", ":1: 'p edge' is not a header"),
    "dimacs: words": ("c a\np edge a b\n", ":2: 'a b' is not a header"),
    "dimacs: no nodes": ("p edge 0 0\n", ":1: 0 nodes"),
    "dimacs: negative": ("p edge -3 1\ne 1 2\n", ":1: '-3 1' is not a header"),
    "dimacs: 10^9 nodes": ("p edge 1000000000 1\ne 1 2\n", ":1: a single chain on 1000000000 nodes"),
    "metis: 10^9 nodes": ("1000000000 1\n2\n1\n", ":1: a single chain on 1000000000 nodes", "metis"),
    "mm: 10^9 nodes": (PATTERN + "1000000000 1000000000 1\n2 1\n", ": a single chain on 1000000000 nodes"),
    "archive: 10^9 nodes": (
        archive_of(**EMPTY | {"num_nodes": [10**9]}),
        ": graph 0: g: a single chain on 1000000000",
    ),
    "archive: 10^18 nodes": (archive_of(**EMPTY | {"num_nodes": [10**18]}), ": graph 0: g: 10{18} nodes; at most 2"),
    "dimacs: too few": ("p edge 3 3\ne 1 2\ne 2 1\n", ":1: the header promises 3 edges, but there are 1 on 2 lines"),
    "dimacs: second header": ("p edge 3 1\np edge 3 1\ne 1 2\n", ":2: a second header"),
    "dimacs: unknown line": ("p edge 3 1\nq 1 2\n", ":2: 'q 1 2' is not a line of the format"),
    "dimacs: weights": ("p edge 3 1\ne 1 2 5\n", ":2: 'e 1 2 5' where every line should be an edge"),
    "dimacs: node 4": ("p edge 3 2\ne 1 2\nc x\ne 4 1\n", ":4: node 4, but nodes are 1 to 3"),
    "dimacs: loop": ("p edge 3 1\ne 2 2\n", ":2: an edge from node 2 to itself"),
    "dimacs: negative weight": (
        "p edge 3 1\nn 2 -1\ne 1 2\n",
        ":2: the weight of node 2 is -1.0",
    ),
    "dimacs: weight of node 4": ("p edge 3 1\ne 1 2\nn 4 1\n", ":3: node 4, but nodes are 1 to 3"),
    "dimacs: two weights": ("p edge 3 1\nn 1 2\nn 2 2\nn 1 3\n", ":4: node 1 has a weight already"),
    "dimacs: no weight": ("p edge 3 1\nn 1\ne 1 2\n", ":2: 'n 1' where every line should be the weight of a node"),
    "dimacs: infinite weight": ("p edge 3 1\nn 1 inf\ne 1 2\n", ":2: 'inf' is not a finite number"),
    "dimacs: word": ("p edge 3 1\ne 2 b\n", ":2: 'b' is not a whole number"),
    # METIS
    "metis: too few lines": ("4 3 1\n2 5\n1 5 3 1\n2 1\n", ":1: the header promises 4 lines", "metis"),
    "metis: too many lines": ("2 1\n2\n1\n1 2\n", ":4: '1 2' after the last of 2 nodes", "metis"),
    "metis: one way": ("3 1\n2\n\n\n", ":2: neighbour 2 does not have this node in its own line"),
    "metis: range": ("3 2\n2\n1 4\n2\n", ":3: neighbour 4, but nodes are 1 to 3"),
    "metis: loop": ("3 2\n2\n1 2\n\n", ":3: node 2 is its own neighbour"),
    "metis: twice": ("3 2\n2 2\n1 1\n\n", ":2: neighbour 2 is listed twice", "metis"),
    "metis: edges": ("3 3\n2\n1 3\n2\n", ":1: the header promises 3 edges, but there are 2"),
    "metis: fmt": ("3 2 7\n2\n1 3\n2\n", ":1: fmt 7", "metis"),
    "metis: parity": ("3 2 1\n2 1\n1 1 3\n2 1\n", ":3: 3 numbers; a line has 0 of the node", "metis"),
    "metis: weights": ("3 2 1\n2 1\n1 2 3 1\n2 1\n", ":2: the weight to neighbour 2 differs", "metis"),
    "metis: word": ("3 2\n2\n1 x 3\n2\n", ":3: 'x' is not a whole number"),
    "metis: ncon": ("2 1 10 99999\n2\n1\n", ":2: 1 numbers; a line has 99999 of the node", "metis"),
    # edge lists
    "list: columns": ("0 1\n1 2\n2\n", ":3: '2' where every line"),
    "list: a weight": ("0 1\n1 2 3\n", ":2: '1 2 3' where every line"),
    "list: networkx": ("0 1 {}\n", ":1: '{}' is not a finite number"),
    "list: csv": ("0,1\n1,2\n", ":1: '0,1' begins no format"),
    "list: a name": ("0 1\n1 b\n", ":2: 'b' is not a whole number"),
    "list: loop": ("a b\nb b\n", ":2: an edge from node .* to itself", "edge_list"),
    "list: conflict": (
        "0 1 2\n1 2 2\n1 0 3\n",
        ":3: edge 1 0 was given before with another weight than 3.0",
        "edge_list",
    ),
    "list: heading": ("# pairs\nbegin end\n1 2\n2 3\n", ":2: 'begin end' above numbers reads as", "edge_list"),
    "list: two headings": ("u v\nu v\n1 2\n", ":2: 'u v' is not an edge between nodes that are whole numbers"),
    "list: 10^30": ("0 1\n1 " + "9" * 30 + "\n", ":2: '9{30}' is not a whole number"),
    # MatrixMarket, by SciPy
    "mm: banner": ("%%MatrixMarket matrix\n1 1 0\n", ": not a readable MatrixMarket file"),
    "mm: complex": (f"{MM} complex general\n1 1 0\n", ":1: a complex, general matrix, which defines neither"),
    "mm: skew": (f"{MM} real skew-symmetric\n1 1 0\n", ":1: a real, skew-symmetric matrix, which defines neither"),
    "mm: no size": (REAL, ": not a readable MatrixMarket file"),
    "mm: bad size": (REAL + "2 2\n", ": not a readable MatrixMarket file"),
    "mm: not square": (REAL + "2 3 0\n", ": a matrix of 2 by 3"),
    "mm: no rows": (ARRAY + "0 0\n0\n", ": a matrix of 0 by 0"),
    "mm: too few": (PATTERN + "3 3 2\n2 1\n", ": not a readable MatrixMarket file .*[Tt]runcated"),
    "mm: 10^15 entries": (PATTERN + "3 3 1000000000000000\n2 1\n", ": the header promises 10{15} entries"),
    "mm: range": (PATTERN + "3 3 1\n4 1\n", ": not a readable MatrixMarket file .*Line 3"),
    "mm: twice": (REAL + "3 3 2\n2 1 5\n2 1 5\n", ": an entry is given twice"),
    "mm: disagree": (REAL + "3 3 2\n2 1 5\n1 2 4\n", ": edge 1 2 was given before with another weight than 4.0"),
    "mm: diagonal": (REAL + "3 3 2\n2 1 5\n2 2 4\n", ": an edge from node 2 to itself"),
    "mm: array too short": (ARRAY + "2 2\n0\n1\n1\n", ": not a readable MatrixMarket file"),
    "mm: array disagrees": (ARRAY + "2 2\n0\n1\n2\n0\n", ": edge 2 1 was given before with another weight"),
    "mm: nan": (ARRAY + "2 2\n0\n1\nnan\n0\n", ": .*expected a finite number|: edge"),
    "mm: beyond 2^53": (
        f"{MM} real symmetric\n2 2 1\n2 1 9007199254740993\n",
        ": '9007199254740993' is beyond 2.53 and not exact",
    ),
    "mm: 10^9": (ARRAY + "1000000000 1000000000\n0\n", ": a single chain on 1000000000 nodes"),
    # SAT formulas
    "cnf: too few": ("p cnf 2 2\n1 2 0\n", ":1: the header promises 2 clauses"),
    "cnf: literal": ("p cnf 2 1\n1 3 0\n", ":2: literal 3"),
    "cnf: word": ("p cnf 2 1\n1 x 0\n", ":2: 'x' is not a literal"),
    "cnf: unfinished": ("p cnf 2 1\n1 2\n", ":2: the last clause does not end with 0"),
    "cnf: sat": ("p sat 2 1\n1 0\n", ":1: 'p sat 2 1' is not a header", "cnf"),
    "cnf: negative": ("p cnf 2 -1\n1 0\n", ":1: 'p cnf 2 -1' is not a header"),
    "cnf: second header": ("p cnf 1 1\np cnf 1 1\n1 0\n", ":2: a second header"),
    "cnf: late header": ("1 2 0\np cnf 2 1\n", ":1: a clause before the header", "cnf"),
    "cnf: no header": ("c nothing\n", ": no header", "cnf"),
    "cnf: long": ("p cnf 2 1\n1 " + "9" * 5000 + " 0\n", ":2: '9{40}...' is not a literal"),
    "cnf: one clause": ("p cnf 1 1\n" + "1 " * 5000 + "0\n", ": 12497500 conflicts between literals"),
    "cnf: nothing": ("p cnf 1 1\n0\n", ": no clause has a literal"),
    # GML
    "gml: cut short": ("graph [\n node [ id 1 ]\n", r": not a graph in GML \(expected ']', found EOF"),
    "gml: a node twice": (
        "graph [ node [ id 1 ] node [ id 1 ] ]",
        r": not a graph in GML \(node id 1 is duplicated\)",
    ),
    "gml: an edge twice": (
        "graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] edge [ source 2 target 1 ] ]",
        r": not a graph in GML \(edge #1 \(2--1\) is duplicated\)",
    ),
    "gml: no such node": ("graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", r": not a graph in GML"),
    "gml: a label twice": ("graph [ node [ id 1 label 5 ] node [ id 2 label 5 ] ]", ": two nodes have the label 5"),
    "gml: directed": ("graph [ directed 1 node [ id 1 ] ]", ": a directed graph or multigraph"),
    "gml: several edges": ("graph [ multigraph 1 node [ id 1 ] ]", ": a directed graph or multigraph"),
    "gml: loop": ("graph [ node [ id 7 ] edge [ source 7 target 7 ] ]", ": an edge from node 7 to itself"),
    "gml: no nodes": ("graph [ ]", ": .*the graph is empty"),
    "gml: not UTF-8": (b'graph [ node [ id 1 label "\xff" ] ]', r": not a graph in GML \('utf-8' codec"),
    # GraphML
    "graphml: cut short": ("<graphml><graph>\n", r": not a graph in GraphML \(no element found: line 2"),
    "graphml: directed": ('<graphml><graph edgedefault="directed"><node id="a"/></graph></graphml>', ": a directed"),
    "graphml: no graph": ("<graphml></graphml>", r": not a graph in GraphML|: .*is empty"),
    "graphml: entities": (
        '<!DOCTYPE g [<!ENTITY a "'
        + "x" * 99
        + '">'
        + "".join(f'<!ENTITY {n} "{f"&{m};" * 99}">' for m, n in zip("abcdef", "bcdefg", strict=True))
        + ']><graphml><graph edgedefault="undirected"><node id="&g;"/></graph></graphml>',
        ": not a graph in GraphML",
    ),
    "xml": ("<gexf></gexf>", ":1: '<gexf></gexf>' begins no format that is read"),
    # networkx's JSON
    "json: cut short": ('{"nodes": [', r": not a graph in node-link JSON \(Expecting value"),
    "json: other content": ('{"best_value": 3}', r": not a graph in node-link JSON \(no lists 'nodes' and 'edges'"),
    "json: deep": ('{"nodes":' + "[" * 10**5, ": not a graph in node-link JSON"),
    "json: a node twice": ('{"nodes": [{"id": 1}, {"id": 1}], "edges": []}', r": .* \(a node is listed twice"),
    "json: no such node": (
        '{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}',
        r": .* an edge leads to one that is not listed\)",
    ),
    "json: an edge twice": (
        '{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}, {"source": 2, "target": 1}]}',
        r": .* \(an edge is listed twice\)",
    ),
    "json: a dict as a node": ('{"nodes": [{"id": {}}], "links": []}', ": .*unhashable"),
    "json: directed": ('{"directed": true, "nodes": [{"id": 1}], "links": []}', ": a directed graph or multigraph"),
    "json: several edges": ('{"multigraph": true, "nodes": [{"id": 1}], "links": []}', ": a directed graph or multi"),
    "json: loop": ('{"nodes": [{"id": "a"}], "links": [{"source": "a", "target": "a"}]}', ": an edge from node 'a'"),
    "json: a weight of some nodes": (
        '{"nodes": [{"id": 1, "weight": 2}, {"id": 2}], "links": []}',
        ": node 2 has no weight, but others have",
    ),
    "json: a negative weight": (
        '{"nodes": [{"id": "a", "weight": -2}], "links": []}',
        ": .*weight of node 'a' is -2",
    ),
}
MODELS = {
    # qbsolv
    "qbsolv: header": ("p qubo 0 2 2\n", ":1: .* is not a header"),
    "qbsolv: topology": ("p qubo chimera128 2 0 0\n", ":1: .* is not a header"),
    "qbsolv: nodes": ("p qubo 0 2 2 1\n0 0 1\n0 1 1\n", ":1: the header promises 2 nodes"),
    "qbsolv: couplers": ("c\np qubo 0 2 1 2\n0 0 1\n0 1 1\n", ":2: the header promises 2 couplers"),
    "qbsolv: order": ("p qubo 0 2 0 1\n1 0 1\n", ":2: coupler 1 0; the smaller node comes first"),
    "qbsolv: twice": ("p qubo 0 2 0 2\n0 1 1\n0 1 1\n", ":3: the coefficient of 0 and 1 was given before"),
    "qbsolv: range": ("p qubo 0 2 0 1\n0 2 1\n", ":2: node 2, but nodes are 0 to 1"),
    "qbsolv: 10^9 nodes": ("p qubo 0 1000000000 0 1\n0 1 1\n", ":1: a single chain on 1000000000 nodes would take"),
    "qbsolv: two offsets": ("c offset 1\nc offset = 2\nc offset = 3\np qubo 0 1 1 0\n0 0 1\n", ": .* the offset '3'"),
    "qbsolv: no offset": ("c offset = x\np qubo 0 1 1 0\n0 0 1\n", ": a comment with the offset 'x'"),
    "qbsolv: scale": ("c scale : 2\np qubo 0 1 1 0\n0 0 1\n", ": a comment with the scale '2'"),
    # dimod
    "coo: vartype": ("# vartype=TERNARY\n0 1 1\n", ": not a list of coefficients .*TERNARY"),
    "coo: two vartypes": ("# vartype=SPIN\n# vartype=BINARY\n0 1 1\n", ": not a list of coefficients .*do not match"),
    "coo: nothing": ("# vartype=BINARY\n", ": no coefficients"),
    "coo: columns": ("# vartype=BINARY\n0 1\n", ":2: '0 1' is not a coefficient"),
    "coo: inf": ("# vartype=BINARY\n0 0 1\n0 1 inf\n", ":3: '0 1 inf' is not a coefficient"),
    "coo: an exponent, which dimod skips": ("# vartype=BINARY\n0 0 1\n0 1 1e-3\n", ":3: '0 1 1e-3' is not a coeff"),
    "coo: spins": ("# vartype=SPIN\n0 1 1\n", "holds a model of spins; use problem=ising"),
    "a graph and a header": ("3 2\n1 1 1\n1 2 1\n", ": rudy holds a graph, but qubo .* remove the header"),
    "a graph": ("2 1\n1 2 1\n", "holds a graph, but qubo needs a quadratic model"),
}


def write(folder, content):
    path = folder / "bad.any"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def assert_refused(path, says, memory=2**25, **options):
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read_instances(path, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert re.match(re.escape(str(path)) + "(?:" + says + ")", message) or ("holds" in says and says in message)
    assert len(message.splitlines()) == 1 and ";" in message
    assert peak < memory


@pytest.mark.parametrize("case", GRAPHS)
def test_malformed_graphs(tmp_path, capsys, case):
    content, says, *form = GRAPHS[case]
    path = write(tmp_path, content)
    form = form[0] if form else None
    assert_refused(path, says, format=form)
    command = ["convert", str(path), str(tmp_path / "out.npz"), *([f"--from={form}"] if form else [])]
    assert convert.main(command) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"error: {path}") and len(err.splitlines()) == 1
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("case", MODELS)
def test_malformed_models(tmp_path, case):
    content, says, *form = MODELS[case]
    assert_refused(write(tmp_path, content), says, format=form[0] if form else None, problem="qubo")


SAMPLES = [
    b"4 3\n1 2 1\n1 3 -2.5\n3 4 1e3\n",
    b"c a\np edge 4 3\ne 1 2\ne 1 3\ne 3 4\n",
    b"4 3 11 2\n1 1 2 5 3 1\n1 1 1 5\n1 1 1 1 4 2\n2 2 3 2\n",
    b"# a\na b 1\nb c 2\nc a 1\n",
    b"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 0\n2 1 4\n3 2 -1\n",
    b"%%MatrixMarket matrix array integer general\n2 2\n0\n1\n1\n0\n",
    b"p cnf 3 2\n1 -2 3 0\n-1 2 0\n",
    b"c offset = 2\np td 3 2\n1 2\n2 3\n",
    b"c offset = 2\np qubo 0 3 2 1\n0 0 1\n2 2 1\n0 2 -3\n",
    b"# vartype=SPIN\n0 0 1\n0 7 2\n",
    gzip.compress(b"3 2\n1 2 1\n2 3 1\n"),
    lzma.compress(b"3 2\n1 2 1\n2 3 1\n"),
    archive_of(names=np.array(["g"]), num_nodes=np.array([2]), edge_ptr=np.array([0, 1]), edges=np.array([[0, 1]])),
]


@settings(max_examples=400, deadline=None)
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


def test_a_diagonal_that_overflows(tmp_path):
    for problem in "ising", "qubo":
        path = write(tmp_path, REAL + "2 2 2\n1 1 1e308\n2 2 1e308\n")
        assert_refused(path, ": bad: coefficients that add up to more than 1e307", problem=problem)
        path = write(tmp_path, REAL + "2 2 2\n1 1 4e306\n2 2 4e306\n")
        assert read_instances(path, problem=problem)[0].content.value(np.array([1, 1])) == 8e306


BOMB = b"0 1\n" * 2**16


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_bombs_unpack_to_the_limit_and_no_further(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(text, "_UNPACKED_BYTES", 2**20)
    path = write(tmp_path, pack(BOMB) * 100)
    assert path.stat().st_size < 2**18 < 100 * len(BOMB)
    assert_refused(path, r": unpacks to more than \d MiB, far beyond its own size; .*plain file", memory=2**26)


def test_a_line_without_end_is_given_up(tmp_path):
    with (tmp_path / "long").open("wb") as file:
        for _ in range(66):
            file.write(b"1 2 " * 2**18)
    with pytest.raises(InputError, match="a line of over 64 MiB"):
        read_instances(tmp_path / "long")


def test_what_is_no_file(tmp_path, monkeypatch):
    assert_refused(tmp_path, ": a folder")
    assert_refused(tmp_path / "absent", ": no such file")
    os.mkfifo(tmp_path / "pipe")
    assert_refused(tmp_path / "pipe", ": not a regular file")
    path = write(tmp_path, "2 1\n1 2 1\n")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    assert_refused(path, r": cannot be read \(Permission denied\)")


def test_a_pointer_of_git_lfs_is_no_file_of_any_kind(tmp_path):
    for name in "g.edges", "g.clq", "g.npz", "g.mtx":
        (tmp_path / name).write_text(LFS)
        assert_refused(tmp_path / name, ": a Git LFS pointer, not the file itself; fetch that with: git lfs pull")
    for read in load_pickle, read_archive:
        with pytest.raises(InputError, match=r"g\.npz: a Git LFS pointer"):
            read(tmp_path / "g.npz")


def test_an_edge_list_by_its_suffix_says_how_to_have_names(tmp_path):
    (tmp_path / "g.edges").write_text("alice bob\nbob eve\n")
    assert_refused(tmp_path / "g.edges", ":1: 'alice bob' is not an edge between .* say --format=edge_list")
    assert read_instances(tmp_path / "g.edges", format="edge_list")[0].labels == ("alice", "bob", "eve")


def test_unknown_names(tmp_path):
    path = write(tmp_path, "2 1\n1 2 1\n")
    with pytest.raises(InputError, match="unknown problem 'sat'"):
        read_instances(path, problem="sat")
    with pytest.raises(InputError, match="unknown format 'gexf'; choose one of rudy"):
        read_instances(path, format="gexf")
    assert_refused(path, ": not a zip archive, so its format is not npz", format="npz")
    write_archive(tmp_path / "g.npz", [Graph.from_arrays("g", 2, [(0, 1)])])
    assert_refused(tmp_path / "g.npz", ": a zip archive, so its format is not rudy", format="rudy")


def test_graph_problems_refuse_models(tmp_path):
    path = write(tmp_path, "p qubo 0 2 0 1\n0 1 3\n")
    with pytest.raises(InputError, match="qbsolv holds a quadratic model, but mis needs a graph"):
        read_instances(path, problem="mis")
