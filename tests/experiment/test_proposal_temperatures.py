"""Temperatures of proposals: close to the target's, and seldom another."""

import numpy as np
import pytest

from sl_discs.experiment import cpu_engine
from sl_discs.experiment.proposal_temperatures import proposal_temperatures
from sl_discs.localization.schedule import Localization
from sl_discs.localization.transition import ProgramStep
from sl_discs.samplers.dmala import DMALA

STEPS = 10_000
TIME = np.arange(STEPS) / STEPS
SCHEDULES = {
    "exponential": 0.05**TIME,
    "linear": 1 - 0.5 * TIME,
    "to a floor": np.maximum(0.1 ** (3 * TIME), 1e-2),
    "warming": 0.5 + TIME,
    "up and down": np.exp(0.3 * np.sin(20 * TIME)),
}


def program_of(temperature, levels):
    localization = Localization(K=levels).compile(len(temperature)) if levels else None
    return ProgramStep(temperature.astype(np.float32), localization)


@pytest.mark.parametrize("levels", [0, 1, 16, 256])
@pytest.mark.parametrize("name", SCHEDULES)
def test_close_to_the_target(name, levels):
    temperature = SCHEDULES[name]
    proposed = proposal_temperatures(program_of(temperature, levels))
    assert np.abs(np.log(proposed / temperature)).max() < 0.76 / 256


@pytest.mark.parametrize("name", ["exponential", "linear", "warming"])
def test_as_few_as_there_are_parts(name):
    """Weights are formed anew at each of K levels and for each 1/256, mostly for both at once."""
    temperature, levels = SCHEDULES[name], 256
    program = program_of(temperature, levels)
    proposed = proposal_temperatures(program)
    begins = np.concatenate([[True], program.localization.boundary[:-1]])
    anew = begins | (np.diff(proposed, prepend=0.0) != 0)
    parts = 256 * abs(np.log(temperature[-1] / temperature[0]))
    assert max(levels, parts) - 4 <= anew.sum() <= 0.8 * (levels + parts)
    without = proposal_temperatures(program_of(temperature, 0))
    assert abs((np.diff(without) != 0).sum() + 1 - parts) < 2


@pytest.mark.parametrize("levels", [0, 16])
def test_a_constant_temperature_is_that_of_the_proposal(levels):
    temperature = np.full(STEPS, 0.7, np.float32)
    np.testing.assert_allclose(proposal_temperatures(program_of(temperature, levels)), temperature, rtol=1e-6)


@pytest.mark.parametrize("sampler", [DMALA(adjusted=False), DMALA(scaling="fixed", adjusted=False)])
def test_an_unadjusted_sampler_proposes_at_the_temperature_of_the_target(sampler):
    """No acceptance test makes up for another one."""
    program = program_of(SCHEDULES["exponential"], 16)
    np.testing.assert_array_equal(cpu_engine.prepare_temperatures(sampler, program), program.temperature)
    tested = cpu_engine.prepare_temperatures(DMALA(), program)
    np.testing.assert_array_equal(tested, proposal_temperatures(program))
