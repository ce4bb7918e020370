"""The search for settings as a whole, on small cuts."""

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "optuna", reason="optuna is not installed: pip install -e '.[tune]' in the clone"
)

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from evaluation import experiment_settings, split_instances, words_of
from sl_discs.experiment.settings import settings_from
from sl_discs.instances.archive import write_archive
from sl_discs.localization.method import build_method
from sl_discs.reproduction.tuned import parse_dataset, read_tuned
from sl_discs.support.errors import InputError

CONFIG_OF_BA = f"--config={Path(__file__).parents[2]}/configs/experiment/maxcut/ba.py"
MAIN = Path(__file__).parents[2] / "studies" / "tuning" / "main.py"
DATASET = "--dataset=maxcut/ba/r-ba-4-n-16-20"
# Batches of one instance.
CONFIG = """
from sl_discs.experiment.settings import experiment_config


def get_config():
    return experiment_config(batch_size=4, chain_length=2_000, num_instances=3, instances_per_batch=1)
"""
SMALL = (
    DATASET, "--config=small.py", "--train_instances=2", "--chains=2", "--chain_length=600", "--engine=cpu",
    "--output=tuned",
)  # fmt: skip


@pytest.fixture
def tune(capsys):
    """Runs `studies/tuning/main.py`; returns its exit code, output and errors."""

    def tune(*arguments):
        code = importlib.import_module("main").main(["studies/tuning/main.py", *arguments])
        return code, *capsys.readouterr()

    return tune


def test_the_search(tmp_path, tune, monkeypatch):
    (tmp_path / "small.py").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "cache"))
    code, out, err = tune(*SMALL, "--sampler=metropolis", "--trials=2")
    assert code == 0, err
    assert "trial 1: " in out and "saved tuned/maxcut/ba/r-ba-4-n-16-20/metropolis.json" in out
    file = tmp_path / "tuned/maxcut/ba/r-ba-4-n-16-20/metropolis.json"
    found = json.loads(file.read_text())
    assert build_method(found["sampler"]).name == "metropolis" and settings_from(
        found["experiment"]
    )
    assert read_tuned(file).sampler == found["sampler"]
    search = found["search"]
    assert search["trials"] == 2 and search["chain_length"] == 600 and search["chains"] == 2
    assert (
        "data_seed 1" in search["train"]
        and "data_seed 0" in search["test"]
        and "maxcut/ba" in search["command"]
    )
    assert search["best_of_curve"][0][0] == 0 and search["paired"]["n"] == 3
    assert search["paired"]["mean"] == pytest.approx(
        search["test_mean"] - search["default_test_mean"]
    )

    flat = found | {"sampler": {"name": "sl_metropolis", "tilt": False}}
    (tmp_path / "flat.json").write_text(json.dumps(flat))
    localized = (
        "--sampler=sl_metropolis",
        "--search=sl",
        "--trials=2",
        "--storage=b.journal",
        "--start=flat.json",
    )
    code, out, err = tune(*SMALL, *localized)
    assert code == 0 and "metropolis as found" in out, err
    found = json.loads(file.with_name("sl_metropolis.json").read_text())
    assert found["sampler"]["tilt"] is False and found["experiment"] == flat["experiment"]
    assert found["search"]["tuned_base"]["paired"]["n"] == 3
    assert "chains 2 there, 3 here" in tune(*SMALL, "--sampler=metropolis", "--chains=3")[2]
    (tmp_path / "small.py").write_text(CONFIG.replace("batch_size=4", "anneal_every=2"))
    assert "anneal_every 1 there, 2 here" in tune(*SMALL, "--sampler=metropolis")[2]


def test_a_search_that_is_told_to_stop_asks_to_be_started_again(tmp_path):
    (tmp_path / "small.py").write_text(CONFIG)
    search = subprocess.Popen(
        [sys.executable, MAIN, *SMALL, "--sampler=metropolis", "--trials=100000"],
        cwd=tmp_path, env=os.environ | {"JAX_PLATFORMS": "cpu", "SL_DISCS_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert any("trial 0: " in line for line in search.stdout)
    search.send_signal(signal.SIGUSR1)
    _, err = search.communicate(timeout=600)
    assert (
        search.returncode == 75
        and "the same command, run again, continues from tuning.journal" in err
    )
    journal = JournalStorage(JournalFileBackend(str(tmp_path / "tuning.journal")))
    study = optuna.load_study(study_name="maxcut/ba/r-ba-4-n-16-20 metropolis all", storage=journal)
    states = [trial.state.name for trial in study.trials]
    assert states[0] == "COMPLETE" and states[-1] == "FAIL" and "RUNNING" not in states


@pytest.mark.parametrize(
    ("arguments", "message"),
    {
        (
            DATASET,
            "--sampler=gwg",
            CONFIG_OF_BA,
            "--start=/dev/zero",
        ): "/dev/zero: not a regular file",
        (
            DATASET,
            "--sampler=gwg",
            CONFIG_OF_BA,
            "--storage=/dev/zero",
        ): "/dev/zero: not a regular file",
        (DATASET, "--sampler=gwg", "--search=sl"): "--search=sl needs a localized sampler",
        (DATASET, "--sampler=gwg", "--chains=1000000000"): "fewer chains",
    }.items(),
)
def test_bad_input_is_one_line_and_exit_code_2(tune, arguments, message):
    code, out, err = tune(*arguments)
    assert code == 2 and out == "" and message in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda odd: parse_dataset("mis/grid"), "unknown graph_type 'grid'"),
        (lambda odd: read_tuned(odd), "odd.json: not a file of tuned settings"),
        (
            lambda odd: experiment_settings(parse_dataset("mis/satlib"), "none.py"),
            "no experiment config none.py",
        ),
        (
            lambda odd: experiment_settings(parse_dataset("mis/satlib"), str(odd)),
            r"odd.json: cannot be run",
        ),
    ],
)
def test_files_and_names_that_are_wrong(tmp_path, call, message):
    odd = tmp_path / "odd.json"
    odd.write_text("[" * 10**5)
    with pytest.raises(InputError, match=message):
        call(odd)


def test_training_and_test_instances_share_none(tmp_path):
    names = parse_dataset("maxcut/ba/r-ba-4-n-16-20")
    drawn = split_instances(names, None, 4, 4, 1)
    train, test = ({tuple(graph.edges.ravel()) for graph in part.graphs} for part in drawn)
    assert len(train) == len(test) == 4 and not train & test
    with pytest.raises(InputError, match="--train_seed is 0"):
        split_instances(names, None, 4, 4, 0)

    write_archive(tmp_path / "mis_satlib.npz", drawn[0].graphs)
    train, test = split_instances(parse_dataset("mis/satlib"), tmp_path, 1, None, 1)
    assert train.index == [3] and test.index == [0, 1, 2]
    assert str(tmp_path) not in words_of(train)
    with pytest.raises(InputError, match="too few to train on 2 and to test on 3"):
        split_instances(parse_dataset("mis/satlib"), tmp_path, 2, 3, 1)
