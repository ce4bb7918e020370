"""Whole runs of DISCS with the plugin's samplers: models, devices, plots; skipped without a
checkout.
"""

import importlib
import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import jax
import networkx as nx
import numpy as np
import pytest
import yaml
from ml_collections import ConfigDict
from programs import sl_discs
from test_upstream import SAMPLERS

from sl_discs.discs_plugin import modules
from sl_discs.samplers.registry import BUILT_IN, base_samplers, registered
from sl_discs.support.errors import InputError

pytestmark = pytest.mark.usefixtures("quickly_compiled")

ROOT = Path(__file__).parents[2]
# All models of DISCS that need no download, on small data: combinatorial ones with a family of
# graphs, others with fields of their config.
FAMILIES = {
    "mis": ("er_density", "r-0.20"),
    "maxcut": ("ba", "r-ba-4-n-16-20"),
    "maxclique": ("rb", "_"),
    "normcut": ("nets", "r-path"),
}
FIELDS = {
    "ising": {"shape": (4, 4)},
    "bernoulli": {"shape": (16,)},
    "categorical": {"shape": (8,)},
    "potts": {"shape": (4, 4)},
    "fhmm": {"shape": (8, 4)},
    "rbm": {"data_path": "rbm", "num_categories": 2},
    "resnet": {"data_path": "resnet"},
}
# Less padding than in DISCS, which pads RB to 512 graphs of 90,585 edges.
SMALL = {"num_models": 4}
SMALL_RB = SMALL | {"max_num_nodes": 25, "max_num_edges": 300, "num_instances": 4}
SEVERAL_VALUES = ("categorical", "potts", "normcut")
BASES = [name for name in base_samplers() if name in BUILT_IN]
NO_SEVERAL_VALUES = (
    "locallybalanced",
    *(f"sldiscs_{name}" for name in BASES if not registered(name).build({}).several_values),
)
NAMES = [
    *(f"sl_{name}" for name in SAMPLERS),
    *(f"{prefix}sldiscs_{name}" for name in BASES for prefix in ("sl_", "")),
]


def write_weights(root):
    """Writes parameters of a restricted Boltzmann machine and of a network, as DISCS's training
    does.
    """
    for name, fields in (
        ("rbm", {"shape": (16,), "num_visible": 16, "num_hidden": 4}),
        ("resnet", {"shape": (16,), "image_shape": (4, 4), "n_channels": 2}),
    ):
        config = ConfigDict({"model": fields | {"num_categories": 2}})
        model = importlib.import_module(f"discs.models.{name}").build_model(config)
        params = dict(model.make_init_params(jax.random.PRNGKey(0))) | {
            "data_mean": np.full(16, 0.5)
        }
        folder = root / name
        folder.mkdir()
        (folder / "params.pkl").write_bytes(pickle.dumps({"params": params}))
        (folder / "config.yaml").write_text(yaml.dump(config))


