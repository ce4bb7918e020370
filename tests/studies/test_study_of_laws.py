"""The study of laws: what exact draws and the null control score, cells that are kept, and the statistics."""

import dataclasses
import json

import numpy as np
import pytest

import laws
import laws_cells
import laws_report
import laws_targets
import truths
from laws_cells import Cell, Known, Play, coin, identity_of, play
from laws_report import Found, border, draw_border, draw_errors
from sl_discs.errors import InputError
from sl_discs.files import digest
from sl_discs.testing.cases import all_states
from truths import boltzmann_machine, hopfield, planted_strip

# Ten errors of 10,000 independent draws, each of which may have 5 standard deviations, fail by chance once in 1e5
# runs; a wrong direction, sign or unit is far outside.
EXACT = {"method": "exact"}


def small_truths():
    rng = np.random.default_rng(0)
    problem, direction = laws_targets.spin_glass(12, 0.6, 1.5, 0.05, 3)
    return {
        "glass": laws_targets.enumerated(problem, 1.3, direction),
        "hopfield": hopfield(16, [1.6, 1.2], 0.8, field=0.05, seed=1),
        "machine": boltzmann_machine(rng.normal(size=(8, 5)), rng.normal(size=8), rng.normal(size=5)),
    }


@pytest.mark.parametrize("name", list(small_truths()))
def test_exact_draws_have_the_errors_of_their_number(name):
    truth = small_truths()[name]
    found = play(truth, Cell("exact", EXACT, 1.0, 5))
    size = len(truth.marginals)
    one = 1 / np.sqrt(found.draws)
    terms = truth.problem.terms()
    law = laws_targets.enumerate_law(terms, truth.temperature)
    deviation = np.sqrt(law.probabilities @ (terms.evaluator()(all_states(size)) - law.mean_value) ** 2)
    assert found.errors["mode"] < 5 * one / 2
    assert found.errors["energy"] < 5 * one * deviation / truth.temperature / size
    assert found.errors["marginals"] < 5 * one / 2
    assert found.errors["log_z"] < 1e-9
    assert found.errors["tv"] < 5 * one * np.sqrt(len(truth.counts)) / 2
    assert found.cpu_s > 0


def test_enumeration_agrees_with_the_sum_over_classes():
    truth = hopfield(16, [1.6, 1.2], 0.8, field=0.05, seed=1)
    other = laws_targets.enumerated(truth.problem, truth.temperature, truth.direction)
    for name in ("log_z", "mean_value", "marginals", "mode_weight", "counts"):
        np.testing.assert_allclose(getattr(other, name), getattr(truth, name), rtol=1e-9)


@pytest.mark.slow
def test_long_tempering_agrees_with_enumeration():
    """Within 6 standard errors of each, which fail by chance once in 1e8 runs."""
    problem, direction = laws_targets.spin_glass(12, 0.6, 1.5, 0.05, 3)
    truth = laws_targets.enumerated(problem, 1.0, direction)
    found, evidence = laws_targets.by_long_tempering(laws_targets.Sampled(problem, 1.0, direction, 20_000))
    assert evidence["round_trips"] > 1_000
    assert abs(found.mode_weight - truth.mode_weight) < 6 * evidence["mode_error"] < 0.1
    assert abs(found.mean_value - truth.mean_value) < 6 * evidence["value_error"] < 0.5
    assert abs(found.log_z - truth.log_z) < 6 * evidence["log_z_error"] < 0.5


def test_a_coin_has_everything_but_the_mode():
    truth = planted_strip(3, 8, 2.0, 0.1, field=0.03)
    null = coin(truth)
    assert null["mode"] == pytest.approx(abs(truth.mode_weight - 0.5))
    assert null["tv"] == pytest.approx(null["mode"])
    assert null["energy"] is null["log_z"] is None
    symmetric = coin(planted_strip(3, 7, 2.0, 0.1))
    assert max(symmetric[name] for name in ("mode", "tv", "marginals")) < 1e-12


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if "10000" in name else ())
        for name in laws_targets.TARGETS
        if "3000" not in name
    ],
)
def test_targets_can_be_made(name):
    target = laws_targets.TARGETS[name]
    try:
        made = target.make(laws_cells.MEASURED)
    except InputError as reason:
        pytest.skip(str(reason))
    assert made.problem.num_variables >= 20
    if isinstance(made, laws_targets.Sampled):
        assert set(np.unique(made.direction)) == {-1, 1}
    elif made.mode_weight is not None:
        # Far from both 1/2, where a coin would do, and 1.
        assert 0.52 < made.mode_weight < 0.97 or name == "digits"


def test_width_is_that_of_what_is_left():
    truth = hopfield(40, [1.6, 1.2], 0.5)
    terms = truth.problem.terms()
    assert laws_targets.width_of_rest(terms, 0.5, 2) == pytest.approx(0, abs=1e-9)
    assert laws_targets.width_of_rest(terms, 0.5, 1) == pytest.approx(1.2 / 0.5)
    assert laws_targets.width_of_rest(terms, 0.5, 0) == pytest.approx(1.6 / 0.5)


