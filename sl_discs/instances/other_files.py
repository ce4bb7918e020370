"""Files of other programs that are not read: what they are, and how they are read all the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from sl_discs.instances.text import Source
from sl_discs.support.errors import NotSupported

# The suffixes of files, how they begin, what they are, and how they are read.
_UTF_16 = "text in UTF-16; give text in UTF-8: iconv -f UTF-16{} -t UTF-8"
_PROLOG = rb"\s*+(?:<[?!][^>]*+>\s*+)*+"
_OTHERS = (
    ("", rb"\x93NUMPY", "an array of NumPy; in Python say {pose}numpy.load({path}))"),
    (
        ".gexf",
        _PROLOG + b"<gexf",
        "a graph in GEXF; in Python say {pose}networkx.Graph(networkx.read_gexf({path}))),"
        " which keeps one of parallel edges",
    ),
    (
        ".net .paj",
        rb"(?i)\s*+\*(?:vertices|network)\b",
        "a graph of Pajek; in Python say {pose}networkx.Graph(networkx.read_pajek({path}))),"
        " which keeps one of parallel edges",
    ),
    (
        ".dot .gv",
        rb"(?i)\s*+(?:strict\s++)?+(?:di)?+graph\b[^\[{]*+\{",
        "a graph in DOT; in Python say {pose}networkx.Graph(networkx.nx_pydot.read_dot({path}))),"
        " which keeps one of parallel edges",
    ),
    (".g6", b">>graph6<<", "a graph in graph6; in Python say {pose}networkx.read_graph6({path}))"),
    (
        ".s6",
        b">>sparse6<<",
        "a graph in sparse6; in Python say {pose}networkx.Graph(networkx.read_sparse6({path}))),"
        " which keeps one of parallel edges",
    ),
    (
        ".tar .tgz",
        rb"(?s).{257}ustar",
        "a tar archive; unpack it, and give a file that is in it: tar -xf {file}",
    ),
    (
        ".zst",
        rb"\x28\xb5\x2f\xfd",
        "compressed by Zstandard; unpack it, and give what is in it: zstd -d {file}",
    ),
    (
        "",
        rb"\s*+\d++[^\S\n]*+\n(?:c.*+\n)*+p\s++(?:col|edge)\s",
        "a graph in the binary form of DIMACS; convert it to text with DIMACS's program bin2asc",
    ),
    ("", rb"\xff\xfe|\xfe\xff", _UTF_16.format("")),
    ("", rb"(?:[\x01-\x7f]\0){4}", _UTF_16.format("LE")),
    ("", rb"(?:\0[\x01-\x7f]){4}", _UTF_16.format("BE")),
    ("", rb"[^\0]*+\0", "a binary file of an unknown kind; give text, or an .npz archive"),
    (
        "",
        rb"(?i)\s*+<(?:!doctype )?+html",
        "a web page, perhaps of an error; download the file again",
    ),
)
# JSON: a name that stands in it, what it is, and how it is read.
_JSON = {
    "bqm_schema": (
        "a model of dimod; in Python say "
        "sl_discs.from_bqm(dimod.BinaryQuadraticModel.from_serializable(json.load(open({path}))))"
    ),
    "adjacency": (
        "a graph as networkx.adjacency_data writes it; in Python say "
        "{pose}networkx.adjacency_graph(json.load(open({path}))))"
    ),
    "elements": "a graph of Cytoscape; in Python say "
    "{pose}networkx.cytoscape_graph(json.load(open({path}))))",
    "": (
        "not a graph in node-link JSON (no lists 'nodes' and 'edges' or 'links', as "
        "networkx.node_link_data makes "
        "them); give another file"
    ),
}


def _refusal(source: Source, words: str, **more: str) -> NotSupported:
    pose = f"sl_discs.{source.problem or 'maxcut'}({'None, ' * (source.problem == 'ising')}"
    path = str(source.path)
    return NotSupported(
        f"{path}: {words.format(pose=pose, path=repr(path), file=shlex.quote(path), **more)}"
    )


def check_others(source: Source, suffix: str = "") -> None:
    """Refuses a file that begins like those of another program, or a suffix of theirs."""
    for suffixes, begins, words in _OTHERS:
        if re.match(begins, source.text) or suffix in suffixes.split():
            raise _refusal(source, words)


def other_json(source: Source) -> NotSupported:
    """Returns the error for a file of JSON that is no graph in node-link form."""
    return _refusal(
        source, next(words for name, words in _JSON.items() if name.encode() in source.text)
    )


def other_archive(source: Source, names: Sequence[str]) -> NotSupported:
    """Returns the error for a zip archive that this package has not written, with files of these
    names.
    """
    words = (
        "an archive of another program, with {names}; unpack it, or in Python say "
        "{pose}scipy.sparse.load_npz({path})) if SciPy saved it, or else "
        "{pose}numpy.load({path})[NAME])"
    )
    return _refusal(source, words, names=", ".join(names[:5]))


def check_separators(source: Source) -> None:
    """Refuses lines whose words are parted by commas or semicolons; with semicolons, commas stand
    in numbers.
    """
    _, line = next(iter(source.lines(b"#", b"%")), (0, b" "))
    words = line.split(None, 1)
    if not (words and re.search(b"[,;]$" if len(words) > 1 else b"[,;]", words[0])):
        return
    advice = (
        "columns parted by commas or semicolons; part them by blanks: tr {marks} < {file} > "
        "NEW.edges, or see docs/files.md"
    )
    raise _refusal(source, advice, marks="';,' ' .'" if b";" in words[0] else "',' ' '")
