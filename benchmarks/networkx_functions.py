"""networkx's functions beside the same calls with backend="sl_discs".

    python benchmarks/networkx_functions.py --cases=max_clique,one_exchange --graphs=3

Each case is a function on random graphs. The table has the mean size of the answers and the
CPU-seconds of a call, of networkx, of the backend with a time limit of one second, and of the
backend without one. Compilation is not counted. The package must be installed, so that networkx
finds its backend.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import networkx as nx

from sl_discs.commands.command import Command, own_flags
from sl_discs.engines.compiled import compile_cpu_seconds
from sl_discs.engines.devices import describe_machine
from sl_discs.experiment.record import measured_by
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_file
from sl_discs.support.terminal import say

APPROX = nx.approximation
# The function, its graph's nodes and density, and what is counted of its answer.
CASES: dict[str, tuple[Callable[..., Any], int, float, Callable[[Any], float]]] = {
    "maximum_independent_set": (APPROX.maximum_independent_set, 200, 0.1, len),
    "max_clique": (APPROX.max_clique, 200, 0.5, len),
    "max_weight_clique": (
        lambda graph, **options: nx.max_weight_clique(graph, None, **options), 200, 0.5, lambda found: found[1],
    ),
    "min_weighted_vertex_cover": (APPROX.min_weighted_vertex_cover, 200, 0.1, len),
    "one_exchange": (
        lambda graph, **options: APPROX.one_exchange(graph, seed=0, **options), 300, 0.1, lambda found: found[0],
    ),
}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    "networkx": {"backend": "networkx"},
    "backend, 1 s": {"backend": "sl_discs", "time_limit": 1},
    "backend": {"backend": "sl_discs"},
}

FLAGS, define = own_flags()
define.list("cases", list(CASES), "Cases.")
define.integer("graphs", 3, "Graphs per case.", lower_bound=1)
define.string("output", "bench_networkx.json", "File for the results.")


def run(_) -> int:
    check_choice("cases", FLAGS.cases, list(CASES))
    output = check_file(FLAGS.output)
    if "sl_discs" not in nx.config.backends:
        raise InputError(
            "networkx does not know the backend sl_discs; install this package: pip install -e ."
        )
    machine = describe_machine()
    say(
        f"{machine}; {FLAGS.graphs} graphs\n  {'case':<26} "
        + " ".join(f"{way:>16}" for way in WAYS)
    )
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for case in FLAGS.cases:
        function, size, density, counted = CASES[case]
        for way, options in WAYS.items():
            if way != "networkx":
                function(
                    nx.gnp_random_graph(size, density, seed=FLAGS.graphs), **options
                )  # compiles
            graphs = [nx.gnp_random_graph(size, density, seed=seed) for seed in range(FLAGS.graphs)]
            begin, compiling = time.process_time(), compile_cpu_seconds()
            total = sum(counted(function(graph, **options)) for graph in graphs)
            used = time.process_time() - begin - (compile_cpu_seconds() - compiling)
            mean = total / FLAGS.graphs, used / FLAGS.graphs
            found.setdefault(case, {})[way] = mean
        say(
            f"  {case:<26} "
            + " ".join(f"{value:>8,.1f} {used:>5.2f} s" for value, used in found[case].values())
        )
    write_json(output, {"measured": measured_by(), "graphs": FLAGS.graphs, "means": found})
    say(f"saved {output}")
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
