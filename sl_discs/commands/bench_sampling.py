"""Command: compares the speed of draws at a temperature with that of thrml, dwave-samplers and a NumPy loop.

sl-discs bench sampling --targets=ising-critical,ising-3 --repeats=5

Repetitions of all contenders alternate. A rate is the number of site updates per CPU-second of all threads, with
warm-up and without compilation. The number of effective draws is the bulk effective sample size or, for populations,
the effective number of families. `sweeps` is a plain chain with the schedule of the other packages; the other methods
choose their own. Calls of dwave-samplers at one temperature do not form a chain, so only its rate is given. Where
R-hat has a star, effective draws mean little.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from absl import flags

from sl_discs.atomic import check_file, write_atomically
from sl_discs.benchmark.choices import ENGINES, check_choice
from sl_discs.benchmark.draw_memory import format_memory, measure_memory
from sl_discs.benchmark.draw_peers import PEERS
from sl_discs.benchmark.drawing import OWN, as_json, compare, format_rows
from sl_discs.benchmark.peers import describe_machine
from sl_discs.benchmark.swaps import format_swaps, measure_swaps
from sl_discs.benchmark.targets import TARGETS
from sl_discs.command import run_command
from sl_discs.errors import InputError
from sl_discs.experiment.progress import progress_bar

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_TARGETS = flags.DEFINE_list("targets", list(TARGETS), "Targets.", flag_values=FLAGS)
_METHODS = flags.DEFINE_list("methods", list(OWN), "Methods of this package.", flag_values=FLAGS)
_ENGINES = flags.DEFINE_list("engines", ["cpu", "reference"], "Engines of this package.", flag_values=FLAGS)
_PEERS = flags.DEFINE_list("peers", list(PEERS), "Peers.", flag_values=FLAGS)
_CHAINS = flags.DEFINE_integer(
    "chains", 8, "Chains, ladders or populations per contender.", lower_bound=2, flag_values=FLAGS
)
_DRAWS = flags.DEFINE_integer(
    "draws", 64, "Draws per chain, or members per population.", lower_bound=4, flag_values=FLAGS
)
_REPEATS = flags.DEFINE_integer("repeats", 3, "Repetitions, with different seeds.", lower_bound=1, flag_values=FLAGS)
_CORES = flags.DEFINE_integer(
    "cores", 1, "Cores for every contender, on systems that can restrict them.", lower_bound=1, flag_values=FLAGS
)
_RUNGS = flags.DEFINE_integer(
    "rungs", 16, "Rungs of the ladders that measure the cost of exchanges; 0: none.", lower_bound=0, flag_values=FLAGS
)
_SWEEPS = flags.DEFINE_integer("sweeps", 400, "Sweeps of these ladders.", lower_bound=4, flag_values=FLAGS)
_MEMORY = flags.DEFINE_integer(
    "memory", 0, "Draws of 10,000 variables to write to a file; 0: none.", lower_bound=0, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string("output", "bench_sampling.json", "File for the results.", flag_values=FLAGS)

_MEMORY_VARIABLES = 10_000


def _stay_on(cores: int) -> None:
    """Restricts the process to so many cores, before JAX starts its threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def run(_) -> int:
    """Measures everything that the flags ask for, prints tables and saves the results."""
    check_choice("targets", _TARGETS.value, TARGETS)
    check_choice("methods", _METHODS.value, OWN)
    check_choice("engines", _ENGINES.value, ENGINES)
    check_choice("peers", _PEERS.value, PEERS)
    if _RUNGS.value == 1:
        raise InputError("--rungs: 1 rung has no neighbours; give 2 or more, or 0")
    output = check_file(_OUTPUT.value)
    _stay_on(_CORES.value)
    names = [f"{method}/{engine}" for engine in _ENGINES.value for method in _METHODS.value] + _PEERS.value
    machine = describe_machine()
    sys.stdout.write(
        f"{machine}; {_CHAINS.value} chains x {_DRAWS.value} draws, {_REPEATS.value} repetitions, alternating; "
        "standard errors in brackets\n"
    )
    record: dict = {"machine": machine, "chains": _CHAINS.value, "draws_each": _DRAWS.value}
    rows = []
    total = len(_TARGETS.value) * len(names) * (_REPEATS.value + 1)
    with progress_bar(total, " repetitions") as progress:
        for target in _TARGETS.value:
            if names:
                found = compare(
                    target, names, _CHAINS.value, _DRAWS.value, _REPEATS.value,
                    lambda words: sys.stdout.write(words + "\n"), progress,
                )  # fmt: skip
                if found:
                    sys.stdout.write("\n" + format_rows(found) + "\n")
                    sys.stdout.flush()
                rows += found
    record["draws"] = as_json(rows)
    if _RUNGS.value:
        costs = [
            cost
            for target in _TARGETS.value
            for cost in measure_swaps(target, _RUNGS.value, _SWEEPS.value, _REPEATS.value)
        ]
        sys.stdout.write("\n" + format_swaps(costs) + "\n")
        record["swaps"] = [cost._asdict() for cost in costs]
    if _MEMORY.value:
        memory = measure_memory(_MEMORY_VARIABLES, _MEMORY.value, _CHAINS.value)
        sys.stdout.write("\n" + format_memory(memory) + "\n")
        record["memory"] = memory._asdict()
    path = write_atomically(output, lambda file: file.write(json.dumps(record, indent=1).encode()))
    sys.stdout.write(f"\nsaved {path}\n")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
