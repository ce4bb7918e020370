"""Steps of dmala, gibbs and metropolis for the lanes of a chain: flips that are not drawn by
weight.
"""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cuda.registers import (
    BITS,
    HALF,
    ONE,
    TWO,
    ZERO,
    KernelKind,
    Lane,
    Shared,
    WarpInputs,
    adapted,
    f32,
    i32,
    index,
    make_chain,
    make_random,
    u32,
)
from sl_discs.engines.cuda.running_sums import make_running_sums
from sl_discs.engines.cuda.warp import Warp


def make_single_step(warp: Warp, kind: KernelKind):
    """Returns the step of gibbs or metropolis with a random scan; the only option is whether it is
    gibbs.
    """
    jit = warp.jit
    wait = warp.wait
    exp2 = warp.exp2
    sites = kind.sites
    (gibbs,) = kind.options
    chain = make_chain(warp, kind)
    random = make_random(warp)
    threefry = random.threefry
    uniform = random.uniform
    bit = chain.bit
    logit = chain.logit
    add_rows = chain.add_rows
    settle = chain.settle
    words = chain.words
    word_of = chain.word_of

    @jit
    def step_single(numbers, lane: Lane, shared: Shared, target, inputs: WarpInputs, pace, thread):
        first, second = threefry(inputs.key0, inputs.key1, inputs.number, u32(0))
        site = i32(
            target.open_sites[
                index((np.uint64(first) * np.uint64(target.num_open)) >> np.uint64(32))
            ]
        )
        owner = site // sites
        place = site - owner * sites
        for q in range(words):
            lane.flips[q] = u32(0)
        if thread == owner:
            lane.flips[word_of(place)] = u32(1) << u32(place & 31)
            for m in range(sites):
                if m == place:
                    shared.partial[0] = TWO * logit(
                        lane, shared, lane.coupled, target, inputs, thread, m
                    )
            shared.listed[0] = 2 * site + i32(bit(lane.spins, place))
        wait()
        gain = f32(shared.partial[0])
        acceptance = ONE / (ONE + exp2(min(-gain, f32(115)))) if gibbs else exp2(min(gain, ZERO))
        accepted = uniform(second) < acceptance
        linear = ZERO
        pairs = ZERO
        if accepted:
            add_rows(lane, shared, target, 1, thread)
            linear, pairs = settle(lane, shared)
        return acceptance, accepted, 1, linear, pairs, pace

    return step_single


# dmala: the mathematics of `sl_discs.samplers.langevin`.
#
# Site i flips with probability sigmoid(l_i + a), where l = d/2, and a normalizes the weights exp(l)
# or is fixed: that of at least one event of a Poisson process in a time of softplus(l_i + a). The
# times of all sites follow each other, so that only events cost random numbers. As the target
# changes by the sum of l(x) - l(y) over the F flipped sites, what remains of the log-ratio is
#
#     F (a(y) - a(x)) + sum_i (softplus(l_i(x) + a(x)) - softplus(l_i(y) + a(y))).

# The largest logit, in bits, whose exponential is used.
_LARGEST = f32(115)
# Bits of softplus with which a site flips for certain in float32; more would only be events to
# search for.
_CERTAIN = f32(24)
# Odds below which their logarithm is a polynomial.
_SMALL = f32(2.0**-8)


def make_langevin_step(warp: Warp, kind: KernelKind):
    """Returns the step of dmala; the options are whether a is normalized, and whether the proposal
    is tested.
    """
    jit = warp.jit
    lanes = warp.lanes
    wait = warp.wait
    total = warp.total
    exp2 = warp.exp2
    log2 = warp.log2
    sites = kind.sites
    normalized, adjusted = kind.options
    chain = make_chain(warp, kind)
    sums = make_running_sums(warp, kind)
    uniform = make_random(warp).uniform
    adapt = adapted(warp)
    threads = chain.threads
    words = chain.words
    publish = chain.publish
    flip = chain.flip
    weigh = chain.weigh
    add_rows = chain.add_rows
    settle = chain.settle
    sum_lanes = sums.sum_lanes
    first_words = sums.first_words
    list_events = sums.list_events

    @jit
    def as_odds(lane: Lane, shared: Shared, top, numbers, pace):
        """Replaces the logits l by exp(l + a); returns a."""
        if not normalized:
            offset = BITS * numbers.offset
            for m in range(sites):
                lane.logits[m] = exp2(min(lane.logits[m] + offset, _LARGEST))
            return offset
        part = ZERO
        for m in range(sites):
            lane.logits[m] = exp2(lane.logits[m] - top)
            part += lane.logits[m]
        factor = pace / total(part, shared.partial)
        for m in range(sites):
            lane.logits[m] *= factor
        return log2(factor) - top

    @jit
    def softplus(odds):
        """Returns log2(1 + odds), also of odds that are small beside 1, without a branch."""
        bits = BITS * odds
        small = bits - HALF * odds * bits
        large = log2(ONE + odds)
        return small if odds < _SMALL else large

    @jit
    def step_langevin(
        numbers, lane: Lane, shared: Shared, target, inputs: WarpInputs, pace, thread
    ):
        publish(lane.spins, shared.spins, thread)
        for q in range(words):
            lane.flips[q] = u32(0)
        top = weigh(lane, shared, lane.coupled, target, inputs, thread)
        offset = as_odds(lane, shared, top, numbers, pace)
        soft = ZERO
        part = ZERO
        for m in range(sites):
            bits = softplus(lane.logits[m])
            soft += bits
            part += min(bits, _CERTAIN)
            shared.sums[index(m * threads + thread)] = part
        mass = sum_lanes(shared, part, thread)
        word, other, own, _ = first_words(inputs, thread % lanes)
        wait()
        taken = list_events(lane, shared, inputs, mass, word, other, thread)
        acceptance = ONE
        accepted = True
        linear = ZERO
        pairs = ZERO
        if taken > 0:
            add_rows(lane, shared, target, taken, thread)
            if adjusted:
                flip(lane)
                top_there = weigh(lane, shared, lane.other, target, inputs, thread)
                offset_there = as_odds(lane, shared, top_there, numbers, pace)
                for m in range(sites):
                    soft -= softplus(lane.logits[m])
                flip(lane)
                ratio = f32(taken) * (offset_there - offset) + total(soft, shared.partial)
                acceptance = exp2(min(ratio, ZERO))
                accepted = uniform(own) < acceptance
            if accepted:
                linear, pairs = settle(lane, shared)
        if numbers.adaptive:
            pace = f32(3) * adapt(pace / f32(3), acceptance, numbers, inputs)
            pace = min(max(pace, ONE), f32(target.num_open))
        return acceptance, accepted, taken, linear, pairs, pace

    return step_langevin
