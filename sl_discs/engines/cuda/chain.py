"""A chain in the registers of its lanes: fields, flips of sites, and the values that follow from them.

A lane has S sites, a constant of the compiled kernel: loops over them are unrolled, and the arrays of a lane are
registers. Spins are bits of words. Whole couplings are stored as bytes, four sites a word: a word is the sum of
w_k 256^k, so that rows of several flips are added as words, exactly while the sums are between -128 and 127.
Sums Kx are whole numbers in float32, and exact. Real couplings are float32, and so are their sums, which are computed
anew every `RECOMPUTED` steps, as c.x is: after 40,000 steps on 100 fully coupled sites, sums Kx are within 1e-4 of
the exact ones.

Sites that may not flip have a field of 1e30 against it, so that nothing needs to ask for a mask.
"""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from sl_discs.engines.cuda.warp import Warp
from sl_discs.keys import COSINE, SINE, make_words

f32, i32, u32 = np.float32, np.int32, np.uint32
# Of an index: without a sign, as numba takes a negative one for one from the end, which costs a test and registers.
index = np.uint64
ZERO, HALF, ONE, TWO = f32(0), f32(0.5), f32(1), f32(2)
# A field that no temperature overcomes, and the rate 1/temperature below which the target is uniform.
NEVER, LEAST_RATE = f32(1e30), f32(1e-25)
# Less than any value of f.
LOWEST = f32(-3e38)
# Logits are in bits, as the hardware's exponential has base 2: log2(e) nats.
BITS = f32(1 / math.log(2))
# Steps after which sums of real coefficients are computed anew.
RECOMPUTED = 4096
# Rows that are requested before the first of them is used, and added to the packed sums together.
TOGETHER = 2
# The largest whole coupling that is stored as a byte: the packed sums must hold `TOGETHER` of them.
MOST_PACKED = 127 // TOGETHER
TO_UNIT = f32(2.0**-32)
_BIAS, _BIASED_ZERO = u32(0x80808080), f32(128)


class Lane(NamedTuple):
    """The registers of a lane with S sites, in `words` = S/32 words of bits.

    Attributes:
      coupled: [S] Kx.
      other: [S] Ky of the proposal y.
      linear: [S] c, or `NEVER` against flipping.
      logits: [S] of the last call of `weigh`.
      spins: [words] x.
      flips: [words] the sites at which y differs.
      best: [words] best state over every step.
      logged: [words] best state over the logged steps.
      counts: [PLANES words] bits of the number of steps at which each spin was 1, since they were added to the mean.
      packed: [S/4] sums of packed rows.
    """

    coupled: Any
    other: Any
    linear: Any
    logits: Any
    spins: Any
    flips: Any
    best: Any
    logged: Any
    counts: Any
    packed: Any


class Shared(NamedTuple):
    """Memory that the T lanes of a chain share.

    Attributes:
      sums: [S T] running sum of the weights of each lane.
      weights: [S T] weights of the sites; empty where nothing needs them.
      runs: [T] running sum of the lanes' weights.
      partial: [32] for the collectives.
      spins: [words T] x.
      flips: [words T] the sites at which y differs.
      listed: [S T] codes of the sites that flip, twice the site plus its x, in the order of the draws; at its end,
        those of repeated draws.
      single: [1] a number of one lane for all.
      y: [S T] the observation, which as registers would leave room for fewer chains.
    """

    sums: Any
    weights: Any
    runs: Any
    partial: Any
    spins: Any
    flips: Any
    listed: Any
    single: Any
    y: Any


# Planes of `Lane.counts`: with P of them up to 2^P - 1 steps are counted before they must be added to the mean.
PLANES = 6


@functools.cache
def make_random(warp: Warp) -> SimpleNamespace:
    """Returns the generator of `sl_discs.keys` and what is made of its words, compiled for a warp."""
    jit = warp.jit
    threefry, uniform = make_words(jit)

    @jit
    def normals(first, second):
        radius = f32(math.sqrt(f32(-2) * f32(math.log((f32(first) + HALF) * TO_UNIT))))
        half = f32(second) * TO_UNIT - HALF
        square = half * half
        sine, cosine = f32(SINE[4]), f32(COSINE[4])
        for power in range(3, -1, -1):
            sine = sine * square + f32(SINE[power])
            cosine = cosine * square + f32(COSINE[power])
        sine *= half
        return radius * (ONE - TWO * sine * sine), radius * (TWO * sine * cosine)

    return SimpleNamespace(threefry=threefry, uniform=uniform, normals=normals)


