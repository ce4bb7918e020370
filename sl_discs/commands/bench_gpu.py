"""Command: checks whether the engine `gpu` is correct and faster than the reference on this machine's GPU.

sl-discs bench gpu --save_root=results/gpu_check

The first checks compare single steps with an oracle, localized runs with enumerated laws, and larger graphs with the
reference. Further parts measure the rates of both engines on cases of the benchmark, check the laws of the reference
on this device, and compare run times with the paper's. Each part has a share of --minutes. A check that raises, hangs
or crashes is reported, and the others continue. SAVE_ROOT/report.md and report.json are updated after each check.
Only one GPU is used. The exit code is 0 if the verdict is passed, and 1 if it is failed.

--cpu runs everything at tiny sizes on the CPU, in interpreter mode. It tests the command and gives no verdict; the
exit code says whether anything failed.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from absl import flags

from sl_discs.atomic import check_writable, write_atomically
from sl_discs.benchmark import cases, gpu_check, gpu_report
from sl_discs.benchmark.choices import check_choice
from sl_discs.benchmark.gpu_check import CASES, METHODS, PARTS, Compared
from sl_discs.benchmark.gpu_verdict import in_a_line
from sl_discs.benchmark.worker import Worker
from sl_discs.command import run_command
from sl_discs.errors import InputError
from sl_discs.experiment.provenance import commit
from sl_discs.localization.method import method_fields
from sl_discs.reproduction.datasets import PUBLISHED, PublishedSet
from sl_discs.results.published import published_seconds

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_SAVE_ROOT = flags.DEFINE_string(
    "save_root", "results/gpu_check", "Folder of report.md and report.json.", flag_values=FLAGS
)
_MINUTES = flags.DEFINE_float(
    "minutes",
    9.0,
    "Time for all checks; those for which no time is left are skipped.",
    lower_bound=0.1,
    flag_values=FLAGS,
)
_CPU = flags.DEFINE_bool("cpu", False, "Test the command without a GPU; gives no verdict.", flag_values=FLAGS)
_PARTS = flags.DEFINE_list("parts", list(PARTS), "Parts to run.", flag_values=FLAGS)
_SAMPLERS = flags.DEFINE_list(
    "samplers", list(METHODS), "Samplers to time; their base samplers are checked.", flag_values=FLAGS
)
_CASES = flags.DEFINE_list("cases", list(CASES), "Cases of the benchmark.", flag_values=FLAGS)
_DATASETS = flags.DEFINE_list(
    "datasets",
    [name for name, one in PUBLISHED.items() if one.is_random()],
    "Generated datasets of the paper's run-time table.",
    flag_values=FLAGS,
)
_ANNEALING = ("t_schedule", "init_temperature", "decay_rate", "final_temperature")


def _compared(one: PublishedSet) -> Compared:
    """A dataset of the paper's table with DISCS's annealing and the paper's samplers."""
    experiment = one.experiment()
    return Compared(
        cases.Case(
            one.name,
            one.problem,
            cases.family(one.problem, one.graph_type, one.cfg_str),
            {name: experiment[name] for name in _ANNEALING if name in experiment},
        ),
        {method: method_fields(method) for method in METHODS},
        {method: published_seconds(one.name, method) for method in METHODS},
        one.published_n,
    )


def _check_flags() -> None:
    check_choice("parts", _PARTS.value, PARTS)
    check_choice("samplers", _SAMPLERS.value, METHODS)
    check_choice("datasets", _DATASETS.value, [name for name, one in PUBLISHED.items() if one.is_random()])


def _machine(worker: Worker) -> dict:
    """The versions and device under test; InputError if it is not a GPU."""
    outcome = worker.call(gpu_check.describe_device, (), 120.0)
    if outcome.error is not None:
        raise InputError(
            f"JAX cannot start: {in_a_line(outcome.error, 500)}; see `nvidia-smi`, or test the command with --cpu"
        )
    found = outcome.value
    if not _CPU.value and found["platform"] != "gpu":
        raise InputError(
            f"no GPU: JAX runs on {found['platform']}; on a machine with an NVIDIA GPU install jax[cuda13] "
            "(driver 580 or newer) or jax[cuda12], or test the command with --cpu"
        )
    interpreted = {"interpreted": _CPU.value}
    return found | {"driver": gpu_check.driver_version(), "commit": commit()} | interpreted


def _write(content: str, file: IO[bytes]) -> None:
    file.write(content.encode())


def _keep(folder: Path, report: dict, text: str) -> None:
    for name, content in {"report.json": json.dumps(report, indent=1) + "\n", "report.md": text}.items():
        write_atomically(folder / name, functools.partial(_write, content))


def run(_) -> int:
    """Runs all parts, prints how each check ended, and keeps the report up to date."""
    begin = time.monotonic()
    _check_flags()
    chosen = cases.chosen_cases(_CASES.value)
    compared = [_compared(PUBLISHED[name]) for name in _DATASETS.value]
    sizes = gpu_check.INTERPRETED if _CPU.value else gpu_check.ON_GPU
    tasks = gpu_check.plan_tasks(sizes, chosen, compared, _SAMPLERS.value, _PARTS.value)
    folder = check_writable(_SAVE_ROOT.value)
    if _CPU.value:
        os.environ["JAX_PLATFORMS"] = "cpu"
    with Worker(gpu_check.interpreted if _CPU.value else gpu_check.use_gpu) as worker:
        machine = _machine(worker)
        sys.stdout.write(f"{machine['device']}, JAX {machine['jax']}, {len(tasks)} checks\n")

        def keep(results):
            seconds = time.monotonic() - begin
            report = gpu_report.as_json(machine, sizes, len(tasks), results, compared, seconds)
            _keep(folder, report, gpu_report.format_report(report, results))
            return report

        def show(results):
            keep(results)
            sys.stdout.write(f"[{len(results)}/{len(tasks)}] {gpu_report.in_short(results)}\n")
            sys.stdout.flush()

        report = keep(gpu_check.run_tasks(tasks, worker.call, begin, _MINUTES.value, show))
    word, reasons = report["verdict"]["word"], report["verdict"]["reasons"]
    sys.stdout.write(f"verdict: {word}\n" + "".join(f"- {reason}\n" for reason in reasons))
    sys.stdout.write(f"saved {folder / 'report.md'} and {folder / 'report.json'}\n")
    return int(any(check["status"] == "failed" for check in report["checks"]) or word == "failed")


def main(argv: Sequence[str]) -> int:
    """Exit codes as above."""
    return run_command(argv, "", __doc__, FLAGS, run)
