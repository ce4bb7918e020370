"""The printed summary: what it must say, and within which width."""

import dataclasses

from sl_discs.experiment.results import write_results
from sl_discs.experiment.summary import format_summary
from sl_discs.instances.graph import Graph

LONG = ("path_auxiliary", "sl_path_auxiliary", "a_sampler_of_a_long_name", "sl_a_sampler_of_a_long_name")


def line_with(text, *parts):
    lines = [line for line in text.splitlines() if all(part in line for part in parts)]
    assert lines, (parts, text)
    return lines[0]


def test_a_row_shows_the_run_and_the_published_numbers(make_record):
    record = make_record(num_instances=6)
    text = format_summary(record)
    row = line_with(text, "  sl_gwg ", "61.938 +- 0.93")
    assert f"{sum(i.best for i in record.samplers['sl_gwg'].instances) / 6:.3f} +-" in row
    assert "6/6" in line_with(text, "  sl_gwg ", "1,250,000")
    assert "set size" in text
    assert line_with(text, "sl_gwg - gwg").endswith("+0.188")
    assert line_with(text, "engine reference").endswith("cpu, 2 cores, engine reference")


def test_what_keeps_the_numbers_from_being_comparable_is_said(make_record):
    generated = format_summary(make_record(source="generated", chain_length=500))
    assert "other graphs of the same" in generated
    assert "500 steps a chain, the published ones 10,000" in generated
    same = format_summary(make_record(source="discs files", chain_length=10_000))
    assert "other graphs" not in same
    assert "not the same experiment" not in same


def test_samplers_that_do_not_localize_are_named_once(make_record):
    record = make_record(dataset="mis/mine")
    assert "last states" not in format_summary(record)
    record.samplers["sl_gwg"] = dataclasses.replace(record.samplers["sl_gwg"], final_is="last state (not localized)")
    assert format_summary(record).count("final samples of sl_gwg are the chains' last states") == 1


def test_weighted_sets_are_not_compared_with_the_published_sizes(make_record):
    """Weights of nodes that are all 1, or of a cut, are not counted."""
    published = {"mis": "mis/er_density/r-0.10", "maxcut": "maxcut/ba/r-ba-4-n-256-300"}
    for problem, weights, counted in (("mis", [2, 1], True), ("mis", [1, 1], False), ("maxcut", [2, 1], False)):
        graph = Graph.from_arrays("g", 2, [(0, 1)], node_weights=weights)
        record = make_record(dataset=published[problem])
        record = dataclasses.replace(record, dataset=dataclasses.replace(record.dataset, graphs=[graph]))
        assert ("published" in format_summary(record)) is not counted


def test_percentages_appear_when_every_instance_has_a_reference(make_record):
    dataset = "maxcut/ba/r-ba-4-n-256-300"
    text = format_summary(make_record(dataset=dataset, references=[61.0, 62.0, 63.0, 64.0]))
    assert "% of reference" in text
    assert "% points +- se" in text
    without = format_summary(make_record(dataset=dataset, references=[61.0, None, 63.0, 64.0]))
    assert "% points" not in without
    assert "no counterpart" in without


def test_saved_files_are_listed_and_lines_stay_within_a_hundred_columns(make_record, tmp_path):
    record = make_record(LONG, "maxcut/ba/r-ba-4-n-256-300", references=[5e4, 6e4, 7e4, 8e4], level=7.1e4)
    text = format_summary(record, write_results(record, tmp_path))
    assert f"saved in {tmp_path}:" in text and "results.json" in text
    assert max(len(line) for line in text.splitlines() if str(tmp_path) not in line) <= 100
    alone = format_summary(make_record(dataset="mis/mine", num_instances=1))
    assert "1 instance\n" in alone and "+- ?" in line_with(alone, "sl_gwg - gwg") and "published" not in alone
