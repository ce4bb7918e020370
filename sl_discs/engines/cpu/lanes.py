"""Sequential scans of many chains in step: all chains of a block try the same site, each in a lane
of the vectors.

Spins and fields are stored as [S, C], with sites outside and C lanes inside, so that a step is
straight vector code:
C random words, C fields, C decisions and, only where a lane has flipped, its neighbours' C fields.
Every lane has its own key, temperature and tilt.

`threefry(key of the chain, n // 2, STEP)` gives the words of the steps n and n + 1, for even n. So
the states of a chain depend on its own key only, and not on how a run is divided into calls and
blocks.

The best state is the best one over the ends of sweeps and the logged steps.

Fields are in float32, and exact where couplings are whole numbers. Otherwise each flip of a
neighbour adds an error of at most 2^-24 of the field's largest size. Fields are recomputed every
`REFRESHED` sweeps, so that the error stays below 2^-24 (REFRESHED + 1) d max|Kx| for d neighbours.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from sl_discs.engines.cpu.arithmetic import (
    DRAW,
    FOLD,
    LOG2E,
    STEP,
    exp2,
    normal_pair,
    threefry,
    uniform,
)
from sl_discs.engines.cpu.jit import FUSED, called, entered, in_long_vectors, inlined
from sl_discs.engines.cpu.site_steps import TIE

WIDTH = 16
_F = np.float32
_U = np.uint32
# Unsigned, as in tree.py.
_P = np.uint64
_NEXT = _P(1)
# Between these, 2^gain is a normal number of float32, whose exponents go from -126 to 127: where
# odds are clipped, the chance is below 2^-124 or above 1 - 2^-124, which no word of 32 bits tells
# from 0 and 1.
_LOWEST = _F(-125)
_HIGHEST = _F(125)
_HALF = _F(0.5)
_ONE = _F(1)
_TWO = _F(2)
_NOTHING = _F(0)
_UNIT = _F(2.0**-32)
_TIE = _F(TIE * LOG2E)
# Sums of changes are kept in float32 for at most this many steps, and then added to sums in
# float64, whose vectors hold half as many lanes. Sums of whole numbers below 2^24 are exact, as
# those of 256 changes of up to 2^16.
_WINDOW = 256
# Rows of `Lanes.values`; typed, as numba compiles a function anew for each literal argument.
_OF_ALL = np.int64(0)
_OF_LOGGED = np.int64(1)
# Number of sweeps after which fields of real couplings, and sums, are recomputed.
REFRESHED = 32


# LLVM code where plain loops are slower: by 3 to 4 % for `any_nonzero`, by 8 to 22 % for
# `add_multiple`, whose arrays the compiler does not know to be apart, and by 4 to 9 % without
# `assume_whole`.


def _pointer(context, builder, kind, array, element):
    """Returns the data of a [C] array as vectors of 16 elements."""
    return builder.bitcast(
        make_array(kind)(context, builder, array).data, ir.VectorType(element, WIDTH).as_pointer()
    )


def _number(context, builder, kind, array):
    size = builder.extract_value(make_array(kind)(context, builder, array).shape, 0)
    return builder.sdiv(size, ir.Constant(size.type, WIDTH))


@intrinsic
def any_nonzero(typing_context, array):
    """Returns whether an entry of a float32 array [C] is not 0; C is a multiple of 16."""

    def codegen(context, builder, signature, arguments):
        word = ir.IntType(32)
        [kind] = signature.args
        [array] = arguments
        pointer = _pointer(context, builder, kind, array, word)
        size = _number(context, builder, kind, array)
        zero = ir.Constant(ir.VectorType(word, WIDTH), None)
        combined = cgutils.alloca_once_value(builder, zero)
        with cgutils.for_range(builder, size) as loop:
            entry = builder.load(builder.gep(pointer, [loop.index]), align=64)
            builder.store(builder.or_(builder.load(combined), entry), combined)
        different = builder.icmp_signed("!=", builder.load(combined), zero)
        return builder.icmp_signed(
            "!=", builder.bitcast(different, ir.IntType(WIDTH)), ir.Constant(ir.IntType(WIDTH), 0)
        )

    return types.boolean(array), codegen


@intrinsic
def add_multiple(typing_context, array, factor, other):
    """Adds factor * other to array, for float32 arrays [C]; C is a multiple of 16."""

    def codegen(context, builder, signature, arguments):
        (array_type, _, other_type) = signature.args
        (array, factor, other) = arguments
        element = ir.FloatType()
        size = _number(context, builder, array_type, array)
        array = _pointer(context, builder, array_type, array, element)
        other = _pointer(context, builder, other_type, other, element)
        vector = ir.VectorType(element, WIDTH)
        first = builder.insert_element(
            ir.Constant(vector, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0)
        )
        factor = builder.shuffle_vector(
            first, first, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), None)
        )
        with cgutils.for_range(builder, size) as loop:
            address = builder.gep(array, [loop.index])
            product = builder.fmul(
                builder.load(builder.gep(other, [loop.index]), align=64), factor, flags=["contract"]
            )
            total = builder.fadd(builder.load(address, align=64), product, flags=["contract"])
            builder.store(total, address, align=64)
        return context.get_dummy_value()

    return types.none(array, factor, other), codegen


@intrinsic
def assume_whole(typing_context, size):
    """Tells the compiler that a number of lanes is a multiple of 16, so that its loops need no
    remainder.
    """

    def codegen(context, builder, signature, arguments):
        argument = arguments[0]
        zero = ir.Constant(argument.type, 0)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])
        assume = cgutils.get_or_insert_function(builder.module, kind, "llvm.assume")
        low = builder.and_(argument, ir.Constant(argument.type, WIDTH - 1))
        builder.call(assume, [builder.icmp_unsigned("==", low, zero)])
        builder.call(assume, [builder.icmp_signed(">", argument, zero)])
        return context.get_dummy_value()

    return types.none(size), codegen


@inlined
def _draw(keys, pair, words):
    """Draws the words of two steps."""
    assume_whole(words.shape[1])
    for lane in range(words.shape[1]):
        words[0, lane], words[1, lane] = threefry(keys[0, lane], keys[1, lane], _U(pair), STEP)


@inlined(fastmath=FUSED)
def _odds(gain):
    """Returns 2^gain, clipped."""
    return exp2(min(max(gain, _LOWEST), _HIGHEST))


@inlined(fastmath=FUSED)
def _uniform(word):
    """Returns a uniform number on (0, 1], the middle of the interval of a word."""
    return _F(word) * _UNIT + _HALF * _UNIT


@inlined(fastmath=FUSED)
def _try(gibbs, spins, coupled, y, rate, words, linear, scale, tilt, change):
    """Decides for all lanes whether a site flips; returns whether any lane does. Arrays are [C]."""
    assume_whole(change.shape[0])
    # No branch and no look-up depends on a lane, so 16 lanes are one vector of 512 bits. On spins a
    # flip gains -s (c + scale Kx)/temperature - 2 s h for the tilt h: `tilt` holds the 2, and both
    # it and `rate` the factor log2(e) of `exp2`.
    if gibbs:
        for lane in range(change.shape[0]):
            spin = _F(spins[lane])
            # u < odds/(1 + odds), without a division, which takes several times as long as a
            # product.
            odds = _odds(-spin * ((linear + scale * coupled[lane]) * rate[lane] + tilt * y[lane]))
            change[lane] = -spin if _uniform(words[lane]) * (_ONE + odds) < odds else _NOTHING
    else:
        for lane in range(change.shape[0]):
            spin = _F(spins[lane])
            gain = -spin * ((linear + scale * coupled[lane]) * rate[lane] + tilt * y[lane])
            # A gain of 0 is accepted with probability 0.9, as in `sl_discs.samplers.single_site`.
            odds = _odds(gain if gain != _NOTHING else _TIE)
            change[lane] = -spin if _uniform(words[lane]) < odds else _NOTHING
    return any_nonzero(change)


@inlined(fastmath=FUSED)
def _add_to_window(window, coupled, linear, change):
    assume_whole(change.shape[0])
    # Lanes that do not flip add 0. No site is its own neighbour, so a flip leaves the site's own
    # field as it is, and x'Kx/2 changes by exactly the change of x times that.
    for lane in range(change.shape[0]):
        window[0, lane] += change[lane] * linear
        window[1, lane] += change[lane] * coupled[lane]
        window[2, lane] += abs(change[lane])


@inlined(fastmath=FUSED)
def _flip(target, lanes, site, linear):
    change = lanes.change
    row = lanes.spins[site]
    _add_to_window(lanes.window, lanes.coupled[site], linear, change)
    for lane in range(change.shape[0]):
        row[lane] += np.int8(_TWO * change[lane])
    # The fields of a neighbour are one row, and lanes that do not flip add 0: a flip in one lane
    # costs as much as flips in all of them. Figures are beside `_LEAST_CHAINS` in `layout.py`.
    for k in range(target.starts[site], target.starts[site + _NEXT]):
        add_multiple(lanes.coupled[_P(target.neighbours[k])], target.weights[k], change)


@inlined(fastmath=FUSED)
def _subtract_flip(mean, change, collected):
    """Accounts for one site as `chunk.subtract_flips`: the change of x is half that of the spin."""
    for lane in range(change.shape[0]):
        mean[lane] -= _TWO * collected * change[lane]


@inlined
def _set_keys(lanes):
    for lane in range(lanes.place.shape[0]):
        place = lanes.place[lane]
        lanes.lane_keys[0, lane], lanes.lane_keys[1, lane] = (
            lanes.keys[0, place],
            lanes.keys[1, place],
        )


@inlined
def _set_rates(lanes, rates, step):
    """Sets log2(e)/temperature of all lanes at a step; `rates` are [R, T], or [R, 1] if they are
    constant.
    """
    step = step if rates.shape[1] > 1 else 0
    if rates.shape[0] == 1:
        rate = rates[0, step] * LOG2E
        for lane in range(lanes.rate.shape[0]):
            lanes.rate[lane] = rate
    else:
        for lane in range(lanes.rate.shape[0]):
            lanes.rate[lane] = rates[lanes.row[lanes.place[lane]], step] * LOG2E


@called
def _close_window(lanes):
    for k in range(3):
        for lane in range(lanes.place.shape[0]):
            lanes.sums[k, lane] += lanes.window[k, lane]
            lanes.window[k, lane] = _NOTHING


@called(fastmath=FUSED)
def _refresh(target, lanes):
    """Recomputes fields of real couplings, and the sums c.x and x'Kx/2."""
    in_long_vectors()
    for k in range(2):
        lanes.sums[k] = 0
    for site in range(_P(lanes.spins.shape[0])):
        field = lanes.coupled[site]
        spins = lanes.spins[site]
        linear = np.float64(target.linear[site])
        if not target.whole:
            field[:] = _NOTHING
            for k in range(target.starts[site], target.starts[site + _NEXT]):
                near = lanes.spins[_P(target.neighbours[k])]
                weight = target.weights[k]
                for lane in range(field.shape[0]):
                    field[lane] += weight * (_F(near[lane]) * _HALF + _HALF)
        for lane in range(field.shape[0]):
            x = np.float64(spins[lane]) * 0.5 + 0.5
            lanes.sums[0, lane] += x * linear
            lanes.sums[1, lane] += x * 0.5 * np.float64(field[lane])


