"""A step of gwg or path_auxiliary: the mathematics of `sl_discs.samplers.path`, for the lanes of a
chain.

With logits l = d/2 at x and y, weights w = exp(l - max l) and their sum Z, everything but the
masses cancels in the Metropolis-Hastings ratio, since the target changes by the sum of l(x) - l(y)
over the flipped sites. What remains is

    gwg              R draws: (Z(x)/Z(y))^R, divided by exp(l(x) - l(y)) of each repeated draw
    path_auxiliary   the product over the draws of the mass at x before the draw, divided by that at y

Each lane searches for one draw. A site that is drawn again is a repeat in gwg, and is passed over
in path_auxiliary, which leaves draws without replacement; after every 31 draws, the weights of
drawn sites are set to 0.
"""  # noqa: E501

from __future__ import annotations

import math

import numpy as np

from sl_discs.engines.cuda.registers import (
    HALF,
    NEVER,
    ONE,
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
from sl_discs.engines.cuda.running_sums import JUST_BELOW, OWN, make_running_sums
from sl_discs.engines.cuda.warp import WIDTH, Warp

# A mass that is smaller than this part of the total is summed anew: as a difference from the total
# it would have lost 12 of the 24 bits of float32.
_CANCELLED = f32(2.0**-12)
# Weights are at least exp(-80) where they are all that is left, as in `samplers.draws`.
_LEAST = f32(math.exp(-80))


def make_step(warp: Warp, kind: KernelKind):
    """Returns the step of gwg or path_auxiliary; the only option is whether draws are with
    replacement, as gwg's.
    """
    jit = warp.jit
    lanes = warp.lanes
    sites = kind.sites
    (replacement,) = kind.options
    wait = warp.wait
    total = warp.total
    scan_warp = warp.scan_warp
    rank = warp.rank
    exp2 = warp.exp2
    log2 = warp.log2
    chain = make_chain(warp, kind)
    random = make_random(warp)
    sums = make_running_sums(warp, kind)
    adapt = adapted(warp)
    threads = chain.threads
    words = chain.words
    bit = chain.bit
    publish = chain.publish
    flip = chain.flip
    logit = chain.logit
    weigh = chain.weigh
    add_rows = chain.add_rows
    settle = chain.settle
    sum_lanes = sums.sum_lanes
    first_words = sums.first_words
    search = sums.search
    look_up = sums.look_up
    list_new = sums.list_new
    threefry = random.threefry
    uniform = random.uniform
    capacity = sites * threads
    # Not literals, for each of which numba compiles a function anew.
    forwards = np.bool_(False)
    backwards = np.bool_(True)

    @jit
    def sum_weights(lane: Lane, shared: Shared, top, thread):
        """Writes the weights and their running sums; returns their total."""
        # Site m of a lane is at m threads + thread, so that the lanes of a warp write 32 numbers
        # side by side, to 32 banks of shared memory at once. Relative to the largest logit no
        # weight overflows, and the largest is 1.
        part = ZERO
        for m in range(sites):
            weight = exp2(lane.logits[m] - top)
            part += weight
            shared.sums[index(m * threads + thread)] = part
            if not replacement:
                shared.weights[index(m * threads + thread)] = max(weight, _LEAST)
        return sum_lanes(shared, part, thread)

    @jit
    def weight_left(lane: Lane, top, m):
        """Returns the weight of a site, 0 if it flips or may not."""
        if bit(lane.flips, m) != 0 or abs(lane.linear[m]) >= NEVER:
            return ZERO
        return max(exp2(lane.logits[m] - top), _LEAST)

    @jit
    def sum_left(lane: Lane, shared: Shared, top, thread):
        """Writes the running sums of the weights of the sites that do not flip; returns their
        total.
        """
        part = ZERO
        for m in range(sites):
            part += weight_left(lane, top, m)
            shared.sums[index(m * threads + thread)] = part
        return sum_lanes(shared, part, thread)

    @jit
    def place_of(code):
        """Returns where the shared arrays have the site of a code."""
        site = i32(code) >> 1
        owner = site // sites
        return index((site - owner * sites) * threads + owner)

    @jit
    def draw(
        lane: Lane, shared: Shared, inputs: WarpInputs, top, mass, word, other, length, thread
    ):
        """Draws `length` times; returns the numbers of sites and of repeats, which it lists."""
        number = thread % lanes
        taken = 0
        repeats = 0
        begin = 0
        # All lanes look for a site at once, and find the same one more often as fewer have the
        # mass: then another round follows, with further words. What is found at once costs one
        # binary search, whatever the number of draws up to 31.
        # Of WIDTH words after new weights at least one finds a site, so WIDTH words a draw are
        # enough; and where a weight is NaN, and no site is ever found, they end the loop.
        while taken + repeats < length and begin <= WIDTH * length:
            if begin > 0:
                publish(lane.flips, shared.flips, thread)
                if not replacement and begin % WIDTH == 0:
                    mass = sum_left(lane, shared, top, thread)
                wait()
                word, other = threefry(inputs.key0, inputs.key1, inputs.number, u32(begin + number))
            # The number of the words. Every 32nd pair decides about the step itself, so k - k // 32
            # is the number of the draw.
            k = begin + number
            wanted = k % WIDTH != OWN and (not replacement or k - k // WIDTH < length)
            site = i32(0)
            if wanted:
                site = search(shared, min(uniform(word) * mass, mass * JUST_BELOW), mass, other)
            code, new = look_up(shared, site, wanted, begin > 0, number)
            before, count = rank(new)
            if replacement:
                again = wanted and not new
                earlier, more = rank(again)
                if again and thread < lanes:
                    shared.listed[index(capacity - 1 - repeats - earlier)] = code
                repeats += more
            else:
                new = new and taken + before < length
                count = min(count, length - taken)
            list_new(lane, shared, code, new, before, taken, count, thread)
            taken += count
            begin += lanes
        return taken, repeats

    @jit
    def drawn_weight(shared: Shared, taken, number):
        """Returns the total weight of the listed sites."""
        partial_sum = ZERO
        for begin in range(0, taken, lanes):
            k = begin + number
            weight = shared.weights[place_of(shared.listed[index(k)])] if k < taken else ZERO
            _, more = scan_warp(weight)
            partial_sum += more
        return partial_sum

    @jit
    def log_masses(lane: Lane, shared: Shared, top, mass, taken, number, backwards):
        """Returns the sum of the logarithms of the masses before the draws, in the listed order or
        backwards.
        """
        # The mass before draw j is that of the sites that are never drawn, plus the weights of the
        # draws from j on. One difference leaves the first part; where it cancels, it is a sum over
        # all lanes instead.
        rest = mass - drawn_weight(shared, taken, number)
        if rest < _CANCELLED * mass:
            rest = ZERO
            for m in range(sites):
                rest += weight_left(lane, top, m)
            rest = total(rest, shared.partial)
        partial_sum = ZERO
        for begin in range(0, taken, lanes):
            k = begin + number
            # Masses are summed from the last draw to the first, never subtracted.
            listed = (
                shared.listed[index(k if backwards else taken - 1 - k)]
                if k < taken
                else shared.listed[0]
            )
            weight = shared.weights[place_of(listed)] if k < taken else ZERO
            run, more = scan_warp(weight)
            _, logs = scan_warp(log2(rest + run) if k < taken else ZERO)
            partial_sum += logs
            rest += more
        return partial_sum

    @jit
    def repeated_gains(lane: Lane, shared: Shared, target, inputs: WarpInputs, repeats, thread):
        """Returns the sum of l(x) - l(y) over the repeated draws, with the spins and logits
        of y.
        """
        # The sums of weights are not needed any more, so their memory passes on what the lanes of
        # the sites know to all lanes.
        for m in range(sites):
            if bit(lane.flips, m) != 0:
                # With the field of x and the flipped spin, l(x) has the other sign.
                here = -logit(lane, shared, lane.coupled, target, inputs, thread, m)
                shared.sums[index(m * threads + thread)] = here - lane.logits[m]
        wait()
        gains = ZERO
        for k in range(repeats):
            gains += shared.sums[place_of(shared.listed[index(capacity - 1 - k)])]
        return gains

    @jit
    def step_path(numbers, lane: Lane, shared: Shared, target, inputs: WarpInputs, pace, thread):
        number = thread % lanes
        publish(lane.spins, shared.spins, thread)
        for q in range(words):
            lane.flips[q] = u32(0)
        top = weigh(lane, shared, lane.coupled, target, inputs, thread)
        mass = sum_weights(lane, shared, top, thread)
        word, other, own, rounding = first_words(inputs, number)
        length = numbers.num_flips
        if numbers.adaptive:
            length = i32(math.floor(pace + HALF))
            if numbers.adapt_until > 0 and inputs.sampled >= numbers.adapt_until:
                length = i32(math.floor(pace - HALF + uniform(rounding)))
        length = min(max(length, 1), target.num_sites if replacement else target.num_open)
        wait()
        taken, repeats = draw(lane, shared, inputs, top, mass, word, other, length, thread)
        logs = ZERO
        if not replacement:
            logs = (
                log2(mass)
                if length == 1
                else log_masses(lane, shared, top, mass, taken, number, forwards)
            )
        # Ky lies beside Kx until the test, so that a rejected proposal costs nothing to undo: the
        # bits of the spins are flipped for the logits at y, and back.
        add_rows(lane, shared, target, taken, thread)
        flip(lane)
        top_there = weigh(lane, shared, lane.other, target, inputs, thread)
        # Logarithms are to the base 2, for which cards have instructions. Weights at x and at y are
        # relative to different largest logits, once for each draw.
        ratio = f32(length) * (top - top_there)
        if replacement:
            part = ZERO
            for m in range(sites):
                part += exp2(lane.logits[m] - top_there)
            ratio += f32(length) * log2(mass / total(part, shared.partial))
            if repeats > 0:
                ratio -= repeated_gains(lane, shared, target, inputs, repeats, thread)
        else:
            wait()
            mass = sum_weights(lane, shared, top_there, thread)
            wait()
            if length == 1:
                ratio += logs - log2(mass)
            else:
                ratio += logs - log_masses(lane, shared, top_there, mass, taken, number, backwards)
        flip(lane)
        acceptance = exp2(min(ratio, ZERO))
        accepted = uniform(own) < acceptance
        linear = ZERO
        pairs = ZERO
        if accepted:
            linear, pairs = settle(lane, shared)
        if numbers.adaptive:
            pace = adapt(pace, acceptance, numbers, inputs)
            pace = min(max(pace, ONE), f32(target.num_open))
        return acceptance, accepted, taken, linear, pairs, pace

    return step_path
