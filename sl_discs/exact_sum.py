"""Sums of many doubles that are rounded once, as `math.fsum`'s are, at the speed of arrays."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

# Below so many numbers, and near the ends of the range of doubles, `math.fsum` does it.
_FEW = 256
_SMALLEST, _LARGEST = 1e-200, 1e280


def exact_sum(values: Float64[np.ndarray, "M"]) -> float:
    """The correctly rounded sum.

    Leading bits of all numbers are split off together, so few that their sum is exact in any order; what is left of
    each number is smaller by as many bits, and after a few turns nothing is (Rump, Ogita and Oishi, 2008).
    """
    rest = values[values != 0]
    sums = []
    while len(rest) >= _FEW:
        largest = float(np.abs(rest).max())
        if not _SMALLEST < largest < _LARGEST:
            break
        # All numbers are below 2^e, and 2^k of them are more than there are.
        anchor = math.ldexp(1.0, math.frexp(largest)[1] + (len(rest) + 2).bit_length())
        leading = (anchor + rest) - anchor
        sums.append(float(leading.sum()))
        rest = rest - leading
        rest = rest[rest != 0]
    return math.fsum([*sums, *rest.tolist()])
