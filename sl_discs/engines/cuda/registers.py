"""A chain in the registers of its lanes: fields, flips of sites, and the values that follow from
them.

A lane has S sites, a constant of the compiled kernel: loops over them are unrolled, and the arrays
of a lane are registers. Spins are bits of words. Whole couplings are stored as bytes, four sites a
word: a word is the sum of w_k 256^k, so that rows of several flips are added as words, exactly
while the sums are between -128 and 127. Sums Kx are whole numbers in float32, and exact. Real
couplings are float32, and so are their sums, which are computed anew every `RECOMPUTED` steps, as
c.x is: after 40,000 steps on 100 fully coupled sites, sums Kx are within 1e-4 of the exact ones.

Sites that may not flip have a field of 1e30 against it, so that nothing needs to ask for a mask.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from sl_discs.engines.cuda.warp import Warp
from sl_discs.models.keys import COSINE, SINE, make_threefry, make_uniform

f32 = np.float32
i32 = np.int32
u32 = np.uint32
# Of an index: without a sign, as numba takes a negative one for one from the end, which costs a
# test and registers.
index = np.uint64
ZERO = f32(0)
HALF = f32(0.5)
ONE = f32(1)
TWO = f32(2)
# A field that no temperature overcomes, and the rate 1/temperature below which the target is
# uniform.
NEVER = f32(1e30)
LEAST_RATE = f32(1e-25)
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
_BIAS = u32(0x80808080)
_BIASED_ZERO = f32(128)


class KernelKind(NamedTuple):
    """What a kernel is compiled for.

    Attributes:
      sites: S of each lane, a multiple of 4.
      whole: whether couplings are whole numbers up to `MOST_PACKED`, stored as packed bytes;
        float32 otherwise.
      localized: whether there are levels, whose observation tilts the target.
      step: `step(warp, kind)` makes the step of a sampler, compiled for a warp.
      options: of the sampler, see there.
      has_sums: whether it draws sites by running sums of their weights.
      has_weights: whether it needs the weights, too.
    """

    sites: int
    whole: bool
    localized: bool
    step: Callable
    options: tuple
    has_sums: bool
    has_weights: bool


class WarpTarget(NamedTuple):
    """The target of a chain, see `play.Instances`."""

    rows: Any
    scale: Any
    open_sites: Any
    num_open: Any
    num_sites: Any
    most_packed: Any


class WarpInputs(NamedTuple):
    """What differs from step to step.

    Attributes:
      half_rate: 1/(2 temperature), in bits.
      pull: factor of the observation in the tilt, in bits.
      key0: first word of the chain's key.
      key1: second word.
      number: of the step, from 1 on.
      sampled: steps that the sampler has made before.
    """

    half_rate: Any
    pull: Any
    key0: Any
    key1: Any
    number: Any
    sampled: Any


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
      counts: [PLANES words] bits of the number of steps at which each spin was 1, since they were
        added to the mean.
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
      partial: [32] for the collectives; between them, a number of one lane for all.
      spins: [words T] x.
      flips: [words T] the sites at which y differs.
      listed: [S T] codes of the sites that flip, twice the site plus its x, in the order of the
        draws; at its end, those of repeated draws.
      y: [S T] the observation, which as registers would leave room for fewer chains.
    """

    sums: Any
    weights: Any
    runs: Any
    partial: Any
    spins: Any
    flips: Any
    listed: Any
    y: Any


# Planes of `Lane.counts`: with P of them up to 2^P - 1 steps are counted before they must be added
# to the mean.
PLANES = 6


@functools.cache
def make_random(warp: Warp) -> SimpleNamespace:
    """Returns the generator of `sl_discs.models.keys` and what is made of its words, compiled for a
    warp.
    """

    @warp.jit
    def normals(first, second):
        radius = f32(math.sqrt(f32(-2) * f32(math.log((f32(first) + HALF) * TO_UNIT))))
        half = f32(second) * TO_UNIT - HALF
        square = half * half
        sine = f32(SINE[4])
        cosine = f32(COSINE[4])
        for power in range(3, -1, -1):
            sine = sine * square + f32(SINE[power])
            cosine = cosine * square + f32(COSINE[power])
        sine *= half
        return radius * (ONE - TWO * sine * sine), radius * (TWO * sine * cosine)

    return SimpleNamespace(
        threefry=make_threefry(warp.jit), uniform=make_uniform(warp.jit), normals=normals
    )


