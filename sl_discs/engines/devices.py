"""The cores and devices of this machine, and what a process that was forked has lost of them."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax

from sl_discs.support.errors import InputError

# JAX would take three quarters of a GPU's memory when it first looks at it, which `cuda` shares
# with it.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def local_devices() -> list[jax.Device]:
    """Returns the devices of this process; InputError where JAX lacks those that JAX_PLATFORMS asks
    for.
    """
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
    """Returns whether there is an NVIDIA GPU that this process can use; CUDA_VISIBLE_DEVICES may
    hide it.
    """
    if _lost_card:
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return (
        driver.cuInit(0) == 0
        and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
        and count.value > 0
    )


def missing_card() -> str | None:
    """Returns why there is no GPU for this process; None if there is one."""
    if _lost_card:
        return (
            "this process was forked from one that had opened the GPU, which a fork does not "
            "survive; start workers "
            "with multiprocessing.get_context('spawn')"
        )
    return None if has_card() else "there is no NVIDIA GPU, or its driver does not answer"


_lost_threads = False
_lost_card = False


def _in_use() -> bool:
    """Returns whether JAX has started its devices, whose number can then no longer be set."""
    count = jax.config.jax_num_cpu_devices  # type: ignore[attr-defined]
    try:
        jax.config.update("jax_num_cpu_devices", count + 1)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", count)
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
      InputError: this is such a process, which lacks the threads of JAX and of the CPU engine; or
        JAX lacks the devices that JAX_PLATFORMS asks for.
    """
    if _lost_threads:
        raise InputError(
            "this process was forked from one that was already using JAX, and JAX's threads do "
            "not survive a fork; start workers with multiprocessing.get_context('spawn')"
        )
    if jax.config.jax_platforms:  # type: ignore[attr-defined]
        local_devices()


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
    """Returns the kind of the devices, the processor's name where Linux tells it, and the number of
    cores.
    """
    try:
        match = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    parts = [
        jax.devices()[0].device_kind,
        match[1].strip() if match else platform.machine(),
        f"{num_cores()} cores",
    ]
    return ", ".join(parts)


def one_device_per_core() -> None:
    """Gives JAX as many CPU devices as there are cores, unless the environment sets their number.

    XLA runs the small loops of a sampler's step on one thread per device, so a machine without an
    accelerator would leave its other cores idle. Results do not depend on the number of devices.
    This has no effect on accelerators, or once JAX has initialised its devices.
    """
    chosen = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not chosen and "JAX_NUM_CPU_DEVICES" not in os.environ:
        try:
            jax.config.update("jax_num_cpu_devices", num_cores())
        except RuntimeError:  # the devices are already initialised
            return
