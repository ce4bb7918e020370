"""The report beside the published numbers: its figures, cells that are kept, and the command as a
whole.
"""

import dataclasses
import json
import math
import shlex
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from programs import python
from scipy import stats
from shown import check_shown

from sl_discs.experiment import summary as summary_module
from sl_discs.experiment.record import Spread, paired
from sl_discs.experiment.summary import PublishedRow, published_row
from sl_discs.instances.archive import write_archive
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.reproduction import cells as cells_module
from sl_discs.reproduction.cells import (
    ABLATION,
    DEFAULTS,
    HELD_OUT,
    LEFT_TO_TRAINING,
    LEVEL,
    METHODS,
    NO_TILT,
    PUBLISHED,
    Choice,
    ablation_cells,
    chosen_methods,
    chosen_sets,
    main_cells,
    reading_cells,
)
from sl_discs.reproduction.report import (
    in_published_unit,
    level_rows,
    levels_table,
    main_table,
    rows_of,
    summary,
    write_report,
    z_score,
)
from sl_discs.reproduction.runs import CellResult, Done, Runner, identity, path_of
from sl_discs.support.errors import InputError
from sl_discs.support.locks import FolderInUse, only_run_in

ROOT = Path(__file__).parents[2]
MIS = PUBLISHED["mis/er_density/r-0.10"]
CUT = PUBLISHED["maxcut/er/r-er-0.15-n-256-300"]
CHOICE = Choice(chain_length=60, batch_size=4, engine="cpu", seeds=(0, 1))


def dataset_of(graphs, name=MIS.name, index=None):
    return Dataset(
        name, name.partition("/")[0], "generated", "", graphs, index or list(range(len(graphs))), 32
    )


def small_dataset():
    drawn = [nx.gnp_random_graph(12, 0.3, seed=seed) for seed in range(3)]
    return dataset_of(
        [Graph.from_arrays(f"g{k}", 12, np.array(graph.edges)) for k, graph in enumerate(drawn)]
    )


@pytest.fixture(autouse=True)
def few_graphs_are_enough(monkeypatch):
    """For short lists of values; `test_what_is_not_the_same_experiment_is_not_compared` sets the
    true number.
    """
    monkeypatch.setattr(summary_module, "FEWEST", 3)


def made_up(
    method, best, references=None, *, published=MIS, steps=10_000, chains=None, rate=1e6, protocol=DEFAULTS,
    setting="",
):  # fmt: skip
    """A cell that was not run, on paths of three nodes; `best` has a value of each graph, or of
    seeds and graphs.
    """
    best = np.atleast_2d(np.array(best, np.float64))
    known = references or [None] * best.shape[1]
    graphs = [
        Graph.from_arrays(f"g{k}", 3, [[0, 1], [1, 2]], reference=one)
        for k, one in enumerate(known)
    ]
    cell = Choice(steps, chains, "cpu", tuple(range(len(best)))).cell(
        published, method, setting=setting
    )
    result = CellResult(best, 2.0, rate, {"source": "made up"}, {})
    return Done(
        dataclasses.replace(cell, protocol=protocol), dataset_of(graphs, published.name), result
    )


def rows(*done):
    return rows_of(list(done), None)


def test_every_published_cell_can_be_planned():
    methods, full = list(METHODS), Choice(None, None, "auto", (0,))
    for published in PUBLISHED.values():
        for cell in main_cells(full, published, methods, held_out=False):
            assert published_row(published.name, cell.method) is not None
            assert cell.settings.chain_length == 10_000 and cell.settings.batch_size in (16, 32)
    gwg, _, pas, sl_pas, *_ = main_cells(full, MIS, methods, held_out=False)
    assert gwg.build().sampler.adaptive and pas.build().sampler.adaptive  # as the paper has them
    assert sl_pas.sampler["K"] == 256
    ablation, left_out = ablation_cells(full, MIS, methods)
    assert len(ablation) == 39 and not left_out
    assert {cell.setting for cell in ablation} == set(ABLATION)
    published = [published_row(MIS.name, cell.method, cell.setting) for cell in ablation]
    assert sum(row is not None for row in published) == 27


