"""Lines and numbers of a text file are those that Python takes out of it, bit by bit; none is rounded silently."""

import decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.errors import InputError
from sl_discs.instances import text
from sl_discs.instances.formats import read_instances


@settings(max_examples=120, deadline=None)
@given(rows=st.lists(st.text("ab1 \t\r\x0b\x0c#\x01é", max_size=6), min_size=1), end=st.booleans())
def test_lines_are_split_as_python_splits_them(tmp_path_factory, rows, end):
    content = "\n".join(rows).encode() + b"\n" * end
    if not content.strip():
        return
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_bytes(content)
    source = text.Source(path)
    expected = [(k, row.split()) for k, row in enumerate(content.removesuffix(b"\n").split(b"\n"), 1)]
    expected = [(k, row) for k, row in expected if not (row and row[0].startswith(b"#"))]
    for keep_blank in False, True:
        blocks = text.Lines(source, (b"#",), keep_blank).blocks()
        found = [(k, row.split()) for lines, numbers in blocks for k, row in zip(numbers, lines, strict=True)]
        assert found == [(k, row) for k, row in expected if keep_blank or row]
    reader, found = text.Lines(source, (b"#",)), []
    while len(found) < len([row for _, row in expected if row]):
        found += [(k, row.split()) for lines, where in reader.blocks(1) for k, row in zip(where, lines, strict=True)]
    assert found == [(k, row) for k, row in expected if row] and not list(reader.blocks())


def parse(word, layout):
    """The number, or None if it is refused."""
    try:
        rows = text.read_rows(Path("f"), [([word.encode()], [7])], (layout,), "a number")
    except InputError as error:
        assert str(error).startswith("f:7: ")
        return None
    return rows.columns[0]


NUMERALS = st.from_regex(r"[-+]?[0-9]{0,20}[.]?[0-9]{0,18}([eE][-+]?[0-9]{1,3})?", fullmatch=True)


@settings(max_examples=400, deadline=None)
@given(word=NUMERALS.filter(len) | st.text("0123456789+-.eE_infa", min_size=1, max_size=7))
def test_real_numbers_are_those_of_python(word):
    try:
        expected = float(word)
        good = np.isfinite(expected) and not set(word) & set("_infa")
    except ValueError:
        good = False
    if good and abs(expected) >= 2**53 and "e" not in word.lower():
        good = decimal.Decimal(word) == decimal.Decimal(expected)
    value = parse(word, "f")
    assert (value is not None) == good
    assert not good or value.tobytes() == np.float64(expected).tobytes()


@settings(max_examples=400, deadline=None)
@given(word=st.from_regex(r"0{0,20}[0-9]{1,20}|[0-9x.]{1,3}", fullmatch=True))
def test_whole_numbers_are_those_of_python(word):
    value = parse(word, "i")
    assert (value is not None) == (word.isdigit() and int(word) < 2**63)
    assert value is None or value.tolist() == [int(word)]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([b"1 2", b"1 -2"], "f:4: '-2' is not a whole number from 0 on"),
        ([b"1 2", b"1 2 3"], "f:4: '1 2 3' where every line should be a row"),
        ([b"1 2", b"1\r2"], "f:3: from here on, a line is not a row"),
        ([b"1 2", b"\x1c"], "f:4: .* where every line should be a row"),
    ],
)
def test_the_line_at_fault_is_named(lines, says):
    with pytest.raises(InputError, match=says):
        text.read_rows(Path("f"), [(lines, [3, 4])], ("ii",), "a row")


LARGE = {
    "rudy": "3 2\n1 2 1\n2 3 {}\n",
    "metis": "2 1 1\n2 {0}\n1 {0}\n",
    "edge_list": "# names\nsource target weight\n5 9 1\n9 7 {}\n",
    "matrix_market": "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 {}\n",
    "qbsolv": "p qubo 0 2 0 1\n0 1 {}\n",
    "coo": "# vartype=SPIN\n0 1 {}\n",
}


PROBLEMS = {"edge_list": "maxcut"}


@pytest.mark.parametrize("name", LARGE)
def test_whole_numbers_beyond_2_to_the_53_are_exact_or_refused(tmp_path, name):
    for number in 2**53 + 2, 3 * 2**60:
        (tmp_path / "f").write_text(LARGE[name].format(number))
        content = read_instances(tmp_path / "f", problem=PROBLEMS.get(name))[0].content
        assert int((content.weights if hasattr(content, "weights") else content.couplings)[-1]) == number
    for number in 2**53 + 1, 3 * 2**60 + 1:
        (tmp_path / "f").write_text(LARGE[name].format(number))
        with pytest.raises(InputError, match=rf"f:(\d:)? '?{number}'? is beyond 2\^53"):
            read_instances(tmp_path / "f", problem=PROBLEMS.get(name))
