"""Each engine's single step has the oracle's law, from every state of every small target; wrong
steps do not.

Seeds are fixed; an engine that is right fails a single test with probability 1e-6. Each sampler is
compiled once for all of its targets, and an adaptive radius or number of flips is set to the values
that are tested.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from chains import FALSE_ALARM
from engines_at_hand import ENGINES, each_engine, known_to
from marks import slow_except
from single_steps import (
    SAMPLERS,
    USUAL,
    Disagreement,
    check_single_steps,
    check_steps,
    play_steps,
    small_targets,
)

from sl_discs.engines.cpu import layout
from sl_discs.samplers import path as path_module
from sl_discs.samplers.block_gibbs import BlockGibbs
from sl_discs.samplers.langevin import DLMC, DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Exchange, Gibbs, Metropolis
from sl_discs.testing.oracle import kernel_of

FOUR_SITES = small_targets(4)


@pytest.fixture
def proposing_at(monkeypatch):
    """Has the engine `cpu` weigh proposals at another temperature, where a test follows."""

    def at(temperature):
        monkeypatch.setattr(
            layout,
            "proposal_temperatures",
            lambda row, levels: np.full(row.shape, temperature, np.float32),
        )

    return at


# One of the two that flip a path, whose code is the same.
EACH_KIND = set(USUAL.values()) - {USUAL["gwg"]}
FAST = {
    "reference": EACH_KIND,
    "cpu": EACH_KIND,
    "in step": SAMPLERS,
    "one lane": {USUAL["path_auxiliary"], USUAL["dmala"]},
    "cuda": SAMPLERS,
}


@each_engine(SAMPLERS, FAST)
def test_the_step_of_each_engine(engine, name):
    """With tilts and masks, at temperatures up to infinity."""
    check_single_steps(
        ENGINES[engine], SAMPLERS[name], copies=1024, temperatures=(np.inf, 2.0, 0.5)
    )


@each_engine(SAMPLERS, {"cpu": FAST["cpu"], "in step": FAST["in step"]})
def test_several_steps(engine, name):
    """What is kept from step to step, such as weights, is right; and single ones on sparse targets
    without tilts.
    """
    check_single_steps(ENGINES[engine], SAMPLERS[name], copies=512, temperatures=(0.5,), steps=5)
    options = {"num_sites": 3, "sparse": True, "tilted": False}
    check_single_steps(
        ENGINES[engine], SAMPLERS[name], copies=512, temperatures=(np.inf, 1.0), **options
    )


def test_colours_that_are_given():
    """Of four sites that are coupled to each other, in another order than theirs."""
    sampler = BlockGibbs(colours=(5, 1, 0, 2))
    check_single_steps(ENGINES["reference"], sampler, copies=1024)


@each_engine(SAMPLERS, {})
def test_real_couplings(engine, name):
    check_single_steps(
        ENGINES[engine], SAMPLERS[name], copies=4096, temperatures=(0.5,), whole=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("balancing", ["RATIO", "MAX", "MIN"])
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, sampler in SAMPLERS.items()
        if hasattr(sampler, "balancing_fn_type") and not sampler.adaptive
    ],
)
def test_other_weights(name, balancing):
    sampler = dataclasses.replace(SAMPLERS[name], balancing_fn_type=balancing)
    check_single_steps(ENGINES["reference"], sampler, copies=1024)


@pytest.mark.parametrize(
    "name",
    [name for name in known_to("cpu", SAMPLERS) if hasattr(SAMPLERS[name], "balancing_fn_type")],
)
def test_cpu_with_proposals_of_another_temperature(name, proposing_at):
    """What has no test proposes at the target's own temperature."""
    sampler = SAMPLERS[name]
    proposing_at(1.3)
    proposed = [
        one.log_density(1.3 if getattr(sampler, "adjusted", True) else 1.0) for one in FOUR_SITES
    ]
    kernels = [
        kernel_of(sampler, one.log_density(1), one.mask, proposed=other)
        for one, other in zip(FOUR_SITES, proposed, strict=True)
    ]
    [steps] = play_steps(ENGINES["cpu"], sampler, FOUR_SITES, 1.0, copies=2048)
    check_steps(steps, kernels, FALSE_ALARM)


# Wrong steps of every kind: right ones of something else, in place of those that were asked for.
# Most leave the target invariant, which is why tests of invariance do not see them.


def compare(
    engine, asked, played, targets=FOUR_SITES, temperature=0.7, done=0, frozen=False, **state
):
    kernels = [
        kernel_of(
            asked,
            one.log_density(0.7),
            one.mask,
            coupled=one.couplings != 0,
            done=done,
            frozen=frozen,
        )
        for one in FOUR_SITES
    ]
    [steps] = play_steps(ENGINES[engine], played, targets, temperature, copies=1024, state=state)
    check_steps(steps, kernels, FALSE_ALARM)


