"""Probabilities of proposals as products of many factors, with one division and few logarithms each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.jit import inlined

# A product is replaced by its logarithm before it, or the product of two such products, could underflow.
_SMALLEST_PRODUCT = 1e-100
_LARGEST_EXPONENT = 700.0


class Probability(NamedTuple):
    """The number exp(log) over/under, where numerators and denominators are multiplied separately."""

    over: float
    under: float
    log: float


@inlined
def times(probability, over, under):
    """The probability multiplied by over/under, for 0 < over <= under <= 1."""
    over *= probability.over
    under *= probability.under
    if over < _SMALLEST_PRODUCT:
        return Probability(1.0, 1.0, probability.log + np.log(over / under))
    return Probability(over, under, probability.log)


@inlined
def accepted_part(change, forward, back):
    """min(1, exp(change) back/forward), the Metropolis-Hastings acceptance probability."""
    ratio = (back.over * forward.under) / (back.under * forward.over)
    return min(np.exp(min(change + back.log - forward.log, _LARGEST_EXPONENT)) * ratio, 1.0)
