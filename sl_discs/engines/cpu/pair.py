"""Steps of exchange on one chain: the mathematics of `sl_discs.samplers.exchange`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.arithmetic import exp_nonpositive, uniform
from sl_discs.engines.cpu.coupling import flip
from sl_discs.engines.cpu.entry import Entry, Kernel, weigh_nothing
from sl_discs.engines.cpu.jit import REORDERED, inlined
from sl_discs.engines.cpu.single_site import flip_changes
from sl_discs.engines.cpu.step import BLOCK, Outcome, fill_words, step_uniform, target_change
from sl_discs.engines.cpu.walk import Changes

_F = np.float32
# Unsigned, as in tree.py.
_P = np.uint64
_NEXT = np.uint64(1)


class ExchangeSettings(NamedTuple):
    """Fields of `Exchange`."""

    single: np.float32


@inlined(fastmath=REORDERED)
def _census(walk, target, site, first, last):
    """The number of open sites coupled to a site, and the number of those with the other value.

    Args:
      walk: the chain.
      target: f.
      site: the site.
      first: first index into its row of the matrix, or into the lists of neighbours.
      last: the index after the last one.
    """
    # Counts below 2^24, which float32 adds exactly.
    number, agreeing = _F(0), _F(0)
    if target.dense:
        row = target.rows[site]
        for i in range(first, last):
            coupled = target.mask[i] if row[i] != 0 else _F(0)
            number += coupled
            agreeing += coupled * walk.spins[i]
    else:
        for k in range(first, last):
            neighbour = target.neighbours[k]
            number += target.mask[neighbour]
            agreeing += target.mask[neighbour] * walk.spins[neighbour]
    return number, _F(0.5) * (number - walk.spins[site] * agreeing)


@inlined
def _range(walk, target, site):
    """The range of a site's neighbours, as `first` and `last` of `_census`."""
    if target.dense:
        return _P(0), _P(walk.spins.shape[0])
    return target.starts[site], target.starts[site + _NEXT]


@inlined
def _partner(walk, target, site, number):
    """The partner with the given number, counted from 0, and its coupling."""
    first, end = _range(walk, target, site)
    if target.dense:
        # Whole blocks are counted at once.
        while True:
            here = _census(walk, target, site, first, min(first + _P(BLOCK), end))[1]
            if number < here:
                break
            number -= here
            first += _P(BLOCK)
    spin, other, weight = walk.spins[site], site, _F(0)
    for k in range(first, end):
        if target.dense:
            other, weight = np.uint32(k), _F(target.rows[site, k])
        else:
            other, weight = target.neighbours[k], _F(target.weights[k])
        if weight != 0 and target.mask[other] > 0 and walk.spins[other] != spin:
            if number < _F(1):
                break
            number -= _F(1)
    return other, weight


@inlined
def exchange_step(settings, moment, walk, target, tree, other, pace, steps):
    """Flips a site or a pair if that is accepted; arguments as in `path.path_step`, weights are unused.

    For a pair it reports whether it was accepted, whose mean is the acceptance probability.
    """
    sites, words = target.open_sites, moment.words
    # The words have 32 bits: a site's probability is off by less than A 2^-32 of itself.
    site = sites[(_P(words.second[0, moment.row]) * _P(sites.shape[0])) >> _P(32)]
    changes, drawn = flip_changes(walk, target, site), step_uniform(moment)
    walk.flipped[0] = site
    if uniform(words.first[1, moment.row]) < settings.single:
        change = target_change(moment.rate, moment.tilt_scale, target, changes)
        acceptance = exp_nonpositive(_F(min(change, 0.0)))
        accepted = drawn < acceptance
        if accepted:
            flip(target, walk.spins, walk.coupled, site)
        return Outcome(np.float64(acceptance), accepted, False, 1, changes, pace, 1)
    first, last = _range(walk, target, site)
    number, partners = _census(walk, target, site, first, last)
    if partners < _F(1):
        return Outcome(0.0, False, False, 2, changes, pace, 1)
    place = (_P(words.second[1, moment.row]) * _P(partners)) >> _P(32)
    second, weight = _partner(walk, target, site, _F(place))
    also = flip_changes(walk, target, second)
    changes = Changes(
        changes.linear + also.linear,
        changes.pairs + also.pairs - np.float64(weight),
        changes.observed + also.observed,
    )
    change = target_change(moment.rate, moment.tilt_scale, target, changes)
    small = exp_nonpositive(_F(-abs(change)))
    gain = _F(1) / small if change > 0 else small
    # At best each site is the other's only partner afterwards. This bound rejects most proposals without counting.
    if drawn >= gain * _F(2) * partners:
        return Outcome(0.0, False, False, 2, changes, pace, 1)
    first, last = _range(walk, target, second)
    number_of_second, partners_of_second = _census(walk, target, second, first, last)
    # The two remain partners of each other; all their other neighbours change between partner and non-partner.
    back = _F(1) / (number - partners + _F(1)) + _F(1) / (number_of_second - partners_of_second + _F(1))
    forward = _F(1) / partners + _F(1) / partners_of_second
    accepted = drawn * forward < gain * back
    if accepted:
        walk.flipped[1] = second
        flip(target, walk.spins, walk.coupled, site)
        flip(target, walk.spins, walk.coupled, second)
    return Outcome(1.0 if accepted else 0.0, accepted, False, 2, changes, pace, 1)


@inlined
def _fill(settings, pace, key0, key1, first_number, words):
    return fill_words(key0, key1, first_number, 1, words)


ENTRY = Entry(
    lambda sampler: ExchangeSettings(np.float32(sampler.single)),
    {ExchangeSettings: Kernel(exchange_step, weigh_nothing, _fill)},
    keeps_weights=lambda sampler: False,
    steps_per_call=500_000,
)
