"""Cluster moves between two lanes at one temperature (Houdayer 2001; Zhu, Ochoa and Katzgraber 2015).

A cluster is a connected component, in the graph of couplings, of the sites where two states differ. Exchanged between
the states, it leaves the sum of their values as it was, whatever the fields and the signs of couplings, since the
states agree at its border. So each cluster may be exchanged with probability 1/2, independently of the others: the
clusters remain what they are, and the law of independent states is kept.

Where f stays the same if all sites flip, one of the states stands for its opposite if they differ at more than half
of the sites; the sites of clusters then agree. In both cases exchanging a cluster flips its sites in both states.

The largest cluster stays where it is. To exchange it instead of all others would only give the two states each
other's name, and the round trips of ladders count walkers, which should have most of their state along.
"""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cpu.arithmetic import DRAW, FOLD, threefry
from sl_discs.engines.cpu.jit import called, inlined

# Unsigned, as in tree.py.
_U, _P = np.uint32, np.uint64
_ONE, _WORD = _P(1), _P(32)


@called
def _find(target, lanes, one, other):
    """Writes the clusters of two lanes to `lanes.order` and `lanes.begins`; returns their number."""
    moves, order, begins, apart = lanes.moves, lanes.order, lanes.begins, 0
    for site in target.sites:
        differs = lanes.spins[_P(site), one] != lanes.spins[_P(site), other]
        moves[_P(site)] = differs
        apart += differs
    kind = not (target.symmetric and 2 * apart > target.sites.shape[0])
    found = count = _P(0)
    for first in target.sites:
        if moves[_P(first)] != kind:
            continue
        begins[found] = head = count
        found += _ONE
        order[count], moves[_P(first)] = first, not kind
        count += _ONE
        while head < count:
            site = _P(order[head])
            head += _ONE
            for k in range(target.starts[site], target.starts[site + _ONE]):
                neighbour = target.neighbours[k]
                if moves[_P(neighbour)] == kind:
                    order[count], moves[_P(neighbour)] = neighbour, not kind
                    count += _ONE
    begins[found] = count
    return found


@inlined
def _flip(target, lanes, site, lane):
    change = np.float32(-lanes.spins[site, lane])
    lanes.spins[site, lane] = np.int8(change)
    lanes.sums[0, lane] += np.float64(change) * np.float64(target.linear[site])
    lanes.sums[1, lane] += np.float64(change) * np.float64(lanes.coupled[site, lane])
    for k in range(target.starts[site], target.starts[site + _ONE]):
        lanes.coupled[_P(target.neighbours[k]), lane] += change * target.weights[k]


@called
def exchange_clusters(target, lanes, place, other_place, number):
    """Exchanges clusters between the states of two places, after the step with this number."""
    one, other = lanes.lane_of[place], lanes.lane_of[other_place]
    found, begins, largest = _find(target, lanes, one, other), lanes.begins, _P(0)
    for k in range(found):
        if begins[k + _ONE] - begins[k] > begins[largest + _ONE] - begins[largest]:
            largest = k
    keys = lanes.observation_keys
    key0, key1 = threefry(keys[0, place], keys[1, place], _U(number), FOLD)
    word = _U(0)
    for k in range(found):
        if k % _WORD == 0:
            word, _ = threefry(key0, key1, _U(k), DRAW)
        if k != largest and word & _U(1):
            for i in range(begins[k], begins[k + _ONE]):
                _flip(target, lanes, _P(lanes.order[i]), one)
                _flip(target, lanes, _P(lanes.order[i]), other)
        word >>= _U(1)
