"""The observation process of one chain in the native loops: the mathematics of `sl_discs.localization.observation`.

The posterior mean of a level is U = sum over its steps of c_t x_t, for spins x_t after step t and weights c_t whose
running sum is C_t. Spins change seldom, so U is computed by summation by parts: when a site turns to x_s at step s,
2 x_s C_{s-1} is subtracted, and at the end of the level x C is added for each site. A flip then costs one operation,
and a step without flips none.
"""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cpu.arithmetic import FOLD, fill_uniforms, normal_pair, threefry
from sl_discs.engines.cpu.jit import FUSED, called, in_long_vectors, inlined

_F = np.float32
_TWO, _NOTHING = _F(2), _F(0)


@inlined(fastmath=FUSED)
def turn(mean, spins, flipped, count, collected):
    """Accounts for sites that have just turned, where `collected` is the sum of the level's weights so far."""
    for k in range(count):
        site = flipped[k]
        mean[site] -= _TWO * collected * spins[site]


@inlined(fastmath=FUSED)
def complete(mean, spins, collected):
    """Completes U."""
    for i in range(mean.shape[0]):
        mean[i] += collected * spins[i]


@called(fastmath=FUSED)
def move(key0, key1, step, y, mean, spins, collected, drift, spread, room):
    """y + drift U + spread Z for standard normal Z, and an empty posterior mean for the next level.

    Args:
      key0: first word of the chain's observation key.
      key1: second word.
      step: number of the step that ends the level.
      y: [N] modified in place, like mean; N is a multiple of 16.
      mean: [N] U before `complete`.
      spins: [N] the state.
      collected: sum of the level's weights.
      drift: factor of U.
      spread: standard deviation of the noise.
      room: [N] working memory for random numbers.
    """
    in_long_vectors()
    fold0, fold1 = threefry(key0, key1, np.uint32(step), FOLD)
    fill_uniforms(fold0, fold1, room)
    half = y.shape[0] // 2
    for i in range(half):
        one, other = normal_pair(room[i], room[half + i])
        y[i] += drift * (mean[i] + collected * spins[i]) + spread * one
        y[half + i] += drift * (mean[half + i] + collected * spins[half + i]) + spread * other
        mean[i] = mean[half + i] = _NOTHING
