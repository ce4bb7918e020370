"""One step of dmala with a fixed step size on one chain: the mathematics of `sl_discs.samplers.langevin`.

Every site flips independently with odds exp(gain/2 - 1/(2 step_size)), so a step takes one uniform number per site
and no sums of weights. The tree holds the odds as its weights and the sum of log(1 + odds) as its norm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.arithmetic import STEP, threefry, uniform
from sl_discs.engines.cpu.entry import Kernel, fill_own
from sl_discs.engines.cpu.jit import called, in_long_vectors, inlined
from sl_discs.engines.cpu.odds import product_of_odds
from sl_discs.engines.cpu.step import Outcome, step_uniform, target_change
from sl_discs.engines.cpu.tree import NORM
from sl_discs.engines.cpu.walk import fill_weights, flip_sites, set_base, take_back

_F = np.float32
# Number of sites whose factors 1 + odds are multiplied before taking a logarithm, unless the product overflows.
_TOGETHER = 128


class IndependentSettings(NamedTuple):
    """Fields of `DMALA` with fixed scaling; the step size as -log2(e)/(2 step_size)."""

    adjusted: bool
    log2_scale: np.float32


@inlined
def _log_norm(odds, size):
    """Sum over the first `size` sites of log(1 + odds)."""
    total = 0.0
    for first in range(0, size, _TOGETHER):
        last = min(first + _TOGETHER, size)
        product = product_of_odds(odds, first, last, 1.0)
        if product < np.inf:
            total += np.log(product)
        else:
            for i in range(first, last):
                total += np.log1p(np.float64(odds[i]))
    return total


@called
def form_odds(settings, walk, target, slope, tree):
    """All odds of the state and their norm."""
    in_long_vectors()
    fill_weights(walk.spins, walk.coupled, walk.base, target.mask, slope, -settings.log2_scale, tree.weights)
    tree.sums[NORM] = _log_norm(tree.weights, walk.spins.shape[0])


@called
def _fill_uniforms(key0, key1, number, out):
    in_long_vectors()
    half = out.shape[0] // 2
    for i in range(half):
        first, second = threefry(key0, key1, np.uint32(number), np.uint32(STEP + 1 + i))
        out[i] = uniform(first)
        out[half + i] = uniform(second)


@inlined
def independent_step(settings, moment, walk, target, tree, other, pace, steps):
    """Flips each site independently, and keeps or restores the state; arguments as in `path.path_step`."""
    uniforms, odds = walk.fresh, tree.weights
    _fill_uniforms(moment.key0, moment.key1, moment.number, uniforms)
    count, log_forward = 0, -tree.sums[NORM]
    for i in range(walk.spins.shape[0]):
        if uniforms[i] * (_F(1) + odds[i]) < odds[i]:
            walk.flipped[count] = i
            count += 1
            log_forward += np.log(np.float64(odds[i]))
    changes, touched = flip_sites(walk, target, count)
    form_odds(settings, walk, target, moment.slope, other)
    acceptance = 1.0
    if settings.adjusted:
        log_back = -other.sums[NORM]
        for k in range(count):
            log_back += np.log(np.float64(other.weights[walk.flipped[k]]))
        change = target_change(moment.rate, moment.tilt_scale, target, changes)
        acceptance = np.exp(min(change + log_back - log_forward, 0.0))
    accepted = step_uniform(moment) < acceptance
    if not accepted:
        take_back(walk, target, tree, False, touched, count)
    return Outcome(acceptance, accepted, accepted, count, changes, pace, 1)


@inlined
def _weigh(settings, walk, target, rate, tilt_scale, tree):
    slope = set_base(walk, target, rate, tilt_scale)
    form_odds(settings, walk, target, slope, tree)
    return slope


KERNEL = Kernel(independent_step, _weigh, fill_own)
