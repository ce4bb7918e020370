"""Samplers of this project in DISCS's calling convention, on sites of two and three values.

Seeds are fixed; a correct sampler fails with probability 1e-6.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from localized import FINE
from several_values import potts_case
from test_localized_sampler import play

from sl_discs.discs_plugin.base_sampler import States
from sl_discs.discs_plugin.own import BatchModel, OwnSampler
from sl_discs.models.base import TargetModel
from sl_discs.samplers.base import Info, Sampler
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Metropolis
from sl_discs.testing import check_case, enumerate_law, standard_cases, total_variation

THREE = States((4,), 3)
POTTS = potts_case("potts, tilted", 3, 4, (0.7, -1.4, 1.3, 0.6), tilted=True)
SOME = (True, True, False, True)
MASKED = potts_case("cold, tilted, masked", 3, 4, (0.7, -0.4, 1.3), temperature=0.5, tilted=True, mask=SOME)


class InCoordinates(TargetModel):
    """As models of DISCS: it takes integers, and one-hot vectors for gradients."""

    def get_value_and_grad(self, params, z):
        assert z.shape[1:] == THREE.spin_shape
        return super().get_value_and_grad(params, THREE.integers(z))


class OnThreeValues:
    """Steps a sampler on such a model."""

    def __init__(self, kernel):
        self.sampler = OwnSampler(kernel, 4, THREE)
        self.make_init_state = self.sampler.make_init_state

    def step(self, model, *given):
        return self.sampler.step(InCoordinates(), *given)


KERNELS = [
    pytest.param(kernel, id=type(kernel).__name__, marks=[] if type(kernel) is PathAuxiliary else pytest.mark.slow)
    for kernel in (Metropolis(), GWG(), PathAuxiliary(num_flips=2), DMALA())
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_tilted_target_is_invariant(kernel):
    check_case(OwnSampler(kernel, 4, States((5,))), standard_cases()[2], batches=2**13)
    check_case(OnThreeValues(kernel), MASKED, batches=2**11)


def test_localized_samples_of_three_values_have_the_law():
    """Bound 0.09: noise of 2,000 samples of 81 states is at most 0.4 sqrt(81/2000) = 0.08, and here 0.06."""
    untilted = POTTS.target.tilted(None)
    sampler = OwnSampler(GWG(), 2_000, THREE, FINE, 128 * 8)
    _, state = play(sampler, InCoordinates(), untilted, jnp.zeros((2_000, 4), jnp.int32), 128 * 8)
    assert state["chains"].y.shape == (2_000, 4, 3)
    law = enumerate_law(untilted, POTTS.start)
    assert total_variation(np.asarray(sampler.final_sample(state)), law) < 0.09


class Still(Sampler):
    """Stays where it is, and has no state."""

    calls_a_step = 3

    def init_state(self, num_sites):
        return ()

    def kernel(self, key, target, chain):
        return chain, Info(jnp.float32(1), jnp.float32(0))


def test_calls_are_counted_for_a_sampler_whose_state_does_not_count_them():
    own, x, target = OwnSampler(Still(), 4, States((5,))), jnp.zeros((4, 5), jnp.int32), standard_cases()[0].target
    x, state, _ = own.step(TargetModel(), jax.random.PRNGKey(0), x, target, own.make_init_state(None))
    assert (int(state["num_ll_calls"]), int(state["steps"])) == (3, 1)


def test_a_batch_model_follows_flips():
    class Inner:
        def get_value_and_grad(self, params, x):
            assert x.shape == (1, 2, 2)
            return jnp.sum(x * params, axis=(1, 2)), params[None]

    params = jnp.array([[0.5, -1.0], [2.0, 0.0]])
    model = BatchModel(Inner(), States((2, 2)))
    x = jnp.array([1, 0, 1, 0], jnp.int8)
    field = model.init(params, x)
    assert model.num_sites == 4 and float(model.value(params, x, field)) == 2.5
    np.testing.assert_array_equal(model.gains(params, x, field), [-0.5, -1.0, -2.0, 0.0])
