"""A study that workers share: counted in total, continued by its own kind alone."""

import errno
import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="optuna is not installed: pip install -e '.[tune]' in the clone")

from sl_discs.errors import InputError  # noqa: E402
from sl_discs.experiment.settings import Settings  # noqa: E402
from sl_discs.instances.dataset import Dataset  # noqa: E402
from sl_discs.localization.method import method_fields  # noqa: E402
from sl_discs.tuning import search, space, storage  # noqa: E402
from sl_discs.tuning.space import Candidate, annealing_of  # noqa: E402

KIND = {"dataset": "mis/small", "chains": 4, "space": [{"name": "x", "choices": list(range(50))}]}


class QuickStage:
    """Says at once that colder is better, on the later graphs too."""

    def __init__(self, seconds=0.0):
        self.seconds, self.played = seconds, []

    def play(self, candidate, dataset, seed, progress):
        time.sleep(self.seconds)
        progress(1)
        self.played.append((seed, tuple(dataset.index)))
        return -np.log(candidate.experiment["final_temperature"]) + np.array(dataset.index)


def make_search():
    graphs = Dataset("mis/small", "mis", "generated", "small", [None] * 8, list(range(8)), 8)
    start = Candidate(method_fields("gwg"), annealing_of(Settings()))
    return search.Search(space.space_of("gwg", "all", 100), start, False, graphs, search.rungs_of(8), 0)


def open_study(where, kind=KIND, points=()):
    storage.quiet_optuna()
    return storage.open_study(storage.open_storage(str(where)), "study", kind, list(points))


def play(study, total, stage=None, stale_after=600.0):
    ended = []
    stage = stage or QuickStage()
    search.play_trials(study, make_search(), stage, total, stale_after, lambda steps: None, ended.append)
    return ended


@pytest.mark.parametrize("where", ["a.journal", "sqlite"])
def test_a_rerun_continues_and_counts_in_total(tmp_path, where):
    where = f"sqlite:///{tmp_path}/a.db" if where == "sqlite" else tmp_path / where
    first = {"t_schedule": "linear", "init_temperature": 0.5, "cooling": 0.25}
    assert [one.number for one in play(open_study(where, points=[first]), 2)] == [0, 1]
    study = open_study(where)
    assert study.trials[0].params | first == study.trials[0].params
    assert [one.number for one in play(study, 5)] == [2, 3, 4]
    assert play(study, 5) == [] and len(study.trials) == 5
    curve = storage.best_of_curve(study)
    assert curve[0] == [0, study.trials[0].value] and [value for _, value in curve] == sorted(v for _, v in curve)


def test_trials_climb_rungs_and_are_pruned(tmp_path):
    stage = QuickStage()
    ended = play(open_study(tmp_path / "a.journal"), 40, stage)
    pruned = [one for one in ended if one.pruned]
    assert 5 < len(pruned) < 35 and not any(one.pruned for one in ended[:8])
    assert {one.instances for one in ended if not one.pruned} == {8} and {one.instances for one in pruned} <= {2, 4}
    assert stage.played[:3] == [(1_000, (0, 1)), (1_000, (2, 3)), (1_000, (4, 5, 6, 7))]
    assert max(one.value for one in ended if not one.pruned) == max(one.value for one in ended if one.instances == 8)


def test_one_worker_makes_the_same_choices_again(tmp_path):
    studies = [open_study(tmp_path / f"{k}.journal") for k in range(2)]
    play(studies[0], 14)
    for total in (5, 14):
        play(studies[1], total)
    assert [trial.params for trial in studies[0].trials] == [trial.params for trial in studies[1].trials]


def test_another_kind_is_refused_in_one_line(tmp_path):
    open_study(tmp_path / "a.journal")
    for changed, message in {
        "dataset": "dataset 'mis/small' there, 'other' here",
        "space": "another space",
        "version": "version None there, 'other' here",
    }.items():
        value = list(range(60)) if changed == "space" else "other"
        with pytest.raises(InputError, match=message) as refused:
            open_study(tmp_path / "a.journal", KIND | {changed: value})
        assert "\n" not in str(refused.value)


def test_a_killed_worker_does_not_block_the_others(tmp_path):
    study = open_study(tmp_path / "a.journal")
    left = storage.next_trial(study, 3, 600.0)
    storage.Pulse(left)
    assert len(play(study, 3)) == 2 and storage.unfinished(study, 600.0) == 1
    assert len(play(study, 3, stale_after=0.0)) == 1 and storage.unfinished(study, 0.0) == 0


