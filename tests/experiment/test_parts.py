"""One run in several parts: the results of a whole one, whatever order they end in."""

import dataclasses
import functools
import json
import shutil

import numpy as np
import pytest
from test_checkpoint import digests
from test_run import random_dataset

import sl_discs
from sl_discs.experiment.parts import Part, join_records
from sl_discs.experiment.record import SECONDS, InstanceRecord, SamplerRecord
from sl_discs.instances.archive import write_archive
from sl_discs.support.errors import InputError


def test_shares_are_a_fair_division():
    for count, instances in ((1, 5), (3, 7), (4, 4), (64, 1000)):
        shares = [part.share(instances) for part in Part(1, count).all()]
        assert [k for share in shares for k in share] == list(range(instances))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    with pytest.raises(InputError):
        Part(1, 5).share(4)
    assert Part.parse("2/3") == Part(2, 3) and Part.parse("1/1") == Part()
    for text in ("", "3", "0/2", "3/2", "1/2/3", "-1/2"):
        with pytest.raises(InputError):
            Part.parse(text)


def test_processes_that_would_all_do_the_same_are_refused(monkeypatch):
    monkeypatch.setattr("jax.process_count", lambda: 2)
    with pytest.raises(InputError):
        sl_discs.run("gwg", name="mis", graph_type="er_density", cfg_str="r-0.10", num_instances=1)


def kind(seed=0, index=(0, 1), devices=0):
    return {
        "experiment": {"seed": seed, "use_devices": devices, "chain_length": 4, "log_every_steps": 2},
        "model": {}, "samplers": {}, "engines": {},
        "versions": {}, "graphs": {"name": "mis/small", "index": list(index)}, "devices": len(index),
    }  # fmt: skip


def test_only_parts_of_the_same_run_are_joined(tmp_path):
    part, other = Part(1, 2), Part(2, 2)
    part.keep_records(tmp_path, kind(), {})
    for one, own in (part, kind()), (other, kind(index=(2,), devices=2)):
        assert one.records(tmp_path, own) == [{}, None]
    with pytest.raises(InputError):
        Part(2, 2).records(tmp_path, kind(seed=1, index=(2,)))
    with pytest.raises(InputError):
        part.records(tmp_path, kind(index=(0, 2)))


def a_record(num_instances, num_logged=2):
    instances = [
        InstanceRecord(f"g{g}", 1.0, 1.0, 1.0, True, None, np.zeros(3, np.int8))
        for g in range(num_instances)
    ]
    return SamplerRecord(
        instances,
        *np.zeros((3, num_logged, num_instances)),
        np.zeros(num_logged),
        chain_steps_per_s=1.0,
        **dict.fromkeys(SECONDS, 1.0),
    )


def test_seconds_of_parallel_parts_are_those_of_the_slowest():
    """Every number of a record but the rate is one of seconds."""
    numbers = [field.name for field in dataclasses.fields(SamplerRecord) if field.type == "float"]
    assert set(numbers) == {"chain_steps_per_s", *SECONDS}
    slow = dataclasses.replace(a_record(1), **dict.fromkeys(SECONDS, 4.0))
    joined = join_records([a_record(2), slow])
    assert len(joined.instances) == 3
    assert [getattr(joined, field) for field in SECONDS] == [4.0] * len(SECONDS)
    assert joined.chain_steps_per_s == (1.0 + 4.0) / 4.0


def test_records_carry_their_part(tmp_path):
    part, other, own = Part(1, 2), Part(2, 2), kind() | {"samplers": {"gwg": {}}}
    part.keep_records(tmp_path, own, {"gwg": a_record(2)})
    found = part.records(tmp_path, own)[0]["gwg"]
    assert [one.name for one in found.instances] == ["g0", "g1"]
    assert found.trajectory.shape == (2, 2)
    shutil.copytree(part.folder(tmp_path), other.folder(tmp_path))
    for one in part, other:
        with pytest.raises(InputError):
            one.records(tmp_path, own)


