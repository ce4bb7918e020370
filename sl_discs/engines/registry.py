"""The engines by name, and the choice of an engine for a sampler."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
from jax._src import xla_bridge  # the only way to ask whether JAX is in use

from sl_discs.engines.base import Engine
from sl_discs.errors import InputError, NotSupported
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.registry import registered_name

AUTO = "auto"
# Modules are imported on first use, since that of `cpu` imports a compiler.
_ENGINES = {
    "reference": ("sl_discs.engines.reference", "Reference"),
    "cpu": ("sl_discs.engines.cpu.engine", "Cpu"),
}
# The reference engine's earlier name, in flags and configs.
_ALIASES = {"xla": "reference"}
ENGINES = (AUTO, *_ENGINES, *_ALIASES)


def get_engine(name: str) -> Engine:
    """The engine of a name other than `auto`.

    Raises:
      InputError: there is none.
    """
    name = _ALIASES.get(name, name)
    if name not in _ENGINES:
        raise InputError(f"engine is {name!r}; known: {', '.join(ENGINES)}")
    return _load(name)


@functools.cache
def _load(name: str) -> Engine:
    module, kind = _ENGINES[name]
    return getattr(importlib.import_module(module), kind)()


def choose_engine(wanted: str, sampler: Sampler) -> tuple[Engine, str]:
    """The engine for a sampler, and why it was chosen (empty if it was requested by name).

    `auto` is `cpu` where it can run the sampler, otherwise the reference.

    Args:
      wanted: its name, or `auto`.
      sampler: that it is to run.

    Raises:
      InputError: there is no engine of this name, or JAX finds no device.
      NotSupported: the engine cannot run the sampler here.
    """
    local_devices()  # before anything asks JAX where it runs
    engine, note = get_engine("cpu" if wanted == AUTO else wanted), "auto: the fastest on CPU cores"
    obstacle = engine.obstacle(sampler)
    if obstacle is not None and wanted == AUTO:
        note = f"not {engine.name}: {obstacle}"
        engine, obstacle = get_engine("reference"), None
    if obstacle is None:
        return engine, note if wanted == AUTO else ""
    name = registered_name(type(sampler))
    raise NotSupported(
        f"engine is {wanted!r}, which cannot run {name}: {obstacle}; choose {AUTO!r} or 'reference'",
        "engine",
    )


# The cores and devices of this machine.


def local_devices() -> list[jax.Device]:
    """Returns the devices of this process; InputError where JAX lacks those that JAX_PLATFORMS asks for."""
    try:
        return jax.local_devices()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("(set JAX_PLATFORMS")[0].strip()
        raise InputError(
            f"JAX_PLATFORMS is {jax.config.jax_platforms!r}, and JAX finds no such device here"
            f"{f' ({reason})' if reason else ''}; unset it, or set it to cpu"
        ) from None


_lost_threads = False


def _after_fork() -> None:
    global _lost_threads
    _lost_threads = _lost_threads or xla_bridge.backends_are_initialized()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_threads() -> None:
    """Checks that chains can run: in a process forked from one that was using JAX, they would hang.

    Raises:
      InputError: this is such a process, which lacks the threads of JAX and of the CPU engine.
    """
    if _lost_threads:
        raise InputError(
            "this process was forked from one that was already using JAX, and JAX's threads do not survive a "
            "fork; start workers with multiprocessing.get_context('spawn')"
        )


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the next call, since starting them takes as long as a short call."""
    return ThreadPoolExecutor(threads)


def in_threads(function: Callable[[Any], object], tasks: Sequence[Any], threads: int) -> None:
    """Calls a function with each task; one that releases Python's lock then uses so many cores."""
    list(map(function, tasks) if len(tasks) == 1 else _pool(threads).map(function, tasks))


def describe_machine() -> str:
    """Kind of the devices, and cores."""
    return f"{jax.devices()[0].device_kind}, {num_cores()} cores"


def one_device_per_core() -> None:
    """Gives JAX as many CPU devices as there are cores, unless the environment sets their number.

    XLA runs the small loops of a sampler's step on one thread per device, so a machine without an accelerator would
    leave its other cores idle. Results do not depend on the number of devices. This has no effect on accelerators, or
    once JAX has initialised its devices.
    """
    chosen = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not chosen and "JAX_NUM_CPU_DEVICES" not in os.environ:
        try:
            jax.config.update("jax_num_cpu_devices", num_cores())
        except RuntimeError:  # the devices are already initialised
            return
