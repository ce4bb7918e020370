"""Whole runs of the real DISCS with the plugin's samplers: models, devices, plots; skipped without a checkout."""

import importlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from test_upstream import SAMPLERS

ROOT = Path(__file__).parents[2]


def small_family(monkeypatch, module, **sizes):
    """The family's config with less padding; DISCS's own pads RB to 512 graphs of 90,585 edges."""
    family = importlib.import_module(module)
    original = family.get_model_config

    def get_model_config(cfg_str):
        config = original(cfg_str)
        config.update(sizes)
        return config

    monkeypatch.setattr(family, "get_model_config", get_model_config)


def write_graphs(root):
    graphs = [nx.gnp_random_graph(20 + k, 0.2, seed=k) for k in range(4)]
    weighted = [nx.barabasi_albert_graph(18 + k % 3, 4, seed=k) for k in range(4)]
    for graph in weighted:
        nx.set_edge_attributes(graph, 1.0, "weight")
    files = {
        "er_700_800/ER-700-800-0.20.pkl": pickle.dumps(graphs),
        "maxcut-ba/maxcut-ba-4-n-16-20/test-0.pkl": b"".join(pickle.dumps((g, (40.0,))) for g in weighted),
        "RB_test/RB_0.pkl": pickle.dumps([(5, graph) for graph in graphs]),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


COMBINATORIAL = {
    "mis": ("er_density", "r-0.20"),
    "maxcut": ("ba", "r-ba-4-n-16-20"),
    "maxclique": ("rb", "_"),
}


def run_discs(tmp_path, model, sampler, **experiment):
    """DISCS's own experiment, put together as its main function does; the folder of its results."""
    common = importlib.import_module("discs.common.configs")
    configs = {
        "model": importlib.import_module(f"discs.models.configs.{model}_config").get_config(),
        "sampler": importlib.import_module(f"discs.samplers.configs.{sampler}_config").get_config(),
    }
    if sampler.startswith("sl_"):
        configs["sampler"].update({"K": 4, "n_min": 2})
    config = common.get_config()
    config.model.update(configs["model"])
    config.sampler.update(configs["sampler"])
    if model in COMBINATORIAL:
        config.model.graph_type, config.model.cfg_str = COMBINATORIAL[model]
        config.model.data_root = str(tmp_path)
        family = importlib.import_module(f"discs.models.configs.{model}.{config.model.graph_type}")
        config.model.update(family.get_model_config(config.model.cfg_str))
        config.experiment.update(
            importlib.import_module("discs.experiment.configs.co_experiment").get_co_default_config()
        )
        annealing = importlib.import_module(f"discs.experiment.configs.{model}.{config.model.graph_type}")
        config.update(annealing.get_config())
        config.experiment.num_models = config.model.num_models
    else:
        config.model.shape = (4, 4) if model == "ising" else (16,)
    config.experiment.update({"batch_size": 4, "chain_length": 20, "log_every_steps": 5} | experiment)
    config.experiment.save_root = str(tmp_path / f"{model}-{sampler}")
    model_object = importlib.import_module(f"discs.models.{model}").build_model(config)
    sampler_object = importlib.import_module(f"discs.samplers.{sampler}").build_sampler(config)
    sampling = importlib.import_module("discs.experiment.sampling")
    experiment_object = getattr(sampling, config.experiment.name)(config)
    evaluator = importlib.import_module(f"discs.evaluators.{config.experiment.evaluator}").build_evaluator(config)
    saver = importlib.import_module("discs.common.experiment_saver").build_saver(config)
    experiment_object.get_results(model_object, sampler_object, evaluator, saver)
    return tmp_path / f"{model}-{sampler}"


LOCALIZED = [*(f"sl_{name}" for name in SAMPLERS), "sl_sldiscs_gwg", "sldiscs_path_auxiliary"]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", LOCALIZED)
@pytest.mark.parametrize("model", ["mis", "maxcut", "maxclique", "ising", "bernoulli"])
def test_every_sampler_runs_on_every_model(discs, tmp_path, monkeypatch, model, sampler):
    write_graphs(tmp_path)
    small_family(monkeypatch, "discs.models.configs.mis.er_density", num_models=4)
    small_family(monkeypatch, "discs.models.configs.maxcut.ba", num_models=4)
    small = {"num_models": 4, "max_num_nodes": 25, "max_num_edges": 300, "num_instances": 4}
    small_family(monkeypatch, "discs.models.configs.maxclique.rb", **small)
    folder = run_discs(tmp_path, model, sampler)
    if model in COMBINATORIAL:
        results = pickle.loads((folder / "results.pkl").read_bytes())
        assert results["trajectory"].shape == (4, 4) and np.isfinite(results["best_ratio"]).all()
    else:
        assert "ESS" in (folder / "results.csv").read_text()


def test_results_open_in_the_plotting_scripts(discs, tmp_path, monkeypatch):
    """As sweeps leave them; the localized sampler has its own line, colour and row."""
    write_graphs(tmp_path)
    small_family(monkeypatch, "discs.models.configs.mis.er_density", num_models=4)
    sweep = tmp_path / "discs-mis-test"
    sweep.mkdir()
    for number, sampler in enumerate(("gwg", "sl_gwg", "sl_path_auxiliary"), start=1):
        folder = run_discs(tmp_path, "mis", sampler)
        results = pickle.loads((folder / "results.pkl").read_bytes())
        assert set(results) == {"trajectory", "best_ratio", "running_time", "best_ratio_mean"}
        assert (results["best_ratio"] >= 5).all()
        folder.rename(sweep / f"{number}_name='{sampler}',cfg_str='r-0.20',log_every_steps=5")
    path = f"{discs.parent}{os.pathsep}{ROOT}"
    environment = os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "MPLBACKEND": "Agg"}
    for script, options in {
        "plot_co_through_time": ["--graphtype=mis"],
        "plot_results": ["--evaluation_type=co", "--key=name"],
    }.items():
        command = [
            sys.executable, "-m", "sl_discs", "discs", "plot", script,
            "--gcs_results_path=./discs-mis-test", *options,
        ]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "plots").rglob("*.png"))) == 2
    rows = next((tmp_path / "co_csv").rglob("*.csv")).read_text().splitlines()
    assert [row.partition(",")[0] for row in rows[1:]] == ["gwg", "sl_gwg", "sl_pas"]

    (sweep / "collect.csv").touch()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2 and "move away what is not, such as collect.csv\n" in done.stderr


