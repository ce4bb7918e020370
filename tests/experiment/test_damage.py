"""A file that is damaged, in any way, is refused by name, or is not used and made anew.

Checkpoints are in test_checkpoint.py, sweeps in tests/sweeps.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from damage import DAMAGES
from records import make_record
from test_parts import a_record, kind

import sl_discs
from sl_discs.experiment.parts import Part
from sl_discs.experiment.results import read_results, write_results
from sl_discs.instances.archive import read_archive, write_archive
from sl_discs.instances.dataset import load_dataset
from sl_discs.instances.graph import Graph
from sl_discs.reproduction.runs import CellResult, load_result, save_result
from sl_discs.support.errors import InputError

RECORDS = kind() | {"samplers": {"gwg": {}}}
CELL = {"sampler": {"name": "gwg"}, "dataset": "mis/a"}
PROBLEM = sl_discs.ising({"a": 0.3, "b": 0.0}, {("a", "b"): 1.0})


class Store(NamedTuple):
    """Writes a file into a folder and returns its path; reads it, and what it then has."""

    write: Callable[[Path], Path]
    read: Callable[[Path], object]


def part(folder):
    Part(1, 2).keep_records(folder, RECORDS, {"gwg": a_record(2)})
    return Part(1, 2).folder(folder) / "records.npz"


def cached(path):
    load_dataset("maxcut", "optsicom", "_", cache_dir=path)
    [found] = path.iterdir()
    return found


def cell(folder):
    return save_result(folder, CellResult(np.array([[41.0, 40.0]]), 1.0, 2.0, {}, CELL))


def archive(folder):
    write_archive(folder / "a.npz", [Graph.from_arrays("g", 3, [(0, 1)])])
    return folder / "a.npz"


REFUSED = {
    "records of a part": Store(
        part,
        lambda path: Part(1, 2).records(path.parents[2], RECORDS)[0]["gwg"].trajectory.tolist(),
    ),
    "results": Store(
        lambda folder: write_results(make_record(), folder)["results.json"],
        lambda path: read_results(path).samplers["gwg"].best,
    ),
    "draws": Store(
        lambda folder: sl_discs.sample(PROBLEM, draws=8).save(folder / "draws.npz"),
        lambda path: sl_discs.Samples.load(path).states.tolist(),
    ),
    "a result": Store(
        lambda folder: sl_discs.solve(PROBLEM).save(folder / "result.npz"),
        lambda path: sl_discs.Result.load(path).best_value,
    ),
    "an archive": Store(archive, lambda path: read_archive(path)[0].name),
}
MADE_ANEW = {
    "graphs in the cache": Store(
        cached, lambda path: load_dataset("maxcut", "optsicom", "_", cache_dir=path.parent).digest()
    )
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("store", REFUSED)
def test_it_is_refused_by_name(store, damage, tmp_path):
    write, read = REFUSED[store]
    path = write(tmp_path)
    before = read(path)
    DAMAGES[damage](path)
    try:
        after = read(path)
    except InputError as refused:
        said = str(refused)
        assert said.startswith(str(tmp_path)) and path.parent.name in said and "\n" not in said
    else:  # the byte that was changed is one that nobody reads
        assert damage == "flipped" and after == before


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("store", MADE_ANEW)
def test_it_is_made_anew(store, damage, tmp_path):
    write, read = MADE_ANEW[store]
    path = write(tmp_path)
    before = read(path)
    DAMAGES[damage](path)
    assert read(path) == before


@pytest.mark.parametrize("damage", [*DAMAGES, "another number"])
def test_a_cell_that_was_changed_does_not_count(damage, tmp_path, capfd):
    path = cell(tmp_path)
    assert load_result(tmp_path, CELL).best.tolist() == [[41.0, 40.0]]
    if damage == "another number":
        path.write_text(path.read_text().replace("41.0", "47.0"))
    else:
        DAMAGES[damage](path)
    assert load_result(tmp_path, CELL) is None
    assert capfd.readouterr().err.startswith(f"warning: {path} is not used")


GWG = {"instances": [{"name": "a", "best": 1.0}], "mean": 1.0, "std": 0.0, "chain_steps_per_s": 2.0}


def results(**fields):
    return json.dumps({"engine": "cpu", "versions": {}, "samplers": {"gwg": GWG | fields}})


@pytest.mark.parametrize(
    "content",
    [
        '{"engine": "cpu", "samplers": {}}',
        results().replace('"cpu"', "3"),
        results().replace("versions", "version"),
        results(instances=[]),
        results(instances=[{"name": "a", "best": 1.0}, {"name": "a", "best": 1.0}]),
        results(instances=[{"name": "a", "best": None}]),
        results(instances=[{"name": "a", "best": "1"}]),
        results(instances=[{"name": "a", "best": [1] * 500}]),
        results(instances=3),
        results(chain_steps_per_s=None),
    ],
)
def test_results_that_contradict_themselves_are_refused(content, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(InputError) as refused:
        read_results(path)
    assert str(refused.value).startswith(f"{path}: damaged") and len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "changes",
    [
        {"bits": lambda bits: bits[:, :, :0]},
        {"group_values": lambda values: values[:, 1:]},
        {"labels": lambda labels: labels[1:]},
        {"temperature": "hot"},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_draws_that_contradict_each_other_are_refused(changes, tmp_path, edited):
    path = sl_discs.sample(PROBLEM, draws=80).save(tmp_path / "draws.npz")
    with pytest.raises(InputError) as refused:
        sl_discs.Samples.load(edited(path, changes))
    assert str(refused.value).startswith(f"{path}: ") and "\n" not in str(refused.value)
