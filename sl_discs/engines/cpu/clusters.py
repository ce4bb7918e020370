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

from sl_discs.engines.cpu.arithmetic import DRAW, threefry
from sl_discs.engines.cpu.jit import called

# Unsigned, as in tree.py.
_U, _P = np.uint32, np.uint64
_ONE, _WORD = _P(1), _P(32)


@called
def exchange_clusters(target, spins, coupled, sums, memory, one, other, key0, key1):
    """Exchanges clusters between the states of two lanes.

    Args:
      target: `blocks.Target`, like the arrays of `blocks.Lanes` that follow.
      spins: [S, C] modified in place, like coupled and sums.
      coupled: [S, C].
      sums: [3, C].
      memory: [3, S + 1] working memory.
      one: a lane.
      other: another one.
      key0: first word of a key that nothing else uses.
      key1: second word.
    """
    # Which sites are still to be found, those of all clusters, one cluster after the other, and where each begins.
    left, order, begins = memory[0], memory[1], memory[2]
    apart = _U(0)
    for place in range(_P(target.sites.shape[0])):
        site = _P(target.sites[place])
        left[site] = spins[site, one] != spins[site, other]
        apart += left[site]
    wanted = _U(0 if target.symmetric and 2 * apart > target.sites.shape[0] else 1)
    found, count, largest, most = _P(0), _P(0), _P(0), _P(0)
    for place in range(_P(target.sites.shape[0])):
        if left[_P(target.sites[place])] == wanted:
            begin = head = count
            order[count], left[_P(target.sites[place])] = target.sites[place], _ONE - wanted
            count += _ONE
            while head < count:
                site = _P(order[head])
                head += _ONE
                for k in range(target.starts[site], target.starts[site + _ONE]):
                    neighbour = _P(target.neighbours[k])
                    if left[neighbour] == wanted:
                        order[count], left[neighbour] = neighbour, _ONE - wanted
                        count += _ONE
            if count - begin > most:
                largest, most = found, count - begin
            begins[found] = begin
            found += _ONE
    begins[found] = count
    word = _U(0)
    for k in range(found):
        if k % _WORD == 0:
            word, _ = threefry(key0, key1, _U(k), DRAW)
        if k != largest and word & _U(1):
            for i in range(_P(begins[k]), _P(begins[k + _ONE])):
                site = _P(order[i])
                for turn in range(2):
                    lane = other if turn else one
                    change = np.float32(-spins[site, lane])
                    spins[site, lane] = np.int8(change)
                    sums[0, lane] += np.float64(change) * np.float64(target.linear[site])
                    sums[1, lane] += np.float64(change) * np.float64(coupled[site, lane])
                    for j in range(target.starts[site], target.starts[site + _ONE]):
                        coupled[_P(target.neighbours[j]), lane] += change * target.weights[j]
        word >>= _U(1)
