"""Arithmetic of the native loops: an exponential that vectorises, and the random numbers of `sl_discs.keys`."""

from __future__ import annotations

import math

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# For loops over sites: products and sums may be fused.
FUSED = {"contract"}
# For sums over sites: also reordered, which vectorises them. Not for the exponential, which would lose accuracy.
REORDERED = {"contract", "reassoc"}

_F = np.float32
_LOG2E = _F(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = _F(0.693359375), _F(-2.12194440e-4)
_C0, _C1, _C2 = _F(1.9875691500e-4), _F(1.3981999507e-3), _F(8.3334519073e-3)
_C3, _C4, _C5 = _F(4.1665795894e-2), _F(1.6666665459e-1), _F(5.0000001201e-1)
_ONE, _HALF = _F(1), _F(0.5)
_BIAS, _SHIFT = np.int32(127), np.int32(23)


@intrinsic
def _float_of_bits(typing_context, bits):
    """float32 with the bits of an int32."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), codegen


@numba.njit(inline="always")
def exp_nonpositive(x):
    """exp(x) in float32 for x in [-87, 0]; error below 2 units in the last place (Cephes' polynomial)."""
    n = np.int32(x * _LOG2E - _HALF)
    scale = _F(n)
    r = x - scale * _LN2_HIGH
    r = r - scale * _LN2_LOW
    p = ((((_C0 * r + _C1) * r + _C2) * r + _C3) * r + _C4) * r + _C5
    return (p * r * r + r + _ONE) * _float_of_bits((n + _BIAS) << _SHIFT)


_LOWEST, _MAGNITUDE, _SIGN_SHIFT = np.int32(-(2**31)), np.int32(2**31 - 1), np.int32(31)


@numba.njit(inline="always")
def _ordered_bits(bits):
    """An order-preserving map between the bits of float32 and int32, its own inverse."""
    return bits ^ ((bits >> _SIGN_SHIFT) & _MAGNITUDE)


@numba.njit
def largest(values):
    """The maximum of float32 values, as one of integers: that of floats is not vectorised."""
    bits = values.view(np.int32)
    top = _LOWEST
    for i in range(bits.shape[0]):
        top = max(top, _ordered_bits(bits[i]))
    return _float_of_bits(_ordered_bits(top))


_U = np.uint32
_PARITY = _U(0x1BD11BDA)
DRAW, FOLD = _U(0), _U(1)


@numba.njit(inline="always")
def _rotate(word, by):
    return (word << _U(by)) | (word >> _U(32 - by))


@numba.njit(inline="always")
def _rounds(left, right, a, b, c, d):
    left = _U(left + right)
    right = _U(_rotate(right, a) ^ left)
    left = _U(left + right)
    right = _U(_rotate(right, b) ^ left)
    left = _U(left + right)
    right = _U(_rotate(right, c) ^ left)
    left = _U(left + right)
    right = _U(_rotate(right, d) ^ left)
    return left, right


@numba.njit(inline="always")
def threefry(key0, key1, first, second):
    """Threefry-2x32 with 20 rounds, as `sl_discs.keys.threefry`."""
    key2 = _U(key0 ^ key1 ^ _PARITY)
    left, right = _U(first + key0), _U(second + key1)
    left, right = _rounds(left, right, 13, 15, 26, 6)
    left, right = _U(left + key1), _U(right + key2 + _U(1))
    left, right = _rounds(left, right, 17, 29, 16, 24)
    left, right = _U(left + key2), _U(right + key0 + _U(2))
    left, right = _rounds(left, right, 13, 15, 26, 6)
    left, right = _U(left + key0), _U(right + key1 + _U(3))
    left, right = _rounds(left, right, 17, 29, 16, 24)
    left, right = _U(left + key1), _U(right + key2 + _U(4))
    left, right = _rounds(left, right, 13, 15, 26, 6)
    return _U(left + key2), _U(right + key0 + _U(5))


_UNIT = _F(2.0**-32)
_LARGEST = _F(1 - 2.0**-24)


@numba.njit(inline="always")
def uniform(word):
    """A uniform number on [0, 1) in float32 from a word, as `sl_discs.keys.uniforms`."""
    return min(_F(word) * _UNIT, _LARGEST)


_SQRT2 = _F(math.sqrt(2))


@numba.njit(fastmath=FUSED)
def normals(key0, key1, out):
    """Standard normal numbers of one key, by inversion as `sl_discs.keys.normals` (Giles' approximation)."""
    size = out.shape[0]
    half = (size + 1) // 2
    for i in range(half):
        first, second = threefry(key0, key1, _U(i), DRAW)
        out[i] = uniform(first)
        if half + i < size:
            out[half + i] = uniform(second)
    for i in range(size):
        x = _F(2) * out[i] - _LARGEST
        w = -np.log((_ONE - x) * (_ONE + x))
        if w < _F(5):
            v = w - _F(2.5)
            p = _F(2.81022636e-08)
            p = _F(3.43273939e-07) + p * v
            p = _F(-3.5233877e-06) + p * v
            p = _F(-4.39150654e-06) + p * v
            p = _F(0.00021858087) + p * v
            p = _F(-0.00125372503) + p * v
            p = _F(-0.00417768164) + p * v
            p = _F(0.246640727) + p * v
            p = _F(1.50140941) + p * v
        else:
            v = np.sqrt(w) - _F(3)
            p = _F(-0.000200214257)
            p = _F(0.000100950558) + p * v
            p = _F(0.00134934322) + p * v
            p = _F(-0.00367342844) + p * v
            p = _F(0.00573950773) + p * v
            p = _F(-0.0076224613) + p * v
            p = _F(0.00943887047) + p * v
            p = _F(1.00167406) + p * v
            p = _F(2.83297682) + p * v
        out[i] = _SQRT2 * p * x
