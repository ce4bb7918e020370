"""Measures what `sl_discs.solve` finds and proves within time limits, and how long it then takes.

    taskset -c 0 python benchmarks/time_limits.py --limits=0.05,0.1,0.3,1,3,10 --seeds=0,1,2

Each problem is solved under each limit, and without one. The clock of the limits is the CPU time of
this process and what it waits for the one that proves, so that other work on the machine counts
little. A row has the value, the bound, or that it is proved to be optimal, and the seconds
without compilation.

Then it counts what contradicts the laws of limits. With limits up to 3 s, the command above found
of 600 pairs of limits with the same seed 4 values that are worse with more time, in the mean over
seeds none, and no bound and no proof; of 93 pairs of a limit with a call without one that takes no
longer 4 values, 9 bounds and 6 proofs; 3 of 300 runs that took more than 1.1 x limit + 0.05 s; and
no answer that a change of one variable improves.
"""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

import sl_discs
from contenders import cpu_clock
from forms import assignment, portfolio
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import measured_by
from sl_discs.problems import Problem
from sl_discs.solving.result import Result
from sl_discs.support.documents import write_json
from sl_discs.support.files import check_file
from sl_discs.support.terminal import say


def _sparse(size: int, degree: float, seed: int = 0) -> nx.Graph:
    return nx.gnm_random_graph(size, int(size * degree / 2), seed=seed)


def _weighed(graph: nx.Graph, seed: int = 0) -> nx.Graph:
    """Gives the nodes whole weights, and the edges real ones of both signs."""
    rng = np.random.default_rng(seed)
    for node in graph:
        graph.nodes[node]["weight"] = int(rng.integers(1, 101))
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(rng.normal())
    return graph


def _torus(side: int, seed: int = 0) -> nx.Graph:
    rng = np.random.default_rng(seed)
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side, periodic=True))
    for u, v in graph.edges:
        graph[u][v]["weight"] = int(rng.choice([-1, 1]))
    return graph


def _form(size: int, density: float, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    entries = rng.integers(-100, 101, (size, size)) * (rng.random((size, size)) < density)
    return sl_discs.qubo(np.triu(entries).astype(float), maximise=True)


def _glass(size: int) -> Problem:
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (size, size))
    return sl_discs.ising(np.zeros(size), np.triu(signs, 1))


def _conflicts(variables: int, clauses: int) -> nx.Graph:
    """Returns the graph of clauses of three literals, whose sets of one node each satisfy them."""
    rng = np.random.default_rng(1)
    graph = nx.Graph()
    nodes: dict[int, list[int]] = {}
    for clause in range(clauses):
        signs = rng.choice((-1, 1), 3)
        literals = (1 + rng.choice(variables, 3, replace=False)) * signs
        names = [3 * clause + k for k in range(3)]
        graph.add_edges_from(zip(names, [*names[1:], names[0]], strict=True))
        for name, literal in zip(names, literals.tolist(), strict=True):
            nodes.setdefault(literal, []).append(name)
    for literal, names in nodes.items():
        graph.add_edges_from((u, v) for u in names for v in nodes.get(-literal, []))
    return graph


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "mis-er-60": lambda: sl_discs.mis(nx.gnp_random_graph(60, 0.3, seed=0)),
    "mis-er-200": lambda: sl_discs.mis(nx.gnp_random_graph(200, 0.1, seed=0)),
    "mis-er-750": lambda: sl_discs.mis(nx.gnp_random_graph(750, 0.15, seed=0)),
    "mis-ba-10000": lambda: sl_discs.mis(nx.barabasi_albert_graph(10_000, 4, seed=0)),
    "mis-conflicts-900": lambda: sl_discs.mis(_conflicts(200, 900)),
    "mis-sparse-100000": lambda: sl_discs.mis(_sparse(100_000, 5)),
    "mis-weights-300": lambda: sl_discs.mis(
        _weighed(nx.gnp_random_graph(300, 0.05, seed=0)), weight="weight"
    ),
    "cover-sparse-2000": lambda: sl_discs.vertex_cover(_sparse(2_000, 4)),
    "clique-er-1500": lambda: sl_discs.maxclique(nx.gnp_random_graph(1_500, 0.05, seed=0)),
    "clique-er-400": lambda: sl_discs.maxclique(nx.gnp_random_graph(400, 0.75, seed=0)),
    "cut-er-60": lambda: sl_discs.maxcut(nx.gnp_random_graph(60, 0.5, seed=0)),
    "cut-torus-10": lambda: sl_discs.maxcut(_torus(10)),
    "cut-torus-50": lambda: sl_discs.maxcut(_torus(50)),
    "cut-weights-1000": lambda: sl_discs.maxcut(_weighed(_sparse(1_000, 10))),
    "cut-sparse-20000": lambda: sl_discs.maxcut(_sparse(20_000, 6)),
    "qubo-250": lambda: _form(250, 0.1),
    "qubo-1000": lambda: _form(1_000, 1.0),
    "qubo-portfolio-200": lambda: portfolio(200, 20, 0),
    "qubo-assignment-12": lambda: assignment(12, 0),
    "ising-glass-100": lambda: _glass(100),
}

