"""How a batch of instances x chains is laid out over devices.

Chains never speak to each other, so any division serves, and results do not depend on it: keys are those of
(seed, instance, chain, step). Only adaptation that the chains of an instance share makes devices exchange a number a
chain and step.
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
    """Into how many parts the instances of a batch are cut, and the chains of each instance."""

    instances: int
    chains: int


def parse_layout(text: str) -> Layout | None:
    """`instances:4,chains:2`, either part alone, or `auto`, which is None.

    Raises:
      InputError: it is none of these.
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
    """The layout that leaves the busiest device the fewest chains; of equal ones the one with most instance parts."""

    def chains_a_device(layout: Layout) -> int:
        return math.ceil(num_instances / layout.instances) * math.ceil(num_chains / layout.chains)

    parts = [k for k in range(num_devices, 0, -1) if num_devices % k == 0]
    return min((Layout(k, num_devices // k) for k in parts), key=chains_a_device)


def make_mesh(layout: Layout) -> Mesh:
    """The first devices of this process in this layout."""
    devices = jax.local_devices()[: layout.instances * layout.chains]
    return Mesh(np.array(devices).reshape(layout), (DEVICE_INSTANCES, DEVICE_CHAINS))


def count_devices(use_devices: int, layout: Layout | None) -> int:
    """How many devices of this process are used; `use_devices` 0 is all of them.

    Raises:
      InputError: there are not that many.
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
