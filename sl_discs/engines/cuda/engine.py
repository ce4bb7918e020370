"""The engine for NVIDIA GPUs: compiled kernels for quadratic models, one chain a block.

It runs the same program on the same chains as the reference and targets the same distribution, but its numbers
differ: it uses the reference's keys, but numbers random words differently and sums in another order. Instances are
divided among the cards of this machine; results do not depend on their number.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Num

from sl_discs.engines.arrays import (
    ChainArrays,
    Records,
    as_arrays,
    as_states,
    as_trace,
    least_temperature,
    levels_of,
    make_records,
    padded,
)
from sl_discs.engines.base import Batch, ChainStates, Engine, Program, check_ladder
from sl_discs.engines.compiled import announced, compiled
from sl_discs.engines.cuda import flips, path
from sl_discs.engines.cuda.chain import LEAST_RATE, LOWEST, MOST_PACKED
from sl_discs.engines.cuda.play import Instances, KernelKind, Numbers, Steps, make_kernel, outside
from sl_discs.engines.cuda.warp import WIDTH, gpu, import_cuda
from sl_discs.engines.registry import has_card
from sl_discs.errors import InputError, MissingExtra, NotSupported
from sl_discs.localization.schedule import Levels
from sl_discs.models.quadratic import Coupling
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.registry import registered_name
from sl_discs.samplers.single_site import RANDOM, Gibbs, Metropolis

SAMPLERS = (GWG, PathAuxiliary, DMALA, Gibbs, Metropolis)
# The most sites of a lane, whose arrays are registers, and the most warps of a chain.
MOST_SITES, MOST_WARPS = 32, 16
MOST = WIDTH * MOST_SITES * MOST_WARPS


def kind_of(sampler: Sampler, sites: int, whole: bool, localized: bool) -> KernelKind:
    """Returns the kind of kernel that a sampler needs, see `KernelKind`."""
    match sampler:
        case GWG() | PathAuxiliary():
            step, options = path.make_step, (isinstance(sampler, GWG),)
        case DMALA():
            step, options = flips.make_langevin_step, (sampler.scaling == "normalized", sampler.adjusted)
        case _:
            step, options = flips.make_single_step, (isinstance(sampler, Gibbs),)
    drawn = step is path.make_step
    return KernelKind(sites, whole, localized, step, options, drawn, drawn and isinstance(sampler, PathAuxiliary))


def numbers_of(sampler: Sampler, largest: int) -> Numbers:
    """Returns the numbers of a sampler; `largest` is the largest whole coupling."""
    return Numbers(
        num_flips=np.int32(min(getattr(sampler, "num_flips", 1), 2**30)),
        adaptive=np.bool_(getattr(sampler, "adaptive", False)),
        adapt_until=np.int32(getattr(sampler, "adapt_until", 0) or 0),
        target=np.float32(getattr(sampler, "target_acceptance_rate", 0)),
        offset=np.float32(-1 / (2 * getattr(sampler, "step_size", 1))),
        most_packed=np.int32(127 // max(largest, 1)),
    )


# The arrays of a kernel on the host.

_NO_LEVELS = Levels(*(np.zeros(1, dtype) for dtype in (np.float32, np.int32, np.int32, np.float32, np.float32)))


def _dense_rows(coupling: Coupling, num_sites: int) -> Num[np.ndarray, "G N N"]:
    """Returns the couplings as matrices."""
    if coupling.matrix is not None:
        return np.asarray(coupling.matrix)
    instance, site, neighbour, weight = coupling.entries(num_sites)
    rows = np.zeros((len(np.asarray(coupling[-1])), num_sites, num_sites), weight.dtype)
    rows[instance, site, neighbour] = weight
    return rows


def pack_rows(rows: Num[np.ndarray, "G N N"], sites: int, threads: int) -> Num[np.ndarray, "G entries"]:
    """Returns rows in the order of the lanes, see `Instances.rows`; those of int8 as words of four."""
    whole = rows.dtype == np.int8
    kept = sites // 4 if whole else sites
    found = np.zeros((len(rows), rows.shape[1], kept, threads), np.uint32 if whole else np.float32)
    for one, packed in zip(rows, found, strict=True):
        row = padded(one, np.int8 if whole else np.float32, sites * threads)
        if whole:
            # The bytes w_k + 128 make a number that is too large by 128 in each of them.
            row = (row.view(np.uint8) ^ np.uint8(128)).view("<u4") - np.uint32(0x80808080)
        packed[:] = row.reshape(-1, threads, kept).swapaxes(1, 2)
    return found.reshape(len(rows), -1)


def as_instances(batch: Batch, num_sites: int, sites: int, threads: int) -> tuple[Instances, int]:
    """Returns the targets of a batch for lanes of these sites, and the largest whole coupling."""
    rows = _dense_rows(batch.params.coupling, num_sites)
    largest = max(int(rows.max(initial=0)), -int(rows.min(initial=0))) if rows.dtype == np.int8 else 0
    if largest > MOST_PACKED:
        rows = rows.astype(np.float32)  # whose sums are exact, too
    size, mask = sites * threads, np.asarray(batch.mask)
    instances = Instances(
        rows=pack_rows(rows, sites, threads),
        linear=padded(batch.params.linear, np.float32, size),
        scale=np.array(batch.params.scale, np.float32),
        is_open=padded(mask, np.int8, size),
        open_sites=padded(np.argsort(~mask, axis=1, kind="stable"), np.int32, size),
        num_open=mask.sum(axis=1, dtype=np.int32),
        num_sites=np.int32(num_sites),
    )
    return instances, largest


def as_chains(sampler: Sampler, batch: Batch, states: ChainStates, size: int, program: Program) -> ChainArrays:
    """Returns copies of the chains, padded to `size` sites; their values are finite."""
    chains = as_arrays(sampler, batch, states, program, size, np.float32, np.float32)
    return chains._replace(best=np.maximum(chains.best, LOWEST), best_logged=np.maximum(chains.best_logged, LOWEST))


def with_infinite(chains: ChainArrays) -> ChainArrays:
    """Returns the chains with the values of before: minus infinity where no state counts yet."""
    best, logged = (
        np.where(found <= LOWEST, np.float32(-np.inf), found) for found in (chains.best, chains.best_logged)
    )
    return chains._replace(best=best, best_logged=logged)


def as_steps(program: Program, done: int, intervals: int, every: int, coldest: np.float32) -> Steps:
    """Returns the part of a program after `done` steps, at temperatures from `coldest` on."""
    temperature, levels = program.temperature.rows(done, done + intervals * every), levels_of(program) or _NO_LEVELS
    half_rate = np.maximum(np.float32(0.5) / np.maximum(temperature, coldest), LEAST_RATE)
    leaves = {name: np.ascontiguousarray(leaf) for name, leaf in levels._asdict().items()}
    return Steps(
        np.ascontiguousarray(half_rate), np.int32(every), np.int32(done), np.int32(levels.at(done)), **leaves
    )


@functools.cache
def _digest() -> str:
    """Returns the digest of what kernels are compiled from."""
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()


@functools.cache
def _kernel(kind: KernelKind, warps: int) -> Any:
    """Returns the kernel of a kind; what numba-cuda compiles is kept in its cache for the next process."""
    cuda = import_cuda()
    from numba.cuda.dispatcher import CUDACache
    from numba_cuda import __version__

    class KernelCache(CUDACache):
        def _index_key(self, sig, codegen):
            # numba's own key has the functions that a kernel calls, whose pickles differ from process to process.
            name = kind._replace(step=f"{kind.step.__module__}.{kind.step.__name__}")
            return sig, codegen.magic_tuple(), __version__, _digest(), repr(name), warps

        def load_overload(self, sig, target_context):
            # What cannot be read or written only costs time.
            with contextlib.suppress(Exception):
                return super().load_overload(sig, target_context)

        def save_overload(self, sig, data):
            with contextlib.suppress(Exception):
                super().save_overload(sig, data)

    kernel = make_kernel(cuda, gpu(warps), kind)
    kernel._cache = KernelCache(kernel.py_func)
    return kernel


class Card:
    """A GPU, with some of the instances in its memory.

    Args:
      number: of the card.
      threads: lanes of a chain.
      instances: that it plays chains of.

    Raises:
      InputError: they do not fit into its memory.
    """

    def __init__(self, number: int, threads: int, instances: Instances):
        self._cuda, self._number, self._threads = import_cuda(), number, threads
        with self._cuda.gpus[number]:
            free, _ = self._cuda.current_context().get_memory_info()
            needed = sum(np.asarray(leaf).nbytes for leaf in instances)
            if needed > free:
                raise InputError(
                    f"{len(instances.scale)} instances need {needed / 2**30:.1f} GiB on GPU {number}, which has "
                    f"{free / 2**30:.1f} GiB free; lower config.experiment.instances_per_batch, or choose engine=cpu"
                )
            self._instances = self._put(instances)

    def _put(self, group: Any) -> Any:
        return type(group)(*(self._cuda.to_device(leaf) if np.ndim(leaf) else leaf for leaf in group))

    def begin(
        self, kind: KernelKind, numbers: Numbers, chains: ChainArrays, steps: Steps, found: Records, per_instance: int
    ) -> tuple[ChainArrays, Steps, Records]:
        """Begins to play chains, `per_instance` of each instance, by a kernel of this kind, compiled if it is new.

        Returns what `end` waits for.
        """
        kernel = _kernel(kind, self._threads // WIDTH)
        with self._cuda.gpus[self._number]:
            played = self._put(chains), self._put(steps), self._put(found)
            launch = kernel[len(chains.x), self._threads]
            nothing = self._put(Records(*(leaf[:0] for leaf in found)))
            places = len(chains.x), len(outside(kind, self._threads)), chains.x.shape[1]
            memory = self._cuda.device_array(places, np.float32)

            def compile_kernel():
                launch(numbers, self._instances, *played[:2], nothing, memory, np.int32(per_instance))
                return True

            compiled(("cuda", kernel, self._number), lambda: announced(compile_kernel))
            launch(numbers, self._instances, *played, memory, np.int32(per_instance))
            return played

    def end(self, played: tuple[ChainArrays, Steps, Records]) -> tuple[ChainArrays, Records]:
        """Returns the chains and their records when they have been played."""
        with self._cuda.gpus[self._number]:
            chains, _, found = played
            return (
                ChainArrays(*(leaf.copy_to_host() for leaf in chains)),
                Records(*(leaf.copy_to_host() for leaf in found)),
            )


class Loaded(NamedTuple):
    """The instances of a batch on the cards, where they stay while the batch lives.

    Attributes:
      threads: lanes of a chain.
      sites: of each lane.
      whole: whether couplings are whole numbers, stored as packed bytes.
      largest: whole coupling.
      cards: each with the instances that it has.
    """

    threads: int
    sites: int
    whole: bool
    largest: int
    cards: list[tuple[slice, Card]]


@dataclasses.dataclass(frozen=True)
class Cuda(Engine):
    """Runs the samplers of `SAMPLERS`."""

    name = "cuda"
    on_host = True
    busy_chains = 8_192

    def obstacle(self, sampler, num_sites=0):
        """Names a sampler without a kernel, too many sites, or what this machine lacks."""
        if type(sampler) not in SAMPLERS:
            return f"it only supports {', '.join(map(registered_name, SAMPLERS))}"
        if getattr(sampler, "balancing_fn_type", "SQRT") != "SQRT":
            return "it only supports balancing_fn_type SQRT"
        if getattr(sampler, "scan", RANDOM) != RANDOM:
            return "it only supports random scans"
        if sampler.couples_chains:
            return "its chains are independent: no shared_adaptation, no shared_scale"
        if num_sites > MOST:
            return f"a chain has at most {MOST} sites there, and there are {num_sites}"
        return self.missing()

    def missing(self) -> str | None:
        """Returns what this machine lacks; None if nothing."""
        if not has_card():
            return "there is no NVIDIA GPU, or its driver does not answer"
        try:
            import_cuda()
        except MissingExtra as error:
            return str(error)
        return None

    def num_devices(self):
        return len(import_cuda().gpus)

    def describe_devices(self):
        return f"{self.num_devices()} x {import_cuda().gpus[0].name}"

    def steps_per_call(self, sampler):
        return 10_000

    def lanes(self, num_sites: int) -> tuple[int, int]:
        """Returns the lanes of a chain, and the sites of each of them."""
        warps = -(-num_sites // (WIDTH * MOST_SITES))
        sites = -(-num_sites // (WIDTH * warps))
        return WIDTH * warps, -(-sites // 4) * 4

    def cards(self, threads: int, instances: Instances) -> list[tuple[slice, Card]]:
        """Divides the instances among the cards; returns the instances of each, and the card."""
        parts = _parts(len(instances.scale), self.devices or self.num_devices())
        return [(part, Card(k, threads, _share(instances, part))) for k, part in enumerate(parts)]

    def load(self, model, sampler, batch):
        """Packs the instances and copies them to the cards, which takes longer than short programs."""
        threads, sites = self.lanes(model.num_sites)
        instances, largest = as_instances(batch, model.num_sites, sites, threads)
        whole = instances.rows.dtype == np.uint32
        return batch._replace(loaded=Loaded(threads, sites, whole, largest, self.cards(threads, instances)))

    def prepare(self, model, sampler, batch, program):
        """Returns the function that plays the program; its first call with a kind of kernel compiles that."""
        if obstacle := self.obstacle(sampler, model.num_sites):
            raise NotSupported(f"engine=cuda: {obstacle}", "engine")
        check_ladder(program, batch.keys.mcmc.shape[1])
        if program.ladder > 1:
            raise NotSupported("engine=cuda does not exchange states between chains; choose engine=cpu", "engine")
        loaded: Loaded = (batch if batch.loaded else self.load(model, sampler, batch)).loaded
        localized, coldest = levels_of(program) is not None, least_temperature(batch)
        kind, numbers = kind_of(sampler, loaded.sites, loaded.whole, localized), numbers_of(sampler, loaded.largest)

        def advance(states, done, intervals, every):
            *shape, _ = np.shape(states.chain.x)
            chains = as_chains(sampler, batch, states, loaded.sites * loaded.threads, program)
            steps, begun = as_steps(program, done, intervals, every, coldest), []
            for part, card in loaded.cards:
                some = _share(chains, slice(part.start * shape[1], part.stop * shape[1]))
                found = make_records(program, intervals, *some.x.shape)
                begun.append((card, card.begin(kind, numbers, some, steps, found, shape[1])))
            played, found = zip(*(card.end(played) for card, played in begun), strict=True)
            chains = ChainArrays(*(np.concatenate(leaves) for leaves in zip(*played, strict=True)))
            found = Records(*(np.concatenate(leaves, axis=1) for leaves in zip(*found, strict=True)))
            after = as_states(sampler, states, with_infinite(chains), program.levels, intervals * every)
            return after, as_trace(program, found, *shape, model.num_sites)

        return advance


def _parts(num_instances: int, devices: int) -> list[slice]:
    """Returns the instances of each device, whose numbers differ by at most one; at most one device an instance."""
    count = min(devices, num_instances)
    ends = [num_instances * k // count for k in range(count + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def _share(group: Any, part: slice) -> Any:
    """Returns some entries of each array."""
    return type(group)(*(leaf[part] if np.ndim(leaf) else leaf for leaf in group))
