"""Interrupted runs end with the results of uninterrupted ones, and checkpoints of other runs are
refused.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from damage import DAMAGES
from programs import call
from test_run import SETTINGS, assert_equal, method, random_dataset

from sl_discs.chains import checkpoint
from sl_discs.chains.checkpoint import Checkpoints, remove_checkpoints
from sl_discs.engines.choice import get_engine
from sl_discs.experiment.record import check_finished, run_identity
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.support.errors import RESUME_ME, InputError, Interrupted
from sl_discs.support.identity import digest
from sl_discs.support.locks import holder_of, only_run_in
from sl_discs.support.signals import Notice, notice_of_end

ROOT = Path(__file__).parents[2]
SHORT_CALLS = dataclasses.replace(
    SETTINGS, engine="cpu", checkpoint_every_s=0.0, instances_per_batch=2
)
# On the reference engine those that JAX compiles fastest.
METHODS = {"cpu": ("gwg", "sl_path_auxiliary"), "reference": ("metropolis", "sl_metropolis")}
KIND = {"seed": 0, "experiment": {"chain_length": SETTINGS.chain_length}}


def play(settings=SHORT_CALLS, checkpoints=None, tell=lambda steps, words: None):
    """Two methods on three graphs: four parts."""
    base, localized = METHODS[settings.engine]
    methods = [method(base), method(localized, K=20)]
    return {
        one.name: run_sampler(plan_of(random_dataset(3), 1.0001, one, settings), tell, checkpoints)
        for one in methods
    }


def assert_same(ours, theirs):
    for name, record in ours.items():
        assert_equal(record, theirs[name])


@pytest.fixture
def short_calls(monkeypatch):
    """Calls of 50 steps, so that a chain has five of them."""
    for name in ("reference", "cpu"):
        monkeypatch.setattr(type(get_engine(name)), "steps_per_call", lambda engine, sampler: 50)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_run_ends_the_same_after_a_kill_at_every_checkpoint(tmp_path, short_calls, engine):
    """The folder as it was at each report of the run; and where the run was told to stop."""
    settings = dataclasses.replace(SHORT_CALLS, engine=engine)
    whole, folder, notice = play(settings), tmp_path / "run", Notice()
    kept = []

    def tell(steps, words):
        if folder.exists():
            kept.append(shutil.copytree(folder, tmp_path / str(len(kept))))

    assert_same(whole, play(settings, Checkpoints(folder, KIND, 0.0, notice), tell))
    notice.given = True
    stopped = tmp_path / "stopped"
    for _ in range(3):
        with pytest.raises(Interrupted):
            play(settings, Checkpoints(stopped, KIND, 0.0, notice))
    continued = set()
    for left in [*kept, stopped]:
        checkpoints = Checkpoints(left, KIND, 0.0, Notice())
        assert_same(whole, play(settings, checkpoints))
        continued.add(checkpoints.resumed())
    assert len(continued) > 10


DAMAGES_OF_STATES = [*DAMAGES, "of another run", "of another part", "of other sizes"]


@pytest.mark.parametrize("damage", DAMAGES_OF_STATES)
def test_checkpoints_that_cannot_be_used_are_passed_over(tmp_path, short_calls, capsys, damage):
    """The newest state and the finished parts of a run in its second method."""
    whole, ours, theirs = play(), tmp_path / "ours", tmp_path / "theirs"
    play(checkpoints=Checkpoints(theirs, {"seed": 1}, 0.0, Notice()))
    finished = theirs / "part-gwg-0.npz"
    with np.load(finished) as arrays:
        of_ours = dict(arrays) | {"kind": digest(KIND)}
    reports = itertools.count()

    def tell(steps, words):
        notice.given = next(reports) == 12

    notice = Notice()
    with pytest.raises(Interrupted):
        play(checkpoints=Checkpoints(ours, KIND, 0.0, notice), tell=tell)
    newest = max(ours.glob("state-*.npz"), key=lambda path: int(path.stem.split("-")[1]))
    if damage == "of another run":
        shutil.copy(finished, ours / finished.name)
    elif damage == "of another part":
        np.savez(newest, **of_ours)
        np.savez(ours / "part-sl_path_auxiliary-0.npz", **of_ours)
    elif damage == "of other sizes":
        np.savez(ours / finished.name, **of_ours | {"final": of_ours["final"][:, :1]})
    else:
        for path in (newest, *ours.glob("part-*.npz")):
            DAMAGES[damage](path)
    assert_same(whole, play(checkpoints=Checkpoints(ours, KIND, 0.0, Notice())))
    assert "falling back to the previous checkpoint" in capsys.readouterr().err


def test_a_damaged_last_state_falls_back_to_the_one_before(tmp_path):
    checkpoints = Checkpoints(tmp_path, KIND, 0.0, Notice())
    for step in (50, 100, 150):
        checkpoints.offer("a", step, [np.zeros(2)], [], 0.0)
    (tmp_path / "state-3.npz").write_bytes(b"PK")
    assert Checkpoints(tmp_path, KIND, 0.0, Notice()).middle("a", lambda found: None).step == 100


def test_checkpoints_of_another_run_and_files_that_are_not_ours_are_refused(tmp_path):
    notice = Notice(given=True)
    with pytest.raises(Interrupted):
        play(
            checkpoints=Checkpoints(tmp_path, {"seed": 0, "experiment": {"sigma": 2}}, 0.0, notice)
        )
    with pytest.raises(InputError):
        Checkpoints(tmp_path, {"seed": 1, "experiment": {"sigma": 3}}, 0.0, Notice())
    (tmp_path / "kind.json").write_text("{")
    with pytest.raises(InputError):
        Checkpoints(tmp_path, KIND, 0.0, Notice())
    for name in ("weights.npz", "state-1.npz", "notes/page.txt"):
        folder = tmp_path / name[0]
        theirs = folder / name
        theirs.parent.mkdir(parents=True)
        theirs.write_text("theirs")
        with pytest.raises(InputError):
            Checkpoints(folder, KIND, 0.0, Notice())
        remove_checkpoints(folder)
        assert theirs.read_text() == "theirs"


def test_checkpoints_are_removed_but_files_of_others_stay(tmp_path):
    for theirs in ([], ["notes.txt", "state-best.npz"]):
        folder = tmp_path / str(len(theirs))
        play(
            dataclasses.replace(SHORT_CALLS, engine="cpu"), Checkpoints(folder, KIND, 0.0, Notice())
        )
        for name in (f".{'0' * 32}.tmp", *theirs):
            (folder / name).touch()
        remove_checkpoints(folder)
        assert folder.exists() is bool(theirs)
        assert sorted(path.name for path in folder.glob("*")) == theirs


def test_finished_results_of_another_run_are_refused(tmp_path):
    def config(samplers=(), **changed):
        settings = Settings(chain_length=500, **changed)
        return {
            "experiment": vars(settings),
            "model": {"name": "mis"},
            "samplers": dict.fromkeys(samplers),
        }

    check_finished(tmp_path, config(), "mis/a")  # nothing is there
    (tmp_path / "results.json").write_text(json.dumps({"config": config(), "dataset": "mis/a"}))
    check_finished(
        tmp_path, config(save_root="elsewhere", threads=3, instances_per_batch=2), "mis/a"
    )
    for ours, dataset in ((config(seed=1), "mis/a"), (config(["gwg"]), "mis/b")):
        with pytest.raises(InputError):
            check_finished(tmp_path, ours, dataset)
    for text in ("", "[]", '{"config": 3}', '{"config": {}, "dataset": ""}'):
        (tmp_path / "results.json").write_text(text)
        with pytest.raises(InputError):
            check_finished(tmp_path, config(), "mis/a")


def test_native_loops_go_on_with_another_number_of_devices(monkeypatch):
    """Batches are cut for devices, of which native loops know nothing."""

    def kinds():
        config = {"model": {}, "samplers": {}}
        return [
            run_identity(config, {"gwg": name}, SETTINGS, random_dataset(1))
            for name in ("cpu", "reference")
        ]

    before = kinds()
    monkeypatch.setattr(jax, "local_devices", lambda: [None] * 7)
    assert [one == other for one, other in zip(kinds(), before, strict=True)] == [True, False]


def test_a_full_disk_does_not_end_the_run(tmp_path, short_calls, monkeypatch, capsys):
    def refuse(path, write):
        raise InputError(f"{path}: cannot write (No space left on device)")

    monkeypatch.setattr(checkpoint, "write_atomically", refuse)
    assert_same(play(), play(checkpoints=Checkpoints(tmp_path, KIND, 0.0, Notice())))
    assert capsys.readouterr().err.count("the run continues without") == 1


def test_one_run_a_folder(tmp_path):
    """Its holder is named, although an earlier one had a longer name."""
    (tmp_path / ".run.lock").write_text(f"process 1 on {'far' * 50}\n")
    with only_run_in(tmp_path):
        code = (
            f"from sl_discs.support.locks import *\nwith only_run_in(Path({str(tmp_path)!r})): ..."
        )
        other = call(sys.executable, "-c", code)
        assert other.returncode and f"another run (process {os.getpid()} on" in other.stderr
        assert holder_of(tmp_path) == f"process {os.getpid()} on {socket.gethostname()}"
    assert holder_of(tmp_path) == ""
    with only_run_in(tmp_path):
        pass


@pytest.mark.parametrize("kind", ["link", "link to an empty file", "hard link", "pipe", "text"])
def test_a_lock_that_is_not_ours_is_refused_and_left_alone(tmp_path, kind):
    lock, victim = tmp_path / ".run.lock", tmp_path / "victim"
    theirs = "" if "empty" in kind else "theirs\n"
    victim.write_text(theirs)
    if kind.startswith("link"):
        lock.symlink_to(victim)
    elif kind == "hard link":
        lock.hardlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(lock)
    else:
        lock.write_text("mine\n")
    for _ in range(2):
        with pytest.raises(InputError), only_run_in(tmp_path):
            pass
    assert holder_of(tmp_path) == "" and victim.read_text() == theirs
    assert kind != "text" or lock.read_text() == "mine\n"


def test_a_second_signal_acts_as_before():
    caught = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(number))
    try:
        with notice_of_end() as notice:
            assert not notice.given
            signal.raise_signal(signal.SIGUSR1)
            assert notice.given and not caught
            signal.raise_signal(signal.SIGUSR1)
            assert caught == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def digests(folder):
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("trajectory.npz", "solutions.npz")
    }


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_commands_resume(tmp_path, number):
    """At twenty random moments, in one of two parts: the files of arrays are those of a whole run,
    bit for bit.
    """
    environment = dict(os.environ, JAX_PLATFORMS="cpu", SL_DISCS_CACHE=str(tmp_path / "cache"))

    def run(folder, *part, killed_after=None):
        """Whether a signal met the command running; of one that ends by itself, the results are
        complete.
        """
        command = [
            sys.executable, "-m", "sl_discs.main_sampling",
            "--config=configs/experiment/mis/er_density.py", "--model_config=configs/model/mis_config.py",
            "--samplers=gwg,sl_gwg", "--engine=reference", f"--config.experiment.save_root={folder}",
            "--config.experiment.num_instances=4", "--config.experiment.batch_size=4",
            "--config.experiment.chain_length=6000", "--config.experiment.checkpoint_every_s=0.5",
            "--config.experiment.instances_per_batch=2", *part,
        ]  # fmt: skip
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes)
        if killed_after is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(killed_after)
            process.send_signal(number)
        _, error = process.communicate(timeout=600)
        # Before its handler is there, SIGTERM ends Python as SIGKILL does.
        assert process.returncode in ((0,) if killed_after is None else (0, -number, RESUME_ME)), (
            error
        )
        return process.returncode != 0

    run(tmp_path / "whole")
    begin = time.monotonic()
    run(tmp_path / "0", "--part=1/2")
    part_s = time.monotonic() - begin
    rng, met, number_of_run = random.Random(0), 0, 0
    while met < 20:
        number_of_run += 1
        folder = tmp_path / str(number_of_run)
        run(folder, "--part=2/2")
        for _ in range(4):
            if not run(folder, "--part=1/2", killed_after=rng.uniform(0.3, 1.0) * part_s):
                break
            met += 1
        else:
            run(folder, "--part=1/2")
        assert digests(folder) == digests(tmp_path / "whole")
        assert not list(folder.rglob("checkpoint"))