@functools.cache
def make_chain(warp: Warp, sites: int, whole: bool, localized: bool) -> SimpleNamespace:
    """Returns the operations on a chain, compiled for a warp.

    Args:
      warp: the lanes of a chain.
      sites: S of each lane, a multiple of 4.
      whole: whether couplings are whole numbers, stored as packed bytes.
      localized: whether an observation tilts the target.
    """
    jit, lanes, warps = warp.jit, warp.lanes, warp.warps
    wait, total, totals, largest, first, get, lowest = (
        warp.wait, warp.total, warp.totals, warp.largest, warp.first, warp.get, warp.lowest,
    )  # fmt: skip
    threads = lanes * warps
    words, quads = -(-sites // 32), sites // 4

    @jit
    def word_of(m):
        """Returns the word of a site's bit: a constant where there is one, as registers have no index at run time."""
        return 0 if words == 1 else m >> 5

    @jit
    def bit(bits, m):
        return (bits[word_of(m)] >> u32(m & 31)) & u32(1)

    @jit
    def logit(lane, shared, coupled, scale, play, thread, m):
        """Returns half the gain of a site's flip in bits, at the state `spins` with the sums `coupled`."""
        half_field = play.half_rate * (lane.linear[m] + scale * coupled[m])
        if localized:
            half_field += play.pull * shared.y[index(m * threads + thread)]
        return -half_field if bit(lane.spins, m) != 0 else half_field

    @jit
    def weigh(lane, shared, coupled, scale, play, thread):
        """Writes the logits of a state; returns the largest."""
        top = LOWEST
        for m in range(sites):
            lane.logits[m] = logit(lane, shared, coupled, scale, play, thread, m)
            top = max(top, lane.logits[m])
        return largest(top, shared.partial)

    @jit
    def unpack(lane):
        """Adds the packed sums to `other`, and clears them."""
        for j in range(quads):
            word = u32(lane.packed[j] + _BIAS)
            for k in range(4):
                lane.other[4 * j + k] += f32(i32((word >> u32(8 * k)) & u32(255))) - _BIASED_ZERO
            lane.packed[j] = u32(0)

    @jit
    def add_rows(lane, shared, rows, taken, most_packed, thread):
        """Computes Ky, where y differs from x at the first `taken` listed sites."""
        for m in range(sites):
            lane.other[m] = lane.coupled[m]
        if whole:
            for j in range(quads):
                lane.packed[j] = u32(0)
            inside = 0
            for begin in range(0, taken, TOGETHER):
                for k in range(TOGETHER):
                    # Past the end, the last row is requested again, and not used.
                    code = i32(shared.listed[index(min(begin + k, taken - 1))])
                    row = (code >> 1) * (quads * threads) + thread
                    sign = u32(1) - u32(2) * u32(code & 1) if begin + k < taken else u32(0)
                    for j in range(quads):
                        lane.packed[j] = u32(lane.packed[j] + sign * rows[index(row + j * threads)])
                inside += TOGETHER
                if inside + TOGETHER > most_packed:
                    unpack(lane)
                    inside = 0
            unpack(lane)
        else:
            for k in range(taken):
                code = i32(shared.listed[index(k)])
                row = (code >> 1) * (sites * threads) + thread
                sign = ONE - TWO * f32(code & 1)
                for m in range(sites):
                    lane.other[m] += sign * rows[index(row + m * threads)]

    @jit
    def list_flips(lane, shared, thread, number):
        """Lists the sites that `flips` has; returns how many there are. `number` is that of the lane in its warp."""
        for q in range(words):
            shared.flips[index(thread * words + q)] = lane.flips[q]
            shared.spins[index(thread * words + q)] = lane.spins[q]
        wait()
        taken = 0
        for begin in range(0, threads, lanes):
            for q in range(words):
                left = u32(shared.flips[index((begin + number) * words + q)])
                up = u32(shared.spins[index((begin + number) * words + q)])
                owner = first(left != 0)
                while owner < lanes:
                    place = lowest(u32(get(i32(left), owner)))
                    code = 2 * ((begin + owner) * sites + 32 * q + place)
                    code += i32((u32(get(i32(up), owner)) >> u32(place)) & u32(1))
                    if thread == 0:
                        shared.listed[index(taken)] = code
                    taken += 1
                    if number == owner:
                        left = u32(left & (left - u32(1)))
                    owner = first(left != 0)
        wait()
        return taken

    @jit
    def settle(lane, shared):
        """Moves the chain to y; returns the changes of c.x and x'Kx/2."""
        linear, pairs = ZERO, ZERO
        for m in range(sites):
            if bit(lane.flips, m) != 0:
                sign = ONE - TWO * f32(bit(lane.spins, m))
                linear += sign * lane.linear[m]
                pairs += sign * (lane.coupled[m] + lane.other[m])
            lane.coupled[m] = lane.other[m]
        for q in range(words):
            lane.spins[q] = u32(lane.spins[q] ^ lane.flips[q])
        linear, pairs = totals(linear, pairs, shared.partial)
        return linear, HALF * pairs

    @jit
    def total_linear(lane, shared, linear, thread):
        """Returns c.x, summed anew: sums of changes drift. Sites that never flip count as well."""
        found = ZERO
        for m in range(sites):
            if bit(lane.spins, m) != 0:
                found += linear[index(thread * sites + m)]
        return total(found, shared.partial)

    @jit
    def recompute(lane, shared, rows, thread, number):
        """Computes Kx from nothing; returns x'Kx/2."""
        for m in range(sites):
            lane.coupled[m] = ZERO
        for q in range(words):
            lane.flips[q] = lane.spins[q]
            lane.spins[q] = u32(0)
        taken = list_flips(lane, shared, thread, number)
        add_rows(lane, shared, rows, taken, 127, thread)
        pairs = ZERO
        for m in range(sites):
            lane.coupled[m] = lane.other[m]
            if bit(lane.flips, m) != 0:
                pairs += lane.other[m]
        for q in range(words):
            lane.spins[q] = lane.flips[q]
        return HALF * total(pairs, shared.partial)

    return SimpleNamespace(
        word_of=word_of, bit=bit, logit=logit, weigh=weigh, add_rows=add_rows, settle=settle, list_flips=list_flips,
        recompute=recompute, total_linear=total_linear, threads=threads, words=words,
    )  # fmt: skip


@functools.cache
def adapted(warp: Warp):
    """Returns `BalancedSampler.adapted` of one chain, compiled; with `adapt_until` 0, adaptation never ends."""

    @warp.jit
    def adapt(pace, acceptance, target, steps, adapt_until):
        gain = ONE
        if adapt_until > 0:
            gain = min(max(ONE - f32(steps) / f32(adapt_until), ZERO), ONE)
        return pace + gain * (acceptance - target)

    return adapt
