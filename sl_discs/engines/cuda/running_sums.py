"""Draws of sites by running sums of their weights, which each lane writes to shared memory.

Each lane searches for one draw. Codes of sites are twice the site plus its x.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace

from sl_discs.engines.cuda.registers import (
    HALF,
    TO_UNIT,
    ZERO,
    KernelKind,
    Lane,
    Shared,
    WarpInputs,
    f32,
    i32,
    index,
    make_chain,
    make_random,
    u32,
)
from sl_discs.engines.cuda.warp import WIDTH, Warp

# Every 32nd pair of words is not for a draw; the first of them decides about the step itself.
OWN = WIDTH - 1
# Times a total, a target that is still below it.
JUST_BELOW = f32(1 - 2.0**-23)
# Of the second word, which continues the first one.
_SECOND = f32(2.0**-56)


def halves(count: int) -> tuple[int, ...]:
    """Returns the powers of 2 below `count`, the largest first, at least 1."""
    return tuple(1 << k for k in range(max(count - 1, 1).bit_length() - 1, -1, -1))


@functools.cache
def make_running_sums(warp: Warp, kind: KernelKind) -> SimpleNamespace:
    """Returns the search in running sums and what is done with the sites found, compiled for a
    warp.
    """
    jit = warp.jit
    lanes = warp.lanes
    sites = kind.sites
    wait = warp.wait
    scan = warp.scan
    scan_warp = warp.scan_warp
    rank = warp.rank
    is_first = warp.is_first
    get = warp.get
    log2 = warp.log2
    chain = make_chain(warp, kind)
    threefry = make_random(warp).threefry
    threads = chain.threads
    word_of = chain.word_of
    publish = chain.publish
    bit_at = chain.bit_at
    # Halves of the ranges of lanes and of a lane's sites, for their search.
    lane_halves = halves(threads)
    site_halves = halves(sites)

    @jit
    def sum_lanes(shared: Shared, part, thread):
        """Writes the running sum of the lanes' parts; returns their total."""
        run, mass = scan(part, shared.partial)
        shared.runs[index(thread)] = run
        return mass

    @jit
    def first_words(inputs: WarpInputs, number):
        """Returns the words of a lane's first draw, and those of the step itself."""
        word, other = threefry(inputs.key0, inputs.key1, inputs.number, u32(number))
        if lanes == 1:
            own, second = threefry(inputs.key0, inputs.key1, inputs.number, u32(OWN))
        else:
            own = u32(get(i32(word), OWN))
            second = u32(get(i32(other), OWN))
        return word, other, own, second

    @jit
    def search(shared: Shared, target, mass, other):
        """Returns the site in whose share of the total `mass` the target lies; the word `other`
        continues that.
        """
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
        target = min(max(target, ZERO), part * JUST_BELOW)
        place = i32(0)
        for half in site_halves:
            if (
                place + half < sites
                and shared.sums[index((place + half - 1) * threads + low)] <= target
            ):
                place = i32(place + half)
        return i32(low * sites + place)

    @jit
    def look_up(shared: Shared, site, wanted, later, number):
        """Returns the code of a lane's site, and whether it is wanted and new; `later`, flips are
        known already.
        """
        code = i32(-1 - number)
        known = False
        if wanted:
            code = i32(2 * site + i32(bit_at(shared.spins, site)))
            if later:
                known = bit_at(shared.flips, site) != 0
        return code, is_first(code) and wanted and not known

    @jit
    def list_new(lane: Lane, shared: Shared, code, new, before, taken, count, thread):
        """Lists the new codes of the lanes after the first `taken`; sets the bits of the sites in
        their lanes.
        """
        if new and thread < lanes:
            shared.listed[index(taken + before)] = code
        wait()
        for k in range(taken, taken + count):
            place = (i32(shared.listed[index(k)]) >> 1) - thread * sites
            if place >= 0 and place < sites:
                lane.flips[word_of(place)] |= u32(1) << u32(place & 31)

    @jit
    def list_events(lane: Lane, shared: Shared, inputs: WarpInputs, mass, word, other, thread):
        """Lists the sites whose shares of `mass`, in bits, have events of a Poisson process;
        returns their number.

        The rate of the process is one for each nat, so that gaps between its events are
        exponential.
        """
        number = thread % lanes
        taken = 0
        begin = 0
        time = ZERO
        while begin == 0 or time < mass:
            if begin > 0:
                publish(lane.flips, shared.flips, thread)
                wait()
                word, other = threefry(inputs.key0, inputs.key1, inputs.number, u32(begin + number))
            is_event = (begin + number) % WIDTH != OWN
            run, gaps = scan_warp(-log2((f32(word) + HALF) * TO_UNIT) if is_event else ZERO)
            is_event = is_event and time + run < mass
            site = i32(0)
            if is_event:
                site = search(shared, time + run, mass, other)
            code, new = look_up(shared, site, is_event, begin > 0, number)
            before, count = rank(new)
            list_new(lane, shared, code, new, before, taken, count, thread)
            taken += count
            begin += lanes
            time += gaps
        return taken

    return SimpleNamespace(
        sum_lanes=sum_lanes,
        first_words=first_words,
        search=search,
        look_up=look_up,
        list_new=list_new,
        list_events=list_events,
    )
