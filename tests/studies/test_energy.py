"""The study of training: what training does, and what the page says of it."""

import numpy as np
import pytest

import energy
from energy import PIXELS, boltzmann_machine, convolutional, digits, train
from sl_discs.models import functions

pytest.importorskip("sklearn", reason="needs the extra study")
pytest.importorskip("optax", reason="needs the extra study")


def likelihood(machine, trained, rows):
    values = [float(machine.log_density(trained.params, row.astype(np.float32))) for row in rows[:100]]
    return np.mean(values) - functions.log_z(trained.params)


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


def test_no_image_is_both_in_training_and_test():
    data, test = digits()
    assert len(data) + len(test) == 1797 and set(np.unique(data)) == {0, 1} and data.shape[1] == PIXELS


@pytest.mark.slow
def test_the_convolutional_energy_trains():
    pytest.importorskip("flax", reason="needs the extra study")
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
