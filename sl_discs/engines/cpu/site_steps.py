"""Steps of gibbs, metropolis and exchange on one chain: the mathematics of the reference's
samplers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.arithmetic import DRAW, STEP, exp_nonpositive, log, threefry, uniform
from sl_discs.engines.cpu.chain_state import Changes, flip
from sl_discs.engines.cpu.jit import FUSED, REORDERED, called, in_long_vectors, inlined
from sl_discs.engines.cpu.step import (
    BLOCK,
    Entry,
    StepKernel,
    StepOutcome,
    fill_own,
    fill_words,
    step_uniform,
    target_change,
    weigh_nothing,
)
from sl_discs.engines.cpu.tree import LANES
from sl_discs.samplers import single_site
from sl_discs.samplers.single_site import RANDOM, Gibbs, SingleSiteSampler

_F = np.float32
# Unsigned, as in tree.py.
_P = np.uint64
_HALF_BLOCK = BLOCK // 2
TIE = _F(single_site.TIE)


class RandomScan(NamedTuple):
    """The acceptance rule: sigmoid(change) for Gibbs, or min(1, exp(change)) for Metropolis."""

    gibbs: bool


class SequentialScan(NamedTuple):
    """The acceptance rule, as in `RandomScan`."""

    gibbs: bool


@inlined
def flip_changes(chain, target, site):
    """Returns the changes that a flip of one site would make."""
    spin = np.float64(chain.spins[site])
    return Changes(
        -spin * target.linear[site], -spin * chain.coupled[site], -2.0 * spin * chain.y[site]
    )


@inlined
def random_step(settings, inputs, chain, target, tree, other, pace, steps):
    """Draws a site and flips it with the rule's probability; arguments as in `path_step`, weights
    are unused.
    """
    sites = target.open_sites
    # The word has 32 bits: a site's probability is off by less than A 2^-32 of itself.
    word = np.uint64(inputs.words.second[0, inputs.row])
    site = sites[(word * np.uint64(sites.shape[0])) >> np.uint64(32)]
    changes = flip_changes(chain, target, site)
    change = target_change(inputs.rate, inputs.tilt_scale, target, changes)
    small = exp_nonpositive(_F(-abs(change)))
    if settings.gibbs:
        acceptance = (_F(1) if change > 0 else small) / (_F(1) + small)
    else:
        acceptance = _F(1) if change > 0 else small
    accepted = step_uniform(inputs) < acceptance
    if accepted:
        chain.flipped[0] = site
        flip(target, chain.spins, chain.coupled, site)
    return StepOutcome(np.float64(acceptance), accepted, False, 1, changes, pace, 1)


@inlined(fastmath=FUSED)
def _threshold(settings, word):
    """Returns the least accepted change: log u for Metropolis, log(u/(1 - u)) for Gibbs, with a
    uniform u.
    """
    log_u = log((_F(word) + _F(0.5)) * _F(2.0**-32))
    return log_u - log((_F(~word) + _F(0.5)) * _F(2.0**-32)) if settings.gibbs else log_u


@called
def fill_thresholds(settings, pace, key0, key1, first_number, words):
    """Thresholds of BLOCK steps, each from a word of its own; arguments as in `fill_own`."""
    in_long_vectors()
    for row in range(_HALF_BLOCK):
        first, second = threefry(key0, key1, np.uint32(first_number // 2 + row), STEP)
        words.thresholds[row] = _threshold(settings, first)
        words.thresholds[_HALF_BLOCK + row] = _threshold(settings, second)
    return 0


@inlined
def _accepts(settings, inputs, chain, target, site, k):
    """Returns whether a site flips if it is tried k steps from now; computed in float32, like the
    reference.
    """
    field = target.linear[site] + target.scale * _F(chain.coupled[site])
    change = -chain.spins[site] * (
        field * inputs.rates[k] + _F(2) * inputs.tilt_scale * chain.y[site]
    )
    if not settings.gibbs:
        change = change if change != _F(0) else TIE
    return change >= inputs.words.thresholds[_P(inputs.row) + k]


@inlined
def _rejections(settings, inputs, chain, target, sites, most):
    """Returns how many of the next sites are rejected before one flips; `most` if none of them
    flips.
    """
    k = _P(0)
    known = _P(BLOCK - inputs.row)
    while k < min(most, known):
        site = sites[k]
        if k + _P(LANES) <= most and sites[k + _P(LANES - 1)] == site + np.uint32(LANES - 1):
            # All decisions at once, as if no site flipped, which is valid up to the first site that
            # does.
            first = np.int32(LANES)
            for lane in range(np.int32(LANES)):
                accepted = _accepts(
                    settings, inputs, chain, target, _P(site) + _P(lane), k + _P(lane)
                )
                first = np.int32(min(first, lane if accepted else np.int32(LANES)))
            k += _P(first)
            if first < LANES:
                return k
        elif _accepts(settings, inputs, chain, target, site, k):
            return k
        else:
            k += _P(1)
    return min(k, known)


@inlined
def sequential_steps(settings, inputs, chain, target, tree, other, pace, steps):
    """Tries one site after the other until one flips; arguments as in `weighted.path_step`, weights
    are unused.

    A rejected step costs only a comparison, since thresholds are computed in advance.
    """
    place = _P(steps) % _P(max(target.open_sites.shape[0], 1))
    sites = target.open_sites[place:]
    most = _P(min(inputs.most, sites.shape[0]))
    rejected = _rejections(settings, inputs, chain, target, sites, most)
    if rejected == min(most, _P(BLOCK - inputs.row)):
        # If no site may flip, the step still counts.
        return StepOutcome(
            0.0, False, False, 1, Changes(0.0, 0.0, 0.0), pace, np.int64(max(rejected, _P(1)))
        )
    site = sites[rejected]
    changes = flip_changes(chain, target, site)
    chain.flipped[0] = site
    flip(target, chain.spins, chain.coupled, site)
    return StepOutcome(1.0, True, False, 1, changes, pace, np.int64(rejected) + 1)


def _settings(sampler: SingleSiteSampler) -> RandomScan | SequentialScan:
    scan = RandomScan if sampler.scan == RANDOM else SequentialScan
    return scan(type(sampler) is Gibbs)


ENTRY = Entry(
    _settings,
    {
        RandomScan: StepKernel(random_step, weigh_nothing, fill_own),
        SequentialScan: StepKernel(sequential_steps, weigh_nothing, fill_thresholds),
    },
    keeps_weights=lambda sampler: False,
    steps_per_call=500_000,
)


# Steps of exchange on one chain: the mathematics of `sl_discs.samplers.single_site.Exchange`.

# Unsigned, as in tree.py.
_NEXT = np.uint64(1)


class ExchangeSettings(NamedTuple):
    """Fields of `Exchange`."""

    single: np.float32


@inlined(fastmath=REORDERED)
def _census(chain, target, site, first, last):
    """Returns the number of open sites coupled to a site, and the number of those with the other
    value.

    Args:
      chain: the chain.
      target: f.
      site: the site.
      first: first index into its row of the matrix, or into the lists of neighbours.
      last: the index after the last one.
    """
    # Counts below 2^24, which float32 adds exactly.
    number = _F(0)
    agreeing = _F(0)
    if target.dense:
        row = target.rows[site]
        for i in range(first, last):
            coupled = target.mask[i] if row[i] != 0 else _F(0)
            number += coupled
            agreeing += coupled * chain.spins[i]
    else:
        for k in range(first, last):
            neighbour = target.neighbours[k]
            number += target.mask[neighbour]
            agreeing += target.mask[neighbour] * chain.spins[neighbour]
    return number, _F(0.5) * (number - chain.spins[site] * agreeing)


@inlined
def _range(chain, target, site):
    """Returns the range of a site's neighbours, as `first` and `last` of `_census`."""
    if target.dense:
        return _P(0), _P(chain.spins.shape[0])
    return target.starts[site], target.starts[site + _NEXT]


