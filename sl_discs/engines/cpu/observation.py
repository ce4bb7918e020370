"""The observation process of one chain in the native loops: the mathematics of `sl_discs.localization.observation`.

The posterior mean of a level is U = sum over its steps of c_t x_t, for spins x_t after step t and weights c_t whose
running sum is C_t. Spins change seldom, so U is formed by parts: of a site that turns at step s to x_s it takes
2 x_s C_{s-1}, and at the level's end it adds x C, site by site. A flip then costs one number and a step none.
"""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cpu.arithmetic import FOLD, fill_uniforms, normal_pair, threefry
from sl_discs.engines.cpu.jit import FUSED, called, in_long_vectors, inlined

_F = np.float32
_TWO, _NOTHING = _F(2), _F(0)


@inlined(fastmath=FUSED)
def turn(mean, spins, flipped, count, collected):
    """Takes notice of sites that have turned, after weights of sum `collected` in the level."""
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
      key0: of the chain's observation, like key1.
      key1: likewise.
      step: number of the step that ends the level.
      y: [N] changed in place, like mean; N a multiple of 16.
      mean: [N] U but for its completion.
      spins: [N] the state.
      collected: sum of the level's weights.
      drift: factor of U.
      spread: standard deviation of the noise.
      room: [N] for random numbers.
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
