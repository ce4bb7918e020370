"""Steps that draw sites by weight, on one chain: gwg, path_auxiliary and dmala.

They are the mathematics of `sl_discs.samplers.path` and `sl_discs.samplers.langevin`, the latter
with normalized step size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.arithmetic import Probability, accepted_part, product_of_odds, times
from sl_discs.engines.cpu.chain_state import flip_sites, take_back, weigh_proposal
from sl_discs.engines.cpu.jit import inlined
from sl_discs.engines.cpu.step import (
    Entry,
    StepKernel,
    StepOutcome,
    adapted,
    draw_uniform,
    fill_words,
    other_uniform,
    step_uniform,
    target_change,
    weigh_softmax,
)
from sl_discs.engines.cpu.tree import NORM, TOTAL, draw, put
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import PathSampler

_F = np.float32
# The largest part of the total weight in sites already drawn, which are rejected if they are drawn
# again.
_MOST_DRAWN = 0.5
# A difference of sums that is smaller than this part of them is recomputed.
_CANCELLED = 2.0**-20


class PathSettings(NamedTuple):
    """Fields of `PathSampler`; adapt_until 0 means that adaptation never ends."""

    replacement: bool
    num_flips: int
    adaptive: bool
    target_acceptance: np.float32
    adapt_until: int


@inlined
def _path_length(settings, inputs, radius, steps, limit):
    """Returns round(radius) while it adapts, then one of two neighbouring numbers; or the fixed
    number of flips.
    """
    if not settings.adaptive:
        return min(settings.num_flips, limit)
    length = np.round(radius)
    if settings.adapt_until > 0 and steps >= settings.adapt_until:
        length = np.floor(radius - _F(0.5) + other_uniform(inputs))
    return min(max(int(length), 1), limit)


@inlined
def _draw_with_replacement(inputs, chain, tree, length):
    """Draws into `sequence` and, each once, `flipped`; returns the probability and the number of
    distinct sites.
    """
    probability = Probability(1.0, 1.0, 0.0)
    unit = 1.0 / tree.sums[TOTAL]
    distinct = 0
    for k in range(length):
        site = draw(tree, draw_uniform(inputs, k))
        probability = times(probability, tree.weights[site] * unit, 1.0)
        chain.sequence[k] = site
        seen = False
        for other in range(distinct):
            seen = seen or chain.flipped[other] == site
        if not seen:
            chain.flipped[distinct] = site
            distinct += 1
    return probability, distinct


@inlined
def _draw_without_replacement(inputs, chain, tree, length):
    """Draws likewise, and again where a site is repeated, which costs less than changing weights
    after every draw.

    Once the drawn sites have half of the total weight, their weights are set to 0 until the path is
    complete.
    """
    probability = Probability(1.0, 1.0, 0.0)
    unit = 1.0 / tree.sums[TOTAL]
    drawn, without, numbers = 0.0, 0, 0
    chain.proposals[0] += 1
    stamp = chain.proposals[0]
    for k in range(length):
        if drawn > _MOST_DRAWN * tree.sums[TOTAL]:
            for earlier in range(without, k):
                put(tree, chain.sequence[earlier], _F(0))
            drawn = 0.0
            without = k
        site = draw(tree, draw_uniform(inputs, numbers))
        numbers += 1
        while chain.stamps[site] == stamp:
            site = draw(tree, draw_uniform(inputs, numbers))
            numbers += 1
        chain.stamps[site] = stamp
        weight = tree.weights[site]
        probability = times(probability, weight * unit, (tree.sums[TOTAL] - drawn) * unit)
        drawn += weight
        chain.sequence[k] = chain.flipped[k] = site
        chain.picked[k] = weight
    for k in range(without):
        put(tree, chain.sequence[k], _F(chain.picked[k]))
    return probability, length


@inlined
def _untouched_mass(chain, tree, length):
    """Returns the total weight without the sites of the sequence."""
    mass = tree.sums[TOTAL]
    for k in range(length):
        mass -= chain.picked[k]
    if mass > _CANCELLED * tree.sums[TOTAL]:
        return mass
    for k in range(length):
        put(tree, chain.sequence[k], _F(0))
    mass = tree.sums[TOTAL]
    for k in range(length):
        put(tree, chain.sequence[k], _F(chain.picked[k]))
    return mass


@inlined
def _probability_back(settings, chain, tree, length):
    """Returns the probability of drawing the sequence in reverse order with these weights."""
    for k in range(length):
        chain.picked[k] = tree.weights[chain.sequence[k]]
    probability = Probability(1.0, 1.0, 0.0)
    unit = 1.0 / tree.sums[TOTAL]
    alone = settings.replacement or length == 1
    # Without replacement, the mass before the last pick is that of the untouched sites plus the
    # pick itself.
    mass = tree.sums[TOTAL] if alone else _untouched_mass(chain, tree, length)
    for k in range(length):
        if not alone:
            mass += chain.picked[k]
        probability = times(probability, chain.picked[k] * unit, mass * unit)
    return probability


@inlined
def path_step(settings, inputs, chain, target, tree, other, radius, steps):
    """Draws sites in turn, flips them, and keeps or restores the state.

    Args:
      settings: settings of the sampler.
      inputs: temperature, tilt and random words of the step.
      chain: the chain, modified in place like the trees.
      target: f and the mask.
      tree: the weights of the state.
      other: a tree for the weights of the proposal.
      radius: number of flips as a real number.
      steps: steps done.
    """
    available = target.open_sites.shape[0]
    limit = chain.spins.shape[0] if settings.replacement else available
    length = _path_length(settings, inputs, radius, steps, limit)
    if settings.replacement:
        forward, distinct = _draw_with_replacement(inputs, chain, tree, length)
    else:
        forward, distinct = _draw_without_replacement(inputs, chain, tree, length)
    changes, touched = flip_sites(chain, target, distinct)
    in_place = weigh_proposal(chain, target, inputs.slope, tree, other, touched)
    back = _probability_back(settings, chain, tree if in_place else other, length)

    acceptance = accepted_part(
        target_change(inputs.rate, inputs.tilt_scale, target, changes), forward, back
    )
    accepted = step_uniform(inputs) < acceptance
    if not accepted:
        take_back(chain, target, tree, in_place, touched, distinct)
    if settings.adaptive:
        radius = adapted(
            radius, acceptance, settings.target_acceptance, steps, settings.adapt_until
        )
        radius = min(max(radius, _F(1)), _F(available))
    return StepOutcome(
        acceptance, accepted, accepted and not in_place, distinct, changes, _F(radius), 1
    )


def _path_settings(sampler: PathSampler) -> PathSettings:
    target = np.float32(sampler.target_acceptance_rate)
    adapt_until = sampler.adapt_until or 0
    return PathSettings(
        sampler.replacement, sampler.num_flips, sampler.adaptive, target, adapt_until
    )


@inlined
def _fill_path(settings, radius, key0, key1, first_number, words):
    return fill_words(key0, key1, first_number, int(radius) + 2, words)


PATH = Entry(_path_settings, {PathSettings: StepKernel(path_step, weigh_softmax, _fill_path)})


# Steps of dmala.
#
# A Poisson process with rates a_i = n w_i / Z has n points on average. Keeping a point at i with
# probability log(1 + a_i)/a_i gives a process with rates log(1 + a_i), which has a point at site i
# with probability sigmoid(log a_i). These are the sites to flip. A step thus takes about n draws by
# weight. The sum of log(1 + a_i) over all sites is the logarithm of a product, which is at most
# exp(n); it is kept from step to step.

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
    weights = tree.weights
    scale = np.float64(expected_flips) / tree.sums[TOTAL]
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
    left = np.float64(expected_flips)
    none_yet = 1.0
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
        # log1p(rate)/rate is at least 1/(1 + rate): most points of small rate are kept without a
        # logarithm.
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
    """Flips each site independently, and keeps or restores the state; arguments as in
    `path_step`.
    """
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
            expected_flips / _F(3),
            acceptance,
            settings.target_acceptance,
            steps,
            settings.adapt_until,
        )
        expected_flips = min(max(_F(flips), _F(1)), _F(target.open_sites.shape[0]))
    return StepOutcome(
        acceptance, accepted, accepted and not in_place, count, changes, _F(expected_flips), 1
    )


def _langevin_settings(sampler: DMALA) -> LangevinSettings:
    target = np.float32(sampler.target_acceptance_rate)
    adapt_until = sampler.adapt_until or 0
    return LangevinSettings(sampler.adaptive, target, adapt_until, sampler.adjusted)


@inlined
def _fill_langevin(settings, expected_flips, key0, key1, first_number, words):
    return fill_words(key0, key1, first_number, 3 * int(expected_flips) + 4, words)


LANGEVIN = Entry(
    _langevin_settings,
    {LangevinSettings: StepKernel(langevin_step, weigh_softmax, _fill_langevin)},
    keeps_weights=lambda sampler: sampler.adjusted,
)
