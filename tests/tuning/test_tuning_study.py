"""A study that workers share: counted in total, continued by its own kind alone."""

import multiprocessing
import time

import numpy as np
import pytest

optuna = pytest.importorskip("optuna", reason="optuna is not installed: pip install 'sl_discs[tune]'")

from sl_discs.errors import InputError  # noqa: E402
from sl_discs.experiment.settings import Settings  # noqa: E402
from sl_discs.instances.dataset import Dataset  # noqa: E402
from sl_discs.localization.method import method_fields  # noqa: E402
from sl_discs.tuning import search, space, storage  # noqa: E402
from sl_discs.tuning.points import Candidate, annealing_of  # noqa: E402

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
    with pytest.raises(InputError, match="cannot open it"):
        storage.open_storage(str(where))
