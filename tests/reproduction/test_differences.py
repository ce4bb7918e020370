"""Differences of MaxCut methods beside the published ones, and references of a finished cell."""

import dataclasses
import math

import numpy as np
import pytest
from made_up import made_up
from scipy import stats

from sl_discs.experiment.published import published_row
from sl_discs.reproduction.cells import HELD_OUT, PUBLISHED, Choice
from sl_discs.reproduction.comparisons import MARKS, difference_rows, differences_text, marks_rows, marks_text
from sl_discs.reproduction.rows import cell_row
from sl_discs.reproduction.runs import Runner, identity, save_result

CUT = PUBLISHED["maxcut/ba/r-ba-4-n-512-600"]
CHOICE = Choice(chain_length=60, batch_size=4, engine="reference", seeds=(0,))
REFERENCES = [200.0, 400.0, 100.0, 50.0]


def cut(method, best, references=REFERENCES, **keywords):
    return made_up(method, best, references, published=CUT, **keywords)


def test_differences_are_paired_by_graph_in_per_cent_of_the_reference():
    base, other = [190, 396, 99, 50], [192, 394, 99, 49]
    (row,) = difference_rows([cut("path_auxiliary", base), cut("sl_gwg", other)])
    values = np.array([1.0, -0.5, 0.0, -2.0])
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert (row["dataset"], row["method"], row["minus"], row["n"]) == (CUT.name, "sl_gwg", "path_auxiliary", 4)
    assert row["mean"] == pytest.approx(values.mean()) and row["ci95"] == pytest.approx([low, high])
    published = published_row(CUT.name, "sl_gwg").mean - published_row(CUT.name, "path_auxiliary").mean
    assert row["published"] == pytest.approx(published)
    rounding = 1e-3**2 / 12 * 2  # two numbers, each evenly spread over the last digit
    scatter = values.var(ddof=1)
    error = math.sqrt(scatter / 4 + scatter / CUT.published_n + rounding)
    assert row["z"] == pytest.approx((values.mean() - published) / error)
    apart = math.sqrt(scatter / 4 + (0.49**2 + 0.48**2) / CUT.published_n + rounding)
    assert row["z_apart"] == pytest.approx((values.mean() - published) / apart)


def test_a_common_factor_of_the_references_hardly_moves_a_difference():
    base, other = [190, 396, 99, 50], [192, 394, 99, 49]

    def mean(factor):
        scaled = [factor * value for value in REFERENCES]
        return difference_rows([cut("path_auxiliary", base, scaled), cut("gwg", other, scaled)])[0]["mean"]

    assert mean(1.02) == pytest.approx(mean(1.0) / 1.02)


def test_each_protocol_has_its_own_or_the_default_on_the_graphs_that_both_have():
    done = [cut("path_auxiliary", [190, 396, 99, 50]), cut("gwg", [188, 396, 98, 50])]
    done += [cut("gwg", [200, 400], protocol=HELD_OUT)]
    rows = difference_rows(done)
    assert [(row["method"], row["protocol"], row["against"], row["n"]) for row in rows] == [
        ("gwg", "defaults", "defaults", 4),
        ("gwg", HELD_OUT, "defaults", 2),
    ]
    assert rows[1]["mean"] == pytest.approx((5 + 1) / 2)
    tuned = difference_rows([*done, cut("path_auxiliary", [200, 400], protocol=HELD_OUT)])
    assert [row["against"] for row in tuned if row["protocol"] == HELD_OUT] == [HELD_OUT]
    assert tuned[-1]["mean"] == 0 and tuned[-1]["z"] is None and tuned[-1]["z_apart"] is not None


def test_without_a_reference_of_every_graph_there_is_no_difference():
    some = [200.0, None, 100.0, 50.0]
    done = [cut(method, [190, 396, 99, 50], some) for method in ("path_auxiliary", "gwg")]
    assert difference_rows(done) == []
    text = differences_text([], done)
    assert "no percentages: 1 of 4 graphs have no reference" in text and "| method" not in text
    mis = made_up("gwg", [60, 61])
    assert difference_rows([mis]) == [] and differences_text([], [mis]) == ""


def test_levels_have_a_z_only_beside_the_papers_own_references():
    row = published_row(CUT.name, "gwg")
    ours = cell_row(cut("gwg", [190, 396, 99, 50]), None, row)
    given = cell_row(cut("gwg", [190, 396, 99, 50], source="discs files"), None, row)
    assert ours["ours"] == given["ours"] and ours["ours"]["mean"] is not None
    assert ours["z"] is None and ours["reference_is_ours"]
    assert given["z"] is not None and not given["reference_is_ours"]


def test_a_finished_cell_takes_the_references_of_today(tmp_path):
    done = cut("gwg", [2, 2], [3.0, None])
    save_result(tmp_path, dataclasses.replace(done.result, identity=identity(done.cell, done.dataset)))
    improved = [dataclasses.replace(graph, reference=4.0) for graph in done.dataset.graphs]
    runner = Runner(tmp_path, lambda line: None, total=1)
    again = runner.run(done.cell, dataclasses.replace(done.dataset, graphs=improved))
    assert runner.ran == 0 and again.result.best.tolist() == [[2, 2]]
    assert done.result.references[0] == 3 and np.isnan(done.result.references[1])
    assert again.result.references.tolist() == [4, 4]


def mark_row(dataset, method, protocol, mean, ours=False):
    return {
        "dataset": dataset, "method": method, "protocol": protocol, "ours": {"mean": mean, "se": 0.1, "n": 8},
        "reference_is_ours": ours, "chain_length": 10_000,
    }  # fmt: skip


def test_marks():
    """They count only what was not chosen on the test graphs, and only where references are the same."""
    density, cuts = "mis/er_density/r-0.10", "maxcut/ba/r-ba-4-n-1024-1100"
    cells = [
        mark_row(density, "gwg", "defaults", MARKS[density] - 0.5),
        mark_row(density, "path_auxiliary", "held out", MARKS[density] - 0.05),
        mark_row(density, "sl_gwg", "as published", MARKS[density] + 5),
        mark_row(cuts, "gwg", "defaults", 99.5, ours=True),
        mark_row("maxclique/rb", "gwg", "defaults", MARKS["maxclique/rb"] - 0.2),
        mark_row("maxclique/twitter", "gwg", "defaults", 100.0),
        mark_row("mis/satlib", "gwg", "defaults", None),
    ]
    rows = {one["dataset"]: one for one in marks_rows(cells)}
    assert set(rows) == {density, cuts, "maxclique/rb"}
    assert rows[density]["method"] == "path_auxiliary" and rows[density]["reached"] is True
    assert rows["maxclique/rb"]["reached"] is False
    assert rows[cuts]["reached"] is None and rows[cuts]["distance"] == -0.5
    assert marks_text(list(rows.values())).count("\n| m") == 3 and not marks_text([])
