"""Lets an unmodified checkout of DISCS (2023) run with today's JAX and without TensorFlow.

Nothing outside of `discs` changes: only its modules are given an `import` that returns stand-ins
for the names below. Remove this file, and the argument `compat` of `register`, once DISCS itself
can be imported.

| what DISCS uses | gone since | instead |
|---|---|---|
| jax.tree_map | JAX 0.6 | jax.tree.map |
| jax.device_put_replicated | JAX 0.8 | the value stacked once per device |
| jnp.clip(a_min=, a_max=) | JAX 0.6 | jnp.clip(min=, max=) |
| jax.random.* with a batch of one key | JAX 0.4.16 | the key itself |
| jax.random.shuffle | JAX 0.4.16 | jax.random.permutation |
| pickle5 | Python 3.8; does not build | a reader of graphs that runs no code from the file |
| pysat.formula.CNF | needs a compiler | the DIMACS reader of sl_discs |
| clu.metric_writers | needs TensorFlow | writers that do nothing; DISCS never writes to them |
| tensorflow, tensorflow_probability | do not import on JAX 0.10 | effective_sample_size, the only function used |
"""  # noqa: E501

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.abc
import importlib.machinery
import io
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from absl import logging
from jaxtyping import Array, Float

from sl_discs.instances.discs_files import load_next
from sl_discs.instances.graph import PickledGraph
from sl_discs.instances.graph_files import read_cnf
from sl_discs.support.errors import InputError

_PACKAGE = "discs"

# Functions of jax.random that DISCS calls with keys it split off for a single model and left in a
# batch of one.
_KEYED = (
    "bernoulli",
    "categorical",
    "choice",
    "normal",
    "permutation",
    "randint",
    "split",
    "uniform",
)


@jax.jit
def effective_sample_size(chain: Float[Array, "T B"]) -> Float[Array, "B"]:
    """Returns T / (1 + 2 sum_k (1 - k/T) rho_k), the sum ending before the first negative
    autocorrelation.

    The definition of TensorFlow Probability's function with its defaults: rho_k divides by the T -
    k products that it averages.
    """
    length = chain.shape[0]
    centered = chain - jnp.mean(chain, axis=0)
    spectrum = jnp.fft.rfft(centered, n=2 * length, axis=0)
    products = jnp.fft.irfft(jnp.abs(spectrum) ** 2, n=2 * length, axis=0)[:length]
    lags = jnp.arange(length, dtype=chain.dtype)[:, None]
    correlation = products / (length - lags)
    correlation = correlation / correlation[0]
    positive = jnp.cumsum(correlation < 0, axis=0) == 0
    weighted = jnp.where(positive, (1 - lags / length) * correlation, 0.0)
    return length / (2 * jnp.sum(weighted, axis=0) - 1)


class Overlay(types.ModuleType):
    """A module with some names replaced or added; other names are looked up in the original."""

    def __init__(self, module: types.ModuleType, **names: Any):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_module"], name)


def _clip(array, a_min=None, a_max=None):
    """Clips as jnp.clip, whose bounds had these names."""
    return jnp.clip(array, a_min, a_max)


def _device_put_replicated(tree, devices):
    """Adds a leading axis over devices for `pmap`, which places it."""
    return jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * len(devices)), tree)


def _with_single_key(function: Callable) -> Callable:
    """Returns `function(key, ...)` that also accepts a raw key of shape [1, 2]."""

    @functools.wraps(function)
    def wrapped(key, *arguments, **keywords):
        batch_of_one = getattr(key, "shape", None) == (1, 2)
        return function(key[0] if batch_of_one else key, *arguments, **keywords)

    return wrapped


def _as_networkx(value: Any) -> Any:
    """Converts graphs in lists, tuples and dictionaries to networkx graphs."""
    if isinstance(value, PickledGraph):
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(value.nodes.items())
        graph.add_edges_from(
            (u, v, data) for u, around in value.adjacency() for v, data in around.items()
        )
        return graph
    if isinstance(value, list | tuple):
        return type(value)(_as_networkx(item) for item in value)
    if isinstance(value, dict):
        return {key: _as_networkx(item) for key, item in value.items()}
    return value


def _load(file: io.BufferedReader) -> Any:
    """Reads the next pickle of an open file; EOFError after the last."""
    if not file.peek(1):
        raise EOFError
    try:
        return _as_networkx(load_next(file.name, file))
    except InputError as error:
        logging.error("%s", error)  # DISCS swallows exceptions while it reads graphs
        raise


class _CNF:
    """A formula with the two attributes that DISCS reads."""

    def __init__(self, from_file: str):
        self.clauses = [list(clause) for clause in read_cnf(from_file)]
        self.nv = max((abs(literal) for clause in self.clauses for literal in clause), default=0)


class _SilentWriter:
    """A metric writer that drops everything."""

    def __init__(self, *arguments, **keywords):
        del arguments, keywords

    def __getattr__(self, name: str) -> Callable:
        return lambda *arguments, **keywords: None


@functools.cache
def _stand_ins() -> dict[str, Any]:
    """Returns replacements by the names of the modules that DISCS imports."""
    keyed = {name: _with_single_key(getattr(jax.random, name)) for name in _KEYED}
    random = Overlay(jax.random, shuffle=jax.random.permutation, **keyed)
    numpy = Overlay(jnp, clip=_clip)
    overlay = Overlay(
        jax,
        numpy=numpy,
        random=random,
        tree_map=jax.tree.map,
        device_put_replicated=_device_put_replicated,
    )
    module = types.SimpleNamespace
    experimental = module(enable_tensor_float_32_execution=lambda enabled: None)
    mcmc = module(effective_sample_size=effective_sample_size)
    summary_writer = module(SummaryWriter=_SilentWriter)
    writers = module(create_default_writer=_SilentWriter, summary_writer=summary_writer)
    formula = module(CNF=_CNF)
    return {
        "jax": overlay,
        "jax.numpy": numpy,
        "jax.random": random,
        "pickle5": module(load=_load),
        "pysat": module(formula=formula),
        "pysat.formula": formula,
        "clu": module(metric_writers=writers),
        "clu.metric_writers": writers,
        "clu.metric_writers.summary_writer": summary_writer,
        "tensorflow": module(config=module(experimental=experimental)),
        "tensorflow_probability": module(substrates=module(jax=module(mcmc=mcmc))),
    }


def _importer(stand_ins: dict[str, Any]) -> Callable:
    """Returns an `__import__` that knows the stand-ins."""

    def import_(name, globals=None, locals=None, fromlist=(), level=0):
        root = name.partition(".")[0]
        if level or root not in stand_ins:
            return builtins.__import__(name, globals, locals, fromlist, level)
        if name in stand_ins:
            return stand_ins[name] if fromlist else stand_ins[root]
        real = builtins.__import__(name, globals, locals, fromlist, level)
        return real if fromlist else stand_ins[root]

    return import_


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs the code of a module with its own `__builtins__`, so that it sees the stand-ins."""

    def exec_module(self, module):
        module.__dict__["__builtins__"] = vars(builtins) | {"__import__": _importer(_stand_ins())}
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds `discs` and its modules in the usual way, but loads them with `_Loader`."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] != _PACKAGE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """Makes modules of `discs` import with the stand-ins from now on; idempotent.

    Raises:
      InputError: parts of `discs` are already imported.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    early = sorted(name for name in sys.modules if name.startswith(f"{_PACKAGE}."))
    if early:
        raise InputError(
            f"{early[0]} was imported already; call register(compat=True) before importing discs"
        )
    sys.meta_path.insert(0, Finder())
