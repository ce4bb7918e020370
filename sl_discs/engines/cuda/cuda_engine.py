"""The engine for NVIDIA GPUs: compiled kernels for quadratic models, one chain a block.

It runs the same program on the same chains as the reference and targets the same distribution, but
its numbers differ: it uses the reference's keys, but numbers random words differently and sums in
another order. Instances are divided among the cards of this machine; results do not depend on their
number.
"""

from __future__ import annotations

import dataclasses
import itertools
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
    no_levels,
    padded,
)
from sl_discs.engines.cuda import flips, path_step
from sl_discs.engines.cuda.card import Card
from sl_discs.engines.cuda.play import Instances, Numbers, Steps
from sl_discs.engines.cuda.registers import LEAST_RATE, LOWEST, MOST_PACKED, KernelKind
from sl_discs.engines.cuda.warp import WIDTH, import_cuda
from sl_discs.engines.devices import missing_card
from sl_discs.engines.program import (
    Batch,
    ChainStates,
    Engine,
    Program,
    check_ladder,
    loop_obstacle,
)
from sl_discs.models.quadratic import Coupling, Sparse
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.sampler import Sampler
from sl_discs.samplers.single_site import RANDOM, Gibbs, Metropolis
from sl_discs.support.errors import MissingExtra, NotSupported

SAMPLERS = (GWG, PathAuxiliary, DMALA, Gibbs, Metropolis)
# The most sites of a lane, whose arrays are registers, and the most warps of a chain.
MOST_SITES, MOST_WARPS = 32, 16
MOST = WIDTH * MOST_SITES * MOST_WARPS


def kind_of(sampler: Sampler, sites: int, whole: bool, localized: bool) -> KernelKind:
    """Returns the kind of kernel that a sampler needs, see `KernelKind`."""
    match sampler:
        case GWG() | PathAuxiliary():
            step = path_step.make_step
            options = (isinstance(sampler, GWG),)
        case DMALA():
            step = flips.make_langevin_step
            options = (sampler.scaling == "normalized", sampler.adjusted)
        case _:
            step = flips.make_single_step
            options = (isinstance(sampler, Gibbs),)
    drawn = isinstance(sampler, GWG | PathAuxiliary | DMALA)
    return KernelKind(
        sites, whole, localized, step, options, drawn, isinstance(sampler, PathAuxiliary)
    )


def numbers_of(sampler: Sampler) -> Numbers:
    """Returns the numbers of a sampler."""
    return Numbers(
        num_flips=np.int32(min(getattr(sampler, "num_flips", 1), 2**30)),
        adaptive=np.bool_(getattr(sampler, "adaptive", False)),
        adapt_until=np.int32(getattr(sampler, "adapt_until", 0) or 0),
        target=np.float32(getattr(sampler, "target_acceptance_rate", 0)),
        offset=np.float32(-1 / (2 * getattr(sampler, "step_size", 1))),
    )


# The arrays of a kernel on the host.

_NO_LEVELS = no_levels(1)


# Rows that are laid out together: what is needed beside the packed ones is small.
_ROWS_AT_ONCE = 256


def pack_rows(
    coupling: Coupling, num_sites: int, sites: int, threads: int, whole: bool
) -> Num[np.ndarray, "G entries"]:
    """Returns couplings as rows in the order of the lanes, see `Instances.rows`; whole ones as
    words of four.
    """
    weights = np.asarray(coupling[-1])
    kept = sites // 4 if whole else sites
    dtype = np.int8 if whole else np.float32
    packed_rows = np.zeros(
        (len(weights), num_sites, kept, threads), np.uint32 if whole else np.float32
    )
    for g, packed in enumerate(packed_rows):
        instance = type(coupling)(*(np.asarray(leaf)[g : g + 1] for leaf in coupling))
        if isinstance(instance, Sparse):
            _, site, neighbour, weight = instance.entries(num_sites)
            begins = np.searchsorted(site, np.arange(num_sites + 1))
        for begin in range(0, num_sites, _ROWS_AT_ONCE):
            end = min(begin + _ROWS_AT_ONCE, num_sites)
            rows = np.zeros((end - begin, sites * threads), dtype)
            if isinstance(instance, Sparse):
                here = slice(begins[begin], begins[end])
                rows[site[here] - begin, neighbour[here]] = weight[here]
            else:
                rows[:, :num_sites] = instance.rows[0, begin:end]
            if whole:
                # The bytes w_k + 128 make a number that is too large by 128 in each of them.
                rows = (rows.view(np.uint8) ^ np.uint8(128)).view("<u4") - np.uint32(0x80808080)
            packed[begin:end] = rows.reshape(-1, threads, kept).swapaxes(1, 2)
    return packed_rows.reshape(len(weights), -1)


