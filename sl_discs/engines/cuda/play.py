"""The loop over the steps of a chain, with the levels of localization and the records, and its
kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sl_discs.engines.cuda.registers import (
    BITS,
    HALF,
    NEVER,
    PLANES,
    RECOMPUTED,
    TWO,
    ZERO,
    KernelKind,
    Lane,
    Shared,
    WarpInputs,
    WarpTarget,
    f32,
    i32,
    index,
    make_chain,
    make_random,
    u32,
)
from sl_discs.engines.cuda.warp import WIDTH, Warp


class Numbers(NamedTuple):
    """The numbers of a sampler.

    Attributes:
      num_flips: of a path that does not adapt.
      adaptive: whether its scale adapts.
      adapt_until: step at which adaptation ends; 0: never.
      target: acceptance to which it adapts.
      offset: -1/(2 step_size) of a fixed scaling, otherwise log n is used.
    """

    num_flips: np.int32
    adaptive: np.bool_
    adapt_until: np.int32
    target: np.float32
    offset: np.float32


class Instances(NamedTuple):
    """G targets, with P = S T sites, of which those beyond N do not exist.

    Attributes:
      rows: [G, N P/4] words of four couplings, or [G, N P] float32. Entry (i E + j) T + t is the
        j-th of the E of lane t in the row of site i.
      linear: [G, P].
      scale: [G].
      is_open: [G, P] int8 whether a site may flip.
      open_sites: [G, P] int32 those that may, then others.
      num_open: [G] their number.
      num_sites: N.
      most_packed: number of rows whose sum fits into packed bytes.
    """

    rows: Any
    linear: Any
    scale: Any
    is_open: Any
    open_sites: Any
    num_open: Any
    num_sites: Any
    most_packed: Any


class Steps(NamedTuple):
    """A part of a program: L intervals of E steps.

    Attributes:
      half_rate: [R, L E] 1/(2 temperature), of which chain c has row c modulo R.
      every: E.
      done: steps done before.
      level: number of the first step's level.
      tilt_scale: [K], like the following of `localization.schedule.Levels`.
    """

    half_rate: Any
    every: Any
    done: Any
    level: Any
    tilt_scale: Any
    last: Any
    collected: Any
    drift: Any
    noise: Any


def make_play(warp: Warp, kind: KernelKind) -> Callable:
    """Returns the function that plays one chain, compiled for a warp."""
    jit = warp.jit
    localized = kind.localized
    whole = kind.whole
    sites = kind.sites
    chain = make_chain(warp, kind)
    random = make_random(warp)
    step_chain = kind.step(warp, kind)
    bit = chain.bit
    word_of = chain.word_of
    recompute = chain.recompute
    total_linear = chain.total_linear
    threefry = random.threefry
    normals = random.normals
    wait = warp.wait
    words = chain.words
    threads = chain.threads

    @jit
    def count_spins(lane: Lane):
        """Adds 1 to the count of each site whose spin is 1, one bit of all counts after the
        other.
        """
        for q in range(words):
            carry = lane.spins[q]
            for p in range(PLANES):
                plane = lane.counts[p * words + q]
                lane.counts[p * words + q] = u32(plane ^ carry)
                carry = u32(plane & carry)

    @jit
    def add_counts(lane: Lane, mean, counted, thread):
        """Adds the spins of the counted steps to their sum, and begins to count anew."""
        for m in range(sites):
            ones = u32(0)
            for p in range(PLANES):
                ones += ((lane.counts[p * words + word_of(m)] >> u32(m & 31)) & u32(1)) << u32(p)
            mean[index(m * threads + thread)] += TWO * f32(ones) - f32(counted)
        for q in range(PLANES * words):
            lane.counts[q] = u32(0)

    @jit
    def move(shared: Shared, mean, key0, key1, number, drift, noise, thread):
        """Moves the observation to the next level: y + drift U + noise Z, with an empty mean."""
        for m in range(0, sites, 2):
            first, second = threefry(key0, key1, number, u32((thread * sites + m) >> 1))
            first_normal, second_normal = normals(first, second)
            here = index(m * threads + thread)
            next_one = index((m + 1) * threads + thread)
            shared.y[here] += drift * mean[here] + noise * first_normal
            shared.y[next_one] += drift * mean[next_one] + noise * second_normal
            mean[here] = ZERO
            mean[next_one] = ZERO

    @jit
    def observe(lane: Lane, shared: Shared, y, mean, collected, thread):
        """Reads the observation, and makes the mean a sum, in the order in which lanes find it
        together.
        """
        for m in range(sites):
            shared.y[index(m * threads + thread)] = y[index(thread * sites + m)]
            # A whole number.
            lane.other[m] = f32(
                i32(math.floor(mean[index(thread * sites + m)] * f32(collected) + HALF))
            )
        wait()
        for m in range(sites):
            mean[index(m * threads + thread)] = lane.other[m]

    @jit
    def keep_observation(lane: Lane, shared: Shared, y, mean, collected, thread):
        """Writes the observation and the mean in the order of the sites."""
        for m in range(sites):
            y[index(thread * sites + m)] = shared.y[index(m * threads + thread)]
            lane.other[m] = mean[index(m * threads + thread)] / f32(collected)
        wait()
        for m in range(sites):
            mean[index(thread * sites + m)] = lane.other[m]

    @jit
    def enter(lane: Lane, instances, chains, g, c, thread):
        for q in range(words):
            lane.spins[q] = u32(0)
            lane.best[q] = u32(0)
            lane.logged[q] = u32(0)
            lane.flips[q] = u32(0)
        for q in range(PLANES * words):
            lane.counts[q] = u32(0)
        x = chains.x[c]
        coupled = chains.coupled[c]
        best_x = chains.best_x[c]
        logged_x = chains.best_logged_x[c]
        linear = instances.linear[g]
        is_open = instances.is_open[g]
        for m in range(sites):
            i = index(thread * sites + m)
            up = x[i] > 0
            lane.coupled[m] = coupled[i]
            lane.linear[m] = linear[i]
            if is_open[i] == 0:
                lane.linear[m] = NEVER if up else -NEVER
            word = word_of(m)
            place = u32(m & 31)
            lane.spins[word] |= u32(up) << place
            lane.best[word] |= u32(best_x[i] > 0) << place
            lane.logged[word] |= u32(logged_x[i] > 0) << place

    @jit
    def leave(lane: Lane, chains, c, thread):
        x = chains.x[c]
        coupled = chains.coupled[c]
        best_x = chains.best_x[c]
        logged_x = chains.best_logged_x[c]
        for m in range(sites):
            i = index(thread * sites + m)
            x[i] = np.int8(bit(lane.spins, m))
            best_x[i] = np.int8(bit(lane.best, m))
            logged_x[i] = np.int8(bit(lane.logged, m))
            coupled[i] = lane.coupled[m]

    @jit
    def level_of(steps, level):
        """Returns the factor of the observation in the tilt, in bits, and the level's last and
        counted steps.
        """
        return BITS * steps.tilt_scale[level], i32(steps.last[level]), i32(steps.collected[level])

    @jit
    def play(
        numbers,
        instances,
        chains,
        steps,
        records,
        c,
        per_instance,
        thread,
        lane: Lane,
        shared: Shared,
    ):
        g = c // per_instance
        target = WarpTarget(
            instances.rows[index(g)],
            instances.scale[g],
            instances.open_sites[g],
            i32(instances.num_open[g]),
            instances.num_sites,
            instances.most_packed,
        )
        enter(lane, instances, chains, g, c, thread)
        key0 = chains.keys[c, 0]
        key1 = chains.keys[c, 1]
        linear = chains.linear[c]
        pairs = chains.pairs[c]
        pace = chains.pace[c]
        # Already of the type of its sums; otherwise numba would compile the whole step for both
        # types.
        sampled = np.int64(chains.steps[c])
        best = chains.best[c]
        logged = chains.best_logged[c]
        row = c % steps.half_rate.shape[0]
        level = i32(steps.level)
        counted = 0
        pull = ZERO
        last = i32(0)
        collected = i32(1)
        y = chains.y[c]
        mean = chains.mean[c]
        if localized:
            pull, last, collected = level_of(steps, level)
            observe(lane, shared, y, mean, collected, thread)
        at = i32(steps.done)
        num_steps = steps.half_rate.shape[1]
        end = at + num_steps - 1
        next_rate = BITS * steps.half_rate[row, 0] if num_steps > 0 else ZERO
        for interval in range(records.value.shape[0]):
            sum_acceptance = ZERO
            sum_hops = ZERO
            for _ in range(steps.every):
                number = u32(at + 1)
                inputs = WarpInputs(next_rate, pull, key0, key1, number, sampled)
                # A step ahead, as nothing else hides its latency.
                next_rate = (
                    BITS
                    * steps.half_rate[index(row), index(min(at + 1 - steps.done, num_steps - 1))]
                )
                if at % RECOMPUTED == 0:
                    linear = total_linear(lane, shared, instances.linear[g], thread)
                    if not whole:
                        pairs = recompute(lane, shared, target, thread)
                wait()
                acceptance, accepted, flips, more_linear, more_pairs, pace = step_chain(
                    numbers, lane, shared, target, inputs, pace, thread
                )
                sampled += 1
                sum_acceptance += acceptance
                if accepted:
                    sum_hops += f32(flips)
                    linear += more_linear
                    pairs += more_pairs
                value = linear + target.scale * pairs
                if value > best:
                    best = value
                    for q in range(words):
                        lane.best[q] = lane.spins[q]
                if localized:
                    left = last - at
                    if left >= 0 and left < collected:
                        count_spins(lane)
                        counted += 1
                    if counted == (1 << PLANES) - 1 or left == 0 or at == end:
                        add_counts(lane, mean, counted, thread)
                        counted = 0
                    if left == 0:
                        drift = steps.drift[level] / f32(collected)
                        key2 = chains.observation_keys[c, 0]
                        key3 = chains.observation_keys[c, 1]
                        move(shared, mean, key2, key3, number, drift, steps.noise[level], thread)
                        level = min(level + 1, steps.last.shape[0] - 1)
                        pull, last, collected = level_of(steps, level)
                at += 1
            value = linear + target.scale * pairs
            if value > logged:
                logged = value
                for q in range(words):
                    lane.logged[q] = lane.spins[q]
            if interval < records.states.shape[0]:
                states = records.states[interval, c]
                for m in range(sites):
                    states[index(thread * sites + m)] = np.int8(bit(lane.spins, m))
            if thread == 0:
                records.value[interval, c] = value
                records.acceptance[interval, c] = sum_acceptance / f32(steps.every)
                records.hops[interval, c] = sum_hops / f32(steps.every)
        if localized:
            keep_observation(lane, shared, y, mean, collected, thread)
        leave(lane, chains, c, thread)
        if thread == 0:
            chains.linear[c] = linear
            chains.pairs[c] = pairs
            chains.pace[c] = pace
            chains.steps[c] = sampled
            chains.best[c] = best
            chains.best_logged[c] = logged

    return play


# Bytes of shared memory that a block has on every card.
_SHARED = 48 << 10
# Kernels with many sites a lane would take more registers than a multiprocessor has for this many
# warps: told to leave room for them, the compiler gives each thread 168, and keeps a few words in
# memory. Kernels with fewer sites need less, and would take more if they were told so.
_WARPS = 12
_MANY_SITES = 24


def needed_by(kind: KernelKind) -> dict[str, bool]:
    """Returns which numbers of all sites in `Shared` a kind needs, the most used ones first."""
    return {"sums": kind.has_sums, "weights": kind.has_weights, "y": kind.localized}


def outside(kind: KernelKind, threads: int) -> list[str]:
    """Returns which of these numbers do not fit into shared memory: they are in the card's, by way
    of its caches.
    """
    num_sites = kind.sites * threads
    num_words = -(-kind.sites // 32)
    left = _SHARED - 2 * num_sites - 4 * (2 * num_words * threads + threads + WIDTH + 3)
    names = []
    for name, needed in needed_by(kind).items():
        if needed and left < 4 * num_sites:
            names.append(name)
        elif needed:
            left -= 4 * num_sites
    return names


def make_kernel(cuda: Any, warp: Warp, kind: KernelKind) -> Any:
    """Returns the kernel of a GPU; block c plays chain c."""
    play = make_play(warp, kind)
    sites = kind.sites
    threads = warp.lanes * warp.warps
    words = -(-sites // 32)
    quads = sites // 4
    counts = PLANES * words
    capacity = sites * threads
    bits = words * threads
    needed = needed_by(kind)
    absent = outside(kind, threads)
    # Their sizes in shared memory, and their places in the card's.
    summed, weighed, observed = (capacity if needed[name] else 1 for name in needed)
    sums_at, weights_at, y_at = (absent.index(name) if name in absent else -1 for name in needed)
    f4 = np.float32
    u4 = np.uint32
    u2 = np.uint16

    def kernel(numbers, instances, chains, steps, records, memory, per_instance):
        c = cuda.blockIdx.x
        lane = Lane(
            coupled=cuda.local.array(sites, f4),
            other=cuda.local.array(sites, f4),
            linear=cuda.local.array(sites, f4),
            logits=cuda.local.array(sites, f4),
            spins=cuda.local.array(words, u4),
            flips=cuda.local.array(words, u4),
            best=cuda.local.array(words, u4),
            logged=cuda.local.array(words, u4),
            counts=cuda.local.array(counts, u4),
            packed=cuda.local.array(quads, u4),
        )
        shared = Shared(
            sums=memory[c, sums_at] if sums_at >= 0 else cuda.shared.array(summed, f4),
            weights=memory[c, weights_at] if weights_at >= 0 else cuda.shared.array(weighed, f4),
            runs=cuda.shared.array(threads, f4),
            partial=cuda.shared.array(WIDTH, f4),
            spins=cuda.shared.array(bits, u4),
            flips=cuda.shared.array(bits, u4),
            listed=cuda.shared.array(capacity, u2),
            y=memory[c, y_at] if y_at >= 0 else cuda.shared.array(observed, f4),
        )
        play(
            numbers,
            instances,
            chains,
            steps,
            records,
            c,
            per_instance,
            cuda.threadIdx.x,
            lane,
            shared,
        )

    shared_out = kind.has_sums and sites >= _MANY_SITES
    bounds = (threads, max(_WARPS // warp.warps, 1)) if shared_out else threads
    return cuda.jit(kernel, fastmath=True, launch_bounds=bounds)
