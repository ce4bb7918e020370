"""The command: what it prints and saves, and its one-line errors."""

import hashlib
import json
import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sl_discs.commands.run import check_flags
from sl_discs.instances.dataset import find_family
from sl_discs.localization.method import method_fields
from sl_discs.samplers.registry import BUILT_IN

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data"
SHORT = [
    "--config.experiment.chain_length=200",
    "--config.experiment.batch_size=4",
    "--config.experiment.num_instances=2",
]


def chosen_configs(experiment="mis/er_density", model="mis"):
    return (
        f"--config=configs/experiment/{experiment}.py",
        f"--model_config=configs/model/{model}_config.py",
    )


def run(*arguments, folder, configs=("mis/er_density", "mis"), cache=None, path=None):
    """Runs the command in a process of its own, which must succeed."""
    command = [
        sys.executable,
        "-m",
        "sl_discs.main_sampling",
        *chosen_configs(*configs),
        *arguments,
    ]
    more = {
        "SL_DISCS_CACHE": cache,
        "PYTHONPATH": path and f"{path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    environment = (
        os.environ
        | {"JAX_PLATFORMS": "cpu"}
        | {name: str(value) for name, value in more.items() if value}
    )
    command.append(f"--config.experiment.save_root={folder}")
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return done


def results_in(folder):
    return json.loads((folder / "results.json").read_text())


def test_a_comparison_prints_and_saves_everything(tmp_path, command, monkeypatch):
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    folder = tmp_path / "out"
    code, out, err = command(
        "run", *chosen_configs(), "--samplers=gwg,sl_gwg", *SHORT, f"--config.experiment.save_root={folder}",
        "--sampler_config=configs/sampler/sl_gwg_config.py", "--sampler_config.K=20",
    )  # fmt: skip
    assert code == 0, err
    assert "sl_gwg - gwg" in out and "published" in out and str(folder) in out
    saved = results_in(folder)
    assert saved["dataset"] == "mis/er_density/r-0.10" and saved["source"] == "generated"
    assert set(saved["samplers"]) == {"gwg", "sl_gwg"} and saved["seed"] == 0
    assert saved["engine"] == "cpu (auto: the fastest on CPU cores)"
    assert saved["config"]["samplers"]["sl_gwg"]["K"] == 20
    for sampler in saved["samplers"].values():
        assert len(sampler["instances"]) == 2
        assert all(instance["feasible"] for instance in sampler["instances"])
        assert sampler["mean"] == pytest.approx(
            np.mean([instance["best"] for instance in sampler["instances"]])
        )
    assert saved["paired"]["sl_gwg - gwg"]["n"] == 2
    for name in (
        "gwg/results.pkl",
        "sl_gwg/results.pkl",
        "trajectory.npz",
        "config.yaml",
        "trajectory.png",
    ):
        assert (folder / name).stat().st_size > 0
    with (folder / "gwg" / "results.pkl").open("rb") as file:
        assert set(pickle.load(file)) >= {
            "trajectory",
            "best_ratio",
            "running_time",
            "best_ratio_mean",
        }


def test_fields_without_a_file_are_of_every_sampler_named_that_has_them(
    tmp_path, command, monkeypatch
):
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    folder = tmp_path / "out"
    code, out, err = command(
        "run", *chosen_configs(), "--samplers=GWG,SL-GWG", *SHORT, f"--config.experiment.save_root={folder}",
        "--sampler_config.K=20", "--sampler_config.anneal=level", "--config.experiment.log_every_steps=1",
    )  # fmt: skip
    assert code == 0 and "sl_gwg - gwg" in out, err
    fields = results_in(folder)["config"]["samplers"]
    assert fields["sl_gwg"] == method_fields("sl_gwg") | {"K": 20, "anneal": "level"}
    assert fields["gwg"] == method_fields("gwg")
    with np.load(folder / "trajectory.npz") as arrays:
        assert [(np.diff(arrays[f"{name}/temperature"]) > 0).sum() for name in fields] == [0, 19]


