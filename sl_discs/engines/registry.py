"""The engines by name, and the choice of an engine for a sampler."""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from sl_discs.engines.base import Engine
from sl_discs.errors import InputError, NotSupported
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.registry import registered_name

# JAX would take three quarters of a GPU's memory when it first looks at it, which `cuda` shares with it.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

AUTO = "auto"
# Modules are imported on first use, since that of `cpu` imports a compiler.
_ENGINES = {
    "reference": ("sl_discs.engines.reference", "Reference"),
    "cpu": ("sl_discs.engines.cpu.engine", "Cpu"),
    "cuda": ("sl_discs.engines.cuda.engine", "Cuda"),
}
# Other names in flags and configs.
_ALIASES = {"xla": "reference"}
ENGINES = (AUTO, *_ENGINES, *_ALIASES)


def get_engine(name: str) -> Engine:
    """Returns the engine of a name other than `auto`.

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


# `auto` leaves fewer chains than this to the CPU cores: a GPU plays as many in the time of one.
_CARD_CHAINS = 128
# Millions of chain-steps a second on ER-0.05, of one H200 with 1,024 chains and of one core of an x86-64:
# `docs/measured/gpu.json` and `localization.json`; of gibbs the kernel alone on a card, and 32 chains of 20,000 steps
# on a core; metropolis on a card as gibbs. Other cards and processors differ.
_RATES = {
    "gwg": (179, 1.27),
    "path_auxiliary": (140, 0.99),
    "dmala": (141, 1.35),
    "gibbs": (1261, 16),
    "metropolis": (1261, 19),
}


def choose_engine(
    wanted: str, sampler: Sampler, *, num_sites: int = 0, num_chains: int | None = None
) -> tuple[Engine, str]:
    """Returns the engine for a sampler, and why it was chosen (empty if it was requested by name).

    `auto` is `cuda` on a machine with a GPU, if it can run the sampler and there are many chains, else `cpu`, else
    `reference`.

    Args:
      wanted: its name, or `auto`.
      sampler: that it is to run.
      num_sites: the largest number of sites, where it is known.
      num_chains: number of chains of one instance, which `auto` weighs; None: many.

    Raises:
      InputError: there is no engine of this name, or JAX finds no device.
      NotSupported: the engine cannot run the sampler here.
    """
    if wanted == AUTO:
        return _fastest(sampler, num_sites, num_chains)
    engine = get_engine(wanted)
    if not engine.on_host:
        local_devices()  # before anything else asks JAX for its devices
    obstacle = engine.obstacle(sampler, num_sites)
    if obstacle is None:
        return engine, ""
    name = registered_name(type(sampler))
    raise NotSupported(
        f"engine is {wanted!r}, which cannot run {name}: {obstacle}; choose {AUTO!r} or 'reference'",
        "engine",
    )


def _better_cores(sampler: Sampler) -> str | None:
    """Returns that the cores of this machine run a sampler faster than a GPU, by measured rates; None if not."""
    of_card, of_core = _RATES[registered_name(type(sampler))]
    if num_cores() * of_core <= of_card:
        return None
    return f"{num_cores()} cores are faster"


def _fastest(sampler: Sampler, num_sites: int, num_chains: int | None) -> tuple[Engine, str]:
    """Returns the engine that `auto` means, and why."""
    many = num_chains is None or num_chains >= _CARD_CHAINS
    # JAX_PLATFORMS=cpu keeps everything on the cores.
    platforms = os.environ.get("JAX_PLATFORMS", "")
    cards = many and has_card() and (not platforms or bool({"cuda", "gpu"} & set(platforms.split(","))))
    notes: list[str] = []
    for name in ("cuda", "cpu") if cards else ("cpu",):
        engine = get_engine(name)
        obstacle = engine.obstacle(sampler, num_sites)
        if obstacle is None and name == "cuda":
            obstacle = _better_cores(sampler)
        if obstacle is None:
            why = "the fastest on CPU cores" if name == "cpu" else f"faster than {num_cores()} cores"
            return engine, "; ".join(notes) or f"auto: {why}"
        notes.append(f"not {name}: {obstacle}")
    local_devices()
    return get_engine("reference"), "; ".join(notes)


# The cores and devices of this machine.


def local_devices() -> list[jax.Device]:
    """Returns the devices of this process; InputError where JAX lacks those that JAX_PLATFORMS asks for."""
    try:
        return jax.local_devices()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("(set JAX_PLATFORMS")[0].strip()
        platforms = jax.config.jax_platforms  # type: ignore[attr-defined]
        raise InputError(
            f"JAX_PLATFORMS is {platforms!r}, and JAX finds no such device here"
            f"{f' ({reason})' if reason else ''}; unset it, or set it to cpu"
        ) from None


@functools.cache
def has_card() -> bool:
    """Returns whether there is an NVIDIA GPU that this process can use; CUDA_VISIBLE_DEVICES may hide it."""
    if _lost_card:
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def missing_card() -> str | None:
    """Returns why there is no GPU for this process; None if there is one."""
    if _lost_card:
        return (
            "this process was forked from one that had opened the GPU, which a fork does not survive; start workers "
            "with multiprocessing.get_context('spawn')"
        )
    return None if has_card() else "there is no NVIDIA GPU, or its driver does not answer"


def leave_cards_alone() -> None:
    """Keeps JAX from opening GPUs, which takes seconds, where all engines are on the host; before JAX is used."""
    if has_card():
        jax.config.update("jax_platforms", "cpu")


_lost_threads = False
_lost_card = False


def _in_use() -> bool:
    """Returns whether JAX has started its devices, whose number can then no longer be set."""
    number = jax.config.jax_num_cpu_devices  # type: ignore[attr-defined]
    try:
        jax.config.update("jax_num_cpu_devices", number + 1)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", number)
    return False


def _after_fork() -> None:
    global _lost_threads, _lost_card
    _lost_threads = _lost_threads or _in_use()
    # Looking for cards opens the driver.
    _lost_card = _lost_card or (has_card.cache_info().currsize > 0 and has_card())
    has_card.cache_clear()


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
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for the next call, since starting them takes as long as a short call."""
    return ThreadPoolExecutor(threads)


def in_threads(function: Callable[[Any], object], tasks: Sequence[Any], threads: int) -> None:
    """Calls a function with each task; one that releases Python's lock then uses several cores."""
    list(map(function, tasks) if len(tasks) == 1 else _pool(threads).map(function, tasks))


def describe_machine() -> str:
    """Returns the kind of the devices, and the number of cores."""
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