@pytest.fixture
def tiny(monkeypatch):
    """A target of 12 spins and two methods, with cells that take no time."""
    problem, direction = laws_targets.spin_glass(12, 0.6, 1.5, 0.05, 3)
    truth = laws_targets.enumerated(problem, 1.0, direction)
    monkeypatch.setitem(laws_targets.TARGETS, "tiny", laws_targets.Target(lambda seed: truth, 1))
    monkeypatch.setattr(laws, "METHODS", {"exact": EXACT, "tempering": EXACT, "no-such": {"method": "no-such"}})
    return truth


def test_a_stopped_study_goes_on(tiny, tmp_path, monkeypatch):
    def words(found):
        return laws_report.target_table(found)

    limits, seen = {name: [0.1, 0.2] for name in ("exact", "no-such", "tempering")}, []

    def stop(line):
        seen.append(line)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        laws.measure_target("tiny", limits, 3, tmp_path, stop)
    kept = sorted(tmp_path.glob("cells/tiny/*.json"))
    assert len(kept) == 5
    kept[0].write_text("{")  # is measured again
    played = []
    monkeypatch.setattr(laws, "play", lambda truth, cell: played.append(cell) or play(truth, cell))
    found = laws.measure_target("tiny", limits, 3, tmp_path)
    assert len([cell for cell in played if cell.seed < 3]) == 8  # beside those of a fourth seed, which warm up
    assert "no-such is left out: method is 'no-such'" in words(found)
    played.clear()
    again = laws.measure_target("tiny", limits, 3, tmp_path)
    assert words(again) == words(found) and {cell.method for cell in played} == {"no-such"}


def test_interrupted_draws_are_no_cell(tiny, monkeypatch):
    def interrupted(problem, temperature, **arguments):
        return dataclasses.replace(laws_targets.sample(problem, temperature, method="exact"), interrupted=True)

    monkeypatch.setattr(laws_cells, "sample", interrupted)
    with pytest.raises(KeyboardInterrupt):
        play(tiny, Cell("gibbs", {}, 0.1, 0))


def test_another_seed_or_argument_is_another_cell(tiny):
    known, cell = Known("tiny", tiny, 1.0, {}), Cell("exact", EXACT, 0.1, 0)
    others = cell._replace(seed=1), cell._replace(seconds=0.2), cell._replace(arguments={**EXACT, "groups": 4})
    assert len({digest(identity_of(known, one)) for one in (cell, *others, cell._replace(method="gibbs"))}) == 5


@pytest.mark.slow
def test_a_long_reference_is_kept(tmp_path, monkeypatch):
    problem, direction = laws_targets.spin_glass(10, 0.6, 1.5, 0.05, 3)
    target = laws_targets.Target(lambda seed: laws_targets.Sampled(problem, 1.0, direction, 400), 1)
    first = laws_cells.know("small", target, 1, tmp_path)
    monkeypatch.setattr(laws_cells, "by_long_tempering", None)
    again = laws_cells.know("small", target, 1, tmp_path)
    assert again.evidence == first.evidence
    assert again.evidence["round_trips"] > 0
    np.testing.assert_array_equal(again.truth.counts, first.truth.counts)


def plays(rng, cost, times, seeds=800, bias=0.0):
    def one(t):
        return Play(t, 10, dict.fromkeys(laws_report.ERRORS, abs(bias + rng.normal() * np.sqrt(cost / t))), True, 0.1)

    return {t: [one(t) for _ in range(seeds)] for t in times}


def study(target="strip-1.6-0.14", width=0.5):
    """The true speed-up is 40."""
    rng = np.random.default_rng(1)
    null = dict.fromkeys(laws_report.ERRORS, 0.3)
    by_method = {"tempering": plays(rng, 0.04, (0.5, 2.0)), "low-rank": plays(rng, 0.001, (0.2, 1.0))}
    by_method["gibbs"] = plays(rng, 1e-9, (0.5, 2.0), bias=0.2)
    return Found(target, 120, width, {"round_trips": 300}, null, by_method, {"population": "no time"})


def test_speed_up_is_the_ratio_of_costs():
    found = study()
    ratio = laws_report.speed_up(found, "low-rank", "mode")
    assert ratio.value == pytest.approx(40, rel=0.25)  # 3.5 standard deviations
    assert 0.75 < ratio.low / ratio.value < 0.95
    assert 1.05 < ratio.high / ratio.value < 1.3
    assert laws_report.slope(found, "low-rank", "mode") == pytest.approx(-0.5, abs=0.1)
    assert laws_report.slope(found, "gibbs", "mode") == pytest.approx(0, abs=0.01)
    assert laws_report.root_mean_square(np.array([3.0, 4.0])).value == pytest.approx(np.sqrt(12.5))


def test_intervals_cover_what_they_should():
    """Of 200 intervals of 40 seeds more than 160 hold the true ratio 1; 190 would be expected of exact ones."""
    rng, covered = np.random.default_rng(2), 0
    for _ in range(200):
        by_method = {name: plays(rng, 1.0, (1.0,), 40) for name in ("tempering", "other")}
        found = Found("x", 1, 0.0, {}, dict.fromkeys(laws_report.ERRORS), by_method, {})
        ratio = laws_report.speed_up(found, "other", "energy")
        covered += ratio.low < 1 < ratio.high
    assert covered > 160


