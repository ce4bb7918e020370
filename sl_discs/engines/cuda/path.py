"""A step of gwg or path_auxiliary: the mathematics of `sl_discs.samplers.path`, for the lanes of a chain.

With logits l = d/2 at x and y, weights w = exp(l - max l) and their sum Z, everything but the masses cancels in the
Metropolis-Hastings ratio, since the target changes by the sum of l(x) - l(y) over the flipped sites. What remains is

    gwg              R draws: (Z(x)/Z(y))^R, divided by exp(l(x) - l(y)) of each repeated draw
    path_auxiliary   the product over the draws of the mass at x before the draw, divided by that at y

Each lane searches for one draw. A site that is drawn again is a repeat in gwg, and is passed over in path_auxiliary,
which leaves draws without replacement; after every 31 draws, the weights of drawn sites are set to 0.
"""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace

import numpy as np

from sl_discs.engines.cuda.chain import (
    HALF,
    NEVER,
    ONE,
    TO_UNIT,
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
from sl_discs.engines.cuda.warp import WIDTH, Warp

# Every 32nd pair of words is not for a draw; the first of them decides about the step itself.
_OWN = WIDTH - 1
# A mass that is smaller than this part of the total is summed anew.
_CANCELLED = f32(2.0**-12)
# Weights are at least exp(-80) where they are all that is left, as in `samplers.draws`.
_LEAST = f32(math.exp(-80))
_JUST_BELOW = f32(1 - 2.0**-23)
# Of the second word, which continues the first one.
_SECOND = f32(2.0**-56)


def halves(count: int) -> tuple[int, ...]:
    """Returns the powers of 2 below `count`, the largest first, at least 1."""
    return tuple(1 << k for k in range(max(count - 1, 1).bit_length() - 1, -1, -1))


@functools.cache
def make_draws(warp: Warp, sites: int, whole: bool, localized: bool, replacement: bool) -> SimpleNamespace:
    """Returns the draws of sites and the masses of weights, compiled for a warp."""
    jit, lanes = warp.jit, warp.lanes
    wait, total, scan, scan_warp, rank, is_first, get = (
        warp.wait, warp.total, warp.scan, warp.scan_warp, warp.rank, warp.is_first, warp.get,
    )  # fmt: skip
    chain, random = make_chain(warp, sites, whole, localized), make_random(warp)
    threefry, uniform, bit = random.threefry, random.uniform, chain.bit
    threads, words, word_of = chain.threads, chain.words, chain.word_of
    capacity, exp2, log2 = sites * threads, warp.exp2, warp.log2
    # Halves of the ranges of lanes and of a lane's sites, for their search.
    lane_halves, site_halves = halves(threads), halves(sites)

    @jit
    def sum_weights(lane: Lane, shared: Shared, top, thread):
        """Writes the weights and their running sums; returns their total."""
        part = ZERO
        for m in range(sites):
            weight = exp2(lane.logits[m] - top)
            part += weight
            shared.sums[index(m * threads + thread)] = part
            if not replacement:
                shared.weights[index(m * threads + thread)] = max(weight, _LEAST)
        run, mass = scan(part, shared.partial)
        shared.runs[index(thread)] = run
        return mass

    @jit
    def weight_left(lane: Lane, top, m):
        """Returns the weight of a site, 0 if it flips or may not."""
        if bit(lane.flips, m) != 0 or abs(lane.linear[m]) >= NEVER:
            return ZERO
        return max(exp2(lane.logits[m] - top), _LEAST)

    @jit
    def sum_left(lane: Lane, shared: Shared, top, thread):
        """Writes the running sums of the weights of the sites that do not flip; returns their total."""
        part = ZERO
        for m in range(sites):
            part += weight_left(lane, top, m)
            shared.sums[index(m * threads + thread)] = part
        run, mass = scan(part, shared.partial)
        shared.runs[index(thread)] = run
        return mass

    @jit
    def first_words(key0, key1, step, number):
        """Returns the words of a lane's first draw, and those of the step itself."""
        word, other = threefry(key0, key1, step, u32(number))
        if lanes == 1:
            own, second = threefry(key0, key1, step, u32(_OWN))
        else:
            own, second = u32(get(i32(word), _OWN)), u32(get(i32(other), _OWN))
        return word, other, own, second

    @jit
    def search(shared: Shared, target, mass, other):
        """Returns the site in whose share of the total `mass` the target lies; the word `other` continues that."""
        low = i32(0)
        for half in lane_halves:
            if low + half < threads and shared.runs[index(low + half - 1)] <= target:
                low = i32(low + half)
        # Rounded sums of an empty lane may differ from those of the lane before it.
        while low > 0 and shared.sums[index((sites - 1) * threads + low)] <= ZERO:
            low = i32(low - 1)
        part = shared.sums[index((sites - 1) * threads + low)]
        if low > 0:
            target -= shared.runs[index(low - 1)]
        target += f32(other) * _SECOND * mass
        target = min(max(target, ZERO), part * _JUST_BELOW)
        place = i32(0)
        for half in site_halves:
            if place + half < sites and shared.sums[index((place + half - 1) * threads + low)] <= target:
                place = i32(place + half)
        return i32(low * sites + place)

    @jit
    def place_of(code):
        """Returns where the shared arrays have the site of a code."""
        site = i32(code) >> 1
        owner = site // sites
        return index((site - owner * sites) * threads + owner)

    @jit
    def mark(lane: Lane, shared: Shared, begin, end, thread):
        """Sets the bits of listed sites in the lanes that have them."""
        for k in range(begin, end):
            place = (i32(shared.listed[index(k)]) >> 1) - thread * sites
            if place >= 0 and place < sites:
                lane.flips[word_of(place)] |= u32(1) << u32(place & 31)

    @jit
    def look_up(shared: Shared, site, wanted, later, number):
        """Returns the code of a lane's site, and whether it is wanted and new; `later`, flips are known already."""
        code, known = i32(-1 - number), False
        if wanted:
            owner = site // sites
            place = site - owner * sites
            at = index(owner * words + word_of(place))
            code = i32(2 * site + i32((shared.spins[at] >> u32(place & 31)) & u32(1)))
            if later:
                known = (shared.flips[at] >> u32(place & 31)) & u32(1) != 0
        return code, is_first(code) and wanted and not known

    @jit
    def draw(lane: Lane, shared: Shared, top, mass, word, other, key0, key1, step, length, thread):
        """Draws `length` times; returns the numbers of sites and of repeats, which it lists."""
        number = thread % lanes
        taken, repeats, begin = 0, 0, 0
        # A round whose weights are those of sites left finds one of them; so many end even if no weight is a number.
        while taken + repeats < length and begin <= WIDTH * length:
            if begin > 0:
                for q in range(words):
                    shared.flips[index(thread * words + q)] = lane.flips[q]
                if not replacement and begin % WIDTH == 0:
                    mass = sum_left(lane, shared, top, thread)
                wait()
                word, other = threefry(key0, key1, step, u32(begin + number))
            # Number of words, and number of draw.
            k = begin + number
            wanted = k % WIDTH != _OWN and (not replacement or k - k // WIDTH < length)
            site = i32(0)
            if wanted:
                site = search(shared, min(uniform(word) * mass, mass * _JUST_BELOW), mass, other)
            code, new = look_up(shared, site, wanted, begin > 0, number)
            before, count = rank(new)
            if not replacement:
                new = new and taken + before < length
                count = min(count, length - taken)
            if new and thread < lanes:
                shared.listed[index(taken + before)] = code
            if replacement:
                again = wanted and not new
                before, more = rank(again)
                if again and thread < lanes:
                    shared.listed[index(capacity - 1 - repeats - before)] = code
                repeats += more
            wait()
            mark(lane, shared, taken, taken + count, thread)
            taken += count
            begin += lanes
        return taken, repeats

    @jit
    def meet(lane: Lane, shared: Shared, mass, word, other, key0, key1, step, thread):
        """Lists the sites whose shares of `mass`, in bits, have events of a Poisson process; returns their number.

        The rate of the process is one for each nat, so that gaps between its events are exponential.
        """
        number = thread % lanes
        taken, begin, time = 0, 0, ZERO
        while begin == 0 or time < mass:
            if begin > 0:
                for q in range(words):
                    shared.flips[index(thread * words + q)] = lane.flips[q]
                wait()
                word, other = threefry(key0, key1, step, u32(begin + number))
            is_event = (begin + number) % WIDTH != _OWN
            run, gaps = scan_warp(-log2((f32(word) + HALF) * TO_UNIT) if is_event else ZERO)
            is_event = is_event and time + run < mass
            site = i32(0)
            if is_event:
                site = search(shared, time + run, mass, other)
            code, new = look_up(shared, site, is_event, begin > 0, number)
            before, count = rank(new)
            if new and thread < lanes:
                shared.listed[index(taken + before)] = code
            wait()
            mark(lane, shared, taken, taken + count, thread)
            taken += count
            begin += lanes
            time += gaps
        return taken

    @jit
    def drawn_weight(shared: Shared, taken, number):
        """Returns the total weight of the listed sites."""
        found = ZERO
        for begin in range(0, taken, lanes):
            k = begin + number
            weight = shared.weights[place_of(shared.listed[index(k)])] if k < taken else ZERO
            _, more = scan_warp(weight)
            found += more
        return found

    @jit
    def log_masses(lane: Lane, shared: Shared, top, mass, taken, number, backwards):
        """Returns the sum of the logarithms of the masses before the draws, in the listed order or backwards."""
        rest = mass - drawn_weight(shared, taken, number)
        if rest < _CANCELLED * mass:
            rest = ZERO
            for m in range(sites):
                rest += weight_left(lane, top, m)
            rest = total(rest, shared.partial)
        found = ZERO
        for begin in range(0, taken, lanes):
            k = begin + number
            # Masses are summed from the last draw to the first, never subtracted.
            listed = shared.listed[index(k if backwards else taken - 1 - k)] if k < taken else shared.listed[0]
            weight = shared.weights[place_of(listed)] if k < taken else ZERO
            run, more = scan_warp(weight)
            _, logs = scan_warp(log2(rest + run) if k < taken else ZERO)
            found += logs
            rest += more
        return found

    return SimpleNamespace(
        first_words=first_words,
        sum_weights=sum_weights,
        draw=draw,
        meet=meet,
        log_masses=log_masses,
        place_of=place_of,
    )


def make_step(warp: Warp, sites: int, whole: bool, localized: bool, replacement: bool):
    """Returns the step of gwg (with replacement) or path_auxiliary, compiled for a warp."""
    jit, lanes, wait, total = warp.jit, warp.lanes, warp.wait, warp.total
    chain, random, adapt = make_chain(warp, sites, whole, localized), make_random(warp), adapted(warp)
    draws, uniform = make_draws(warp, sites, whole, localized, replacement), random.uniform
    bit, logit, weigh, add_rows, settle = chain.bit, chain.logit, chain.weigh, chain.add_rows, chain.settle
    first_words, sum_weights, draw, log_masses, place_of = (
        draws.first_words, draws.sum_weights, draws.draw, draws.log_masses, draws.place_of,
    )  # fmt: skip
    threads, words, exp2, log2 = chain.threads, chain.words, warp.exp2, warp.log2
    capacity = sites * threads
    # Not literals, for each of which numba compiles a function anew.
    forwards, backwards = np.bool_(False), np.bool_(True)

    @jit
    def repeated_gains(lane: Lane, shared: Shared, target, play, repeats, thread):
        """Returns the sum of l(x) - l(y) over the repeated draws, with the spins and logits of y."""
        for m in range(sites):
            if bit(lane.flips, m) != 0:
                # With the field of x and the flipped spin, l(x) has the other sign.
                here = -logit(lane, shared, lane.coupled, target.scale, play, thread, m)
                shared.sums[index(m * threads + thread)] = here - lane.logits[m]
        wait()
        gains = ZERO
        for k in range(repeats):
            gains += shared.sums[place_of(shared.listed[index(capacity - 1 - k)])]
        return gains

    @jit
    def step_path(numbers, lane: Lane, shared: Shared, rows, target, play, key0, key1, step, pace, steps, thread):
        number = thread % lanes
        for q in range(words):
            shared.spins[index(thread * words + q)] = lane.spins[q]
            lane.flips[q] = u32(0)
        top = weigh(lane, shared, lane.coupled, target.scale, play, thread)
        mass = sum_weights(lane, shared, top, thread)
        word, other, own, rounding = first_words(key0, key1, step, number)
        length = numbers.num_flips
        if numbers.adaptive:
            length = i32(math.floor(pace + f32(0.5)))
            if numbers.adapt_until > 0 and steps >= numbers.adapt_until:
                length = i32(math.floor(pace - f32(0.5) + uniform(rounding)))
        length = min(max(length, 1), target.limit if replacement else target.available)
        wait()
        taken, repeats = draw(lane, shared, top, mass, word, other, key0, key1, step, length, thread)
        logs = ZERO
        if not replacement:
            logs = log2(mass) if length == 1 else log_masses(lane, shared, top, mass, taken, number, forwards)
        add_rows(lane, shared, rows, taken, numbers.most_packed, thread)
        for q in range(words):
            lane.spins[q] = u32(lane.spins[q] ^ lane.flips[q])
        top_there = weigh(lane, shared, lane.other, target.scale, play, thread)
        ratio = f32(length) * (top - top_there)
        if replacement:
            part = ZERO
            for m in range(sites):
                part += exp2(lane.logits[m] - top_there)
            ratio += f32(length) * log2(mass / total(part, shared.partial))
            if repeats > 0:
                ratio -= repeated_gains(lane, shared, target, play, repeats, thread)
        else:
            wait()
            mass = sum_weights(lane, shared, top_there, thread)
            wait()
            if length == 1:
                ratio += logs - log2(mass)
            else:
                ratio += logs - log_masses(lane, shared, top_there, mass, taken, number, backwards)
        for q in range(words):
            lane.spins[q] = u32(lane.spins[q] ^ lane.flips[q])
        acceptance = exp2(min(ratio, ZERO))
        accepted = uniform(own) < acceptance
        linear, pairs = ZERO, ZERO
        if accepted:
            linear, pairs = settle(lane, shared)
        if numbers.adaptive:
            pace = adapt(pace, acceptance, numbers.target, steps, numbers.adapt_until)
            pace = min(max(pace, ONE), f32(target.available))
        return acceptance, accepted, taken, linear, pairs, pace

    return step_path