@functools.cache
def make_chain(warp: Warp, kind: KernelKind) -> SimpleNamespace:
    """Returns the operations on a chain, compiled for a warp."""
    jit = warp.jit
    lanes = warp.lanes
    warps = warp.warps
    sites = kind.sites
    wait = warp.wait
    total = warp.total
    totals = warp.totals
    largest = warp.largest
    threads = lanes * warps
    words = -(-sites // 32)
    quads = sites // 4
    whole = kind.whole
    localized = kind.localized

    @jit
    def word_of(m):
        """Returns the word of a site's bit: a constant where there is one, as registers have no
        index at run time.
        """
        return 0 if words == 1 else m >> 5

    @jit
    def bit(bits, m):
        return (bits[word_of(m)] >> u32(m & 31)) & u32(1)

    @jit
    def publish(bits, shared_bits, thread):
        """Writes a lane's bits for the others."""
        for q in range(words):
            shared_bits[index(thread * words + q)] = bits[q]

    @jit
    def bit_at(shared_bits, site):
        """Returns the bit of any site, of those that lanes have written."""
        owner = site // sites
        place = site - owner * sites
        return (shared_bits[index(owner * words + word_of(place))] >> u32(place & 31)) & u32(1)

    @jit
    def flip(lane: Lane):
        """Flips the spins at which x and y differ."""
        for q in range(words):
            lane.spins[q] = u32(lane.spins[q] ^ lane.flips[q])

    @jit
    def logit(lane: Lane, shared: Shared, coupled, target, inputs, thread, m):
        """Returns half the gain of a site's flip in bits, at the state `spins` with the sums
        `coupled`.
        """
        half_field = inputs.half_rate * (lane.linear[m] + target.scale * coupled[m])
        if localized:
            half_field += inputs.pull * shared.y[index(m * threads + thread)]
        return -half_field if bit(lane.spins, m) != 0 else half_field

    @jit
    def weigh(lane: Lane, shared: Shared, coupled, target, inputs, thread):
        """Writes the logits of a state; returns the largest."""
        top = LOWEST
        for m in range(sites):
            lane.logits[m] = logit(lane, shared, coupled, target, inputs, thread, m)
            top = max(top, lane.logits[m])
        return largest(top, shared.partial)

    @jit
    def unpack(lane: Lane):
        """Adds the packed sums to `other`, and clears them."""
        for j in range(quads):
            word = u32(lane.packed[j] + _BIAS)
            for k in range(4):
                lane.other[4 * j + k] += f32(i32((word >> u32(8 * k)) & u32(255))) - _BIASED_ZERO
            lane.packed[j] = u32(0)

    @jit
    def add_rows(lane: Lane, shared: Shared, target, taken, thread):
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
                        lane.packed[j] = u32(
                            lane.packed[j] + sign * target.rows[index(row + j * threads)]
                        )
                inside += TOGETHER
                if inside + TOGETHER > target.most_packed:
                    unpack(lane)
                    inside = 0
            unpack(lane)
        else:
            for k in range(taken):
                code = i32(shared.listed[index(k)])
                row = (code >> 1) * (sites * threads) + thread
                sign = ONE - TWO * f32(code & 1)
                for m in range(sites):
                    lane.other[m] += sign * target.rows[index(row + m * threads)]

    @jit
    def settle(lane: Lane, shared: Shared):
        """Moves the chain to y; returns the changes of c.x and x'Kx/2."""
        linear = ZERO
        pairs = ZERO
        for m in range(sites):
            if bit(lane.flips, m) != 0:
                sign = ONE - TWO * f32(bit(lane.spins, m))
                linear += sign * lane.linear[m]
                pairs += sign * (lane.coupled[m] + lane.other[m])
            lane.coupled[m] = lane.other[m]
        flip(lane)
        linear, pairs = totals(linear, pairs, shared.partial)
        return linear, HALF * pairs

    @jit
    def total_linear(lane: Lane, shared: Shared, linear, thread):
        """Returns c.x, summed anew: sums of changes drift. Sites that never flip count as well."""
        sum_of_lane = ZERO
        for m in range(sites):
            if bit(lane.spins, m) != 0:
                sum_of_lane += linear[index(thread * sites + m)]
        return total(sum_of_lane, shared.partial)

    @jit
    def recompute(lane: Lane, shared: Shared, target, thread):
        """Computes Kx from nothing, for real couplings; returns x'Kx/2."""
        publish(lane.spins, shared.spins, thread)
        for m in range(sites):
            lane.coupled[m] = ZERO
        wait()
        for site in range(target.num_sites):
            if bit_at(shared.spins, site) != 0:
                row = site * (sites * threads) + thread
                for m in range(sites):
                    lane.coupled[m] += target.rows[index(row + m * threads)]
        pairs = ZERO
        for m in range(sites):
            if bit(lane.spins, m) != 0:
                pairs += lane.coupled[m]
        return HALF * total(pairs, shared.partial)

    return SimpleNamespace(
        threads=threads,
        words=words,
        word_of=word_of,
        bit=bit,
        publish=publish,
        bit_at=bit_at,
        flip=flip,
        logit=logit,
        weigh=weigh,
        add_rows=add_rows,
        settle=settle,
        recompute=recompute,
        total_linear=total_linear,
    )


@functools.cache
def adapted(warp: Warp):
    """Returns `BalancedSampler.adapted` of one chain, compiled; with `adapt_until` 0, adaptation
    never ends.
    """

    @warp.jit
    def adapt(pace, acceptance, numbers, inputs: WarpInputs):
        gain = ONE
        if numbers.adapt_until > 0:
            gain = min(max(ONE - f32(inputs.sampled) / f32(numbers.adapt_until), ZERO), ONE)
        return pace + gain * (acceptance - numbers.target)

    return adapt