@pytest.mark.parametrize("model", ["mis", "ising"])
def test_chains_and_graphs_on_several_devices(discs, tmp_path, model):
    """DISCS maps over devices: graphs of MIS, chains of Ising."""
    write_graphs(tmp_path)
    data = {
        "mis": [
            "--config=discs/experiment/configs/mis/er_density.py", "--model_config.graph_type=er_density",
            "--model_config.cfg_str=r-0.20", f"--model_config.data_root={tmp_path}",
        ],
        "ising": ["--model_config.shape=(4, 4)"],
    }  # fmt: skip
    command = [
        sys.executable, "-m", "sl_discs.discs_main",
        f"--model_config=discs/models/configs/{model}_config.py", *data[model],
        "--sampler_config=discs/samplers/configs/sl_path_auxiliary_config.py", "--sampler_config.K=4",
        "--config.experiment.batch_size=8", "--config.experiment.chain_length=20",
        "--config.experiment.log_every_steps=5", "--config.experiment.save_root=out",
    ]  # fmt: skip
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    environment = os.environ | devices | {"PYTHONPATH": f"{discs.parent}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "saved out/results." in done.stdout
    headline = {"mis": r"best ratio \d+\.\d+, of", "ising": "its effective sample size has no meaning"}[model]
    assert re.search(headline, done.stdout)
