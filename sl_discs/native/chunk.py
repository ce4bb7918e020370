"""Plays a slice of a program on many chains, each on one core from beginning to end."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from sl_discs.native.arithmetic import DRAW, FOLD, normals, threefry, uniform
from sl_discs.native.coupling import Target
from sl_discs.native.path import make_scratch, path_step

_F = np.float32

# Number of the pair of words that rounds the radius, beyond those of draws and acceptance.
_ROUND = np.uint32(0x50000000)


class PathSettings(NamedTuple):
    """Fields of `PathSampler`; adapt_until is 0 for ever."""

    replacement: bool
    num_flips: int
    adaptive: bool
    target_acceptance: np.float32
    adapt_until: int


class Program(NamedTuple):
    """A slice of a program, arrays [L, E]; of a chain that is not localized all but the temperature are empty."""

    temperature: np.ndarray
    localized: bool
    tilt_scale: np.ndarray
    collect: np.ndarray
    boundary: np.ndarray
    drift: np.ndarray
    noise: np.ndarray


class ChainArrays(NamedTuple):
    """Everything that C chains carry, changed in place; N is padded to whole blocks.

    Attributes:
      instance: [C] which instance a chain plays.
      keys: [C, 2] of its Markov steps.
      observation_keys: [C, 2] of its observation.
      spins: [C, N] -1 or 1.
      coupled: [C, N] Kx.
      linear: [C] c.x.
      pairs: [C] x'Kx/2.
      radius: [C] number of flips as a real number.
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
    radius: np.ndarray
    steps: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    best: np.ndarray
    best_spins: np.ndarray
    best_logged: np.ndarray
    best_logged_spins: np.ndarray


@numba.njit
def _path_length(settings, key0, key1, radius, steps, limit):
    """round(radius) while it adapts, then one of two neighbouring numbers; or the fixed number of flips."""
    if not settings.adaptive:
        return min(settings.num_flips, limit)
    length = np.round(radius)
    if settings.adapt_until > 0 and steps >= settings.adapt_until:
        word, _ = threefry(key0, key1, _ROUND, DRAW)
        length = np.floor(radius - _F(0.5) + uniform(word))
    return min(max(int(length), 1), limit)


@numba.njit
def _follow(settings, radius, acceptance, steps, available):
    """The radius after a step."""
    gain = _F(1)
    if settings.adapt_until > 0:
        gain = min(max(_F(1) - _F(steps) / _F(settings.adapt_until), _F(0)), _F(1))
    radius = radius + gain * (_F(acceptance) - settings.target_acceptance)
    return min(max(radius, _F(1)), _F(available))


@numba.njit
def _play_chain(settings, program, target, chains, c, first_step, values, acceptances, hops):
    """All steps of one chain; its arrays stay in the core's cache."""
    spins, coupled = chains.spins[c], chains.coupled[c]
    size = spins.shape[0]
    scratch = make_scratch(size)
    tilt = np.zeros(size, np.float32)
    marks = np.zeros(size, np.float32)
    noise = np.zeros(target.num_sites, np.float32)
    available = int(target.mask.sum())
    limit = target.num_sites if settings.replacement else available
    linear, pairs, radius = chains.linear[c], chains.pairs[c], chains.radius[c]
    scale = np.float64(target.scale)
    collected = _F(0)
    new_level = program.localized
    number = first_step
    for interval in range(program.temperature.shape[0]):
        sum_acceptance, sum_hops = 0.0, 0.0
        for row in range(program.temperature.shape[1]):
            if new_level:
                for i in range(size):
                    tilt[i] = program.tilt_scale[interval, row] * chains.y[c, i]
                new_level = False
            key0, key1 = threefry(chains.keys[c, 0], chains.keys[c, 1], np.uint32(number), FOLD)
            length = _path_length(settings, key0, key1, radius, chains.steps[c], limit)
            rate = _F(1) / program.temperature[interval, row]
            acceptance, accepted, flips, change_linear, change_pairs = path_step(
                key0, key1, length, settings.replacement, rate, target, spins, coupled, tilt, scratch
            )
            if settings.adaptive:
                radius = _follow(settings, radius, acceptance, chains.steps[c], available)
            chains.steps[c] += 1
            number += 1
            sum_acceptance += acceptance
            if accepted:
                sum_hops += flips
                linear += change_linear
                pairs += change_pairs
                if program.localized:
                    # A site's share of U is added up when it turns: until now it had the other spin.
                    for k in range(flips):
                        site = scratch.flipped[k]
                        chains.mean[c, site] -= spins[site] * (collected - marks[site])
                        marks[site] = collected
                value = linear + scale * pairs
                if value > chains.best[c]:
                    chains.best[c] = value
                    for i in range(size):
                        chains.best_spins[c, i] = spins[i]
            elif chains.best[c] == -np.inf:
                chains.best[c] = linear + scale * pairs
                for i in range(size):
                    chains.best_spins[c, i] = spins[i]
            if program.localized:
                collected += program.collect[interval, row]
                if program.boundary[interval, row]:
                    key0, key1 = threefry(
                        chains.observation_keys[c, 0], chains.observation_keys[c, 1], np.uint32(number - 1), FOLD
                    )
                    normals(key0, key1, noise)
                    drift, spread = program.drift[interval, row], program.noise[interval, row]
                    for i in range(target.num_sites):
                        mean = chains.mean[c, i] + spins[i] * (collected - marks[i])
                        chains.y[c, i] += drift * mean + spread * noise[i]
                    chains.mean[c, :] = 0
                    marks[:] = 0
                    collected = _F(0)
                    new_level = True
        value = linear + scale * pairs
        values[interval, c] = value
        acceptances[interval, c] = sum_acceptance / program.temperature.shape[1]
        hops[interval, c] = sum_hops / program.temperature.shape[1]
        if value > chains.best_logged[c]:
            chains.best_logged[c] = value
            chains.best_logged_spins[c, :] = spins
    if program.localized:
        for i in range(size):
            chains.mean[c, i] += spins[i] * (collected - marks[i])
    chains.linear[c], chains.pairs[c], chains.radius[c] = linear, pairs, radius


# Not cached on disk: with more fast-math flags than these loops have, numba 0.68 loaded them wrongly (all weights
# were 1), and it does not notice changes of the functions that they call.
@numba.njit(parallel=True, nogil=True)
def play(settings, program, instances, chains, first_step, values, acceptances, hops):
    """Plays L intervals of E steps on C chains, spread over threads.

    Args:
      settings: of the sampler.
      program: the slice.
      instances: the target of each of G instances: leaves [G, ...], the unused form of K with G = 1.
      chains: changed in place.
      first_step: number of the first step.
      values: [L, C] output: f at the end of each interval, like acceptances and hops (means over the interval).
      acceptances: likewise.
      hops: likewise.
    """
    for c in numba.prange(chains.spins.shape[0]):
        g = chains.instance[c]
        stored = g if instances.dense else 0
        listed = 0 if instances.dense else g
        target = Target(
            instances.linear[g], instances.scale[g], instances.dense, instances.rows[stored],
            instances.neighbours[listed], instances.weights[listed], instances.num_sites, instances.mask[g],
        )  # fmt: skip
        _play_chain(settings, program, target, chains, c, first_step, values, acceptances, hops)
