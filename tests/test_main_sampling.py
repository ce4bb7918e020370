"""The command `run`: what it prints and saves, and whose fields are whose."""

import hashlib
import json
import pickle
import runpy
from pathlib import Path

import numpy as np
import pytest
from programs import python

from sl_discs.commands.run import check_flags
from sl_discs.instances.dataset import find_family
from sl_discs.localization.method import method_fields
from sl_discs.samplers.registry import BUILT_IN

ROOT = Path(__file__).parent.parent


def configs(experiment="mis/er_density", model="mis"):
    return (
        f"--config=configs/experiment/{experiment}.py",
        f"--model_config=configs/model/{model}_config.py",
    )


def short(folder):
    fields = {"chain_length": 200, "batch_size": 4, "num_instances": 2, "save_root": folder}
    return [f"--config.experiment.{field}={value}" for field, value in fields.items()]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def results(tmp_path, command):
    """Runs the command on two graphs; the content of its results.json, and what it printed."""

    def results(*arguments, given=None):
        given = configs() if given is None else given
        code, out, err = command("run", *given, *arguments, *short(tmp_path / "out"))
        assert code == 0, err
        return json.loads((tmp_path / "out" / "results.json").read_text()), out

    return results


def in_a_process(folder, *arguments, path=()):
    done = python("-m", "sl_discs.main_sampling", *arguments, path=path)
    return json.loads((folder / "results.json").read_text()), done


def test_a_comparison_prints_and_saves_everything(tmp_path, results):
    """Fields without a sampler are of all named ones that have them."""
    saved, out = results(
        *("--samplers=GWG,SL-GWG", "--sampler_config.K=20", "--sampler_config.anneal=level"),
        "--config.experiment.log_every_steps=1",
    )
    folder = tmp_path / "out"
    assert "sl_gwg - gwg" in out and "published" in out and str(folder) in out
    assert (saved["dataset"], saved["source"]) == ("mis/er_density/r-0.10", "generated")
    assert saved["config"]["samplers"] == {
        "gwg": method_fields("gwg"),
        "sl_gwg": method_fields("sl_gwg") | {"K": 20, "anneal": "level"},
    }
    for sampler in saved["samplers"].values():
        assert len(sampler["instances"]) == 2
        assert all(instance["feasible"] for instance in sampler["instances"])
        best = [instance["best"] for instance in sampler["instances"]]
        assert sampler["mean"] == pytest.approx(np.mean(best))
    assert saved["paired"]["sl_gwg - gwg"]["n"] == 2
    for name in ("gwg/results.pkl", "sl_gwg/results.pkl", "config.yaml", "trajectory.png"):
        assert (folder / name).stat().st_size > 0
    with (folder / "gwg" / "results.pkl").open("rb") as file:
        of_discs = {"trajectory", "best_ratio", "running_time", "best_ratio_mean"}
        assert set(pickle.load(file)) >= of_discs
    with np.load(folder / "trajectory.npz") as arrays:
        rises = [(np.diff(arrays[f"{name}/temperature"]) > 0).sum() for name in ("gwg", "sl_gwg")]
    assert rises == [0, 19]


def test_one_sampler_by_its_config_as_discs_does_without_matplotlib(tmp_path, refusal):
    broken = tmp_path / "broken" / "matplotlib"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no such library')")
    folder = tmp_path / "out"
    arguments = "--sampler_config=configs/sampler/path_auxiliary_config.py", *short(folder)
    saved, done = in_a_process(
        folder, *configs(), *arguments, "--sampler_config.adaptive=False", path=[broken.parent]
    )
    assert "mean +- std" in done.stdout
    assert done.stderr.count("warning: matplotlib cannot be imported") == 1
    assert (folder / "results.pkl").exists() and not (folder / "trajectory.png").exists()
    assert saved["config"]["samplers"]["path_auxiliary"]["adaptive"] is False
    kept = (folder / "results.json").read_bytes()
    assert "samplers.path_auxiliary.adaptive" in refusal("run", *configs(), *arguments)
    assert (folder / "results.json").read_bytes() == kept


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_sampler_has_a_config_whose_fields_can_all_be_overridden(name, monkeypatch):
    """It is named as a file, which there need not be."""
    monkeypatch.chdir(ROOT)
    fields = {field: value for field, value in method_fields(name).items() if value is not None}
    changes = [f"--sampler_config.{field}={value}" for field, value in fields.items()]
    check_flags([*configs(), f"--sampler_config=configs/sampler/{name}_config.py", *changes])


