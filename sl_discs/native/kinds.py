"""Which step belongs to which settings: chosen by their type when a loop is compiled, so none pays for others."""

from __future__ import annotations

from numba.extending import overload

from sl_discs.native.langevin import LangevinSettings, langevin_step
from sl_discs.native.path import PathSettings, path_step
from sl_discs.native.single_site import SingleSiteSettings, single_site_step

_STEPS = {PathSettings: path_step, LangevinSettings: langevin_step, SingleSiteSettings: single_site_step}


def play_step(settings, moment, walk, target, tree, other, pace, steps):
    """A step of the sampler that the settings belong to."""
    raise NotImplementedError("compiled code only")


def needs_weights(settings):
    """Whether that sampler draws sites by weight."""
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


@overload(needs_weights)
def _needs_weights(settings):
    answer = settings.instance_class is not SingleSiteSettings
    return lambda settings: answer


@overload(usual_draws)
def _usual_draws(settings, pace):
    if settings.instance_class is SingleSiteSettings:
        return lambda settings, pace: 0
    if settings.instance_class is LangevinSettings:
        return lambda settings, pace: 3 * int(pace) + 4
    return lambda settings, pace: int(pace) + 2
