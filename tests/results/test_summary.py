"""What a run says: pairs against their formulas, the summary and its width, the published numbers,
and the figure.
"""

import dataclasses
import math
import runpy
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from records import make_record
from shown import check_shown

from sl_discs.experiment import summary
from sl_discs.experiment.record import Spread, best_values, paired_differences, percent_of_reference
from sl_discs.experiment.results import write_results
from sl_discs.experiment.summary import format_summary, plot_trajectories, published_row
from sl_discs.instances.graph import Graph
from sl_discs.problems.kind import PENALTY
from sl_discs.samplers import registry
from sl_discs.samplers.path import GWG
from sl_discs.support.figures import new_figure


def test_a_spread_is_mean_population_std_and_sample_standard_error():
    spread = Spread.of(np.array([3.0, 5.0, 10.0]))
    assert (spread.mean, spread.n) == (6.0, 3)
    assert spread.std == pytest.approx(math.sqrt(26 / 3))
    assert spread.se == pytest.approx(math.sqrt(26 / 2 / 3))
    assert Spread.of(np.array([4.0])) == Spread(4.0, 0.0, None, 1)


def test_pairs_are_taken_instance_by_instance():
    record = make_record(("sl_dmala", "gwg", "dmala", "sl_path_auxiliary"), num_instances=5)
    [(pair, spread)] = paired_differences(record).items()
    ours, theirs = (record.samplers[name].instances for name in pair)
    differences = np.array([a.best - b.best for a, b in zip(ours, theirs, strict=True)])
    assert pair == ("sl_dmala", "dmala") and spread.n == 5
    assert spread.mean == pytest.approx(differences.mean())
    assert spread.se == pytest.approx(differences.std(ddof=1) / math.sqrt(5))


def test_percentage_points_need_every_reference():
    references = [100.0, 200.0, 100.0, 50.0]
    record = make_record(dataset="maxcut/ba/x", references=references)
    ours, theirs = (record.samplers[name].instances for name in ("sl_gwg", "gwg"))
    points = [100 * (a.best - b.best) / r for a, b, r in zip(ours, theirs, references, strict=True)]
    assert paired_differences(record, percent_of_reference)["sl_gwg", "gwg"].mean == pytest.approx(
        np.mean(points)
    )
    incomplete = make_record(dataset="maxcut/ba/x", references=[100.0, None, 100.0, 50.0])
    assert paired_differences(incomplete, percent_of_reference) == {}


def test_published_rows_by_our_names():
    assert published_row("mis/er_density/r-0.10", "sl_path_auxiliary") == (61.906, 0.88)
    assert published_row("maxcut/ba/r-ba-4-n-1024-1100", "dmala") == (101.243, 0.39)
    assert published_row("mis/er_density/r-0.10", "gibbs") is None
    assert published_row("mis/elsewhere", "gwg") is None
    assert published_row("mis/er_density/r-0.10", "sl_gwg", "K=256") == (61.41, 0.82)
    assert published_row("mis/er_density/r-0.10", "sl_path_auxiliary", "K=1") is None


ROOT = Path(__file__).parents[2]
NUMBERS = ("61.750", "61.938")  # published means of gwg and sl_gwg


def published_record(samplers=None, experiment=None, of_set=None, **changes):
    """A run that is the paper's experiment, but for changes."""
    paper = {"num_instances": 8, "chain_length": 10_000, "source": "discs files"}
    record = make_record(**paper | changes)
    record.config["samplers"]["sl_gwg"] |= samplers or {}
    record.config["experiment"] = record.config["experiment"] | (experiment or {})
    return dataclasses.replace(record, dataset=dataclasses.replace(record.dataset, **of_set or {}))


def weighted(weights):
    return {"graphs": [Graph.from_arrays("g", 2, [(0, 1)], node_weights=weights)]}


def not_localized():
    record = published_record()
    last = dataclasses.replace(record.samplers["sl_gwg"], final_is="last state (not localized)")
    record.samplers["sl_gwg"] = last
    return record


CUT = {"dataset": "maxcut/ba/r-ba-4-n-256-300"}
CUTS = {"dataset": "maxcut/er/r-er-0.15-n-256-300", "references": [60.0, None] * 4}
PART = {"dataset": "mis/satlib", "of_set": {"total": 500}}
# Records, and which of the published numbers stand beside them.
SUMMARIES = {
    "the published experiment": (published_record(), NUMBERS),
    "other graphs of the same law": (published_record(source="generated"), NUMBERS),
    "last states": (not_localized(), NUMBERS),
    "weights of 1": (published_record(of_set=weighted([1, 1])), NUMBERS),
    "weighted sets": (published_record(of_set=weighted([2, 1])), ()),
    "short chains": (published_record(chain_length=500), ()),
    "few graphs": (published_record(num_instances=2), ()),
    "a part of the set": (published_record(**PART), ()),
    "cuts without references": (published_record(**CUTS), ()),
    "other settings": (published_record(samplers={"sigma": 1.0, "K": 64}), NUMBERS[:1]),
    "another annealing": (published_record(experiment={"decay_rate": 0.1}), ()),
    "cuts": (make_record(**CUT, references=[61.0, 62.0, 63.0, 64.0]), ()),
    "a cut without its reference": (make_record(**CUT, references=[61.0, None, 63.0, 64.0]), ()),
    "one instance": (make_record(dataset="mis/mine", num_instances=1), ()),
}


