"""Sums of many doubles that are rounded once, as `math.fsum`'s are, at the speed of arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from sl_discs.errors import InputError

# Below so many numbers, and near the ends of the range of doubles, `math.fsum` does it.
_FEW = 256
_SMALLEST, _LARGEST = 1e-200, 1e280


class ExactParts(NamedTuple):
    """Numbers as sums of parts that add up exactly.

    Attributes:
      parts: each the places of some numbers and what is split off them: sums of any of these, with any signs, are
        exact in any order.
      rest: places and values of what is left, a few numbers, or those near the ends of the range.
    """

    parts: list[tuple[Int[np.ndarray, "P"], Float64[np.ndarray, "P"]]]
    rest: tuple[Int[np.ndarray, "R"], Float64[np.ndarray, "R"]]


def exact_parts(values: Float64[np.ndarray, "M"]) -> ExactParts:
    """Splits numbers.

    Leading bits of all numbers are split off together, so few that their sum is exact in any order; what is left of
    each number is smaller by as many bits, and after a few turns nothing is (Rump, Ogita and Oishi, 2008).
    """
    places = np.flatnonzero(values)
    rest = values[places]
    parts = []
    while len(rest) >= _FEW:
        largest = float(np.abs(rest).max())
        if not _SMALLEST < largest < _LARGEST:
            break
        # All numbers are below 2^e, and 2^k of them are more than there are.
        anchor = math.ldexp(1.0, math.frexp(largest)[1] + (len(rest) + 2).bit_length())
        leading = (anchor + rest) - anchor
        parts.append((places, leading))
        rest = rest - leading
        left = rest != 0
        places, rest = places[left], rest[left]
    return ExactParts(parts, (places, rest))


def check_sum(name: str, *values: Float64[np.ndarray, "..."] | float) -> None:
    """Raises an InputError where sums of finite numbers, or four times these, leave the range of doubles."""
    # Scaled, so that this sum does not overflow.
    if sum(float((np.abs(one) * 2.0**-60).sum()) for one in values) >= 2.0**960:
        raise InputError(f"{name}: coefficients that add up to more than 1e307; scale all of them")


def expansion(values: Iterable[float]) -> list[float]:
    """Few numbers with exactly the same sum, the first of them that sum as it is rounded; none where it is 0."""
    left, found = list(values), []
    while total := math.fsum(left):
        found.append(total)
        left.append(-total)
    return found


def exact_sum(values: Float64[np.ndarray, "M"]) -> float:
    """The correctly rounded sum."""
    parts, (_, rest) = exact_parts(values)
    return math.fsum([*(float(leading.sum()) for _, leading in parts), *rest.tolist()])
