"""Samplers in DISCS's calling convention: DISCS's own, localized, and this project's, of two and
three values.

Seeds are fixed; a correct sampler fails a statistical test with probability 1e-6. Bounds on total
variation hold sampling noise, 0.4 sqrt(states/chains), and the discretisation of time.
"""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from localized import FINE, SHORT
from marks import slow_except
from several_values import potts_case
from test_register import whole_config

from sl_discs.discs_plugin.modules import BatchModel, LocalizedSampler, OwnSampler
from sl_discs.discs_plugin.upstream import DiscsSampler, States
from sl_discs.localization.schedule import Localization, level_budgets
from sl_discs.models.model import TargetModel
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis
from sl_discs.support.errors import InputError
from sl_discs.testing import check_case, enumerate_law, standard_cases, total_variation
from sl_discs.testing.conformance import Law, all_states

# One that proposes flips, one that evaluates the states of one chain after the other, and one of
# this project.
BASES = ["gwg", "hammingball", "sldiscs_gibbs"]
EXACT = ["gwg", "gibbs", "sldiscs_gibbs"]
FLAT = (("hammingball", 5), ("sldiscs_gibbs", 1, 5))


class Pairs:
    """A chain of coupled sites, with values and gradients at a temperature."""

    def forward(self, params, x):
        flat = x.reshape(x.shape[0], -1)
        bias = params["bias"].reshape(-1)
        return (flat @ bias - jnp.sum(flat[:, 1:] * flat[:, :-1], axis=1)) / params["temperature"]

    def get_value_and_grad(self, params, x):
        x = x.astype(jnp.float32)
        return self.forward(params, x), jax.grad(lambda z: jnp.sum(self.forward(params, z)))(x)


def pairs(shape=(5,)):
    bias = jnp.linspace(-1.0, 1.5, 5).reshape(shape)
    return Pairs(), {"bias": bias, "temperature": jnp.float32(0.8)}


def some_states(count, shape=(5,)):
    return jax.random.bernoulli(jax.random.PRNGKey(3), 0.5, (count, *shape)).astype(jnp.int32)


def sampler_of(name, chains, shape=(5,), localization=None, steps=0):
    if name == "sldiscs_gibbs":
        return OwnSampler(Gibbs(), chains, States(shape), localization, steps)
    config = whole_config(f"sl_{name}", shape=(int(np.prod(shape)),))
    if "adaptive" in config.sampler:
        config.sampler.adaptive = False
    sampler = importlib.import_module(f"discs.samplers.{name}").build_sampler(config)
    base = DiscsSampler(name, sampler, States(shape))
    return base if localization is None else LocalizedSampler(base, localization, steps, chains)


def play(sampler, model, params, x, steps, temperatures=None):
    """One scan over `step`: the state must keep its structure, shapes and dtypes."""
    temperatures = jnp.full(steps, 0.8) if temperatures is None else jnp.asarray(temperatures)

    def step(carry, number):
        x, state = carry
        now = params | {"temperature": temperatures[number]} if isinstance(params, dict) else params
        x, state, _ = sampler.step(model, jax.random.PRNGKey(number), x, now, state)
        return (x, state), x

    state = sampler.make_init_state(jax.random.PRNGKey(0))
    (_, state), visited = jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(steps)))(
        (x, state)
    )
    return visited, state


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param(name, shape, marks=[pytest.mark.slow] * ((name, *shape) not in FLAT))
        for name in BASES
        for shape in ((5,), (1, 5))
    ],
)
@pytest.mark.usefixtures("quickly_compiled")
def test_without_tilt_it_is_the_base_sampler(discs, name, shape):
    model, params = pairs(shape)
    x = some_states(7, shape)
    plain, _ = play(sampler_of(name, 7, shape), model, params, x, 64)
    flat = sampler_of(name, 7, shape, Localization(K=8, tilt=False), 64)
    localized, state = play(flat, model, params, x, 64)
    np.testing.assert_array_equal(plain, localized)
    assert int(state["steps"]) == 64 and int(state["num_ll_calls"]) > 0
    # It has moved and has been localized, so the equality could fail; the law of the tilted chain
    # is tested below.
    assert (plain != x).any()
    assert (state["chains"].level == 7).all()
    assert (state["chains"].y != 0).all()