def test_one_sampler_by_its_config_as_discs_does_without_matplotlib(tmp_path, refusal, monkeypatch):
    broken = tmp_path / "broken" / "matplotlib"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('no such library')")
    config, folder = "--sampler_config=configs/sampler/path_auxiliary_config.py", tmp_path / "out"
    done = run(
        config,
        "--sampler_config.adaptive=False",
        *SHORT,
        folder=folder,
        cache=tmp_path,
        path=broken.parent,
    )
    assert (
        "mean +- std" in done.stdout
        and done.stderr.count("warning: matplotlib cannot be imported") == 1
    )
    assert (folder / "results.pkl").exists() and not (folder / "trajectory.png").exists()
    assert results_in(folder)["config"]["samplers"]["path_auxiliary"]["adaptive"] is False
    kept = (folder / "results.json").read_bytes()
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    said = refusal(
        "run", *chosen_configs(), config, *SHORT, f"--config.experiment.save_root={folder}"
    )
    assert (
        "samplers.path_auxiliary.adaptive False there, True here" in said and "--overwrite" in said
    )
    assert (folder / "results.json").read_bytes() == kept


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_sampler_has_a_config_whose_fields_can_all_be_overridden(name, monkeypatch):
    """It is named as a file, which there need not be."""
    monkeypatch.chdir(ROOT)
    fields = {field: value for field, value in method_fields(name).items() if value is not None}
    check_flags(
        [
            *chosen_configs(),
            f"--sampler_config=configs/sampler/{name}_config.py",
            *(f"--sampler_config.{field}={value}" for field, value in fields.items()),
        ]
    )


# As in DISCS, with another name.
COPIED = """
from ml_collections import config_dict

def get_config():
    model_config = dict(name="{name}", use_fast_path=True, num_flips=1, adaptive=True, balancing_fn_type="SQRT")
    return config_dict.ConfigDict(model_config)
"""


@pytest.mark.parametrize("name", ["sl_path_auxiliary", "SL-PAS"])
def test_a_config_copied_from_discs_and_names_of_the_paper(tmp_path, name, command, monkeypatch):
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    (tmp_path / "mine.py").write_text(COPIED.format(name=name))
    code, _, err = command(
        "run", *chosen_configs(), f"--sampler_config={tmp_path / 'mine.py'}", "--samplers=PAS,SL-PAS", *SHORT,
        "--sampler_config.sigma=4", "--sampler_config.K=20", "--sampler_config.alpha=geom(1,1)",
        "--sampler_config.adaptive=False", f"--config.experiment.save_root={tmp_path / 'out'}",
    )  # fmt: skip
    assert code == 0, err
    fields = results_in(tmp_path / "out")["config"]["samplers"]
    changes = {"sigma": 4.0, "K": 20, "alpha": "geom(1,1)", "adaptive": False}
    assert fields["sl_path_auxiliary"] == method_fields("sl_path_auxiliary") | changes | {
        "use_fast_path": True
    }
    assert fields["path_auxiliary"] == method_fields("path_auxiliary") | {"adaptive": False}


OWN_SAMPLER = """
from sl_discs.samplers import register_sampler
from sl_discs.samplers.path import GWG

register_sampler("mine", GWG, num_flips=2)
"""


def test_a_sampler_of_ones_own_by_import(tmp_path):
    file = tmp_path / "my_sampler.py"
    file.write_text(OWN_SAMPLER)
    config = "--sampler_config=configs/sampler/own_config.py:mine"
    run(f"--import={file}", config, *SHORT, folder=tmp_path / "out", cache=tmp_path)
    saved = results_in(tmp_path / "out")
    assert saved["config"]["samplers"]["mine"]["num_flips"] == 2
    assert saved["versions"][f"import {file}"] == hashlib.sha256(OWN_SAMPLER.encode()).hexdigest()