def of_readings():
    cells = (
        ("gwg", DEFAULTS, [60, 62, 61]),
        ("sl_gwg", LEVEL, [62, 62, 61]),
        ("sl_gwg", NO_TILT, [61, 63, 60]),
    )
    return rows(*(made_up(method, best, protocol=protocol) for method, protocol, best in cells))


def test_the_reading_with_an_annealing_in_each_level_stands_beside_the_same_without_tilt():
    planned = reading_cells(Choice(None, None, "cpu", (0,)), MIS, ["gwg", "sl_gwg"])
    assert [cell.protocol for cell in planned] == [DEFAULTS, LEVEL, NO_TILT]
    base, level, without = (cell.sampler for cell in planned)
    assert level | {"tilt": False} == without and "anneal" not in base
    wanted = {"anneal": "level", "K": 512, "sigma": 15.0, "tilt": True}
    assert {name: level[name] for name in wanted} == wanted
    of_60_steps = reading_cells(CHOICE, MIS, ["sl_gwg"])
    assert [cell.sampler["K"] for cell in of_60_steps] == [15, 15]
    assert "--sampler_config.anneal=level" in planned[1].command(None, small_dataset())
    found = of_readings()
    gains = [row["gain"] and row["gain"]["mean"] for row in found]
    assert gains == [None, pytest.approx(2 / 3), pytest.approx(1 / 3)]


def test_what_does_not_fit_a_short_chain_is_left_out_with_its_reason():
    cells, left_out = ablation_cells(Choice(500, 4, "reference", (0,)), MIS, ["gwg", "sl_gwg"])
    assert [cell.setting for cell in cells] == [
        name for name in ABLATION if not name.startswith("K=")
    ]
    assert len(left_out) == 3 and "sampler_config.n_min = 1024 * 4" in left_out[-1]
    assert cells[0].sampler["K"] == 125


def test_z_and_interval_are_those_of_a_direct_computation():
    values = np.array([60.0, 63.0, 61.5, 62.0])
    direct = (values.mean() - 61.75) / math.sqrt(values.var(ddof=1) / 4 + 0.94**2 / 32)
    assert z_score(Spread.of(values), PublishedRow(61.75, 0.94), 32) == pytest.approx(direct)
    exact = Spread.of(np.array([100.0, 100.0]))
    assert z_score(exact, PublishedRow(100.0, 0.0), 10) == 0.0
    assert z_score(exact, PublishedRow(99.0, 0.0), 10) is None
    assert z_score(Spread.of(values[:1]), PublishedRow(61.75, 0.94), 32) is None
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    found = paired(values, np.zeros(4))
    assert found.interval() == {"mean": values.mean(), "ci95": pytest.approx([low, high]), "n": 4}
    assert Spread.of(values[:1]).interval() == {"mean": 60.0, "ci95": None, "n": 1}
    assert in_published_unit(made_up("gwg", [5.0, 5.0], [10.0, None], published=CUT)) is None


def test_gains_are_of_pairs_on_the_same_graphs_and_seeds():
    base, localized = [[60, 62, 61], [61, 62, 60]], [[62, 62, 61], [62, 63, 60]]
    pair = made_up("gwg", base, rate=2e6), made_up("sl_gwg", localized, rate=1.6e6)
    alone, row, other = rows(*pair, made_up("dmala", base))
    differences = (np.array(localized) - np.array(base)).mean(axis=0)
    low, high = stats.t.interval(0.95, 2, loc=differences.mean(), scale=stats.sem(differences))
    expected = {"mean": differences.mean(), "n": 3, "unit": "set size", "published": 61.938 - 61.75}
    assert {name: row["gain"][name] for name in expected} == pytest.approx(expected)
    assert row["gain"]["ci95"] == pytest.approx([low, high])
    assert alone["gain"] is other["gain"] is alone["sl_over_base"] is None
    tuned = [made_up(name, localized, protocol=HELD_OUT) for name in ("gwg", "sl_gwg")]
    means = {row["protocol"]: row["gain"]["mean"] for row in rows(*pair, *tuned) if row["gain"]}
    assert means == pytest.approx({DEFAULTS: differences.mean(), HELD_OUT: 0.0})
    assert row["sl_over_base"] == pytest.approx(1.25)
    assert row["published_sl_over_base"] == pytest.approx(40.556 / 37.743)


