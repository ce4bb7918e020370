"""Draws an Ising ferromagnet below its critical temperature, by chains and by tempering: python
examples/sampling_picture.py sampling.png"""

import sys

import networkx as nx

import sl_discs
from sl_discs.results.canvas import new_figure
from sl_discs.sampling.plots import paint_overlaps, paint_traces

SIDE, TEMPERATURE, FIELD = 16, 1.9, 0.002


def main(path: str) -> None:
    """A row of pictures for each method: magnetisation by draw, and P(q)."""
    graph = nx.grid_2d_graph(SIDE, SIDE)
    problem = sl_discs.ising(dict.fromkeys(graph, -FIELD), dict.fromkeys(graph.edges, -1.0), name="ferromagnet")
    found = [sl_discs.sample(problem, TEMPERATURE, 2400, method, seed=0) for method in ("chain", "tempering")]
    for samples in found:
        print(samples)

    def paint(figure):
        rows = figure.subplots(2, 2, width_ratios=(2, 1))
        for samples, (left, right) in zip(found, rows, strict=True):
            paint_traces(samples, left, "magnetisation")
            paint_overlaps(samples, right)
            left.set_title(f"{samples.method}: {'reliable' if samples.reliable else 'NOT reliable'}")

    new_figure((7.0, 4.0), paint).savefig(path, dpi=80)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sampling.png")
