"""Runs a slice of a program on many chains: the loop over steps, the observation process, and the
best state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sl_discs.engines.arrays import aligned_zeros
from sl_discs.engines.cpu import site_steps, weighted
from sl_discs.engines.cpu.arithmetic import FOLD, fill_uniforms, normal_pair, threefry
from sl_discs.engines.cpu.chain_state import LoopChain, make_chain
from sl_discs.engines.cpu.jit import (
    FUSED,
    called,
    chosen_by_type,
    entered,
    in_long_vectors,
    inlined,
)
from sl_discs.engines.cpu.step import BLOCK, StepInputs, StepKernel, Words, make_words
from sl_discs.engines.cpu.tree import REFERENCE, WeightTree, make_tree
from sl_discs.localization.schedule import Levels
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Exchange, Gibbs, Metropolis

# The samplers that this engine runs. The kernel is selected by the type of the settings when the
# loop is compiled, so no sampler pays for the others.

ENTRIES = {
    GWG: weighted.PATH,
    PathAuxiliary: weighted.PATH,
    DMALA: weighted.LANGEVIN,
    Gibbs: site_steps.ENTRY,
    Metropolis: site_steps.ENTRY,
    Exchange: site_steps.EXCHANGE,
}
_KERNELS = {
    settings: kernel for entry in ENTRIES.values() for settings, kernel in entry.kernels.items()
}


def _chosen(field: str) -> Callable:
    """Returns a function for compiled loops: a field of the kernel that belongs to the type of its
    first argument.
    """

    def call(settings, *arguments):
        raise NotImplementedError("compiled code only")

    @chosen_by_type(call)
    def choose(settings, *arguments):
        function = getattr(_KERNELS[settings.instance_class], field)
        return lambda settings, *arguments: function(settings, *arguments)

    return call


play_step, weigh_state, fill_block = map(_chosen, StepKernel._fields)


# The best state of a chain, kept without copying the state whenever it improves.
#
# While the best state is recent, it is represented by the current state and a list of the flips
# since then. It is copied when there are as many of these flips as sites, and at the end, which
# costs O(1) per flip.

# Entries of `state`.
_RECENT, _LENGTH = 0, 1


class BestState(NamedTuple):
    """The best state and the flips since then.

    Attributes:
      value: [1] the highest value.
      spins: [N] the state with that value, unless it is recent.
      journal: [N] the flips since then.
      state: [2] whether the best state is recent, and the number of these flips.
    """

    value: np.ndarray
    spins: np.ndarray
    journal: np.ndarray
    state: np.ndarray


def make_best_state(size):
    """Allocates the best state of a chain."""
    spins = aligned_zeros(size, np.float32)
    journal = aligned_zeros(size, np.uint32)
    return BestState(np.zeros(1), spins, journal, np.zeros(2, np.int64))


@inlined
def note(best, value, spins, flipped, flips):
    """Accounts for a new state, reached from the last one by the given flips."""
    if value > best.value[0]:
        best.value[0] = value
        best.state[_RECENT] = 1
        best.state[_LENGTH] = 0
    elif best.state[_RECENT]:
        if best.state[_LENGTH] + flips > best.journal.shape[0]:
            for k in range(flips):
                spins[flipped[k]] = -spins[flipped[k]]
            write_out(best, spins)
            for k in range(flips):
                spins[flipped[k]] = -spins[flipped[k]]
            return
        for k in range(flips):
            best.journal[best.state[_LENGTH]] = flipped[k]
            best.state[_LENGTH] += 1


@called
def write_out(best, spins):
    """Copies the best state into `best.spins`; `spins` is the current state."""
    in_long_vectors()
    if best.state[_RECENT]:
        for i in range(spins.shape[0]):
            best.spins[i] = spins[i]
        for k in range(best.state[_LENGTH]):
            site = best.journal[k]
            best.spins[site] = -best.spins[site]
        best.state[_RECENT] = 0


# The observation process of one chain in the native loops: the mathematics of
# `sl_discs.localization.algorithm`.
#
# The posterior mean of a level is U = sum over its steps of c_t x_t, for spins x_t after step t and
# weights c_t whose running sum is C_t. Spins change seldom, so U is computed by summation by parts:
# when a site turns to x_s at step s, 2 x_s C_{s-1} is subtracted, and at the end of the level x C
# is added for each site. A flip then costs one operation, and a step without flips none.

_F = np.float32
_TWO = _F(2)
_NOTHING = _F(0)


@inlined(fastmath=FUSED)
def subtract_flips(mean, spins, flipped, count, collected):
    """Accounts for sites that have just turned, where `collected` is the sum of the level's weights
    so far.
    """
    for k in range(count):
        site = flipped[k]
        mean[site] -= _TWO * collected * spins[site]


@inlined(fastmath=FUSED)
def finish_mean(mean, spins, collected):
    """Adds what is left of U at the end of a call, within a level."""
    for i in range(mean.shape[0]):
        mean[i] += collected * spins[i]


@called(fastmath=FUSED)
def advance_observation(key0, key1, step, y, mean, spins, collected, drift, spread, workspace):
    """Sets y to y + drift U + spread Z for standard normal Z, and an empty posterior mean for the
    next level.

    Args:
      key0: first word of the chain's observation key.
      key1: second word.
      step: number of the step that ends the level.
      y: [N] modified in place, like mean; N is a multiple of 16.
      mean: [N] U before `finish_mean`.
      spins: [N] the state.
      collected: sum of the level's weights.
      drift: factor of U.
      spread: standard deviation of the noise.
      workspace: [N] working memory for random numbers.
    """
    in_long_vectors()
    fold0, fold1 = threefry(key0, key1, np.uint32(step), FOLD)
    fill_uniforms(fold0, fold1, workspace)
    half = y.shape[0] // 2
    for i in range(half):
        one, other = normal_pair(workspace[i], workspace[half + i])
        y[i] += drift * (mean[i] + collected * spins[i]) + spread * one
        y[half + i] += drift * (mean[half + i] + collected * spins[half + i]) + spread * other
        mean[i] = mean[half + i] = _NOTHING


# Unsigned, as in tree.py.
_P = np.uint64


class ProgramSlice(NamedTuple):
    """T steps of a program, of which chain c runs row c modulo R; the levels are those of the whole
    run.

    Attributes:
      rate: [R, T] 1/temperature of the target.
      proposal_rate: [R, T] 1/temperature of the proposal, constant over many steps and close to
        `rate`.
      refresh: [R, T] whether weights are recomputed before a step: before the first one, before
        those that begin levels, and before others.
      localized: whether there are levels.
      level: number of the first step's level.
      levels: `localization.schedule.Levels`, leaves [K], and one number that starts chains.
    """

    rate: np.ndarray
    proposal_rate: np.ndarray
    refresh: np.ndarray
    localized: bool
    level: int
    levels: Levels


class Workspace(NamedTuple):
    """Working memory of a core, used by one chain after the other.

    Attributes:
      chain: state of the chain.
      best: its best state.
      one: a tree with the weights of the state or of a proposal.
      other: the tree for the other of the two.
      words: random words.
    """

    chain: LoopChain
    best: BestState
    one: WeightTree
    other: WeightTree
    words: Words


def make_workspace(size: int, coupled_dtype) -> Workspace:
    """Returns working memory for chains of `size` sites, a multiple of the lane width."""
    return Workspace(
        make_chain(size, coupled_dtype),
        make_best_state(size),
        make_tree(size),
        make_tree(size),
        make_words(),
    )


@inlined
def _enter(workspace, chains, c, localized):
    """Copies a chain into the working memory."""
    chain = workspace.chain
    best = workspace.best
    for tree in (workspace.one, workspace.other):
        tree.sums[REFERENCE] = (
            0.0  # not that of the chain before, which depends on the batch and the threads
        )
    for i in range(chain.spins.shape[0]):
        chain.stamps[i] = 0
        chain.spins[i] = best.spins[i] = _F(-1)
    for i in range(min(chain.spins.shape[0], chains.x.shape[1])):
        chain.spins[i], chain.coupled[i] = _F(2 * chains.x[c, i] - 1), chains.coupled[c, i]
        best.spins[i] = _F(2 * chains.best_x[c, i] - 1)
        if localized:
            chain.y[i], chain.mean[i] = chains.y[c, i], chains.mean[c, i]
    chain.proposals[0] = 0
    best.value[0] = chains.best[c]
    best.state[:] = 0


@inlined
def _leave(workspace, chains, c, localized):
    """Copies the chain back."""
    chain = workspace.chain
    best = workspace.best
    write_out(best, chain.spins)
    for i in range(min(chain.spins.shape[0], chains.x.shape[1])):
        chains.x[c, i], chains.coupled[c, i] = chain.spins[i] > 0, chain.coupled[i]
        chains.best_x[c, i] = best.spins[i] > 0
        if localized:
            chains.y[c, i], chains.mean[c, i] = chain.y[i], chain.mean[i]
    chains.best[c] = best.value[0]


@inlined
def _end_level(levels, level, chains, c, chain, collected):
    """Moves the observation after the last step of a level."""
    # `base` is recomputed with the next weights, so until then it can hold the noise.
    advance_observation(
        chains.observation_keys[c, 0],
        chains.observation_keys[c, 1],
        levels.last[level] + 1,
        chain.y,
        chain.mean,
        chain.spins,
        collected,
        levels.drift[level],
        levels.noise[level],
        chain.base,
    )


@inlined
def _write_state(spins, before, state):
    """Writes a state as 0 and 1; at sites that the chain does not use, it is as before."""
    for i in range(state.shape[0]):
        state[i] = spins[i] > 0 if i < spins.shape[0] else before[i]


@inlined
def _log(chains, c, spins, value, ladder, interval, records):
    """Writes the value and the state at the end of an interval, and keeps the best of these."""
    records.value[interval, c] = value
    if records.states.shape[0] and c % ladder == 0:
        _write_state(spins, chains.x[c], records.states[interval, c // ladder])
    if value > chains.best_logged[c]:
        chains.best_logged[c] = value
        _write_state(spins, chains.best_logged_x[c], chains.best_logged_x[c])


@inlined
def _play_chain(
    settings,
    program,
    target,
    chains,
    c,
    workspace,
    first_step,
    ladder,
    first_interval,
    last_interval,
    records,
):
    """Runs one chain through some intervals; its arrays stay in the core's cache."""
    _enter(workspace, chains, c, program.localized)
    chain = workspace.chain
    best = workspace.best
    tree = workspace.one
    other = workspace.other
    words = workspace.words
    spins = chain.spins
    key0 = chains.keys[c, 0]
    key1 = chains.keys[c, 1]
    linear = chains.linear[c]
    pairs = chains.pairs[c]
    pace = chains.pace[c]
    # Already of the type of its sums; otherwise numba would compile the whole step for both types.
    steps = np.int64(chains.steps[c])
    scale = np.float64(target.scale)
    slope = _F(0)
    tilt_scale = _F(0)
    collected = _F(0)
    steps_an_interval = program.rate.shape[1] // max(records.value.shape[0], 1)
    number = first_step + first_interval * steps_an_interval
    filled = number
    draws = 0
    row = c % program.rate.shape[0]
    rate = program.rate[row]
    proposal_rate = program.proposal_rate[row]
    refresh = program.refresh[row]
    # Step numbers: the last one of the level, and the last one that does not count for its
    # posterior mean.
    levels = program.levels
    level = program.level
    last = 0
    uncounted = 0
    share = _F(0)
    weight = _F(0)
    if program.localized:
        last = levels.last[level] + 1
    step = _P(first_interval * steps_an_interval)
    for interval in range(first_interval, last_interval):
        sum_acceptance, sum_hops = 0.0, 0.0
        left = steps_an_interval
        while left > 0:
            if number >= filled:
                # Blocks begin at the same step numbers however a run is divided into calls.
                draws = fill_block(settings, pace, key0, key1, number - number % BLOCK, words)
                filled = number - number % BLOCK + BLOCK
            # One branch per step serves both: a level ends where the next one needs new weights.
            if refresh[step]:
                if program.localized:
                    if number > last:
                        _end_level(levels, level, chains, c, chain, collected)
                        level += 1
                        collected = _F(0)
                    last = levels.last[level] + 1
                    tilt_scale = levels.tilt_scale[level]
                    uncounted = last - levels.collected[level]
                    share = _F(1) / _F(levels.collected[level])
                slope = weigh_state(settings, chain, target, proposal_rate[step], tilt_scale, tree)
            # Steps taken at once belong to one interval and one part of a level; the first step is
            # taken alone.
            most = 1 if best.value[0] == -np.inf else left
            if program.localized:
                most = min(most, (last if number > uncounted else uncounted) + 1 - number)
            row_of_words = number % BLOCK
            inputs = StepInputs(
                rate[step],
                rate[step:],
                most,
                tilt_scale,
                slope,
                key0,
                key1,
                number,
                row_of_words,
                words,
                draws,
            )
            done = play_step(settings, inputs, chain, target, tree, other, pace, steps)
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
                note(best, linear + scale * pairs, spins, chain.flipped, done.flips)
                if program.localized:
                    # Also if nothing is collected yet, as a mispredicted branch would cost more.
                    subtract_flips(chain.mean, spins, chain.flipped, done.flips, collected)
            elif best.value[0] == -np.inf:
                note(best, linear + scale * pairs, spins, chain.flipped, 0)
            if program.localized:
                collected += weight
            number += done.steps
            left -= done.steps
            step += _P(done.steps)
        records.acceptance[interval, c] = sum_acceptance / steps_an_interval
        records.hops[interval, c] = sum_hops / steps_an_interval
        _log(chains, c, spins, linear + scale * pairs, ladder, interval, records)
    if program.localized:
        if number > last:
            _end_level(levels, level, chains, c, chain, collected)
        else:
            finish_mean(chain.mean, spins, collected)
    _leave(workspace, chains, c, program.localized)
    chains.linear[c] = linear
    chains.pairs[c] = pairs
    chains.pace[c] = pace
    chains.steps[c] = steps