def test_cuts_without_a_reference_have_no_percentage_but_gains():
    cells = ("gwg", [90, 200, 99]), ("sl_gwg", [100, 190, 99])
    row, localized = rows(*(made_up(*cell, published=CUT) for cell in cells))
    assert row["ours"] == {"mean": None, "std": None, "se": None} and row["z"] is None
    assert row["ours_absolute"]["mean"] == pytest.approx(389 / 3)
    gain = localized["gain"]
    assert gain["mean"] == pytest.approx(np.mean([10.0, -5.0, 0.0]))
    assert gain["unit"] == "% of the better one"
    row, localized = rows(*(made_up(*cell, [100, 200, 90], published=CUT) for cell in cells))
    assert row["ours"]["mean"] == pytest.approx(np.mean([90.0, 100.0, 110.0]))
    assert row["z"] is not None
    assert localized["gain"]["unit"] == "% of reference"


LEVELS = [
    {"method": "gwg", "chain_length": 10_000, "dataset": name, "z": z}
    for name, z in (("a", 1.0), ("b", -3.0), ("c", 0.0), ("d", None))
]


def test_levels_are_pooled_by_method():
    [found] = level_rows(LEVELS)
    pooled = pytest.approx(-2 / 2**0.5)
    wanted = {"method": "gwg", "sets": 3, "within": 2, "far": {"b": -3.0}, "pooled_z": pooled}
    assert found == wanted and level_rows(LEVELS[3:]) == [] and levels_table([]) == ""


MANY = [[55, 56, 54] * 3]
OTHER_EXPERIMENTS = {
    "chain_length=1100, not 10000": {"steps": 1_100},
    "batch_size=8, not 32": {"chains": 8},
    "3 instances, fewer than 8": {"best": [[55, 56, 54]]},
}


@pytest.mark.parametrize("reason", ["", *OTHER_EXPERIMENTS])
def test_what_is_not_the_same_experiment_is_not_compared(monkeypatch, reason):
    """Words, table and figure have the paper's numbers of the same rows."""
    monkeypatch.setattr(summary_module, "FEWEST", 8)
    changes = {"best": MANY} | OTHER_EXPERIMENTS.get(reason, {})
    found = rows(*(made_up(name, **changes) for name in ("gwg", "sl_gwg")))
    for row in found:
        assert row["not_compared"] == reason
        published = row["z"], row["published"]["mean"], row["published_s"]
        assert all(one is None for one in published) == bool(reason)
    assert (found[1]["gain"]["published"] is None) == bool(reason)
    assert ("61.750" in main_table(found)) == (not reason)


def test_reports_are_those_that_were_read():
    found = rows(made_up("gwg", [[55, 56, 54]]), made_up("sl_gwg", [[61, 62, 61]]))
    short = rows(*(made_up(name, MANY, steps=1_100) for name in ("gwg", "sl_gwg")))
    texts = {
        "what stands out": "\n".join(summary(found)),
        "the main table": main_table(found),
        "short chains": "\n".join([*summary(short), main_table(short)]),
        "readings": "\n".join([*summary(of_readings()), main_table(of_readings())]),
        "levels, pooled": levels_table(LEVELS, pooled=True),
        "levels of few graphs": levels_table(LEVELS),
    }
    check_shown(Path(__file__).with_name("reports.txt"), texts)


def test_a_setting_is_compared_with_the_defaults_graph_by_graph():
    done = [
        made_up("sl_gwg", [best], setting=one)
        for one, best in (("GEOM(2,1)", [60, 62]), ("sigma=1", [57, 61]))
    ]
    unchanged, changed = (row["change"] for row in rows(*done))
    assert unchanged == {"mean": 0, "se": 0, "published": 0}
    # Differences of -3 and -1 in per cent of 61.
    assert (changed["mean"], changed["se"]) == pytest.approx((-200 / 61, 100 / 61))
    assert changed["published"] == pytest.approx(100 * (61.47 / 61.94 - 1))
    assert rows(done[1])[0]["change"] is None


