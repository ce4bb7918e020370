"""Sequential scans of many chains in step: all chains of a block try the same site, one in each lane of the vectors.

Spins and fields are stored as [N, C], with sites outside and C lanes inside, so that a step is straight vector code: C
random words, C fields, C decisions and, only where a lane has flipped, its neighbours' C fields. Every lane has its
own key, temperature and tilt.

Random words: `threefry(key of the chain, n // 2, STEP)` has the words of the steps n, of which the even one takes the
first. So the states of a chain depend on its own key only, and not on how a run is divided into calls and blocks.

The best state is the best one over the ends of sweeps and the logged steps.

Fields are in float32. They are exact where couplings are whole numbers. Otherwise each change of a neighbour adds an
error of at most 2^-24 of the field's largest size, and fields are recomputed every `REFRESHED` sweeps: the error is at
most 2^-24 (REFRESHED + 1) d max|Kx| for d neighbours, and of the order of its square root's share in practice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from sl_discs.engines.base import Batch, Best, Chain, ChainStates, Play, Program, StepKeys
from sl_discs.engines.cpu.arithmetic import DRAW, FOLD, LOG2E, STEP, aligned_zeros, exp2, normal_pair, threefry, uniform
from sl_discs.engines.cpu.arrays import as_trace, make_recorded
from sl_discs.engines.cpu.jit import FUSED, called, entered, in_long_vectors, inlined
from sl_discs.engines.cpu.single_site import TIE
from sl_discs.localization.algorithm import Observation
from sl_discs.models.quadratic import QuadraticField, QuadraticModel
from sl_discs.samplers.single_site import Gibbs, SingleSiteSampler

WIDTH = 16
_F, _I, _U = np.float32, np.int32, np.uint32
# Unsigned, as in tree.py.
_P = np.uint64
_NEXT = _P(1)
_LOWEST, _HIGHEST = _F(-125), _F(125)
_HALF, _ONE, _TWO, _NOTHING, _UNIT = _F(0.5), _F(1), _F(2), _F(0), _F(2.0**-32)
_TIE = _F(TIE * LOG2E)
# Sums of changes are kept in float32 for at most this many steps: sums of whole numbers are then exact.
_WINDOW = 256
# Number of sweeps after which fields of real couplings, and sums, are recomputed.
REFRESHED = 32


class Target(NamedTuple):
    """f of one instance, f(x) = c.x + scale/2 x'Kx, on S sites: those that may flip or are coupled.

    Attributes:
      linear: [S] c.
      scale: of K.
      starts: [S + 1] where the neighbours of each site begin.
      neighbours: [E] of all sites, concatenated.
      weights: [E] their couplings.
      whole: whether all couplings are whole numbers.
      sites: [A] the sites that may flip.
    """

    linear: np.ndarray
    scale: np.float32
    starts: np.ndarray
    neighbours: np.ndarray
    weights: np.ndarray
    whole: bool
    sites: np.ndarray


class Lanes(NamedTuple):
    """C chains in step. A chain is a place, with its key, temperature and best states; a lane has a state.

    Attributes:
      place: [C] the place whose state a lane has; ladders exchange these.
      keys: [2, C] of each place, like observation_keys.
      observation_keys: [2, C].
      row: [C] row of the program's temperatures of each place.
      spins: [S, C] -1 or 1.
      coupled: [S, C] Kx.
      y: [S, C] observation; [1, C] zeros if not localized, like `mean`.
      mean: [S, C] running posterior mean.
      sums: [3, C] c.x, x'Kx/2 and the number of flips since the last logged step, up to the window.
      window: [3, C] changes of the sums in the window.
      best: [S, C] the best state of each place, if it was found in this call.
      best_logged: [S, C] likewise, over the logged steps.
      values: [2, C] the best values of each place: over all sweeps, over the logged steps.
      found: [2, C] whether these were found in this call.
      lane_of: [C] the lane of each place.
      lane_keys: [2, C] of the lanes, like the following ones.
      rate: [C] log2(e)/temperature.
      change: [C] change of x at the site that is tried.
      words: [2, C] random words of an even step and the next one.
      better: [C] -1 or 0, which lanes have a better state.
    """

    place: np.ndarray
    keys: np.ndarray
    observation_keys: np.ndarray
    row: np.ndarray
    spins: np.ndarray
    coupled: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    sums: np.ndarray
    window: np.ndarray
    best: np.ndarray
    best_logged: np.ndarray
    values: np.ndarray
    found: np.ndarray
    lane_of: np.ndarray
    lane_keys: np.ndarray
    rate: np.ndarray
    change: np.ndarray
    words: np.ndarray
    better: np.ndarray


def make_lanes(size: int, count: int, localized: bool) -> Lanes:
    """Allocates `count` lanes of `size` sites."""
    sites, tilted, some = (size, count), (size if localized else 1, count), count
    spins, number, word, place = np.int8, np.float32, np.uint32, np.int64
    return Lanes(
        place=np.arange(count), keys=aligned_zeros((2, some), word), observation_keys=aligned_zeros((2, some), word),
        row=aligned_zeros(some, place), spins=aligned_zeros(sites, spins), coupled=aligned_zeros(sites, number),
        y=aligned_zeros(tilted, number), mean=aligned_zeros(tilted, number), sums=aligned_zeros((3, some)),
        window=aligned_zeros((3, some), number), best=aligned_zeros(sites, spins),
        best_logged=aligned_zeros(sites, spins), values=aligned_zeros((2, some)), found=aligned_zeros((2, some), bool),
        lane_of=np.arange(count), lane_keys=aligned_zeros((2, some), word), rate=aligned_zeros(some, number), change=aligned_zeros(some, number),
        words=aligned_zeros((2, some), word), better=aligned_zeros(some, spins),
    )  # fmt: skip


class Found(NamedTuple):
    """Records of L intervals by place, as `chunk.Recorded`; `exchanged` and `states` are empty if not needed.

    Attributes:
      values: [L, C].
      hops: [L, C] also the mean acceptance: whether a proposal is accepted has that mean.
      exchanged: [L, C].
      states: [L, C/R, N].
    """

    values: np.ndarray
    hops: np.ndarray
    exchanged: np.ndarray
    states: np.ndarray


def _pointer(context, builder, kind, array, element):
    """The data of a [C] array as vectors of 16 elements."""
    return builder.bitcast(make_array(kind)(context, builder, array).data, ir.VectorType(element, WIDTH).as_pointer())


def _number(context, builder, kind, array):
    size = builder.extract_value(make_array(kind)(context, builder, array).shape, 0)
    return builder.sdiv(size, ir.Constant(size.type, WIDTH))


@intrinsic
def any_nonzero(typing_context, array):
    """Whether an entry of a float32 array [C] is not 0; C is a multiple of 16."""

    def codegen(context, builder, signature, arguments):
        word, [kind], [array] = ir.IntType(32), signature.args, arguments
        pointer, number = _pointer(context, builder, kind, array, word), _number(context, builder, kind, array)
        zero = ir.Constant(ir.VectorType(word, WIDTH), None)
        found = cgutils.alloca_once_value(builder, zero)
        with cgutils.for_range(builder, number) as loop:
            entry = builder.load(builder.gep(pointer, [loop.index]), align=64)
            builder.store(builder.or_(builder.load(found), entry), found)
        different = builder.icmp_signed("!=", builder.load(found), zero)
        return builder.icmp_signed("!=", builder.bitcast(different, ir.IntType(WIDTH)), ir.Constant(ir.IntType(WIDTH), 0))

    return types.boolean(array), codegen


@intrinsic
def add_multiple(typing_context, array, factor, other):
    """array += factor * other for float32 arrays [C]; C is a multiple of 16."""

    def codegen(context, builder, signature, arguments):
        (one, _, two), (array, factor, other), number = signature.args, arguments, ir.FloatType()
        size = _number(context, builder, one, array)
        array, other = _pointer(context, builder, one, array, number), _pointer(context, builder, two, other, number)
        vector = ir.VectorType(number, WIDTH)
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0))
        factor = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), None))
        with cgutils.for_range(builder, size) as loop:
            place = builder.gep(array, [loop.index])
            product = builder.fmul(builder.load(builder.gep(other, [loop.index]), align=64), factor, flags=["contract"])
            total = builder.fadd(builder.load(place, align=64), product, flags=["contract"])
            builder.store(total, place, align=64)
        return context.get_dummy_value()

    return types.none(array, factor, other), codegen


@inlined
def _draw(keys, pair, words):
    """The words of two steps."""
    for lane in range(words.shape[1]):
        words[0, lane], words[1, lane] = threefry(keys[0, lane], keys[1, lane], _U(pair), STEP)


@inlined(fastmath=FUSED)
def _odds(gain):
    """2^gain, clipped."""
    return exp2(min(max(gain, _LOWEST), _HIGHEST))


@inlined(fastmath=FUSED)
def _uniform(word):
    """A uniform number on (0, 1], the middle of the interval of a word."""
    return _F(word) * _UNIT + _HALF * _UNIT


@inlined(fastmath=FUSED)
def _try(gibbs, spins, coupled, y, rate, words, linear, scale, tilt, change):
    """Decides for all lanes whether a site flips; returns whether any lane does. Arrays are [C]."""
    if gibbs:
        for lane in range(change.shape[0]):
            spin = _F(spins[lane])
            odds = _odds(-spin * ((linear + scale * coupled[lane]) * rate[lane] + tilt * y[lane]))
            change[lane] = -spin if _uniform(words[lane]) * (_ONE + odds) < odds else _NOTHING
    else:
        for lane in range(change.shape[0]):
            spin = _F(spins[lane])
            gain = -spin * ((linear + scale * coupled[lane]) * rate[lane] + tilt * y[lane])
            odds = _odds(gain if gain != _NOTHING else _TIE)
            change[lane] = -spin if _uniform(words[lane]) < odds else _NOTHING
    return any_nonzero(change)


@inlined(fastmath=FUSED)
def _add_to_window(window, coupled, linear, change):
    for lane in range(change.shape[0]):
        window[0, lane] += change[lane] * linear
        window[1, lane] += change[lane] * coupled[lane]
        window[2, lane] += abs(change[lane])


@inlined(fastmath=FUSED)
def _move(target, lanes, site, linear):
    """Flips a site in the lanes that do."""
    change, row = lanes.change, lanes.spins[site]
    _add_to_window(lanes.window, lanes.coupled[site], linear, change)
    for lane in range(change.shape[0]):
        row[lane] += np.int8(_TWO * change[lane])
    for k in range(target.starts[site], target.starts[site + _NEXT]):
        add_multiple(lanes.coupled[_P(target.neighbours[k])], target.weights[k], change)


@inlined(fastmath=FUSED)
def _turn(mean, change, collected):
    """As `chunk.turn`, for one site: the change of x is half that of the spin."""
    for lane in range(change.shape[0]):
        mean[lane] -= _TWO * collected * change[lane]


@inlined
def _set_keys(lanes):
    for lane in range(lanes.place.shape[0]):
        place = lanes.place[lane]
        lanes.lane_keys[0, lane], lanes.lane_keys[1, lane] = lanes.keys[0, place], lanes.keys[1, place]


@inlined
def _set_rates(lanes, rates, step):
    """log2(e)/temperature of all lanes at a step."""
    if rates.shape[0] == 1:
        rate = rates[0, step] * LOG2E
        for lane in range(lanes.rate.shape[0]):
            lanes.rate[lane] = rate
    else:
        for lane in range(lanes.rate.shape[0]):
            lanes.rate[lane] = rates[lanes.row[lanes.place[lane]], step] * LOG2E


@called
def _close_window(lanes):
    """Adds the changes in the window to the sums."""
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
        field, spins, linear = lanes.coupled[site], lanes.spins[site], np.float64(target.linear[site])
        if not target.whole:
            field[:] = _NOTHING
            for k in range(target.starts[site], target.starts[site + _NEXT]):
                others, weight = lanes.spins[_P(target.neighbours[k])], target.weights[k]
                for lane in range(field.shape[0]):
                    field[lane] += weight * (_F(others[lane]) * _HALF + _HALF)
        for lane in range(field.shape[0]):
            x = np.float64(spins[lane]) * 0.5 + 0.5
            lanes.sums[0, lane] += x * linear
            lanes.sums[1, lane] += x * 0.5 * np.float64(field[lane])


@called
def _keep_better(lanes, scale, k, best):
    """Compares all lanes with the best values k of their places, and keeps better states in `best`."""
    in_long_vectors()
    improved, moved = False, False
    for lane in range(lanes.place.shape[0]):
        place = lanes.place[lane]
        value = lanes.sums[0, lane] + np.float64(scale) * lanes.sums[1, lane]
        better = value > lanes.values[k, place]
        lanes.better[lane] = np.int8(-1) if better else np.int8(0)
        if better:
            lanes.values[k, place] = value
            lanes.found[k, place] = True
            improved = True
        moved |= place != lane
    if improved and not moved:
        for site in range(_P(best.shape[0])):
            kept, spins = best[site], lanes.spins[site]
            for lane in range(kept.shape[0]):
                kept[lane] = spins[lane] if lanes.better[lane] else kept[lane]
    elif improved:
        for lane in range(lanes.place.shape[0]):
            if lanes.better[lane]:
                for site in range(_P(best.shape[0])):
                    best[site, lanes.place[lane]] = lanes.spins[site, lane]


@called(fastmath=FUSED)
def _end_level(lanes, number, collected, drift, spread):
    """As `chunk.move`: y + drift U + spread Z, with the same normal numbers, and an empty posterior mean."""
    in_long_vectors()
    for lane in range(lanes.place.shape[0]):
        keys = lanes.observation_keys
        lanes.words[0, lane], lanes.words[1, lane] = threefry(keys[0, lane], keys[1, lane], _U(number), FOLD)
    y, mean, spins, first, second = lanes.y, lanes.mean, lanes.spins, lanes.window[0], lanes.window[1]
    half = _P(y.shape[0] // 2)
    for site in range(half):
        for lane in range(first.shape[0]):
            one, other = threefry(lanes.words[0, lane], lanes.words[1, lane], _U(site), DRAW)
            first[lane] = (_F(one) + _HALF) * _UNIT
            second[lane] = _F(other) * _UNIT - _HALF
        for lane in range(first.shape[0]):
            one, other = normal_pair(first[lane], second[lane])
            y[site, lane] += drift * (mean[site, lane] + collected * _F(spins[site, lane])) + spread * one
            y[half + site, lane] += (
                drift * (mean[half + site, lane] + collected * _F(spins[half + site, lane])) + spread * other
            )
            mean[site, lane] = mean[half + site, lane] = _NOTHING
    lanes.window[:] = 0


@called
def _exchange(lanes, scale, ladder, rates, step, parity, number, exchanged):
    """Tries the pairs of one parity, as `single_site.exchange`; states stay in their lanes, and places move.

    Args:
      lanes: modified in place.
      scale: of K.
      ladder: R.
      rates: [R, T] 1/temperature.
      step: the last one, as an index into them.
      parity: of the places r of the pairs (r, r + 1).
      number: of the last step.
      exchanged: [C] output.
    """
    for first in range(0, exchanged.shape[0], ladder):
        for place in range(first + parity, first + ladder - 1, 2):
            lane, other = lanes.lane_of[place], lanes.lane_of[place + 1]
            gained = lanes.sums[0, other] - lanes.sums[0, lane]
            gained += np.float64(scale) * (lanes.sums[1, other] - lanes.sums[1, lane])
            rate = np.float64(rates[lanes.row[place], step]) - np.float64(rates[lanes.row[place + 1], step])
            keys = lanes.observation_keys
            word, _ = threefry(keys[0, place], keys[1, place], _U(number), DRAW)
            if uniform(word) < np.exp(min(rate * gained, 0.0)):
                exchanged[place] = True
                lanes.place[lane], lanes.place[other] = place + 1, place
                lanes.lane_of[place], lanes.lane_of[place + 1] = other, lane


@called
def _log(lanes, scale, every, ladder, interval, found):
    """Writes the records of an interval."""
    for place in range(found.values.shape[1]):
        lane = lanes.lane_of[place]
        found.values[interval, place] = lanes.sums[0, lane] + np.float64(scale) * lanes.sums[1, lane]
        found.hops[interval, place] = lanes.sums[2, lane] / every
    lanes.sums[2] = 0
    for k in range(found.states.shape[1] if found.states.shape[0] else 0):
        state, lane = found.states[interval, k], lanes.lane_of[k * ladder]
        for site in range(_P(state.shape[0])):
            state[site] = lanes.spins[site, lane] > 0


@entered
def play(gibbs, program, changed, target, lanes, ladder, first_step, sweep, row, found):
    """Runs L intervals of T/L steps.

    Args:
      gibbs: the acceptance rule, as in `single_site`.
      program: the slice of the program, `chunk.Program`.
      changed: [T] whether a temperature or the level differs from those of the step before.
      target: f.
      lanes: modified in place.
      ladder: R.
      first_step: number of the first step.
      sweep: number of the sweep that contains it.
      row: its number in the sweep.
      found: the records, output.
    """
    in_long_vectors()
    intervals = found.values.shape[0]
    every = changed.shape[0] // max(intervals, 1)
    levels, level, localized = program.levels, program.level, program.localized
    tilt, collected, share, weight, last, uncounted = _NOTHING, _NOTHING, _NOTHING, _NOTHING, 0, 0
    if localized:
        last = levels.last[level] + 1
    tilted, num_open = _P(1 if localized else 0), target.sites.shape[0]
    step, number = 0, first_step
    _set_keys(lanes)
    for interval in range(intervals):
        end, drawn = (interval + 1) * every, False
        while step < end and num_open > 0:
            if changed[step]:
                if localized:
                    if number > last:
                        _close_window(lanes)
                        _end_level(lanes, last, collected, levels.drift[level], levels.noise[level])
                        level, collected, drawn = level + 1, _NOTHING, False
                    last, tilt = levels.last[level] + 1, _TWO * LOG2E * levels.tilt_scale[level]
                    uncounted, share = last - levels.collected[level], _ONE / _F(levels.collected[level])
                _set_rates(lanes, program.rate, step)
            stop = min(end, step + num_open - row, step + _WINDOW - number % _WINDOW)
            if localized:
                weight = share if number > uncounted else _NOTHING
                stop = min(stop, step + 1 + (last if number > uncounted else uncounted) - number)
            while True:
                if number & 1 == 0 or not drawn:
                    _draw(lanes.lane_keys, number >> 1, lanes.words)
                    drawn = True
                site = _P(target.sites[_P(row)])
                linear = target.linear[site]
                if _try(
                    gibbs, lanes.spins[site], lanes.coupled[site], lanes.y[site * tilted], lanes.rate,
                    lanes.words[_P(number & 1)], linear, target.scale, tilt, lanes.change,
                ):  # fmt: skip
                    _move(target, lanes, site, linear)
                    if localized:
                        _turn(lanes.mean[site], lanes.change, collected)
                collected += weight
                number, row, step = number + 1, row + 1, step + 1
                if step >= stop or changed[_P(step)]:
                    break
            if row == num_open or step == end or number % _WINDOW == 0:
                _close_window(lanes)
            if row == num_open:
                row, sweep = 0, sweep + 1
                if sweep % REFRESHED == 0:
                    _refresh(target, lanes)
                _keep_better(lanes, target.scale, 0, lanes.best)
        if num_open == 0:
            step, number = step + every, number + every
        _log(lanes, target.scale, every, ladder, interval, found)
        _keep_better(lanes, target.scale, 0, lanes.best)
        _keep_better(lanes, target.scale, 1, lanes.best_logged)
        if ladder > 1:
            parity = (number - 1) // every % 2
            _exchange(lanes, target.scale, ladder, program.rate, step - 1, parity, number - 1, found.exchanged[interval])
            _set_keys(lanes)
            _set_rates(lanes, program.rate, step - 1)
            _keep_better(lanes, target.scale, 0, lanes.best)
    if localized and num_open > 0:
        if number > last:
            _end_level(lanes, last, collected, levels.drift[level], levels.noise[level])
        else:
            for site in range(_P(lanes.mean.shape[0])):
                for lane in range(lanes.place.shape[0]):
                    lanes.mean[site, lane] += collected * _F(lanes.spins[site, lane])


# Instances, chains and records in the form of lanes.

# The largest number of chains in a block, and the smallest one that is worth a thread of its own.
_MOST, _FEWEST = 64, 32


def make_targets(model: QuadraticModel, batch: Batch) -> list[Target]:
    """The instances in the form of the loop."""
    params, num_sites, mask = batch.params, model.num_sites, np.asarray(batch.mask)
    instance, site, neighbour, weight = params.coupling.entries(num_sites)
    used = mask.copy()
    used[instance, site] = True
    first = np.searchsorted(instance, np.arange(len(mask) + 1))
    linear, scale = np.asarray(params.linear, np.float32), np.asarray(params.scale, np.float32)

    def one(g):
        size = _whole(num_sites - int(np.argmax(used[g, ::-1])))
        here = slice(first[g], first[g + 1])
        counts = np.bincount(site[here], minlength=size)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
        kept = np.zeros(size, np.float32)
        kept[:num_sites] = linear[g, :size]
        lists = starts, neighbour[here].astype(np.uint32), weight[here].astype(np.float32)
        return Target(kept, scale[g], *lists, weight.dtype == np.int8, np.flatnonzero(mask[g]).astype(np.uint32))

    return [one(g) for g in range(len(mask))]


def _whole(size: int) -> int:
    return -(-size // WIDTH) * WIDTH


def make_blocks(steps: np.ndarray, ladder: int, threads: int) -> list[np.ndarray]:
    """The chains of each block, as numbers g B + b.

    Args:
      steps: [G, B] steps done, which must be the same in a block.
      ladder: R, whole ladders are in one block.
      threads: that play blocks.
    """
    blocks = []
    for g, done in enumerate(steps.reshape(len(steps), -1, ladder)[:, :, 0]):
        for number in np.unique(done):
            ladders = np.flatnonzero(done == number) + g * len(done)
            most = max(1, _MOST // ladder)
            parts = -(-len(ladders) // most)
            parts = max(parts, min(-(-threads // len(steps)), len(ladders) * ladder // _FEWEST))
            blocks += [
                (some[:, None] * ladder + np.arange(ladder)).ravel() for some in np.array_split(ladders, parts)
            ]
    return blocks


class _Chains(NamedTuple):
    """`ChainStates` with chains [G B], modified in place."""

    x: np.ndarray
    coupled: np.ndarray
    linear: np.ndarray
    pairs: np.ndarray
    y: np.ndarray | None
    mean: np.ndarray | None
    best: np.ndarray
    best_x: np.ndarray
    best_logged: np.ndarray
    best_logged_x: np.ndarray


def _flat(leaf) -> np.ndarray:
    leaf = np.array(leaf)
    return leaf.reshape(-1, *leaf.shape[2:])


def _play_block(gibbs, program, changed, target, ladder, keys, chains, block, first_step, steps, found):
    """Runs the chains of a block, and writes their states and records."""
    # Lanes that are left play the last chain once more, so that they add no flips of their own.
    places = block[np.minimum(np.arange(_whole(len(block))), len(block) - 1)]
    localized = program.localized
    lanes = make_lanes(len(target.linear), len(places), localized)
    size = min(chains.x.shape[1], len(target.linear))
    lanes.keys[:], lanes.observation_keys[:] = keys.mcmc[places].T, keys.observation[places].T
    lanes.row[:] = places % program.rate.shape[0]
    lanes.spins[:] = -1
    lanes.spins[:size] += 2 * chains.x[places, :size].T
    lanes.coupled[:size] = chains.coupled[places, :size].T
    lanes.sums[0], lanes.sums[1] = chains.linear[places], chains.pairs[places]
    lanes.values[0], lanes.values[1] = chains.best[places], chains.best_logged[places]
    if localized:
        lanes.y[:size], lanes.mean[:size] = chains.y[places, :size].T, chains.mean[places, :size].T
    intervals, num_states, count = len(found.values), len(found.states), len(block)
    records = Found(
        *(np.zeros((intervals, count), np.float32) for _ in range(2)),
        np.zeros((intervals if ladder > 1 else 0, count), bool),
        np.zeros((num_states, count // ladder, size), np.int8),
    )
    num_open = max(len(target.sites), 1)
    play(gibbs, program, changed, target, lanes, ladder, first_step, steps // num_open, steps % num_open, records)
    found.values[:, block] = records.values
    found.acceptances[:, block] = found.hops[:, block] = records.hops
    if ladder > 1:
        found.exchanged[:, block] = records.exchanged
    if num_states:
        first = block[::ladder]
        found.states[:, first // ladder, size:] = chains.x[first, size:]
        found.states[:, first // ladder, :size] = records.states
    lane_of = lanes.lane_of[:count]
    chains.x[block, :size] = lanes.spins[:size, lane_of].T > 0
    chains.coupled[block, :size] = lanes.coupled[:size, lane_of].T
    chains.linear[block], chains.pairs[block] = lanes.sums[:2, lane_of]
    if localized:
        chains.y[block, :size], chains.mean[block, :size] = lanes.y[:size, :count].T, lanes.mean[:size, :count].T
    for k, (values, states, kept) in enumerate(
        ((chains.best, chains.best_x, lanes.best), (chains.best_logged, chains.best_logged_x, lanes.best_logged))
    ):
        better = np.flatnonzero(lanes.found[k, :count])
        values[block[better]] = lanes.values[k, better]
        states[block[better], :size] = kept[:size, better].T > 0


def make_play(
    sampler: SingleSiteSampler, model: QuadraticModel, batch: Batch, program: Program, part, threads, run
) -> Play:
    """`Engine.prepare` of this loop.

    Args:
      sampler: gibbs or metropolis with a sequential scan.
      model: of f.
      batch: instances and keys.
      program: of the whole run.
      part: makes the slice of it, `chunk.Program`, from the steps done, the number of intervals and their length.
      threads: number of them.
      run: plays tasks in threads.
    """
    targets, gibbs, keys = make_targets(model, batch), type(sampler) is Gibbs, StepKeys(*map(_flat, batch.keys))

    def advance(before, done, intervals, every):
        chain, state, observation = before.chain, before.chain.sampler, before.chain.observation
        num_instances, num_chains, num_sites = shape = np.shape(chain.x)
        chains = _Chains(
            *map(_flat, (chain.x, chain.field.coupled, chain.field.linear, chain.field.pairs)),
            *((None, None) if observation is None else map(_flat, observation)),
            *map(_flat, (before.best.value, before.best.x, before.best_logged.value, before.best_logged.x)),
        )
        steps, here = np.asarray(state.steps), part(done, intervals, every)
        changed = here.refresh.any(axis=0)
        found = make_recorded(program, intervals, *shape)

        def play_block(block):
            g, first = divmod(block[0], num_chains)
            _play_block(
                gibbs, here, changed, targets[g], program.ladder, keys, chains, block, done + 1, int(steps[g, first]),
                found,
            )  # fmt: skip

        run(play_block, make_blocks(steps, program.ladder, threads))
        back = [None if leaf is None else leaf.reshape(num_instances, num_chains, *leaf.shape[1:]) for leaf in chains]
        x, coupled, linear, pairs, y, mean, *best = back
        played = np.int32(intervals * every)
        state = state._replace(
            steps=steps + played, num_ll_calls=np.asarray(state.num_ll_calls) + sampler.calls_a_step * played
        )
        observation = None if observation is None else Observation(y, mean)
        after = Chain(x, QuadraticField(coupled, linear, pairs), state, observation)
        return ChainStates(after, Best(*best[:2]), Best(*best[2:])), as_trace(program, found, *shape)

    return advance
