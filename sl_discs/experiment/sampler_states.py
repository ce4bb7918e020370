"""What the engines with loops of their own know of the states of the samplers that they play."""

from __future__ import annotations

from sl_discs.samplers.dmala import DMALAState
from sl_discs.samplers.path import PathState
from sl_discs.samplers.single_site import SingleSiteState

# The field that adapts, where there is one.
SCALES = {PathState: "radius", DMALAState: "expected_flips"}
# Log-likelihood calls that a step counts.
CALLS = {PathState: 4, DMALAState: 4, SingleSiteState: 2}