def arguments_of(folder, part, *more):
    return [
        "--config=configs/experiment/maxcut/ba.py", "--model_config=configs/model/maxcut_config.py",
        "--model_config.graph_type=ba", "--model_config.cfg_str=r-ba-4-n-16-20",
        f"--config.experiment.save_root={folder}", "--config.experiment.num_instances=5",
        "--config.experiment.batch_size=4", *more, *([f"--part={part}"] if part else []),
    ]  # fmt: skip


SHORT = (
    "--samplers=metropolis", "--config.experiment.chain_length=200", "--engine=reference",
    "--config.experiment.instances_per_batch=1",
)  # fmt: skip


def test_a_whole_run_and_two_parts(tmp_path, command, monkeypatch):
    """The same arrays, bit for bit; the part that ends last joins them, and files of others stay in
    their folders.
    """
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "c"))
    theirs = [
        tmp_path / "2" / "parts" / name
        for name in ("notes.txt", "a-of-b/x.npz", "1-of-2/records.txt")
    ]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def run(folder, part):
        code, out, err = command("run", *arguments_of(tmp_path / folder, part, *SHORT))
        assert code == 0, err
        return out

    assert "5 instances" in run("1", None)
    assert "missing: 2, 3" in run("2", "1/3")  # another division, which is given up
    assert run("2", "2/2") == "part 2 of 2: done; missing: 1\n"
    assert not (tmp_path / "2" / "results.json").exists()
    first = run("2", "1/2")
    assert "5 instances" in first and "2 parts" in first and "all parts are done" in run("2", "2/2")
    assert digests(tmp_path / "1") == digests(tmp_path / "2")
    whole, joined = (
        json.loads((tmp_path / k / "results.json").read_text())["samplers"] for k in ("1", "2")
    )
    assert whole["metropolis"]["instances"] == joined["metropolis"]["instances"]
    left = {path for path in (tmp_path / "2/parts").rglob("*") if path.is_file()}
    assert {path for path in left if "1-of-3" not in path.parts} == {*theirs}
    lines = [
        [json.loads(line) for line in (tmp_path / folder / name).read_text().splitlines()]
        for folder, name in (
            ("1", "metrics.jsonl"),
            ("2", "metrics-part-1-of-2.jsonl"),
            ("2", "metrics-part-2-of-2.jsonl"),
        )
    ]
    ends = [one["best"] for one in lines[0] if one["step"] == 200]
    assert ends == [one["best"] for part in lines[1:] for one in part if one["step"] == 200]
    assert [name for best in ends for name in best] == [
        one["name"] for one in whole["metropolis"]["instances"]
    ]


def test_a_part_that_does_not_belong_to_the_others_is_refused_before_it_runs(tmp_path, command):
    run = functools.partial(arguments_of, tmp_path / "run")
    code, _, err = command("run", *run("1/2", *SHORT))
    assert code == 0, err
    code, _, err = command("run", *run("2/2", *SHORT, "--config.experiment.seed=1"))
    assert code == 2 and "seed 0 there, 1 here" in err
    # Nor does a run without parts take its place.
    code, _, err = command("run", *run(None, *SHORT, "--config.experiment.seed=1"))
    assert code == 2 and "--part" in err and not (tmp_path / "run" / "results.json").exists()
    # It leaves nothing that keeps the right part from running.
    assert command("run", *run("2/2", *SHORT))[0] == 0
    # The first part of too many finds its own share, but could never be joined with the others.
    write_archive(tmp_path / "maxcut_ba_ba-4-n-16-20.npz", random_dataset(3).graphs)
    more = *SHORT, f"--model_config.data_root={tmp_path}", "--config.experiment.num_instances=6"
    code, _, err = command("run", *arguments_of(tmp_path / "six", "1/2", *more))
    assert code == 2 and "there are 3" in err
