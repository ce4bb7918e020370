"""The shim: what DISCS gets instead of what has gone, and that nobody else gets it."""

import importlib
import pickle
import sys

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from sl_discs.discs_plugin.compat import effective_sample_size
from sl_discs.support.errors import InputError


@pytest.fixture
def old(discs, tmp_path, monkeypatch):
    """A module of discs that uses every name that the shim supplies."""
    source = """
import jax
import jax.numpy as jnp
from jax import random
from jax.scipy import special
import numpy
import pickle5 as pickle
import tensorflow as tf
import tensorflow_probability as tfp
from clu import metric_writers
from clu.metric_writers.summary_writer import SummaryWriter
from pysat.formula import CNF

def late():
    import pickle5
    return pickle5
"""
    package = importlib.import_module("discs.common")
    (tmp_path / "old.py").write_text(source)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    return importlib.import_module("discs.common.old")


def test_only_discs_sees_the_stand_ins(old):
    assert old.jax is not jax and old.jnp is not jnp
    assert old.numpy is np and old.special is jax.scipy.special
    assert old.late() is old.pickle
    assert not hasattr(jax, "tree_map")
    for name in ("pickle5", "clu", "pysat", "tensorflow_probability"):
        assert name not in sys.modules or sys.modules[name] is not getattr(old, name, None)


def test_names_that_jax_has_dropped(old):
    tree = {"a": jnp.arange(3), "b": [jnp.ones(2)]}
    doubled = old.jax.tree_map(lambda leaf: 2 * leaf, tree)
    np.testing.assert_array_equal(doubled["a"], [0, 2, 4])
    np.testing.assert_array_equal(old.jnp.clip(jnp.arange(4), a_min=1, a_max=2), [1, 1, 2, 2])
    np.testing.assert_array_equal(old.jnp.clip(jnp.arange(4), a_max=2), [0, 1, 2, 2])
    replicated = old.jax.device_put_replicated(tree, [None, None])
    assert replicated["a"].shape == (2, 3)
    key = jax.random.PRNGKey(5)
    for found in (
        old.jax.random.normal(key[None], (3,)),
        old.random.normal(key=key[None], shape=(3,)),
    ):
        np.testing.assert_array_equal(found, jax.random.normal(key, (3,)))
    with pytest.raises(ValueError):
        old.random.normal(jax.random.split(key, 2), (3,))  # several keys are a mistake still
    np.testing.assert_array_equal(jnp.sort(old.random.shuffle(key, jnp.arange(9))), jnp.arange(9))
    assert old.jax.jit is jax.jit and old.jnp.sum is jnp.sum and old.jax.numpy is old.jnp


def test_formulas(old, tmp_path):
    path = tmp_path / "f.cnf"
    path.write_text("p cnf 3 2\n1 -2 3 0\n-1 2 -3 0\n")
    formula = old.CNF(str(path))
    assert formula.nv == 3 and formula.clauses == [[1, -2, 3], [-1, 2, -3]]


def test_pickles_are_graphs_and_nothing_else(old, tmp_path):
    graph = nx.Graph([(0, 2, {"weight": 1.5})])
    graph.add_nodes_from([0, 1, 2], label=1)
    path = tmp_path / "graphs.pkl"
    path.write_bytes(pickle.dumps([(7, graph)]) + pickle.dumps({"sol": (np.float64(2.5), graph)}))
    with path.open("rb") as file:
        [(objective, first)] = old.pickle.load(file)
        second = old.pickle.load(file)
        with pytest.raises(EOFError):
            old.pickle.load(file)
    assert objective == 7 and isinstance(first, nx.Graph) and second["sol"][0] == 2.5
    assert dict(first.nodes(data=True)) == dict(graph.nodes(data=True))
    assert list(first.edges(data=True)) == list(graph.edges(data=True))

    class Evil:
        def __reduce__(self):
            return print, ("never",)

    path.write_bytes(pickle.dumps(Evil()))
    with path.open("rb") as file, pytest.raises(InputError):
        old.pickle.load(file)


def test_effective_sample_size_term_by_term():
    """The definition, in double precision and without a Fourier transform."""
    length, expected = 60, []
    noise = np.random.default_rng(0).standard_normal((length + 9, 5))
    trace = sum(0.6**k * noise[k : k + length] for k in range(10)).astype(np.float32)
    for x in trace.T.astype(float):
        x = x - x.mean()
        correlations = np.array(
            [np.mean(x[: length - k] * x[k:]) for k in range(length)]
        ) / np.mean(x * x)
        end = np.argmax(correlations < 0)
        lags = np.arange(1, end)
        expected.append(length / (1 + 2 * np.sum((1 - lags / length) * correlations[1:end])))
    np.testing.assert_allclose(effective_sample_size(trace), expected, rtol=1e-5)
