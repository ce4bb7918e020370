"""The process-wide cache of compiled code, and the time spent on compilation.

Runs that differ in problems, seeds, schedules and lengths often need the same compiled code.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import threading
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from sl_discs.support.cache import cache_folder
from sl_discs.support.terminal import tell

Value = TypeVar("Value")

_MOST = 64
_KEPT: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
_LOCK = threading.Lock()
_OF_THREAD = threading.local()


def compile_seconds() -> float:
    """Returns the seconds that this thread has spent compiling so far."""
    return getattr(_OF_THREAD, "seconds", 0.0)


def compile_cpu_seconds() -> float:
    """CPU-seconds of the process during compilation, which hardly depend on other work on the
    machine.
    """
    return getattr(_OF_THREAD, "cpu_seconds", 0.0)


# Seconds after which a compilation is worth a line on the error stream.
_LONG_S = 1.0
# Whether it gets one: in commands, not in a user's own program.
_announces = False


@functools.cache
def _say_compiling() -> None:
    """Says once a process why nothing seems to happen."""
    tell("compiling once for this machine; later runs find the compiled code")


class Announcement:
    """Says, after `keep_programs`, that something is compiled, if it takes long until `stop`."""

    def __init__(self):
        self._timer = threading.Timer(_LONG_S, _say_compiling) if _announces else None
        if self._timer:
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """The compilation is over."""
        if self._timer:
            self._timer.cancel()


def announced(build: Callable[[], Value]) -> Value:
    """Returns the result of `build`, which compiles; one that takes long is announced."""
    announcement = Announcement()
    try:
        return build()
    finally:
        announcement.stop()


class Stopwatch:
    """Counts the time until `stop` as compilation of this thread; time in nested stopwatches is
    counted once.
    """

    def __init__(self):
        self._wall = compile_seconds() - time.perf_counter()
        self._cpu = compile_cpu_seconds() - time.process_time()

    def stop(self) -> None:
        """Ends the count."""
        _OF_THREAD.seconds = self._wall + time.perf_counter()
        _OF_THREAD.cpu_seconds = self._cpu + time.process_time()


def _count(event: str, duration_secs: float, **_: str | int) -> None:
    """Counts what JAX compiles outside a stopwatch, such as the programs that place arrays on
    devices.
    """
    if event in _COMPILATION:
        _OF_THREAD.seconds = compile_seconds() + duration_secs
        _OF_THREAD.cpu_seconds = compile_cpu_seconds() + duration_secs


_COMPILATION = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)
jax.monitoring.register_event_duration_secs_listener(_count)


def compiled(key: Hashable, build: Callable[[], Value]) -> Value:
    """Returns the result of `build`, built once for each key; the least recently used results are
    dropped.
    """
    with _LOCK:
        if key in _KEPT:
            _KEPT.move_to_end(key)
            return _KEPT[key]
    stopwatch = Stopwatch()
    try:
        value = build()
    finally:
        stopwatch.stop()
    with _LOCK:
        _KEPT[key] = value
        while len(_KEPT) > _MOST:
            _KEPT.popitem(last=False)
    return value


def call(function: Callable, *arguments: Any, **static: Hashable) -> Any:
    """Calls function(*arguments, **static) for a jitted function; its compilation is timed.

    Args:
      function: a `jax.jit` with the names of `static` as static arguments.
      *arguments: pytrees of arrays.
      **static: everything else on which the compiled code depends.
    """
    leaves, tree = jax.tree.flatten(arguments)
    shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    key = function, tree, shapes, tuple(sorted(static.items()))

    def build():
        device = jax.config.jax_default_device or jax.local_devices()[0]
        lowered = function.lower(*arguments, **static)
        return announced(
            lambda: lowered.compile(compiler_options=compiler_options(device.platform))
        )

    return compiled(key, build)(*arguments)


_SUMS_BY_XLA: dict[str, str | bool] = {"xla_cpu_experimental_ynn_fusion_type": ""}


@functools.cache
def compiler_options(platform: str) -> dict[str, str | bool]:
    """Returns XLA options with which the results of an instance do not depend on the other
    instances in the batch.

    On CPUs XLA delegates some sums to a library whose order of summation depends on the whole
    array's shape. Versions of XLA that do not know the option go without.
    """
    return _SUMS_BY_XLA if platform == "cpu" and _compiles_with(_SUMS_BY_XLA) else {}


def _compiles_with(options: dict[str, str | bool]) -> bool:
    try:
        jax.jit(jnp.negative).lower(jnp.float32(0)).compile(compiler_options=options)
    except (RuntimeError, ValueError):
        return False
    return True


# The files of the package from which loops are compiled, besides the one that defines the loop.
_SOURCES = ("engines/**/*.py", "models/keys.py", "localization/**/*.py", "samplers/**/*.py")


@functools.cache
def digest_of_sources(loop: Path) -> str:
    """Returns the digest of all sources that the loops of a file are compiled from.

    Compiled code depends on all functions and constants that it was compiled with, not on one
    function's source. Sources of which no loop uses anything are left out, so that a change of a
    command compiles nothing again.

    Args:
      loop: the file that defines the loops.
    """
    package = Path(__file__).parents[1]
    content = hashlib.sha256(loop.read_bytes())
    for source in sorted(path for pattern in _SOURCES for path in package.glob(pattern)):
        content.update(f"\0{source.relative_to(package).as_posix()}\0".encode())
        content.update(source.read_bytes())
    return content.hexdigest()


# Programs that compile faster are not worth a file.
_LEAST_S = 0.1


def keep_programs() -> None:
    """Lets JAX keep compiled programs in the project's cache, unless it has a folder; for commands
    to call first.

    JAX's keys do not record the processor that a program was compiled for, so each kind of
    processor has a folder:
    machines with a shared home folder may differ.
    """
    global _announces
    if jax.config.jax_compilation_cache_dir is not None:  # type: ignore[attr-defined]
        return
    _announces = True
    # Imported here, as commands that only print their help do not need it.
    from llvmlite import (
        binding,
    )

    processor = repr((binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()))
    folder = cache_folder(part=f"xla-{hashlib.sha256(processor.encode()).hexdigest()[:16]}")
    if folder is not None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_S)
