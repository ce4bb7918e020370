"""Whether localization helps to optimise: statistics, searches that see no test graph, and cells that are kept."""

import dataclasses
import itertools
import json
import math
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import claim
import claim_plan as planned
from claim_plan import (
    ARMS,
    BOTH,
    CHOSEN,
    DEFAULTS,
    NULL,
    PLANTED,
    SAME_ANNEALING,
    SEARCHED,
    SIZES,
    Item,
    Pair,
    Study,
)
from claim_report import Found, claim_levels, gain_rows, pooled_rows, write_settings
from claim_statistics import detection, expected_best, holm, interval, random_effects
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.graph import Graph
from sl_discs.reproduction.cells import PUBLISHED, Choice
from sl_discs.reproduction.runs import Runner
from sl_discs.tuning.evaluation import read_tuned

DENSITY = PUBLISHED["mis/er_density/r-0.10"]
SATLIB = PUBLISHED["mis/satlib"]
CUTS = PUBLISHED["maxcut/er/r-er-0.15-n-256-300"]
SMOKE = SIZES["smoke"]
CHOICE = Choice(SMOKE.steps, SMOKE.chains, "cpu", (0,))


# Statistics.


def test_tests_of_a_mean_agree_with_scipy():
    values = np.random.default_rng(1).standard_normal(12) + 0.4
    found = interval(values)
    for value in (0.0, 0.7):
        assert found.p_value(value) == pytest.approx(stats.ttest_1samp(values, value).pvalue)
    assert found.bounds() == pytest.approx(stats.ttest_1samp(values, 0.0).confidence_interval(0.95))
    assert interval(np.ones(1)).half is None and interval(np.zeros(4)).p_value(0.0) == 1.0


def test_holm_against_a_worked_example():
    # 4 x .005; 3 x .01; 2 x .03; .04, raised to the one before it
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_the_expected_best_of_n_is_the_mean_over_all_choices():
    values = [0.3, -1.0, 2.5, 0.3, 0.0]
    for n in range(1, 6):
        assert expected_best(values, n) == pytest.approx(np.mean([*map(max, itertools.combinations(values, n))]))


def test_random_effects_against_a_sum_by_hand():
    """Effects 0, 1, 4 with variances 1, 1, 2.

    Weights 1, 1, 1/2: fixed mean 3/2.5 = 1.2; Q = 1.44 + .04 + 3.92 = 5.4; C = 2.5 - 2.25/2.5 = 1.6;
    tau2 = (5.4 - 2)/1.6 = 2.125. Weights 1/3.125, 1/3.125, 1/4.125.
    """
    found = random_effects([0.0, 1.0, 4.0], [1.0, 1.0, math.sqrt(2.0)])
    a, b = 1 / 3.125, 1 / 4.125
    mean = (a + 4 * b) / (2 * a + b)
    scale = (a * mean**2 + a * (1 - mean) ** 2 + b * (4 - mean) ** 2) / 2
    half = 4.302652729911275 * math.sqrt(max(1.0, scale) / (2 * a + b))
    assert found.tau2 == pytest.approx(2.125) and found.mean == pytest.approx(mean)
    assert [found.low, found.high] == pytest.approx([mean - half, mean + half])
    equal = random_effects([2.0, 2.0], [1.0, 1.0])
    assert equal.tau2 == 0 and equal.mean == 2.0
    assert equal.high - 2.0 == pytest.approx(12.706204736 / math.sqrt(2))  # the scale is not below 1


def test_detection_of_nothing_and_of_a_gain():
    """Of no gain: 2.5 %, within 4 standard deviations of 2,000 samples; of a gain of three standard errors, 85 %."""
    values = np.random.default_rng(2).standard_normal(4_000)
    values -= values.mean()
    assert abs(detection(values, 100) - 0.025) < 4 * math.sqrt(0.025 * 0.975 / 2_000) + 0.003
    power = 1 - stats.nct.cdf(stats.t.ppf(0.975, 99), 99, 3.0)
    assert abs(detection(values + 0.3, 100) - power) < 0.05


# The plan, the searches and their graphs.


def fake(values, played):
    """A `play` that gives `values(cell, graph)` and remembers which graphs each protocol was played on."""

    def play(cell, graphs):
        played.append((cell.protocol, cell.seeds, graphs))
        return SimpleNamespace(best=np.array([[values(cell, graph) for graph in graphs.graphs]], np.float64))

    return play


