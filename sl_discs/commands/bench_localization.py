"""Command: what localization costs on our engines: time of a run of sl_NAME over that of NAME.

sl-discs bench localization --cases=mis-er-0.05,maxcut-ba-512 --samplers=gwg,dmala --processes=6

On machines with neighbours times of runs differ by much more than the few per cent that are asked for. Short runs of
the two alternate for --seconds, therefore, and what counts is the ratio within each pair: its median. The medians of
one program differ by a per cent or two from process to process; printed is their mean over --processes, with its
standard error (of one process: the median's). Compilation is apart. `sl-discs discs overhead` is the same
inside of DISCS's loop.
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
    "steps", 10_000, "Steps a chain, in as many levels as fit.", lower_bound=10, flag_values=FLAGS
)
_GRAPHS = flags.DEFINE_integer("graphs", 1, "Graphs a case.", lower_bound=1, flag_values=FLAGS)
_CHAINS = flags.DEFINE_integer("chains", 32, "Chains a graph.", lower_bound=1, flag_values=FLAGS)
_SECONDS = flags.DEFINE_float(
    "seconds", 5.0, "Of runs in each process, for each pair of samplers.", lower_bound=0.1, flag_values=FLAGS
)
_PROCESSES = flags.DEFINE_integer(
    "processes", 4, "Processes for each pair on each engine.", lower_bound=1, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string("output", "bench_localization.json", "Where the figures are saved.", flag_values=FLAGS)


def _line(case: str, engine: str, sampler: str, cost: Cost) -> str:
    return (
        f"  {case:<16} {engine:<6} {sampler:<20} {cost.base_us:>8.3f} {100 * cost.added:>+8.1f} % "
        f"+- {100 * cost.error:<4.1f} {cost.pairs:>6}"
    )


def run(_) -> int:
    """Measures every pair, prints a line for each, and saves the figures."""
    check_choice("samplers", _SAMPLERS.value, _BASES)
    check_choice("engines", _CHOSEN.value, ENGINES)
    cases, output = chosen_cases(_CASES.value), check_file(_OUTPUT.value)
    # Not in this process: it would hold most of a GPU's memory for as long as others measure.
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
                        sys.stdout.write(f"  {case.name}, {sampler}: left out on {engine}: {reason}\n")
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
    """Exit code 0, or 2 after one line about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
