"""`sl_discs.run`: the same experiment as the command's, in memory or in a folder."""

import json
from pathlib import Path

import numpy as np
import pytest

import sl_discs
from sl_discs import InputError

ROOT = Path(__file__).parents[2]
SET = {"name": "mis", "graph_type": "er_density", "cfg_str": "r-0.05"}
SHORT = {"num_instances": 2, "batch_size": 4, "chain_length": 200, "log_every_steps": 50}


def test_it_is_the_experiment_of_the_command(tmp_path, command, monkeypatch):
    monkeypatch.chdir(ROOT)
    names, fields = "GWG,SL-GWG", {"K": 20}
    code, _, err = command(
        "run", "--config=configs/experiment/mis/er_density.py", "--model_config=configs/model/mis_config.py",
        "--model_config.cfg_str=r-0.05", f"--samplers={names}", "--sampler_config.K=20",
        *(f"--config.experiment.{field}={value}" for field, value in SHORT.items()),
        f"--config.experiment.save_root={tmp_path / 'command'}",
    )  # fmt: skip
    assert code == 0, err
    samplers = ["GWG", {"name": "SL-GWG"} | fields]
    settings = {
        "t_schedule": "exp_decay",
        "init_temperature": 1.0,
        "final_temperature": 1e-4,
        "decay_rate": 0.05,
    }
    shown = json.loads((tmp_path / "command" / "results.json").read_text())
    settings = {field: shown["config"]["experiment"][field] for field in settings}
    found = sl_discs.run(samplers, **SET, **SHORT, **settings)
    assert found.paths == {} and "maximum independent set" in found.summary()
    paths = found.save(tmp_path / "python")
    for name in ("trajectory.npz", "solutions.npz"):
        with np.load(tmp_path / "command" / name) as theirs, np.load(paths[name]) as ours:
            assert ours.files == theirs.files
            for array in ours.files:
                np.testing.assert_array_equal(ours[array], theirs[array])
    frame = found.to_dataframe()
    for name, sampler in shown["samplers"].items():
        assert frame[frame.sampler == name].best.tolist() == [
            one["best"] for one in sampler["instances"]
        ]
    figure = found.plot(tmp_path / "run.png")
    assert figure.read_bytes()[:4] == b"\x89PNG" and len(found.plot().axes) == 2


def test_a_folder_keeps_the_experiment_and_refuses_another_one(tmp_path):
    first = sl_discs.run("PAS", **SET, **SHORT, folder=tmp_path)
    assert first.paths["results.json"].is_file() and not (tmp_path / "checkpoint").exists()
    again = sl_discs.run(["PAS"], config={"experiment": SHORT}, model_config=SET, folder=tmp_path)
    assert again.to_dataframe().equals(first.to_dataframe())
    with pytest.raises(InputError):
        sl_discs.run("PAS", **SET, **SHORT, seed=1, folder=tmp_path)
    other = sl_discs.run("PAS", **SET, **SHORT, seed=1, folder=tmp_path, overwrite=True)
    assert json.loads(other.paths["results.json"].read_text())["seed"] == 1


def test_a_file_has_a_line_whenever_steps_are_done(tmp_path):
    """Of each sampler in turn; a run that begins anew begins it anew."""
    longer = SHORT | {"chain_length": 3_000}
    for _ in range(2):
        found = sl_discs.run(["GWG", "PAS"], **SET, **longer, folder=tmp_path)
        lines = [json.loads(one) for one in (tmp_path / "metrics.jsonl").read_text().splitlines()]
        order = [(one["sampler"] == "path_auxiliary", one["step"]) for one in lines]
        assert order == sorted(set(order)) and len(order) > 4
        for name, sampler in found.record.samplers.items():
            last = [one for one in lines if one["sampler"] == name][-1]
            assert last["step"] == longer["chain_length"]
            for instance in sampler.instances:
                assert last["best"][instance.name] <= instance.best
            assert list(last["best"]) == [instance.name for instance in sampler.instances]


def test_results_that_could_not_be_written_are_written_by_the_same_run(tmp_path, capsys):
    (tmp_path / "solutions.npz").mkdir()
    arguments = {**SET, **SHORT, "checkpoint_every_s": 0.0}
    with pytest.raises(InputError):
        sl_discs.run("GWG", **arguments, folder=tmp_path)
    assert "maximum independent set" in capsys.readouterr().err
    (tmp_path / "solutions.npz").rmdir()
    assert "gwg-0 was finished" in sl_discs.run("GWG", **arguments, folder=tmp_path).resumed