def as_instances(batch: Batch, num_sites: int, sites: int, threads: int) -> Instances:
    """Returns the targets of a batch for lanes of these sites."""
    coupling = batch.params.coupling
    largest = 0
    weights = np.asarray(coupling[-1])
    if weights.dtype == np.int8:
        largest = max(int(weights.max(initial=0)), -int(weights.min(initial=0)))
    # Whole numbers above it are float32, whose sums are exact, too.
    whole = weights.dtype == np.int8 and largest <= MOST_PACKED
    size = sites * threads
    mask = np.asarray(batch.mask)
    return Instances(
        rows=pack_rows(coupling, num_sites, sites, threads, whole),
        linear=padded(batch.params.linear, np.float32, size),
        scale=np.array(batch.params.scale, np.float32),
        is_open=padded(mask, np.int8, size),
        open_sites=padded(np.argsort(~mask, axis=1, kind="stable"), np.int32, size),
        num_open=mask.sum(axis=1, dtype=np.int32),
        num_sites=np.int32(num_sites),
        most_packed=np.int32(127 // max(largest, 1)),
    )


def as_chains(
    sampler: Sampler, batch: Batch, states: ChainStates, size: int, program: Program
) -> ChainArrays:
    """Returns copies of the chains, padded to `size` sites; their values are finite."""
    chains = as_arrays(sampler, batch, states, program, size, np.float32, np.float32)
    return chains._replace(
        best=np.maximum(chains.best, LOWEST), best_logged=np.maximum(chains.best_logged, LOWEST)
    )


def with_infinite(chains: ChainArrays) -> ChainArrays:
    """Returns the chains with the values of before: minus infinity where no state counts yet."""
    best, logged = (
        np.where(values <= LOWEST, np.float32(-np.inf), values)
        for values in (chains.best, chains.best_logged)
    )
    return chains._replace(best=best, best_logged=logged)


def as_steps(program: Program, done: int, intervals: int, every: int, coldest: np.float32) -> Steps:
    """Returns the part of a program after `done` steps, at temperatures from `coldest` on."""
    temperature = program.temperature.rows(done, done + intervals * every)
    levels = levels_of(program) or _NO_LEVELS
    half_rate = np.maximum(np.float32(0.5) / np.maximum(temperature, coldest), LEAST_RATE)
    leaves = {
        name: np.ascontiguousarray(leaf)
        for name, leaf in levels._asdict().items()
        if name in Steps._fields
    }
    return Steps(
        np.ascontiguousarray(half_rate),
        np.int32(every),
        np.int32(done),
        np.int32(levels.at(done)),
        **leaves,
    )


class Loaded(NamedTuple):
    """The instances of a batch on the cards, where they stay while the batch lives.

    Attributes:
      threads: lanes of a chain.
      sites: of each lane.
      whole: whether couplings are whole numbers, stored as packed bytes.
      cards: each with the instances that it has.
    """

    threads: int
    sites: int
    whole: bool
    cards: list[tuple[slice, Card]]


@dataclasses.dataclass(frozen=True)
class Cuda(Engine):
    """Runs the samplers of `SAMPLERS`."""

    name = "cuda"
    on_host = True
    busy_chains = 8_192

    def obstacle(self, sampler, num_sites=0):
        """Names what this machine lacks, a sampler without a kernel, or too many sites."""
        if missing := self.missing():
            return missing
        if getattr(sampler, "scan", RANDOM) != RANDOM:
            return "it only supports random scans"
        if num_sites > MOST:
            return f"a chain has at most {MOST} sites there, and there are {num_sites}"
        return loop_obstacle(sampler, SAMPLERS)

    def missing(self) -> str | None:
        """Returns what this machine lacks; None if nothing."""
        if obstacle := missing_card():
            return obstacle
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
        """Takes well below a second for most instances; each call copies all chains to the cards
        and back.
        """
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
        """Packs the instances and copies them to the cards, which takes longer than short
        programs.
        """
        threads, sites = self.lanes(model.num_sites)
        instances = as_instances(batch, model.num_sites, sites, threads)
        whole = instances.rows.dtype == np.uint32
        return batch._replace(loaded=Loaded(threads, sites, whole, self.cards(threads, instances)))

    def prepare(self, model, sampler, batch, program):
        """Returns the function that plays the program; its first call with a kind of kernel
        compiles that.
        """
        if obstacle := self.obstacle(sampler, model.num_sites):
            raise NotSupported(f"engine=cuda: {obstacle}", "engine")
        check_ladder(program, batch.keys.mcmc.shape[1])
        if program.ladder > 1:
            raise NotSupported(
                "engine=cuda does not exchange states between chains; choose engine=cpu", "engine"
            )
        loaded: Loaded = (batch if batch.loaded else self.load(model, sampler, batch)).loaded
        localized = levels_of(program) is not None
        coldest = least_temperature(batch)
        kind = kind_of(sampler, loaded.sites, loaded.whole, localized)
        numbers = numbers_of(sampler)

        def advance(states, done, intervals, every):
            *shape, _ = np.shape(states.chain.x)
            chains = as_chains(sampler, batch, states, loaded.sites * loaded.threads, program)
            steps = as_steps(program, done, intervals, every, coldest)
            begun = []
            for part, card in loaded.cards:
                some = _share(chains, slice(part.start * shape[1], part.stop * shape[1]))
                found = make_records(program, intervals, *some.x.shape)
                begun.append((card, card.begin(kind, numbers, some, steps, found, shape[1])))
            played, found = zip(*(card.end(played) for card, played in begun), strict=True)
            chains = ChainArrays(*(_joined(leaves) for leaves in zip(*played, strict=True)))
            found = Records(*(_joined(leaves, axis=1) for leaves in zip(*found, strict=True)))
            after = as_states(
                sampler, states, with_infinite(chains), program.levels, intervals * every
            )
            return after, as_trace(program, found, *shape, model.num_sites)

        return advance


def _parts(num_instances: int, devices: int) -> list[slice]:
    """Returns the instances of each device, whose numbers differ by at most one; at most one device
    an instance.
    """
    count = min(devices, num_instances)
    ends = [num_instances * k // count for k in range(count + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def _share(group: Any, part: slice) -> Any:
    return type(group)(*(leaf[part] if np.ndim(leaf) else leaf for leaf in group))


def _joined(leaves: tuple[np.ndarray, ...], axis: int = 0) -> np.ndarray:
    """Returns arrays one after the other; one alone is not copied."""
    return leaves[0] if len(leaves) == 1 else np.concatenate(leaves, axis)
