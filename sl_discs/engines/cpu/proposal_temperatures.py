"""The temperatures at which the CPU engine weighs proposals: constant over many steps, so that weights can be kept.

A level of localization changes the tilt, so all weights are recomputed there. Proposal temperatures therefore change
where levels begin and, within a level, in equal steps of about 1/256 of the logarithm, so that they are at most 0.3 %
off. The Metropolis-Hastings test uses the same weights as the proposal and the target's own temperature, so each step
leaves its target invariant, whatever the proposal's temperature.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32

from sl_discs.localization.schedule import Levels

# Number of steps per factor e of temperature.
_AN_E_FOLD = 256
# Replaces an infinite temperature, where energies below 1e30 make no difference.
_HIGHEST = 1e38


def proposal_temperatures(temperature: Float32[np.ndarray, "T"], levels: Levels | None) -> Float32[np.ndarray, "T"]:
    """The proposal's temperature at each step of a whole run; a run without levels counts as one level."""
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
    # The middle of a part; in a level of constant temperature, that temperature itself.
    middle = np.where(moves, 0.5, 0.0)
    begins, width, middle = (np.repeat(one, lengths) for one in (begins, width, middle))
    part = np.floor((begins - logarithm) / width + 0.5 - middle)
    return np.exp(begins - (part + middle) * width).astype(np.float32)
