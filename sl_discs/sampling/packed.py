"""Draws as bits: eight variables a byte, for each binary digit of their values.

The bytes of a draw are planes of N/8 bytes, rounded up: the first has the lowest digit of every variable. Variables
of two values have one plane.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int8, UInt8

# Draws are unpacked in pieces of so many bytes; what is computed of them takes a few doubles for each, in cache.
_PIECE = 2**20


def num_bytes(size: int, most: int = 2) -> int:
    """W of a draw of so many variables, of at most so many values."""
    return (most - 1).bit_length() * -(-size // 8)


def packed(states: Int8[np.ndarray, "*B N"] | Bool[np.ndarray, "*B N"], most: int = 2) -> UInt8[np.ndarray, "*B W"]:
    """States as bytes; their values are below `most`."""
    planes = [np.packbits(states & (1 << digit), axis=-1) for digit in range((most - 1).bit_length())]
    return planes[0] if len(planes) == 1 else np.concatenate(planes, axis=-1)


def _planes(bits: UInt8[np.ndarray, "*B W"], size: int) -> list[UInt8[np.ndarray, "*B V"]]:
    width = -(-size // 8)
    return [bits[..., start : start + width] for start in range(0, bits.shape[-1], width)]


def unpacked(bits: UInt8[np.ndarray, "*B W"], size: int, first: int = 0, last: int | None = None):
    """The states [..., n] of `packed`, or those of the variables from `first`, a multiple of 8, to before `last`."""
    last = size if last is None else last
    here, count = slice(first // 8, -(-last // 8)), last - first
    lowest, *others = (np.asarray(plane[..., here]) for plane in _planes(bits, size))
    states = np.unpackbits(lowest, axis=-1, count=count).view(np.int8)
    for digit, plane in enumerate(others, start=1):
        states |= np.unpackbits(plane, axis=-1, count=count).view(np.int8) << digit
    return states


def pieces(bits: UInt8[np.ndarray, "C D W"], size: int):
    """Slices of the draws of all groups, and their states [C, d, N], a piece of bounded size after the other."""
    step = max(1, _PIECE // max(1, bits.shape[0] * size))
    for start in range(0, bits.shape[1], step):
        here = slice(start, start + step)
        yield here, unpacked(np.asarray(bits[:, here]), size)


def column(bits: UInt8[np.ndarray, "C D W"], size: int, place: int) -> Int8[np.ndarray, "C D"]:
    """One variable of all draws."""
    values = np.zeros(bits.shape[:2], np.int8)
    for digit, plane in enumerate(_planes(bits, size)):
        values |= (np.asarray(plane[:, :, place // 8]) >> (7 - place % 8) & 1).view(np.int8) << digit
    return values


def overlaps(
    bits: UInt8[np.ndarray, "C D W"], size: int, num_values: Sequence[int] | None = None
) -> Float[np.ndarray, "C D"]:
    """The overlap of each draw with that of the same number in the next group; of a single group, with the draw half
    the group away.

    It is s.s'/N of spins, or the mean of (q_i [x_i = x'_i] - 1)/(q_i - 1) of variables of q_i values: 1 for equal
    draws, and 0 on average for independent uniform ones.
    """  # fmt: skip
    groups, draws, width = bits.shape
    counts = np.array(num_values) if num_values is not None else np.full(size, 2)
    # What a difference costs, and where.
    costs = [(count / (count - 1), packed(counts == count)) for count in np.unique(counts).tolist()]
    step = max(1, _PIECE // max(1, groups * width))
    found = np.empty((groups, draws))
    for start in range(0, draws, step):
        here = np.arange(start, min(start + step, draws))
        own = bits[:, here]
        other = np.roll(own, -1, axis=0) if groups > 1 else bits[:, (here - draws // 2) % draws]
        apart = functools.reduce(np.bitwise_or, _planes(own ^ other, size))
        lost = sum(cost * np.bitwise_count(apart & where).sum(axis=-1, dtype=np.int64) for cost, where in costs)
        found[:, here] = 1 - lost / size
    return found
