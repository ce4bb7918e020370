"""The sweep files of the real DISCS on combinatorial problems, on tiny graphs; skipped without a
checkout.
"""

import json
import pickle
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from test_upstream_runs import command

from sl_discs.discs_plugin.modules import sampler_config, sampler_names
from sl_discs.experiment.sweep_file import discs_arguments, read_sweep
from sl_discs.instances.dataset import PROBLEMS, find_family
from sl_discs.instances.graph import Graph
from sl_discs.samplers.registry import known_samplers

FILES = (
    "maxclique/rb_sampler_sweep", "maxclique/twitter_sampler_sweep", "maxcut/ba_sampler_sweep",
    "maxcut/er_sampler_sweep", "maxcut/optsicom_sampler_sweep", "mis/er_800_015_penalty", "mis/er_density_penalty",
    "mis/er_density_sampler_sweep", "mis/ertest_sampler_sweep", "mis/satlib_sampler_sweep", "normcut/alexnet",
    "normcut/gap_rand_sampler_sweep", "normcut/inception", "normcut/mnist", "normcut/resnet", "normcut/vgg",
)  # fmt: skip
TINY = {"chain_length": 20, "log_every_steps": 5, "batch_size": 4}
COUNT = 2


def write_graphs(root, model, graph_type, cfg_str):
    """Writes two graphs (of gap_rand five, which DISCS's config fixes) as DISCS reads them."""
    if model == "normcut":
        name = cfg_str.removeprefix("r-")
        folder = root / graph_type / ("test-1000" if graph_type == "gap_rand" else "")
        folder.mkdir(parents=True)
        for k in range(5 if graph_type == "gap_rand" else 1):
            graph = (
                nx.gnp_random_graph(1000, 0.005, seed=k)
                if graph_type == "gap_rand"
                else nx.path_graph(9)
            )
            (folder / (f"{k}.pkl" if graph_type == "gap_rand" else f"{name}.pkl")).write_bytes(
                pickle.dumps(graph)
            )
        return
    files = find_family(model, graph_type, cfg_str).files
    if files.layout is None:
        folder = root / files.folder
        folder.mkdir()
        for k in range(COUNT):
            (folder / f"{k}.cnf").write_text("p cnf 4 3\n1 -2 3 0\n-1 2 4 0\n2 -3 -4 0\n")
        return
    graphs = [
        Graph.from_arrays(f"g{k}", 9 + k, list(nx.cycle_graph(9 + k).edges)) for k in range(COUNT)
    ]
    for k in range(COUNT if files.per_file == 1 else 1):
        path = root / files.folder / files.pattern.replace("*", f"{k}.pkl")
        files.write(path, [graphs[k]] if files.per_file == 1 else graphs)


def test_every_sampler_of_the_plugin_takes_the_fields_of_the_sweeps_of_discs(discs):
    """No run of DISCS's files names a field that a sampler chosen in its place lacks."""
    count = 0
    for path in sorted((discs / "run_configs" / "co").glob("*/*.py")):
        bases = {run.get("sampler_config.name") for run in read_sweep(path).runs}
        names = [name for name in sampler_names() if name.split("_", 1)[1] in bases]
        names += [f"sl_{name}" for name in names if name.startswith("sldiscs_")]
        sweep = read_sweep(path, names)
        for number in range(1, len(sweep.runs) + 1):
            known = sampler_config(sweep.sampler_of(number)).to_dict()
            for argument in discs_arguments(sweep, number, "sco", Path("out")):
                flag = argument.partition("=")[0]
                assert not flag.startswith("--sampler_config.") or flag[17:] in known, argument
                count += 1
    assert count > 1000


def test_these_are_all_of_them(discs):
    found = sorted((discs / "run_configs" / "co").glob("*/*.py"))
    assert [f"{path.parent.name}/{path.stem}" for path in found] == sorted(FILES)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_a_run_of_each_sweep_file_in_discs_and_here(discs, tmp_path, file):
    """In DISCS all graphs run in one batch without padding; here, problems that this project lacks
    are refused.
    """
    name = f"discs/run_configs/co/{file}.py"
    given = [f"--config.experiment.{one}={n}" for one, n in TINY.items()]
    sweep = read_sweep(discs.parent / name)
    write_graphs(
        tmp_path, sweep.model, sweep.graph_type, sweep.runs[0].get("model_config.cfg_str", "_")
    )
    shared = f"--sweep={name}", "--data_root=."
    done = command(discs, tmp_path, "sweep", *shared, "--only=1", "--save_root=there", "--", *given)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "there").iterdir()
    assert all(f"{one}={n}" in folder.name for one, n in TINY.items() if f"{one}=" in folder.name)
    results = pickle.loads((folder / "results.pkl").read_bytes())
    count = {"nets": 1, "gap_rand": 5}.get(sweep.graph_type, COUNT)
    if file == "maxcut/optsicom_sampler_sweep":
        assert "num_models=10" in folder.name
    assert results["best_ratio"].shape == (count,) and np.isfinite(results["best_ratio"]).all()
    # Of the file's samplers, those that this project has, too.
    names = {sweep.sampler_of(number) for number in range(1, len(sweep.runs) + 1)}
    ours = sorted(names.intersection(known_samplers()))
    shared += (f"--samplers={','.join(ours)}",) if ours else ()
    done = command(
        discs,
        tmp_path,
        "sweep",
        "run",
        *shared,
        "--sweep_index=1",
        "--save_root=here",
        "--",
        *given,
        own=True,
    )
    if sweep.model not in PROBLEMS:
        assert done.returncode == 2
        assert "sl-discs discs sweep runs DISCS's other models" in done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (path for path in (tmp_path / "here").iterdir() if path.is_dir())
    (sampler,) = json.loads((folder / "results.json").read_text())["samplers"].values()
    assert len(sampler["instances"]) == COUNT
    assert all(one["feasible"] for one in sampler["instances"])