ANNEALED = {
    "t_schedule": "exp_decay",
    "init_temperature": 2,
    "decay_rate": 0.05,
    "final_temperature": 0.2,
}


@pytest.mark.parametrize("name", slow_except([f"sl_{name}" for name in BASES], ("sl_gwg",)))
@pytest.mark.usefixtures("quickly_compiled")
def test_an_annealing_inside_each_level_replaces_the_temperatures_of_the_run(discs, name):
    """Without tilt: the base sampler in each level at the temperatures of a run of DISCS as long as
    the level.
    """
    model, params = pairs()
    x = some_states(7)
    config = whole_config(name)
    config.sampler.update({"K": 5, "tilt": False, "anneal": "level"})
    if "adaptive" in config.sampler:
        config.sampler.adaptive = False
    config.experiment.update(
        {"batch_size": 7, "chain_length": 64, "run_parallel": False, **ANNEALED}
    )
    localized = importlib.import_module(f"discs.samplers.{name}").build_sampler(config)
    lengths = level_budgets("exp_decay", 64, 5, 4, 0.1)
    course = np.concatenate(
        [np.maximum(2 * 0.05 ** (np.arange(1, n + 1) / n), 0.2) for n in lengths]
    )
    base = sampler_of(name.removeprefix("sl_"), 7)
    expected, _ = play(base, model, params, x, 64, course.astype(np.float32))
    np.testing.assert_array_equal(play(localized, model, params, x, 64)[0], expected)
    other, _ = play(base, model, params, x, 64)
    assert (other != expected).any()
    del config.experiment.t_schedule
    with pytest.raises(InputError):
        importlib.import_module(f"discs.samplers.{name}").build_sampler(config)


@pytest.mark.parametrize("name", slow_except(EXACT, ("gwg", "sldiscs_gibbs")))
def test_it_returns_the_law(discs, name):
    model, params = pairs()
    chains, steps = 6_000, 32 * 16
    sampler = sampler_of(name, chains, localization=SHORT, steps=steps)
    _, state = play(sampler, model, params, jnp.zeros((chains, 5), jnp.int32), steps)
    states = all_states(5)
    weights = np.exp(
        np.asarray(model.forward(params, jnp.asarray(states, jnp.float32)), np.float64)
    )
    law = Law(states, weights / weights.sum())
    assert total_variation(np.asarray(sampler.final_sample(state)), law) < 0.06
    assert np.isfinite(state["chains"].y).all() and (state["chains"].level == SHORT.K - 1).all()


@pytest.mark.usefixtures("quickly_compiled")
def test_a_sampler_that_goes_chain_by_chain_has_random_numbers_for_each(discs):
    """With a tilt it gets batches of one chain; equal chains with equal tilts must not stay
    equal.
    """
    model, params = pairs()
    base, x, tilt = sampler_of("hammingball", 64), jnp.zeros((64, 5), jnp.int32), jnp.zeros((64, 5))
    state = base.make_init_state(jax.random.PRNGKey(0))
    step = jax.jit(functools.partial(base.step, model))
    new_x, after, _ = step(jax.random.PRNGKey(1), x, params, state, None, tilt)
    assert set(np.flatnonzero(np.asarray(new_x).any(axis=0))) == set(range(5))
    assert {key: leaf.shape for key, leaf in after.items()} == {
        key: leaf.shape for key, leaf in state.items()
    }


@pytest.mark.parametrize("name", ["gwg", "sldiscs_gibbs"])
@pytest.mark.usefixtures("quickly_compiled")
def test_noise_is_drawn_in_a_branch_also_when_mapped_over_graphs(discs, name):
    """So that localization costs next to nothing in a step: JAX would make a mapped branch a
    select.
    """
    model, params = pairs()
    sampler = sampler_of(name, 4, localization=Localization(K=8), steps=64)
    states = jax.vmap(sampler.make_init_state)(jax.random.split(jax.random.PRNGKey(0), 3))
    keys, x = jax.random.split(jax.random.PRNGKey(1), 3), jnp.zeros((3, 4, 5), jnp.int32)
    step = jax.vmap(functools.partial(sampler.step, model), in_axes=(0, 0, None, 0))
    assert str(jax.make_jaxpr(step)(keys, x, params, states)).count("cond[") == 2


