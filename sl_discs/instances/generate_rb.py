"""Model RB: clique problems at the threshold (Xu, Boussemart, Hemery and Lecoutre, 2007), as in DISCS's RB set.

n variables of k values give a *conflict graph* of n k nodes: the values of one variable (a group) exclude each
other, and each of r n ln n constraints, on an ordered pair of different variables, excludes p k^2 of their k^2 pairs
of values. With a = ln k / ln n and r = -a / ln(1 - p), an assignment of values without conflict is about as likely to
exist as not. DISCS poses the clique problem on the complement, where a clique has at most one node of each group.

The set goes back to the generator of RUN-CSP (Toenshoff et al. 2021; generate_xu_instances.py of RUNCSP/RUN-CSP),
which Karalias and Loukas (2020) and others used for their RB graphs: n in 10..25, k in 5..20, p in (0.3, 1). This
module draws from its distribution, which differs from Model RB in three respects:

- No solution is planted. The reference is n, which only bounds the clique number, so 100 % is seldom possible.
- A constraint excludes only pairs that no earlier one on the same two variables *in the same order* excludes, so more
  pairs are excluded than by independent constraints. Constraints in the other order are ignored.
- The numbers of constraints and of pairs are rounded down, that of constraints after subtracting 1.

That DISCS's set has this distribution is inferred from its results. The paper's GWG reaches 87.51 % +- 6.19 of the
reference. This project's GWG reached 87.68 +- 5.65 on 500 such graphs, 83.8 +- 8.6 (96 graphs) if constraints avoid
earlier ones in both orders, 92.7 +- 4.5 (96) if they avoid none, and 97.7 +- 4.3 (500) with a planted clique of n
nodes. DISCS declares at most 475 nodes and 90,585 edges; a graph above either limit, one in 80, is drawn again.
"""

from __future__ import annotations

import math

import numpy as np

from sl_discs.instances.graph import Graph

MAX_NODES = 475
MAX_EDGES = 90585


def draw_rb(rng: np.random.Generator, name: str) -> Graph:
    """A clique problem of random size with the distribution of the DISCS RB set; reference: its number of groups."""
    while True:
        num_groups = int(rng.integers(10, 25, endpoint=True))
        group_size = int(rng.integers(5, 20, endpoint=True))
        p = float(rng.uniform(0.3, 1.0))
        if num_groups * group_size > MAX_NODES:
            continue
        graph = clique_problem(rng, name, num_groups, group_size, p)
        if graph.num_edges <= MAX_EDGES:
            return graph


def clique_problem(rng: np.random.Generator, name: str, num_groups: int, group_size: int, p: float) -> Graph:
    """One clique problem; 0 < p < 1.

    Node g * group_size + v is value v of variable g.
    """
    num_nodes = num_groups * group_size
    a = math.log(group_size) / math.log(num_groups)
    r = -a / math.log1p(-p)
    # excluded[g, h, u, v]: whether a constraint on g and h, in this order, excludes the pair of values u and v.
    excluded = np.zeros((num_groups, num_groups, group_size, group_size), dtype=bool)
    for _ in range(int(r * num_groups * math.log(num_groups) - 1)):
        first = int(rng.integers(num_groups))
        second = (first + 1 + int(rng.integers(num_groups - 1))) % num_groups
        left = np.flatnonzero(~excluded[first, second])
        excluded[first, second].flat[rng.permutation(left)[: int(p * group_size**2)]] = True
    conflict = excluded.transpose(0, 2, 1, 3).reshape(num_nodes, num_nodes)
    group = np.arange(num_nodes) // group_size
    allowed = ~(conflict | conflict.T) & (group[:, None] < group)
    return Graph.from_arrays(name, num_nodes, np.argwhere(allowed).astype(np.int32), reference=float(num_groups))
