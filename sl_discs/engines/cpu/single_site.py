"""Steps of gibbs or metropolis on one chain: the mathematics of `sl_discs.samplers.single_site`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.arithmetic import STEP, exp_nonpositive, log, threefry
from sl_discs.engines.cpu.coupling import flip
from sl_discs.engines.cpu.entry import Entry, Kernel, fill_own, weigh_nothing
from sl_discs.engines.cpu.jit import FUSED, called, in_long_vectors, inlined
from sl_discs.engines.cpu.step import BLOCK, Outcome, step_uniform, target_change
from sl_discs.engines.cpu.tree import LANES
from sl_discs.engines.cpu.walk import Changes
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
def flip_changes(walk, target, site):
    """The changes that a flip of one site would make."""
    spin = np.float64(walk.spins[site])
    return Changes(-spin * target.linear[site], -spin * walk.coupled[site], -2.0 * spin * walk.y[site])


@inlined
def random_step(settings, moment, walk, target, tree, other, pace, steps):
    """Draws a site and flips it with the rule's probability; arguments as in `path.path_step`, weights are unused."""
    sites = target.open_sites
    # The word has 32 bits: a site's probability is off by less than A 2^-32 of itself.
    word = np.uint64(moment.words.second[0, moment.row])
    site = sites[(word * np.uint64(sites.shape[0])) >> np.uint64(32)]
    changes = flip_changes(walk, target, site)
    change = target_change(moment.rate, moment.tilt_scale, target, changes)
    small = exp_nonpositive(_F(-abs(change)))
    if settings.gibbs:
        acceptance = (_F(1) if change > 0 else small) / (_F(1) + small)
    else:
        acceptance = _F(1) if change > 0 else small
    accepted = step_uniform(moment) < acceptance
    if accepted:
        walk.flipped[0] = site
        flip(target, walk.spins, walk.coupled, site)
    return Outcome(np.float64(acceptance), accepted, False, 1, changes, pace, 1)


@inlined(fastmath=FUSED)
def _threshold(settings, word):
    """The least accepted change: log u for Metropolis and log(u/(1 - u)) for Gibbs, with a uniform number u."""
    log_u = log((_F(word) + _F(0.5)) * _F(2.0**-32))
    return log_u - log((_F(~word) + _F(0.5)) * _F(2.0**-32)) if settings.gibbs else log_u


@called
def fill_thresholds(settings, pace, key0, key1, first_number, words):
    """Thresholds of BLOCK steps, each from a word of its own; arguments as in `fill_own`."""
    in_long_vectors()
    for row in range(_HALF_BLOCK):
        one, other = threefry(key0, key1, np.uint32(first_number // 2 + row), STEP)
        words.thresholds[row] = _threshold(settings, one)
        words.thresholds[_HALF_BLOCK + row] = _threshold(settings, other)
    return 0


@inlined
def _accepts(settings, moment, walk, target, site, k):
    """Whether a site flips if it is tried k steps from now; computed in float32, like the reference."""
    field = target.linear[site] + target.scale * _F(walk.coupled[site])
    change = -walk.spins[site] * (field * moment.rates[k] + _F(2) * moment.tilt_scale * walk.y[site])
    if not settings.gibbs:
        change = change if change != _F(0) else TIE
    return change >= moment.words.thresholds[_P(moment.row) + k]


@inlined
def _rejections(settings, moment, walk, target, sites, most):
    """How many of the next sites are rejected before one flips; `most` if none of them flips."""
    k, known = _P(0), _P(BLOCK - moment.row)
    while k < min(most, known):
        site = sites[k]
        if k + _P(LANES) <= most and sites[k + _P(LANES - 1)] == site + np.uint32(LANES - 1):
            # All decisions at once, as if no site flipped, which is valid up to the first site that does.
            first = np.int32(LANES)
            for lane in range(np.int32(LANES)):
                accepted = _accepts(settings, moment, walk, target, _P(site) + _P(lane), k + _P(lane))
                first = np.int32(min(first, lane if accepted else np.int32(LANES)))
            k += _P(first)
            if first < LANES:
                return k
        elif _accepts(settings, moment, walk, target, site, k):
            return k
        else:
            k += _P(1)
    return min(k, known)


@inlined
def sequential_steps(settings, moment, walk, target, tree, other, pace, steps):
    """Tries one site after the other until one flips; arguments as in `path.path_step`, weights are unused.

    A rejected step costs only a comparison, since thresholds are computed in advance.
    """
    place = _P(steps) % _P(max(target.open_sites.shape[0], 1))
    sites = target.open_sites[place:]
    most = _P(min(moment.most, sites.shape[0]))
    rejected = _rejections(settings, moment, walk, target, sites, most)
    if rejected == min(most, _P(BLOCK - moment.row)):
        # If no site may flip, the step still counts.
        return Outcome(0.0, False, False, 1, Changes(0.0, 0.0, 0.0), pace, np.int64(max(rejected, _P(1))))
    site = sites[rejected]
    changes = flip_changes(walk, target, site)
    walk.flipped[0] = site
    flip(target, walk.spins, walk.coupled, site)
    return Outcome(1.0, True, False, 1, changes, pace, np.int64(rejected) + 1)


def _settings(sampler: SingleSiteSampler) -> RandomScan | SequentialScan:
    scan = RandomScan if sampler.scan == RANDOM else SequentialScan
    return scan(type(sampler) is Gibbs)


ENTRY = Entry(
    _settings,
    {
        RandomScan: Kernel(random_step, weigh_nothing, fill_own),
        SequentialScan: Kernel(sequential_steps, weigh_nothing, fill_thresholds),
    },
    keeps_weights=lambda sampler: False,
    steps_per_call=500_000,
)
