"""Proposal weights of one chain in blocks, and draws from them: the mathematics of `sl_discs.samplers.draws`.

Block b of B holds the sites b, b + B, b + 2B, ..., 32 of them, so that sums of all blocks are sums of whole rows.
Arrays over sites have length 32 B; the mask is 0 where there is no site.
"""

from __future__ import annotations

import numba
import numpy as np

from sl_discs.native.arithmetic import FUSED, REORDERED, exp_nonpositive, largest

WIDTH = 32

_F = np.float32
_LOWEST_LOGIT = _F(-80)
_NEVER = _F(-1e30)


@numba.njit(fastmath=FUSED)
def set_weights(spins, coupled, linear, scale, half_rate, tilt, mask, weights, sums):
    """Weights exp(max(logit - top, -80)) of balanced gains, 0 outside the mask; returns their total.

    logit = gain/2, gain = d/temperature - 2 s h.

    Args:
      spins: [N] -1 or 1.
      coupled: [N] Kx.
      linear: [N] c.
      scale: J = scale K.
      half_rate: 1/(2 temperature).
      tilt: [N] h, zeros for none.
      mask: [N] 1 or 0.
      weights: [N] output.
      sums: [B] output.
    """
    size, blocks = spins.shape[0], sums.shape[0]
    for i in range(size):
        logit = -spins[i] * ((linear[i] + scale * coupled[i]) * half_rate + tilt[i])
        weights[i] = logit + (_F(1) - mask[i]) * _NEVER
    top = largest(weights)
    for i in range(size):
        weights[i] = mask[i] * exp_nonpositive(max(weights[i] - top, _LOWEST_LOGIT))
    for block in range(blocks):
        sums[block] = _F(0)
    for row in range(0, size, 4 * blocks):
        for block in range(blocks):
            k = row + block
            sums[block] += (weights[k] + weights[k + blocks]) + (weights[k + 2 * blocks] + weights[k + 3 * blocks])
    return total_of(sums)


@numba.njit(fastmath=REORDERED)
def total_of(sums):
    """The sum of the blocks' sums."""
    total = _F(0)
    for block in range(sums.shape[0]):
        total += sums[block]
    return total


@numba.njit
def draw(weights, sums, total, first, second):
    """A site with positive weight by two uniforms: a block from the running sum of sums, then a site inside it."""
    blocks = sums.shape[0]
    threshold = first * total
    running = _F(0)
    place = -1
    for block in range(blocks):
        if sums[block] > 0:
            running += sums[block]
            place = block
            if running > threshold:
                break
    threshold = second * sums[place]
    running = _F(0)
    site = -1
    for k in range(place, weights.shape[0], blocks):
        if weights[k] > 0:
            running += weights[k]
            site = k
            if running > threshold:
                break
    return site


@numba.njit(fastmath=REORDERED)
def take(weights, sums, site):
    """Sets a site's weight to zero and sums its block anew, so that nothing cancels; returns what it weighed."""
    blocks = sums.shape[0]
    weight = weights[site]
    weights[site] = _F(0)
    part = _F(0)
    for k in range(site % blocks, weights.shape[0], blocks):
        part += weights[k]
    sums[site % blocks] = part
    return weight