@inlined
def _partner(chain, target, site, number):
    """Returns the partner with the given number, counted from 0, and its coupling."""
    first, end = _range(chain, target, site)
    if target.dense:
        # Whole blocks are counted at once.
        while True:
            here = _census(chain, target, site, first, min(first + _P(BLOCK), end))[1]
            if number < here:
                break
            number -= here
            first += _P(BLOCK)
    spin = chain.spins[site]
    other = site
    weight = _F(0)
    for k in range(first, end):
        if target.dense:
            other = np.uint32(k)
            weight = _F(target.rows[site, k])
        else:
            other = target.neighbours[k]
            weight = _F(target.weights[k])
        if weight != 0 and target.mask[other] > 0 and chain.spins[other] != spin:
            if number < _F(1):
                break
            number -= _F(1)
    return other, weight


@inlined
def exchange_step(settings, inputs, chain, target, tree, other, pace, steps):
    """Flips a site or a pair if that is accepted; arguments as in `weighted.path_step`, weights are
    unused.

    For a pair it reports whether it was accepted, whose mean is the acceptance probability.
    """
    sites = target.open_sites
    words = inputs.words
    # The words have 32 bits: a site's probability is off by less than A 2^-32 of itself.
    site = sites[(_P(words.second[0, inputs.row]) * _P(sites.shape[0])) >> _P(32)]
    changes = flip_changes(chain, target, site)
    drawn = step_uniform(inputs)
    chain.flipped[0] = site
    if uniform(words.first[1, inputs.row]) < settings.single:
        change = target_change(inputs.rate, inputs.tilt_scale, target, changes)
        acceptance = exp_nonpositive(_F(min(change, 0.0)))
        accepted = drawn < acceptance
        if accepted:
            flip(target, chain.spins, chain.coupled, site)
        return StepOutcome(np.float64(acceptance), accepted, False, 1, changes, pace, 1)
    first, last = _range(chain, target, site)
    number, partners = _census(chain, target, site, first, last)
    if partners < _F(1):
        return StepOutcome(0.0, False, False, 2, changes, pace, 1)
    place = (_P(words.second[1, inputs.row]) * _P(partners)) >> _P(32)
    second, weight = _partner(chain, target, site, _F(place))
    also = flip_changes(chain, target, second)
    changes = Changes(
        changes.linear + also.linear,
        changes.pairs + also.pairs - np.float64(weight),
        changes.observed + also.observed,
    )
    change = target_change(inputs.rate, inputs.tilt_scale, target, changes)
    small = exp_nonpositive(_F(-abs(change)))
    gain = _F(1) / small if change > 0 else small
    # At best each site is the other's only partner afterwards. This bound rejects most proposals
    # without counting.
    if drawn >= gain * _F(2) * partners:
        return StepOutcome(0.0, False, False, 2, changes, pace, 1)
    first, last = _range(chain, target, second)
    number_of_second, partners_of_second = _census(chain, target, second, first, last)
    # The two remain partners of each other; all their other neighbours change between partner and
    # non-partner.
    back = _F(1) / (number - partners + _F(1)) + _F(1) / (
        number_of_second - partners_of_second + _F(1)
    )
    forward = _F(1) / partners + _F(1) / partners_of_second
    accepted = drawn * forward < gain * back
    if accepted:
        chain.flipped[1] = second
        flip(target, chain.spins, chain.coupled, site)
        flip(target, chain.spins, chain.coupled, second)
    return StepOutcome(1.0 if accepted else 0.0, accepted, False, 2, changes, pace, 1)


