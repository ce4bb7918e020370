"""How a batch of instances x chains is divided among devices.

Chains are independent and keys are functions of (seed, instance, chain, step), so results do not depend on the
division. Devices only communicate if the chains of an instance share their adaptation: one number per chain and step.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from sl_discs.batching import DEVICE_CHAINS, DEVICE_INSTANCES
from sl_discs.errors import InputError

AUTO = "auto"


class Layout(NamedTuple):
    """The numbers of parts into which the instances of a batch, and the chains of each instance, are divided."""

    instances: int
    chains: int


def parse_layout(text: str) -> Layout | None:
    """Parses `instances:4,chains:2`, or one of these alone; None for `auto`.

    Raises:
      InputError: the text is none of these.
    """
    if text == AUTO:
        return None
    parts: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(instances|chains)\s*:\s*([1-9][0-9]*)\s*", part)
        if match is None or match[1] in parts:
            raise InputError(
                f"config.experiment.mesh is {text!r}; expected auto, or parts such as instances:4,chains:2"
            )
        parts[match[1]] = int(match[2])
    return Layout(parts.get("instances", 1), parts.get("chains", 1))


def best_layout(num_devices: int, num_instances: int, num_chains: int) -> Layout:
    """The layout with the fewest chains on the busiest device and, among equal ones, the most instance parts."""

    def chains_a_device(layout: Layout) -> int:
        return math.ceil(num_instances / layout.instances) * math.ceil(num_chains / layout.chains)

    parts = [k for k in range(num_devices, 0, -1) if num_devices % k == 0]
    return min((Layout(k, num_devices // k) for k in parts), key=chains_a_device)


def make_mesh(layout: Layout) -> Mesh:
    """The first devices of this process in this layout."""
    devices = jax.local_devices()[: layout.instances * layout.chains]
    return Mesh(np.array(devices).reshape(layout), (DEVICE_INSTANCES, DEVICE_CHAINS))


def count_devices(use_devices: int, layout: Layout | None) -> int:
    """The number of devices of this process to use; `use_devices` 0 means all.

    Raises:
      InputError: there are not that many devices.
    """
    there = len(jax.local_devices())
    if use_devices > there:
        raise InputError(f"config.experiment.use_devices is {use_devices}, but there are {there} devices")
    if layout is not None and math.prod(layout) > (use_devices or there):
        raise InputError(
            f"config.experiment.mesh is instances:{layout.instances},chains:{layout.chains}, which takes "
            f"{math.prod(layout)} devices, but there are {use_devices or there}"
        )
    return use_devices or there
