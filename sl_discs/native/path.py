"""One step of gwg or path_auxiliary on one chain: the mathematics of `sl_discs.samplers.path`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.native.jit import inlined
from sl_discs.native.step import Outcome, adapted, draw_uniform, other_uniform, step_uniform
from sl_discs.native.tree import TOTAL, draw, put
from sl_discs.native.walk import flip_sites, take_back, weigh_proposal

_F = np.float32
# A product of probabilities is replaced by its logarithm before it could underflow.
_SMALLEST_PRODUCT = 1e-150
# A difference of sums below this part of them is formed anew.
_CANCELLED = 2.0**-20


class PathSettings(NamedTuple):
    """Fields of `PathSampler`; adapt_until is 0 for ever."""

    replacement: bool
    num_flips: int
    adaptive: bool
    target_acceptance: np.float32
    adapt_until: int


@inlined
def _path_length(settings, moment, radius, steps, limit):
    """round(radius) while it adapts, then one of two neighbouring numbers; or the fixed number of flips."""
    if not settings.adaptive:
        return min(settings.num_flips, limit)
    length = np.round(radius)
    if settings.adapt_until > 0 and steps >= settings.adapt_until:
        length = np.floor(radius - _F(0.5) + other_uniform(moment))
    return min(max(int(length), 1), limit)


@inlined
def _draw_path(settings, moment, walk, tree, length):
    """Draws into `sequence` and, each once, `flipped`; returns log-probability and number of distinct sites."""
    product, log_prob = 1.0, 0.0
    distinct = 0
    for k in range(length):
        site = draw(tree, draw_uniform(moment, k))
        weight = tree.weights[site]
        product *= np.float64(weight) / tree.sums[TOTAL]
        if product < _SMALLEST_PRODUCT:
            log_prob += np.log(product)
            product = 1.0
        walk.sequence[k] = site
        walk.picked[k] = weight
        seen = False
        if settings.replacement:
            for other in range(distinct):
                seen = seen or walk.flipped[other] == site
        elif k + 1 < length:
            put(tree, site, _F(0))
        if not seen:
            walk.flipped[distinct] = site
            distinct += 1
    if not settings.replacement:
        for k in range(length - 1):
            put(tree, walk.sequence[k], _F(walk.picked[k]))
    return log_prob + np.log(product), distinct


@inlined
def _untouched_mass(walk, tree, length):
    """The total without the sites of the sequence."""
    mass = tree.sums[TOTAL]
    for k in range(length):
        mass -= walk.picked[k]
    if mass > _CANCELLED * tree.sums[TOTAL]:
        return mass
    for k in range(length):
        put(tree, walk.sequence[k], _F(0))
    mass = tree.sums[TOTAL]
    for k in range(length):
        put(tree, walk.sequence[k], _F(walk.picked[k]))
    return mass


@inlined
def _log_prob_back(settings, walk, tree, length):
    """Log-probability that these weights give the sequence in reverse order."""
    for k in range(length):
        walk.picked[k] = tree.weights[walk.sequence[k]]
    product, log_prob = 1.0, 0.0
    alone = settings.replacement or length == 1
    # Without replacement the mass before the last pick is that of untouched sites and the pick; it grows from there.
    mass = tree.sums[TOTAL] if alone else _untouched_mass(walk, tree, length)
    for k in range(length):
        if not alone:
            mass += walk.picked[k]
        product *= walk.picked[k] / mass
        if product < _SMALLEST_PRODUCT:
            log_prob += np.log(product)
            product = 1.0
    return log_prob + np.log(product)


@inlined
def path_step(settings, moment, walk, target, tree, other, radius, steps):
    """Draws sites in turn, flips them, and keeps or restores the state.

    Args:
      settings: of the sampler.
      moment: of the step.
      walk: the chain, changed in place like the trees.
      target: f and the mask.
      tree: the weights of the state.
      other: room for those of the proposal.
      radius: number of flips as a real number.
      steps: steps done.
    """
    available = target.open_sites.shape[0]
    limit = walk.spins.shape[0] if settings.replacement else available
    length = _path_length(settings, moment, radius, steps, limit)
    log_forward, distinct = _draw_path(settings, moment, walk, tree, length)
    change_tilt = 0.0
    for k in range(distinct):
        site = walk.flipped[k]
        change_tilt -= 2.0 * walk.tilt[site] * walk.spins[site]
    change_linear, change_pairs, touched = flip_sites(walk, target, distinct)
    in_place = weigh_proposal(walk, target, moment.slope, tree, other, touched)
    log_back = _log_prob_back(settings, walk, tree if in_place else other, length)

    change = (change_linear + np.float64(target.scale) * change_pairs) * np.float64(moment.rate) + change_tilt
    acceptance = np.exp(min(change + log_back - log_forward, 0.0))
    accepted = step_uniform(moment) < acceptance
    if not accepted:
        take_back(walk, target, tree, in_place, touched, distinct)
    if settings.adaptive:
        radius = adapted(radius, acceptance, settings.target_acceptance, steps, settings.adapt_until)
        radius = min(max(radius, _F(1)), _F(available))
    return Outcome(acceptance, accepted, accepted and not in_place, distinct, change_linear, change_pairs, _F(radius))