def write_graphs(root):
    graphs = [nx.gnp_random_graph(20 + k, 0.2, seed=k) for k in range(4)]
    weighted = [nx.barabasi_albert_graph(18 + k % 3, 4, seed=k) for k in range(4)]
    for graph in weighted:
        nx.set_edge_attributes(graph, 1.0, "weight")
    files = {
        "er_700_800/ER-700-800-0.20.pkl": pickle.dumps(graphs),
        "maxcut-ba/maxcut-ba-4-n-16-20/test-0.pkl": b"".join(
            pickle.dumps((g, (40.0,))) for g in weighted
        ),
        "RB_test/RB_0.pkl": pickle.dumps([(5, graph) for graph in graphs]),
        "nets/path.pkl": pickle.dumps(nx.path_graph(9)),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture
def run_discs(discs, tmp_path, monkeypatch):
    """Calls the main function of DISCS with configs in place of its flags; returns the folder of
    the results.
    """

    def run_discs(model, sampler):
        def config(name):
            return importlib.import_module(f"discs.{name}").get_config()

        monkeypatch.chdir(tmp_path)
        folder = tmp_path / f"{model}-{sampler}"
        experiment, of_model = config("common.configs"), config(f"models.configs.{model}_config")
        of_sampler = config(f"samplers.configs.{sampler}_config")
        of_sampler.update({"K": 4, "n_min": 2} if sampler.startswith("sl_") else {})
        if model in FAMILIES:
            kind, text = FAMILIES[model]
            of_model.update({"graph_type": kind, "cfg_str": text, "data_root": str(tmp_path)})
            family = importlib.import_module(f"discs.models.configs.{model}.{kind}")
            padded = family.get_model_config(text)
            if model != "normcut":
                padded.update(SMALL_RB if kind == "rb" else SMALL)
            monkeypatch.setattr(family, "get_model_config", lambda text: padded)
            experiment = config(f"experiment.configs.{model}.{kind}")
        else:
            of_model.update(FIELDS[model])
        small = {
            "batch_size": 4,
            "chain_length": 20,
            "log_every_steps": 5,
            "save_root": str(folder),
        }
        experiment.experiment.update(small)
        main = importlib.import_module("discs.experiment.main_sampling")
        flags = {
            "_EXPERIMENT_CONFIG": experiment,
            "_MODEL_CONFIG": of_model,
            "_SAMPLER_CONFIG": of_sampler,
        }
        for name, value in (flags | {"_RUN_LOCAL": False}).items():
            monkeypatch.setattr(main, name, SimpleNamespace(value=value))
        main.main([])
        return folder

    write_graphs(tmp_path)
    write_weights(tmp_path)
    return run_discs


def test_all_names_take_the_keys_that_discs_gives(discs):
    """For a combinatorial problem one key, under `jax.vmap`; for others the batch of keys of its
    models, as it is.
    """
    assert set(NAMES) <= set(modules.sampler_names())
    keys = jax.random.split(jax.random.PRNGKey(0), 1)
    config = importlib.import_module("discs.common.configs").get_config()
    config.model.update({"name": "ising", "shape": (4, 4), "num_categories": 2})
    for name in NAMES:
        config.sampler = importlib.import_module(
            f"discs.samplers.configs.{name}_config"
        ).get_config()
        sampler = importlib.import_module(f"discs.samplers.{name}").build_sampler(config)
        for_one, for_all = sampler.make_init_state(keys), jax.vmap(sampler.make_init_state)(keys)
        jax.tree.map(
            lambda one, many: np.testing.assert_array_equal(one, many[0]), for_one, for_all
        )


def pairs():
    """Every sampler on every model; by default each model once, with another sampler."""
    models = [*FAMILIES, *FIELDS]
    default = dict(zip(models, NAMES[len(SAMPLERS) :], strict=False))
    for model in models:
        for sampler in NAMES:
            yield pytest.param(
                model, sampler, marks=() if default[model] == sampler else pytest.mark.slow
            )


@pytest.mark.parametrize(("model", "sampler"), list(pairs()))
def test_every_sampler_runs_on_every_model(run_discs, model, sampler):
    """But for those without a form for several values, and Gibbs on a model whose gradients are no
    gains.
    """
    base = sampler.removeprefix("sl_")
    has_no_form = base in NO_SEVERAL_VALUES and model in SEVERAL_VALUES
    if has_no_form or (base == "sldiscs_gibbs" and model == "normcut"):
        with pytest.raises(InputError, match=sampler):
            run_discs(model, sampler)
        return
    folder = run_discs(model, sampler)
    if model in FAMILIES:
        results = pickle.loads((folder / "results.pkl").read_bytes())
        count = 1 if model == "normcut" else SMALL["num_models"]
        assert results["trajectory"].shape == (4, count)
        assert np.isfinite(results["best_ratio"]).all()
    else:
        assert "ESS" in (folder / "results.csv").read_text()


def command(discs, folder, *arguments, own=False, **variables):
    """`sl-discs discs ...`, or with `own` `sl-discs ...`, in a process of its own."""
    words = [*([] if own else ["discs"]), *arguments]
    return sl_discs(*words, cwd=folder, path=[discs.parent], MPLBACKEND="Agg", **variables)


@pytest.mark.slow
def test_results_open_in_the_plotting_scripts(discs, run_discs, tmp_path):
    """As sweeps leave them; the localized sampler has its own line, colour and row.

    What a name lacks is in the run's config.yaml, and what is no run is left out.
    """
    sweep = tmp_path / "discs-mis-test"
    sweep.mkdir()
    for number, sampler in enumerate(("gwg", "sl_gwg", "sl_path_auxiliary"), start=1):
        folder = run_discs("mis", sampler)
        assert (pickle.loads((folder / "results.pkl").read_bytes())["best_ratio"] >= 5).all()
        more = "log_every_steps=5" if number == 1 else "chain_length=20"
        folder.rename(sweep / f"{number}_name='{sampler}',cfg_str='r-0.20',{more}")
    (sweep / "collect.csv").touch()
    (sweep / "slurm").mkdir()
    root = "--gcs_results_path=./discs-mis-test"
    done = command(discs, tmp_path, "plot", "plot_co_through_time", root, "--graphtype=mis")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("'log_every_steps': '5', 'chain_length': '20'") == 2 * 3
    assert "IDs:  [[0, 1, 2]]" in done.stdout
    assert "\nsaved plots/discs-mis-test/Steps_" in done.stdout
    bars = "plot", "plot_results", root, "--evaluation_type=co", "--key=name"
    done = command(discs, tmp_path, *bars)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "plots").rglob("*.png"))) == 2
    (table,) = (tmp_path / "co_csv").rglob("*.csv")
    assert [row.partition(",")[0] for row in table.read_text().splitlines()[1:]] == [
        "gwg",
        "sl_gwg",
        "sl_pas",
    ]
    assert f"saved {table.relative_to(tmp_path)}" in done.stdout
    (tmp_path / "discs-empty").mkdir()
    done = command(discs, tmp_path, *bars[:2], "--gcs_results_path=./discs-empty")
    assert done.returncode == 2
    assert "./discs-empty: no folder of a run, such as 1_name=" in done.stderr


