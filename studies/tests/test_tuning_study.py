"""A study that workers share: counted in total, continued by its own kind alone."""

import errno
import multiprocessing
import os
import time

import numpy as np
import pytest

optuna = pytest.importorskip(
    "optuna", reason="optuna is not installed: pip install -e '.[tune]' in the clone"
)

import search  # noqa: E402
import space  # noqa: E402
from evaluation import Tuning  # noqa: E402
from sl_discs.experiment.settings import Settings  # noqa: E402
from sl_discs.instances.graph import Dataset  # noqa: E402
from sl_discs.localization.method import method_fields  # noqa: E402
from sl_discs.reproduction.tuned import Candidate  # noqa: E402
from sl_discs.support.errors import InputError  # noqa: E402
from space import annealing_of  # noqa: E402

KIND = {"dataset": "mis/small", "chains": 4, "space": [{"name": "x", "choices": list(range(50))}]}


class QuickTuning(Tuning):
    """Says at once that colder is better, on the later graphs too."""

    seconds = 0.0

    def evaluate(self, candidate, dataset, seed, progress):
        time.sleep(self.seconds)
        progress(1)
        self.played.append((seed, tuple(dataset.index)))
        return -np.log(candidate.experiment["final_temperature"]) + np.array(dataset.index)


def quick(**attributes):
    graphs = Dataset("mis/small", "mis", "generated", "small", [None] * 8, list(range(8)), 8)
    start = Candidate(method_fields("gwg"), annealing_of(Settings()))
    kind = type("Own", (QuickTuning,), {"played": [], **attributes})
    return kind(space.space_of("gwg", "all", 100), start, graphs, Settings(), 1.0, 0)


def open_study(where, kind=KIND, first=None):
    return search.open_study(str(where), "study", kind, first or {})


def play(study, total, tuning=None):
    ended = []
    search.run_trials(study, tuning or quick(), total, lambda steps: None, ended.append)
    return ended


def test_a_rerun_continues_and_counts_in_total(tmp_path):
    where = tmp_path / "a.journal"
    first = {"t_schedule": "linear", "init_temperature": 0.5, "cooling": 0.25}
    assert [one.number for one in play(open_study(where, first=first), 2)] == [0, 1]
    study = open_study(where)
    assert study.trials[0].params | first == study.trials[0].params
    assert [one.number for one in play(study, 5)] == [2, 3, 4]
    assert play(study, 5) == [] and len(study.trials) == 5
    curve = search.best_of_curve(study)
    assert curve[0] == [0, study.trials[0].value] and [value for _, value in curve] == sorted(
        v for _, v in curve
    )


def test_trials_climb_rungs_and_are_pruned(tmp_path):
    tuning = quick()
    ended = play(open_study(tmp_path / "a.journal"), 40, tuning)
    pruned = [one for one in ended if one.state.name == "PRUNED"]
    whole = [one for one in ended if one not in pruned]
    assert 5 < len(pruned) < 35 and not any(one in pruned for one in ended[:8])
    assert {one.last_step for one in whole} == {8} and {one.last_step for one in pruned} <= {2, 4}
    assert len({seed for seed, _ in tuning.played}) == 40
    assert tuning.played[:3] == [(1_000, (0, 1)), (1_000, (2, 3)), (1_000, (4, 5, 6, 7))]


def test_one_worker_makes_the_same_choices_again(tmp_path):
    studies = [open_study(tmp_path / f"{k}.journal") for k in range(2)]
    play(studies[0], 14)
    for total in (5, 14):
        play(studies[1], total)
    assert [trial.params for trial in studies[0].trials] == [
        trial.params for trial in studies[1].trials
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dataset": "other"}, "dataset 'mis/small' there, 'other' here"),
        ({"space": list(range(60))}, "another space"),
    ],
)
def test_another_kind_is_refused_in_one_line(tmp_path, changed, message):
    open_study(tmp_path / "a.journal")
    with pytest.raises(InputError, match=message) as refused:
        open_study(tmp_path / "a.journal", KIND | changed)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("written", [1, 30, -1])
def test_a_worker_that_died_within_a_line_of_the_journal_stops_nobody(tmp_path, written):
    path = tmp_path / "a.journal"
    first, second = open_study(path), open_study(path)
    play(first, 2)
    line = path.read_bytes().splitlines()[-1]
    with path.open("ab") as journal:
        journal.write(line[:written])
    assert [one.number for one in play(second, 4)] == [2, 3]
    assert [one.number for one in play(first, 5)] == [4] and len(open_study(path).trials) == 5


@pytest.mark.parametrize("text", ["notes", "one line\nand notes", "[1, 2"])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"notes\.txt: cannot open it"):
        open_study(path)
    assert path.read_text() == text
    with pytest.raises(InputError, match="/proc"):
        open_study("/proc/a.journal")


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    study = open_study(tmp_path / "a.journal")

    def refuse(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", refuse)
        with pytest.raises(InputError, match="No space left on device"):
            play(study, 1)
    assert len(play(study, 1)) == 1


def test_a_trial_that_was_interrupted_or_killed_does_not_count(tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    study = open_study(tmp_path / "a.journal")
    with pytest.raises(KeyboardInterrupt):
        play(study, 2, quick(evaluate=interrupt))
    study.ask()  # of a worker that was killed
    assert [one.number for one in play(study, 2)] == [2, 3] and study.trials[
        1
    ].state.name == "RUNNING"


def worker(where, total, ended):
    ended.put([one.number for one in play(open_study(where), total, quick(seconds=0.02))])


def test_two_processes_share_the_trials(tmp_path):
    """A worker counts what has ended, so that the other one may add a trial."""
    context = multiprocessing.get_context("spawn")
    ended = context.Queue()
    workers = [
        context.Process(target=worker, args=(tmp_path / "a.journal", 20, ended)) for _ in range(2)
    ]
    for one in workers:
        one.start()
    numbers = [ended.get(timeout=600) for _ in workers]
    for one in workers:
        one.join()
    assert 20 <= len(numbers[0]) + len(numbers[1]) == len({*numbers[0], *numbers[1]}) <= 21
    trials = open_study(tmp_path / "a.journal").trials
    assert {trial.number for trial in trials} == {*numbers[0], *numbers[1]}
