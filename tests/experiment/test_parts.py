"""One run in several parts: the results of a whole one, whatever order they end in, and a lost part is run again."""

import dataclasses
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_checkpoint import digests
from test_run import SETTINGS, assert_equal, method, play, random_dataset

from sl_discs.errors import InputError
from sl_discs.experiment.checkpoint import RESUME_ME
from sl_discs.experiment.parts import Part, join_records, keep_records, records_in
from sl_discs.files import write_document
from sl_discs.instances.archive import write_archive

ROOT = Path(__file__).parents[2]


def test_shares_are_a_fair_division():
    for count, instances in ((1, 5), (3, 7), (4, 4), (64, 1000)):
        shares = [Part(k, count).share(instances) for k in range(1, count + 1)]
        assert [k for share in shares for k in share] == list(range(instances))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    with pytest.raises(InputError, match="5 parts of 4 instances"):
        Part(1, 5).share(4)


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2"])
def test_what_is_not_a_part(text):
    with pytest.raises(InputError, match="give K/N with K from 1 to N"):
        Part.parse(text)
    assert Part.parse("2/3") == Part(2, 3) and Part(2, 3).label == "part 2 of 3" and Part.parse("1/1").label == ""


def records_of(dataset, share):
    graphs, index = ([getattr(dataset, field)[k] for k in share] for field in ("graphs", "index"))
    part = dataclasses.replace(dataset, graphs=graphs, index=index)
    # One instance after the other, so that all shares run the same program.
    settings = dataclasses.replace(SETTINGS, instances_per_batch=1)
    record = play(part, method("metropolis"), settings)
    return {"metropolis": record, "the same again": record}


def test_shares_joined_are_the_whole(tmp_path):
    dataset = random_dataset(5)
    whole = records_of(dataset, range(5))
    for k in (1, 2):
        keep_records(tmp_path / str(k), {}, records_of(dataset, Part(k, 2).share(5)))
    joined = join_records([records_in(tmp_path / str(k), {}) for k in (1, 2)])
    assert list(joined) == list(whole)
    for name, record in whole.items():
        assert_equal(record, joined[name])
        for one, other in zip(record.instances, joined[name].instances, strict=True):
            assert (one.feasible, one.reference) == (other.feasible, other.reference)
            assert one.solution.dtype == other.solution.dtype
    steps = [record.chain_steps_per_s * record.run_s for record in (whole["metropolis"], joined["metropolis"])]
    assert steps[0] == pytest.approx(steps[1])


def test_only_parts_of_the_same_run_are_joined(tmp_path):
    def kind(seed=0, index=(0, 1), devices=0):
        return {
            "experiment": {"seed": seed, "use_devices": devices},
            "model": {"name": "mis"},
            "graphs": {"name": "mis/small", "index": list(index)},
            "devices": len(index),
        }

    keep_records(Part(1, 2).folder(tmp_path), kind(), {})
    folder = Part(1, 2).folder(tmp_path)
    assert records_in(folder, kind()) == {} and Part(2, 2).others(tmp_path, kind(index=(2,), devices=2)) == [{}, None]
    assert records_in(tmp_path / "nothing", kind()) is None
    with pytest.raises(InputError, match=r"experiment.seed 0 there, 1 here; give another save_root"):
        Part(2, 2).others(tmp_path, kind(seed=1, index=(2,)))
    with pytest.raises(InputError, match=r"graphs.index \[0, 1\] there, \[0, 2\] here"):
        records_in(folder, kind(index=(0, 2)))
    for damage in (
        lambda path: path.write_bytes(b"PK"),
        lambda path: np.savez(path, x=np.ones(2)),
        lambda path: np.savez(path, json='{"format": "sl_discs records 1"}'),
        lambda path: np.savez(path, json='{"format": "sl_discs records 1", "kind": [], "samplers": []}'),
        lambda path: write_document(path, "sl_discs records 1", {}, {"kind": kind(), "samplers": []}),
        lambda path: write_document(path, "sl_discs records 1", {}, {"kind": kind(), "samplers": {"gwg": {}}}),
    ):
        damage(folder / "records.npz")
        with pytest.raises(InputError, match=r"the records of this part cannot be read .*; remove the folder"):
            records_in(folder, kind())


def test_another_number_of_parts_is_refused(tmp_path):
    assert Part().folder(tmp_path) == tmp_path
    Part(2, 4).folder(tmp_path).mkdir(parents=True)
    assert Part(1, 4).folder(tmp_path) == tmp_path / "parts" / "1-of-4"
    for other in (Part(), Part(1, 2)):
        with pytest.raises(InputError, match=r"an interrupted run of 4 part\(s\)"):
            other.folder(tmp_path)
    (tmp_path / "whole" / "checkpoint").mkdir(parents=True)
    (tmp_path / "whole" / "checkpoint" / "kind.json").touch()
    with pytest.raises(InputError, match=r"of 1 part\(s\), but this one has 2"):
        Part(1, 2).folder(tmp_path / "whole")


