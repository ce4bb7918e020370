"""Checks of an engine's single steps: each sampler's kernel must equal the oracle's on all small targets.

Seeds are fixed; a correct engine fails the check of a sampler with probability 1e-6. Each sampler is compiled once
for all of its targets, and an adaptive radius or number of flips is set to the tested values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sl_discs.engines.contract import Engine
from sl_discs.samplers.acs import ACS
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.block_gibbs import BlockGibbs
from sl_discs.samplers.dhams import DHAMS, PDHAMS
from sl_discs.samplers.dlmc import DLMC
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.exchange import Exchange
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.gwg import GWG
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.path_auxiliary import PathAuxiliary
from sl_discs.samplers.rlsa import RLSA
from sl_discs.testing.engines import FALSE_ALARM
from sl_discs.testing.oracle import kernel_of_steps
from sl_discs.testing.single_step import check_steps, play_steps
from sl_discs.testing.small_targets import small_targets

_ADAPTING: dict[str, Any] = {"adaptive": True, "adapt_until": 50}
SAMPLERS = {
    "gibbs": Gibbs(),
    "metropolis": Metropolis(),
    "gibbs, sequential": Gibbs(scan="sequential"),
    "metropolis, sequential": Metropolis(scan="sequential"),
    "exchange": Exchange(),
    "block_gibbs": BlockGibbs(),
    "block_gibbs, 1 round": BlockGibbs(rounds=1),
    "gwg": GWG(**_ADAPTING),
    "gwg, 2 flips": GWG(num_flips=2),
    "path_auxiliary": PathAuxiliary(**_ADAPTING),
    "path_auxiliary, 3 flips": PathAuxiliary(num_flips=3),
    "dmala": DMALA(**_ADAPTING),
    "dmala, 1.7 flips": DMALA(expected_flips=1.7),
    "dmala, fixed": DMALA(scaling="fixed", step_size=0.5),
    "dmala, unadjusted": DMALA(adjusted=False),
    "dmala, fixed, unadjusted": DMALA(scaling="fixed", step_size=0.5, adjusted=False),
    "dlmc": DLMC(**_ADAPTING),
    "dlmc, euler": DLMC(expected_flips=1.7, solver="euler_forward"),
    "dlmc, fixed": DLMC(scaling="fixed", step_size=1.0),
    "acs": ACS(cycle=3),
    "rlsa": RLSA(num_flips=2),
    "rlsa, unadjusted": RLSA(num_flips=1, adjusted=False),
    "dhams": DHAMS(step_size=0.7, correction=0.3, persistence=0.0, adaptive=False),
    "pdhams": PDHAMS(persistence=0.0),
}


class _Moment(NamedTuple):
    """The scale (radius, or expected number of flips) at which an adaptive sampler takes its step, and when."""

    scale: float
    frozen: bool = False


def _moments(sampler: Sampler) -> list[_Moment | None]:
    """Integer and fractional radii, during adaptation and after it."""
    if not getattr(sampler, "adaptive", False):
        return [None]
    if isinstance(sampler, DMALA):
        return [_Moment(1.3), _Moment(3.0, frozen=True)]
    return [_Moment(1.2), _Moment(2.0), _Moment(3.3), _Moment(2.0, frozen=True), _Moment(2.6, frozen=True)]


def _check_moment(engine, sampler, targets, temperature, moment, steps, **options):
    """Checks that the scale follows the reported acceptance, with the gain of step 10, or stays once it is frozen."""
    name, factor = ("expected_flips", 3) if isinstance(sampler, DMALA) else ("radius", 1)
    sites = np.array([[target.mask.sum()] for target in targets])
    scales = np.minimum(moment.scale, sites)
    kernels = [
        kernel_of_steps(sampler, one.log_density(temperature), one.mask, steps, scale=scale, frozen=moment.frozen)
        for one, [scale] in zip(targets, scales, strict=True)
    ]
    number, gain = (sampler.adapt_until, 0) if moment.frozen else (10, 1 - 10 / sampler.adapt_until)
    state = {name: scales, "steps": number}
    # A scale that adapts differs from chain to chain in the next call.
    calls = 2 if moment.frozen else 1
    played = play_steps(engine, sampler, targets, temperature, steps=steps, state=state, calls=calls, **options)
    for one in played:
        check_steps(one, kernels, FALSE_ALARM / 20, number=steps)
    if steps == 1:
        moved = scales + factor * gain * (played[0].acceptance - sampler.target_acceptance_rate)
        np.testing.assert_allclose(getattr(played[0].sampler, name), np.clip(moved, 1, sites), rtol=1e-5)


def check_single_steps(
    engine: Engine,
    sampler: Sampler,
    *,
    num_sites: int = 4,
    temperatures: Sequence[float] = (2.0, 0.5),
    tilted: bool = True,
    whole: bool = True,
    steps: int = 1,
    **options: Any,
) -> None:
    """Checks that a sampler's step on an engine is the oracle's, also in calls that continue chains.

    Args:
      engine: the engine to check.
      sampler: a sampler that it supports.
      num_sites: 3 or 4.
      temperatures: temperatures of the targets.
      tilted: whether the targets have tilts.
      whole: whether their couplings are whole numbers.
      steps: steps per call, whose kernel is that power of the oracle's.
      **options: options of `play_steps`, such as `copies`.

    Raises:
      AssertionError: the step differs from the oracle's.
    """
    targets = small_targets(num_sites, tilted=tilted, whole=whole)
    for temperature in temperatures:
        for moment in _moments(sampler):
            if moment is None:
                played = play_steps(engine, sampler, targets, temperature, steps=steps, calls=2, **options)
                for call, found in enumerate(played):
                    kernels = [
                        kernel_of_steps(
                            sampler,
                            one.log_density(temperature),
                            one.mask,
                            steps,
                            coupled=one.couplings != 0,
                            done=call * steps,
                        )
                        for one in targets
                    ]
                    check_steps(found, kernels, FALSE_ALARM / 20, number=steps)
            elif steps == 1 or moment.frozen:
                _check_moment(engine, sampler, targets, temperature, moment, steps, **options)
