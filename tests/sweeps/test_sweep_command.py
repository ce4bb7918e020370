"""The command: which programs it starts, and what it shows and collects."""

import csv
import importlib.util
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from sl_discs.commands.run import check_flags
from sl_discs.experiment import sweep_runs
from sl_discs.experiment.sweep_file import (
    check_runnable,
    command_line,
    left_out,
    parse_extra,
    read_sweep,
    run_arguments,
    with_overrides,
)
from sl_discs.experiment.sweep_runs import Run
from sl_discs.support import own_code
from sl_discs.support.errors import InputError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "configs" / "sweep" / "seeds_and_samplers.py"
SWEEP = """
from ml_collections import config_dict

def get_config():
    return config_dict.ConfigDict({{
        "model": "mis",
        "graph_type": "er_density",
        "sampler": "gwg",
        "sweep": [{{"sampler_config.name": ["gwg", "sl_gwg"], {more} "config.experiment.num_models": [2]}}],
    }})
"""


def sweep_of(folder, more, base="gwg"):
    path = folder / "sweep.py"
    path.write_text(SWEEP.format(more=more).replace("gwg", base))
    return read_sweep(path)


def checked(sweep, extra=()):
    sweep = with_overrides(sweep, parse_extra(extra))
    numbers = range(1, len(sweep.runs) + 1)
    arguments = [run_arguments(sweep, k, None, parse_extra(extra)) for k in numbers]
    check_runnable(sweep, numbers, arguments)
    for given in arguments:
        check_flags(command_line(given, Path("out")))
    return arguments


def test_flags_of_a_run(tmp_path, monkeypatch):
    """Configs are found from anywhere, and others only where they are named."""
    sweep = sweep_of(tmp_path, '"model_config.cfg_str": ["r-0.05"],')
    _, flags = checked(sweep, ["--config.experiment.seed=3", "--engine=reference"])
    monkeypatch.chdir(tmp_path)
    for flag in ("config", "model_config", "sampler_config"):
        other = tmp_path / flags[flag]
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("1 / 0")
        named = command_line(flags, Path("out"), {flag})
        assert f"--{flag}={flags[flag]}" in named
        assert f"--{flag}={ROOT}/{flags[flag]}" in command_line(flags, Path("out"))
    assert named[-1] == "--config.experiment.save_root=out"
    assert flags["sampler_config"] == "configs/sampler/sl_gwg_config.py"
    assert flags["config.experiment.seed"] == "3" and flags["engine"] == "reference"
    assert left_out(sweep) == ["config.experiment.num_models"]
    assert not any("num_models" in flag or flag == "sampler_config.name" for flag in flags)


def test_folders_of_many_settings_have_names_that_can_be_written(tmp_path):
    many = "".join(f'"sampler_config.field{k}": ["é" * 10],' for k in range(30))
    sweep = sweep_of(tmp_path, many)
    folders = [tmp_path / sweep.folder(number) for number in range(1, len(sweep.runs) + 1)]
    for folder in folders:
        folder.mkdir()
    assert len({folder.name for folder in folders}) == len(folders) > 1
    assert "field4='éé" in folders[0].name


@pytest.mark.usefixtures("own_samplers")
def test_a_sampler_of_ones_own_is_imported_by_every_run(tmp_path, command, monkeypatch):
    monkeypatch.setattr(own_code, "_IMPORTED", {})
    own = tmp_path / "own_gwg.py"
    own.write_text(
        "from sl_discs.samplers import register_sampler\nfrom sl_discs.samplers.path import GWG\n"
        "register_sampler('own_gwg', GWG)\n"
    )
    sweep_of(tmp_path, '"model_config.cfg_str": ["r-0.05"],', "own_gwg")
    code, out, err = command(
        "sweep", "run", "--dry_run", f"--sweep={tmp_path / 'sweep.py'}", f"--import={own}"
    )
    assert code == 0 and out.count(f"--import={own} ") == 2, err
    assert "/own_gwg_config.py " in out and "/sl_own_gwg_config.py " in out


def test_every_sweep_of_discs_on_our_problems():
    spec = importlib.util.find_spec("discs")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("needs a checkout of google-research/discs on PYTHONPATH")
    folder = Path(spec.submodule_search_locations[0]) / "run_configs" / "co"
    counts = {}
    for problem in ("mis", "maxcut", "maxclique"):
        for path in sorted((folder / problem).glob("*.py")):
            with pytest.raises(InputError):
                checked(read_sweep(path))
            ours = read_sweep(path, ["dlmc", "dmala", "gwg", "path_auxiliary"])
            counts[f"{problem}/{path.stem}"] = len(checked(ours))
    assert sum(counts.values()) == 200 and counts["mis/er_density_sampler_sweep"] == 20, counts
    for path in (folder / "normcut").glob("*.py"):
        with pytest.raises(InputError):
            checked(read_sweep(path))