def content(graph):
    return graph.num_nodes, graph.edges.tobytes()


@pytest.fixture(scope="module")
def satlib(tmp_path_factory):
    """A folder with 30 graphs in the place of SATLIB's, each of another size."""
    root = tmp_path_factory.mktemp("data")
    edges = np.array([[0, 1], [1, 2]])
    graphs = [Graph.from_arrays(f"g{k}", 10 + k, edges) for k in range(30)]
    write_archive(root / "mis_satlib_30.npz", graphs)
    return str(root)


@pytest.mark.parametrize("name", [DENSITY.name, SATLIB.name])
@pytest.mark.parametrize("arm", [SEARCHED, NULL, BOTH])
def test_a_search_sees_no_test_graph(name, arm, satlib):
    played = []
    study = Study(SMOKE, CHOICE, satlib, fake(lambda cell, graph: graph.num_nodes, played))
    for number in range(3 if name == SATLIB.name else 2):
        study.round(Item(arm, PUBLISHED[name], "gwg", number))
    training = {content(graph) for words, _, part in played if "trial" in words for graph in part.graphs}
    tests = {content(graph) for words, _, part in played if "trial" not in words for graph in part.graphs}
    assert training and tests and not training & tests
    seeds = {seed for words, found, _ in played if "trial" in words for seed in found}
    assert seeds == {1_000 + trial for trial in range(SMOKE.trials)}


def test_rounds_have_other_graphs_and_then_other_seeds(satlib):
    rounds = [planned.test_graphs(SATLIB, SMOKE, number, satlib) for number in range(7)]
    indices = [set(graphs.index) for graphs, _ in rounds]
    assert len(set.union(*indices[:6])) == 24 and not any(k % 5 == 4 for k in set.union(*indices))
    assert [seed for _, seed in rounds] == [0] * 6 + [1] and indices[6] == indices[0]
    first, second = (planned.test_graphs(DENSITY, SMOKE, number, None)[0] for number in range(2))
    assert not {content(graph) for graph in first.graphs} & {content(graph) for graph in second.graphs}


def test_halving_keeps_the_best_and_gives_it_more_graphs():
    played = []
    study = Study(
        SMOKE, CHOICE, None,
        fake(lambda cell, graph: cell.sampler["sigma"] - (cell.sampler["sigma"] == 10.0), played),
    )  # fmt: skip
    best = study.search(DENSITY, "gwg", SEARCHED, localized=True)
    sigmas = [
        study._candidate(DENSITY, "gwg", SEARCHED, trial, localized=True).sampler["sigma"] for trial in range(4)
    ]
    assert best.candidate.sampler["sigma"] == max(sigmas) != 10.0 and best.trial == int(np.argmax(sigmas))
    assert best.graphs == 4 and [len(part.graphs) for *_, part in played] == [2] * 4 + [2] * 2  # 2 go on, of 4
    assert study.search(DENSITY, "gwg", SEARCHED, localized=True) is best and len(played) == 6


def test_what_both_searches_find_is_written_as_configs(tmp_path):
    study = Study(
        SMOKE, CHOICE, None, fake(lambda cell, graph: 100 * cell.settings.init_temperature, [])
    )  # fmt: skip
    study.round(Item(BOTH, DENSITY, "gwg_one_flip", 0))
    study.round(Item(SEARCHED, DENSITY, "gwg", 0))  # whose temperatures are DISCS's: no config
    paths = write_settings(study, tmp_path, {"version": "x"})
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        f"{DENSITY.name}/{name}.json" for name in ("gwg_one_flip", "sl_gwg_one_flip")
    ]
    for path, localized in zip(paths, (False, True), strict=True):
        found = study.search(DENSITY, "gwg_one_flip", BOTH, localized=localized).candidate
        assert read_tuned(path) == found and found.sampler["adaptive"] is False


def test_localization_at_its_defaults_takes_the_annealing_that_the_base_found():
    played = []

    def values(cell, graph):
        played.append(cell)
        return 100 * cell.settings.init_temperature

    study = Study(SMOKE, CHOICE, None, fake(values, []))
    pairs = study.round(Item(SAME_ANNEALING, DENSITY, "gwg", 0)).values()
    found = study.search(DENSITY, "gwg", BOTH, localized=False).candidate
    last = played[-1]
    assert last.method == "sl_gwg" and last.sampler == CHOICE.cell(DENSITY, "sl_gwg").sampler
    assert last.settings.init_temperature == found.experiment["init_temperature"]
    assert all(one.localized == one.base for one in pairs) and not any(key[3] for key in study.searches)


