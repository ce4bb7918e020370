"""The check of the engine `gpu`: its verdict, checks that go wrong, and the command without a GPU."""

import functools
import gc
import json
import operator
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sl_discs.benchmark.cases import chosen_cases
from sl_discs.benchmark.contenders import Measurement
from sl_discs.benchmark.report import Row

from sl_discs.benchmark import gpu_check, gpu_report
from sl_discs.benchmark.gpu_check import CASES, METHODS, ON_GPU, REQUIRED, Result, Task, plan_tasks, run_tasks
from sl_discs.benchmark.gpu_verdict import judge
from sl_discs.benchmark.worker import Outcome, Worker, call_here
from sl_discs.engines.gpu.engine import Gpu
from sl_discs.samplers.gibbs import Gibbs

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "run_scripts" / "gpu_check.sh"


def all_passed(rates=(("gpu", 300.0), ("reference", 100.0))):
    """Results as of a GPU on which everything is right."""
    results = []
    for task in plan_tasks(ON_GPU, chosen_cases(CASES), [], METHODS, REQUIRED):
        value = None
        if task.part == "bench":
            rate = dict(rates)[task.engine]
            seconds = [Measurement(100, 50.0, 100 / rate, 100 / rate, np.array([5.0]))] * 2
            value = Row(task.arguments[2].name, task.arguments[1], task.engine, "chain-steps", seconds)
        results.append(Result(task, Outcome(value, None, "", 1.0)))
    return results


def words(verdict):
    return verdict.word, " ".join(verdict.reasons)


def test_it_passes_where_the_law_holds_and_it_is_faster():
    word, reasons = words(judge(all_passed(), on_gpu=True))
    assert word == "passed"
    assert "in all 21 checks" in reasons and "3.0 times as fast" in reasons and "24 pairs" in reasons
    assert words(judge(all_passed(), on_gpu=False)) == ("not a GPU: no verdict", "")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda one: one[:-1], "not checked: 1 of bench"),
        (lambda one: [Result(one[0].task, None), *one[1:]], "not checked: 1 of steps"),
        (lambda one: [Result(one[0].task, Outcome(None, "Bad: law", "", 1.0)), *one[1:]], "gibbs on gpu: Bad: law"),
        (lambda one: all_passed((("gpu", 90.0), ("reference", 100.0))), "gwg on mis-er-0.05 (0.90x)"),
    ],
    ids=["left out", "no time", "failed", "slower"],
)
def test_it_fails_with_its_reason(spoil, reason):
    word, reasons = words(judge(spoil(all_passed()), on_gpu=True))
    assert word == "failed" and reason in reasons


class Wrong(Gpu):
    """Plays gibbs whatever it is asked for."""

    def prepare(self, model, sampler, batch, program, mesh, threads):
        return super().prepare(model, Gibbs(), batch, program, mesh, threads)


def here(function, arguments, limit_s):
    return call_here(function, arguments)


def test_a_wrong_kernel_fails_and_leaves_the_others(monkeypatch):
    monkeypatch.setattr(gpu_check, "get_engine", lambda name: Wrong("mapped"))
    options = {"copies": 1024, "num_sites": 3, "temperatures": (0.7,)}
    tasks = [
        Task("steps", name, "gpu", gpu_check.steps_task, ("gpu", name, options)) for name in ("metropolis", "gibbs")
    ]
    results = run_tasks(tasks, here, time.monotonic(), 5.0, lambda results: None)
    assert [result.status for result in results] == ["failed", "passed"]
    word, reasons = words(judge(results, on_gpu=True))
    assert word == "failed" and "steps: metropolis on gpu: Disagreement: next states: chi-squared" in reasons
    machine = {"device": "one", "interpreted": False}
    report = gpu_report.as_json(machine, ON_GPU, len(tasks), results, [], 1.0)
    text = gpu_report.format_report(report, results)
    assert "**Verdict: failed**" in text and "- metropolis on gpu: failed" in text
    assert "Traceback" in report["checks"][0]["details"] and report["complete"]


def test_a_part_that_took_its_time_leaves_the_next_ones_theirs():
    tasks = [Task(part, "gwg", "gpu", abs, (-1,)) for part in ("steps", "localized", "published")]
    given = []

    def call(function, arguments, limit_s):
        given.append(limit_s)
        return here(function, arguments, limit_s)

    # 30 % of a minute are over: those of the steps, and not those of the localized runs.
    results = run_tasks(tasks, call, time.monotonic() - 18, 1.0, lambda results: None)
    assert [result.status for result in results] == ["left out", "passed", "passed"]
    assert all(41 < limit < 42.1 for limit in given)


