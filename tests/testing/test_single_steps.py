"""Each engine's single step has the oracle's law, from every state of every small target.

Seeds are fixed; an engine that is right fails a single test with probability 1e-6. Each sampler is compiled once for
all of its targets, and an adaptive radius or number of flips is set to the values that are tested.
"""

import numpy as np
import pytest
from chains import FALSE_ALARM, known_to
from marks import slow_except
from single_steps import SAMPLERS, check_single_steps, check_steps, play_steps, small_targets

from sl_discs.engines.registry import get_engine
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.testing.oracle import kernel_of

ON_CPU = known_to("cpu", SAMPLERS)
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


def check(engine, sampler, **options):
    check_single_steps(get_engine(engine), sampler, **options)


@pytest.mark.parametrize(
    "name",
    slow_except(
        SAMPLERS,
        ("gibbs", "exchange", "path_auxiliary", "dmala", "dlmc"),
    ),
)
def test_reference(name):
    check("reference", SAMPLERS[name], copies=1024, temperatures=(np.inf, 2.0, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER_BALANCING)
def test_reference_with_other_weights(name):
    check("reference", OTHER_BALANCING[name], copies=1024)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_reference_on_three_sites_sparse_and_not_localized(name):
    check("reference", SAMPLERS[name], copies=1024, num_sites=3, sparse=True, tilted=False)


@pytest.mark.parametrize(
    "name",
    slow_except(
        ON_CPU, ("gibbs, sequential", "metropolis", "exchange", "path_auxiliary", "dmala", "dmala, fixed, unadjusted")
    ),
)
def test_cpu(name):
    """Weights are kept from step to step, so the law of several steps is tested too."""
    sampler = SAMPLERS[name]
    check("cpu", sampler, copies=1024)
    check("cpu", sampler, copies=512, steps=5, temperatures=(0.5,))
    check("cpu", sampler, copies=512, num_sites=3, temperatures=(np.inf, 1.0), sparse=True, tilted=False)


@pytest.mark.parametrize("name", known_to("cuda", SAMPLERS))
def test_cuda(name):
    """On a card, with one warp a chain; tests/engines/test_cuda_engine.py has what needs none."""
    check("cuda", SAMPLERS[name], copies=1024, temperatures=(np.inf, 2.0, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_CPU)
def test_cpu_with_real_couplings(name):
    for steps in (1, 5):
        check("cpu", SAMPLERS[name], copies=4096, whole=False, sparse=steps == 1, steps=steps)


@pytest.mark.parametrize("name", [name for name in ON_CPU if hasattr(SAMPLERS[name], "balancing_fn_type")])
def test_cpu_with_proposals_of_another_temperature(name, proposing_at):
    """What has no test proposes at the target's own temperature."""
    sampler, targets = SAMPLERS[name], small_targets(4)
    proposing_at(1.3)
    temperature = 1.3 if getattr(sampler, "adjusted", True) else 1.0
    kernels = [
        kernel_of(sampler, one.log_density(1), one.mask, proposed=one.log_density(temperature)) for one in targets
    ]
    [steps] = play_steps(get_engine("cpu"), sampler, targets, 1.0, copies=2048)
    check_steps(steps, kernels, FALSE_ALARM)