@inlined
def _fill(settings, pace, key0, key1, first_number, words):
    return fill_words(key0, key1, first_number, 1, words)


EXCHANGE = Entry(
    lambda sampler: ExchangeSettings(np.float32(sampler.single)),
    {ExchangeSettings: StepKernel(exchange_step, weigh_nothing, _fill)},
    keeps_weights=lambda sampler: False,
    steps_per_call=500_000,
)


# Exchanges of states between neighbouring places of a ladder: the mathematics of
# `sl_discs.engines.program`.


@inlined
def _acceptance(rate, next_rate, value, next_value):
    return np.exp(min((np.float64(rate) - np.float64(next_rate)) * (next_value - value), 0.0))


@inlined
def _swap(one, other):
    for i in range(one.shape[0]):
        one[i], other[i] = other[i], one[i]


@inlined
def _keep_better(chains, c, value):
    if value > chains.best[c]:
        chains.best[c] = value
        for i in range(chains.x.shape[1]):
            chains.best_x[c, i] = chains.x[c, i]


@called
def swap_neighbours(scale, chains, ladder, number, rates, first_step, interval, records):
    """Tries the pairs of one parity at the end of an interval.

    Args:
      scale: of K.
      chains: modified in place.
      ladder: R.
      number: of the ladder.
      rates: [R, T] or [1, T] 1/temperature at T steps; chain c has row c modulo R.
      first_step: number of the first of these steps.
      interval: number of the interval, within the call, that ends.
      records: `swaps` is written.
    """
    steps_an_interval = rates.shape[1] // records.value.shape[0]
    last = (interval + 1) * steps_an_interval - 1
    step = first_step + last
    first = number * ladder
    scale = np.float64(scale)
    for c in range(first + step // steps_an_interval % 2, first + ladder - 1, 2):
        value = chains.linear[c] + scale * chains.pairs[c]
        next_value = chains.linear[c + 1] + scale * chains.pairs[c + 1]
        rate = rates[c % rates.shape[0], last]
        next_rate = rates[(c + 1) % rates.shape[0], last]
        # Observation keys are folded and never drawn from but here.
        word, _ = threefry(
            chains.observation_keys[c, 0], chains.observation_keys[c, 1], np.uint32(step), DRAW
        )
        if uniform(word) < _acceptance(rate, next_rate, value, next_value):
            records.swaps[interval, c] = True
            _swap(chains.x[c], chains.x[c + 1])
            _swap(chains.coupled[c], chains.coupled[c + 1])
            chains.linear[c], chains.linear[c + 1] = chains.linear[c + 1], chains.linear[c]
            chains.pairs[c], chains.pairs[c + 1] = chains.pairs[c + 1], chains.pairs[c]
            _keep_better(chains, c, next_value)
            _keep_better(chains, c + 1, value)
