"""Families of graphs of the benchmark that DISCS does not have; each function returns what draws the first graphs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from sl_discs.instances.cnf import conflict_graph
from sl_discs.instances.graph import Graph

Family = Callable[[int], list[Graph]]


def satlib_like(count: int) -> list[Graph]:
    """Conflict graphs of random 3-SAT formulas of SATLIB's size: 100 variables, 403 to 449 clauses."""
    graphs = []
    for number in range(count):
        rng = np.random.default_rng([403, number])
        clauses = []
        for _ in range((403, 418, 423, 449)[number % 4]):
            variables = 1 + rng.choice(100, size=3, replace=False)
            signs = rng.choice((-1, 1), size=3)
            clauses.append(tuple(int(literal) for literal in variables * signs))
        graphs.append(conflict_graph(f"3sat-{number}", clauses))
    return graphs


def toroidal(side: int, dimensions: int, *, real: bool = False) -> Family:
    """Toroidal lattices whose bonds weigh -1 or 1 with equal probability, or Gaussian numbers."""
    return functools.partial(_each, functools.partial(_torus, side, dimensions, real))


def sparse(size: int, degree: int) -> Family:
    """Graphs of so many nodes and size * degree / 2 edges, uniformly drawn."""
    return functools.partial(_each, functools.partial(_sparse, size, degree))


def complete(size: int) -> Family:
    """Complete graphs with weights -1 or 1: Sherrington and Kirkpatrick's glass."""
    return functools.partial(_each, functools.partial(_complete, size))


def planar_union(size: int) -> Family:
    """Unions of two planar graphs on the same nodes, as in some graphs of the Gset."""
    return functools.partial(_each, functools.partial(_planar_union, size))


def triangles(count: int) -> Family:
    """So many triangles whose nodes are joined in chains: plateaus that exchanges of nodes cross."""
    return functools.partial(_each, functools.partial(_triangles, count))


def hidden_clique(size: int, density: float, clique: int) -> Family:
    """Random graphs with a clique in them whose nodes have the same degrees as others, on average."""
    return functools.partial(_each, functools.partial(_hidden_clique, size, density, clique))


def _each(draw: Callable[[int], Graph], count: int) -> list[Graph]:
    return [draw(number) for number in range(count)]


def _torus(side: int, dimensions: int, real: bool, number: int) -> Graph:
    sites = np.arange(side**dimensions).reshape((side,) * dimensions)
    edges = np.concatenate(
        [np.stack([sites, np.roll(sites, -1, axis)], axis=-1).reshape(-1, 2) for axis in range(dimensions)]
    )
    rng = np.random.default_rng([side, number])
    weights = rng.normal(size=len(edges)) if real else rng.choice((-1.0, 1.0), len(edges))
    return Graph.from_arrays(f"torus-{number}", sites.size, edges, weights)


def _sparse(size: int, degree: int, number: int) -> Graph:
    graph = nx.gnm_random_graph(size, size * degree // 2, seed=number)
    return Graph.from_arrays(f"sparse-{number}", size, np.array(graph.edges))


def _complete(size: int, number: int) -> Graph:
    edges = np.argwhere(np.triu(np.ones((size, size), bool), 1))
    weights = np.random.default_rng([size, number]).choice((-1.0, 1.0), len(edges))
    return Graph.from_arrays(f"complete-{number}", size, edges, weights)


def _planar_union(size: int, number: int) -> Graph:
    rng = np.random.default_rng([size, number])
    triangles = np.concatenate([Delaunay(rng.random((size, 2))).simplices for _ in range(2)])
    edges = np.sort(np.concatenate([triangles[:, pair] for pair in ((0, 1), (1, 2), (0, 2))]), axis=1)
    return Graph.from_arrays(f"planar-{number}", size, np.unique(edges, axis=0))


def _triangles(count: int, number: int) -> Graph:
    rng = np.random.default_rng([3, number])
    inside = [pair for k in range(count) for pair in itertools.combinations(range(3 * k, 3 * k + 3), 2)]
    # Each node is joined to one node of another triangle, in a random order of the nodes.
    order = rng.permutation(3 * count)
    across = [pair for pair in itertools.pairwise(order.tolist()) if pair[0] // 3 != pair[1] // 3]
    return Graph.from_arrays(f"triangles-{number}", 3 * count, np.array(inside + across))


def _hidden_clique(size: int, density: float, clique: int, number: int) -> Graph:
    rng = np.random.default_rng([size, number])
    joined = np.triu(rng.random((size, size)) < density, 1)
    nodes = np.sort(rng.permutation(size)[:clique])
    # Nodes of the clique have fewer neighbours outside, as many fewer as they have more inside.
    member = np.isin(np.arange(size), nodes)
    kept = density - (1 - density) * (clique - 1) / (size - clique)
    mixed = member[:, None] != member[None, :]
    joined &= ~mixed | (rng.random((size, size)) < kept / density)
    joined[np.ix_(nodes, nodes)] = np.triu(np.ones((clique, clique), bool), 1)
    return Graph.from_arrays(f"hidden-{number}", size, np.argwhere(joined))
