"""A step of gibbs or metropolis with a random scan: the mathematics of `sl_discs.samplers.single_site`."""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cuda.chain import ONE, TWO, ZERO, Lane, Shared, f32, i32, index, make_chain, make_random, u32
from sl_discs.engines.cuda.warp import Warp


def make_step(warp: Warp, sites: int, whole: bool, localized: bool, gibbs: bool):
    """Returns the step of gibbs or metropolis, compiled for a warp."""
    jit, wait, exp2 = warp.jit, warp.wait, warp.exp2
    chain, random = make_chain(warp, sites, whole), make_random(warp)
    threefry, uniform = random.threefry, random.uniform
    bit, add_rows, settle, words, word_of = chain.bit, chain.add_rows, chain.settle, chain.words, chain.word_of

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
            up = bit(lane.spins, place)
            change = ZERO
            for m in range(sites):
                if m == place:
                    change = play.half_rate * (lane.linear[m] + target.scale * lane.coupled[m])
                    if localized:
                        change += play.pull * lane.y[m]
            shared.single[0] = -TWO * change if up != 0 else TWO * change
            shared.listed[0] = 2 * site + i32(up)
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
