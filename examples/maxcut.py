"""A cut, drawn.

`sl_discs.solve` looks for the largest cut of a random geometric graph. Colours show the two sides, and cut edges are
dashed. The answer uses the labels of the graph.
"""

import sys

import networkx as nx

import sl_discs
from sl_discs.experiment.figures import COLOURS, save_figure


def main(path: str) -> None:
    """Plots the best cut of a random geometric graph."""
    graph = nx.random_geometric_graph(60, 0.22, seed=4)

    model = sl_discs.maxcut(graph)
    result = sl_discs.solve(model, "sl_path_auxiliary", seed=0)
    print(result)

    left, right = result.partition
    crossing = [(u, v) for u, v in graph.edges if (u in left) != (v in left)]
    inside = [(u, v) for u, v in graph.edges if (u in left) == (v in left)]

    def paint(figure):
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_title(f"{len(crossing)} of {graph.number_of_edges()} edges are cut")
        place = nx.get_node_attributes(graph, "pos")
        nx.draw_networkx_edges(graph, place, inside, edge_color=COLOURS[6], ax=axes)
        nx.draw_networkx_edges(graph, place, crossing, edge_color=COLOURS[4], width=0.7, style="dashed", ax=axes)
        for nodes, colour in ((left, COLOURS[0]), (right, COLOURS[1])):
            nx.draw_networkx_nodes(graph, place, sorted(nodes), node_size=60, node_color=colour, ax=axes)

    save_figure(path, (5.0, 5.0), paint)


if __name__ == "__main__":
    main(sys.argv[1])
