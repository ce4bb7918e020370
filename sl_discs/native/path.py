"""One step of gwg or path_auxiliary on one chain: the mathematics of `sl_discs.samplers.path`."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from sl_discs.native.arithmetic import DRAW, threefry, uniform
from sl_discs.native.coupling import flip
from sl_discs.native.weights import WIDTH, draw, set_weights, take, total_of

_F = np.float32

# Number of the pair of words that decides acceptance, beyond those of any draw.
_ACCEPT = np.uint32(0x40000000)


class Scratch(NamedTuple):
    """Arrays that a chain needs while it steps; N sites in B blocks.

    Attributes:
      forward: [N] weights at x.
      forward_sums: [B] their blocks' sums.
      backward: [N] weights at y.
      backward_sums: [B] likewise.
      saved: [N] the field at x.
      sequence: [N] sites in the order of their draws.
      flipped: [N] the distinct ones among them.
      picked: [N] weights at y of the sequence.
    """

    forward: np.ndarray
    forward_sums: np.ndarray
    backward: np.ndarray
    backward_sums: np.ndarray
    saved: np.ndarray
    sequence: np.ndarray
    flipped: np.ndarray
    picked: np.ndarray


@numba.njit
def make_scratch(size):
    """Scratch for chains of padded length `size`."""
    blocks = size // WIDTH
    return Scratch(
        np.zeros(size, np.float32), np.zeros(blocks, np.float32), np.zeros(size, np.float32),
        np.zeros(blocks, np.float32), np.zeros(size, np.float32), np.zeros(size, np.int32), np.zeros(size, np.int32),
        np.zeros(size, np.float32),
    )  # fmt: skip


@numba.njit
def path_step(key0, key1, length, replacement, rate, target, spins, coupled, tilt, scratch):
    """Draws `length` sites in turn, flips them, and keeps or restores the state.

    Args:
      key0: of this chain and step, like key1.
      key1: likewise.
      length: number of draws, at least 1.
      replacement: whether a site may be drawn again (gwg); it then flips once.
      rate: 1/temperature.
      target: f and the mask.
      spins: [N] changed in place, like coupled.
      coupled: [N] Kx.
      tilt: [N] h.
      scratch: `scratch.flipped` holds the proposed flips afterwards.

    Returns:
      acceptance probability, whether accepted, number of proposed flips, changes of c.x and x'Kx/2 (0 if rejected).
    """
    half = _F(0.5) * rate
    flipped, sequence = scratch.flipped, scratch.sequence
    weights, sums = scratch.forward, scratch.forward_sums
    left = set_weights(spins, coupled, target.linear, target.scale, half, tilt, target.mask, weights, sums)
    # Products of ratios instead of sums of logarithms; a factor is at least exp(-80)/N.
    log_forward = 0.0
    distinct = 0
    for k in range(length):
        first, second = threefry(key0, key1, np.uint32(k), DRAW)
        site = draw(weights, sums, left, uniform(first), uniform(second))
        log_forward += np.log(np.float64(weights[site]) / np.float64(left))
        sequence[k] = site
        seen = False
        if replacement:
            for other in range(distinct):
                seen = seen or flipped[other] == site
        elif k + 1 < length:
            take(weights, sums, site)
            left = total_of(sums)
        if not seen:
            flipped[distinct] = site
            distinct += 1

    saved = scratch.saved
    for i in range(coupled.shape[0]):
        saved[i] = coupled[i]
    change_linear, change_pairs, change_tilt = 0.0, 0.0, 0.0
    for k in range(distinct):
        site = flipped[k]
        change_tilt -= 2.0 * tilt[site] * spins[site]
        one, other = flip(target, spins, coupled, site)
        change_linear += one
        change_pairs += other

    weights, sums = scratch.backward, scratch.backward_sums
    total = set_weights(spins, coupled, target.linear, target.scale, half, tilt, target.mask, weights, sums)
    log_backward = 0.0
    if replacement or length == 1:
        for k in range(length):
            log_backward += np.log(np.float64(weights[sequence[k]]) / np.float64(total))
    else:
        # The mass before the last pick is that of the untouched sites and the pick; it grows from there.
        for k in range(length):
            scratch.picked[k] = take(weights, sums, sequence[k])
        mass = np.float64(total_of(sums))
        for k in range(length):
            weight = np.float64(scratch.picked[k])
            mass += weight
            log_backward += np.log(weight / mass)

    change = (change_linear + np.float64(target.scale) * change_pairs) * np.float64(rate) + change_tilt
    acceptance = np.exp(min(change + log_backward - log_forward, 0.0))
    word, _ = threefry(key0, key1, _ACCEPT, DRAW)
    if uniform(word) < acceptance:
        return acceptance, True, distinct, change_linear, change_pairs
    for k in range(distinct):
        spins[flipped[k]] = -spins[flipped[k]]
    for i in range(coupled.shape[0]):
        coupled[i] = saved[i]
    return acceptance, False, distinct, 0.0, 0.0