@entered
def play(settings, program, target, chains, ladder, ladders, workspace, first_step, records):
    """Runs L intervals of T/L steps on some ladders of chains; a chain without a ladder runs all of
    them at once.

    Args:
      settings: settings of the sampler; their type selects the step.
      program: the slice of the program.
      target: `chain.LoopTarget` of the instance.
      chains: `engines.arrays.ChainArrays` of all instances, modified in place.
      ladder: R; chain c has place c % R in ladder c // R.
      ladders: [M] the numbers of the ladders to run, of this instance; others are not touched.
      workspace: working memory that only this call uses, for the size of the target.
      first_step: number of the first step.
      records: `engines.arrays.Records`, output.
    """
    in_long_vectors()
    intervals = records.value.shape[0]
    together = 1 if ladder > 1 else max(intervals, 1)
    for group in ladders:
        for interval in range(0, intervals, together):
            for c in range(group * ladder, (group + 1) * ladder):
                _play_chain(
                    settings,
                    program,
                    target,
                    chains,
                    c,
                    workspace,
                    first_step,
                    ladder,
                    interval,
                    interval + together,
                    records,
                )
            if ladder > 1:
                site_steps.swap_neighbours(
                    target.scale, chains, ladder, group, program.rate, first_step, interval, records
                )