def test_both_arms_search_the_same_temperatures_and_the_null_has_no_tilt():
    base = planned.search_space(BOTH, 10_000, localized=False)
    assert planned.search_space(BOTH, 10_000, localized=True)[: len(base)] == base
    assert [one.name for one in base] == ["t_schedule", "init_temperature", "cooling"]
    study = Study(SMOKE, CHOICE, None, fake(lambda cell, graph: 0.0, []))
    for trial in range(3):
        one = study._candidate(DENSITY, "gwg", NULL, trial, localized=True)
        assert one.sampler["tilt"] is False and one.experiment["decay_rate"] == 0.05


def test_differences_are_nodes_or_per_cent_of_the_cut_at_defaults():
    def values(cell, graph):
        return 200.0 + 2 * cell.method.startswith("sl_")

    for dataset, gain in ((DENSITY, 2.0), (CUTS, 1.0)):
        study = Study(SMOKE, CHOICE, None, fake(values, []))
        played = study.round(Item(DEFAULTS, dataset, "dmala", 0))
        found = Found({Item(DEFAULTS, dataset, "dmala", 0): played})
        assert found.differences(DEFAULTS, dataset.name, "dmala") == pytest.approx([gain] * 4)
        localized, base = claim_levels(found, CHOICE)
        assert (localized["mean"], base["mean"]) == (202.0, 200.0)  # cuts in edges, without a z
        assert (base["unit"], base["z"] is None) == (("nodes", False) if dataset == DENSITY else ("edges", True))


def test_the_plan_begins_with_defaults_on_all_primary_sets():
    size = SIZES["cpu"]
    steps = planned.plan(size)
    primary = len(size.sets) * len(planned.SAMPLERS)
    assert {(item.arm, item.round) for item in steps[:primary]} == {(DEFAULTS, 0)}
    assert {item.dataset.name for item in steps[:primary]} == set(planned.PRIMARY) and len(set(steps)) == len(steps)
    assert {item.sampler for item in steps if item.arm in PLANTED} == {"path_auxiliary"}
    assert {item.dataset.name for item in steps} == set(PUBLISHED)


def test_stopping_sees_the_width_alone():
    values = np.random.default_rng(3).normal(0, 0.5, 4_000)
    for data, precise in ((values, True), (values[:50], False)):
        assert [
            planned.is_precise(DENSITY.name, "gwg", shift + sign * data) for shift, sign in ((0, 1), (5, -1))
        ] == ([precise] * 2)
    assert not planned.is_precise("maxcut/optsicom/r-b", "gwg", np.zeros(10))  # nothing is published to aim at


def test_a_graph_with_two_seeds_counts_once(satlib):
    found, study = Found(), Study(SMOKE, CHOICE, satlib, fake(lambda cell, graph: float(cell.seeds[0]), []))
    for number in range(7):
        found.rounds[Item(DEFAULTS, SATLIB, "gwg", number)] = dict.fromkeys(
            planned.test_graphs(SATLIB, SMOKE, number, satlib)[0].index, Pair(3.0 + (number == 6), 3.0, 100.0)
        )
    values = found.differences(DEFAULTS, SATLIB.name, "gwg")
    assert len(values) == 24 and sorted(set(values)) == [0.0, 0.5]
    assert (
        study.round(Item(DEFAULTS, SATLIB, "gwg", 0)).keys() == found.rounds[Item(DEFAULTS, SATLIB, "gwg", 0)].keys()
    )


def test_the_share_of_the_published_gain_is_pooled_over_sets_with_one():
    found = Found()
    rng = np.random.default_rng(4)
    for name in (DENSITY.name, CUTS.name, "mis/satlib"):
        gain = planned.published_gain(name, "dmala")
        noise = rng.standard_normal(100) * abs(gain)
        values = 100 + gain / 2 + noise - noise.mean()
        found.rounds[Item(DEFAULTS, PUBLISHED[name], "dmala", 0)] = {
            k: Pair(x, 100.0, 100.0) for k, x in enumerate(values)
        }
    # A single ER set is not pooled in nodes, and DMALA's published difference on SATLIB is negative.
    (row,) = pooled_rows(gain_rows(found))
    assert row["sets"] == [DENSITY.name, CUTS.name] and row["mean"] == pytest.approx(0.5)


