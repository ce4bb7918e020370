"""Instances, programs and chains in the form of the native loops, of which those in step play
chains by blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from sl_discs.engines.arrays import (
    aligned_zeros,
    as_arrays,
    as_states,
    as_trace,
    levels_of,
    make_records,
    no_levels,
    padded,
)
from sl_discs.engines.compiled import compiled
from sl_discs.engines.cpu.chain_state import LoopTarget
from sl_discs.engines.cpu.chunk import ProgramSlice
from sl_discs.engines.cpu.lanes import WIDTH, play
from sl_discs.engines.cpu.tree import LANES, TILE
from sl_discs.engines.devices import in_threads
from sl_discs.engines.program import Batch, ChainStates, ChainTemperatures, Play, Program
from sl_discs.localization.schedule import Levels
from sl_discs.models.quadratic import Dense, QuadraticModel
from sl_discs.samplers.sampler import Sampler
from sl_discs.samplers.single_site import SEQUENTIAL, Gibbs, Metropolis, SingleSiteSampler

# Couplings are stored as lists rather than rows if fewer than one in this many is not 0.
_LISTED = 12
# Relative to the sum of a site's couplings.
_ROUNDING = 1e-6


def up_to_whole(part: int, count: int) -> int:
    """Returns the number of sites, or of chains, rounded up to a multiple of `part`."""
    return -(-count // part) * part


def as_targets(model: QuadraticModel, batch: Batch, *, in_step: bool = False) -> list[LoopTarget]:
    """Returns the instances in the form of the loops; converting dense ones takes as long as
    thousands of steps.

    Args:
      model: of f.
      batch: the instances.
      in_step: whether they are for chains in step, which need lists, however many couplings there
        are, in float32.
    """
    params = batch.params
    num_sites = model.num_sites
    size = up_to_whole(TILE, num_sites)
    mask = padded(batch.mask, bool, size)
    linear = padded(params.linear, np.float32, size)
    open_ones = padded(batch.mask, np.float32, size)
    coupling = params.coupling
    most_listed = len(mask) * num_sites**2 // _LISTED
    dense = (
        isinstance(coupling, Dense)
        and not in_step
        and int(np.count_nonzero(coupling.rows)) > most_listed
    )
    if dense:
        rows = padded(coupling.rows, coupling.rows.dtype, size, size)
        counts = np.zeros((len(mask), size), np.int64)
        neighbours = np.zeros(0, np.uint32)
        weights = np.zeros(0, rows.dtype)
        coupled = rows.any(axis=2)
    else:
        instance, site, neighbours, weights = coupling.entries(num_sites)
        counts = np.bincount(instance * size + site, minlength=len(mask) * size).reshape(-1, size)
        rows = np.zeros((len(mask), 1, 1), weights.dtype)
        coupled = counts > 0
    whole = weights.dtype == np.int8
    ends = np.cumsum(counts.sum(axis=1))
    neighbours = neighbours.astype(np.uint32)
    weights = weights.astype(np.float32) if in_step else weights

    def target_of(g):
        used = mask[g] | coupled[g]
        here = slice(ends[g] - counts[g].sum(), ends[g])
        length = up_to_whole(LANES, size - int(np.argmax(used[::-1])))
        starts = np.concatenate([[0], np.cumsum(counts[g])]).astype(np.uint64)
        target = LoopTarget(
            linear[g, :length],
            np.float32(params.scale[g]),
            dense,
            rows[g],
            starts[: length + 1],
            neighbours[here],
            weights[here],
            open_ones[g, :length],
            np.flatnonzero(mask[g]).astype(np.uint32),
            bool(whole),
        )
        if in_step:
            return target._replace(symmetric=_is_symmetric(target, counts[g, :length]))
        return target

    return [target_of(g) for g in range(len(mask))]


def _is_symmetric(target: LoopTarget, counts: np.ndarray) -> bool:
    """Returns whether f stays the same if all sites flip; `counts` are the lengths of its lists."""
    # On spins s = 2 x - 1 the fields are half of c + J 1/2. Where they are 0, c is -J 1/2 rounded
    # to single precision, so that a few 2^-24 of the couplings are left of real ones.
    site = np.repeat(np.arange(len(counts)), counts)
    sums, reach = (
        np.bincount(site, each, len(counts)) for each in (target.weights, np.abs(target.weights))
    )
    fields = np.abs(2 * target.linear + target.scale * sums)
    return bool((fields <= _ROUNDING * abs(target.scale) * reach).all() and target.mask[site].all())


def sums_dtype(batch: Batch, states: ChainStates) -> Any:
    """Returns the type of the loops' sums Kx, see `chain.flip`."""
    if np.asarray(states.chain.field.coupled).dtype == np.int16:
        return np.int16
    return np.int32 if np.asarray(batch.params.coupling[-1]).dtype == np.int8 else np.float64