def test_a_report(tmp_path):
    done = [
        made_up("sl_gwg", [[60, 61, 62]], setting="K=256"),
        made_up("sl_dmala", [[50, 51, 52]], setting="K=512"),
    ]
    measured = {"command": "c", "commit": "1", "date": "2026-01-01"}
    text, numbers = write_report(tmp_path, "ablation", rows(*done), ["why not"], measured)
    shown = text.read_text()
    parts = ("| 61.410 ± 0.82 | 61.000 ± 0.82 |", "- left out: why not", "commit 1.")
    assert all(part in shown for part in parts)
    report = json.loads(numbers.read_text())
    assert len(report["cells"]) == 2 and report["levels"] == [] and report["measured"] == measured


def test_a_cell_is_kept_and_another_setting_runs_again(tmp_path):
    said = []

    def run(choice):
        runner = Runner(tmp_path, said.append, total=1)
        done = runner.run(choice.cell(MIS, "gwg"), small_dataset())
        return runner.ran, done.result

    (ran, first), (again, kept) = run(CHOICE), run(CHOICE)
    assert (ran, again) == (1, 0) and "there already" in said[-1] and first.best.shape == (2, 3)
    assert_same(first, kept)
    assert run(dataclasses.replace(CHOICE, chain_length=50))[0] == 1
    assert run(CHOICE)[0] == 0 and len(list(tmp_path.rglob("*.json"))) == 2


def test_a_cell_that_another_process_runs_is_left_to_it(tmp_path):
    cell, dataset = CHOICE.cell(MIS, "gwg"), small_dataset()
    runner = Runner(tmp_path, lambda line: None, total=1)
    (tmp_path / "locks").mkdir()
    lock = f"{path_of(tmp_path, identity(cell, dataset)).stem}.lock"
    with only_run_in(tmp_path / "locks", lock), pytest.raises(FolderInUse):
        runner.run(cell, dataset)
    assert (runner.done, runner.ran) == (0, 0)
    runner.run(cell, dataset)
    assert (runner.done, runner.ran) == (1, 1)


def assert_same(result, kept):
    for field in dataclasses.fields(CellResult):
        np.testing.assert_array_equal(getattr(result, field.name), getattr(kept, field.name))


def test_a_cell_is_named_by_all_that_its_numbers_depend_on(tmp_path):
    """A new setting either belongs here, and makes old cells other cells, or among those without
    effect.
    """
    dataset, cell = small_dataset(), CHOICE.cell(MIS, "sl_gwg")
    renamed = dataclasses.replace(dataset.graphs[0], name=dataset.graphs[2].name)
    contents = [
        identity(cell, dataset),
        identity(cell, dataset_of(dataset.graphs[:2])),
        identity(cell, dataset_of([*dataset.graphs[:2], renamed])),
        identity(CHOICE.cell(MIS, "sl_gwg", changes={"sigma": 5.0}), dataset),
        identity(dataclasses.replace(CHOICE, seeds=(0,)).cell(MIS, "sl_gwg"), dataset),
        identity(dataclasses.replace(CHOICE, batch_size=8).cell(MIS, "sl_gwg"), dataset),
    ]
    assert len({path_of(tmp_path, content) for content in contents}) == len(contents)
    assert identity(CHOICE.cell(MIS, "sl_gwg", setting="sigma=10"), dataset) == contents[0]
    assert set(contents[0]["settings"]) == {
        "anneal_every", "batch_size", "chain_length", "data_seed", "decay_rate", "engine", "final_temperature",
        "init_temperature", "log_every_steps", "t_schedule",
    }  # fmt: skip


