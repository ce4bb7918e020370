"""Arithmetic of the native loops: functions that vectorise, and the random numbers of
`sl_discs.models.keys`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.jit import FUSED, REORDERED, called, in_long_vectors, inlined
from sl_discs.models.keys import COSINE, SINE, make_threefry, make_uniform

_F = np.float32
LOG2E = _F(math.log2(math.e))

# 2^f on [-1/2, 1/2]: a least-squares fit of the relative error at Chebyshev nodes, exact at 0.
_P0 = _F(1)
_P1 = _F(0.6931468559)
_P2 = _F(0.2402223800)
_P3 = _F(0.0555089295)
_P4 = _F(0.0096716979)
_P5 = _F(0.0013218672)
_HALF = _F(0.5)
_ONE = _F(1)
_MANTISSA_BITS = np.int32(23)
_TO_WHOLE = _F(1.5 * 2**23)


@inlined
def _float_of_bits(bits):
    return np.int32(bits).view(np.float32)


@inlined
def _bits_of_float(value):
    return np.float32(value).view(np.int32)


@inlined(fastmath=FUSED)
def exp2(x):
    """Returns 2^x in float32 for x in [-125, 125]; relative error below 3e-7."""
    # In float32 the sum has no fractional bits, and its lowest bits hold the nearest whole number.
    x = _F(x)
    shifted = x + _TO_WHOLE
    f = x - (shifted - _TO_WHOLE)
    p = ((((_P5 * f + _P4) * f + _P3) * f + _P2) * f + _P1) * f + _P0
    return _float_of_bits(_bits_of_float(p) + (_bits_of_float(shifted) << _MANTISSA_BITS))


_LOWEST = _F(-125)
_NOTHING = _F(0)


@inlined(fastmath=FUSED)
def exp_nonpositive(x):
    """Returns exp(x) in float32 for x <= 0, 0 below 2^-125; relative error below 3e-7 +
    6e-8 |x|.
    """
    exponent = x * LOG2E
    return exp2(exponent) if exponent > _LOWEST else _NOTHING


# Coefficients of Cephes' logarithm: log(1 + m) on [sqrt(1/2) - 1, sqrt(2) - 1].
_L = tuple(
    _F(c)
    for c in (
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
)
_LN2 = _F(math.log(2))
_HALF_ROOT_BITS = np.int32(0x3F3504F3)  # sqrt(1/2)
_LOW_BITS = np.int32(0x007FFFFF)


@inlined(fastmath=FUSED)
def log(x):
    """Returns log(x) in float32 for normal positive x; relative error below 3e-7."""
    # In numba the difference of two int32 is an int64, which would need twice as many vectors.
    shifted = np.int32(_bits_of_float(x) - _HALF_ROOT_BITS)
    exponent = np.int32(shifted >> _MANTISSA_BITS)
    m = _float_of_bits(np.int32((shifted & _LOW_BITS) + _HALF_ROOT_BITS)) - _ONE
    p = _L[0] * m + _L[1]
    p = p * m + _L[2]
    p = p * m + _L[3]
    p = p * m + _L[4]
    p = p * m + _L[5]
    p = p * m + _L[6]
    p = p * m + _L[7]
    p = p * m + _L[8]
    square = m * m
    return _F(exponent) * _LN2 + (m - _HALF * square + p * m * square)


_U = np.uint32
# Second words of counters: for numbers drawn from a key, for folding a key, and for the numbers of
# a Markov step.
DRAW = _U(0)
FOLD = _U(1)
STEP = _U(2)


threefry = make_threefry(inlined)
uniform = make_uniform(inlined)

_UNIT = _F(2.0**-32)
_UNIT64 = np.float64(2.0**-53)


@inlined
def uniform64(high, low):
    """Returns a uniform number on [0, 1) in float64 from two words."""
    return (
        np.float64((np.uint64(high) << np.uint64(21)) ^ (np.uint64(low) >> np.uint64(11))) * _UNIT64
    )


_S0, _S1, _S2, _S3, _S4 = (_F(c) for c in SINE)
_C0, _C1, _C2, _C3, _C4 = (_F(c) for c in COSINE)
_TWO = _F(2)


@called(fastmath=FUSED)
def fill_uniforms(key0, key1, out):
    """Draws the arguments of `normal_pair` from one key.

    Args:
      key0: first word of a key that only this call uses.
      key1: second word.
      out: [N] float32, N even: first those on (0, 1), then those on [-1/2, 1/2].
    """
    in_long_vectors()
    half = out.shape[0] // 2
    for i in range(half):
        first, second = threefry(key0, key1, _U(i), DRAW)
        out[i] = (_F(first) + _HALF) * _UNIT
        out[half + i] = _F(second) * _UNIT - _HALF


@inlined(fastmath=FUSED)
def normal_pair(first, second):
    """Returns two standard normal numbers, as `sl_discs.models.keys.words_to_normals`.

    Applied to the entries i and N/2 + i of `fill_uniforms`, it gives the same entries of
    `sl_discs.models.keys.normals`. The
    two functions are separate loops, as one loop would need more registers than there are.
    """
    radius = np.sqrt(-_TWO * log(first))
    square = second * second
    sine = second * ((((_S4 * square + _S3) * square + _S2) * square + _S1) * square + _S0)
    cosine = (((_C4 * square + _C3) * square + _C2) * square + _C1) * square + _C0
    return radius * (_ONE - _TWO * sine * sine), radius * (_TWO * sine * cosine)


# Probabilities of proposals as products of many factors, with one division and few logarithms each.

# A product is replaced by its logarithm before it, or the product of two such products, could
# underflow.
_SMALLEST_PRODUCT = 1e-100
_LARGEST_EXPONENT = 700.0


class Probability(NamedTuple):
    """The number exp(log) over/under, where numerators and denominators are multiplied
    separately.
    """

    over: float
    under: float
    log: float


@inlined
def times(probability, over, under):
    """Returns the probability multiplied by over/under, for 0 < over <= under <= 1."""
    over *= probability.over
    under *= probability.under
    if over < _SMALLEST_PRODUCT:
        return Probability(1.0, 1.0, probability.log + np.log(over / under))
    return Probability(over, under, probability.log)


@inlined
def accepted_part(change, forward, back):
    """Returns min(1, exp(change) back/forward), the Metropolis-Hastings acceptance probability."""
    ratio = (back.over * forward.under) / (back.under * forward.over)
    return min(np.exp(min(change + back.log - forward.log, _LARGEST_EXPONENT)) * ratio, 1.0)


# A product over sites, used in place of a sum of logarithms.


@called(fastmath=REORDERED)
def product_of_odds(weights, first, last, scale):
    """Returns the product of 1 + scale w over the sites from `first` to `last` - 1."""
    in_long_vectors()
    product = 1.0
    for i in range(first, last):
        product *= 1.0 + scale * np.float64(weights[i])
    return product
