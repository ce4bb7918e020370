"""Files of other programs that are not read: what they are, and how they are read all the same, mostly in Python.

Each function returns or raises an error whose advice can be followed as it stands.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np

from sl_discs.errors import NotSupported
from sl_discs.files import read_npz
from sl_discs.instances.form import FORM_PROBLEMS
from sl_discs.instances.graph_files import is_heading
from sl_discs.instances.text import Source, is_real

# JSON: a name that stands in it, what it is, and how it is read.
_JSON = {
    "bqm_schema": (
        "a model of dimod; in Python say "
        "sl_discs.from_bqm(dimod.BinaryQuadraticModel.from_serializable(json.load(open({path!r}))))"
    ),
    "linear_terms": (
        "a model in bqpjson; write its linear_terms as lines 'i i coeff' and its quadratic_terms as 'i j coeff', all "
        "times its scale, into a .coo file"
    ),
    "adjacency": (
        "a graph as networkx.adjacency_data writes it; in Python say "
        "sl_discs.{problem}(networkx.adjacency_graph(json.load(open({path!r}))))"
    ),
    "elements": (
        "a graph of Cytoscape; in Python say sl_discs.{problem}(networkx.cytoscape_graph(json.load(open({path!r}))))"
    ),
}


def other_json(source: Source) -> NotSupported:
    """Returns the error for a file of JSON that is no graph in node-link form."""
    known = next((words for name, words in _JSON.items() if f'"{name}"'.encode() in source.text), None)
    words = known or (
        "not a graph in node-link JSON (no lists 'nodes' and 'edges' or 'links', as networkx.node_link_data makes "
        "them); give another file"
    )
    return NotSupported(f"{source.path}: {words.format(path=str(source.path), problem=source.problem or 'maxcut')}")


def other_archive(source: Source, names: Sequence[str]) -> NotSupported:
    """Returns the error for a zip archive that this package has not written, with files of these names."""
    path = str(source.path)
    if {"format", "shape", "data"} <= set(names):
        call = source.in_python(f"scipy.sparse.load_npz({path!r})")
        return NotSupported(f"{path}: a sparse matrix that SciPy saved; in Python say {call}")
    arrays = read_npz(path) if names and all(map(str.isidentifier, names)) else {}
    matrix = next((name for name, array in arrays.items() if array.ndim == 2), None)
    how = f"in Python say {source.in_python(f'numpy.load({path!r})[{matrix!r}]')}"
    how = how if matrix else "unpack it, and give a file of a known format"
    return NotSupported(f"{path}: an archive of another program, with {', '.join(names[:5]) or 'nothing'}; {how}")


def table_in_python(source: Source, lines: list[list[bytes]], delimiter: str = "") -> str:
    """Returns how a file goes through NumPy that is a square matrix, and empty text for another one.

    One of a QUBO may be any; another is symmetric or triangular, without loops if it is one of a graph. Its size may
    stand above it.
    """
    sized = len(lines[0]) == 1 < len(lines)
    lines = lines[1:] if sized else lines
    if {len(line) for line in lines} != {len(lines)} or not all(map(is_real, itertools.chain(*lines))):
        return ""
    table = np.array(lines, np.float64)
    shapes = np.array_equal(table, table.T), not np.tril(table, -1).any(), not np.triu(table, 1).any()
    if source.problem != "qubo" and (not any(shapes) or table.diagonal().any()):
        return ""
    options = [repr(str(source.path)), *[f"delimiter={delimiter!r}"] * bool(delimiter), *["skiprows=1"] * sized]
    return source.in_python(f"numpy.loadtxt({', '.join(options)})")


def check_separators(source: Source) -> None:
    """Refuses a table whose columns are parted by commas or semicolons, and says how it is read.

    With semicolons, commas stand in numbers.
    """
    lines = source.lines(b"#", b"%")
    begin = next((line for _, line in lines), b"")
    if not re.match(rb"\S+[,;]\s|\S*[,;]\S*$", begin):
        return
    mark = ";" if b";" in begin else ","
    rows = [[word.strip() for word in line.split(mark.encode())] for _, line in lines]
    parted = f"{source.path}: columns parted by '{mark}'"
    table, may_be_couplings = (
        table_in_python(source, rows, mark),
        len(rows[0]) == 3 and source.problem in FORM_PROBLEMS,
    )
    if table and not may_be_couplings:
        raise NotSupported(f"{parted}; in Python say {table}")
    if source.problem in FORM_PROBLEMS:
        marks = "',' ' '" if mark == "," else "';,' ' .'"
        new = source.path.with_suffix(".coo").name
        other = f"; or, if they are a square table, in Python say {table}" if table else ""
        raise NotSupported(f"{parted}; part couplings by blanks: tr {marks} < '{source.path}' > '{new}'{other}")
    columns = ["source", "target", "weight"][: len(rows[0])]
    first, second = ([is_real(word.replace(b",", b".")) for word in row] for row in (rows[0], rows[-1]))
    heading = is_heading(rows[0]) or any(not one and other for one, other in zip(first, second, strict=False))
    options = [
        repr(str(source.path)),
        *["sep=';', decimal=','"] * (mark == ";"),
        f"header={0 if heading else None}",
        f"names={columns}",
        *["usecols=range(3)"] * (len(rows[0]) > 3),
    ]
    weight = ", edge_attr='weight'" if len(columns) == 3 else ""
    call = source.in_python(f"networkx.from_pandas_edgelist(pandas.read_csv({', '.join(options)}){weight})")
    raise NotSupported(f"{parted}; if they are edges, say in Python {call} (docs/files.md)")
