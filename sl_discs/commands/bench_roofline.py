"""Command: measures how close each engine comes to the limits of the machine.

sl-discs bench roofline --cases=mis-er-0.05,maxcut-ba-512 --samplers=gwg,path_auxiliary

For each case, sampler and engine, the table gives the bytes and operations of a step, the shortest time that one core
needs for them, the time that it took (wall time x cores), and the ratio. Peak rates are measured in the same run, the
bandwidth on an array as large as the working set of the engine. docs/where_the_time_goes.md explains the figures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from absl import flags

from sl_discs.benchmark.cases import CASES, chosen_cases
from sl_discs.benchmark.choices import check_choice
from sl_discs.benchmark.contenders import NotPlayed, Own
from sl_discs.benchmark.peers import describe_machine
from sl_discs.command import run_command
from sl_discs.engines.cpu.arrays import is_listed
from sl_discs.engines.devices import num_cores, one_device_per_core
from sl_discs.errors import InputError
from sl_discs.experiment.packing import padded_size
from sl_discs.experiment.settings import Settings
from sl_discs.models.kinds import graph_kind

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_CASES = flags.DEFINE_list("cases", list(CASES), "Cases.", flag_values=FLAGS)
_SAMPLERS = flags.DEFINE_list("samplers", ["gwg", "path_auxiliary"], "gwg or path_auxiliary.", flag_values=FLAGS)
_STEPS = flags.DEFINE_integer("steps", 10_000, "Steps per chain.", lower_bound=100, flag_values=FLAGS)


def _rows(case, operations_per_s):
    """A line for each sampler and engine."""
    from sl_discs.benchmark import roofline

    dataset = case.dataset(4)
    kind = graph_kind(case.problem)
    terms = [kind.terms(graph).listed() for graph in dataset.graphs]
    sites = float(np.mean([padded_size(graph.num_nodes) for graph in dataset.graphs]))
    degree = float(np.mean([2 * len(term.weights) / len(term.linear) for term in terms]))
    dense = not is_listed(2 * sum(len(term.weights) for term in terms), len(terms) * sites**2)
    for sampler in _SAMPLERS.value:
        for engine in ("cpu", "reference"):
            steps = _STEPS.value if engine == "cpu" else max(100, _STEPS.value // 5)
            settings = Settings(chain_length=steps, log_every_steps=100, instances_per_batch=4, **case.annealing)
            try:
                own = Own(engine, sampler, dataset, settings)
            except NotPlayed as reason:
                raise InputError(f"--samplers: {sampler} cannot be run on {engine}: {reason}") from reason
            own.play(0)
            done = own.play(1)
            # The acceptance of a path is the target of its radius; a single flip is nearly always accepted.
            drawn = done.flips / done.chain_steps / (0.574 if sampler == "path_auxiliary" else 1.0)
            work = roofline.work(engine, round(sites), drawn, degree, dense)
            chains = settings.batch_size * len(dataset.graphs) // num_cores()
            bandwidth = roofline.measure_bandwidth(roofline.space(engine, round(sites), chains))
            least = roofline.least_seconds(work, roofline.Machine(operations_per_s, bandwidth))
            took = done.seconds * num_cores() / done.chain_steps
            yield (
                f"{case.name:<16} {sampler:<15} {engine:<4} {drawn:>5.1f} {work.operations:>9,.0f} "
                f"{work.num_bytes:>9,.0f} {bandwidth / 1e9:>6.0f} {1e6 * least:>9.3f} {1e6 * took:>9.3f} "
                f"{least / took:>9.0%}"
            )


def run(_) -> int:
    """Measures the machine, then every case."""
    one_device_per_core()
    check_choice("samplers", _SAMPLERS.value, ("gwg", "path_auxiliary"))
    cases = chosen_cases(_CASES.value)
    from sl_discs.benchmark.roofline import measure_operations

    operations_per_s = measure_operations()
    sys.stdout.write(
        f"{describe_machine()}; one core: {operations_per_s / 1e9:.0f} Gop/s\n"
        f"{'case':<16} {'sampler':<15} {'on':<4} {'drawn':>5} {'ops':>9} {'bytes':>9} {'GB/s':>6} {'least us':>9} "
        f"{'took us':>9} {'reached':>9}\n"
    )
    for case in cases:
        for line in _rows(case, operations_per_s):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
