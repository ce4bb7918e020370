"""One step of dmala with normalized step size on one chain: the mathematics of `sl_discs.samplers.langevin`.

A Poisson process with rates a_i = n w_i / Z has n points on average. Keeping a point at i with probability
log(1 + a_i)/a_i gives a process with rates log(1 + a_i), which has a point at site i with probability sigmoid(log
a_i). These are the sites to flip. A step thus takes about n draws by weight. The sum of log(1 + a_i) over all sites
is the logarithm of a product, which is at most exp(n); it is kept from step to step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.arithmetic import Probability, accepted_part, product_of_odds, times
from sl_discs.engines.cpu.chain import flip_sites, take_back, weigh_proposal
from sl_discs.engines.cpu.jit import inlined
from sl_discs.engines.cpu.step import (
    Entry,
    StepKernel,
    StepOutcome,
    adapted,
    draw_uniform,
    fill_words,
    step_uniform,
    target_change,
    weigh_softmax,
)
from sl_discs.engines.cpu.tree import NORM, TOTAL, draw
from sl_discs.samplers.langevin import DMALA

_F = np.float32
# exp(n), the bound on a product over all sites, must be finite in float64.
_LARGEST_FLIPS = 500.0
# The time of the Poisson process is divided into pieces, so that exp(-time) does not underflow.
_LONGEST_PIECE = 300.0


class LangevinSettings(NamedTuple):
    """Fields of `DMALA` with normalized scaling; adapt_until 0 means that adaptation never ends."""

    adaptive: bool
    target_acceptance: np.float32
    adapt_until: int
    adjusted: bool


@inlined
def _log_norm_of_gains(tree, size, expected_flips):
    """Returns the sum over the first `size` sites of log(1 + a_i)."""
    weights, scale = tree.weights, np.float64(expected_flips) / tree.sums[TOTAL]
    if expected_flips < _LARGEST_FLIPS:
        return np.log(product_of_odds(weights, 0, size, scale))
    total = 0.0
    for i in range(size):
        total += np.log1p(scale * np.float64(weights[i]))
    return total


@inlined
def _draw_flips(inputs, chain, tree, expected_flips):
    """Draws the sites to flip into `flipped`; returns their number and the product of their w/Z."""
    unit = 1.0 / tree.sums[TOTAL]
    count, draws = 0, 0
    probability = Probability(1.0, 1.0, 0.0)
    # Waiting times between points are exponential, so exp(-time) is a product of uniform numbers.
    left, none_yet = np.float64(expected_flips), 1.0
    end = np.exp(-min(left, _LONGEST_PIECE))
    while True:
        none_yet *= 1.0 - draw_uniform(inputs, draws)
        while none_yet < end:
            if left <= _LONGEST_PIECE:
                return count, probability
            left -= _LONGEST_PIECE
            none_yet /= end
            end = np.exp(-min(left, _LONGEST_PIECE))
        site = draw(tree, draw_uniform(inputs, draws + 1))
        kept = draw_uniform(inputs, draws + 2)
        draws += 3
        share = unit * np.float64(tree.weights[site])
        rate = expected_flips * share
        # log1p(rate)/rate is at least 1/(1 + rate): most points of small rate are kept without a logarithm.
        if kept * (1.0 + rate) < 1.0 or kept * rate < np.log1p(rate):
            seen = False
            for k in range(count):
                seen = seen or chain.flipped[k] == site
            if not seen:
                chain.flipped[count] = site
                count += 1
                probability = times(probability, share, 1.0)


@inlined
def langevin_step(settings, inputs, chain, target, tree, other, expected_flips, steps):
    """Flips each site independently, and keeps or restores the state; arguments as in `path.path_step`."""
    norm = tree.sums[NORM]
    if settings.adaptive or np.isnan(norm):
        norm = _log_norm_of_gains(tree, chain.spins.shape[0], expected_flips)
    count, forward = _draw_flips(inputs, chain, tree, expected_flips)
    changes, touched = flip_sites(chain, target, count)
    in_place = weigh_proposal(chain, target, inputs.slope, tree, other, touched)
    proposed = tree if in_place else other
    norm_back = _log_norm_of_gains(proposed, chain.spins.shape[0], expected_flips)
    acceptance = 1.0
    if settings.adjusted:
        back = Probability(1.0, 1.0, 0.0)
        unit = 1.0 / proposed.sums[TOTAL]
        for k in range(count):
            back = times(back, unit * np.float64(proposed.weights[chain.flipped[k]]), 1.0)
        change = target_change(inputs.rate, inputs.tilt_scale, target, changes)
        acceptance = accepted_part(change + norm - norm_back, forward, back)
    accepted = step_uniform(inputs) < acceptance
    if accepted:
        proposed.sums[NORM] = norm_back
    else:
        take_back(chain, target, tree, in_place, touched, count)
        tree.sums[NORM] = norm
    if settings.adaptive:
        flips = 3 * adapted(
            expected_flips / _F(3), acceptance, settings.target_acceptance, steps, settings.adapt_until
        )
        expected_flips = min(max(_F(flips), _F(1)), _F(target.open_sites.shape[0]))
    return StepOutcome(acceptance, accepted, accepted and not in_place, count, changes, _F(expected_flips), 1)


def _settings(sampler: DMALA) -> LangevinSettings:
    target, adapt_until = np.float32(sampler.target_acceptance_rate), sampler.adapt_until or 0
    return LangevinSettings(sampler.adaptive, target, adapt_until, sampler.adjusted)


@inlined
def _fill(settings, expected_flips, key0, key1, first_number, words):
    return fill_words(key0, key1, first_number, 3 * int(expected_flips) + 4, words)


ENTRY = Entry(
    _settings,
    {LangevinSettings: StepKernel(langevin_step, weigh_softmax, _fill)},
    keeps_weights=lambda sampler: sampler.adjusted,
)
