"""The plugin on the real DISCS; skipped where no checkout is importable.

Seeds are fixed. Statistical tests fail a correct sampler with probability 1e-6; bounds on total variation are stated.
"""

import functools
import importlib
import os
import pickle
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from ml_collections import config_dict
from test_own import Tilting

from sl_discs.discs_plugin import borrowed, upstream
from sl_discs.discs_plugin.base_sampler import BaseSampler
from sl_discs.discs_plugin.fixes import chosen_fixes
from sl_discs.discs_plugin.localized_sampler import LocalizedSampler
from sl_discs.experiment.run import run_methods
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.registry import build_sampler, sampler_fields
from sl_discs.testing import ConformanceError, all_states, check_case, standard_cases, total_variation
from sl_discs.testing.enumeration import Law

SAMPLERS = (
    "blockgibbs", "dlmc", "dmala", "gibbs", "gwg", "hammingball", "locallybalanced", "path_auxiliary", "randomwalk",
)  # fmt: skip
FIXED_STEP = {"adaptive": False}
SYSTEMATIC = ("blockgibbs", "gibbs", "hammingball")


def base_sampler(name, shape, fixes=False, combinatorial=True, **fields):
    config = config_dict.ConfigDict(
        {
            "sampler": upstream.sampler_config(name).to_dict() | fields,
            "model": {"name": "test", "shape": shape, "num_categories": 2},
            "experiment": {"co_opt_prob": combinatorial},
        }
    )
    return BaseSampler(name, upstream.build_upstream_sampler(name, config), shape, chosen_fixes(fixes))


def check(name, case, fixes=False, **fields):
    sampler = base_sampler(name, (case.model.num_sites,), fixes, **fields)
    if case.params.tilt is not None:
        sampler = Tilting(sampler)
    check_case(sampler, case, reversible=name not in SYSTEMATIC, batches=2**13)


def test_the_list_of_samplers(discs):
    assert tuple(upstream.sampler_names()) == SAMPLERS


EXACT = [
    ("gwg", FIXED_STEP),
    ("gwg", FIXED_STEP | {"num_flips": 3}),
    ("path_auxiliary", FIXED_STEP),
    ("path_auxiliary", FIXED_STEP | {"num_flips": 3}),
    ("dmala", FIXED_STEP),
    ("dlmc", FIXED_STEP),
    ("randomwalk", FIXED_STEP),
    ("blockgibbs", {}),
    ("gibbs", {}),
]


@pytest.mark.parametrize(("name", "fields"), EXACT)
def test_exact_samplers_stay_exact_under_the_tilt(discs, name, fields):
    check(name, standard_cases()[1], **fields)


@pytest.mark.parametrize("name", ["gwg", "path_auxiliary"])
def test_samplers_that_honour_the_mask(discs, name):
    check(name, standard_cases()[2], **FIXED_STEP)


MENDED = [
    *EXACT,
    ("dmala", {}),
    ("dlmc", {}),
    ("dlmc", {"solver": "euler_forward"}),
    ("hammingball", {"block_size": 5}),
]


@pytest.mark.parametrize("case", [1, 2], ids=["tilted", "cold, tilted, masked"])
@pytest.mark.parametrize(("name", "fields"), MENDED)
def test_with_fixes_the_target_is_invariant(discs, name, fields, case):
    check(name, standard_cases()[case], fixes=True, **fields)


@pytest.mark.parametrize(
    ("name", "case", "law"),
    [
        ("dmala", 4, "not invariant"),
        ("hammingball", 1, "not invariant"),
        ("locallybalanced", 0, "not invariant"),
        ("dmala", 2, "outside the mask"),
        ("dlmc", 2, "outside the mask"),
        ("randomwalk", 2, "outside the mask"),
        ("blockgibbs", 2, "outside the mask"),
        ("hammingball", 2, "outside the mask"),
        ("gibbs", 2, "outside the mask"),
    ],
)
def test_laws_that_break_without_fixes(discs, name, case, law):
    with pytest.raises(ConformanceError, match=law):
        check(name, standard_cases()[case], **({"block_size": 5} if name == "hammingball" else {}))


