"""Exchanges of states between neighbouring places of a ladder: the mathematics of `sl_discs.engines.exchange`."""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cpu.arithmetic import DRAW, threefry, uniform
from sl_discs.engines.cpu.jit import called, inlined


@inlined
def _acceptance(rate, next_rate, value, next_value):
    return np.exp(min((np.float64(rate) - np.float64(next_rate)) * (next_value - value), 0.0))


@inlined
def _swap(one, other):
    for i in range(one.shape[0]):
        one[i], other[i] = other[i], one[i]


@inlined
def _keep_better(chains, c, value):
    if value > chains.best[c]:
        chains.best[c] = value
        for i in range(chains.spins.shape[1]):
            chains.best_spins[c, i] = chains.spins[c, i]


@called
def exchange(instances, chains, ladder, member, rates, first_step, interval, found):
    """Tries the pairs of one parity at the end of an interval.

    Args:
      instances: the targets.
      chains: modified in place.
      ladder: R.
      member: number of the ladder.
      rates: [R, T] or [1, T] 1/temperature at T steps; chain c has row c modulo R.
      first_step: number of the first of these steps.
      interval: number of the interval, within the call, that ends.
      found: `exchanged` is written.
    """
    steps_an_interval = rates.shape[1] // found.values.shape[0]
    last = (interval + 1) * steps_an_interval - 1
    number = first_step + last
    first = member * ladder
    scale = np.float64(instances.scale[chains.instance[first]])
    for c in range(first + number // steps_an_interval % 2, first + ladder - 1, 2):
        value = chains.linear[c] + scale * chains.pairs[c]
        next_value = chains.linear[c + 1] + scale * chains.pairs[c + 1]
        rate, next_rate = rates[c % rates.shape[0], last], rates[(c + 1) % rates.shape[0], last]
        # Observation keys are folded and never drawn from but here.
        word, _ = threefry(chains.observation_keys[c, 0], chains.observation_keys[c, 1], np.uint32(number), DRAW)
        if uniform(word) < _acceptance(rate, next_rate, value, next_value):
            found.exchanged[interval, c] = True
            _swap(chains.spins[c], chains.spins[c + 1])
            _swap(chains.coupled[c], chains.coupled[c + 1])
            chains.linear[c], chains.linear[c + 1] = chains.linear[c + 1], chains.linear[c]
            chains.pairs[c], chains.pairs[c + 1] = chains.pairs[c + 1], chains.pairs[c]
            _keep_better(chains, c, next_value)
            _keep_better(chains, c + 1, value)
