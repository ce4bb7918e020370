"""The compiled kernels of the engine `cuda`, interpreted: they play the chain of one lane, without
hazards.
"""

import functools
import importlib.util
import itertools
import re

import numpy as np
import ptx
import pytest
from chains import play_program, program_at, quadratic_case, random_edges
from compiled_kernels import ptx_of
from engines_at_hand import PLAIN_LANE, Interpreted
from marks import slow_unless_changed
from test_cuda_engine import IN_WARPS, assert_same, check_gains_beyond_single_precision

from sl_discs.engines.cuda.cuda_engine import kind_of
from sl_discs.localization.schedule import Localization

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="numba-cuda and its compiler are not installed: pip install 'numba-cuda[cu13]'",
)


def engine_of(monkeypatch, warps=1, change=lambda text: text):
    """Compiled kernels after a change of their text."""

    @functools.cache
    def kernel(kind, warps):
        return ptx.parse(change(ptx_of(monkeypatch, kind, warps)))

    return Interpreted(kernel=kernel, warps=warps)


def play(engine, sampler, num_sites, localized=True, weight=-1.0, steps=4):
    """Plays a chain on a random graph whose couplings have a weight of both signs."""
    rng = np.random.default_rng(0)
    edges = random_edges(rng, num_sites, num_sites / 5)
    weights = weight * rng.choice([-1, 1], len(edges))
    case, levels = (
        quadratic_case(rng.normal(size=num_sites), edges, weights),
        Localization(K=2, sigma=2.0, n_min=2),
    )
    temperature = np.linspace(1.0, 0.3, steps) * abs(weight)
    program = program_at(temperature, levels.levels(steps) if localized else None)
    return play_program(engine, case, sampler, rng.integers(0, 2, (1, num_sites)), program)


def hazards(engine):
    return set().union(*(block.hazards for block in engine.blocks))


def check(engine, sampler, *arguments, **named):
    many, other = play(engine, sampler, *arguments, **named)
    one, trace = play(PLAIN_LANE, sampler, *arguments, **named)
    assert_same(one, many)
    np.testing.assert_allclose(trace.acceptance, other.acceptance, rtol=1e-3, atol=1e-4)
    assert not hazards(engine)


# Of each sampler one kernel runs by default, and the others only where what they are made of changed.
ON_CHANGE = slow_unless_changed(
    "sl_discs/engines/cuda", "sl_discs/models/keys.py", "tests/ptx.py", "tests/compiled_kernels.py"
)
FIRST = {type(sampler): name for name, sampler in reversed(IN_WARPS.items())}.values()


def kernels():
    """Samplers, warps and sites; levels or none; and couplings: packed, whole in float32, real."""
    for name in IN_WARPS:
        yield pytest.param(name, 1, 40, {}, marks=[] if name in FIRST else ON_CHANGE)
        yield pytest.param(name, 1, 40, {"localized": False}, marks=ON_CHANGE)
        for warps, num_sites in (1, 200), (2, 40), (2, 200), (11, 200):
            yield pytest.param(name, warps, num_sites, {}, marks=pytest.mark.slow)
    for name in "path_auxiliary", "dmala":
        for weight in 63, 100, 0.7:
            options = {"weight": weight, "steps": 12}
            yield pytest.param(name, 1, 40, options, marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "warps", "num_sites", "options"), kernels())
def test_a_compiled_kernel_plays_the_chain_of_one_lane(
    monkeypatch, name, warps, num_sites, options
):
    check(engine_of(monkeypatch, warps), IN_WARPS[name], num_sites, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_compiled_kernels_end_at_the_best_state_when_gains_are_beyond_single_precision(
    monkeypatch, name
):
    """The minimum and maximum of a GPU treat what is not a number differently from those of
    a CPU.
    """
    check_gains_beyond_single_precision(engine_of(monkeypatch), IN_WARPS[name])


@pytest.mark.parametrize("name", [pytest.param("path_auxiliary", marks=ON_CHANGE)])
def test_hazards_and_bounds_are_seen(monkeypatch, name):
    """Without its barriers, or with half of its shared memory, a right kernel is a wrong one."""
    sampler = IN_WARPS[name]
    engine = engine_of(monkeypatch, change=lambda text: re.sub(r"bar\.warp\.sync[^;]*;", "", text))
    play(engine, sampler, 40)
    assert len(hazards(engine)) >= 10
    shared = re.compile(r"(\.shared .*\[)(\d+)\]")
    small = engine_of(
        monkeypatch,
        change=lambda text: shared.sub(lambda one: f"{one[1]}{max(int(one[2]) // 2, 4)}]", text),
    )
    with pytest.raises(ptx.PtxError, match="out of bounds"):
        play(small, sampler, 40)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_sites", "expected"),
    [("path_auxiliary, 38 draws", 40, (8, 8)), ("dmala, fixed", 80, (6, 5))],
)
def test_a_barrier_that_is_left_out_is_seen(monkeypatch, name, num_sites, expected):
    """Only dmala does not need the one before each step."""
    sampler, barrier = IN_WARPS[name], re.compile(r"bar\.warp\.sync[^;]*;")
    count, seen = len(barrier.findall(ptx_of(monkeypatch, kind_of(sampler, 4, True, True)))), 0
    for left_out in range(count):
        numbers = itertools.count()
        engine = engine_of(
            monkeypatch,
            change=lambda text, k=left_out, n=numbers: barrier.sub(
                lambda one: "" if next(n) == k else one[0], text
            ),
        )
        play(engine, sampler, num_sites, steps=12)
        seen += bool(hazards(engine))
    assert (count, seen) == expected
