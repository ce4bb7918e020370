"""Model RB: clique problems with a planted solution (Xu, Boussemart, Hemery and Lecoutre, 2007).

n variables of k values give a *conflict graph* of n k nodes: the values of one variable (a group) exclude
each other, and each of round(r n ln n) constraints, on two variables drawn without looking back at earlier
constraints, excludes round(p k^2) of their k^2 pairs of values, where a = ln k / ln n and r = -a / ln(1 - p)
put the problem at its threshold. One value of each variable is planted, and no constraint excludes a planted
pair, so the planted values are an independent set of the conflict graph. DISCS poses the clique problem on
the complement: the planted set is a clique of n nodes, and no clique is larger, since it holds one node of a
group at most. Its size n is therefore the exact optimum, and the reference of the graph.

Parameters as in Karalias and Loukas (2020), the source of the DISCS set: n in 10..25, k in 5..20, p in (0.3,
1). DISCS declares at most 475 nodes and 90,585 edges; a graph above either is drawn again.
Measured on the 500 graphs of seed 0: density of the complement .786 on average (.074 between graphs), 216 nodes.
"""

from __future__ import annotations

import math

import numpy as np

from sl_discs.instances.graph import Graph

MAX_NODES = 475
MAX_EDGES = 90585


def draw_rb(rng: np.random.Generator, name: str) -> Graph:
    """A clique problem of random size with the distribution of the DISCS RB set; reference: its clique number."""
    while True:
        num_groups = int(rng.integers(10, 25, endpoint=True))
        group_size = int(rng.integers(5, 20, endpoint=True))
        p = float(rng.uniform(0.3, 1.0))
        if num_groups * group_size > MAX_NODES:
            continue
        graph, _ = planted_clique(rng, name, num_groups, group_size, p)
        if graph.num_edges <= MAX_EDGES:
            return graph


def planted_clique(
    rng: np.random.Generator, name: str, num_groups: int, group_size: int, p: float
) -> tuple[Graph, np.ndarray]:
    """One Model RB clique problem and the nodes [num_groups] of its planted clique.

    Node g * group_size + v is value v of variable g; 0 < p < 1. Where round(p k^2) would exclude every pair, all
    but the planted one are excluded.
    """
    conflict = np.kron(np.eye(num_groups, dtype=bool), np.ones((group_size, group_size), dtype=bool))
    planted = rng.integers(group_size, size=num_groups)
    a = math.log(group_size) / math.log(num_groups)
    r = -a / math.log1p(-p)
    num_pairs = min(round(p * group_size**2), group_size**2 - 1)
    for _ in range(round(r * num_groups * math.log(num_groups))):
        first = int(rng.integers(num_groups))
        second = (first + 1 + int(rng.integers(num_groups - 1))) % num_groups
        order = rng.random(group_size**2)
        order[planted[first] * group_size + planted[second]] = np.inf  # comes last, so is never excluded
        u, v = np.divmod(np.argsort(order, kind="stable")[:num_pairs], group_size)
        conflict[first * group_size + u, second * group_size + v] = True
        conflict[second * group_size + v, first * group_size + u] = True
    num_nodes = num_groups * group_size
    edges = np.argwhere(np.triu(~conflict, k=1)).astype(np.int32)
    graph = Graph.from_arrays(name, num_nodes, edges, reference=float(num_groups))
    return graph, np.arange(num_groups) * group_size + planted
