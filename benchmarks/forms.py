"""Measures `sl_discs.solve` on forms whose penalties or coefficients are large, beside tabu search.

    taskset -c 0 python benchmarks/forms.py --seconds=1

Each family has a few random forms: 20 of 200 assets, assignments of 12 facilities to 12 places, and
60 numbers of 24 bits in two halves. `dwave.samplers.TabuSampler` has so many seconds for each form,
and then `solve` has the CPU-seconds that it used. Values are minimised; those of partitions are
differences of the halves.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import sl_discs
from contenders import as_bqm, cpu_clock, states_of, timed
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import measured_by
from sl_discs.problems import Problem
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.errors import import_extra
from sl_discs.support.files import check_file
from sl_discs.support.terminal import say


def portfolio(size: int, chosen: int, number: int) -> Problem:
    """Returns covariance less return, with a penalty on the number of assets."""
    rng = np.random.default_rng(number)
    factors = rng.normal(size=(size, 10)) * 0.1
    covariance = factors @ factors.T + np.diag(rng.random(size) * 0.02)
    returns = rng.normal(size=size) * 0.05 + 0.05
    linear = np.diag(covariance) - returns + 1 - 2 * chosen
    return sl_discs.qubo(np.triu(2 * covariance + 2, 1) + np.diag(linear), offset=float(chosen**2))


def assignment(size: int, number: int) -> Problem:
    """Returns a quadratic assignment: flows times distances, with a penalty on each row and column
    that has not exactly one.
    """
    rng = np.random.default_rng(number)
    flows = np.triu(rng.integers(0, 10, (size, size)), 1)
    distances = np.triu(rng.integers(1, 10, (size, size)), 1)
    flows = flows + flows.T
    distances = distances + distances.T
    penalty = float(flows.sum(1).max() * distances.max())
    entries = np.triu(2.0 * np.kron(flows, distances), 1)
    rows = np.arange(size**2).reshape(size, size)
    for line in (*rows, *rows.T):
        entries[np.ix_(line, line)] += np.triu(np.full((size, size), 2 * penalty), 1)
        entries[line, line] -= penalty
    return sl_discs.qubo(entries, offset=2 * size * penalty)


def partition(size: int, bits: int, number: int) -> Problem:
    """Returns the square of the difference between two halves of random numbers."""
    numbers = np.random.default_rng(number).integers(1, 2**bits, size).astype(float)
    couplings = np.triu(2 * np.outer(numbers, numbers), 1)
    return sl_discs.ising(np.zeros(size), couplings, offset=float((numbers**2).sum()))


# Draws a form, given its number.
FORMS: dict[str, Callable[[int], Problem]] = {
    "portfolio-200": lambda number: portfolio(200, 20, number),
    "assignment-12": lambda number: assignment(12, number),
    "partition-60": lambda number: partition(60, 24, number),
}

FLAGS, define = own_flags()
define.list("forms", list(FORMS), "Families.")
define.integer("count", 8, "Forms of each family.", lower_bound=1)
define.float("seconds", 1.0, "Seconds for each form.", lower_bound=0.01)
define.string("output", "bench_forms.json", "File for the results.")


def tabu_value(problem: Problem, seconds: float, seed: int) -> float:
    """Returns the verified value of a tabu search of so many seconds of wall time."""
    sampler = import_extra("dwave.samplers").TabuSampler()
    found = sampler.sample(
        as_bqm(problem.terms().listed()), num_reads=1, timeout=1e3 * seconds, seed=seed + 1
    )
    return float(problem.evaluate(states_of(found)).values[0])


def own_value(problem: Problem, seconds: float, seed: int) -> float:
    """Returns the value of the default `solve` with this limit."""
    return sl_discs.solve(problem, time_limit=seconds, seed=seed).best_value


def run(_) -> int:
    check_choice("forms", FLAGS.forms, FORMS)
    output = check_file(FLAGS.output)
    cpu_clock()
    rows: dict[str, Any] = {}
    for name in FLAGS.forms:
        own_value(FORMS[name](0), 0.2, 0)  # loads compiled code
        rows[name] = []
        for number in range(FLAGS.count):
            problem = FORMS[name](number)
            peer_s, _, peer = timed(tabu_value, problem, FLAGS.seconds, number)
            own_s, _, own = timed(own_value, problem, peer_s, number)
            if name.startswith("partition"):
                own = math.sqrt(max(own, 0.0))
                peer = math.sqrt(max(peer, 0.0))
            rows[name].append({"solve": own, "solve_s": own_s, "tabu": peer, "tabu_s": peer_s})
            say(f"{name:<15} solve {own:,.7g} in {own_s:.2f} s, tabu {peer:,.7g} in {peer_s:.2f} s")
        margin = 1e-9 * max(abs(row["tabu"]) for row in rows[name])
        better = sum(row["solve"] < row["tabu"] - margin for row in rows[name])
        worse = sum(row["solve"] > row["tabu"] + margin for row in rows[name])
        say(f"{name}: solve is better on {better} of {FLAGS.count}, worse on {worse}")
        write_json(output, {"measured": measured_by(), "rows": rows})
    say(f"saved {output}")
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
