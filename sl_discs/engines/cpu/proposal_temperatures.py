"""The temperatures at which the CPU engine weighs proposals: constant for many steps, so that weights can be kept.

A level of localization needs all weights anew, for its tilt. Temperatures therefore move where levels begin and,
within a level, in as many equal parts of the logarithm as make them about 1/256: proposals are at most 0.3 % off.
The Metropolis-Hastings test uses the weights that the proposal did and the target's own temperature, so each step
leaves its target invariant, whatever the proposal's temperature.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32

from sl_discs.localization.schedule import Levels

# Parts of a factor e of temperature.
_AN_E_FOLD = 256
# For an infinite temperature, at which nothing depends on energies of less than 1e30.
_HIGHEST = 1e38


def proposal_temperatures(temperature: Float32[np.ndarray, "T"], levels: Levels | None) -> Float32[np.ndarray, "T"]:
    """The proposal's temperature at each step of a whole run; one without levels is one level."""
    logarithm = np.log(np.minimum(np.asarray(temperature, np.float64), _HIGHEST))
    steps = logarithm.size
    ends = [] if levels is None else np.minimum(levels.last.astype(np.int64) + 1, steps)
    # Every level ends where the next begins; the last ends with the run.
    edges = np.unique(np.concatenate([[0], ends, [steps]]).astype(int))
    begins, lengths = logarithm[edges[:-1]], np.diff(edges)
    falls = begins - logarithm[np.minimum(edges[1:], steps - 1)]
    parts = np.rint(np.abs(falls) * _AN_E_FOLD)
    moves = parts > 0
    width = np.where(moves, falls / np.maximum(parts, 1), 1 / _AN_E_FOLD)
    # The middle of a part; where a level has none, the temperature itself while it stays the same.
    middle = np.where(moves, 0.5, 0.0)
    begins, width, middle = (np.repeat(one, lengths) for one in (begins, width, middle))
    part = np.floor((begins - logarithm) / width + 0.5 - middle)
    return np.exp(begins - (part + middle) * width).astype(np.float32)
