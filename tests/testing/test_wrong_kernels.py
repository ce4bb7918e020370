"""Wrong kernels of every kind fail against the oracle, also those that leave the target invariant.

Most are right kernels of something else, played in place of the one that was asked for.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from chains import FALSE_ALARM
from marks import slow_except
from single_steps import Disagreement, check_steps, play_steps, small_targets

from sl_discs.engines.registry import get_engine
from sl_discs.samplers import path as path_module
from sl_discs.samplers.langevin import DLMC, DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Exchange, Gibbs, Metropolis
from sl_discs.testing.oracle import kernel_of

TARGETS = small_targets(4)
COPIES = 1024


def check(engine, asked, played, targets=TARGETS, temperature=0.7, done=0, **state):
    kernels = [
        kernel_of(asked, one.log_density(0.7), one.mask, coupled=one.couplings != 0, done=done) for one in TARGETS
    ]
    [steps] = play_steps(engine, played, targets, temperature, copies=COPIES, state=state)
    check_steps(steps, kernels, FALSE_ALARM)


def changed(**fields):
    """The targets with these fields computed from the target."""
    return [one._replace(**{name: new(one) for name, new in fields.items()}) for one in TARGETS]


WRONG = {
    "missing tilt": {"targets": changed(tilt=lambda one: 0 * one.tilt)},
    "tilt of the wrong sign": {"targets": changed(tilt=lambda one: -one.tilt)},
    "ignored mask": {"targets": changed(mask=lambda one: np.ones_like(one.mask))},
    "missing couplings": {"targets": changed(couplings=lambda one: 0 * one.couplings)},
    "temperature off by 10 %": {"temperature": 0.77},
}
# Those that leave the target invariant, which is why tests of invariance do not see them.
IN_PLACE = {
    "gibbs for metropolis": (Metropolis(), Gibbs()),
    "metropolis for gibbs": (Gibbs(), Metropolis()),
    "random order for sequential": (Metropolis(scan="sequential"), Metropolis()),
    "sequential order for random": (Gibbs(), Gibbs(scan="sequential")),
    "metropolis for exchange": (Exchange(), Metropolis()),
    "fewer exchanges": (Exchange(), Exchange(single=0.6)),
    "gwg for path_auxiliary": (PathAuxiliary(num_flips=2), GWG(num_flips=2)),
    "path_auxiliary for gwg": (GWG(num_flips=2), PathAuxiliary(num_flips=2)),
    "one flip too many": (PathAuxiliary(num_flips=2), PathAuxiliary(num_flips=3)),
    "one draw too few": (GWG(num_flips=3), GWG(num_flips=2)),
    "10 % more flips": (DMALA(expected_flips=2.0), DMALA(expected_flips=2.2)),
    "no test": (DMALA(), DMALA(adjusted=False)),
    "a test that was not asked for": (DMALA(adjusted=False), DMALA()),
}


@pytest.mark.parametrize(
    "sampler",
    [Metropolis(), GWG(), *(pytest.param(sampler, marks=pytest.mark.slow) for sampler in (Exchange(), DMALA()))],
    ids=lambda sampler: type(sampler).__name__,
)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_target_is_found(name, sampler):
    pytest.importorskip("numba")
    with pytest.raises(Disagreement):
        check(get_engine("cpu"), sampler, sampler, **WRONG[name])


@pytest.mark.parametrize(
    "name",
    slow_except(
        IN_PLACE, ("gibbs for metropolis", "sequential order for random", "gwg for path_auxiliary", "no test")
    ),
)
def test_another_kernel_is_found(name):
    pytest.importorskip("numba")
    with pytest.raises(Disagreement):
        check(get_engine("cpu"), *IN_PLACE[name])


IN_PLACE_ON_REFERENCE = {
    "10 % larger step": (DMALA(scaling="fixed", step_size=0.5), DMALA(scaling="fixed", step_size=0.55)),
    "fixed for normalized": (DMALA(), DMALA(scaling="fixed")),
    "dmala for dlmc": (DLMC(), DMALA()),
    "the other solver": (DLMC(), DLMC(solver="euler_forward")),
}


@pytest.mark.parametrize("name", IN_PLACE_ON_REFERENCE)
def test_another_kernel_is_found_on_the_reference(name):
    asked, played = IN_PLACE_ON_REFERENCE[name]
    with pytest.raises(Disagreement):
        check(get_engine("reference"), asked, played, done=1, steps=1)


def always_the_first(sampler, key, state, mask):
    """Site 0 again and again."""
    return jnp.argmax(mask)


def every_other(sampler, key, state, mask):
    """Skips a site after each."""
    return Metropolis.site(sampler, key, state._replace(steps=2 * state.steps), mask)


def closed_ones_too(sampler, key, state, mask):
    """A turn for each site of the arrays."""
    return Metropolis.site(sampler, key, state, jnp.ones_like(mask))


@pytest.mark.parametrize("mistake", slow_except([always_the_first, every_other, closed_ones_too], [closed_ones_too]))
def test_a_sequential_scan_in_another_order_is_found(mistake):
    """They leave the target invariant too; in the second step every target but the one with two sites shows them."""
    sampler = Metropolis(scan="sequential")
    wrong = type(mistake.__name__, (Metropolis,), {"site": mistake})(scan="sequential")
    check(get_engine("reference"), sampler, sampler, done=1, steps=1)
    with pytest.raises(Disagreement):
        check(get_engine("reference"), sampler, wrong, done=1, steps=1)


def test_a_sequential_scan_that_stands_still_is_found():
    """On the engine whose steps are not those of the sampler's own code: a chain that lost its number of steps."""
    pytest.importorskip("numba")
    sampler = Metropolis(scan="sequential")
    check(get_engine("cpu"), sampler, sampler, done=1, steps=1)
    with pytest.raises(Disagreement):
        check(get_engine("cpu"), sampler, sampler, done=1, steps=0)