GRAPHS = ("graph_type=er_density", "cfg_str=r-0.20", "data_root=.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "experiment", "fields", "headline"),
    [
        ("mis", "experiment/configs/mis/er_density.py", GRAPHS, r"best value \d+\.\d+, "),
        (
            "ising",
            "common/configs.py",
            ["shape=(4, 4)"],
            "its effective sample size has no meaning",
        ),
    ],
)
def test_chains_and_graphs_on_several_devices(discs, tmp_path, model, experiment, fields, headline):
    """DISCS maps over devices: graphs of MIS, chains of Ising."""
    write_graphs(tmp_path)
    sizes = {"batch_size": 8, "chain_length": 20, "log_every_steps": 5, "save_root": "out"}
    arguments = [
        f"--config=discs/{experiment}", f"--model_config=discs/models/configs/{model}_config.py",
        *(f"--model_config.{field}" for field in fields),
        "--sampler_config=discs/samplers/configs/sl_path_auxiliary_config.py", "--sampler_config.K=4",
        *(f"--config.experiment.{name}={value}" for name, value in sizes.items()),
    ]  # fmt: skip
    devices = "--xla_force_host_platform_device_count=4"
    done = command(discs, tmp_path, "main", *arguments, XLA_FLAGS=devices)
    assert done.returncode == 0, done.stderr
    assert "saved out/results." in done.stdout and re.search(headline, done.stdout)
    note = (
        "has 4 graphs here: batches are of 4 (num_models; DISCS's config: 32), and sizes are "
        "read from the files"
    )
    assert (note in done.stderr) == (model == "mis")