# Runs.


def test_points_are_one_list_that_covers_the_space():
    for chain_length in (600, 10_000):
        space = planned.search_space(SEARCHED, chain_length, localized=True)
        points = [planned.point_of_trial(trial, space) for trial in range(1, 17)]
        for block in (points[:8], points[8:]):
            assert sorted(point["sigma"] for point in block) == [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0]
            # An eighth of the range each, from 1e-4 to 1e-1 on a logarithmic scale.
            assert sorted(int((np.log10(point["eps"]) + 4) / 3 * 8) for point in block) == list(range(8))
        assert len({json.dumps(point) for point in points}) == 16


def small_graphs():
    drawn = [nx.gnp_random_graph(40, 0.2, seed=seed) for seed in range(2)]
    made = [Graph.from_arrays(f"g{seed}", 40, np.array(graph.edges)) for seed, graph in enumerate(drawn)]
    return Dataset(DENSITY.name, "mis", "generated", "small", made, [0, 1], 2)


def test_without_its_tilt_a_localized_chain_is_that_of_its_base(tmp_path):
    choice, found = Choice(600, 4, "reference", (0,)), set()
    study = Study(SMOKE, choice, None, fake(lambda cell, graph: 0.0, []))
    runner = Runner(tmp_path, lambda line: None, total=0)
    for trial in range(3):
        null = study._trial(DENSITY, "gwg", NULL, trial, 7, localized=True)
        base = dataclasses.replace(choice, seeds=(7 + trial,)).cell(DENSITY, "gwg")
        results = [runner.run(cell, small_graphs()).result for cell in (null, base)]
        np.testing.assert_array_equal(results[0].best, results[1].best)
        np.testing.assert_array_equal(results[0].trajectory, results[1].trajectory)
        found.add(tuple(results[0].trajectory))
    assert len(found) == 3


# Without the search of temperatures, which takes longest.
UNTUNED = tuple(arm for arm in ARMS if arm not in (BOTH, SAME_ANNEALING))


def reproduce(folder, *more):
    arms = ",".join(UNTUNED)
    sets = [f"--datasets={DENSITY.name}", "--samplers=path_auxiliary", f"--arms={arms}", *more]
    return claim.main(["studies/claim/claim.py", f"--output={folder}", *sets])


@pytest.mark.slow
def test_the_command_resumes_from_its_cells_and_finds_the_same(tmp_path, capsys, monkeypatch):
    tiny = dataclasses.replace(SMOKE, block=2, rounds=1, trials=2, rungs=((1, 2), (2, 1)), chosen=(2, 2))
    monkeypatch.setitem(SIZES, "smoke", tiny)
    assert reproduce(tmp_path) == 0
    report = json.loads((tmp_path / "report.json").read_text())["claim"]
    said = capsys.readouterr().out
    assert {row["arm"] for row in report["gains"]} == {*UNTUNED} - {CHOSEN}
    assert len(report["chosen"]) == 1 and {row["gain"] for row in report["power"]} == {*PLANTED, "published"}
    assert "(b) searched: 1 pairs" in (tmp_path / "report.md").read_text() and "report.md" in said
    cells = {path: path.read_bytes() for path in (tmp_path / "cells").rglob("*.json")}
    for path in list(cells)[::2]:
        path.unlink()
    assert reproduce(tmp_path) == 0
    assert f"{len(list(cells)[::2])} cells run" in capsys.readouterr().out
    assert json.loads((tmp_path / "report.json").read_text())["claim"] == report
    again = {path: json.loads(path.read_bytes())["best"] for path in (tmp_path / "cells").rglob("*.json")}
    assert again == {path: json.loads(content)["best"] for path, content in cells.items()}
    assert reproduce(tmp_path, "--arms=defaults") == 0  # reports what else is finished, too
    assert json.loads((tmp_path / "report.json").read_text())["claim"] == report


def test_flags_that_do_not_fit_are_refused(tmp_path, capsys):
    for more, message in (
        (["--arms=x"], "--arms: 'x' is not available"),
        (["--samplers=sl_gwg"], "--samplers: 'sl_gwg' is not available"),
    ):
        assert reproduce(tmp_path, *more) == 2
        assert message in capsys.readouterr().err
