"""What the engines with loops of their own know of the samplers that they play, and of their states."""

from __future__ import annotations

from collections.abc import Iterable

from sl_discs.samplers.base import Sampler
from sl_discs.samplers.dmala import DMALAState
from sl_discs.samplers.path import PathState
from sl_discs.samplers.single_site import SingleSiteState

# The field that adapts, where there is one.
SCALES = {PathState: "radius", DMALAState: "expected_flips"}
# Log-likelihood calls that a step counts.
CALLS = {PathState: 4, DMALAState: 4, SingleSiteState: 2}


def unknown_to(known: Iterable[type[Sampler]], sampler: Sampler) -> str | None:
    """Why loops for these samplers, a chain alone with itself and balancing SQRT, cannot play one; None if they can.

    A subclass may do something else and is not known.
    """
    if type(sampler) not in known:
        return f"it knows {', '.join(kind.__name__ for kind in known)} alone"
    if getattr(sampler, "balancing_fn_type", "SQRT") != "SQRT":
        return "it knows balancing_fn_type SQRT alone"
    if getattr(sampler, "shared_adaptation", False) or getattr(sampler, "shared_scale", False):
        return "its chains do not know of each other: no shared_adaptation, no shared_scale"
    return None
