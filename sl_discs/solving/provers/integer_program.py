"""Heaviest independent sets of a graph by SciPy's HiGHS: a program of its own, which imports NumPy
and SciPy alone.

    python integer_program.py < GRAPH.npz

GRAPH.npz has the arrays `weights` [N], at least 0, and `edges` [E, 2]. The program prints lines of
JSON: the `bound` of the linear relaxation with clique inequalities, after which it stops until it
is told to continue; and then the bound of the integer program with the nodes of a best `set`. Every
edge is in a clique, which has one node of a set at most.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import sys

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp


def edge_cliques(size: int, edges: np.ndarray) -> list[list[int]]:
    """Returns cliques, each edge [E, 2] of a graph in one of them; a node that covers most new
    edges joins first.
    """
    near: list[set[int]] = [set() for _ in range(size)]
    for u, v in edges.tolist():
        near[u].add(v)
        near[v].add(u)
    uncovered = [set(neighbours) for neighbours in near]
    cliques = []
    for first in sorted(range(size), key=lambda node: len(near[node])):
        while uncovered[first]:
            clique = [first]
            candidates = uncovered[first]
            gains = dict.fromkeys(candidates, 1)
            fitting = near[first]
            while candidates:
                # Of the nodes that cover a new edge, the one that covers most.
                node = max(candidates, key=lambda member: (gains[member], -member))
                clique.append(node)
                fitting = fitting & near[node]
                for neighbour in uncovered[node] & fitting:
                    gains[neighbour] = gains.get(neighbour, 0) + 1
                candidates = {member for member in gains if member in fitting}
            for node in clique:
                uncovered[node].difference_update(clique)
            cliques.append(clique)
    return cliques


def relaxed(weights: np.ndarray, matrix: sparse.csr_array) -> float:
    """Returns the bound of the linear relaxation, which holds for whatever multipliers HiGHS has
    found.
    """
    solution = linprog(
        -weights, A_ub=matrix, b_ub=np.ones(matrix.shape[0]), bounds=(0, 1), method="highs"
    )
    multipliers = (
        np.zeros(matrix.shape[0])
        if solution.ineqlin is None
        else np.maximum(-solution.ineqlin.marginals, 0)
    )
    return math.fsum(multipliers) + math.fsum(np.maximum(weights - matrix.T @ multipliers, 0))


def main() -> None:
    """Reads the graph and prints both lines."""
    arrays = np.load(sys.stdin.buffer, allow_pickle=False)
    weights = arrays["weights"]
    edges = arrays["edges"]
    cliques = edge_cliques(len(weights), edges)
    # HiGHS in SciPy 1.13 refuses indices of 64 bits.
    rows = np.repeat(np.arange(len(cliques), dtype=np.int32), [len(clique) for clique in cliques])
    nodes = np.concatenate(cliques, dtype=np.int32)
    matrix = sparse.csr_array((np.ones(len(nodes)), (rows, nodes)), (len(cliques), len(weights)))
    print(json.dumps({"bound": relaxed(weights, matrix)}), flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    solution = milp(
        -weights,
        constraints=LinearConstraint(matrix, -np.inf, 1),
        integrality=np.ones(len(weights)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0},
    )
    if solution.x is not None:
        # HiGHS's tolerances are this part of constraints, and of reduced costs about 1.
        bound = -solution.mip_dual_bound + 1e-6 * float(
            weights.sum() + len(weights) * weights.max()
        )
        print(
            json.dumps({"bound": bound, "set": np.flatnonzero(solution.x > 0.5).tolist()}),
            flush=True,
        )


if __name__ == "__main__":
    os.nice(10)
    if sys.platform == "linux":
        # It ends with the search, also where that is killed (PR_SET_PDEATHSIG).
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    main()
