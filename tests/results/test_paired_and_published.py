"""Paired differences against their formulas, and the published numbers under this project's names."""

import dataclasses
import math

import numpy as np
import pytest

from sl_discs.errors import InputError
from sl_discs.experiment.published import published_name, published_row
from sl_discs.experiment.record import Spread, paired_differences, percent_of_reference


def test_a_spread_is_mean_population_std_and_sample_standard_error():
    values = [3.0, 5.0, 10.0]
    spread = Spread.of(np.array(values))
    squares = sum((value - 6.0) ** 2 for value in values)
    assert (spread.mean, spread.n) == (6.0, 3)
    assert spread.std == pytest.approx(math.sqrt(squares / 3))
    assert spread.se == pytest.approx(math.sqrt(squares / 2) / math.sqrt(3))
    assert Spread.of(np.array([4.0])) == Spread(4.0, 0.0, None, 1)


def test_pairs_are_taken_instance_by_instance(make_record):
    record = make_record(("sl_dmala", "gwg", "dmala", "sl_path_auxiliary"), num_instances=5)
    (key, spread), *others = paired_differences(record).items()
    assert (key, others) == ("sl_dmala - dmala", [])
    ours, theirs = (record.samplers[name].instances for name in ("sl_dmala", "dmala"))
    differences = [a.best - b.best for a, b in zip(ours, theirs, strict=True)]
    mean = sum(differences) / 5
    assert spread.mean == pytest.approx(mean)
    assert spread.se == pytest.approx(math.sqrt(sum((d - mean) ** 2 for d in differences) / 4 / 5))
    assert spread.n == 5


def test_percentage_points_need_every_reference(make_record):
    references = [100.0, 200.0, 100.0, 50.0]
    record = make_record(dataset="maxcut/ba/x", references=references)
    ours, theirs = (record.samplers[name].instances for name in ("sl_gwg", "gwg"))
    points = [100 * (a.best - b.best) / r for a, b, r in zip(ours, theirs, references, strict=True)]
    assert paired_differences(record, percent_of_reference)["sl_gwg - gwg"].mean == pytest.approx(np.mean(points))
    incomplete = make_record(dataset="maxcut/ba/x", references=[100.0, None, 100.0, 50.0])
    assert paired_differences(incomplete, percent_of_reference) == {}


def test_different_instances_are_refused(make_record):
    record = make_record()
    swapped = dataclasses.replace(record.samplers["gwg"], instances=record.samplers["gwg"].instances[::-1])
    record = dataclasses.replace(record, samplers=record.samplers | {"gwg": swapped})
    with pytest.raises(InputError, match="same ones, in the same order"):
        paired_differences(record)


def test_published_rows_by_our_names():
    assert published_row("mis/er_density/r-0.10", "sl_path_auxiliary") == (61.906, 0.88)
    assert published_row("mis/satlib", "gwg") == (419.063, 14.29)
    assert published_row("maxcut/ba/r-ba-4-n-1024-1100", "dmala") == (101.243, 0.39)
    assert published_row("mis/er_density/r-0.10", "gibbs") is None
    assert published_row("mis/elsewhere", "gwg") is None
    assert published_name("sl_gwg") == "SL-GWG"