def test_tuned_settings_make_the_second_protocol(tmp_path, monkeypatch):
    MIS.experiment()  # read once, from where it is
    monkeypatch.setattr(cells_module, "CONFIGS", tmp_path)
    annealing = {
        "t_schedule": "exp_decay",
        "init_temperature": 0.4,
        "final_temperature": 0.1,
        "decay_rate": 0.25,
    }
    content = {
        "sampler": {"name": "sl_gwg", "sigma": 4.0},
        "experiment": annealing,
        "search": {"trials": 3},
    }
    path = tmp_path / "sampler" / "tuned" / MIS.name / "sl_gwg.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))
    cells = main_cells(CHOICE, MIS, ["gwg", "sl_gwg"], held_out=True)
    assert [cell.protocol for cell in cells] == [DEFAULTS, DEFAULTS, HELD_OUT]
    assert cells[2].sampler["sigma"] == 4.0 and cells[2].settings.init_temperature == 0.4
    command = cells[2].command(None, dataset_of([None] * 3, index=[0, 2, 4])).split()
    assert {
        "--config.experiment.init_temperature=0.4", "--sampler_config.sigma=4.0",
        "--config.experiment.num_instances=3", "--config.experiment.instance_stride=2",
    } <= set(command)  # fmt: skip
    for sampler in (content["sampler"] | {"sigm": 4.0}, 3):
        path.write_text(json.dumps(content | {"sampler": sampler}))
        with pytest.raises(InputError):
            main_cells(CHOICE, MIS, ["sl_gwg"], held_out=True)


def test_graphs_that_settings_are_trained_on_are_not_tested_on(tmp_path):
    graphs = [Graph.from_arrays(f"g{k}", 3, [[0, 1]]) for k in range(20)]
    write_archive(tmp_path / "mis_satlib.npz", graphs)
    satlib = PUBLISHED["mis/satlib"]
    whole = satlib.load(str(tmp_path), None)
    assert whole.index == list(range(20))
    assert satlib.held_out(whole).index == list(range(20 - LEFT_TO_TRAINING))
    assert satlib.load(str(tmp_path), 5).index == [0, 4, 8, 12, 16]  # spread over the set
    assert satlib.held_out(satlib.load(str(tmp_path), 5)).index == [0]
    twenty = dataset_of(graphs)
    assert MIS.held_out(twenty) is twenty  # trained on draws of another seed


def test_names_are_chosen_once():
    assert chosen_sets([MIS.name, MIS.name]) == [MIS] and chosen_methods(["PAS", "SL-PAS", "path_auxiliary"]) == [
        "path_auxiliary", "sl_path_auxiliary"
    ]  # fmt: skip
    assert "it is not random" in PUBLISHED["mis/satlib"].absent(None)
    assert "does not have it" in PUBLISHED["mis/satlib"].absent(str(ROOT))
    assert cells_module.OTHERS["mis/ertest/r-800"].absent(None) is None


@pytest.mark.slow
def test_the_command_and_the_command_that_it_prints(tmp_path):
    def run(arguments, folder):
        words = ["-m", "sl_discs", *arguments]
        return python(*words, cwd=folder, SL_DISCS_CACHE=str(tmp_path)).stdout

    size = (
        "--instances=2",
        "--steps=100",
        "--chains=4",
        "--engine=reference",
        f"--output={tmp_path / 'out'}",
    )
    what = "--datasets=maxcut/optsicom/r-b,maxclique/twitter", "--methods=gwg,sl_gwg"
    said = run(["reproduce", "main", *size, *what], tmp_path)
    assert "left out: maxclique/twitter: it is not random" in said and "2 of 2 cells run" in said
    row, other = json.loads((tmp_path / "out" / "main.json").read_text())["cells"]
    assert {"dataset", "method", "published", "ours", "z", "run_s", "command"} <= set(row)
    assert {"mean", "ci95", "n", "published"} <= set(other["gain"]) and row["gain"] is None
    assert (
        "| maxcut/optsicom/r-b | sl_gwg | defaults | 2 |"
        in (tmp_path / "out" / "main.md").read_text()
    )
    program, *arguments = shlex.split(other["command"])
    assert program == "sl-discs"
    run([*arguments, f"--config.experiment.save_root={tmp_path / 'alone'}"], ROOT)
    saved = json.loads((tmp_path / "alone" / "results.json").read_text())
    assert saved["samplers"]["sl_gwg"]["mean"] == other["ours_absolute"]["mean"]
