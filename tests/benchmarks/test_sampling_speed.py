"""The sampling benchmark: contenders draw from the same law, count their updates, and the script reports them."""

import importlib.util
import itertools
import json

import numpy as np
import pytest

import sampling
from contenders import NotPlayed
from sampling import TARGETS, Played, Row, Target, as_spins, contender, effective_rates, format_rows, play
from sl_discs.instances.form import QuadraticForm
from sl_discs.problems.problem import Problem
from sl_discs.sampling.draws import observed

CHAINS, DRAWS = 8, 200
MODULES = {"thrml": "thrml", "dwave-samplers": "dwave"}


def small_problem():
    """Six spins on an odd cycle and a chord, in a field."""
    pairs = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (4, 5), (1, 4)])
    rng = np.random.default_rng(3)
    form = QuadraticForm.from_arrays(
        "small", rng.normal(size=6), pairs, rng.normal(size=len(pairs)), spins=True, maximise=True
    )
    return Problem("ising", "small", range(6), form)


SMALL = Target(small_problem, 3.0, warm_up=20, sweeps=3)


def skip_unless_installed(name):
    if name in MODULES and importlib.util.find_spec(MODULES[name]) is None:
        pytest.skip(f"{name} is not installed: pip install -e '.[peers]' in the clone")


def test_spins_have_the_law_of_the_terms_and_blocks_no_neighbours():
    terms = small_problem().terms()
    states = np.array(list(itertools.product((0, 1), repeat=6)), np.int8)
    spins = as_spins(terms, 3.0)
    s, (u, v) = 2.0 * states - 1, spins.edges.T
    logs = s @ spins.fields + (s[:, u] * s[:, v]) @ spins.couplings
    differences = terms.evaluator()(states) / 3.0 - logs
    np.testing.assert_allclose(differences, differences[0], atol=1e-9)
    colour = np.empty(6, int)
    for number, block in enumerate(spins.blocks):
        colour[block] = number
    assert (colour[u] != colour[v]).all() and sum(map(len, spins.blocks)) == 6


def test_a_grid_has_two_colours():
    for name in ("ising-critical", "ising-3"):
        target = TARGETS[name]
        assert len(as_spins(target.problem().terms(), target.temperature).blocks) == 2


@pytest.mark.parametrize(
    "name",
    [
        *("numpy", "thrml", "dwave-samplers", "sweeps/cpu", "chain/cpu"),
        pytest.param("sweeps/reference", marks=pytest.mark.slow),
    ],
)
def test_contenders_draw_from_the_target_and_count_their_updates(name):
    skip_unless_installed(name)
    terms = small_problem().terms()
    states = np.array(list(itertools.product((0, 1), repeat=6)), np.int8)
    weights = np.exp(terms.evaluator()(states) / 3.0)
    truth = terms.evaluator()(states) @ weights / weights.sum()
    chains = 2_000 if name == "dwave-samplers" else CHAINS
    drawn = contender(name, terms, SMALL, chains, DRAWS)(5)
    values, _ = observed(terms, drawn.bits)
    error = values.std() / np.sqrt(values.size / 2)
    assert abs(values.mean() - truth) < 4 * error
    if name == "chain/cpu":
        sweeps = drawn.how["warm-up sweeps"] + DRAWS * drawn.how["sweeps a draw"]
    else:
        # thrml's first draw is the state after the warm-up.
        sweeps = 20 + (DRAWS - (name == "thrml")) * 3
    assert drawn.how["steps"] == sweeps * 6 * chains


@pytest.mark.parametrize("method", ["tempering", "population", "localization"])
def test_methods_count_all_their_steps(method):
    terms = small_problem().terms()
    drawn = contender(f"{method}/cpu", terms, SMALL, 2, 16)(1)
    how = drawn.how
    if method == "tempering":
        # The search for rungs begins with 16, and ends with fewer or as many on so small a problem.
        last = 2 * how["rungs"] * (256 + 16 * how["sweeps a draw"])
        search, rest = divmod(how["steps"] // 6 - last, 2 * 32)
        rounds = np.array([1, 2, 4, 8, 16])
        assert rest == 0 and how["rungs"] * rounds.sum() < search <= 16 * rounds.sum()
        return
    elif method == "population":
        # The pilot has at least 256 members; each population a first sweep and four at each temperature.
        each = 1 + 4 * how["temperatures"]
        expected = (256 + 2 * how["members"]) * each
    else:
        # Eight levels for each of 16 draws; chains continue from all but the first of them for as long.
        expected = 8 * (16 * 256 + 15 * 2 * 128)
    assert how["steps"] == expected * 6


def test_what_cannot_be_played_says_why(monkeypatch):
    terms = small_problem().terms()
    monkeypatch.setattr(sampling.importlib.util, "find_spec", lambda name: None)
    for name, absent in {"thrml": "thrml", "dwave-samplers": "dwave.samplers"}.items():
        with pytest.raises(NotPlayed, match=rf"{absent} is not installed: pip install -e '.\[peers\]'"):
            contender(name, terms, SMALL, 2, 4)
    glass = TARGETS["spin-glass"]
    with pytest.raises(NotPlayed, match="200 blocks of independent sites, above 32"):
        contender("numpy", glass.problem().terms(), glass, 2, 4)
    grid = TARGETS["ising-3"]
    with pytest.raises(NotPlayed, match="sweeps/reference has its rate"):
        contender("tempering/reference", grid.problem().terms(), grid, 2, 4)


def test_a_repetition_and_the_table():
    terms = small_problem().terms()
    found = play(contender("numpy", terms, SMALL, 4, 50), 0, terms)
    assert found.steps == 170 * 6 * 4 and found.rate == found.steps / found.cpu_seconds
    assert all(0 < one < 2_000 for one in found.effective)
    rate_only = Played(3_000, 1.0, 1.5, None, None)
    rows = [
        Row("t", "a", [Played(4_000, 1.0, 1.0, (10.0, 20.0, 30.0), 1.5)] * 2),
        Row("t", "b", [rate_only, rate_only]),
    ]
    assert effective_rates(rows[0]) == [(10.0, 0.0), (20.0, 0.0), (30.0, 0.0)] and effective_rates(rows[1]) is None
    text = format_rows(rows)
    assert "2.00x (0.00)" in text and "1.50*" in text


def test_the_script(tmp_path, script):
    small = ("--targets=spin-glass", "--methods=sweeps", "--engines=cpu", "--peers=numpy", "--chains=2", "--draws=4")
    assert "numpy is left out: 200 blocks" in script("benchmarks/sampling.py", *small, "--repeats=2")
    [row] = json.loads((tmp_path / "bench_sampling.json").read_text())["draws"]
    assert row["contender"] == "sweeps/cpu"
    assert [one["steps"] for one in row["repetitions"]] == [(256 + 4 * 32) * 200 * 2] * 2
