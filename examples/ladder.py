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
from sl_discs.sampling.pictures import (
    paint_marginals,
    paint_overlaps,
    paint_round_trips,
    paint_swaps,
    paint_trace,
)
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

    def paint(figure):
        grid = figure.add_gridspec(3, 3)
        for row, samples in enumerate(found):
            left, right = figure.add_subplot(grid[row, :2]), figure.add_subplot(grid[row, 2])
            paint_trace(samples, left, "magnetisation")
            paint_overlaps(samples, right)
            left.set_title(
                f"{samples.method}: {'reliable' if samples.reliable else 'NOT reliable'}"
            )
        for column, paint_part in enumerate((paint_swaps, paint_round_trips, paint_marginals)):
            paint_part(found[1], figure.add_subplot(grid[2, column]))

    save_figure(path, (7.5, 6.0), paint)


if __name__ == "__main__":
    main(sys.argv[1])
