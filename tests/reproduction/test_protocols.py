"""Searches on the test instances and their null control: their trials, what is kept of them, and what is said."""

import dataclasses
import json

import networkx as nx
import numpy as np
import pytest
from made_up import MIS, made_up
from scipy import stats

from sl_discs.experiment.chains import program_of
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.graph import Graph
from sl_discs.reproduction.cells import (
    AS_PUBLISHED,
    DEFAULTS,
    HELD_OUT,
    LEFT_TO_TRAINING,
    NULL,
    PUBLISHED,
    Choice,
    main_cells,
)
from sl_discs.reproduction.comparisons import search_in_short, side_by_side_text
from sl_discs.reproduction.report import Composer, write_report
from sl_discs.reproduction.rows import pair_rows
from sl_discs.reproduction.runs import (
    Runner,
    Search,
    point_of_trial,
    reported,
    search_rows,
    searches,
    trial_cells,
)

CHOICE = Choice(chain_length=600, batch_size=4, engine="reference", seeds=(0,))
METHODS = ["gwg", "sl_gwg"]
LONG = {"chain_length": 600}


def graphs(count):
    drawn = [nx.gnp_random_graph(40, 0.2, seed=seed) for seed in range(count)]
    made = [Graph.from_arrays(f"g{seed}", 40, np.array(graph.edges)) for seed, graph in enumerate(drawn)]
    return Dataset(MIS.name, "mis", "generated", "small", made, list(range(count)), count)