# The temperatures at which the CPU engine weighs proposals: constant over many steps, so that
# weights can be kept.
#
# A level of localization changes the tilt, so all weights are recomputed there. Proposal
# temperatures therefore change where levels begin and, within a level, in equal steps of about
# 1/256 of the logarithm, so that they are at most 0.3 % off. The Metropolis-Hastings test uses the
# same weights as the proposal and the target's own temperature, so each step leaves its target
# invariant, whatever the proposal's temperature.

# Number of steps per factor e of temperature.
_AN_E_FOLD = 256
# Replaces an infinite temperature, where energies below 1e30 make no difference.
_HIGHEST = 1e38


def proposal_temperatures(
    temperature: Float32[np.ndarray, "T"], levels: Levels | None
) -> Float32[np.ndarray, "T"]:
    """Returns the proposal's temperature at each step of a whole run; a run without levels counts
    as one level.
    """
    logarithm = np.log(np.minimum(np.asarray(temperature, np.float64), _HIGHEST))
    steps = logarithm.size
    ends = [] if levels is None else np.minimum(levels.last.astype(np.int64) + 1, steps)
    # Every level ends where the next begins; the last ends with the run.
    edges = np.unique(np.concatenate([[0], ends, [steps]]).astype(int))
    begins = logarithm[edges[:-1]]
    lengths = np.diff(edges)
    falls = begins - logarithm[np.minimum(edges[1:], steps - 1)]
    parts = np.rint(np.abs(falls) * _AN_E_FOLD)
    moves = parts > 0
    width = np.where(moves, falls / np.maximum(parts, 1), 1 / _AN_E_FOLD)
    # The middle of a part; in a level of constant temperature, that temperature itself.
    middle = np.where(moves, 0.5, 0.0)
    begins, width, middle = (np.repeat(level, lengths) for level in (begins, width, middle))
    part = np.floor((begins - logarithm) / width + 0.5 - middle)
    return np.exp(begins - (part + middle) * width).astype(np.float32)


# A run's program in the form of the loops.

# Sums of weights are recomputed at least this often.
_LONGEST_WITHOUT_REFRESH = 4096
_NO_LIMIT = np.float32(0)
_NONE = no_levels(0)


class ProgramSlices:
    """A whole run's program, which is passed to the loops in parts.

    Args:
      program: program of the run.
      keeps_weights: whether proposals are weighed at temperatures that are constant over many
        steps, if those of the whole run are known; otherwise they are weighed at exactly these.
      coldest: temperature, which replaces lower ones; see `least_temperature`.
    """

    def __init__(self, program: Program, *, keeps_weights: bool, coldest: np.float32 = _NO_LIMIT):
        self._temperature = program.temperature
        self._swaps = program.ladder > 1
        self._coldest = coldest
        levels = levels_of(program)
        self._localized = levels is not None
        self._levels = _NONE if levels is None else Levels(*map(np.ascontiguousarray, levels))
        whole = program.temperature.whole() if keeps_weights else None
        self._proposed = None
        if whole is not None:
            self._proposed = proposal_temperatures(np.maximum(whole, coldest), program.levels)[None]

    def part(self, done: int, intervals: int, every: int) -> ProgramSlice:
        """Returns the intervals that follow the steps done; weights are recomputed before the first
        step.

        If chains swap states, they are also recomputed at the start of each interval.
        """
        steps = intervals * every
        rows = np.ascontiguousarray(
            np.maximum(self._temperature.rows(done, done + steps), self._coldest)
        )
        proposed = rows if self._proposed is None else self._proposed[:, done : done + steps]
        refresh = np.ones(rows.shape, bool)
        refresh[:, 1:] = proposed[:, 1:] != proposed[:, :-1]
        refresh[:, -(done + 1) % _LONGEST_WITHOUT_REFRESH :: _LONGEST_WITHOUT_REFRESH] = True
        begins = self._levels.last + 1 - done
        refresh[:, begins[(begins >= 0) & (begins < steps)]] = True
        if self._swaps:
            refresh[:, ::every] = True
        level = self._levels.at(done) if self._localized else 0
        return ProgramSlice(1 / rows, 1 / proposed, refresh, self._localized, level, self._levels)


# Blocks of chains that are played in step: which chains those are, their arrays, and `ChainStates`
# from them.


