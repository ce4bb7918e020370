"""Samplers in DISCS's calling convention on sites of three values: laws under a tilt, and their localization.

Seeds are fixed; a correct sampler fails with probability 1e-6.
"""

import importlib

import jax.numpy as jnp
import numpy as np
import pytest
from localized import FINE
from several_values import potts_case
from test_localized_sampler import play
from test_register import whole_config

from sl_discs.discs_plugin.base_sampler import BaseSampler, States
from sl_discs.discs_plugin.own import OwnSampler
from sl_discs.models.base import TargetModel
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Metropolis
from sl_discs.testing import ConformanceError, check_case, enumerate_law, total_variation

STATES = States((4,), 3)
CASE = potts_case("potts, tilted", (3,) * 4, (0.7, -1.4, 1.3, 0.6), tilted=True)
SOME = (True, True, False, True)
MASKED = potts_case("cold, tilted, masked", (3,) * 4, (0.7, -0.4, 1.3), temperature=0.5, tilted=True, mask=SOME)


class InCoordinates(TargetModel):
    """As models of DISCS: it takes integers, and one-hot vectors for gradients."""

    def forward(self, params, x):
        return super().forward(params, STATES.integers(x))

    def get_value_and_grad(self, params, z):
        assert z.shape[1:] == STATES.spin_shape
        return super().get_value_and_grad(params, STATES.integers(z))


class Own:
    """Steps an own sampler on such a model."""

    def __init__(self, kernel):
        self.sampler = OwnSampler(kernel, 4, STATES)
        self.make_init_state = self.sampler.make_init_state

    def step(self, model, *given):
        return self.sampler.step(InCoordinates(), *given)


class Tilting:
    """Gives the case's tilt to the sampler and takes it out of the model's parameters."""

    def __init__(self, sampler, tilted=True):
        self.sampler, self.tilted = sampler, tilted

    def make_init_state(self, rng):
        return self.sampler.make_init_state(rng)

    def step(self, model, rng, x, params, state, mask):
        tilt = jnp.broadcast_to(params.tilt, (len(x), *STATES.spin_shape)) if self.tilted else None
        return self.sampler.step(InCoordinates(), rng, x, params.tilted(None), state, mask, tilt)


@pytest.mark.parametrize(
    "kernel",
    [
        Metropolis(),
        *(pytest.param(one, marks=pytest.mark.slow) for one in (GWG(), PathAuxiliary(num_flips=2), DMALA())),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_own_samplers_leave_the_tilted_target_invariant(kernel):
    check_case(Own(kernel), MASKED, batches=2**11)


def ball():
    config = whole_config("sl_ball", shape=(4,), num_categories=3)
    return BaseSampler("ball", importlib.import_module("discs.samplers.ball").build_sampler(config), STATES)


def test_a_sampler_that_evaluates_chain_by_chain(standin):
    check_case(Tilting(ball()), CASE, batches=2**11)
    with pytest.raises(ConformanceError, match="not invariant"):
        check_case(Tilting(ball(), tilted=False), CASE, batches=2**11)


def test_localized_samples_have_the_law():
    """Bound 0.09: noise of 2,000 samples of 81 states is at most 0.4 sqrt(81/2000) = 0.08, and here 0.06."""
    untilted = CASE.target.tilted(None)
    law = enumerate_law(untilted, CASE.start)
    sampler = OwnSampler(GWG(), 2_000, STATES, FINE, 64 * 12)
    _, state = play(sampler, InCoordinates(), untilted, jnp.zeros((2_000, 4), jnp.int32), 64 * 12)
    assert state["chains"].y.shape == (2_000, 4, 3)
    assert total_variation(np.asarray(sampler.final_sample(state)), law) < 0.09
