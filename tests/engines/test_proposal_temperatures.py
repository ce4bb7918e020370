"""Temperatures of proposals: close to the target's, and seldom another."""

import numpy as np
import pytest

from sl_discs.engines.base import Program
from sl_discs.engines.cpu.arrays import ProgramSlices, proposal_temperatures
from sl_discs.engines.cpu.chunk import ENTRIES
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.langevin import DMALA

STEPS = 10_000
TIME = np.arange(STEPS) / STEPS
SCHEDULES = {
    "exponential": 0.05**TIME,
    "linear": 1 - 0.5 * TIME,
    "to a floor": np.maximum(0.1 ** (3 * TIME), 1e-2),
    "warming": 0.5 + TIME,
    "up and down": np.exp(0.3 * np.sin(20 * TIME)),
}


def levels_of(levels):
    return Localization(K=levels).levels(STEPS) if levels else None


@pytest.mark.parametrize("levels", [0, 1, 16, 256])
@pytest.mark.parametrize("name", SCHEDULES)
def test_close_to_the_target(name, levels):
    temperature = SCHEDULES[name]
    proposed = proposal_temperatures(temperature, levels_of(levels))
    assert np.abs(np.log(proposed / temperature)).max() < 0.76 / 256


def test_an_unadjusted_sampler_proposes_at_the_temperature_of_the_target():
    """No acceptance test makes up for another one."""
    program = Program(SCHEDULES["exponential"].astype(np.float32), levels_of(16))
    for one, same in ((DMALA(adjusted=False), True), (DMALA(), False)):
        part = ProgramSlices(program, keeps_weights=ENTRIES[DMALA].keeps_weights(one)).part(0, 1, STEPS)
        assert np.array_equal(part.rate, part.proposal_rate) == same


@pytest.mark.parametrize(("chains", "rows"), [([2, 2, 2, 2], 1), ([1, 2, 1, 2], 2), ([1, 2, 2, 1], 4), ([3], 1)])
def test_temperatures_that_chains_share_are_formed_once(chains, rows):
    class Now:
        def __len__(self):
            return STEPS

        def __getitem__(self, steps):
            return np.broadcast_to(np.float32(chains), (len(range(*steps.indices(STEPS))), len(chains)))

    rate = ProgramSlices(Program(Now(), None), keeps_weights=False).part(0, 2, 5).rate
    assert rate.shape == (rows, 10)
    np.testing.assert_array_equal(rate[np.arange(len(chains)) % rows], 1 / np.float32(chains)[:, None].repeat(10, 1))
    assert ProgramSlices(Program(Now(), None), keeps_weights=False).part(0, 0, 5).rate.shape[1] == 0