def upstream_model(name, **fields):
    module = importlib.import_module(f"discs.models.{name}")
    model = module.build_model(config_dict.ConfigDict({"model": fields}))
    return model, model.make_init_params(jax.random.PRNGKey(0))


def play(sampler, model, params, x, steps):
    def step(carry, number):
        x, state = carry
        x, state, _ = sampler.step(model, jax.random.fold_in(jax.random.PRNGKey(1), number), x, params, state)
        return (x, state), x

    state = sampler.make_init_state(jax.random.PRNGKey(0))
    return jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(steps)))((x, state))


def ising_law(shape):
    model, params = upstream_model("ising", shape=shape, lambdaa=0.3, init_sigma=0.3, mu=0.2)
    states = all_states(int(np.prod(shape)))
    values = model.forward(params, jnp.asarray(states.reshape(-1, *shape), jnp.float32))
    weights = np.exp(np.asarray(values, np.float64))
    return model, params, Law(states, weights / weights.sum())


@pytest.mark.parametrize("name", ["randomwalk", "blockgibbs", "gibbs"])
def test_whole_couplings_of_ising(discs, name):
    """On integer states DISCS's Ising model cuts its couplings; noise alone is 0.02."""
    model, params, law = ising_law((2, 3))
    x = jnp.asarray(law.sample(np.random.default_rng(0), 2**15).reshape(-1, 2, 3), jnp.int32)
    distances = []
    for fixes in (False, True):
        sampler = base_sampler(name, (2, 3), fixes, False, **({"adaptive": False} if name == "randomwalk" else {}))
        (x_end, _), _ = play(sampler, model, params, x, 40)
        distances.append(total_variation(np.asarray(x_end).reshape(-1, 6), law))
    assert distances[0] > 0.2 and distances[1] < 0.04


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("model_name", ["ising", "bernoulli"])
def test_without_tilt_it_is_the_base_sampler(discs, name, model_name):
    shape = (3, 4) if model_name == "ising" else (12,)
    fields = {"lambdaa": 0.3, "mu": 0.2} if model_name == "ising" else {}
    model, params = upstream_model(model_name, shape=shape, init_sigma=0.5, **fields)
    base = base_sampler(name, shape, combinatorial=False)
    localized = LocalizedSampler(base, Localization(K=8, sigma=1e30), 60, 5, shape)
    x = model.get_init_samples(jax.random.PRNGKey(2), 5)
    (_, state), plain = play(base, model, params, x, 60)
    (_, localized_state), visited = play(localized, model, params, x, 60)
    np.testing.assert_array_equal(plain, visited)
    # The sampler's own scale is a mean over chains, whose order of summation the compiler may choose.
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5), state, localized_state["base"])


def test_the_regular_form_changes_nothing(discs):
    """`BaseSampler` visits what DISCS's own object visits, called as DISCS calls it."""
    model, params = upstream_model("bernoulli", shape=(12,), init_sigma=0.5)
    x = model.get_init_samples(jax.random.PRNGKey(2), 5)
    for name in SAMPLERS:
        if name == "locallybalanced":
            continue  # DISCS's own cannot be called with this model
        base = base_sampler(name, (12,), combinatorial=False)
        regular, raw = x, x
        state, raw_state = base.make_init_state(None), base._sampler.make_init_state(None)
        raw_step, step = (jax.jit(functools.partial(one.step, model)) for one in (base._sampler, base))
        for number in range(20):
            key = jax.random.PRNGKey(number)
            regular, state, _ = step(key, regular, params, state)
            raw, raw_state, _ = raw_step(key, raw, params, raw_state)
            np.testing.assert_array_equal(regular, raw, err_msg=name)


FINE = Localization(K=64, sigma=1.0, grid="log_snr", eps=1e-2, eps_end=1e-2, budget="identical", mc_ratio=0.75)