@pytest.mark.parametrize("sampler", [GWG(num_flips=2), DMALA()], ids=lambda sampler: type(sampler).__name__)
def test_proposals_of_another_temperature_are_found(sampler, proposing_at):
    """They leave the target invariant too."""
    proposing_at(0.77)
    with pytest.raises(Disagreement):
        check(get_engine("cpu"), sampler, sampler)


@pytest.mark.parametrize("steps", [0, 50], ids=["adapting", "frozen"])
def test_a_radius_rounded_at_the_wrong_time_is_found(steps):
    """round(2) while it adapts, 1 or 2 at random afterwards."""
    pytest.importorskip("numba")
    sampler = PathAuxiliary(num_flips=2, adaptive=True, adapt_until=50)
    for frozen in (False, True):
        kernels = [kernel_of(sampler, one.log_density(0.7), one.mask, frozen=frozen) for one in TARGETS]
        [played] = play_steps(get_engine("cpu"), sampler, TARGETS, 0.7, copies=COPIES, state={"steps": steps})
        if frozen == (steps == 50):
            check_steps(played, kernels, FALSE_ALARM)
        else:
            with pytest.raises(Disagreement):
                check_steps(played, kernels, FALSE_ALARM)


def as_if_equal(weights, drawn, *, replacement, backwards=False):
    """The path and its reverse equally probable."""
    return jnp.float32(0)


def same_order(weights, drawn, *, replacement, backwards=False):
    """The sites drawn at y in the order in which they were drawn at x."""
    return log_probability(weights, drawn, replacement=replacement)


log_probability = path_module.log_probability


@pytest.mark.parametrize(
    "mistake", [same_order, pytest.param(as_if_equal, marks=pytest.mark.slow)], ids=lambda mistake: mistake.__name__
)
def test_a_wrong_reverse_probability_is_found(mistake, monkeypatch):
    monkeypatch.setattr(path_module, "log_probability", mistake)
    # A class of its own, as a class is compiled once.
    sampler = dataclasses.make_dataclass(mistake.__name__, [], bases=(PathAuxiliary,), frozen=True)(num_flips=2)
    with pytest.raises(Disagreement):
        check(get_engine("reference"), PathAuxiliary(num_flips=2), sampler)
