"""Communities of a network.

In a stochastic block model two members of the same community know each other with probability p,
and members of different communities with probability q. Given who knows whom, the posterior of the
communities is an Ising model at temperature 1. It is symmetric under exchange of the communities,
so the example asks which members belong together. Zachary's karate club split in two after the data
were collected. Colours show the probability of being in the community of Mr. Hi (node 0); squares
are those who left with the other side.
"""

import math
import sys

import networkx as nx

import sl_discs
from sl_discs.support.figures import save_figure

P, Q = 0.25, 0.05


def main(path: str) -> None:
    """Plots the posterior on the club's network."""
    club = nx.karate_club_graph()
    known, unknown = math.log(P / Q) / 2, math.log((1 - P) / (1 - Q)) / 2
    pairs = {(u, v): known if club.has_edge(u, v) else unknown for u in club for v in club if u < v}
    problem = sl_discs.ising(None, pairs, maximise=True, name="communities")

    samples = sl_discs.sample(problem, temperature=1.0, draws=4000, seed=0)
    print(samples)
    print(f"chosen: {samples.chosen}")

    together = [
        samples.expectation(lambda states, v=v: states[:, 0] == states[:, v]).mean for v in club
    ]
    left = [v for v in club if club.nodes[v]["club"] != club.nodes[0]["club"]]
    wrong = [v for v in club if (together[v] < 0.5) != (v in left)]
    print(f"{len(wrong)} of {len(club)} members are on the less probable side: {wrong}")

    def paint(figure):
        axes = figure.subplots()
        axes.set_axis_off()
        place = nx.spring_layout(club, seed=5)
        nx.draw_networkx_edges(club, place, ax=axes, alpha=0.3)
        nx.draw_networkx_labels(club, place, ax=axes, font_size=7)
        for nodes, shape in ((left, "s"), ([v for v in club if v not in left], "o")):
            colours = [together[v] for v in nodes]
            drawn = nx.draw_networkx_nodes(
                club,
                place,
                nodes,
                node_color=colours,
                node_shape=shape,
                vmin=0,
                vmax=1,
                cmap="RdYlBu",
                ax=axes,
            )
        figure.colorbar(drawn, ax=axes, shrink=0.6, label="P(same community as node 0)")

    save_figure(path, (6.5, 5.0), paint)


if __name__ == "__main__":
    main(sys.argv[1])
