"""Words and numbers that NumPy takes out of a block of bytes are those that Python takes out of it, bit by bit."""

import decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.errors import InputError
from sl_discs.instances.formats import lines, number_words, read_instances


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.text("ab1 \t\r\x0b\x0c#\x01é", max_size=6), min_size=1), end=st.booleans())
def test_lines_are_split_as_python_splits_them(rows, end):
    block = "\n".join(rows).encode() + b"\n" * end
    if not block:
        return
    expected = [(k, row.split()) for k, row in enumerate(block.removesuffix(b"\n").split(b"\n"), 7)]
    found, count = lines.split(block, 7, b"#", keep_blank=True)
    assert count == len(expected)
    kept = [(k, row) for k, row in expected if not (row and row[0].startswith(b"#"))]
    assert [(number, found.line(k)) for k, number in enumerate(found.numbers.tolist())] == kept
    assert found.all_words().tolist() == [word for _, row in kept for word in row]
    found, _ = lines.split(block, 7, b"#")
    assert found.numbers.tolist() == [k for k, row in kept if row]
    assert found.column(0).tolist() == [row[0] for _, row in kept if row]


def words_of(texts):
    found, _ = lines.split("\n".join(texts).encode(), 1)
    return found.column(0)


NUMERALS = st.from_regex(r"[-+]?[0-9]{0,20}[.]?[0-9]{0,18}([eE][-+]?[0-9]{1,3})?", fullmatch=True)


@settings(max_examples=120, deadline=None)
@given(texts=st.lists(NUMERALS.filter(len) | st.text("0123456789+-.eE_infa", min_size=1, max_size=7), min_size=1))
def test_real_numbers_are_those_of_python(texts):
    values, wrong = number_words.real_numbers(words_of(texts))
    for text, value, refused in zip(texts, values, wrong, strict=True):
        try:
            expected = float(text)
            good = np.isfinite(expected) and not set(text) & set("_infa")
        except ValueError:
            good = False
        if good and abs(expected) >= 2**53 and "e" not in text.lower():
            good = decimal.Decimal(text) == expected
        assert refused == (not good)
        assert refused or value.tobytes() == np.float64(expected).tobytes()


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(st.from_regex(r"0{0,20}[0-9]{1,20}|[0-9x+]{1,3}", fullmatch=True), min_size=1))
def test_whole_numbers_are_those_of_python(texts):
    values, wrong = number_words.whole_numbers(words_of(texts))
    for text, value, refused in zip(texts, values.tolist(), wrong.tolist(), strict=True):
        assert refused == (not text.isdigit() or int(text) >= 2**63)
        assert refused or value == int(text)


N = 2000
PLAIN = {
    "rudy": f"{N} {N - 1}\n" + "".join(f"{k} {k + 1} -2.5\n" for k in range(1, N)),
    "dimacs": f"p edge {N} {N - 1}\n" + "".join(f"e {k} {k + 1}\n" for k in range(1, N)),
    "metis": f"{N} {N - 1}\n2\n" + "".join(f"{k - 1} {k + 1}\n" for k in range(2, N)) + f"{N - 1}\n",
    "edge_list": "".join(f"{k} {k + 1}\n" for k in range(1, N)),
    "qbsolv": f"p qubo 0 {N} 0 {N - 1}\n" + "".join(f"{k} {k + 1} 7\n" for k in range(N - 1)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_no_python_object_is_made_of_each_word(tmp_path, monkeypatch, name):
    made, tolist = [], lines.Words.tolist
    monkeypatch.setattr(lines.Words, "tolist", lambda words: made.append(len(words)) or tolist(words))
    (tmp_path / "f").write_text(PLAIN[name])
    (instance,) = read_instances(tmp_path / "f")
    assert instance.format == name and len(instance.labels) == N and sum(made) < 50


LARGE = {
    "rudy": "3 2\n1 2 1\n2 3 {}\n",
    "metis": "2 1 1\n2 {0}\n1 {0}\n",
    "edge_list": "a b 1\nb c {}\n",
    "matrix_market": "%%MatrixMarket matrix coordinate integer symmetric\n2 2 1\n2 1 {}\n",
    "bqp": "1\n2 1\n1 2 {}\n",
    "qbsolv": "p qubo 0 2 0 1\n0 1 {}\n",
    "coo": "# vartype=SPIN\n0 1 {}\n",
}


@pytest.mark.parametrize("name", LARGE)
def test_whole_numbers_beyond_2_to_the_53_are_exact_or_refused(tmp_path, name):
    for number in 2**53 + 2, 3 * 2**60:
        (tmp_path / "f").write_text(LARGE[name].format(number))
        content = read_instances(tmp_path / "f")[0].content
        assert int((content.weights if hasattr(content, "weights") else content.couplings)[-1]) in (
            number,
            2 * number,
        )
    for number in 2**53 + 1, 3 * 2**60 + 1:
        (tmp_path / "f").write_text(LARGE[name].format(number))
        with pytest.raises(InputError, match=rf"f:\d: '?{number}'? is beyond 2\^53"):
            read_instances(tmp_path / "f")


def test_sums_of_coefficients_are_exact_or_refused(tmp_path):
    (tmp_path / "f").write_text(f"# vartype=BINARY\n0 1 1\n0 0 {2**53}\n0 0 1\n")
    with pytest.raises(InputError, match=r"f:3: the coefficients of 0 add up to too much"):
        read_instances(tmp_path / "f")
