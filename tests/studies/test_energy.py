"""The study of training: what training does, and what the page says of it."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

import energy
from energy import PIXELS, boltzmann_machine, convolutional, digits, train
from sl_discs.models.functions import DifferentiableModel
from sl_discs.samplers.base import Chain
from sl_discs.testing.cases import all_states

needs_extra = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("sklearn", "optax", "flax"))), reason="needs the extra study"
)
RNG = np.random.default_rng(0)
PARAMS = energy.RBMParams(*(RNG.normal(size=shape).astype(np.float32) for shape in ((5, 3), 5, 3)))


def values(density, size):
    return np.asarray(jax.vmap(density, (None, 0))(PARAMS, jnp.asarray(all_states(size), jnp.float32)), np.float64)


def test_the_joint_density_sums_to_the_marginal_one_and_both_to_z():
    joint = values(energy.joint_log_density, 8).reshape(2**3, 2**5)  # hidden units have the higher bits
    np.testing.assert_allclose(special.logsumexp(joint, axis=0), values(energy.log_density, 5), rtol=1e-5)
    np.testing.assert_allclose(energy.log_z(PARAMS), special.logsumexp(joint), rtol=1e-6)


def test_layers_are_drawn_from_the_law(monkeypatch):
    """By 5 standard errors of 4,000 chains of 20 steps, from all zeros: 5e-6 for each of 8 means."""
    monkeypatch.setattr(energy, "PIXELS", 5)
    target = DifferentiableModel(energy.joint_log_density, 8).target(PARAMS, jnp.ones(8, bool))
    sampler = energy.LayerGibbs()

    @jax.jit
    @jax.vmap
    def drawn(key):
        x = jnp.zeros(8, jnp.int8)
        chain = Chain(x, target.init(x), sampler.init_state(8))

        def step(chain, number):
            return sampler.kernel(energy.keys.fold(key, number), target, chain)[0], None

        return jax.lax.scan(step, chain, jnp.arange(20))[0].x

    states = np.asarray(drawn(jax.vmap(energy.keys.fold, (None, 0))(energy.keys.from_seed(0), jnp.arange(4_000))))
    exact = special.softmax(values(energy.joint_log_density, 8)) @ all_states(8)
    assert (np.abs(states.mean(axis=0) - exact) < 5 * np.sqrt(exact * (1 - exact) / len(states))).all()


def likelihood(machine, trained, rows):
    values = [float(machine.log_density(trained.params, row.astype(np.float32))) for row in rows[:100]]
    return np.mean(values) - energy.log_z(trained.params)


@needs_extra
@pytest.mark.slow
@pytest.mark.parametrize("localized", [False, True])
def test_training_improves_on_independent_pixels(localized):
    """By 3 nats an image, give or take a half, and again in the same way."""
    data, test = digits()
    machine = boltzmann_machine(4)
    mean = data.mean(axis=0).clip(0.01, 0.99)
    independent = (test * np.log(mean) + (1 - test) * np.log(1 - mean)).sum(axis=1)[:100].mean()
    trained, again = (train(machine, data, localized=localized, updates=600, seed=1) for _ in range(2))
    assert likelihood(machine, trained, test) > independent + 2.5
    np.testing.assert_array_equal(trained.chains, again.chains)
    np.testing.assert_array_equal(trained.params.weights, again.params.weights)


@needs_extra
def test_no_image_is_both_in_training_and_test():
    data, test = digits()
    assert len(data) + len(test) == 1797 and set(np.unique(data)) == {0, 1} and data.shape[1] == PIXELS


@needs_extra
@pytest.mark.slow
def test_the_convolutional_energy_trains():
    data, _ = digits()
    one, other = (
        train(convolutional(2), data, localized=localized, updates=3, seed=0) for localized in (False, True)
    )
    assert np.isfinite(one.params["params"]["bias"]).all() and (one.chains != other.chains).any()


def arm(localized, seed, test, error=0.1):
    found = {"train": test + 1, "test": test, "log_z": 10.0, "error": error, "exact_log_z": None, "cpu_s": 1.0}
    return energy.Arm("RBM", "sl_gwg" if localized else "gwg", localized, seed, found)


def test_the_page_names_the_better_one_only_where_the_interval_says_so():
    pairs = [(-10.0, -9.0), (-11.0, -9.9), (-9.0, -8.1)]
    arms = [arm(which, seed, value) for seed, pair in enumerate(pairs) for which, value in enumerate(pair)]
    arms = [energy.dataclasses.replace(one, localized=bool(one.localized)) for one in arms]
    assert "localized minus base +1.00 nats" in energy.page(arms) and "localized is better" in energy.page(arms)
    assert "| -20.00 | -19.00 | 10.00 ± 0.10 |" in energy.page(arms)
    noisy = [*arms[:-1], arm(True, 2, -20.0)]
    assert "no clear difference" in energy.page(noisy)
    assert "(one seed)" in energy.page(arms[:2])