def arguments_of(folder, part, *more):
    return [
        "--config=configs/experiment/maxcut/ba.py", "--model_config=configs/model/maxcut_config.py",
        "--model_config.graph_type=ba", "--model_config.cfg_str=r-ba-4-n-16-20",
        f"--config.experiment.save_root={folder}", "--config.experiment.num_instances=5",
        "--config.experiment.batch_size=4", *more, *([f"--part={part}"] if part else []),
    ]  # fmt: skip


def start(folder, part, *more, cache):
    command = [sys.executable, "-m", "sl_discs.main_sampling", *arguments_of(folder, part, *more)]
    environment = dict(os.environ, JAX_PLATFORMS="cpu", SL_DISCS_CACHE=str(cache))
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def end(process):
    """What it prints; it must succeed."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out


SHORT = (
    "--samplers=metropolis", "--config.experiment.chain_length=200", "--engine=reference",
    "--config.experiment.instances_per_batch=1",
)  # fmt: skip


def test_a_whole_run_and_two_parts(tmp_path, command, monkeypatch):
    """The same arrays, bit for bit; the part that ends last joins them."""
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "c"))

    def run(folder, part):
        code, out, err = command("run", *arguments_of(tmp_path / folder, part, *SHORT))
        assert code == 0, err
        return out

    assert "5 instances" in run("1", None)
    assert run("2", "2/2") == "part 2 of 2: done; missing: 1\n" and not (tmp_path / "2" / "results.json").exists()
    first = run("2", "1/2")
    assert "5 instances" in first and "2 parts" in first
    assert digests(tmp_path / "1") == digests(tmp_path / "2") and not (tmp_path / "2" / "parts").exists()


def test_a_run_leaves_files_of_others_in_its_folders(tmp_path, command):
    """A folder `checkpoint` of somebody else is refused, and none is removed with files that are not the run's."""
    theirs = [tmp_path / name for name in ("parts/notes.txt", "parts/a-of-b/x.npz", "parts/1-of-2/records.txt")]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for part in ("1/2", "2/2"):
        code, out, err = command("run", *arguments_of(tmp_path, part, *SHORT))
        assert code == 0, err
    assert "5 instances" in out and all(path.exists() for path in theirs)
    assert sorted(path for path in (tmp_path / "parts").rglob("*") if path.is_file()) == sorted(theirs)
    weights = tmp_path / "whole" / "checkpoint" / "weights.npz"
    weights.parent.mkdir(parents=True)
    weights.touch()
    code, _, err = command("run", *arguments_of(tmp_path / "whole", None, *SHORT))
    assert code == 2 and "holds 'weights.npz' and no kind.json" in err and weights.exists()


def test_a_part_of_another_run_is_refused_before_it_runs(tmp_path, command):
    run = functools.partial(arguments_of, tmp_path / "run")
    code, _, err = command("run", *run("1/2", *SHORT))
    assert code == 0, err
    code, _, err = command("run", *run("2/2", *SHORT, "--config.experiment.seed=1"))
    assert code == 2 and "seed 0 there, 1 here" in err
    # It leaves nothing that keeps the right part from running.
    assert command("run", *run("2/2", *SHORT))[0] == 0


def test_a_part_of_more_instances_than_there_are_is_refused(tmp_path, command):
    """The first one too, which would find its own share, but could never be joined with the others."""
    write_archive(tmp_path / "maxcut_ba_ba-4-n-16-20.npz", random_dataset(3).graphs)
    more = *SHORT, f"--model_config.data_root={tmp_path}", "--config.experiment.num_instances=6"
    code, _, err = command("run", *arguments_of(tmp_path / "run", "1/2", *more))
    assert code == 2 and "there are 3" in err


LONG = (
    "--samplers=gwg,sl_path_auxiliary", "--config.experiment.chain_length=300000",
    "--config.experiment.log_every_steps=10000", "--config.experiment.checkpoint_every_s=1",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_lost_part_is_run_again(tmp_path, number):
    """Three parts at once, one of which is killed or told to stop: it continues, and joins the results."""
    parts = [start(tmp_path / "3", f"{k}/3", *LONG, cache=tmp_path / "c") for k in (1, 2, 3)]
    saved = tmp_path / "3" / "parts" / "2-of-3" / "checkpoint"
    while not list(saved.glob("state-*.npz")):
        assert parts[1].poll() is None
        time.sleep(0.05)
    parts[1].send_signal(number)
    parts[1].communicate()
    assert parts[1].returncode == (RESUME_ME if number == signal.SIGTERM else -number)
    said = [end(part) for part in (parts[0], parts[2])]
    assert sorted(line.rpartition("missing: ")[2] for line in said)[0] == "2\n"
    assert "continued" in end(start(tmp_path / "3", "2/3", *LONG, cache=tmp_path / "c"))
    assert "all parts are done" in end(start(tmp_path / "3", "2/3", *LONG, cache=tmp_path / "c"))
    end(start(tmp_path / "1", None, *LONG, cache=tmp_path / "c"))
    assert digests(tmp_path / "1") == digests(tmp_path / "3")
