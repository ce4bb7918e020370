"""Which step belongs to which settings: chosen by their type when a loop is compiled, so none pays for others."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from sl_discs.native.independent import IndependentSettings, form_odds, independent_step
from sl_discs.native.langevin import LangevinSettings, langevin_step
from sl_discs.native.path import PathSettings, path_step
from sl_discs.native.single_site import SingleSiteSettings, single_site_step
from sl_discs.native.walk import set_base, weigh_all

_STEPS = {
    PathSettings: path_step,
    LangevinSettings: langevin_step,
    IndependentSettings: independent_step,
    SingleSiteSettings: single_site_step,
}


def play_step(settings, moment, walk, target, tree, other, pace, steps):
    """A step of the sampler that the settings belong to."""
    raise NotImplementedError("compiled code only")


def weigh_state(settings, walk, target, rate, tilt_scale, tree):
    """What that sampler keeps in the tree about a state, formed anew; returns the slope, see `walk.set_base`."""
    raise NotImplementedError("compiled code only")


def usual_draws(settings, pace):
    """For how many draws of a step random words are made in advance."""
    raise NotImplementedError("compiled code only")


@overload(play_step)
def _play_step(settings, moment, walk, target, tree, other, pace, steps):
    step = _STEPS[settings.instance_class]

    def call(settings, moment, walk, target, tree, other, pace, steps):
        return step(settings, moment, walk, target, tree, other, pace, steps)

    return call


@overload(weigh_state)
def _weigh_state(settings, walk, target, rate, tilt_scale, tree):
    if settings.instance_class is SingleSiteSettings:
        return lambda settings, walk, target, rate, tilt_scale, tree: np.float32(0)
    of_odds = settings.instance_class is IndependentSettings

    def call(settings, walk, target, rate, tilt_scale, tree):
        slope = set_base(walk, target, rate, tilt_scale)
        if of_odds:
            form_odds(settings, walk, target, slope, tree)
        else:
            weigh_all(walk, target, slope, tree)
        return slope

    return call


@overload(usual_draws)
def _usual_draws(settings, pace):
    if settings.instance_class in (SingleSiteSettings, IndependentSettings):
        return lambda settings, pace: 0
    if settings.instance_class is LangevinSettings:
        return lambda settings, pace: 3 * int(pace) + 4
    return lambda settings, pace: int(pace) + 2