@called
def _keep_better(lanes, scale, k, best):
    """Compares all lanes with the best values k of their places, and keeps better states in `best`.

    A logged state that is also the best one of all is kept once.
    """
    in_long_vectors()
    # Values are compared after every sweep, and states are copied only where one is better.
    improved = False
    moved = False
    for lane in range(lanes.place.shape[0]):
        place = lanes.place[lane]
        value = lanes.sums[0, lane] + np.float64(scale) * lanes.sums[1, lane]
        better = value > lanes.values[k, place]
        lanes.better[lane] = better
        if better:
            lanes.values[k, place] = value
            lanes.found[k, place] = True
            improved = True
            if k == _OF_ALL:
                lanes.same[place] = False
            elif value > lanes.values[_OF_ALL, place]:
                lanes.values[_OF_ALL, place] = value
                lanes.found[_OF_ALL, place] = lanes.same[place] = True
        moved |= place != lane
    # Where no ladder has swapped states, the lanes are the places, and all that are better are
    # copied by masked vectors, site by site; otherwise each goes to its own place, one after the
    # other.
    if improved and not moved:
        for site in range(_P(best.shape[0])):
            kept = best[site]
            spins = lanes.spins[site]
            for lane in range(kept.shape[0]):
                kept[lane] = spins[lane] if lanes.better[lane] else kept[lane]
    elif improved:
        for lane in range(lanes.place.shape[0]):
            if lanes.better[lane]:
                for site in range(_P(best.shape[0])):
                    best[site, lanes.place[lane]] = lanes.spins[site, lane]


