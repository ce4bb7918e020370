"""What the local search on vertex covers adds to `sl_discs.solve` under a time limit.

    python benchmarks/covers.py --cases=mis-frb-50-23,mis-steiner-81 --seconds=1,5 --graphs=4

Each graph is solved with the local search and without it, in turns and with the same seed. The
table has mean values; `wins` and `losses` count the graphs on which the local search made the
answer better or worse.
"""

from __future__ import annotations

import sys
from unittest import mock

import numpy as np

from cases import CASES, chosen_cases
from sl_discs.commands.command import Command, own_flags
from sl_discs.engines.devices import describe_machine
from sl_discs.experiment.record import measured_by
from sl_discs.problems import Problem
from sl_discs.solving.solver import solve
from sl_discs.solving.workers import WORKERS
from sl_discs.support.checks import check_choice, real
from sl_discs.support.documents import write_json
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_file
from sl_discs.support.terminal import say

_CASES = [name for name, case in CASES.items() if case.problem in ("mis", "maxclique")]

FLAGS, define = own_flags()
define.list("cases", _CASES, "Cases.")
define.list("seconds", ["1", "5"], "Time limits.")
define.integer("graphs", 4, "Graphs per case.", lower_bound=1)
define.string("output", "bench_covers.json", "File for the results.")


def best_value(problem: Problem, limit: float, *, local: bool) -> float:
    """Returns the best value of `solve`, with local searches or without, positive where more is
    better.
    """
    workers = WORKERS[problem.kind]
    if not local:
        workers = workers._replace(search=None)
    with mock.patch.dict(WORKERS, {problem.kind: workers}):
        value = solve(problem, time_limit=limit, seed=1).best_value
    return value if problem.maximise else -value


def compare(problem: Problem, limit: float, *, first: bool) -> tuple[float, float]:
    """Returns the values without and with local searches, of which those with them come first or
    second.
    """
    values = {local: best_value(problem, limit, local=local) for local in (first, not first)}
    return values[False], values[True]


def run(_) -> int:
    check_choice("cases", FLAGS.cases, _CASES)
    cases, output = chosen_cases(FLAGS.cases), check_file(FLAGS.output)
    try:
        limits = [float(one) for one in FLAGS.seconds]
    except ValueError:
        raise InputError(f"--seconds={','.join(FLAGS.seconds)}: expected numbers") from None
    for limit in limits:
        real("--seconds", limit, above=0)
    machine = describe_machine()
    say(
        f"{machine}; {FLAGS.graphs} graphs\n  {'case':<20} {'seconds':>7} {'without':>9} "
        f"{'with':>9} wins losses"
    )
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for case in cases:
        graphs = case.dataset(FLAGS.graphs).graphs
        problems = [
            Problem(case.problem, graph.name, range(graph.num_nodes), graph) for graph in graphs
        ]
        for local in True, False:
            best_value(problems[0], 0.5, local=local)  # loads compiled code
        for limit in limits:
            pairs = [
                compare(problem, limit, first=bool(k % 2)) for k, problem in enumerate(problems)
            ]
            found.setdefault(case.name, {})[f"{limit:g}"] = pairs
            without, given = np.array(pairs).T
            say(
                f"  {case.name:<20} {limit:>7g} {without.mean():>9.2f} {given.mean():>9.2f} "
                f"{np.count_nonzero(given > without):>4} {np.count_nonzero(given < without):>6}"
            )
    write_json(output, {"measured": measured_by(), "graphs": FLAGS.graphs, "values": found})
    say(f"saved {output}")
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
