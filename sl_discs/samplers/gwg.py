"""Gibbs with gradients (Grathwohl et al. 2021): sites drawn with replacement from the balanced softmax."""

from __future__ import annotations

import dataclasses

from sl_discs.samplers.path import PathSampler


@dataclasses.dataclass(frozen=True)
class GWG(PathSampler):
    """With one flip, acceptance is min(1, Z(x)/Z(y)); with several, a site drawn more than once flips once."""

    replacement: bool = dataclasses.field(default=True, init=False)