# Up to which part differences are those of rounding.
_ROUNDING = 1e-9

FLAGS, define = own_flags()
define.list("problems", list(PROBLEMS), "Problems.")
define.list("limits", ["0.05", "0.3", "1", "3"], "Seconds, ascending.")
define.list("seeds", ["0"], "Seeds of the chains.")
define.boolean("unlimited", True, "Whether calls without a limit follow.")
define.string("output", "bench_time_limits.json", "File for the results.")


def gain_of_a_change(problem: Problem, result: Result) -> float:
    """Returns the most that one variable's other value would gain, with penalties of conflicts, as
    a part of the largest sum of the terms of a variable.
    """
    terms = problem.terms().listed()
    state = problem.as_state(result.best_sample).astype(float)
    u, v = terms.edges.T
    weights = terms.scale * terms.weights
    fields = terms.linear + np.bincount(u, weights * state[v], len(state))
    fields += np.bincount(v, weights * state[u], len(state))
    return float(((1 - 2 * state) * fields).max() / terms.bounds().max())


def row_of(problem: Problem, result: Result, seconds: float) -> dict[str, Any]:
    """Returns what counts of a result."""
    return {
        "value": result.best_value,
        "bound": result.bound,
        "optimal": result.optimal,
        "seconds": seconds,
        "stopped": result.stopped,
        "gain": gain_of_a_change(problem, result),
    }


def in_words(row: dict[str, Any]) -> str:
    """Returns value, bound and seconds in one cell."""
    bound = "-" if row["bound"] is None else f"{row['bound']:,.6g}"
    known = "proved" if row["optimal"] else bound
    return f"{row['value']:,.6g} / {known} / {row['seconds']:.2f}"


class Law(NamedTuple):
    """How many pairs of runs of one problem and seed contradict that more time gives no worse.

    Attributes:
      pairs: their number.
      value, bound, proof: in how many pairs it is worse with more time.
      mean_value, mean_bound: of how many pairs of limits the mean over seeds is worse.
      worse: those, in words.
    """

    pairs: int
    value: int
    bound: int
    proof: int
    mean_value: int
    mean_bound: int
    worse: list[str]


def _is_worse(sign: float, longer: float | None, shorter: float | None) -> bool:
    if shorter is None or longer is None:
        return shorter is not None
    return sign * (longer - shorter) < -_ROUNDING * abs(shorter)


