"""The process-wide cache of compiled code, and the time spent on compilation.

Runs that differ in problems, seeds, schedules and lengths often need the same compiled code.
"""

from __future__ import annotations

import collections
import functools
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Value = TypeVar("Value")

_MOST = 64
_KEPT: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
_LOCK = threading.Lock()
_OF_THREAD = threading.local()


def compile_seconds() -> float:
    """Seconds that this thread has spent compiling so far."""
    return getattr(_OF_THREAD, "seconds", 0.0)


def compile_cpu_seconds() -> float:
    """CPU-seconds of the process during compilation, which hardly depend on other work on the machine."""
    return getattr(_OF_THREAD, "cpu_seconds", 0.0)


class Stopwatch:
    """Counts the time until `stop` as compilation of this thread; time in nested stopwatches is counted once."""

    def __init__(self):
        self._wall = compile_seconds() - time.perf_counter()
        self._cpu = compile_cpu_seconds() - time.process_time()

    def stop(self) -> None:
        """Ends the count."""
        _OF_THREAD.seconds = self._wall + time.perf_counter()
        _OF_THREAD.cpu_seconds = self._cpu + time.process_time()


def compiled(key: Hashable, build: Callable[[], Value]) -> Value:
    """The result of `build`, built once for each key; the least recently used results are dropped."""
    with _LOCK:
        if key in _KEPT:
            _KEPT.move_to_end(key)
            return _KEPT[key]
    stopwatch = Stopwatch()
    value = build()
    stopwatch.stop()
    with _LOCK:
        _KEPT[key] = value
        while len(_KEPT) > _MOST:
            _KEPT.popitem(last=False)
    return value


def call(function: Callable, *arguments: Any, **static: Hashable) -> Any:
    """function(*arguments, **static) for a jitted function; its compilation is timed.

    Args:
      function: a `jax.jit` with the names of `static` as static arguments.
      *arguments: pytrees of arrays.
      **static: everything else on which the compiled code depends.
    """
    leaves, tree = jax.tree.flatten(arguments)
    shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    key = function, tree, shapes, tuple(sorted(static.items()))

    def build():
        return function.lower(*arguments, **static).compile(compiler_options=compiler_options())

    return compiled(key, build)(*arguments)


@functools.cache
def compiler_options() -> dict[str, str | bool]:
    """XLA options with which the results of an instance do not depend on the other instances in the batch.

    On CPUs XLA delegates some sums to a library whose order of summation depends on the whole array's shape. On GPUs
    of several hosts it would share the search for the fastest kernels among the hosts, which would wait for each
    other although they run different shapes. Options that the installed version of XLA does not know are omitted.
    """
    if jax.default_backend() == "cpu":
        options = {"xla_cpu_experimental_ynn_fusion_type": ""}
    elif jax.process_count() > 1:
        options = {"xla_gpu_shard_autotuning": False}
    else:
        options = {}
    return {name: value for name, value in options.items() if _compiles_with({name: value})}


def _compiles_with(options: dict[str, str | bool]) -> bool:
    try:
        jax.jit(jnp.negative).lower(jnp.float32(0)).compile(compiler_options=options)
    except (RuntimeError, ValueError):
        return False
    return True