def test_summaries_are_those_that_were_read():
    """The published numbers stand beside the same experiment alone."""
    texts = {name: format_summary(record) for name, (record, _) in SUMMARIES.items()}
    check_shown(Path(__file__).with_name("summaries.txt"), texts)
    for name, (record, numbers) in SUMMARIES.items():
        assert tuple(one for one in NUMBERS if one in texts[name]) == numbers, name
        means = [f"{best_values(one).mean():.3f}" for one in record.samplers.values()]
        assert all(f"{mean} +-" in texts[name] for mean in means)


def test_the_published_settings_are_those_of_the_configs():
    for family, fields in summary.published_tables()["settings"].items():
        module = runpy.run_path(ROOT / "configs" / "experiment" / f"{family}.py")
        config = module["get_config"]().experiment
        assert {name: config.get(name, PENALTY) for name in fields} == fields


@pytest.mark.usefixtures("own_samplers")
def test_saved_files_are_listed_and_lines_stay_within_a_hundred_columns(tmp_path):
    registry.register_sampler("a_sampler_of_a_long_name", GWG)
    long = "path_auxiliary", "a_sampler_of_a_long_name"
    names = [f"{prefix}{name}" for name in long for prefix in ("", "sl_")]
    record = make_record(names, **CUT, references=[5e4, 6e4, 7e4, 8e4], level=7.1e4)
    text = format_summary(record, write_results(record, tmp_path))
    assert f"saved in {tmp_path}:" in text and "results.json" in text
    assert max(len(line) for line in text.splitlines() if str(tmp_path) not in line) <= 100


@pytest.mark.parametrize(
    "arguments",
    [
        {"names": ("gwg",), "num_instances": 1, "num_logged": 1},
        {"dataset": "maxcut/ba/r-ba-4-n-256-300", "references": [60.0, 61.0, 62.0, 63.0]},
    ],
)
def test_a_png_with_content(tmp_path, arguments):
    imread = pytest.importorskip("matplotlib.image").imread
    path = plot_trajectories(make_record(**arguments), tmp_path / "trajectory.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    pixels = imread(path)[..., :3]
    ink = (pixels.min(axis=2) < 0.9).mean()
    assert 0.005 < ink < 0.5
    assert (pixels.max(axis=2) - pixels.min(axis=2) > 0.3).any()
    assert list(tmp_path.iterdir()) == [path]


def test_names_are_not_tex():
    """In titles, legends, labels of ticks; and a logarithmic axis still has numbers."""
    pytest.importorskip("matplotlib")
    name = r"$\frac$ of $ {"

    def paint(figure):
        axes = figure.subplots()
        axes.plot([1, 2], [1e-4, 1.0], label=name)
        axes.set(title=name, xlabel=name, yscale="log")
        axes.set_xticks([1, 2], [name, name])
        axes.legend()

    figure = new_figure((4, 3), paint)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == [name, name]
    assert any("1e" in label.get_text() for label in axes.get_yticklabels())
    assert not any("$" in label.get_text() for label in axes.get_yticklabels(which="both"))


def test_the_panel_shows_what_the_table_shows():
    """A sampler that never leaves its penalties has a running best below 0, and a verified set all
    the same.
    """
    pytest.importorskip("matplotlib")
    record = make_record(("gwg",), num_instances=3)
    [(name, sampler)] = record.samplers.items()
    sampler = dataclasses.replace(sampler, trajectory=sampler.trajectory - 1_000)
    record = dataclasses.replace(record, samplers={name: sampler})
    drawn = []
    with mock.patch.object(
        summary,
        "save_figure",
        lambda path, size, paint: drawn.append(new_figure(size, paint)) or path,
    ):
        plot_trajectories(record, Path("trajectory.png"))
    axes = drawn[0].axes[0]
    best = np.mean([instance.best for instance in sampler.instances])
    assert any(line.get_ydata()[-1] == pytest.approx(best) for line in axes.lines)
    assert 0 < axes.get_ylim()[0] < best < axes.get_ylim()[1]
    assert "less penalties" in axes.get_ylabel()