class Lanes(NamedTuple):
    """C chains in step. A chain is a place, with its key, temperature and best states; a lane has a
    state.

    Attributes:
      place: [C] the place whose state a lane has; ladders swap these.
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
      same: [C] whether the best state of a place is in `best_logged`.
      lane_of: [C] the lane of each place.
      lane_keys: [2, C] of the lanes, like the following ones.
      rate: [C] log2(e)/temperature.
      change: [C] change of x at the site that is tried.
      words: [2, C] random words of an even step and the next one.
      better: [C] which lanes have a better state.
      clusters: [3, S + 1] working memory of `swap_clusters`.
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
    same: np.ndarray
    lane_of: np.ndarray
    lane_keys: np.ndarray
    rate: np.ndarray
    change: np.ndarray
    words: np.ndarray
    better: np.ndarray
    clusters: np.ndarray


def make_lanes(size: int, count: int, localized: bool) -> Lanes:
    """Allocates `count` lanes of `size` sites."""
    sites = (size, count)
    tilted = (size if localized else 1, count)
    pairs = (2, count)
    spin = np.int8
    float_type = np.float32
    word = np.uint32
    return Lanes(
        place=np.arange(count),
        lane_of=np.arange(count),
        row=np.zeros(count, np.int64),
        keys=aligned_zeros(pairs, word),
        observation_keys=aligned_zeros(pairs, word),
        spins=aligned_zeros(sites, spin),
        coupled=aligned_zeros(sites, float_type),
        y=aligned_zeros(tilted, float_type),
        mean=aligned_zeros(tilted, float_type),
        sums=aligned_zeros((3, count)),
        window=aligned_zeros((3, count), float_type),
        best=aligned_zeros(sites, spin),
        best_logged=aligned_zeros(sites, spin),
        values=aligned_zeros(pairs),
        found=aligned_zeros(pairs, bool),
        same=aligned_zeros(count, bool),
        lane_keys=aligned_zeros(pairs, word),
        rate=aligned_zeros(count, float_type),
        words=aligned_zeros(pairs, word),
        change=aligned_zeros(count, float_type),
        better=aligned_zeros(count, bool),
        clusters=aligned_zeros((3, size + 1), word),
    )


# The largest number of chains in a block, and the smallest one that is worth a thread of its own.
_MOST, _FEWEST = 64, 16


# With fewer chains most lanes are idle, and longer rows of couplings fill the vectors by
# themselves: then one chain after the other is faster. Million updates a second, in turn and in
# step (Zen 4, both threads of a core busy): 16 chains on a torus 141 and 362; on 40 neighbours a
# site 325 and 397 if 1 % flip, 116 and 178 if 12 % do; 12 chains on a 3-regular graph, where 1 %
# flip, 302 and 294; 8 chains there 307 and 217, on a torus 145 and 179; 32 chains on 80 neighbours
# 196 and 144 (4 % flip), 60 and 136 (33 %), on 199 neighbours 75 and 53.
_LEAST_CHAINS, _MOST_NEIGHBOURS = 12, 64


def in_step(sampler: Sampler, batch: Batch) -> np.ndarray:
    """Returns [G] whether the chains of each instance are played in step; this depends on that
    instance only.
    """
    mask = np.asarray(batch.mask)
    num_chains = batch.keys.mcmc.shape[1]
    if (
        not isinstance(sampler, Gibbs | Metropolis)
        or sampler.scan != SEQUENTIAL
        or num_chains < _LEAST_CHAINS
    ):
        return np.zeros(len(mask), bool)
    entries = np.count_nonzero(np.asarray(batch.params.coupling[-1]), axis=(1, 2))
    return entries <= _MOST_NEIGHBOURS * mask.sum(axis=1)


def make_blocks(steps: np.ndarray, ladder: int, threads: int) -> list[np.ndarray]:
    """Returns the chains of each block, as numbers g B + b.

    Args:
      steps: [G, B] steps done, which must be the same in a block.
      ladder: R, whole ladders are in one block, or pairs of them, 2 R.
      threads: that play blocks.
    """
    blocks = []
    for g, done in enumerate(steps.reshape(len(steps), -1, ladder)[:, :, 0]):
        for step in np.unique(done):
            ladders = np.flatnonzero(done == step) + g * len(done)
            most = max(1, _MOST // ladder)
            parts = -(-len(ladders) // most)
            parts = max(parts, min(-(-threads // len(steps)), len(ladders) * ladder // _FEWEST))
            blocks += [
                (some[:, None] * ladder + np.arange(ladder)).ravel()
                for some in np.array_split(ladders, parts)
            ]
    return blocks


def _play_block(gibbs, program, here, target, chains, block, first_step, all_records):
    """Runs the chains of a block through a slice `here` of the program, and writes their states and
    records.

    Those of the block are modified in `chains` and `all_records`, which have the chains of all
    instances.
    """
    # Lanes that are left play the last chain once more, so that they add no flips of their own.
    chosen = block[np.minimum(np.arange(up_to_whole(WIDTH, len(block))), len(block) - 1)]
    x = chains.x
    localized = here.localized
    lanes = make_lanes(len(target.linear), len(chosen), localized)
    size = min(x.shape[1], len(target.linear))
    count = len(block)
    lanes.keys[:] = chains.keys[chosen].T
    lanes.observation_keys[:] = chains.observation_keys[chosen].T
    lanes.row[:] = chosen % here.rate.shape[0]
    lanes.spins[:] = -1
    lanes.spins[:size] += 2 * x[chosen, :size].T
    lanes.coupled[:size] = chains.coupled[chosen, :size].T
    lanes.sums[0] = chains.linear[chosen]
    lanes.sums[1] = chains.pairs[chosen]
    lanes.values[0] = chains.best[chosen]
    lanes.values[1] = chains.best_logged[chosen]
    if localized:
        lanes.y[:size], lanes.mean[:size] = chains.y[chosen, :size].T, chains.mean[chosen, :size].T
    records = make_records(program, len(all_records.value), count, size)
    sweep, row = divmod(int(chains.steps[block[0]]), max(len(target.open_sites), 1))
    play(
        gibbs,
        here,
        target,
        lanes,
        program.ladder,
        program.clusters,
        first_step,
        sweep,
        row,
        records,
    )
    # Whether a proposal is accepted has the mean of its acceptance.
    all_records.value[:, block] = records.value
    all_records.acceptance[:, block] = all_records.hops[:, block] = records.hops
    all_records.swaps[:, block] = records.swaps
    first = block[:: program.ladder]
    all_records.states[:, first // program.ladder, size:] = x[first, size:]
    all_records.states[:, first // program.ladder, :size] = records.states
    lane_of = lanes.lane_of[:count]
    x[block, :size] = lanes.spins[:size, lane_of].T > 0
    chains.coupled[block, :size] = lanes.coupled[:size, lane_of].T
    chains.linear[block], chains.pairs[block] = lanes.sums[:2, lane_of]
    if localized:
        chains.y[block, :size], chains.mean[block, :size] = (
            lanes.y[:size, :count].T,
            lanes.mean[:size, :count].T,
        )
    of_all = np.where(lanes.same, lanes.best_logged, lanes.best)
    for k, (value, state, kept) in enumerate(
        (
            (chains.best, chains.best_x, of_all),
            (chains.best_logged, chains.best_logged_x, lanes.best_logged),
        )
    ):
        better = np.flatnonzero(lanes.found[k, :count])
        value[block[better]] = lanes.values[k, better]
        state[block[better], :size] = kept[:size, better].T > 0


def _compile(gibbs, here, target) -> bool:
    """Plays nothing."""
    records = make_records(Program(ChainTemperatures(np.ones(1, np.float32)), None), 0, WIDTH, 1)
    play(gibbs, here, target, make_lanes(WIDTH, WIDTH, False), 1, 0, 1, 0, 0, records)
    return True


def prepare_in_step(
    targets: list[LoopTarget],
    sampler: SingleSiteSampler,
    batch: Batch,
    program: Program,
    threads: int,
) -> Play:
    """Prepares as `Engine.prepare`, for the loop that plays the chains of an instance in step.

    Args:
      targets: the instances, as `as_targets` of chains in step makes them.
      sampler: gibbs or metropolis with a sequential scan.
      batch: instances and keys.
      program: of the whole run.
      threads: number of them.
    """
    part = ProgramSlices(program, keeps_weights=False).part
    gibbs = type(sampler) is Gibbs

    def slice_of(done, intervals, every):
        """Returns the slice, with one row of `refresh`; temperatures that are constant need no
        arrays of T steps.
        """
        steps = intervals * every
        if not program.temperature.is_constant or program.levels is not None or not steps:
            here = part(done, intervals, every)
            return here._replace(refresh=here.refresh.any(axis=0, keepdims=True))
        rate = np.ascontiguousarray(1 / program.temperature.rows(done, done + 1))
        refresh = np.zeros((1, steps), bool)
        refresh[:, 0] = True
        return part(done, 0, every)._replace(rate=rate, proposal_rate=rate, refresh=refresh)

    def advance(before, done, intervals, every):
        *shape, size = np.shape(before.chain.x)
        coupled = np.asarray(before.chain.field.coupled).dtype
        chains = as_arrays(sampler, batch, before, program, size, np.float32, coupled)
        records = make_records(program, intervals, len(chains.x), size)
        here = slice_of(done, intervals, every)
        compiled(("cpu", "lanes"), lambda: _compile(gibbs, part(done, 0, every), targets[0]))

        def play_block(block):
            target = targets[block[0] // shape[1]]
            _play_block(gibbs, program, here, target, chains, block, done + 1, records)

        together = program.ladder * (2 if program.clusters else 1)
        in_threads(play_block, make_blocks(chains.steps.reshape(shape), together, threads), threads)
        after = as_states(sampler, before, chains, program.levels, intervals * every)
        return after, as_trace(program, records, *shape, size)

    return advance
