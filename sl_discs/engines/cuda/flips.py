"""Steps of dmala, gibbs and metropolis for the lanes of a chain: flips that are not drawn by weight."""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cuda.chain import (
    BITS,
    ONE,
    TWO,
    ZERO,
    Lane,
    Shared,
    adapted,
    f32,
    i32,
    index,
    make_chain,
    make_random,
    u32,
)
from sl_discs.engines.cuda.warp import Warp


def make_single_step(warp: Warp, sites: int, whole: bool, localized: bool, gibbs: bool):
    """Returns the step of gibbs or metropolis with a random scan, compiled for a warp."""
    jit, wait, exp2 = warp.jit, warp.wait, warp.exp2
    chain, random = make_chain(warp, sites, whole, localized), make_random(warp)
    threefry, uniform = random.threefry, random.uniform
    bit, logit, add_rows, settle, words, word_of = (
        chain.bit, chain.logit, chain.add_rows, chain.settle, chain.words, chain.word_of,
    )  # fmt: skip

    @jit
    def step_single(numbers, lane: Lane, shared: Shared, rows, target, play, key0, key1, step, pace, steps, thread):
        first, second = threefry(key0, key1, step, u32(0))
        site = i32(target.open_sites[index((np.uint64(first) * np.uint64(target.available)) >> np.uint64(32))])
        owner = site // sites
        place = site - owner * sites
        for q in range(words):
            lane.flips[q] = u32(0)
        if thread == owner:
            lane.flips[word_of(place)] = u32(1) << u32(place & 31)
            for m in range(sites):
                if m == place:
                    shared.single[0] = TWO * logit(lane, shared, lane.coupled, target.scale, play, thread, m)
            shared.listed[0] = 2 * site + i32(bit(lane.spins, place))
        wait()
        change = f32(shared.single[0])
        acceptance = ONE / (ONE + exp2(min(-change, f32(115)))) if gibbs else exp2(min(change, ZERO))
        accepted = uniform(second) < acceptance
        linear, pairs = ZERO, ZERO
        if accepted:
            add_rows(lane, shared, rows, 1, numbers.most_packed, thread)
            linear, pairs = settle(lane, shared)
        return acceptance, accepted, 1, linear, pairs, pace

    return step_single


# dmala: the mathematics of `sl_discs.samplers.langevin`.
#
# Site i flips with probability sigmoid(l_i + a), where l = d/2, and a normalizes the weights exp(l) or is fixed.
# As the target changes by the sum of l(x) - l(y) over the F flipped sites, what remains of the log-ratio is
#
#     F (a(y) - a(x)) + sum_i (softplus(l_i(x) + a(x)) - softplus(l_i(y) + a(y))).

# The largest logit, in bits, whose exponential is used.
_LARGEST = f32(115)
# The counter of the step's own words, after those of its sites.
_OWN = u32(0xFFFFFFFF)


def make_langevin_step(warp: Warp, sites: int, whole: bool, localized: bool, normalized: bool, adjusted: bool):
    """Returns the step of dmala, compiled for a warp.

    Args:
      warp: the lanes of a chain.
      sites: of each lane.
      whole: whether couplings are whole numbers.
      localized: whether the target is tilted.
      normalized: whether a is log n minus the logarithm of the sum of exp(l), or the fixed one.
      adjusted: whether the proposal is tested.
    """
    jit, lanes = warp.jit, warp.lanes
    total, exp2, log2 = warp.total, warp.exp2, warp.log2
    chain, random, adapt = make_chain(warp, sites, whole, localized), make_random(warp), adapted(warp)
    threefry, uniform = random.threefry, random.uniform
    weigh, add_rows, list_flips, settle = chain.weigh, chain.add_rows, chain.list_flips, chain.settle
    words = chain.words

    @jit
    def weigh_flips(lane: Lane, shared: Shared, top, offset):
        """Replaces the logits l by exp(l + a); returns a and the lane's sum of softplus(l + a)."""
        if normalized:
            part = ZERO
            for m in range(sites):
                part += exp2(lane.logits[m] - top)
            offset -= top + log2(total(part, shared.partial))
        soft = ZERO
        for m in range(sites):
            odds = exp2(min(lane.logits[m] + offset, _LARGEST))
            lane.logits[m] = odds
            soft += log2(ONE + odds)
        return offset, soft

    @jit
    def step_langevin(numbers, lane: Lane, shared: Shared, rows, target, play, key0, key1, step, pace, steps, thread):
        number = thread % lanes
        top = weigh(lane, shared, lane.coupled, target.scale, play, thread)
        begin = log2(pace) if normalized else BITS * numbers.offset
        offset, soft = weigh_flips(lane, shared, top, begin)
        for q in range(words):
            lane.flips[q] = u32(0)
        for m in range(0, sites, 2):
            first, second = threefry(key0, key1, step, u32((thread * sites + m) >> 1))
            if uniform(first) * (ONE + lane.logits[m]) < lane.logits[m]:
                lane.flips[m >> 5] |= u32(1) << u32(m & 31)
            if uniform(second) * (ONE + lane.logits[m + 1]) < lane.logits[m + 1]:
                lane.flips[(m + 1) >> 5] |= u32(1) << u32((m + 1) & 31)
        taken = list_flips(lane, shared, thread, number)
        acceptance, accepted = ONE, True
        if adjusted or taken > 0:
            add_rows(lane, shared, rows, taken, numbers.most_packed, thread)
        if adjusted:
            for q in range(words):
                lane.spins[q] = u32(lane.spins[q] ^ lane.flips[q])
            top_there = weigh(lane, shared, lane.other, target.scale, play, thread)
            offset_there, soft_there = weigh_flips(lane, shared, top_there, begin)
            for q in range(words):
                lane.spins[q] = u32(lane.spins[q] ^ lane.flips[q])
            ratio = f32(taken) * (offset_there - offset) + total(soft - soft_there, shared.partial)
            acceptance = exp2(min(ratio, ZERO))
            own, _ = threefry(key0, key1, step, _OWN)
            accepted = uniform(own) < acceptance
        linear, pairs = ZERO, ZERO
        if accepted and taken > 0:
            linear, pairs = settle(lane, shared)
        if numbers.adaptive:
            pace = f32(3) * adapt(pace / f32(3), acceptance, numbers.target, steps, numbers.adapt_until)
            pace = min(max(pace, ONE), f32(target.available))
        return acceptance, accepted, taken, linear, pairs, pace

    return step_langevin
