"""The cost of localization: its estimate under disturbances that both runs of a pair share, and the script."""

import json
import os

import numpy as np
import pytest

from localization import Cost, cost_of, in_new_processes, mean_cost


def test_the_cost_is_found_although_the_machine_s_speed_changes_by_half():
    """Coverage of two standard errors, 95 % if deviations were normal; 1,000 draws, below 91 % by chance 1e-7."""
    rng = np.random.default_rng(0)
    speeds = rng.uniform(0.5, 1.5, (1_000, 25)) * np.where(rng.random((1_000, 25)) < 0.1, 3, 1)
    base = speeds * rng.normal(1, 0.02, speeds.shape)
    localized = 1.05 * speeds * rng.normal(1, 0.02, speeds.shape)
    found = [cost_of(*pair) for pair in zip(base, localized, strict=True)]
    inside = [abs(one.added - 0.05) < 2 * one.error for one in found]
    assert np.mean(inside) > 0.91
    assert np.mean([one.error for one in found]) < 0.01
    assert all(one.pairs == 25 for one in found)


def test_the_error_of_several_processes_is_that_of_their_mean():
    """Also where pairs within each process agree much better than processes do."""
    within = [Cost(1.0, added, 0.001, 10) for added in (0.03, 0.05, 0.07)]
    mean = mean_cost(within)
    np.testing.assert_allclose([mean.added, mean.error], [0.05, 0.02 / np.sqrt(3)])
    assert mean.base_us == 1.0 and mean.pairs == 30
    assert mean_cost(within[:1]) == within[0]


def test_each_repetition_has_a_process_of_its_own():
    assert len({os.getpid(), *in_new_processes(2, os.getpid)}) == 3


@pytest.mark.slow
def test_the_script_prints_and_saves_a_pair(tmp_path, script):
    tiny = (
        "--samplers=metropolis",
        "--engines=reference",
        "--steps=40",
        "--chains=2",
        "--seconds=0.1",
        "--processes=1",
    )
    said = script("benchmarks/localization.py", "--cases=maxcut-er-256", "--processes=1", *tiny)
    assert "metropolis" in said and "saved" in said
    found = json.loads((tmp_path / "bench_localization.json").read_text())
    assert found["processes"] == 1
    cost = found["cases"]["maxcut-er-256"]["metropolis"]["reference"]
    assert cost["pairs"] >= 3 and cost["base_us"] > 0 and cost["error"] >= 0