@pytest.mark.parametrize("name", ["gwg", "sldiscs_gibbs"])
@pytest.mark.usefixtures("quickly_compiled")
def test_observations_begin_with_the_first_key_and_levels_end_as_scheduled(discs, name):
    """The state is the same everywhere at first, as DISCS replicates it; the first step's key tells
    graphs apart.
    """
    model, params = pairs()
    sampler = sampler_of(name, 2, localization=Localization(K=4, n_min=2), steps=20)
    state, x = sampler.make_init_state(jax.random.PRNGKey(0)), jnp.zeros((2, 5), jnp.int32)
    step = jax.jit(functools.partial(sampler.step, model))
    first = [
        np.asarray(step(jax.random.PRNGKey(k), x, params, state)[1]["chains"].y).ravel()
        for k in (1, 2)
    ]
    assert len(np.unique(first)) == 20
    levels, moved = [], []
    for number in range(24):
        before = state["chains"].y
        x, state, _ = step(jax.random.PRNGKey(number), x, params, state)
        levels.append(int(jnp.max(state["chains"].level)))
        moved.append(bool(jnp.any(state["chains"].y != before)))
    last = Localization(K=4, n_min=2).levels(20).last
    assert levels == [min(int((last <= number).sum()), 3) for number in range(24)]
    assert [number for number in range(1, 24) if moved[number]] == list(last)


def test_a_batch_of_another_size_is_named(discs):
    model, params = pairs()
    sampler = sampler_of("gwg", 4, localization=Localization(K=8), steps=64)
    state = sampler.make_init_state(jax.random.PRNGKey(0))
    with pytest.raises(InputError):
        sampler.step(model, jax.random.PRNGKey(0), jnp.zeros((3, 5), jnp.int32), params, state)


# This project's samplers, on three values too.

THREE = States((4,), 3)
POTTS = potts_case("potts, tilted", 3, 4, (0.7, -1.4, 1.3, 0.6), tilted=True)
SOME = (True, True, False, True)
MASKED = potts_case(
    "cold, tilted, masked", 3, 4, (0.7, -0.4, 1.3), temperature=0.5, tilted=True, mask=SOME
)


class InCoordinates(TargetModel):
    """As models of DISCS: it takes integers, and one-hot vectors for gradients."""

    def get_value_and_grad(self, params, z):
        assert z.shape[1:] == THREE.spin_shape
        return super().get_value_and_grad(params, THREE.integers(z))


class OnThreeValues(OwnSampler):
    """Steps a sampler on such a model."""

    def step(self, model, *given):
        return super().step(InCoordinates(), *given)


KERNELS = [
    pytest.param(
        kernel,
        id=type(kernel).__name__,
        marks=[] if type(kernel) is PathAuxiliary else pytest.mark.slow,
    )
    for kernel in (Metropolis(), GWG(), PathAuxiliary(num_flips=2), DMALA())
]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_tilted_target_is_invariant(kernel):
    check_case(OwnSampler(kernel, 4, States((5,))), standard_cases()[2], batches=2**13)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.usefixtures("quickly_compiled")
def test_the_tilted_target_on_three_values_is_invariant(kernel):
    check_case(OnThreeValues(kernel, 4, THREE), MASKED, batches=2**11)


def test_localized_samples_of_three_values_have_the_law():
    """Bound 0.09: noise of 2,000 samples of 81 states is at most 0.4 sqrt(81/2000) = 0.08, and here
    0.06.
    """
    untilted = POTTS.target.tilted(None)
    sampler = OwnSampler(GWG(), 2_000, THREE, FINE, 128 * 8)
    _, state = play(sampler, InCoordinates(), untilted, jnp.zeros((2_000, 4), jnp.int32), 128 * 8)
    assert state["chains"].y.shape == (2_000, 4, 3)
    law = enumerate_law(untilted, POTTS.start)
    assert total_variation(np.asarray(sampler.final_sample(state)), law) < 0.09


def test_a_batch_model_has_values_and_gains():
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