def changed(**fields):
    """The targets with these fields computed from the target."""
    return {
        "targets": [
            one._replace(**{name: new(one) for name, new in fields.items()}) for one in FOUR_SITES
        ]
    }


@pytest.mark.parametrize(
    "sampler", [Metropolis(), GWG()], ids=lambda sampler: type(sampler).__name__
)
@pytest.mark.parametrize(
    "wrong",
    [
        changed(tilt=lambda one: -one.tilt),
        changed(mask=lambda one: np.ones_like(one.mask)),
        changed(couplings=lambda one: 0 * one.couplings),
        {"temperature": 0.77},
    ],
    ids=["tilt of the wrong sign", "ignored mask", "missing couplings", "temperature off by 10 %"],
)
def test_a_wrong_target_is_found(wrong, sampler):
    with pytest.raises(Disagreement):
        compare("cpu", sampler, sampler, **wrong)


IN_PLACE = {
    "gibbs for metropolis": (Metropolis(), Gibbs()),
    "sequential order for random": (Gibbs(), Gibbs(scan="sequential")),
    "fewer exchanges": (Exchange(), Exchange(single=0.6)),
    "gwg for path_auxiliary": (PathAuxiliary(num_flips=2), GWG(num_flips=2)),
    "one draw too few": (GWG(num_flips=3), GWG(num_flips=2)),
    "10 % more flips": (DMALA(expected_flips=2.0), DMALA(expected_flips=2.2)),
    "no test": (DMALA(), DMALA(adjusted=False)),
    "dmala for dlmc": (DLMC(), DMALA()),
    "the other solver": (DLMC(), DLMC(solver="euler_forward")),
}


@pytest.mark.parametrize(
    "name", slow_except(IN_PLACE, ("gibbs for metropolis", "gwg for path_auxiliary", "no test"))
)
def test_another_kernel_is_found(name):
    asked, played = IN_PLACE[name]
    with pytest.raises(Disagreement):
        compare("cpu" if not isinstance(asked, DLMC) else "reference", asked, played)


class EveryOther(Metropolis):
    """Skips a site after each."""

    def site(self, key, state, mask):
        return super().site(key, state._replace(steps=2 * state.steps), mask)


class ClosedOnesToo(Metropolis):
    """Has a turn for each site of the arrays."""

    def site(self, key, state, mask):
        return super().site(key, state, jnp.ones_like(mask))


@pytest.mark.parametrize(
    ("engine", "kind", "steps"),
    [("reference", EveryOther, 1), ("reference", ClosedOnesToo, 1), ("cpu", Metropolis, 0)],
)
def test_a_sequential_scan_in_another_order_is_found(engine, kind, steps):
    """In the second step; and a chain of the engine `cpu` that has lost count of its steps."""
    sampler = Metropolis(scan="sequential")
    compare(engine, sampler, sampler, done=1, steps=1)
    with pytest.raises(Disagreement):
        compare(engine, sampler, kind(scan="sequential"), done=1, steps=steps)


@pytest.mark.parametrize(
    "sampler", [GWG(num_flips=2), DMALA()], ids=lambda sampler: type(sampler).__name__
)
def test_proposals_of_another_temperature_are_found(sampler, proposing_at):
    proposing_at(0.77)
    with pytest.raises(Disagreement):
        compare("cpu", sampler, sampler)


@pytest.mark.parametrize("steps", [0, 50], ids=["adapting", "frozen"])
def test_a_radius_rounded_at_the_wrong_time_is_found(steps):
    """round(2) while it adapts, 1 or 2 at random afterwards."""
    sampler = PathAuxiliary(num_flips=2, adaptive=True, adapt_until=50)
    compare("cpu", sampler, sampler, frozen=steps == 50, steps=steps)
    with pytest.raises(Disagreement):
        compare("cpu", sampler, sampler, frozen=steps == 0, steps=steps)


def test_a_reverse_path_in_the_order_of_the_path_is_found(monkeypatch):
    right = path_module.log_probability
    monkeypatch.setattr(
        path_module,
        "log_probability",
        lambda *given, backwards=False, **kind: right(*given, **kind),
    )
    # A class of its own, as a class is compiled once.
    sampler = dataclasses.make_dataclass("SameOrder", [], bases=(PathAuxiliary,), frozen=True)(
        num_flips=2
    )
    with pytest.raises(Disagreement):
        compare("reference", PathAuxiliary(num_flips=2), sampler)