@pytest.mark.parametrize("name", ["gwg", "path_auxiliary", "dmala", "dlmc", "gibbs"])
def test_localized_samples_have_the_law(discs, name):
    """Bound 0.08: noise of 6,000 samples of 64 states is 0.04."""
    model, params, law = ising_law((2, 3))
    sampler = LocalizedSampler(base_sampler(name, (2, 3), True, False), FINE, 1_600, 6_000, (2, 3))
    (_, state), _ = play(sampler, model, params, jnp.zeros((6_000, 2, 3), jnp.int32), 1_600)
    assert total_variation(np.asarray(sampler.final_sample(state)).reshape(-1, 6), law) < 0.08


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


def test_one_run_of_discs(discs, tmp_path, monkeypatch):
    """The quick one of the above, and its results in DISCS's format."""
    write_graphs(tmp_path)
    small_family(monkeypatch, "discs.models.configs.mis.er_density", num_models=4)
    folder = run_discs(tmp_path, "mis", "sl_path_auxiliary")
    results = pickle.loads((folder / "results.pkl").read_bytes())
    assert set(results) == {"trajectory", "best_ratio", "running_time", "best_ratio_mean"}
    assert (results["best_ratio"] >= 5).all()


def test_results_open_in_the_plotting_scripts(discs, tmp_path, monkeypatch):
    """As sweeps leave them; the localized sampler has its own line, colour and row."""
    write_graphs(tmp_path)
    small_family(monkeypatch, "discs.models.configs.mis.er_density", num_models=4)
    sweep = tmp_path / "discs-mis-test"
    sweep.mkdir()
    for number, sampler in enumerate(("gwg", "sl_gwg", "sl_path_auxiliary"), start=1):
        folder = run_discs(tmp_path, "mis", sampler)
        folder.rename(sweep / f"{number}_name='{sampler}',cfg_str='r-0.20',log_every_steps=5")
    environment = os.environ | {"PYTHONPATH": str(discs.parent), "JAX_PLATFORMS": "cpu", "MPLBACKEND": "Agg"}
    for script, options in {
        "plot_co_through_time": ["--graphtype=mis"],
        "plot_results": ["--evaluation_type=co", "--key=name"],
    }.items():
        command = [
            sys.executable,
            "-m",
            "sl_discs.discs_plot",
            script,
            "--gcs_results_path=./discs-mis-test",
            *options,
        ]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "plots").rglob("*.png"))) == 2
    rows = next((tmp_path / "co_csv").rglob("*.csv")).read_text().splitlines()
    assert [row.partition(",")[0] for row in rows[1:]] == ["gwg", "sl_gwg", "sl_pas"]


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
    environment = os.environ | devices | {"PYTHONPATH": str(discs.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "saved out/results." in done.stdout
    headline = {"mis": r"best ratio \d+\.\d+, mean of", "ising": r"effective sample size \d+\.\d+, mean"}[model]
    assert re.search(headline, done.stdout)


@pytest.mark.parametrize("name", ["discs:gwg", "sl:discs:hammingball", "sl:discs:dlmc"])
def test_samplers_of_discs_in_this_projects_runner(discs, name):
    borrowed.borrow_samplers()
    borrowed.borrow_samplers()  # does nothing
    fields = {"name": name, "fixes": True} | ({"K": 8} if name.startswith("sl:") else {})
    method = build_method(fields, num_chains=4)
    dataset = load_dataset("mis", "er_density", "r-0.05", None, num_instances=1)
    settings = Settings(batch_size=4, chain_length=60, log_every_steps=20)
    records = run_methods("mis", dataset, 1.0001, [method], settings, lambda *_: None)
    assert records[name].instances[0].feasible and records[name].instances[0].best >= 40


def test_borrowed_samplers_pass_the_conformance_suite(discs):
    borrowed.borrow_samplers()
    sampler = build_sampler("discs:dmala", {"fixes": True} | sampler_fields("discs:dmala") | {"fixes": True}, 4)
    check_case(sampler, standard_cases()[2], batches=2**13)