def test_a_worker_that_is_gone_from_this_machine_is_replaced_at_once(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    study = open_study(tmp_path / "a.journal")
    left = storage.next_trial(study, 3, 600.0)
    storage.Pulse(left)
    holder = left.user_attrs[storage.HOLDER]
    assert storage.unfinished(study, 600.0) == 1
    left.set_user_attr(storage.HOLDER, holder | {"machine": "another", "pid": gone.pid})
    assert storage.unfinished(study, 600.0) == 1
    left.set_user_attr(storage.HOLDER, holder | {"pid": gone.pid})
    assert storage.unfinished(study, 600.0) == 0 and len(play(study, 3)) == 3


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """Lines of a journal of two trials, the second of which is just being completed."""
    path = tmp_path_factory.mktemp("journal") / "a.journal"
    play(open_study(path), 2)
    return path.read_bytes().splitlines(keepends=True)


def finished(study):
    return [trial.number for trial in storage.complete_trials(study)]


def test_a_torn_last_line_is_passed_over(tmp_path, journal):
    path, whole, last = tmp_path / "a.journal", b"".join(journal[:-1]), journal[-1]
    for cut in range(len(last)):
        path.write_bytes(whole + last[:cut])
        # Without its end of line alone, the last record is whole once another line follows.
        assert finished(open_study(path)) == ([0] if cut < len(last) - 1 else [0, 1]), cut
    for cut in (0, 1, 20, len(last) - 1):
        path.write_bytes(whole + last[:cut])
        study = open_study(path)
        play(study, 3)
        assert finished(study) == finished(open_study(path)) == ([0, 2] if cut < len(last) - 1 else [0, 1, 2])


def test_every_line_may_have_been_the_last_one(tmp_path, journal, monkeypatch):
    monkeypatch.setattr(storage, "_PATIENCE_S", 0.0)
    path = tmp_path / "a.journal"
    for number, line in enumerate(journal):
        path.write_bytes(b"".join(journal[:number]) + line[: len(line) // 2])
        study = open_study(path)
        play(study, len(finished(study)) + storage.unfinished(study, 600.0) + 1)
        assert len(finished(open_study(path))) == len(finished(study)) > 0, line


def test_what_others_added_to_a_torn_line_counts(tmp_path, journal):
    path, last = tmp_path / "a.journal", journal[-1]
    added = b'{"op_code":2,"worker_id":"other","study_id":0,"user_attr":{"seen":1}}\n'
    for cut in (*range(12), *range(12, len(last), 20), len(last) - 1):
        path.write_bytes(b"".join(journal[:-1]) + last[:cut] + added)
        study = open_study(path)
        assert study.user_attrs["seen"] == 1 and finished(study) == [0]


def test_a_damaged_journal_is_named(tmp_path, journal):
    path = tmp_path / "a.journal"
    for damaged in ([*journal[:3], b"no record\n", *journal[3:]], [b"\0\0\0", *journal], [*journal, b"\x80"]):
        path.write_bytes(b"".join(damaged))
        with pytest.raises(InputError, match=r"a\.journal: .* is not a line of an Optuna journal") as refused:
            open_study(path)
        assert "\n" not in str(refused.value)


def test_a_full_disk_leaves_the_journal_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.journal"
    study = open_study(path)
    before = path.read_bytes()

    def refuse(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", refuse)
        with pytest.raises(InputError, match="No space left on device"):
            play(study, 1)
    assert path.read_bytes() == before and len(play(study, 1)) == 1


def test_an_interrupted_trial_does_not_count(tmp_path):
    class Interrupted(QuickStage):
        def play(self, *_):
            raise KeyboardInterrupt

    study = open_study(tmp_path / "a.journal")
    with pytest.raises(KeyboardInterrupt):
        play(study, 2, Interrupted())
    assert [one.number for one in play(study, 2)] == [1, 2]


def worker(where, total, ended):
    ended.put([one.number for one in play(open_study(where), total, QuickStage(0.02))])


def test_two_processes_play_exactly_the_trials(tmp_path):
    context = multiprocessing.get_context("spawn")
    ended = context.Queue()
    workers = [context.Process(target=worker, args=(tmp_path / "a.journal", 20, ended)) for _ in range(2)]
    for one in workers:
        one.start()
    numbers = [ended.get(timeout=120) for _ in workers]
    for one in workers:
        one.join()
    assert len(numbers[0]) + len(numbers[1]) == 20 == len({*numbers[0], *numbers[1]})
    trials = open_study(tmp_path / "a.journal").trials
    assert sum(trial.state.is_finished() and trial.state.name != "FAIL" for trial in trials) == 20


@pytest.mark.parametrize("where", ["text.journal", "nowhere://x", "sqlite:////nowhere/a.db", "/proc/a.journal"])
def test_a_storage_that_cannot_be_opened(tmp_path, where):
    if where == "text.journal":
        where = tmp_path / where
        where.write_text("no journal\n")
    with pytest.raises(InputError, match=r"cannot open it|is not a line of an Optuna journal"):
        storage.open_storage(str(where))
