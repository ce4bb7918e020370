"""Kinds of errors that a program may want to tell apart; all are `InputError`, a `ValueError`."""

import functools
import sys

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import sl_discs
from sl_discs import FormatError, InputError, MissingExtra, NotSupported
from sl_discs.engines.choice import choose_engine
from sl_discs.instances.dataset import load_dataset
from sl_discs.reproduction.tuned import read_tuned
from sl_discs.samplers.sampler import Sampler


@pytest.mark.parametrize(
    ("read", "name", "content"),
    [
        (lambda path: sl_discs.read(path, "maxcut"), "line.edges", b"1 2\n1 x y z\n"),
        (lambda path: sl_discs.read(path, "maxcut"), "cut.npz", b"PK\x03\x04"),
        (sl_discs.Samples.load, "other.npz", b""),
        (read_tuned, "tuned.json", b"{}"),
        (
            lambda path: load_dataset("mis", "er_density", "r-0.10", path.parent.parent),
            "er_700_800/ER-700-800-0.10.pkl",
            b"no pickle",
        ),
    ],
)
def test_content_of_a_file_is_a_format_error(tmp_path, read, name, content):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    if name == "other.npz":
        np.savez(path, x=np.ones(2))
    with pytest.raises(FormatError):
        read(path)


def test_what_is_not_in_a_file_is_no_format_error(tmp_path):
    (tmp_path / "g.edges").write_text("0 1\n")
    for path, arguments in (
        (tmp_path / "missing.edges", {}),
        (tmp_path / "g.edges", {"problem": "qubo"}),
    ):
        with pytest.raises(InputError) as error:
            sl_discs.read(path, **arguments)
        assert type(error.value) is InputError


def test_what_this_package_cannot_do_is_not_supported(tmp_path):
    class Own(Sampler):
        def init_state(self, key, shape):
            raise NotImplementedError

        def kernel(self, key, target, chain):
            raise NotImplementedError

    with pytest.raises(NotSupported, match="cannot run Own"):
        choose_engine("cpu", Own())
    (tmp_path / "g.gr").write_text("p sp 3 2\na 1 2 5\na 2 3 5\n")
    with pytest.raises(NotSupported, match="tells the format"):
        sl_discs.read(tmp_path / "g.gr", "mis")


def test_a_missing_package_is_a_missing_extra(monkeypatch):
    samples = sl_discs.sample(sl_discs.mis(nx.path_graph(3)), 1.0, draws=8)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="install it with: pip install pandas") as error:
        samples.to_dataframe()
    assert isinstance(error.value, ImportError) and isinstance(error.value, InputError)
    for name in ("dimod", "blackjax"):
        monkeypatch.setitem(sys.modules, "blackjax.base", None)
        monkeypatch.setitem(sys.modules, "dimod", None)
        monkeypatch.delitem(sys.modules, f"sl_discs.{name}", raising=False)
        with pytest.raises(MissingExtra, match=f"needs {name}"):
            __import__(f"sl_discs.{name}")


# What NumPy cannot compare with a name or a number, or shows in several lines.
MATRIX = np.eye(3)
NOT_PLAIN = {
    "vector": np.array([1.0, 2.0]), "matrix": MATRIX, "empty": np.array([]), "sparse": sparse.csr_array(MATRIX),
    "masked": np.ma.masked_array([1, 2], [0, 1]), "long": list(range(1000)),
}  # fmt: skip
PROBLEM = sl_discs.qubo({("a", "b"): 1.0})
TAKE_PLAIN = {
    "solve": (functools.partial(sl_discs.solve, PROBLEM), "sampler engine steps chains seed "
        "progress callback"),
    "sample": (
        functools.partial(sl_discs.sample, PROBLEM),
        "temperature draws method seed time_limit sampler groups engine interrupt progress scan",
    ),
    "maxcut": (functools.partial(sl_discs.maxcut, nx.path_graph(3)), "name num_nodes"),
    "mis": (functools.partial(sl_discs.mis, nx.path_graph(3)), "name penalty"),
    "qubo": (functools.partial(sl_discs.qubo, {("a", "b"): 1.0}), "name offset maximise"),
    "read": (functools.partial(sl_discs.read, "graph.edges"), "problem format"),
    "from_log_density": (
        functools.partial(sl_discs.from_log_density, lambda params, x: x.sum(), (), 3), "name start"
    ),
    "mean": (lambda observable: sl_discs.sample(PROBLEM, draws=8).mean(observable), "observable"),
    "marginal": (lambda value: sl_discs.sample(PROBLEM, draws=8).marginal("a", value), "value"),
    "save": (lambda path: sl_discs.sample(PROBLEM, draws=8).save(path), "path"),
}  # fmt: skip


@pytest.mark.parametrize("function", TAKE_PLAIN)
def test_arrays_in_the_place_of_a_name_or_number_are_refused_in_one_line(function):
    call, arguments = TAKE_PLAIN[function]
    for argument in arguments.split():
        for kind, value in NOT_PLAIN.items():
            if (argument, kind) == ("temperature", "vector"):
                continue  # several temperatures of one run
            with pytest.raises(InputError) as error:
                call(**{argument: value})
            said = str(error.value)
            assert "\n" not in said and len(said) < 250, (argument, kind, said)
