"""Weights of sites with hierarchical sums, for drawing a site by weight and changing single weights
fast.

A tile is 128 sites in 16 groups of 8: site s belongs to tile s // 128 and, within it, to group s %
16, so that the sums of a tile's groups are sums of whole rows of 16. A span is 16 tiles. A draw
searches the spans, the tiles of one span, the groups of one tile and the sites of one group; a
changed weight adds a difference to each sum above it.

Adding differences in float64 keeps the error of a sum at about 2^-53 of its largest value so far. A
sum that has fallen below 2^-20 of its peak is therefore recomputed, so that it never consists of
rounding errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.arrays import aligned_zeros
from sl_discs.engines.cpu.jit import FUSED, called, in_long_vectors, inlined

LANES = 16
DEPTH = 8
TILE = LANES * DEPTH
_TILES_A_SPAN = 16

_D = np.float64
# Indices are unsigned in hot loops, since numba checks whether signed ones count from the end.
_P = np.uint64
_STALE = _D(2.0**-20)

# The first entries of `sums`: the total, the logit (to base 2) whose weight is 1, and a place for a
# sampler that needs another function of all weights, NaN if it is unknown.
TOTAL, REFERENCE, NORM = 0, 1, 2
_GROUPS = 8


class WeightTree(NamedTuple):
    """Weights of N sites, a multiple of 128, and their sums.

    Attributes:
      weights: [N] float32, 0 for padding.
      sums: [8 + N/8 + N/128 + N/2048] float64: `TOTAL` and others, then groups, tiles, spans.
      peaks: likewise, the largest value of each sum since it was last computed.
    """

    weights: np.ndarray
    sums: np.ndarray
    peaks: np.ndarray


def make_tree(size):
    """Returns a tree for `size` sites, rounded up to whole tiles, all weights 0."""
    tiles = -(-size // TILE)
    num_sums = _GROUPS + LANES * tiles + tiles + -(-tiles // _TILES_A_SPAN)
    return WeightTree(
        aligned_zeros(tiles * TILE, np.float32), aligned_zeros(num_sums), aligned_zeros(num_sums)
    )


@inlined
def _levels(tree):
    """Returns the number of tiles, and where sums of tiles and of spans begin."""
    tiles = tree.weights.shape[0] // TILE
    first_tile = _GROUPS + LANES * tiles
    return tiles, first_tile, first_tile + tiles


@inlined
def _tiles_of(span, tiles):
    return min(_TILES_A_SPAN, tiles - span * _TILES_A_SPAN)


@called
def _sum(values, first, count, stride):
    in_long_vectors()
    total = _D(0)
    for k in range(count):
        total += _D(values[_P(first + k * stride)])
    return total


@called(fastmath=FUSED)
def sum_all(tree):
    """Computes all sums from the weights."""
    in_long_vectors()
    w = tree.weights
    sums = tree.sums
    tiles, first_tile, first_span = _levels(tree)
    for tile in range(tiles):
        for lane in range(LANES):
            k = TILE * tile + lane
            sums[_GROUPS + LANES * tile + lane] = (
                (_D(w[k]) + _D(w[k + 16])) + (_D(w[k + 32]) + _D(w[k + 48]))
            ) + ((_D(w[k + 64]) + _D(w[k + 80])) + (_D(w[k + 96]) + _D(w[k + 112])))
    for tile in range(tiles):
        sums[first_tile + tile] = _sum(sums, _GROUPS + LANES * tile, LANES, 1)
    for span in range(sums.shape[0] - first_span):
        sums[first_span + span] = _sum(
            sums, first_tile + span * _TILES_A_SPAN, _tiles_of(span, tiles), 1
        )
    sums[TOTAL] = _sum(sums, first_span, sums.shape[0] - first_span, 1)
    for k in range(sums.shape[0]):
        tree.peaks[k] = sums[k]


@inlined
def _change(tree, index, change, children, first, count, stride):
    """Adds to a sum, or recomputes it from its children if little is left of it; returns the actual
    change.

    The sum above must change by exactly this, or it would keep the error that this one has lost.
    """
    index = _P(index)
    new = tree.sums[index] + change
    if new > tree.peaks[index]:
        tree.peaks[index] = new
    elif new < tree.peaks[index] * _STALE:
        new = _sum(children, first, count, stride)
        tree.peaks[index] = new
        change = new - tree.sums[index]
    tree.sums[index] = new
    return change


@inlined
def _change_below(tree, site, weight, first_tile):
    """Sets a site's weight and updates its group's and its tile's sums; returns the change and the
    tile.
    """
    change = _D(weight) - _D(tree.weights[site])
    tree.weights[site] = weight
    tile = site // TILE
    lane = site % LANES
    first_group = _GROUPS + LANES * tile
    change = _change(
        tree, first_group + lane, change, tree.weights, tile * TILE + lane, DEPTH, LANES
    )
    return _change(tree, first_tile + tile, change, tree.sums, first_group, LANES, 1), tile


@inlined
def _change_span(tree, span, change, tiles, first_tile, first_span):
    first = first_tile + span * _TILES_A_SPAN
    return _change(tree, first_span + span, change, tree.sums, first, _tiles_of(span, tiles), 1)


@inlined
def _change_total(tree, change, first_span):
    _change(tree, TOTAL, change, tree.sums, first_span, tree.sums.shape[0] - first_span, 1)


@inlined
def put(tree, site, weight):
    """Sets the weight of a site."""
    tiles, first_tile, first_span = _levels(tree)
    change, tile = _change_below(tree, site, weight, first_tile)
    change = _change_span(tree, tile // _TILES_A_SPAN, change, tiles, first_tile, first_span)
    _change_total(tree, change, first_span)


@called
def put_many(tree, sites, weights, count):
    """Sets the weights of the first `count` sites; neighbours in the list share one update of the
    higher sums.

    A sum of differences is at most the old sum plus the new one, so the peaks miss nothing that
    matters.
    """
    tiles, first_tile, first_span = _levels(tree)
    total = _D(0)
    gathered = _D(0)
    last = 0
    for k in range(count):
        change, tile = _change_below(tree, sites[k], weights[k], first_tile)
        span = tile // _TILES_A_SPAN
        if span != last:
            total += _change_span(tree, last, gathered, tiles, first_tile, first_span)
            gathered = _D(0)
            last = span
        gathered += change
    total += _change_span(tree, last, gathered, tiles, first_tile, first_span)
    _change_total(tree, total, first_span)


@inlined
def _find(values, first, count, stride, threshold):
    """Returns the entry at which the running sum passes the threshold, and the rest of the
    threshold there.

    If rounding keeps the sum below the threshold, it is the last positive entry.
    """
    for k in range(count):
        value = _D(values[_P(first + k * stride)])
        if threshold < value:
            return k, threshold
        threshold -= value
    index = count - 1
    while index > 0 and not values[_P(first + index * stride)] > 0:
        index -= 1
    return index, _D(values[_P(first + index * stride)])


@called
def draw(tree, uniform):
    """Draws a site of positive weight with probability weight/total, from a uniform number on [0,
    1) in float64.
    """
    sums = tree.sums
    tiles, first_tile, first_span = _levels(tree)
    span, threshold = _find(sums, first_span, sums.shape[0] - first_span, 1, uniform * sums[TOTAL])
    first = span * _TILES_A_SPAN
    tile, threshold = _find(sums, first_tile + first, _tiles_of(span, tiles), 1, threshold)
    tile += first
    lane, threshold = _find(sums, _GROUPS + tile * LANES, LANES, 1, threshold)
    row, _ = _find(tree.weights, tile * TILE + lane, DEPTH, LANES, threshold)
    return np.uint32(tile * TILE + row * LANES + lane)