def test_a_home_folder_is_not_made_as_one_of_that_name(tmp_path, command, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "cache"))
    arguments = "--samplers=metropolis", "--config.experiment.save_root=~/out", *SHORT
    code, out, err = command("run", *chosen_configs(), *arguments)
    assert code == 0 and f"saved in {tmp_path}/out" in out, err
    assert (tmp_path / "out" / "results.json").exists() and not Path("~").exists()


RB = "graph_type=rb", "cfg_str=r-200"


def test_an_experiment_config_names_its_set(tmp_path, refusal, command, monkeypatch):
    """What the model config leaves out is that of the set; what contradicts it is refused; another
    is for any set.
    """
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    short = (
        "--samplers=gwg",
        *SHORT,
        f"--config.experiment.save_root={tmp_path / 'out'}",
        "--overwrite",
    )
    assert "mis/satlib is not random, so it must be given" in refusal(
        "run", *chosen_configs("mis/satlib"), *short
    )
    said = refusal("run", *chosen_configs("maxcut/ba"), *short)
    assert "--config is for maxcut/ba, but --model_config for mis/ba;" in said
    said = refusal("run", *chosen_configs(), "--model_config.graph_type=ertest", *short)
    assert "--config is for mis/er_density, but --model_config for mis/ertest;" in said
    file = (
        tmp_path / "mis" / "satlib.py"
    )  # as in a checkout of DISCS, whose configs do not name the set
    file.parent.mkdir()
    text = "from sl_discs.experiment.settings import experiment_config as get_config"
    file.write_text(text)
    said = refusal(
        "run", f"--config={file}", chosen_configs()[1], "--model_config.graph_type=ertest", *short
    )
    assert "--config is for mis/satlib, but" in said
    (tmp_path / "any.py").write_text(text)
    anywhere = f"--config={tmp_path / 'any.py'}"
    assert "neither config names a graph_type" in refusal(
        "run", anywhere, chosen_configs()[1], *short
    )
    for configs, name in (
        (chosen_configs("maxcut/er", "maxcut"), "maxcut/er/r-er-0.15-n-256-300"),
        (chosen_configs("mis/er_density", "vertex_cover"), "vertex_cover/er_density/r-0.10"),
        ((anywhere, chosen_configs()[1], *(f"--model_config.{one}" for one in RB)), "mis/rb/r-200"),
    ):  # fmt: skip
        code, out, err = command("run", *configs, *short)
        assert code == 0 and out.startswith(f"{name}: "), err


@pytest.mark.parametrize(
    "file", sorted((ROOT / "configs" / "experiment").glob("*/*.py")), ids=lambda file: file.stem
)
def test_every_experiment_config_is_for_the_set_of_its_folder_and_name(file):
    named = runpy.run_path(str(file))["get_config"]().model.to_dict()
    assert (named["name"], named["graph_type"]) == (file.parent.name, file.stem)
    find_family(named["name"], named["graph_type"], named["cfg_str"])


SIX = "--samplers=gwg,path_auxiliary,dmala,sl_gwg,sl_path_auxiliary,sl_dmala"


@pytest.mark.skipif(not DATA.is_dir(), reason="the folder of real instances is not there")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "graph_type", "more", "least"),
    [
        ("maxcut", "optsicom", "--model_config.cfg_str=r-b", 10),
        ("maxclique", "twitter", "--config.experiment.num_instances=100", 99),
    ],
)
def test_known_optima(tmp_path, problem, graph_type, more, least):
    """GWG, PAS, DMALA and their variants cut all Optsicom grids, and 99 of 100 ego networks,
    optimally.
    """
    where = f"--model_config.graph_type={graph_type}", f"--model_config.data_root={DATA}"
    run(SIX, *where, more, folder=tmp_path, configs=(f"{problem}/{graph_type}", problem))
    for sampler in results_in(tmp_path)["samplers"].values():
        assert (
            sum(instance["best"] == instance["reference"] for instance in sampler["instances"])
            >= least
        )
