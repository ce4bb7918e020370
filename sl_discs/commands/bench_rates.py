"""Command: measures speed and quality on fixed cases, in one run with the other packages that are installed.

sl-discs bench rates --cases=mis-er-0.05,maxcut-ba-512 --samplers=gwg,sl_gwg --steps=10000 --repeats=5

Repetitions of all contenders alternate. A rate is the number of Markov steps of all chains per second of wall time,
without compilation; for simulated annealing, the number of site updates. Peers such as simulated annealing use one
core and get the CPU-seconds that our first engine took, so qualities compare at equal CPU time. The sampler `tuned`
is the best of ours for the case, with annealing tuned on other graphs (`benchmark/cases.py`); `tuned-sequential` is
the same with a sequential scan and twice the steps, which take about as long; `default` is `sl_discs.solve` with its
defaults. `discs` needs a checkout of DISCS on PYTHONPATH, and only its speed is measured.
"""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Sequence

from absl import flags

from sl_discs.atomic import check_file, write_atomically
from sl_discs.benchmark.cases import CASES, Case, chosen_cases
from sl_discs.benchmark.choices import ENGINES, TUNED, check_choice
from sl_discs.benchmark.contenders import Contender, Default, NotPlayed, Own
from sl_discs.benchmark.peers import available_peers, describe_machine, how_to_get
from sl_discs.benchmark.report import Row, as_json, format_case
from sl_discs.command import refuse_flags, run_command
from sl_discs.discs_plugin import launch
from sl_discs.engines.devices import one_device_per_core
from sl_discs.errors import InputError
from sl_discs.experiment.progress import progress_bar
from sl_discs.samplers import known_samplers

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
launch.define_flags(FLAGS)
_CASES = flags.DEFINE_list("cases", list(CASES), "Cases.", flag_values=FLAGS)
_SAMPLERS = flags.DEFINE_list(
    "samplers",
    ["gwg", "path_auxiliary", "dmala", "sl_path_auxiliary", "tuned", "default"],
    "Samplers of this package. `tuned` is the best of them for the case, with annealing tuned on other graphs; "
    "`tuned-sequential` is the same with scan=sequential and twice the steps, for about the same time; "
    "`default` is sl_discs.solve with its defaults, for --seconds.",
    flag_values=FLAGS,
)
_ENGINES = flags.DEFINE_list(
    "engines", None, "Engines and other packages; default: all that are available.", flag_values=FLAGS
)
_STEPS = flags.DEFINE_integer("steps", 10_000, "Steps per chain.", lower_bound=10, flag_values=FLAGS)
_REPEATS = flags.DEFINE_integer("repeats", 3, "Repetitions, with different seeds.", lower_bound=1, flag_values=FLAGS)
_GRAPHS = flags.DEFINE_integer("graphs", 4, "Graphs per case.", lower_bound=1, flag_values=FLAGS)
_CHAINS = flags.DEFINE_integer("chains", 32, "Chains or reads per graph.", lower_bound=1, flag_values=FLAGS)
_SECONDS = flags.DEFINE_float(
    "seconds", 1.0, "Seconds of wall time per graph for `default`.", lower_bound=0.01, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string("output", "bench.json", "File for the results.", flag_values=FLAGS)


def _contenders() -> list[str]:
    """Names of the chosen engines and peers; our own engines come first, since they set the time of the peers."""
    peers = available_peers()
    available = [*ENGINES, *peers]
    chosen = _ENGINES.value or available
    check_choice("engines", chosen, available, how_to_get())
    if not set(chosen) & set(ENGINES):
        raise InputError(f"--engines: add one of {', '.join(ENGINES)}; peers get the time that the engine takes")
    return [name for name in available if name in chosen]


def _run_case(case: Case, names: list[str], progress) -> list[Row]:
    """Alternating repetitions of all contenders."""
    dataset = case.dataset(_GRAPHS.value)
    settings = case.settings(_GRAPHS.value, _CHAINS.value, _STEPS.value)
    peers = available_peers()
    contenders: dict[tuple[str, str], Contender] = {}
    for sampler in _SAMPLERS.value:
        for name in names:
            own = name in ENGINES
            build = (lambda *args, name=name: Own(name, *args)) if own else peers[name]
            try:
                if own and sampler == "default":
                    contenders[sampler, name] = Default(name, dataset, _SECONDS.value)
                elif own and sampler in TUNED and case.tuned is not None:
                    if name != "cpu":
                        raise NotPlayed("it is given the time of other samplers only on the CPU engine")
                    fields, pace = TUNED[sampler]
                    annealing = case.tuned.settings(settings, pace)
                    contenders[sampler, name] = build(case.tuned.sampler, dataset, annealing, fields)
                else:
                    contenders[sampler, name] = build(sampler, dataset, settings)
            except NotPlayed as reason:
                sys.stdout.write(f"{case.name}, {sampler}: skipped on {name}: {reason}\n")
    for (_, name), contender in contenders.items():
        if name in ENGINES:
            contender.play(0)  # compiles
    rows = {key: Row(case.name, *key, contender.unit, []) for key, contender in contenders.items()}
    for seed in range(1, _REPEATS.value + 1):
        seconds: dict[str, float] = {}
        for (sampler, name), contender in contenders.items():
            measured = contender.play(seed, seconds.get(sampler))
            # Where ours ends early with a proof, peers have the time all the same.
            least = _SECONDS.value * _GRAPHS.value if sampler == "default" else 0.0
            seconds.setdefault(sampler, max(measured.cpu_seconds, least))
            rows[sampler, name].measurements.append(measured)
            progress("benchmark", 1)
    return list(rows.values())


def run(_) -> int:
    """Runs all cases, prints a table after each, and saves the results."""
    one_device_per_core()
    check_choice("samplers", _SAMPLERS.value, [*TUNED, "default", *known_samplers()])
    cases = chosen_cases(_CASES.value)
    names, output = _contenders(), check_file(_OUTPUT.value)
    if "discs" in names:
        launch.register_from_flags(FLAGS)
    else:
        refuse_flags(FLAGS, ["compat", "fixes"], "unless --engines includes discs")
    if "default" not in _SAMPLERS.value:
        refuse_flags(FLAGS, ["seconds"], "unless --samplers includes default")
    machine = describe_machine()
    sys.stdout.write(
        f"{machine}; {_GRAPHS.value} graphs x {_CHAINS.value} chains x {_STEPS.value:,} steps, "
        f"{_REPEATS.value} repetitions of {', '.join(names)}\n"
    )
    rows = []
    with progress_bar(len(cases) * len(_SAMPLERS.value) * len(names) * _REPEATS.value, " repetitions") as progress:
        for case in cases:
            found = _run_case(case, names, progress)
            sys.stdout.write("\n" + format_case(found, _GRAPHS.value) + "\n")
            sys.stdout.flush()
            rows += found
            settings = {
                "machine": machine, "graphs": _GRAPHS.value, "chains": _CHAINS.value, "steps": _STEPS.value,
                "repeats": _REPEATS.value,
            }  # fmt: skip
            text = json.dumps(as_json(rows, settings), indent=1)
            path = write_atomically(output, operator.methodcaller("write", text.encode()))
    sys.stdout.write(f"\nsaved {path}\n")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    launch.add_working_directory()
    return run_command(argv, "", __doc__, FLAGS, run)
