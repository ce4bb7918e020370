"""One step of gibbs or metropolis on one chain: the mathematics of `sl_discs.samplers.single_site`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.arithmetic import exp_nonpositive
from sl_discs.engines.cpu.coupling import flip
from sl_discs.engines.cpu.entry import Entry, Kernel, no_draws, weigh_nothing
from sl_discs.engines.cpu.jit import inlined
from sl_discs.engines.cpu.step import Outcome, step_uniform, target_change
from sl_discs.engines.cpu.walk import Changes
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.single_site import SingleSiteSampler

_F = np.float32


class SingleSiteSettings(NamedTuple):
    """Which rule accepts: Gibbs' sigmoid(change), or Metropolis' min(1, exp(change))."""

    gibbs: bool


@inlined
def single_site_step(settings, moment, walk, target, tree, other, pace, steps):
    """Draws one site and flips it with the rule's probability; arguments as in `path.path_step`, weights unused."""
    sites = target.open_sites
    # The word has 32 bits: a site's probability is off by less than A 2^-32 of itself.
    word = np.uint64(moment.second[0, moment.row])
    site = sites[(word * np.uint64(sites.shape[0])) >> np.uint64(32)]
    spin = np.float64(walk.spins[site])
    changes = Changes(-spin * target.linear[site], -spin * walk.coupled[site], -2.0 * spin * walk.y[site])
    change = target_change(moment, target, changes)
    small = exp_nonpositive(_F(-abs(change)))
    if settings.gibbs:
        acceptance = (_F(1) if change > 0 else small) / (_F(1) + small)
    else:
        acceptance = _F(1) if change > 0 else small
    accepted = step_uniform(moment) < acceptance
    if accepted:
        walk.flipped[0] = site
        flip(target, walk.spins, walk.coupled, site)
    return Outcome(np.float64(acceptance), accepted, False, 1, changes, pace)


def _settings(sampler: SingleSiteSampler) -> SingleSiteSettings:
    return SingleSiteSettings(type(sampler) is Gibbs)


ENTRY = Entry(
    _settings,
    {SingleSiteSettings: Kernel(single_site_step, weigh_nothing, no_draws)},
    keeps_weights=lambda sampler: False,
    steps_per_call=500_000,
)
