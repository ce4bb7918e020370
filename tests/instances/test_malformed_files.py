"""Files that are wrong: one line that names the file, the line and the remedy, before any harm."""

import contextlib
import gzip
import io
import itertools
import lzma
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.instances import text
from sl_discs.instances.archive import write_archive
from sl_discs.instances.formats import FORMATS, read_instances
from sl_discs.instances.graph import Graph
from sl_discs.support import memory
from sl_discs.support.errors import InputError

PATTERN = "%%MatrixMarket matrix coordinate pattern symmetric\n"


def archive_of(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    """Memory of 4 GiB, whatever machine the tests are on."""
    monkeypatch.setattr(memory, "usable_memory", lambda: 4 * memory.GIB)


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


def assert_refused(path, memory, **options):
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read_instances(path, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(f"{path}:") and peak < memory


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
            assert_refused(tmp_path / "bad.any", 2**20, format=name)
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
    assert_refused(path, 2**27)
