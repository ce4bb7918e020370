"""Warps: the lanes that play one chain together, and their collectives.

The functions of this folder are written once, for a `Warp` of any number of lanes. On a GPU a chain
has a block of one or more warps of 32 lanes, compiled by numba-cuda. In tests it has one lane,
compiled by numba for a CPU. The lanes have consecutive sites, so that a draw by running sums gives
the same site whatever their number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sl_discs.support.errors import MissingExtra

# The number of lanes of a warp on every card.
WIDTH = 32
_ALL = 0xFFFFFFFF


class Warp(NamedTuple):
    """The lanes of a chain, and what they do together. Every lane must take part in each of the
    calls.

    Attributes:
      lanes: lanes of a warp.
      warps: warps of a chain; 1 unless the lanes are those of a GPU.
      jit: compiles a function that the lanes call.
      wait: `wait()` returns when all lanes of the chain have called it; what they wrote can then be
        read.
      total: `total(x, shared)`, the sum over the chain's lanes, in every lane.
      totals: `totals(x, y, shared)`, the sums of two numbers, at the latency of one.
      largest: `largest(x, shared)`, the maximum over the chain's lanes, in every lane.
      scan: `scan(x, shared)`, the sum over the lanes up to this one, and the sum over all of them.
      rank: `rank(condition)`, in how many lanes of this warp before this one the condition holds,
        and in how many.
      is_first: `is_first(x)`, whether no lane of this warp before this one has the same integer.
      scan_warp: `scan_warp(x)`, the sum over the lanes of this warp up to this one, and over all of
        them.
      get: `get(x, lane)`, the value of x in that lane of this warp.
      exp2: `exp2(x)` in float32, as fast as the hardware has it.
      log2: `log2(x)`, likewise.
    """

    lanes: int
    warps: int
    jit: Callable[[Any], Any]
    wait: Callable
    total: Callable
    totals: Callable
    largest: Callable
    scan: Callable
    rank: Callable
    is_first: Callable
    scan_warp: Callable
    get: Callable
    exp2: Callable
    log2: Callable


def import_cuda() -> Any:
    """Returns `numba.cuda` of numba-cuda.

    Raises:
      MissingExtra: it is not installed, with the command that installs it.
    """
    try:
        # It replaces numba's own `numba.cuda`, which is not kept up.
        import numba_cuda  # noqa: F401
        from numba import cuda
    except ImportError as error:
        raise MissingExtra(
            f'numba-cuda cannot be imported ({error}): pip install -e ".[cuda13]", or .[cuda12] '
            "before driver 580"
        ) from None
    return cuda


@functools.cache
def gpu(warps: int) -> Warp:
    """Returns the lanes of a block of `warps` warps on a GPU."""
    cuda = import_cuda()
    from numba.cuda import libdevice

    def jit(function):
        return cuda.jit(function, device=True, fastmath=True, forceinline=True)

    # Each loop in a function of its own: the compiler does not unroll them within longer ones.
    @jit
    def warp_total(x):
        for distance in (16, 8, 4, 2, 1):
            x += cuda.shfl_xor_sync(_ALL, x, distance)
        return x

    @jit
    def warp_totals(x, y):
        for distance in (16, 8, 4, 2, 1):
            more_x = cuda.shfl_xor_sync(_ALL, x, distance)
            more_y = cuda.shfl_xor_sync(_ALL, y, distance)
            x += more_x
            y += more_y
        return x, y

    @jit
    def warp_largest(x):
        for distance in (16, 8, 4, 2, 1):
            x = max(x, cuda.shfl_xor_sync(_ALL, x, distance))
        return x

    @jit
    def warp_scan(x):
        lane = cuda.laneid
        for distance in (1, 2, 4, 8, 16):
            before = cuda.shfl_up_sync(_ALL, x, distance)
            if lane >= distance:
                x += before
        return x

    @jit
    def wait():
        if warps == 1:
            cuda.syncwarp()
        else:
            cuda.syncthreads()

    @jit
    def spread(x, shared):
        # Before and after: nobody may write while others still read what the call before left.
        cuda.syncthreads()
        if cuda.laneid == 31:
            shared[cuda.threadIdx.x >> 5] = x
        cuda.syncthreads()

    @jit
    def add_warps(x, shared):
        if warps > 1:
            spread(x, shared)
            x = shared[0]
            for warp in range(1, warps):
                x += shared[warp]
        return x

    @jit
    def total(x, shared):
        return add_warps(warp_total(x), shared)

    @jit
    def totals(x, y, shared):
        x, y = warp_totals(x, y)
        return add_warps(x, shared), add_warps(y, shared)

    @jit
    def largest(x, shared):
        x = warp_largest(x)
        if warps > 1:
            spread(x, shared)
            x = shared[0]
            for warp in range(1, warps):
                x = max(x, shared[warp])
        return x

    @jit
    def scan_warp(x):
        x = warp_scan(x)
        return x, cuda.shfl_sync(_ALL, x, 31)

    @jit
    def scan(x, shared):
        x, every = scan_warp(x)
        if warps > 1:
            spread(x, shared)
            every = np.float32(0)
            here = cuda.threadIdx.x >> 5
            for warp in range(warps):
                if warp == here:
                    x += every
                every += shared[warp]
        return x, every

    @jit
    def rank(condition):
        votes = cuda.ballot_sync(_ALL, condition)
        before = np.uint32(votes) & ((np.uint32(1) << np.uint32(cuda.laneid)) - np.uint32(1))
        return cuda.popc(before), cuda.popc(votes)

    @jit
    def is_first(x):
        return cuda.ffs(cuda.match_any_sync(_ALL, np.int32(x))) - 1 == cuda.laneid

    @jit
    def get(x, lane):
        return cuda.shfl_sync(_ALL, x, lane)

    @jit
    def exp2(x):
        return libdevice.exp2f(x)

    @jit
    def log2(x):
        return libdevice.fast_log2f(x)

    return Warp(
        lanes=WIDTH,
        warps=warps,
        jit=jit,
        wait=wait,
        total=total,
        totals=totals,
        largest=largest,
        scan=scan,
        rank=rank,
        is_first=is_first,
        scan_warp=scan_warp,
        get=get,
        exp2=exp2,
        log2=log2,
    )
