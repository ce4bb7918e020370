"""Draws as bits: eight variables a byte."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int8, UInt8

# Draws are unpacked in pieces of so many bytes; what is computed of them takes a few doubles for each, in cache.
_PIECE = 2**20


def packed(states: Int8[np.ndarray, "*B N"]) -> UInt8[np.ndarray, "*B W"]:
    """States of zeros and ones as W = N/8 bytes, rounded up."""
    return np.packbits(states != 0, axis=-1)


def unpacked(bits: UInt8[np.ndarray, "*B W"], size: int) -> Int8[np.ndarray, "*B N"]:
    """The states of `packed`."""
    return np.unpackbits(bits, axis=-1, count=size).view(np.int8)


def pieces(bits: UInt8[np.ndarray, "C D W"], size: int):
    """Slices of the draws of all groups, and their states [C, d, N], a piece of bounded size after the other."""
    step = max(1, _PIECE // max(1, bits.shape[0] * size))
    for start in range(0, bits.shape[1], step):
        here = slice(start, start + step)
        yield here, unpacked(np.asarray(bits[:, here]), size)


def column(bits: UInt8[np.ndarray, "C D W"], place: int) -> Bool[np.ndarray, "C D"]:
    """One variable of all draws."""
    return (np.asarray(bits[:, :, place // 8]) >> (7 - place % 8)) & 1 == 1


def overlaps(bits: UInt8[np.ndarray, "C D W"], size: int) -> Float[np.ndarray, "C D"]:
    """The overlap s.s'/N of each draw with that of the same number in the next group; of a single group, with the
    draw half the group away."""  # fmt: skip
    groups, draws, width = bits.shape
    step = max(1, _PIECE // max(1, groups * width))
    found = np.empty((groups, draws))
    for start in range(0, draws, step):
        here = np.arange(start, min(start + step, draws))
        own = bits[:, here]
        other = np.roll(own, -1, axis=0) if groups > 1 else bits[:, (here - draws // 2) % draws]
        found[:, here] = 1 - 2 * np.bitwise_count(own ^ other).sum(axis=-1, dtype=np.int64) / size
    return found
