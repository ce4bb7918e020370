"""Measures what `sl_discs.solve` proves by default, how wide its gaps are elsewhere, and when a
first answer comes.

    python benchmarks/answers.py --instances=6 --seconds=5

Proofs: default calls, without a time limit, on small problems of five kinds. Gaps: calls with a
time limit on problems that are not proved. First answers: whole commands, the first with an empty
cache of compiled code. All seconds are CPU seconds; those of calls do not include compilation.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import sl_discs
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import measured_by
from sl_discs.problems import Problem
from sl_discs.support.documents import write_json
from sl_discs.support.files import check_file
from sl_discs.support.terminal import say


def _signs(seed: int, count: int) -> np.ndarray:
    """Returns -1 and 1, drawn evenly."""
    return np.random.default_rng(seed).choice([-1.0, 1.0], count)


def _dense(seed: int, size: int, draw: Callable[[np.random.Generator, int], np.ndarray]) -> Problem:
    """Returns an Ising model that couples all pairs of spins."""
    rows, columns = np.triu_indices(size, 1)
    couplings = np.zeros((size, size))
    couplings[rows, columns] = draw(np.random.default_rng(seed), len(rows))
    return sl_discs.ising(np.zeros(size), couplings)


def _qubo(seed: int) -> Problem:
    return sl_discs.qubo(np.triu(np.random.default_rng(seed).integers(-10, 11, (30, 30))))


def _glass(seed: int) -> Problem:
    torus = nx.grid_2d_graph(10, 10, periodic=True)
    couplings = _signs(seed, torus.number_of_edges()).tolist()
    return sl_discs.ising({}, dict(zip(torus.edges, couplings, strict=True)))


PROVED: dict[str, Callable[[int], Problem]] = {
    "largest clique, G(200, 0.5)": lambda seed: sl_discs.maxclique(
        nx.gnp_random_graph(200, 0.5, seed=seed)
    ),
    "largest independent set, G(200, 0.1)": lambda seed: sl_discs.mis(
        nx.gnp_random_graph(200, 0.1, seed=seed)
    ),
    "QUBO, 30 variables, dense": _qubo,
    "+-1 spin glass, 10 x 10 torus": _glass,
    "cut, 3-regular graph of 100 nodes": lambda seed: sl_discs.maxcut(
        nx.random_regular_graph(3, 100, seed=seed)
    ),
}
OPEN: dict[str, Callable[[int], Problem]] = {
    "cut, G(800, 0.06)": lambda seed: sl_discs.maxcut(nx.gnp_random_graph(800, 0.06, seed=seed)),
    "cut, BA graph of 1,024 nodes": lambda seed: sl_discs.maxcut(
        nx.barabasi_albert_graph(1024, 4, seed=seed)
    ),
    "+-1 couplings of 100 spins, all pairs": lambda seed: _dense(
        seed, 100, lambda rng, n: rng.choice([-1, 1], n)
    ),
    "Sherrington-Kirkpatrick, 200 spins": lambda seed: _dense(
        seed, 200, lambda rng, n: rng.normal(size=n)
    ),
}
# Engine and sampler of a command.
FIRST = (("cpu", "metropolis"), ("cpu", "path_auxiliary"), ("reference", "path_auxiliary"))

FLAGS, define = own_flags()
define.integer(
    "instances",
    6,
    "Instances of each kind that is proved; half as many of the others.",
    lower_bound=2,
)
define.float("seconds", 5.0, "Time limit where nothing is proved.", lower_bound=0.1)
define.integer("repeats", 2, "First runs of each command, and of later ones.", lower_bound=1)
define.string("output", "bench_answers.json", "File for the results.")


def proof(problem: Problem) -> dict[str, Any]:
    """Solves a problem with the defaults."""
    begin = time.process_time()
    result = sl_discs.solve(problem, seed=0)
    return {
        "optimal": result.optimal,
        "by": result.bound_by,
        "cpu_seconds": time.process_time() - begin,
    }


def gap(problem: Problem) -> float:
    """Returns the percentage between the best answer within the time limit and its bound."""
    result = sl_discs.solve(problem, time_limit=FLAGS.seconds, seed=0)
    assert result.bound is not None
    return 100 * abs(result.bound - result.best_value) / abs(result.best_value)


def first_answers(engine: str, sampler: str, graph: Path) -> dict[str, list[float]]:
    """Returns CPU seconds of whole commands, the first ones without compiled code."""
    command = [
        sys.executable, "-m", "sl_discs", "solve", str(graph), "--problem=maxcut", "--steps=2000",
        f"--engine={engine}", f"--sampler={sampler}",
    ]  # fmt: skip
    found: dict[str, list[float]] = {"first": [], "later": []}
    for _ in range(FLAGS.repeats):
        with tempfile.TemporaryDirectory() as cache:
            for seconds in found.values():
                begin = resource.getrusage(resource.RUSAGE_CHILDREN)
                environment = os.environ | {"SL_DISCS_CACHE": cache}
                subprocess.run(command, env=environment, check=True, capture_output=True)
                end = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds.append(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime)
    return found


def run(_) -> int:
    output = check_file(FLAGS.output)
    found: dict[str, Any] = {"measured": measured_by(), "seconds": FLAGS.seconds}
    found["proofs"] = {}
    for kind, make in PROVED.items():
        proof(make(FLAGS.instances))  # loads compiled code
        rows = found["proofs"][kind] = [proof(make(seed)) for seed in range(FLAGS.instances)]
        used = [row["cpu_seconds"] for row in rows]
        say(
            f"{kind:<40} {sum(row['optimal'] for row in rows)} proved, {min(used):.2f} to "
            f"{max(used):.2f} CPU s"
        )
    found["gaps"] = {}
    for kind, make in OPEN.items():
        gaps = found["gaps"][kind] = [
            gap(make(seed)) for seed in range(max(2, FLAGS.instances // 2))
        ]
        say(f"{kind:<40} gap {min(gaps):.1f} to {max(gaps):.1f} %")
    found["first"] = {}
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "graph.edges"
        nx.write_edgelist(nx.gnm_random_graph(100, 500, seed=0), graph, data=False)
        for engine, sampler in FIRST:
            times = found["first"][f"{engine}, `{sampler}`"] = first_answers(engine, sampler, graph)
            words = (f"{name} {min(one):.1f} to {max(one):.1f}" for name, one in times.items())
            say(f"{f'{engine}, {sampler}':<40} {', '.join(words)} CPU s")
    write_json(output, found)
    say(f"saved {output}")
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