def law_of(rows: dict[str, Any], *, default: bool) -> Law:
    """Compares each limit with the shorter ones, or with the default where that takes no longer."""
    found = Law(0, 0, 0, 0, 0, 0, [])
    for name, problem in rows.items():
        sign = problem["sign"]
        runs = problem["runs"]
        limits = [limit for limit in runs if limit != "None"]
        pairs = list(itertools.combinations(limits, 2))
        if default:
            spent = max(row["seconds"] for row in runs.get("None", [{"seconds": math.inf}]))
            pairs = [("None", limit) for limit in limits if float(limit) >= spent]
        for shorter, longer in pairs:
            both = list(zip(runs[shorter], runs[longer], strict=True))
            means = [
                [np.mean([row[field] for row in runs[limit]]) for limit in (longer, shorter)]
                if all(row[field] is not None for row in runs[longer] + runs[shorter])
                else [row[field] for row in (both[0][1], both[0][0])]
                for field in ("value", "bound")
            ]
            worse = _is_worse(sign, *means[0]), _is_worse(-sign, *means[1])
            proof = sum(one["optimal"] and not other["optimal"] for one, other in both)
            found = Law(
                found.pairs + len(both),
                found.value + sum(_is_worse(sign, b["value"], a["value"]) for a, b in both),
                found.bound + sum(_is_worse(-sign, b["bound"], a["bound"]) for a, b in both),
                found.proof + proof,
                found.mean_value + worse[0],
                found.mean_bound + worse[1],
                found.worse,
            )
            for what, (after, before), is_worse in zip(
                ("value", "bound"), means, worse, strict=True
            ):
                if is_worse:
                    found.worse.append(
                        f"{name}: mean {what} {before:,.8g} ({shorter}), {after:,.8g} ({longer})"
                    )
            if proof:
                found.worse.append(f"{name}: {proof} proofs of {shorter} are not there at {longer}")
    return found


def laws_in_words(rows: dict[str, Any]) -> str:
    """Returns how many runs contradict each law, and which."""
    lines = []
    for default, words in ((False, "a shorter limit"), (True, "none, which takes no longer")):
        law = law_of(rows, default=default)
        lines.append(
            f"{law.pairs} pairs of a limit with {words}: value worse in {law.value} (mean over "
            f"seeds in {law.mean_value}), bound in {law.bound} ({law.mean_bound}), proof in {law.proof}"
        )
        lines += [f"  {one}" for one in law.worse]
    all_rows = [
        (f"{name} {limit}", limit, row)
        for name, problem in rows.items()
        for limit, found in problem["runs"].items()
        for row in found
    ]
    late = [
        f"{name}: {row['seconds']:.2f} s"
        for name, limit, row in all_rows
        if limit != "None" and row["seconds"] > 1.1 * float(limit) + 0.05
    ]
    limited = sum(limit != "None" for _, limit, _ in all_rows)
    lines.append(f"{len(late)} of {limited} runs took more than 1.1 x limit + 0.05 s")
    lines += [f"  {one}" for one in late]
    better = [name for name, _, row in all_rows if row["gain"] > _ROUNDING]
    lines.append(f"one change improves {len(better)} answers")
    lines += [f"  {one}" for one in better]
    return "\n".join(lines)


def run(_) -> int:
    output = check_file(FLAGS.output)
    clock = cpu_clock()
    warnings.filterwarnings("ignore", message=".*chains would take")
    rows: dict[str, Any] = {}
    limits: list[float | None] = [float(limit) for limit in FLAGS.limits]
    if FLAGS.unlimited:
        limits.append(None)
    for name in FLAGS.problems:
        problem = PROBLEMS[name]()
        sl_discs.solve(problem, time_limit=0.2)  # loads compiled code
        rows[name] = {"sign": 1 if problem.maximise else -1, "runs": {}}
        for limit in limits:
            found = []
            for seed in FLAGS.seeds:
                # Without what an earlier call has laid out.
                problem = PROBLEMS[name]()
                begin = clock()
                result = sl_discs.solve(problem, time_limit=limit, seed=int(seed))
                spent = clock() - begin - result.timing["compile_s"]
                found.append(row_of(problem, result, spent))
            rows[name]["runs"][str(limit)] = found
            say(f"{name:<20} {limit!s:>5}  " + "   ".join(map(in_words, found)))
        write_json(output, {"measured": measured_by(), "rows": rows})
    say("\n" + laws_in_words(rows))
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