@called(fastmath=FUSED)
def _end_level(lanes, number, collected, drift, spread):
    """Moves y as `chunk.advance_observation` does, with the same normal numbers, and empties the
    posterior mean.
    """
    in_long_vectors()
    for lane in range(lanes.place.shape[0]):
        keys = lanes.observation_keys
        lanes.words[0, lane], lanes.words[1, lane] = threefry(
            keys[0, lane], keys[1, lane], _U(number), FOLD
        )
    y = lanes.y
    mean = lanes.mean
    spins = lanes.spins
    first = lanes.window[0]
    second = lanes.window[1]
    half = _P(y.shape[0] // 2)
    # Box and Muller make two normal numbers of two words: one for a site of the first half, one for
    # a site of the second. The rows of the window, which is empty here, carry the words' numbers
    # from one loop over the lanes to the next.
    for site in range(half):
        for lane in range(first.shape[0]):
            word, second_word = threefry(lanes.words[0, lane], lanes.words[1, lane], _U(site), DRAW)
            first[lane] = (_F(word) + _HALF) * _UNIT
            second[lane] = _F(second_word) * _UNIT - _HALF
        for lane in range(first.shape[0]):
            normal, second_normal = normal_pair(first[lane], second[lane])
            y[site, lane] += (
                drift * (mean[site, lane] + collected * _F(spins[site, lane])) + spread * normal
            )
            y[half + site, lane] += (
                drift * (mean[half + site, lane] + collected * _F(spins[half + site, lane]))
                + spread * second_normal
            )
            mean[site, lane] = mean[half + site, lane] = _NOTHING
    lanes.window[:] = 0


@called
def _finish_mean(lanes, collected):
    """Adds what is left of U at the end of a call, as `chunk.finish_mean`."""
    for site in range(_P(lanes.mean.shape[0])):
        for lane in range(lanes.place.shape[0]):
            lanes.mean[site, lane] += collected * _F(lanes.spins[site, lane])


@called
def _swap_neighbours(lanes, scale, ladder, rates, step, every, number, swaps):
    """Tries the pairs of one parity, as `single_site.swap_neighbours`; states stay in their lanes,
    and places move.

    Args:
      lanes: modified in place.
      scale: of K.
      ladder: R.
      rates: [R, T] or [R, 1] 1/temperature.
      step: the last one, as an index into them.
      every: steps of an interval; the number of the interval has the parity of the places r of
        pairs (r, r + 1).
      number: of the last step.
      swaps: [C] output.
    """
    step = step if rates.shape[1] > 1 else 0
    for first in range(0, swaps.shape[0], ladder):
        for place in range(first + number // every % 2, first + ladder - 1, 2):
            # Places are swapped, two numbers, and not states and fields, of 5 bytes a site.
            lane = lanes.lane_of[place]
            next_lane = lanes.lane_of[place + 1]
            gained = lanes.sums[0, next_lane] - lanes.sums[0, lane]
            gained += np.float64(scale) * (lanes.sums[1, next_lane] - lanes.sums[1, lane])
            rate = np.float64(rates[lanes.row[place], step]) - np.float64(
                rates[lanes.row[place + 1], step]
            )
            keys = lanes.observation_keys
            word, _ = threefry(keys[0, place], keys[1, place], _U(number), DRAW)
            if uniform(word) < np.exp(min(rate * gained, 0.0)):
                swaps[place] = True
                lanes.place[lane] = place + 1
                lanes.place[next_lane] = place
                lanes.lane_of[place] = next_lane
                lanes.lane_of[place + 1] = lane


@called
def _log(lanes, scale, every, ladder, interval, records):
    for place in range(records.value.shape[1]):
        lane = lanes.lane_of[place]
        records.value[interval, place] = (
            lanes.sums[0, lane] + np.float64(scale) * lanes.sums[1, lane]
        )
        records.hops[interval, place] = lanes.sums[2, lane] / every
    lanes.sums[2] = 0
    for k in range(records.states.shape[1] if records.states.shape[0] else 0):
        state = records.states[interval, k]
        lane = lanes.lane_of[k * ladder]
        for site in range(_P(state.shape[0])):
            state[site] = lanes.spins[site, lane] > 0


# Cluster moves between two lanes at one temperature (Houdayer 2001; Zhu, Ochoa and Katzgraber
# 2015).
#
# A cluster is a connected component, in the graph of couplings, of the sites where two states
# differ. Exchanged between the states, it leaves the sum of their values as it was, whatever the
# fields and the signs of couplings, since the states agree at its border. So each cluster may be
# swapped with probability 1/2, independently of the others: the clusters remain what they are, and
# the law of independent states is kept.
#
# Where f stays the same if all sites flip, one of the states stands for its opposite if they differ
# at more than half of the sites; the sites of clusters then agree. In both cases swapping a cluster
# flips its sites in both states.
#
# The largest cluster stays where it is. To swap it instead of all others would only give the two
# states each other's name, and the round trips of ladders count replicas, which should have most of
# their state along.

_BIT = _P(1)
_WORD = _P(32)


@called
def swap_clusters(target, spins, coupled, sums, memory, one, other, key0, key1):
    """Exchanges clusters between the states of two lanes.

    Args:
      target: `chain.LoopTarget`, like the arrays of `layout.Lanes` that follow.
      spins: [S, C] modified in place, like coupled and sums.
      coupled: [S, C].
      sums: [3, C].
      memory: [3, S + 1] working memory.
      one: a lane.
      other: another one.
      key0: first word of a key that nothing else uses.
      key1: second word.
    """
    # Which sites are still to be found, those of all clusters, one cluster after the other, and
    # where each begins.
    left = memory[0]
    order = memory[1]
    begins = memory[2]
    different = _U(0)
    for place in range(_P(target.open_sites.shape[0])):
        site = _P(target.open_sites[place])
        left[site] = spins[site, one] != spins[site, other]
        different += left[site]
    wanted = _U(0 if target.symmetric and 2 * different > target.open_sites.shape[0] else 1)
    num_clusters = _P(0)
    count = _P(0)
    largest = _P(0)
    most = _P(0)
    for place in range(_P(target.open_sites.shape[0])):
        if left[_P(target.open_sites[place])] == wanted:
            begin = head = count
            order[count] = target.open_sites[place]
            left[_P(target.open_sites[place])] = _BIT - wanted
            count += _BIT
            while head < count:
                site = _P(order[head])
                head += _BIT
                for k in range(target.starts[site], target.starts[site + _BIT]):
                    neighbour = _P(target.neighbours[k])
                    if left[neighbour] == wanted:
                        order[count] = neighbour
                        left[neighbour] = _BIT - wanted
                        count += _BIT
            if count - begin > most:
                largest = num_clusters
                most = count - begin
            begins[num_clusters] = begin
            num_clusters += _BIT
    begins[num_clusters] = count
    word = _U(0)
    for k in range(num_clusters):
        if k % _WORD == 0:
            word, _ = threefry(key0, key1, _U(k), DRAW)
        if k != largest and word & _U(1):
            for i in range(_P(begins[k]), _P(begins[k + _BIT])):
                site = _P(order[i])
                for turn in range(2):
                    lane = other if turn else one
                    change = np.float32(-spins[site, lane])
                    spins[site, lane] = np.int8(change)
                    sums[0, lane] += np.float64(change) * np.float64(target.linear[site])
                    sums[1, lane] += np.float64(change) * np.float64(coupled[site, lane])
                    for j in range(target.starts[site], target.starts[site + _BIT]):
                        coupled[_P(target.neighbours[j]), lane] += change * target.weights[j]
        word >>= _U(1)


@called
def _swap_clusters_of_pairs(target, lanes, count, ladder, clusters, every, number):
    """Swaps clusters between the coldest `clusters` rungs of each two ladders, of one parity, after
    step `number`.

    The `count` chains are whole pairs of ladders; lanes that are left belong to none.
    """
    for first in range(0, count, 2 * ladder):
        for place in range(first + number // every % 2, first + clusters, 2):
            # Folded, unlike the keys of swaps in a ladder.
            keys = lanes.observation_keys
            key0, key1 = threefry(keys[0, place], keys[1, place], _U(number), FOLD)
            swap_clusters(
                target,
                lanes.spins,
                lanes.coupled,
                lanes.sums,
                lanes.clusters,
                lanes.lane_of[place],
                lanes.lane_of[place + ladder],
                key0,
                key1,
            )


@entered
def play(gibbs, program, target, lanes, ladder, clusters, first_step, sweep, row, records):
    """Runs L intervals of T/L steps.

    Args:
      gibbs: the acceptance rule, as in `single_site`.
      program: the slice of the program, `chunk.ProgramSlice`; its rates may be [R, 1], and
        `refresh` is [1, T], whether a temperature or the level differs from those of the step
        before.
      target: `chain.LoopTarget`.
      lanes: `layout.Lanes`, modified in place.
      ladder: R.
      clusters: of the program.
      first_step: number of the first step.
      sweep: number of the sweep that contains it.
      row: its number in the sweep.
      records: `engines.arrays.Records` by place, output; acceptance is not written.
    """
    in_long_vectors()
    intervals = records.value.shape[0]
    changed = program.refresh[0]
    every = changed.shape[0] // max(intervals, 1)
    levels = program.levels
    level = program.level
    localized = program.localized
    tilt = _NOTHING
    collected = _NOTHING
    share = _NOTHING
    weight = _NOTHING
    last = 0
    uncounted = 0
    if localized:
        last = levels.last[level] + 1
    tilted = _P(1 if localized else 0)
    num_open = target.open_sites.shape[0]
    step = np.int64(0)
    number = first_step
    _set_keys(lanes)
    for interval in range(intervals):
        end = (interval + 1) * every
        drawn = False
        while step < end and num_open > 0:
            if changed[step]:
                if localized:
                    if number > last:
                        _close_window(lanes)
                        _end_level(lanes, last, collected, levels.drift[level], levels.noise[level])
                        level = level + 1
                        collected = _NOTHING
                        drawn = False
                    last = levels.last[level] + 1
                    tilt = _TWO * LOG2E * levels.tilt_scale[level]
                    uncounted = last - levels.collected[level]
                    share = _ONE / _F(levels.collected[level])
                _set_rates(lanes, program.rate, step)
            # The inner loop runs to the next step at which something else happens: the end of the
            # interval, of the sweep, of the window, or where the mean begins to be collected. So it
            # tests one number a step.
            stop = min(end, step + num_open - row, step + _WINDOW - number % _WINDOW)
            if localized:
                weight = share if number > uncounted else _NOTHING
                stop = min(stop, step + 1 + (last if number > uncounted else uncounted) - number)
            while True:
                if number & 1 == 0 or not drawn:
                    _draw(lanes.lane_keys, number >> 1, lanes.words)
                    drawn = True
                site = _P(target.open_sites[_P(row)])
                linear = target.linear[site]
                if _try(
                    gibbs,
                    lanes.spins[site],
                    lanes.coupled[site],
                    lanes.y[site * tilted],
                    lanes.rate,
                    lanes.words[_P(number & 1)],
                    linear,
                    target.scale,
                    tilt,
                    lanes.change,
                ):
                    _flip(target, lanes, site, linear)
                    if localized:
                        _subtract_flip(lanes.mean[site], lanes.change, collected)
                collected += weight
                number = number + 1
                row = row + 1
                step = step + 1
                if step >= stop or changed[_P(step)]:
                    break
            if row == num_open or step == end or number % _WINDOW == 0:
                _close_window(lanes)
            if row == num_open:
                row = 0
                sweep = sweep + 1
                if sweep % REFRESHED == 0:
                    _refresh(target, lanes)
                _keep_better(lanes, target.scale, _OF_ALL, lanes.best)
        if num_open == 0:
            step = step + every
            number = number + every
        _log(lanes, target.scale, every, ladder, interval, records)
        _keep_better(lanes, target.scale, _OF_LOGGED, lanes.best_logged)
        if ladder > 1:
            swaps = records.swaps[interval]
            _swap_neighbours(
                lanes, target.scale, ladder, program.rate, step - 1, every, number - 1, swaps
            )
            _swap_clusters_of_pairs(
                target, lanes, swaps.shape[0], ladder, clusters, every, number - 1
            )
            _set_keys(lanes)
            _set_rates(lanes, program.rate, step - 1)
            _keep_better(lanes, target.scale, _OF_ALL, lanes.best)
    if localized and num_open > 0:
        if number > last:
            _end_level(lanes, last, collected, levels.drift[level], levels.noise[level])
        else:
            _finish_mean(lanes, collected)
