"""The state of one chain in the native loops, its proposal weights, and flips that can be undone.

Weights are those of `sl_discs.samplers.draws.softmax_weights`, 2^t with t = log2(e) (gain/2) -
reference, clipped to an interval. The gain is computed at a proposal temperature that may lag
slightly behind the target's: the Metropolis-Hastings test is exact for any proposal, and weights of
sites whose field has not changed can be kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.arrays import aligned_zeros
from sl_discs.engines.cpu.arithmetic import LOG2E, exp2
from sl_discs.engines.cpu.jit import FUSED, called, in_long_vectors, inlined
from sl_discs.engines.cpu.tree import LANES, NORM, REFERENCE, TOTAL, put_many, sum_all

# The effect of a flip on the local field of one chain, for dense rows and for neighbour lists.

# Unsigned, as in tree.py.
_NEXT = np.uint64(1)


class LoopTarget(NamedTuple):
    """f(x) = c.x + scale/2 x'Kx of one instance, on N sites: all that may flip or are coupled; a
    multiple of `LANES`.

    The unused form of K has one entry.

    Attributes:
      linear: [N] c.
      scale: of K.
      dense: whether `rows` hold K.
      rows: [M, M] K, int8 or float32; M may be larger than N.
      starts: [N + 1] where the entries of each site begin in the two lists.
      neighbours: [E] neighbours of all sites, concatenated.
      weights: [E] their couplings.
      mask: [N] 1 where a site may flip, else 0.
      open_sites: [A] the sites that may flip.
      whole: whether all couplings are whole numbers.
      symmetric: whether f stays the same if all sites flip; False for rows.
    """

    linear: np.ndarray
    scale: np.float32
    dense: bool
    rows: np.ndarray
    starts: np.ndarray
    neighbours: np.ndarray
    weights: np.ndarray
    mask: np.ndarray
    open_sites: np.ndarray
    whole: bool = True
    symmetric: bool = False


@inlined
def flip(target, spins, coupled, site):
    """Flips a site in place; returns the changes of c.x and of x'Kx/2.

    Args:
      target: f.
      spins: [N] -1 or 1.
      coupled: [N] Kx, in int16 or int32 if K is int8, else in float64: a flip and a flip back leave
        what was there.
      site: which site.
    """
    sign = -spins[site]
    spins[site] = sign
    if target.dense:
        row = target.rows[site]
        if sign > 0:
            for i in range(coupled.shape[0]):
                coupled[i] += row[i]
        else:
            for i in range(coupled.shape[0]):
                coupled[i] -= row[i]
    else:
        # Multiplied by the sign, as the processor could not predict a branch between two loops.
        by = coupled.dtype.type(sign)
        for k in range(target.starts[site], target.starts[site + _NEXT]):
            coupled[target.neighbours[k]] += by * target.weights[k]
    # No site is its own neighbour, so `coupled[site]` is what it was.
    return np.float64(sign) * target.linear[site], np.float64(sign) * coupled[site]


_F = np.float32
_LOWEST = _F(-115)
_HIGHEST = _F(100)
# If the total is outside these bounds, a new reference is needed.
_SMALLEST_TOTAL = 2.0**-40
_LARGEST_TOTAL = 2.0**60
# Changed weights are written one by one if they are fewer than 1/24 of all, as this costs about 24
# times as much each.
FEW = 24
_ALL = -1


class Changes(NamedTuple):
    """Changes made by flips.

    Attributes:
      linear: change of c.x.
      pairs: change of x'Kx/2.
      observed: change of y.s for spins s.
    """

    linear: np.float64
    pairs: np.float64
    observed: np.float64


class LoopChain(NamedTuple):
    """One chain of padded length N, a multiple of `tree.LANES`, and working memory for its steps.

    Attributes:
      spins: [N] -1 or 1 in float32.
      coupled: [N] Kx, see `flip`.
      saved: [N] a copy of `coupled` from before a proposal that touches many sites.
      y: [N] observation, which tilts the target by h = tilt_scale y; zeros without localization,
        like `mean`.
      mean: [N] running posterior mean.
      base: [N] the part of the logits (to base 2) that does not depend on Kx.
      flipped: [N] the sites of a proposal.
      sequence: [N] sites in the order of their draws.
      picked: [N] weights of these sites.
      stamps: [N] number of the proposal that last touched a site's field.
      touched: [N] sites whose weights change.
      fresh: [N] new weights of the touched sites.
      stale: [N] old weights of the touched sites.
      proposals: [1] number of the last proposal.
    """

    spins: np.ndarray
    coupled: np.ndarray
    saved: np.ndarray
    y: np.ndarray
    mean: np.ndarray
    base: np.ndarray
    flipped: np.ndarray
    sequence: np.ndarray
    picked: np.ndarray
    stamps: np.ndarray
    touched: np.ndarray
    fresh: np.ndarray
    stale: np.ndarray
    proposals: np.ndarray


def make_chain(size, coupled_dtype):
    """Allocates a chain."""
    float_type = np.float32
    index_type = np.uint32
    dtypes = LoopChain(
        spins=float_type,
        coupled=coupled_dtype,
        saved=coupled_dtype,
        y=float_type,
        mean=float_type,
        base=float_type,
        flipped=index_type,
        sequence=index_type,
        picked=np.float64,
        stamps=index_type,
        touched=index_type,
        fresh=float_type,
        stale=float_type,
        proposals=index_type,
    )
    arrays = LoopChain(*(aligned_zeros(size, dtype) for dtype in dtypes))
    return arrays._replace(proposals=arrays.proposals[:1])


@inlined(fastmath=FUSED)
def set_base(chain, target, rate, tilt_scale):
    """Sets `base` for a proposal temperature 1/rate and a tilt; returns the slope, the factor of Kx
    in the logits.
    """
    half = _F(0.5) * rate
    for i in range(chain.base.shape[0]):
        chain.base[i] = (target.linear[i] * half + tilt_scale * chain.y[i]) * LOG2E
    return target.scale * half * LOG2E


@inlined
def _logit(spin, coupled, base, slope):
    return -spin * (base + slope * _F(coupled))


@inlined(fastmath=FUSED)
def fill_weights(spins, coupled, base, mask, slope, reference, weights):
    """Writes 2^(logit - reference), clipped to an interval; 0 outside the mask."""
    # Weights of the padding up to a whole tile are 0 and stay 0.
    for i in range(spins.shape[0]):
        t = _logit(spins[i], coupled[i], base[i], slope) - reference
        weights[i] = mask[i] * exp2(min(max(t, _LOWEST), _HIGHEST))


@called
def weigh_all(chain, target, slope, tree):
    """Computes all weights of the state and their sums, with a new reference if the tree's does not
    suit.
    """
    in_long_vectors()
    fill_weights(
        chain.spins,
        chain.coupled,
        chain.base,
        target.mask,
        slope,
        _F(tree.sums[REFERENCE]),
        tree.weights,
    )
    sum_all(tree)
    tree.sums[NORM] = np.nan
    if not _SMALLEST_TOTAL < tree.sums[TOTAL] < _LARGEST_TOTAL and target.open_sites.shape[0]:
        top = _F(-np.inf)
        for site in target.open_sites:
            top = max(top, _logit(chain.spins[site], chain.coupled[site], chain.base[site], slope))
        tree.sums[REFERENCE] = top
        fill_weights(chain.spins, chain.coupled, chain.base, target.mask, slope, top, tree.weights)
        sum_all(tree)


@inlined
def flip_sites(chain, target, count):
    """Flips the first `count` sites of `flipped` and collects the sites whose weights change.

    Returns:
      the changes, and the number of sites in `touched`; -1 if they are too many to list.
    """
    size = chain.spins.shape[0]
    reach = size if target.dense else 0
    if not target.dense:
        for k in range(count):
            site = chain.flipped[k]
            reach += 1 + np.int64(target.starts[site + 1] - target.starts[site])
    many = FEW * reach > size
    if many:
        for i in range(size):
            chain.saved[i] = chain.coupled[i]
    linear, pairs, observed = 0.0, 0.0, 0.0
    for k in range(count):
        site = chain.flipped[k]
        observed -= 2.0 * chain.y[site] * chain.spins[site]
        of_linear, of_pairs = flip(target, chain.spins, chain.coupled, site)
        linear += of_linear
        pairs += of_pairs
    changes = Changes(linear, pairs, observed)
    if many:
        return changes, _ALL
    chain.proposals[0] += 1
    stamp = chain.proposals[0]
    touched = 0
    for k in range(count):
        site = chain.flipped[k]
        if chain.stamps[site] != stamp:
            chain.stamps[site] = stamp
            chain.touched[touched] = site
            touched += 1
        for j in range(target.starts[site], target.starts[site + 1]):
            neighbour = target.neighbours[j]
            if chain.stamps[neighbour] != stamp:
                chain.stamps[neighbour] = stamp
                chain.touched[touched] = neighbour
                touched += 1
    return changes, touched


@inlined(fastmath=FUSED)
def _weigh_touched(chain, target, slope, tree, touched):
    """Updates the weights of the touched sites; False, with nothing changed, if another reference
    is needed.
    """
    reference = _F(tree.sums[REFERENCE])
    highest = _F(-np.inf)
    for k in range(touched):
        site = chain.touched[k]
        t = _logit(chain.spins[site], chain.coupled[site], chain.base[site], slope) - reference
        highest = max(highest, t)
        chain.fresh[k] = t
        chain.stale[k] = tree.weights[site]
    if highest > 60:
        return False
    # Whole vectors; entries after the last touched site are never read.
    for k in range(-(-touched // LANES) * LANES):
        chain.fresh[k] = exp2(max(chain.fresh[k], _LOWEST))
    for k in range(touched):
        chain.fresh[k] *= target.mask[chain.touched[k]]
    put_many(tree, chain.touched, chain.fresh, touched)
    if tree.sums[TOTAL] > _SMALLEST_TOTAL:
        return True
    put_many(tree, chain.touched, chain.stale, touched)
    return False


@inlined
def weigh_proposal(chain, target, slope, tree, other, touched):
    """Weights after `flip_sites`: True if they are updated in `tree`, False if all of them are
    written to `other`.
    """
    if touched != _ALL and _weigh_touched(chain, target, slope, tree, touched):
        return True
    other.sums[REFERENCE] = tree.sums[REFERENCE]
    weigh_all(chain, target, slope, other)
    return False


@inlined
def take_back(chain, target, tree, in_place, touched, count):
    """Undoes `flip_sites` and `weigh_proposal`."""
    if touched == _ALL:
        for i in range(chain.saved.shape[0]):
            chain.coupled[i] = chain.saved[i]
        for k in range(count):
            chain.spins[chain.flipped[k]] = -chain.spins[chain.flipped[k]]
    else:
        for k in range(count):
            flip(target, chain.spins, chain.coupled, chain.flipped[k])
    if in_place:
        put_many(tree, chain.touched, chain.stale, touched)
