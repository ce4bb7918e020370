"""Engines for tests: those of this machine, chains in step, and `cuda` without a GPU.

The latter has one compiled lane, or warps of 32 lanes that are threads of Python.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Collection, Mapping

import numba
import numpy as np
import ptx
import pytest
from host_lanes import make_lane, make_loop, make_shared, one_lane
from limits import LIMIT_S

from sl_discs.engines.choice import get_engine
from sl_discs.engines.cpu.cpu_engine import Cpu, LoadedTargets
from sl_discs.engines.cpu.jit import called
from sl_discs.engines.cpu.layout import as_targets
from sl_discs.engines.cuda.cuda_engine import Cuda, _parts, _share
from sl_discs.engines.cuda.play import make_play, outside
from sl_discs.engines.cuda.warp import WIDTH, Warp
from sl_discs.samplers.sampler import Sampler
from sl_discs.samplers.single_site import SEQUENTIAL


@dataclasses.dataclass(frozen=True)
class InStep(Cpu):
    """The loop of chains in step, for any number of chains and neighbours."""

    def obstacle(self, sampler, num_sites=0):
        return (
            None if getattr(sampler, "scan", "") == SEQUENTIAL else "it only plays sequential scans"
        )

    def load(self, model, sampler, batch):
        targets = as_targets(model, batch, in_step=True)
        return batch._replace(loaded=[LoadedTargets(np.arange(len(targets)), True, targets)])


@functools.cache
def compiled_loop(kind):
    # The functions of the lane are compiled once, as parts of the loop, in half the time that numba
    # takes by default.
    return make_loop(one_lane(called), kind, numba.njit)


class Core:
    """A CPU core in the place of a card."""

    def __init__(self, loop, instances):
        self._loop, self._instances = loop, instances

    def begin(self, kind, numbers, chains, steps, found, per_instance):
        self._loop(kind)(numbers, self._instances, chains, steps, found, np.int32(per_instance))
        return chains, found

    def end(self, played):
        return played


@dataclasses.dataclass(frozen=True)
class OneLane(Cuda):
    """One lane, compiled by numba, in as many places as there are `devices`."""

    def missing(self):
        return None

    def lanes(self, num_sites):
        return 1, -(-num_sites // 4) * 4

    def loop(self, kind, threads):
        return compiled_loop(kind)

    def cards(self, threads, instances):
        parts, loop = (
            _parts(len(instances.scale), self.devices or 1),
            functools.partial(self.loop, threads=threads),
        )
        return [(part, Core(loop, _share(instances, part))) for part in parts]


@dataclasses.dataclass(frozen=True)
class Threads(OneLane):
    """`warps` warps of `width` lanes, each a thread that runs the same functions as Python; one
    lane needs none.
    """

    width: int = WIDTH
    warps: int = 1

    def lanes(self, num_sites):
        count = self.width * self.warps
        return count, -(-num_sites // (4 * count)) * 4

    def loop(self, kind, threads):
        if threads == 1:
            return np.errstate(over="ignore")(make_loop(one_lane(lambda function: function), kind))
        return functools.partial(_play_in_threads, threads_of(self.warps), kind)


# The chain of one lane: for short runs, as numba takes a quarter of a minute to compile it.
PLAIN_LANE = Threads(width=1)


class _Group:
    """Lanes that meet: each call waits for all, and gives everyone what all of them brought."""

    def __init__(self, count):
        self._barrier, self._brought = threading.Barrier(count, timeout=LIMIT_S), [None] * count

    def meet(self, place, value=None):
        self._brought[place] = value
        self._barrier.wait()
        brought = list(self._brought)
        self._barrier.wait()
        return brought

    def abort(self):
        self._barrier.abort()


def threads_of(warps):
    """Warps whose collectives are meetings of threads, in the order of the lanes' numbers."""
    here, block, groups = (
        threading.local(),
        _Group(WIDTH * warps),
        [_Group(WIDTH) for _ in range(warps)],
    )

    def all_lanes(value):
        return block.meet(here.thread, value)

    def of_warp(value):
        return groups[here.thread // WIDTH].meet(here.thread % WIDTH, value)

    def running(values):
        return [np.float32(one) for one in np.cumsum(np.array(values, np.float32))]

    def scan(value, shared):
        runs = running(all_lanes(value))
        return runs[here.thread], runs[-1]

    def scan_warp(value):
        runs = running(of_warp(value))
        return runs[here.thread % WIDTH], runs[-1]

    def rank(condition):
        holds = of_warp(bool(condition))
        return sum(holds[: here.thread % WIDTH]), sum(holds)

    def is_first(value):
        lane = here.thread % WIDTH
        return value not in of_warp(value)[:lane]

    def total(value, shared):
        return running(all_lanes(value))[-1]

    return here, (block, *groups), Warp(
        lanes=WIDTH, warps=warps, jit=lambda function: function,
        wait=lambda: block.meet(here.thread), total=total,
        totals=lambda x, y, shared: (total(x, shared), total(y, shared)),
        largest=lambda value, shared: max(all_lanes(value)), scan=scan, rank=rank, is_first=is_first,
        scan_warp=scan_warp, get=lambda value, lane: of_warp(value)[lane],
        exp2=lambda x: np.float32(np.exp2(x)), log2=lambda x: np.float32(np.log2(x)),
    )  # fmt: skip


def _play_in_threads(simulated, kind, numbers, instances, chains, steps, found, per_instance):
    here, groups, warp = simulated
    play, failures = make_play(warp, kind), []

    def run(c, thread, shared):
        here.thread = thread
        try:
            with np.errstate(over="ignore"):
                play(
                    numbers,
                    instances,
                    chains,
                    steps,
                    found,
                    c,
                    per_instance,
                    thread,
                    make_lane(kind),
                    shared,
                )
        except threading.BrokenBarrierError:
            pass
        except Exception as error:
            failures.append(error)
            for group in groups:
                group.abort()

    for c in range(len(chains.x)):
        shared = make_shared(warp, kind)
        lanes = [
            threading.Thread(target=run, args=(c, k, shared))
            for k in range(warp.lanes * warp.warps)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        if failures:
            raise failures[0]


class PtxCard:
    """An interpreter of compiled kernels in the place of a card."""

    def __init__(self, engine, threads, instances):
        self._engine, self._threads, self._instances = engine, threads, instances

    def begin(self, kind, numbers, chains, steps, found, per_instance):
        memory = np.zeros(
            (len(chains.x), len(outside(kind, self._threads)), chains.x.shape[1]), np.float32
        )
        arguments = numbers, self._instances, chains, steps, found, memory, np.int32(per_instance)
        kernel = self._engine.kernel(kind, self._threads // WIDTH)
        self._engine.blocks.extend(ptx.play(kernel, arguments, len(chains.x), self._threads))
        return chains, found

    def end(self, played):
        return played


@dataclasses.dataclass(frozen=True)
class Interpreted(OneLane):
    """Compiled kernels of `warps` warps, interpreted.

    Attributes:
      kernel: `kernel(kind, warps)`, the parsed kernel.
      warps: of a chain.
      blocks: those that were played.
    """

    kernel: Callable | None = None
    warps: int = 1
    blocks: list = dataclasses.field(default_factory=list, compare=False)

    def lanes(self, num_sites):
        count = WIDTH * self.warps
        return count, -(-num_sites // (4 * count)) * 4

    def cards(self, threads, instances):
        parts = _parts(len(instances.scale), 1)
        return [(part, PtxCard(self, threads, _share(instances, part))) for part in parts]


ENGINES = {
    "reference": get_engine("reference"),
    "cpu": get_engine("cpu"),
    "in step": InStep(),
    "one lane": OneLane(),
    "cuda": get_engine("cuda"),
}


def known_to(name: str, samplers: Mapping[str, Sampler]) -> list[str]:
    """The names of those samplers that an engine can run on this machine."""
    return [key for key, sampler in samplers.items() if ENGINES[name].obstacle(sampler) is None]


def each_engine(samplers: Mapping[str, Sampler], fast: Mapping[str, Collection[str]]):
    """Gives a test each engine with each sampler that it can run here; by default only those that
    are named as fast.
    """
    pairs = [(engine, name) for engine in ENGINES for name in known_to(engine, samplers)]
    slow = [pair for pair in pairs if pair[1] not in fast.get(pair[0], ())]
    each = [pytest.param(*pair, marks=[pytest.mark.slow] * (pair in slow)) for pair in pairs]
    return pytest.mark.parametrize(("engine", "name"), each)