# As in DISCS, with another name.
COPIED = """
from ml_collections import config_dict

def get_config():
    model_config = dict(name="{name}", use_fast_path=True, num_flips=1, adaptive=True, balancing_fn_type="SQRT")
    return config_dict.ConfigDict(model_config)
"""


@pytest.mark.parametrize("name", ["sl_path_auxiliary", "SL-PAS"])
def test_a_config_copied_from_discs_and_names_of_the_paper(tmp_path, name, results):
    (tmp_path / "mine.py").write_text(COPIED.format(name=name))
    changes = {"sigma": 4.0, "K": 20, "alpha": "geom(1,1)", "adaptive": False}
    saved, _ = results(
        *(f"--sampler_config={tmp_path / 'mine.py'}", "--samplers=PAS,SL-PAS"),
        *(f"--sampler_config.{field}={value}" for field, value in changes.items()),
    )
    fields = saved["config"]["samplers"]
    assert fields["sl_path_auxiliary"] == method_fields("sl_path_auxiliary") | changes
    assert fields["path_auxiliary"] == method_fields("path_auxiliary") | {"adaptive": False}


OWN_SAMPLER = """
from sl_discs.samplers import register_sampler
from sl_discs.samplers.path import GWG

register_sampler("mine", GWG, num_flips=2)
"""


def test_a_sampler_of_ones_own_by_import(tmp_path):
    file = tmp_path / "my_sampler.py"
    file.write_text(OWN_SAMPLER)
    config = "--sampler_config=configs/sampler/mine_config.py"
    folder = tmp_path / "out"
    saved, _ = in_a_process(folder, *configs(), f"--import={file}", config, *short(folder))
    assert saved["config"]["samplers"]["mine"]["num_flips"] == 2
    assert saved["versions"][f"import {file}"] == hashlib.sha256(OWN_SAMPLER.encode()).hexdigest()


def test_a_home_folder_is_not_made_as_one_of_that_name(tmp_path, command, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    code, out, err = command("run", *configs(), "--samplers=metropolis", *short("~/out"))
    assert code == 0 and f"saved in {tmp_path}/out" in out, err
    assert (tmp_path / "out" / "results.json").exists() and not Path("~").exists()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (configs("maxcut/er", "maxcut"), "maxcut/er/r-er-0.15-n-256-300"),
        (configs("mis/er_density", "vertex_cover"), "vertex_cover/er_density/r-0.10"),
        (("--model_config.graph_type=rb", "--model_config.cfg_str=r-200"), "mis/rb/r-200"),
    ],
)
def test_an_experiment_config_names_its_set(tmp_path, results, given, name):
    """What the model config leaves out is that of the set; another config is for any set."""
    if len(given[0].split("=")[0]) > len("--config"):
        text = "from sl_discs.experiment.settings import experiment_config as get_config"
        (tmp_path / "any.py").write_text(text)
        given = (f"--config={tmp_path / 'any.py'}", configs()[1], *given)
    assert results("--samplers=gwg", given=given)[0]["dataset"] == name


@pytest.mark.parametrize(
    "file", sorted((ROOT / "configs" / "experiment").glob("*/*.py")), ids=lambda file: file.stem
)
def test_every_experiment_config_is_for_the_set_of_its_folder_and_name(file):
    named = runpy.run_path(str(file))["get_config"]().model.to_dict()
    assert (named["name"], named["graph_type"]) == (file.parent.name, file.stem)
    find_family(named["name"], named["graph_type"], named["cfg_str"])
