"""Plays a slice of a program on many chains, each on one core from beginning to end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.coupling import Target
from sl_discs.engines.cpu.exchange import exchange
from sl_discs.engines.cpu.jit import entered, in_long_vectors, inlined
from sl_discs.engines.cpu.observation import complete, move, turn
from sl_discs.engines.cpu.record import Record, make_record, note, write_out
from sl_discs.engines.cpu.samplers import fill_block, play_step, weigh_state
from sl_discs.engines.cpu.step import BLOCK, Moment, Words, make_words
from sl_discs.engines.cpu.tree import TILE, Tree, make_tree, smaller_tree
from sl_discs.engines.cpu.walk import Walk, make_walk, smaller_walk
from sl_discs.localization.schedule import Levels

_F = np.float32
# Unsigned, as in tree.py.
_P = np.uint64


class Program(NamedTuple):
    """T steps of a program, of which chain c runs row c modulo R; the levels are those of the whole run.

    Attributes:
      rate: [R, T] 1/temperature of the target.
      proposal_rate: [R, T] that of the proposal, constant over many steps and close to the former.
      refresh: [R, T] whether weights are formed anew before a step: before the first one, those that begin
        levels, and others.
      localized: whether there are levels.
      level: number of the first step's level.
      levels: `localization.schedule.Levels`, leaves [K].
    """

    rate: np.ndarray
    proposal_rate: np.ndarray
    refresh: np.ndarray
    localized: bool
    level: int
    levels: Levels


class Targets(NamedTuple):
    """Fields of `coupling.Target` for G instances; the unused form of K has one entry.

    Attributes:
      linear: [G, N].
      scale: [G].
      dense: for all of them.
      rows: [G, N, N].
      starts: [G, N + 1].
      neighbours: [E] of one instance after the other; `first` has where.
      weights: [E].
      first: [G + 1].
      mask: [G, N].
      open_sites: [G, N] those that may flip, then the others.
      num_open: [G] how many may flip.
      sizes: [G] whole lanes that hold all sites which may flip or are coupled; a chain looks at no others.
    """

    linear: np.ndarray
    scale: np.ndarray
    dense: bool
    rows: np.ndarray
    starts: np.ndarray
    neighbours: np.ndarray
    weights: np.ndarray
    first: np.ndarray
    mask: np.ndarray
    open_sites: np.ndarray
    num_open: np.ndarray
    sizes: np.ndarray


class ChainArrays(NamedTuple):
    """Everything that C chains carry, changed in place; N is padded to whole tiles.

    Attributes:
      instance: [C] the instance of a chain.
      keys: [C, 2] of its Markov steps.
      observation_keys: [C, 2] of its observation.
      spins: [C, N] -1 or 1.
      coupled: [C, N] Kx, see `coupling.flip`.
      linear: [C] c.x.
      pairs: [C] x'Kx/2.
      pace: [C] the radius or the expected number of flips.
      steps: [C] steps done.
      y: [C, N] observation, like mean empty where not localized.
      mean: [C, N] running posterior mean.
      best: [C] highest value over every step.
      best_spins: [C, N] where it was.
      best_logged: [C] highest value over logged steps.
      best_logged_spins: [C, N] where it was.
    """

    instance: np.ndarray
    keys: np.ndarray
    observation_keys: np.ndarray
    spins: np.ndarray
    coupled: np.ndarray
    linear: np.ndarray
    pairs: np.ndarray
    pace: np.ndarray
    steps: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    best: np.ndarray
    best_spins: np.ndarray
    best_logged: np.ndarray
    best_logged_spins: np.ndarray


class Recorded(NamedTuple):
    """What L intervals of C chains in ladders of R record; `exchanged` and `states` are empty where not wanted.

    Attributes:
      values: [L, C] f at the end of each interval.
      acceptances: [L, C] mean over the interval, like hops.
      hops: [L, C] likewise.
      exchanged: [L, C] whether a chain exchanged its state with the next one.
      states: [L, C/R, N] int8 of the first place of each ladder, N as outside the loops.
    """

    values: np.ndarray
    acceptances: np.ndarray
    hops: np.ndarray
    exchanged: np.ndarray
    states: np.ndarray


class Room(NamedTuple):
    """What one chain after the other uses on a core.

    Attributes:
      walk: state of the chain.
      record: its best state.
      one: its weights, or room for those of a proposal.
      other: the other of the two.
      words: random ones.
    """

    walk: Walk
    record: Record
    one: Tree
    other: Tree
    words: Words


def make_room(size: int, coupled_dtype) -> Room:
    """Room for chains of padded length `size`."""
    return Room(make_walk(size, coupled_dtype), make_record(size), make_tree(size), make_tree(size), make_words())


@inlined
def _smaller_room(room, y, size):
    """Room for fewer sites, whole lanes of them, in the same memory, with the observation of a chain."""
    record, tiles = room.record, -(-size // TILE) * TILE
    return Room(
        smaller_walk(room.walk, y, size),
        Record(record.value, record.spins[:size], record.journal[:size], record.state),
        smaller_tree(room.one, tiles), smaller_tree(room.other, tiles), room.words,
    )  # fmt: skip


@inlined
def _enter(room, chains, c):
    """Copies a chain into the room."""
    walk, record = room.walk, room.record
    for tree in (room.one, room.other):
        tree.weights[walk.spins.shape[0] :] = _F(0)
    for i in range(walk.spins.shape[0]):
        walk.spins[i], walk.coupled[i] = chains.spins[c, i], chains.coupled[c, i]
        walk.stamps[i] = 0
        record.spins[i] = chains.best_spins[c, i]
    walk.proposals[0] = 0
    record.value[0] = chains.best[c]
    record.state[:] = 0


@inlined
def _leave(room, chains, c):
    """Copies it back."""
    walk, record = room.walk, room.record
    write_out(record, walk.spins)
    for i in range(walk.spins.shape[0]):
        chains.spins[c, i], chains.coupled[c, i] = walk.spins[i], walk.coupled[i]
        chains.best_spins[c, i] = record.spins[i]
    chains.best[c] = record.value[0]


@inlined
def _end_level(levels, level, chains, c, walk, collected):
    """Moves the observation after the last step of a level."""
    # The base is formed anew with the next weights, and is room for noise until then.
    move(
        chains.observation_keys[c, 0], chains.observation_keys[c, 1], levels.last[level] + 1, walk.y, chains.mean[c],
        walk.spins, collected, levels.drift[level], levels.noise[level], walk.base,
    )  # fmt: skip


@inlined
def _write_state(spins, chains, c, state):
    """0 and 1 for the spins of a chain, of which `spins` are those that it looks at."""
    looked_at = min(spins.shape[0], state.shape[0])
    for i in range(looked_at):
        state[i] = spins[i] > 0
    for i in range(looked_at, state.shape[0]):
        state[i] = chains.spins[c, i] > 0


@inlined
def _play_chain(settings, program, target, chains, c, room, first_step, ladder, first_interval, last_interval, found):
    """The steps of one chain in some intervals; its arrays stay in the core's cache."""
    _enter(room, chains, c)
    walk, record, tree, other = room.walk, room.record, room.one, room.other
    words = room.words
    spins, size = walk.spins, walk.spins.shape[0]
    key0, key1 = chains.keys[c, 0], chains.keys[c, 1]
    linear, pairs, pace = chains.linear[c], chains.pairs[c], chains.pace[c]
    # Of the type that sums of it have: numba would compile the whole step for either type.
    steps = np.int64(chains.steps[c])
    scale = np.float64(target.scale)
    slope, tilt_scale, collected = _F(0), _F(0), _F(0)
    steps_an_interval = program.rate.shape[1] // max(found.values.shape[0], 1)
    number = first_step + first_interval * steps_an_interval
    filled, draws = number, 0
    row = c % program.rate.shape[0]
    rate, proposal_rate, refresh = program.rate[row], program.proposal_rate[row], program.refresh[row]
    # Numbers of steps: the level's last one, and the last of those that do not count for its posterior mean.
    levels, level, last, uncounted, share, weight = program.levels, program.level, 0, 0, _F(0), _F(0)
    if program.localized:
        last = levels.last[level] + 1
    step = _P(first_interval * steps_an_interval)
    for interval in range(first_interval, last_interval):
        sum_acceptance, sum_hops = 0.0, 0.0
        left = steps_an_interval
        while left > 0:
            if number >= filled:
                # Blocks begin at the same numbers wherever a run is cut into calls.
                draws = fill_block(settings, pace, key0, key1, number - number % BLOCK, words)
                filled = number - number % BLOCK + BLOCK
            # One question a step: a level ends where the next one asks for new weights.
            if refresh[step]:
                if program.localized:
                    if number > last:
                        _end_level(levels, level, chains, c, walk, collected)
                        level, collected = level + 1, _F(0)
                    last, tilt_scale = levels.last[level] + 1, levels.tilt_scale[level]
                    uncounted, share = last - levels.collected[level], _F(1) / _F(levels.collected[level])
                slope = weigh_state(settings, walk, target, proposal_rate[step], tilt_scale, tree)
            # Steps taken at once belong to one interval and one part of a level, and the first state is met alone.
            most = 1 if record.value[0] == -np.inf else left
            if program.localized:
                most = min(most, (last if number > uncounted else uncounted) + 1 - number)
            row_of_words = number % BLOCK
            moment = Moment(
                rate[step], rate[step:], most, tilt_scale, slope, key0, key1, number, row_of_words, words, draws
            )
            done = play_step(settings, moment, walk, target, tree, other, pace, steps)
            if done.swapped:
                tree, other = other, tree
            pace = done.pace
            steps += done.steps
            sum_acceptance += done.acceptance
            if program.localized:
                weight = share if number > uncounted else _F(0)
                if done.steps > 1:
                    collected += _F(done.steps - 1) * weight
            if done.accepted:
                sum_hops += done.flips
                linear += done.changes.linear
                pairs += done.changes.pairs
                note(record, linear + scale * pairs, spins, walk.flipped, done.flips)
                if program.localized:
                    # Also where nothing is collected yet: to ask costs more, as the core guesses the answer wrong.
                    turn(chains.mean[c], spins, walk.flipped, done.flips, collected)
            elif record.value[0] == -np.inf:
                note(record, linear + scale * pairs, spins, walk.flipped, 0)
            if program.localized:
                collected += weight
            number += done.steps
            left -= done.steps
            step += _P(done.steps)
        value = linear + scale * pairs
        found.values[interval, c] = value
        found.acceptances[interval, c] = sum_acceptance / steps_an_interval
        found.hops[interval, c] = sum_hops / steps_an_interval
        if found.states.shape[0] and c % ladder == 0:
            _write_state(spins, chains, c, found.states[interval, c // ladder])
        if value > chains.best_logged[c]:
            chains.best_logged[c] = value
            for i in range(size):
                chains.best_logged_spins[c, i] = spins[i]
    if program.localized:
        if number > last:
            _end_level(levels, level, chains, c, walk, collected)
        else:
            complete(chains.mean[c, :size], spins, collected)
    _leave(room, chains, c)
    chains.linear[c], chains.pairs[c], chains.pace[c], chains.steps[c] = linear, pairs, pace, steps


@inlined
def _target(instances, g, size):
    """An instance for chains that look at so many sites."""
    stored = g if instances.dense else 0
    begin, end = instances.first[g], instances.first[g + 1]
    return Target(
        instances.linear[g, :size], instances.scale[g], instances.dense, instances.rows[stored],
        instances.starts[g], instances.neighbours[begin:end], instances.weights[begin:end],
        instances.mask[g, :size],
        instances.open_sites[g, : instances.num_open[g]],
    )  # fmt: skip


@entered
def play(settings, program, instances, chains, ladder, members, room, first_step, found):
    """Plays L intervals of T/L steps on some ladders of chains, all intervals of a chain at once where it is alone.

    Args:
      settings: of the sampler; its type chooses the step.
      program: the slice.
      instances: the targets of G instances.
      chains: changed in place.
      ladder: R; chain c has place c % R in ladder c // R.
      members: [M] which ladders; others are not touched.
      room: of this call alone.
      first_step: number of the first step.
      found: `Recorded`, output.
    """
    in_long_vectors()
    intervals = found.values.shape[0]
    together = 1 if ladder > 1 else max(intervals, 1)
    for member in members:
        for interval in range(0, intervals, together):
            for c in range(member * ladder, (member + 1) * ladder):
                g = chains.instance[c]
                size = instances.sizes[g]
                y = chains.y[c, :size] if program.localized else room.walk.y
                _play_chain(
                    settings, program, _target(instances, g, size), chains, c, _smaller_room(room, y, size),
                    first_step, ladder, interval, interval + together, found,
                )  # fmt: skip
            if ladder > 1:
                exchange(instances, chains, ladder, member, program.rate, first_step, interval, found)
