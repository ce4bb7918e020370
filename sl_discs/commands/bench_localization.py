"""Command: measures what localization costs on our engines, as the run time of sl_NAME divided by that of NAME.

sl-discs bench localization --cases=mis-er-0.05,maxcut-ba-512 --samplers=gwg,dmala --processes=6

On shared machines run times vary by much more than the few per cent of interest. Therefore short runs of the two
alternate for --seconds, and the result is the median ratio of the pairs. These medians differ by one or two per cent
between processes; the command prints their mean over --processes with its standard error (for one process, that of
the median). Compilation does not count. `sl-discs discs overhead` measures the same in DISCS's loop.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from absl import flags

from sl_discs.atomic import check_file, write_atomically
from sl_discs.benchmark.cases import CASES, chosen_cases
from sl_discs.benchmark.choices import ENGINES, check_choice
from sl_discs.benchmark.contenders import NotPlayed
from sl_discs.benchmark.localization import Cost, Task, in_new_processes, measure_in_processes
from sl_discs.benchmark.peers import describe_machine
from sl_discs.command import run_command
from sl_discs.experiment.progress import progress_bar
from sl_discs.samplers import known_samplers

_BASES = [name for name in known_samplers() if f"sl_{name}" in known_samplers()]

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_CASES = flags.DEFINE_list("cases", list(CASES), "Cases.", flag_values=FLAGS)
_SAMPLERS = flags.DEFINE_list(
    "samplers", ["gwg", "path_auxiliary", "dmala"], "Samplers, without sl_.", flag_values=FLAGS
)
_CHOSEN = flags.DEFINE_list("engines", list(ENGINES), "Engines.", flag_values=FLAGS)
_STEPS = flags.DEFINE_integer(
    "steps", 10_000, "Steps per chain, divided into as many levels as fit.", lower_bound=10, flag_values=FLAGS
)
_GRAPHS = flags.DEFINE_integer("graphs", 1, "Graphs per case.", lower_bound=1, flag_values=FLAGS)
_CHAINS = flags.DEFINE_integer("chains", 32, "Chains per graph.", lower_bound=1, flag_values=FLAGS)
_SECONDS = flags.DEFINE_float(
    "seconds", 5.0, "Seconds of runs in each process, for each pair of samplers.", lower_bound=0.1, flag_values=FLAGS
)
_PROCESSES = flags.DEFINE_integer(
    "processes", 4, "Processes for each pair of samplers on each engine.", lower_bound=1, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string("output", "bench_localization.json", "File for the results.", flag_values=FLAGS)


def _line(case: str, engine: str, sampler: str, cost: Cost) -> str:
    return (
        f"  {case:<16} {engine:<6} {sampler:<20} {cost.base_us:>8.3f} {100 * cost.added:>+8.1f} % "
        f"+- {100 * cost.error:<4.1f} {cost.pairs:>6}"
    )


def run(_) -> int:
    """Measures every pair, prints a line for each, and saves the results."""
    check_choice("samplers", _SAMPLERS.value, _BASES)
    check_choice("engines", _CHOSEN.value, ENGINES)
    cases, output = chosen_cases(_CASES.value), check_file(_OUTPUT.value)
    # In a process of its own, which would otherwise hold most of a GPU's memory while others measure.
    machine = in_new_processes(1, describe_machine)[0]
    sys.stdout.write(
        f"{machine}; {_GRAPHS.value} graphs x {_CHAINS.value} chains x {_STEPS.value:,} steps, "
        f"{_PROCESSES.value} processes\n"
        f"  {'case':<16} {'engine':<6} {'sampler':<20} {'us a step':>8} {'sl_ adds':>9}  {'error':>8} {'pairs':>6}\n"
    )
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    with progress_bar(len(cases) * len(_CHOSEN.value) * len(_SAMPLERS.value), " pairs") as progress:
        for case in cases:
            for engine in _CHOSEN.value:
                for sampler in _SAMPLERS.value:
                    task = Task(
                        case.name, engine, sampler, _GRAPHS.value, _CHAINS.value, _STEPS.value, _SECONDS.value
                    )
                    try:
                        cost = measure_in_processes(task, _PROCESSES.value)
                    except NotPlayed as reason:
                        sys.stdout.write(f"  {case.name}, {sampler}: skipped on {engine}: {reason}\n")
                    else:
                        found.setdefault(case.name, {}).setdefault(sampler, {})[engine] = cost._asdict()
                        sys.stdout.write(_line(case.name, engine, sampler, cost) + "\n")
                    sys.stdout.flush()
                    progress("localization", 1)
    shape = {"graphs": _GRAPHS.value, "chains": _CHAINS.value, "steps": _STEPS.value, "processes": _PROCESSES.value}
    text = json.dumps({"machine": machine} | shape | {"cases": found}, indent=1)
    path = write_atomically(output, lambda file: file.write(text.encode()))
    sys.stdout.write(f"saved {path}\n")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
