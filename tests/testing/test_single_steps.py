"""Each engine's single step has the oracle's law, from every state of every small target.

Seeds are fixed; an engine that is right fails a single test with probability 1e-6. Each sampler is compiled once for
all of its targets, and an adaptive radius or number of flips is set to the values that are tested.
"""

from typing import NamedTuple

import numpy as np
import pytest

from sl_discs.samplers.base import Sampler
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.gwg import GWG
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.path_auxiliary import PathAuxiliary
from sl_discs.testing.engines import FALSE_ALARM, entry
from sl_discs.testing.oracle import kernel_of, kernel_of_steps
from sl_discs.testing.single_step import check_steps, play_steps
from sl_discs.testing.small_targets import small_targets

ADAPTING = {"adaptive": True, "adapt_until": 50}
SAMPLERS = {
    "gibbs": Gibbs(),
    "metropolis": Metropolis(),
    "gibbs, sequential": Gibbs(scan="sequential"),
    "metropolis, sequential": Metropolis(scan="sequential"),
    "gwg": GWG(**ADAPTING),
    "gwg, 2 flips": GWG(num_flips=2),
    "path_auxiliary": PathAuxiliary(**ADAPTING),
    "path_auxiliary, 3 flips": PathAuxiliary(num_flips=3),
    "dmala": DMALA(**ADAPTING),
    "dmala, 1.7 flips": DMALA(expected_flips=1.7),
    "dmala, fixed": DMALA(scaling="fixed", step_size=0.5),
    "dula": DMALA(adjusted=False),
    "dula, fixed": DMALA(scaling="fixed", step_size=0.5, adjusted=False),
}
ON_GPU = [name for name, one in SAMPLERS.items() if entry("gpu").obstacle(one) is None]
OTHER_BALANCING = {
    f"{name}, {balancing}": sampler
    for balancing in ("RATIO", "MAX", "MIN")
    for name, sampler in {
        "gwg": GWG(num_flips=2, balancing_fn_type=balancing),
        "path_auxiliary": PathAuxiliary(num_flips=2, balancing_fn_type=balancing),
        "dmala": DMALA(balancing_fn_type=balancing),
        "dmala, fixed": DMALA(scaling="fixed", step_size=0.5, balancing_fn_type=balancing),
    }.items()
}


class Moment(NamedTuple):
    """The scale (radius, or expected number of flips) at which an adaptive sampler takes its step, and when."""

    scale: float
    frozen: bool = False


def moments(sampler: Sampler) -> list[Moment | None]:
    """Whole radii and others, while they adapt and afterwards."""
    if not getattr(sampler, "adaptive", False):
        return [None]
    if isinstance(sampler, DMALA):
        return [Moment(1.3), Moment(3.0, frozen=True)]
    return [Moment(1.2), Moment(2.0), Moment(3.3), Moment(2.0, frozen=True), Moment(2.6, frozen=True)]


def check_moment(engine, sampler, targets, temperature, moment, steps, **options):
    """The scale follows the acceptance that is reported, with the gain of step 10 or none any more."""
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


def check(engine, sampler, *, num_sites=4, temperatures=(2.0, 0.5), tilted=True, whole=True, steps=1, **options):
    """Each call but the first goes on with what a chain carries."""
    targets = small_targets(num_sites, tilted=tilted, whole=whole)
    for temperature in temperatures:
        for moment in moments(sampler):
            if moment is None:
                played = play_steps(entry(engine), sampler, targets, temperature, steps=steps, calls=2, **options)
                for call, found in enumerate(played):
                    kernels = [
                        kernel_of_steps(sampler, one.log_density(temperature), one.mask, steps, done=call * steps)
                        for one in targets
                    ]
                    check_steps(found, kernels, FALSE_ALARM / 20, number=steps)
            elif steps == 1 or moment.frozen:
                check_moment(entry(engine), sampler, targets, temperature, moment, steps, **options)


def some(names, fast):
    """All names, those that are not among the fast ones marked as slow."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize(
    "name",
    some(
        SAMPLERS, ("gibbs", "metropolis", "metropolis, sequential", "gwg", "path_auxiliary", "dmala", "dmala, fixed")
    ),
)
def test_reference(name):
    check("reference", SAMPLERS[name], copies=1024)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER_BALANCING)
def test_reference_with_other_weights(name):
    check("reference", OTHER_BALANCING[name], copies=1024)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_reference_on_three_sites_sparse_and_not_localized(name):
    check("reference", SAMPLERS[name], copies=1024, num_sites=3, sparse=True, tilted=False)


@pytest.mark.parametrize("name", SAMPLERS)
def test_cpu(name):
    """Weights are kept from step to step, so the law of several steps is tested too."""
    sampler = SAMPLERS[name]
    check("cpu", sampler, copies=1024)
    check("cpu", sampler, copies=512, steps=5, temperatures=(0.5,))
    check("cpu", sampler, copies=512, num_sites=3, temperatures=(1.0,), sparse=True, tilted=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_cpu_with_real_couplings(name):
    for steps in (1, 5):
        check("cpu", SAMPLERS[name], copies=4096, whole=False, sparse=steps == 1, steps=steps)


@pytest.mark.parametrize("name", [name for name, one in SAMPLERS.items() if not hasattr(one, "scan")])
def test_cpu_with_proposals_of_another_temperature(name, proposing_at):
    """What has no test proposes at the target's own temperature."""
    sampler, targets = SAMPLERS[name], small_targets(4)
    proposing_at(1.3)
    temperature = 1.3 if getattr(sampler, "adjusted", True) else 1.0
    kernels = [
        kernel_of(sampler, one.log_density(1), one.mask, proposed=one.log_density(temperature)) for one in targets
    ]
    [steps] = play_steps(entry("cpu"), sampler, targets, 1.0, copies=2048)
    check_steps(steps, kernels, FALSE_ALARM)


@pytest.mark.parametrize("name", some(ON_GPU, ("path_auxiliary", "dmala, 1.7 flips")))
def test_body_of_the_gpu_kernel(name):
    """Mapped over chains by JAX, which plays many; that the kernel does the same is tested on few."""
    check("gpu body", SAMPLERS[name], copies=1024)


@pytest.mark.parametrize("name", some(ON_GPU, ("metropolis",)))
def test_gpu_kernel_interpreted(name):
    """The interpreter copies all chains for each of them, so they are few."""
    check("gpu", SAMPLERS[name], copies=64, num_sites=3, temperatures=(0.7,))


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_GPU)
def test_gpu_kernel_interpreted_sparse_and_not_localized(name):
    check("gpu", SAMPLERS[name], copies=64, num_sites=3, temperatures=(0.7,), sparse=True, tilted=False)