@pytest.mark.parametrize(("minutes", "status"), [(1.0, "left out"), (5.0, "failed")])
def test_a_task_that_the_end_of_the_time_cuts_has_not_failed(minutes, status):
    tasks = [Task("published", "gwg", "gpu", abs, (-1,))]
    outcome = Outcome(None, "it was ended", "", 60.0, usable=False, ended=True)
    results = run_tasks(tasks, lambda *_: outcome, time.monotonic(), minutes, lambda results: None)
    assert [result.status for result in results] == [status]


def test_what_raises_hangs_or_dies_leaves_the_rest():
    with Worker(gc.collect) as worker:
        call = functools.partial(worker.call, limit_s=20)
        first = call(os.getpid, ()).value
        # A check that fails is an answer; after another error the process is not used again.
        assert "AssertionError" in call(np.testing.assert_equal, (1, 2)).error
        assert call(os.getpid, ()).value == first != os.getpid()
        raised = call(operator.truediv, (1, 0))
        assert raised.error == "ZeroDivisionError: division by zero" and "Traceback" in raised.details
        second = call(os.getpid, ()).value
        assert second != first
        late = worker.call(time.sleep, (30,), 0.6)
        assert late.error == "it took more than 1 s and was ended" and late.ended
        assert call(os._exit, (7,)).error == "its process died with exit code 7"
        assert call(abs, (-3,)).value == 3


def run_script(*arguments, **variables):
    environment = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT)} | variables
    command = ["bash", str(SCRIPT), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        ("--parts=steps,bench", "--samplers=gwg", "--cases=maxcut-er-256"),
        ("--cases=mis-er-0.05", "--datasets=maxcut/optsicom/r-b", "--minutes=5"),
    ],
    ids=["small", "all samplers"],
)
def test_the_script_without_a_gpu(chosen, tmp_path):
    """All that is done on a GPU, with the kernel interpreted."""
    done = run_script("--no-install", "--cpu", f"--save_root={tmp_path}", *chosen)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not a GPU: no verdict" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report) == {
        "schema", "verdict", "complete", "seconds", "machine", "settings", "checks", "bench", "published"
    }  # fmt: skip
    assert {"device", "driver", "jax", "commit", "interpreted", "platform"} <= set(report["machine"])
    assert report["complete"] and report["machine"]["interpreted"]
    assert {check["status"] for check in report["checks"]} == {"passed"}
    assert {check["engine"] for check in report["checks"]} == {"gpu", "reference"}
    for case in report["bench"].values():
        assert all(rates[engine]["chain_steps_per_s"] > 0 for rates in case.values() for engine in rates)
        assert all(set(rates) == {"gpu", "reference"} for rates in case.values())
    for row in report["published"]:
        assert row["gpu_s"] > 0 and row["reference_s"] > 0 and row["published_s"] > 0
    text = (tmp_path / "report.md").read_text()
    assert "**Verdict: not a GPU: no verdict**" in text and "**Ours are scaled** from 1 graphs x 2 chains" in text
    if len(report["checks"]) > 10:
        assert len(report["published"]) == 6 and "maxcut/optsicom/r-b" in text


def test_the_process_that_waits_leaves_the_gpu_to_the_other():
    """JAX takes most of a GPU's memory where it is initialised."""
    script = (
        "import sl_discs.commands.bench_gpu; from jax._src import xla_bridge;"
        "print(xla_bridge.backends_are_initialized())"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    ("driver", "installed"),
    [("580.65.06", "jax[cuda13]"), ("550.54.14", "jax[cuda12]"), ("470.1", "too old"), ("", "no GPU")],
)
def test_jax_is_installed_as_the_driver_wants_it(driver, installed, tmp_path):
    scripts, bin_folder = tmp_path / "run_scripts", tmp_path / ".venv" / "bin"
    scripts.mkdir()
    bin_folder.mkdir(parents=True)
    shutil.copy(SCRIPT, scripts)
    (scripts / "environment.sh").write_text("")
    (bin_folder / "nvidia-smi").write_text(f"#!/bin/sh\necho {driver}\n" if driver else "#!/bin/sh\nexit 9\n")
    (bin_folder / "python").write_text('#!/bin/sh\necho "$@"\n')
    for program in bin_folder.iterdir():
        program.chmod(0o755)
    environment = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
    command = ["bash", str(scripts / "gpu_check.sh"), "--minutes=1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if installed.startswith("jax"):
        assert done.returncode == 0
        assert done.stdout.splitlines()[0].endswith(installed)
        assert done.stdout.splitlines()[1] == "-m sl_discs bench gpu --minutes=1"
    else:
        assert done.returncode == 2 and installed in done.stderr and done.stderr.count("\n") == 1