def trials_of(number):
    return trial_cells(CHOICE, MIS, METHODS, number)[0]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The folder of cells, and cells at defaults and four trials of each protocol, played on two graphs."""
    folder = tmp_path_factory.mktemp("cells")
    runner = Runner(folder, lambda line: None, total=10)
    cells = [*main_cells(CHOICE, MIS, METHODS, held_out=False), *trials_of(4)]
    return folder, runner, [runner.run(cell, graphs(2)) for cell in cells]


def test_points_are_one_list_that_covers_the_space():
    for chain_length in (600, 10_000):
        space = space_of("sl_gwg", "sl", chain_length)
        points = [point_of_trial(trial, space) for trial in range(1, 17)]
        for block in (points[:8], points[8:]):
            assert sorted(point["sigma"] for point in block) == [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0]
            # An eighth of the range each, from 1e-4 to 1e-1 on a logarithmic scale.
            assert sorted(int((np.log10(point["eps"]) + 4) / 3 * 8) for point in block) == list(range(8))
        assert len({json.dumps(point) for point in points}) == 16
        assert space == space_of("sl_dmala", "sl", chain_length)
        choice = dataclasses.replace(CHOICE, chain_length=chain_length)
        for cell in trial_cells(choice, MIS, METHODS, 17)[0]:
            program = program_of(cell.build(), cell.settings).levels
            assert program.tilt_scale.any() != (cell.protocol == NULL)
            assert cell.settings.t_schedule == "exp_decay" and cell.settings.decay_rate == 0.05


def test_trials_of_a_longer_search_begin_with_those_of_a_shorter_one():
    assert trials_of(5)[:6] == trials_of(3) and trials_of(0) == []
    assert [cell.seeds for cell in trials_of(3)] == [(0,), (0,), (1,), (1,), (2,), (2,)]
    localized = main_cells(CHOICE, MIS, METHODS, held_out=False)[1]
    assert trials_of(1)[0].sampler == localized.sampler and trials_of(1)[0].settings == localized.settings
    assert trial_cells(CHOICE, MIS, ["gwg"], 3) == ([], [])
    none, reasons = trial_cells(dataclasses.replace(CHOICE, chain_length=100), MIS, METHODS, 2)
    assert none == [] and "chain_length 100 is too short" in reasons[0]


def test_trials_that_are_done_are_found_again(played):
    folder, first, done = played
    assert first.ran == 9  # trial 0 is the cell at defaults
    again = Runner(folder, lambda line: None, total=8)
    for cell, one in zip(trials_of(4), done[2:], strict=True):
        np.testing.assert_array_equal(again.run(cell, graphs(2)).result.best, one.result.best)
    assert again.ran == 0
    for cell in trials_of(5):
        again.run(cell, graphs(2))
    assert again.ran == 2


def test_one_compilation_serves_all_trials_and_changes_no_result(played, tmp_path):
    _, _, done = played
    runner = Runner(tmp_path, lambda line: None, total=3)
    runner.run(trials_of(1)[0], graphs(2))
    before = runner.compile_s
    for one in done[-2:]:
        result = runner.run(one.cell, graphs(2)).result
        np.testing.assert_array_equal(result.best, one.result.best)
        np.testing.assert_array_equal(result.trajectory, one.result.trajectory)
    assert runner.compile_s == before
    alone = Runner(tmp_path / "alone", lambda line: None, total=1)
    np.testing.assert_array_equal(alone.run(done[-2].cell, graphs(2)).result.trajectory, done[-2].result.trajectory)


def test_a_null_trial_is_the_base_samplers_run_with_the_same_seed(played, tmp_path):
    _, _, done = played
    null = searches(done)[MIS.name, "sl_gwg", NULL].trials
    assert null[0].result.best.tolist() == done[0].result.best.tolist()  # the base at its defaults
    runner = Runner(tmp_path, lambda line: None, total=4)
    found = set()
    for seed, trial in enumerate(null):
        base = runner.run(dataclasses.replace(CHOICE, seeds=(seed,)).cell(MIS, "gwg"), graphs(2)).result
        np.testing.assert_array_equal(trial.result.best, base.best)
        np.testing.assert_array_equal(trial.result.trajectory, base.trajectory)
        found.add(tuple(base.trajectory))
    assert len(found) == 4


def test_best_of_more_trials_is_no_worse(played):
    for search in searches(played[2]).values():
        values = [Search(search.trials[:n]).best().result.best.mean() for n in range(1, 5)]
        assert values == sorted(values) == search.record()["best_of"]
        assert values[-1] == max(one.result.best.mean() for one in search.trials)


def test_the_best_trials_stand_for_their_searches():
    base, localized = made_up("gwg", [10, 11, 12, 13], **LONG), made_up("sl_gwg", [11, 11, 12, 13], **LONG)
    found, null = (
        [made_up("sl_gwg", best, protocol=protocol, seed=k, **LONG) for k, best in enumerate(trials)]
        for protocol, trials in (
            (AS_PUBLISHED, ([11, 11], [14, 12], [13, 13])),
            (NULL, ([10, 11], [12, 10], [9, 12])),
        )
    )
    done = [base, localized, *found, *null]
    standing = reported(done)
    assert len(standing) == 4 and standing[2] is found[1] and standing[3] is null[1]  # the first of equals
    rows = {(row["protocol"], row["against"]): row for row in pair_rows(standing)}
    assert rows.keys() == {(DEFAULTS, DEFAULTS), (AS_PUBLISHED, DEFAULTS), (AS_PUBLISHED, NULL), (NULL, DEFAULTS)}
    for key, differences in (
        ((DEFAULTS, DEFAULTS), [1, 0, 0, 0]),
        ((AS_PUBLISHED, DEFAULTS), [4, 1]),
        ((AS_PUBLISHED, NULL), [2, 2]),
        ((NULL, DEFAULTS), [2, -1]),
    ):
        interval = stats.t.interval(
            0.95, len(differences) - 1, np.mean(differences), max(stats.sem(differences), 1e-300)
        )
        assert rows[key]["mean"] == np.mean(differences) and rows[key]["n"] == len(differences)
        assert rows[key]["ci95"] == pytest.approx(list(interval))
        assert rows[key]["published"] == pytest.approx(61.938 - 61.75)
    (row,) = search_rows(done)
    assert row[AS_PUBLISHED]["best_trial"] == 1 and row[AS_PUBLISHED]["best_of"] == [11, 13, 13]
    assert [trial["mean"] for trial in row[NULL]["trials"]] == [10.5, 11, 10.5]
    text = side_by_side_text(pair_rows(standing), [row])
    assert "3 trials" in text and "+2.500 [" in text and "| 2 | set size |" in text
    # The difference from the null control is 2 on both graphs, so its interval has no width to judge by.
    assert "exceeds its null control in 1 of 1 pairs, with the whole 95% interval in 0." in search_in_short(
        list(rows.values())
    )
    assert side_by_side_text(pair_rows([base, localized]), []) == "" == search_in_short(pair_rows([base, localized]))


def test_tuned_settings_are_set_against_a_tuned_base_too():
    best = {"gwg": [10, 11, 12], "sl_gwg": [13, 13, 14]}
    done = [made_up(method, best[method], **LONG) for method in METHODS]
    done += [made_up(method, np.add(best[method], 1), protocol=HELD_OUT, **LONG) for method in METHODS]
    means = {(row["protocol"], row["against"]): row["mean"] for row in pair_rows(done)}
    assert means == pytest.approx(
        {(DEFAULTS, DEFAULTS): 7 / 3, (HELD_OUT, DEFAULTS): 10 / 3, (HELD_OUT, HELD_OUT): 7 / 3}
    )


def test_the_report_has_all_protocols(played, tmp_path):
    done = played[2]
    sections = Composer(tmp_path, None).compose("main", done, [], final=False)
    text, numbers = write_report(tmp_path, sections, {"command": "c"})
    report = json.loads(numbers.read_text())
    assert [row["protocol"] for row in report["cells"]] == [DEFAULTS, DEFAULTS, AS_PUBLISHED]
    best = report["search"][0][AS_PUBLISHED]["best_trial"]
    row = report["cells"][2]
    assert row["setting"] == f"trial {best}" and row["seeds"] == [best]
    assert best == 0 or f"--config.experiment.seed={best}" in row["command"]
    for pair in report["pairs"]:
        assert {"dataset", "base", "protocol", "against", "mean", "ci95", "n", "published", "unit"} == set(pair)
    assert {pair["protocol"] for pair in report["pairs"]} == {DEFAULTS, AS_PUBLISHED, NULL}
    (row,) = report["search"]
    assert row["num_trials"] == 4 and row["n"] == 2 and row["method"] == "sl_gwg"
    for protocol in (AS_PUBLISHED, NULL):
        assert [trial["seed"] for trial in row[protocol]["trials"]] == [0, 1, 2, 3]
        assert all({"trial", "seed", "mean", "sampler"} == set(trial) for trial in row[protocol]["trials"])
    assert len(report["runtime"]) == 2
    words = text.read_text()
    assert words.index("## In short") < words.index("exceeds its null") < words.index("## Protocols side by side")


def test_graphs_that_settings_are_trained_on_are_not_tested_on(tmp_path):
    twenty = graphs(20)
    write_archive(tmp_path / "mis_satlib.npz", twenty.graphs)
    satlib = PUBLISHED["mis/satlib"]
    whole = satlib.load(str(tmp_path), None)
    assert whole.index == list(range(20))
    assert satlib.held_out(whole).index == list(range(20 - LEFT_TO_TRAINING))
    assert satlib.load(str(tmp_path), 5).index == [0, 4, 8, 12, 16]  # spread over the set
    assert satlib.held_out(satlib.load(str(tmp_path), 5)).index == [0]
    assert MIS.held_out(twenty) is twenty  # trained on draws of another seed
