"""The cores and devices of this machine."""

from __future__ import annotations

import os

import jax


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_device_per_core() -> None:
    """Gives JAX as many CPU devices as there are cores, unless the environment says how many.

    XLA plays the small loops of a sampler's step on one thread a device, so a machine without an accelerator would
    leave its other cores idle. Results do not depend on the number of devices. Without effect on accelerators, and
    where JAX has looked for devices already.
    """
    chosen = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not chosen and "JAX_NUM_CPU_DEVICES" not in os.environ:
        try:
            jax.config.update("jax_num_cpu_devices", num_cores())
        except RuntimeError:  # the devices are there already
            return
