"""A ladder and its evidence.

An Ising ferromagnet below its critical temperature has two modes. A chain stays in one of them for
hundreds of sweeps, so the share of draws in each mode is a matter of chance. R-hat of the value
looks good, because both modes have the same values, but R-hat of the magnetisation is far above its
limit. Parallel tempering changes modes by way of high temperatures. The evidence for this is that
swaps are rejected equally often between all neighbours, and that each ladder makes many round
trips. The map shows that no part of the lattice prefers a side.
"""

import sys

import networkx as nx

import sl_discs
from sl_discs.sampling.pictures import layout
from sl_discs.support.figures import save_figure

SIDE, TEMPERATURE, FIELD = 16, 1.9, 0.002


def main(path: str) -> None:
    """Rows: magnetisation and P(q) by chain, the same by tempering, and the ladder."""
    graph = nx.grid_2d_graph(SIDE, SIDE)
    problem = sl_discs.ising(
        dict.fromkeys(graph, -FIELD), dict.fromkeys(graph.edges, -1.0), name="ferromagnet"
    )
    found = [
        sl_discs.sample(problem, TEMPERATURE, 2400, method, seed=0)
        for method in ("chain", "tempering")
    ]
    for samples in found:
        print(samples)

    draws = ["trace", "magnetisation", "overlaps"]
    rows = [
        layout(found[0], draws),
        layout(found[1], draws),
        layout(found[1], ["swaps", "round_trips", "marginals"]),
    ]

    def paint(figure):
        for part, (_, paint_row) in zip(figure.subfigures(len(rows), 1), rows, strict=True):
            paint_row(part)

    save_figure(path, (8.7, 8.1), paint)


if __name__ == "__main__":
    main(sys.argv[1])