def finished_runs(root, numbers):
    """Runs of the example, of which some have results: made-up ones."""
    sweep = read_sweep(EXAMPLE)
    runs = [
        Run(k, sweep.label(k), root / sweep.folder(k), run_arguments(sweep, k, None, {}))
        for k in range(1, 13)
    ]
    for run in runs:
        if run.number in numbers:
            run.folder.mkdir(parents=True)
            note = {"number": run.number, "arguments": run.arguments}
            (run.folder / "run.json").write_text(json.dumps(note))
            best = [10 + run.number + i * (1 + (run.number > 6)) for i in range(2)]
            instances = [{"name": str(i), "best": one} for i, one in enumerate(best)]
            values = {"mean": np.mean(best), "std": np.std(best)}
            values["chain_steps_per_s"] = 1e5 / run.number
            samplers = {sweep.sampler_of(run.number): {"instances": instances} | values}
            content = {"samplers": samplers, "versions": {"jax": 1 + (run.number > 6)}}
            run.results.write_text(json.dumps(content | {"engine": "reference"}))
    return sweep, runs


def test_the_table_has_what_the_results_have(tmp_path):
    """Localized samplers stand beside their bases of the same seed, whatever K is, with the paired
    difference.
    """
    with pytest.raises(InputError):
        sweep_runs.collect(*finished_runs(tmp_path, set()), tmp_path)
    lines = sweep_runs.collect(*finished_runs(tmp_path, {1, 2, 7}), tmp_path)
    found = json.loads((tmp_path / "collect.json").read_text())
    assert [tuple(row.values()) for row in found["rows"]] == [
        (1, "gwg", 0, None, 11.5, 0.5, 2, 1e5, "reference"),
        (2, "gwg", 1, None, 12.5, 0.5, 2, 5e4, "reference"),
        (7, "sl_gwg", 0, 64, 18.0, 1.0, 2, 1e5 / 7, "reference"),
    ]
    with (tmp_path / "collect.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in read] == [row["mean"] for row in found["rows"]]
    titles = ["run", "sampler", "seed", "K", "mean", "std", "n", "chain_steps_per_s", "engine"]
    assert lines[0].split() == titles
    assert "9 of 12 runs are not done" in lines[-3] and sum("6.5" in line for line in lines) == 1
    assert lines[-2] == "runs 7 had other versions than run 1: jax 2 there, 1 here"
    [pair] = found["pairs"]
    columns = ("run", "base run", "difference", "se", "n")
    assert [pair[name] for name in columns] == [7, 1, 6.5, 0.5, 2]


def test_the_states_as_a_table(tmp_path):
    sweep, runs = finished_runs(tmp_path, range(3, 12))
    runs[0].folder.mkdir()
    (runs[0].folder / "failed.json").write_text(json.dumps({"message": "error: no"}))
    lines = sweep_runs.status_lines(sweep, runs)
    states = [line.split()[-1] for line in lines[1:13]]
    assert states == ["failed", "missing", *["done"] * 9, "missing"]
    assert lines[-2:] == ["run 1 failed: error: no", "12 in total: 9 done, 1 failed, 2 missing"]


def test_jobs_perform_the_runs_of_the_same_sweep(tmp_path, command):
    """With --dry_run, their line prints the runs that are missing; nothing is written."""
    flags = f"--sweep={EXAMPLE}", f"--save_root={tmp_path / 'out'}", "--samplers=gwg,sl_gwg"

    def printed(*words):
        code, out, err = command("sweep", "run", *words, "--dry_run", "--", "--engine=cpu")
        assert code == 0, err
        return out.splitlines()

    runs = printed(*flags)
    assert len(runs) == 6 and printed(*flags, "--sweep_index=3") == [runs[2]]
    assert all(run.startswith("sl-discs run --config=") and " --engine=cpu " in run for run in runs)
    for which, wanted, jobs in (
        ([], runs, 6),
        (["--sweep_index=3"], [runs[2]], 1),
        (["--parallel=2"], runs, 2),
    ):
        script = printed(*flags, *which, "--executor=slurm")
        assert f"#SBATCH --array=1-{jobs}" in script
        [line] = [line for line in script if line.endswith(" -- --engine=cpu &")]
        words = shlex.split(line.removesuffix(" &"))
        assert words[1] == "-P" and words[4:6] == ["sweep", "run"] and "--executor" not in line
        assert printed(*words[6:-2]) == wanted
    assert list(tmp_path.iterdir()) == []


def test_one_run_from_the_command_line(tmp_path, command, monkeypatch):
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    arguments = [f"--sweep={EXAMPLE}", f"--save_root={tmp_path / 'out'}"]
    fields = "chain_length=200", "batch_size=2"
    short = ["--engine=reference", *(f"--config.experiment.{one}" for one in fields)]
    monkeypatch.chdir(tmp_path)  # a folder without configs, whose files are no modules
    (tmp_path / "csv.py").write_text("raise SystemExit('imported')")
    code, out, err = command("sweep", "run", *arguments, "--sweep_index=5", "--", *short)
    assert code == 0, out + err
    assert "1 of 1 runs are done" in out
    code, out, err = command("sweep", "collect", *arguments, "--", *short)
    assert code == 0 and "11 of 12 runs are not done" in out, err
    (row,) = json.loads((tmp_path / "out" / "collect.json").read_text())["rows"]
    (path,) = (tmp_path / "out").glob("5_*/results.json")
    results = json.loads(path.read_text())
    saved = results["samplers"]["path_auxiliary"]
    assert row == {
        "run": 5, "sampler": "path_auxiliary", "seed": 1, "K": None, "mean": saved["mean"], "std": saved["std"],
        "n": 2, "chain_steps_per_s": saved["chain_steps_per_s"], "engine": "reference",
    }  # fmt: skip
    assert results["seed"] == 1 and results["config"]["experiment"]["chain_length"] == 200
