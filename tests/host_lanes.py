"""The lanes of the engine `cuda` on the host: a warp of one lane, the memory of lanes, the loop
over chains.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from sl_discs.engines.cuda.play import make_play
from sl_discs.engines.cuda.registers import PLANES, KernelKind, Lane, Shared
from sl_discs.engines.cuda.warp import WIDTH, Warp


def one_lane(jit: Callable[[Any], Any]) -> Warp:
    """Returns a warp of one lane, whose functions are compiled by `jit`."""

    def wait():
        pass

    return Warp(
        lanes=1,
        warps=1,
        jit=jit,
        wait=jit(wait),
        total=jit(lambda x, shared: x),
        totals=jit(lambda x, y, shared: (x, y)),
        largest=jit(lambda x, shared: x),
        scan=jit(lambda x, shared: (x, x)),
        rank=jit(lambda condition: (0, 1 if condition else 0)),
        is_first=jit(lambda x: True),
        scan_warp=jit(lambda x: (x, x)),
        get=jit(lambda x, lane: x),
        exp2=jit(lambda x: np.float32(np.exp2(x))),
        log2=jit(lambda x: np.float32(np.log2(x))),
    )


def make_loop(warp: Warp, kind: KernelKind, entry: Callable | None = None) -> Callable:
    """Returns the loop that plays all chains by one lane, with the arguments of the kernel.

    Args:
      warp: the warp of one lane.
      kind: what the kernel plays.
      entry: compiles the loop itself, where the warp's functions can be called by compiled code
        alone.
    """
    play = make_play(warp, kind)
    lane, shared = make_lane(kind), make_shared(warp, kind)

    @entry or warp.jit
    def loop(numbers, instances, chains, steps, found, per_instance, lane, shared):
        for c in range(chains.x.shape[0]):
            play(numbers, instances, chains, steps, found, c, per_instance, 0, lane, shared)

    return lambda *arguments: loop(*arguments, lane, shared)


def make_lane(kind: KernelKind) -> Lane:
    """Returns the arrays of a lane, in the memory of the host."""
    sites, words = kind.sites, -(-kind.sites // 32)
    f4 = functools.partial(np.zeros, sites, np.float32)
    bits = functools.partial(np.zeros, words, np.uint32)
    return Lane(
        coupled=f4(), other=f4(), linear=f4(), logits=f4(), spins=bits(), flips=bits(), best=bits(), logged=bits(),
        counts=np.zeros(PLANES * words, np.uint32), packed=np.zeros(sites // 4, np.uint32),
    )  # fmt: skip


def make_shared(warp: Warp, kind: KernelKind) -> Shared:
    """Returns the shared memory of a chain's lanes, in the memory of the host."""
    threads, words = warp.lanes * warp.warps, -(-kind.sites // 32)
    places = kind.sites * threads
    f4 = functools.partial(np.zeros, dtype=np.float32)
    bits = functools.partial(np.zeros, words * threads, np.uint32)
    return Shared(
        sums=f4(places), weights=f4(places), runs=f4(threads), partial=f4(WIDTH), spins=bits(), flips=bits(),
        listed=np.zeros(places, np.uint16), y=f4(places),
    )  # fmt: skip
