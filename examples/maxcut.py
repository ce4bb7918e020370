"""A cut, solved and sampled.

`sl_discs.solve` finds the largest cut of a random geometric graph and proves that none is larger:
colours show the two sides, and edges within a side are pale. `sl_discs.sample` draws cuts with
probability proportional to exp(value / temperature), and its verdict says whether the draws can be
trusted. The lower the temperature, the closer they are to the largest cut.
"""

import sys

import networkx as nx
import numpy as np

import sl_discs
from sl_discs.support.figures import COLOURS, save_figure


def main(path: str) -> None:
    """Left: the largest cut. Right: how many edges are cut in draws at three temperatures."""
    graph = nx.random_geometric_graph(60, 0.22, seed=4)
    problem = sl_discs.maxcut(graph)

    result = sl_discs.solve(problem, seed=0)
    print(
        f"{result.best_value:.0f} of {graph.number_of_edges()} edges are cut, proved by "
        f"{result.bound_by}"
    )

    draws = {
        heat: sl_discs.sample(problem, temperature=heat, draws=2000, seed=0)
        for heat in (2.0, 1.0, 0.5)
    }
    for samples in draws.values():
        print(samples)

    left, right = result.partition
    cut = [edge for edge in graph.edges if (edge[0] in left) != (edge[1] in left)]
    inside = [edge for edge in graph.edges if edge not in cut]

    def paint(figure):
        best, drawn = figure.subplots(1, 2)
        best.set_axis_off()
        best.set_title(
            f"solve: {len(cut)} of {graph.number_of_edges()} edges are cut, proved to be the most"
        )
        place = nx.get_node_attributes(graph, "pos")
        nx.draw_networkx_edges(graph, place, inside, edge_color="0.8", ax=best)
        nx.draw_networkx_edges(graph, place, cut, edge_color="0.3", ax=best)
        for nodes, colour in ((left, COLOURS[0]), (right, COLOURS[1])):
            nx.draw_networkx_nodes(
                graph, place, sorted(nodes), node_size=45, node_color=colour, ax=best
            )

        reliable = all(samples.reliable for samples in draws.values())
        drawn.set_title(
            f"sample: 2,000 draws each, verdict: {'reliable' if reliable else 'NOT reliable'}"
        )
        for (heat, samples), colour in zip(
            draws.items(), (COLOURS[5], COLOURS[2], COLOURS[3]), strict=True
        ):
            bins = np.arange(samples.values.min() - 0.5, samples.values.max() + 1)
            drawn.hist(samples.values, bins, color=colour, alpha=0.8, label=f"temperature {heat:g}")
        drawn.axvline(result.best_value, color="black", linestyle="dashed", label="largest cut")
        drawn.set_xlabel("edges that are cut")
        drawn.set_ylabel("draws")
        drawn.legend(loc="upper left")

    save_figure(path, (8.0, 3.6), paint)


if __name__ == "__main__":
    main(sys.argv[1])