def test_verdicts_count_those_that_are_silently_wrong():
    """Wrong are more than 4 of one's own errors, with the truth's, and .02, and only what calls itself reliable."""
    null = dict.fromkeys(laws_report.ERRORS, 0.3)

    def count(error, own, reliable, of_truth=0.0):
        play = Play(1.0, 10, null | {"mode": error}, reliable, own)
        found = Found("x", 10, 0.0, {"mode_error": of_truth}, null, {"gibbs": {1.0: [play]}}, {})
        return tuple(laws_report.verdicts([found, found], "gibbs"))

    assert count(0.05, 0.01, True) == (2, 2, 2)
    assert count(0.05, 0.01, False) == (2, 0, 0)
    assert count(0.05, 0.013, True) == count(0.05, 0.01, True, of_truth=0.01) == count(0.019, 0, True) == (2, 2, 0)
    without = null | dict.fromkeys(("mode", "tv"))
    for off, wrong in ((0.09, 0), (0.11, 1)):
        play = Play(1.0, 10, without | {"marginals": off}, True, None)
        assert (
            laws_report.verdicts([Found("x", 9, 0.0, {}, without, {"gibbs": {1.0: [play]}}, {})], "gibbs").wrong
            == wrong
        )
    assert laws_report.plain(3218.4) == "3200"
    assert laws_report.plain(0.001234) == "0.0012"
    assert laws_report.plain(6e-13) == "0"


def test_tables_and_figures(tmp_path):
    found = [study(), study("strip-2.4-0.4", 2.0), study("other", 1.0)]
    words = laws_report.summary(found) + laws_report.target_table(found[0])
    assert "null: a fair coin" in words
    assert "population is left out: no time" in words
    assert "round_trips 300" in words
    assert "| gibbs | 4800 | 4800 | 0 |" in words
    assert "refuses" in words
    ratios = border(found, "low-rank")
    assert list(ratios) == ["strip-1.6-0.14", "strip-2.4-0.4"]
    assert draw_errors(found, tmp_path / "errors.png").stat().st_size > 1_000
    assert draw_border(ratios, "low-rank", tmp_path / "border.png").stat().st_size > 1_000


def test_settings_are_searched_once_and_on_another_draw(tiny, tmp_path, monkeypatch):
    seeds = []
    target = laws_targets.Target(lambda seed: seeds.append(seed) or tiny, 1)
    scored = [{"K": 32, "sigma": 2.0}, {"K": 64, "sigma": 1.0}]
    monkeypatch.setattr(laws_cells, "CANDIDATES", scored)
    monkeypatch.setattr(laws_cells, "play", lambda truth, cell: fake(cell.arguments["K"]))

    def fake(levels):
        return Play(1.0, 1, dict.fromkeys(laws_report.ERRORS, 1 / levels), True, 0.1)

    found = [laws_cells.searched("tiny", target, {"method": "localization"}, tmp_path) for _ in range(2)]
    assert found == [{"method": "localization", **scored[1]}] * 2
    assert seeds == [laws_cells.SEARCHED_ON]


@pytest.mark.slow
def test_every_candidate_can_be_played(tiny):
    for one in laws_cells.CANDIDATES:
        assert play(tiny, Cell("", {"method": "localization", "groups": 2, **one}, 0.01, 0)).draws > 0


def test_machines_learn_what_they_are_shown():
    """Two patterns of eight pixels with a tenth of them wrong: pixels of a pattern agree, as in the data."""
    rng = np.random.default_rng(0)
    signs = np.repeat([1, -1], 4)
    shown = np.where(rng.random((600, 1)) < 0.5, 1, -1) * signs * np.where(rng.random((600, 8)) < 0.1, -1, 1) > 0
    truth = boltzmann_machine(*truths.fit(shown, 2, 0, 400))
    law = laws_targets.enumerate_law(truth.problem.terms(), 1.0)
    for other, agree in ((1, 0.82), (7, 0.18)):
        assert np.trace(law.moments()[0, :, other]) == pytest.approx(agree, abs=0.08)


@pytest.mark.slow
def test_the_script(tmp_path, script):
    small = "--targets=strip-smoke", "--methods=gibbs,tempering", "--seeds=2", "--seconds=.01,.02", "--output=study"
    said = script("studies/laws.py", *small)
    assert "| gibbs |" in said and "saved study/laws.json" in said
    assert (tmp_path / "study" / "errors.png").exists()
    cells = {path: path.stat().st_mtime_ns for path in (tmp_path / "study" / "cells").rglob("*.json")}
    assert len(cells) == 8
    found = (tmp_path / "study" / "laws.json").read_bytes()
    [target] = json.loads(found)["targets"]
    assert target["methods"]["tempering"]["verdicts"][0] == 4 and target["methods"]["gibbs"]["seeds"] == 2
    script("studies/laws.py", *small)
    assert {path: path.stat().st_mtime_ns for path in cells} == cells
    assert (tmp_path / "study" / "laws.json").read_bytes() == found
