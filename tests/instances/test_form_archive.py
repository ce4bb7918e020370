"""Archives of quadratic models: the same bits come back, and what contradicts itself is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.errors import InputError
from sl_discs.instances.archive import KEYS, read_forms, write_archive, write_forms
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats import read_instances
from sl_discs.instances.graph import Graph

# Of which a few add up to a finite number.
FINITE = st.floats(-1e300, 1e300)


@st.composite
def forms(draw):
    n = draw(st.integers(1, 5))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=6))
    linear, couplings = (draw(st.lists(FINITE, min_size=k, max_size=k)) for k in (n, len(pairs)))
    return QuadraticForm.from_arrays(
        draw(st.text("aé1-", max_size=4)),
        linear,
        pairs,
        couplings,
        draw(FINITE),
        spins=draw(st.booleans()),
        maximise=draw(st.booleans()),
        reference=draw(st.none() | FINITE),
    )


def bits(form):
    numbers = np.array([form.offset, *form.linear, *form.couplings]).tobytes()
    return form.name, form.spins, form.maximise, form.reference, form.num_variables, form.pairs.tolist(), numbers


@settings(max_examples=40, deadline=None)
@given(drawn=st.lists(forms(), max_size=3))
def test_the_same_bits_come_back(tmp_path_factory, drawn):
    path = tmp_path_factory.mktemp("forms") / "any.name"
    write_forms(path, drawn)
    assert [bits(form) for form in read_forms(path)] == [bits(form) for form in drawn]
    found = read_instances(path)
    assert [bits(instance.content) for instance in found] == [bits(form) for form in drawn]
    assert all(instance.labels == range(instance.content.num_variables) for instance in found)


def test_whole_numbers_beyond_2_to_the_53_are_exact_or_refused(tmp_path):
    path = tmp_path / "a.npz"
    form = QuadraticForm.from_arrays("a", [0.0, 0.0], [(0, 1)], [1.0])
    for key in "linear", "couplings", "offset":
        write_forms(path, [form])
        arrays = dict(np.load(path))
        arrays[key] = np.full(len(arrays[key]), 2**53 + 2)
        np.savez(path, **arrays)
        assert read_forms(path)[0].num_variables == 2
        np.savez(path, **arrays | {key: arrays[key] - 1})
        with pytest.raises(InputError, match=r"model 0: a: .*9007199254740993 is beyond 2\^53"):
            read_forms(path)


def test_no_archive_of_models(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_forms(tmp_path / "absent.npz")
    write_archive(tmp_path / "graphs.npz", [Graph.from_arrays("g", 2, [(0, 1)])])
    with pytest.raises(InputError, match="'num_variables' is missing"):
        read_forms(tmp_path / "graphs.npz")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (dict.fromkeys(KEYS[2:3]), "'linear' is missing"),
        ({"names": np.arange(2)}, "names is int64"),
        ({"num_variables": np.array([2.0, 1.0])}, "num_variables is float64"),
        ({"num_variables": np.array([4, -1])}, "negative"),
        ({"num_variables": np.array([2, 2])}, r"linear is float64 of shape \(3,\)"),
        ({"pair_ptr": np.array([0, 1])}, "pair_ptr is int64"),
        ({"pair_ptr": np.array([0, 2, 1])}, "pair_ptr must rise from 0"),
        ({"pairs": np.array([[0, 1, 1]])}, r"pairs is int64 of shape \(1, 3\)"),
        ({"pairs": np.array([[0, 2]])}, r"model 0: a: pair 0 is \(0, 2\)"),
        ({"couplings": np.array([1.0, 2.0])}, "couplings is float64"),
        ({"couplings": np.array([np.nan])}, "model 0: a: coupling 0 is nan"),
        ({"spins": np.array([0, 1])}, "spins is int64 .* truth values"),
        ({"offset": np.array([0, np.inf])}, "model 1: b: offset is inf"),
    ],
)
def test_contradictions_are_refused(tmp_path, changes, says):
    two = [
        QuadraticForm.from_arrays("a", [1.0, 2.0], [(0, 1)], [3.0]),
        QuadraticForm.from_arrays("b", [1.0], [], []),
    ]
    write_forms(tmp_path / "good.npz", two)
    with np.load(tmp_path / "good.npz") as good:
        arrays = {key: array for key, array in ({**good, **changes}).items() if array is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=rf"bad\.npz: .*{says}"):
        read_forms(tmp_path / "bad.npz")
