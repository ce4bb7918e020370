"""The record of one lane: states and values of each sampler of the engine `cuda`, which changes
must leave alone.

Tests compare warps and compiled kernels with the chain of one lane; this one holds that chain to
what it was. The lane runs as Python, and states do not depend on the last bits in which elementary
functions of machines differ. After a change that is meant to change chains, run

    PYTHONPATH=.:tests:tests/engines python tests/engines/test_one_lane_record.py

and say in the commit which entries changed and why.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from chains import play_program, program_at, quadratic_case, random_edges
from engines_at_hand import PLAIN_LANE
from test_cuda_engine import IN_WARPS

from sl_discs.localization.schedule import Localization

RECORD = Path(__file__).with_name("one_lane_record.json")
STEPS, NUM_SITES = 12, 40
FORMS = {"plain": (False, True), "localized": (True, True), "localized, real": (True, False)}


def entry(name, form):
    """What two chains have after 12 steps on a random graph, with a site that may not flip: states
    in hexadecimal.
    """
    localized, whole = FORMS[form]
    rng = np.random.default_rng(0)
    edges = random_edges(rng, NUM_SITES, 8)
    weights = rng.choice([-3, -1, 1], len(edges)) if whole else rng.normal(size=len(edges))
    case = quadratic_case(
        rng.normal(size=NUM_SITES), edges, weights, mask=np.arange(NUM_SITES) != 7
    )
    levels = Localization(K=3, sigma=2.0, n_min=2)
    program = program_at(np.linspace(2.0, 0.5, STEPS), levels.levels(STEPS) if localized else None)
    x = rng.integers(0, 2, (2, NUM_SITES))
    chains, trace = play_program(PLAIN_LANE, case, IN_WARPS[name], x, program, intervals=3)
    found = {
        "x": np.packbits(chains.chain.x[0], axis=1).tobytes().hex(),
        "best": np.packbits(chains.best.x[0], axis=1).tobytes().hex(),
        "value": numbers(trace.value),
        "acceptance": numbers(trace.acceptance),
    }
    return found | {"y": numbers(chains.chain.state.y[0, :, :3])} if localized else found


def numbers(values):
    return [float(f"{value:.5g}") for value in np.ravel(values)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", IN_WARPS)
def test_the_chain_of_one_lane_is_the_recorded_one(name, form):
    expected, found = json.loads(RECORD.read_text())[f"{name}, {form}"], entry(name, form)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, str):
            assert found[key] == value
        else:
            np.testing.assert_allclose(found[key], value, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    lines = (
        f"{json.dumps(f'{name}, {form}')}: {json.dumps(entry(name, form))}"
        for name in IN_WARPS
        for form in FORMS
    )
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"saved: {RECORD}")
