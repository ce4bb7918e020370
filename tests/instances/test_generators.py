"""Generators: each family has the distribution that it states, and its streams are pinned."""

import hashlib
import math

import networkx as nx
import numpy as np
import pytest

from sl_discs.instances import generators
from sl_discs.instances.generators import (
    MAX_EDGES,
    MAX_NODES,
    barabasi_albert_edges,
    clique_problem,
    draw_maxcut_er,
    erdos_renyi_edges,
)
from sl_discs.support.errors import InputError

FAMILIES = {
    "er_density": lambda: generators.mis_er_density("0.10"),
    "ertest": lambda: generators.mis_ertest("800"),
    "maxcut_er": lambda: generators.maxcut_er("er-0.15-n-256-300"),
    "maxcut_ba": lambda: generators.maxcut_ba("ba-4-n-16-20"),
    "optsicom": lambda: generators.TORUS,
    "rb": lambda: generators.CLIQUES,
    "mis_rb": lambda: generators.mis_rb("200"),
}

GOLDEN = {
    "er_density": ["68d6ef09817f0baa", "dfadddf91fec7368"],
    "ertest": ["4d0872ba5b68399c", "3a8674924d2494e9"],
    "maxcut_er": ["d099616ef99414a0", "3fc02539bae9be46"],
    "maxcut_ba": ["fc4366328d09c62a", "42950651eb8f427f"],
    "optsicom": ["00705cdcec19d017", "d90c9f6824d1db90"],
    "rb": ["6068be6c8a56112d", "b547f04f8bec8e0c"],
    "mis_rb": ["a79371581b627d25", "ff48889f42c4a3bf"],
}


def fingerprint(graph):
    digest = hashlib.sha256(f"{graph.num_nodes} {graph.reference}".encode())
    digest.update(np.ascontiguousarray(graph.edges, "<i4").tobytes())
    digest.update(
        b"" if graph.weights is None else np.ascontiguousarray(graph.weights, "<f8").tobytes()
    )
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("family", FAMILIES)
def test_streams_are_pinned(family):
    """A change here means GENERATOR_VERSION must go up: seeds would no longer give the published
    graphs.
    """
    generator = FAMILIES[family]()
    assert [fingerprint(generator.draw(0, 0)), fingerprint(generator.draw(7, 3))] == GOLDEN[family]
    assert len({fingerprint(generator.draw(seed, k)) for seed, k in ((5, 2), (5, 3), (6, 2))}) == 3


def test_er_density_within_five_standard_errors():
    # A false alarm of any of the six checks has a probability below 4e-6.
    for p in ("0.05", "0.10", "0.15", "0.20", "0.25"):
        graphs = [generators.mis_er_density(p).draw(0, k) for k in range(4)]
        pairs = sum(g.num_nodes * (g.num_nodes - 1) // 2 for g in graphs)
        deviation = sum(g.num_edges for g in graphs) - float(p) * pairs
        assert abs(deviation) < 5 * math.sqrt(pairs * float(p) * (1 - float(p)))
        assert all(700 <= g.num_nodes <= 800 and g.weights is None for g in graphs)
    # Both bounds occur: of 200 sizes out of three, one is missing with probability 3 (2/3)^200 <
    # 1e-34.
    sizes = {generators.maxcut_ba("ba-2-n-5-7").draw(0, k).num_nodes for k in range(200)}
    assert sizes == {5, 6, 7}


def test_every_pair_is_equally_likely():
    # 10 pairs, 2000 graphs, p = .3: each count within 5.5 standard errors; false alarm below 10 *
    # 4e-8.
    rng = np.random.Generator(np.random.PCG64(0))
    counts = np.zeros((5, 5))
    for _ in range(2000):
        edges = erdos_renyi_edges(rng, 5, 0.3)
        counts[edges[:, 0], edges[:, 1]] += 1
    above = np.triu_indices(5, 1)
    assert counts.sum() == counts[above].sum()
    assert np.abs(counts[above] - 600).max() < 5.5 * math.sqrt(2000 * 0.3 * 0.7)


def test_maxcut_er_is_the_largest_component():
    for k in range(10):  # at p = 0.02 graphs of 120 nodes have isolated ones
        graph = draw_maxcut_er(np.random.Generator(np.random.PCG64(k)), "g", 100, 120, 0.02)
        as_networkx = nx.Graph(graph.edges.tolist())
        assert nx.is_connected(as_networkx)
        assert 100 <= graph.num_nodes == as_networkx.number_of_nodes() <= 120
        assert (graph.weights == 1).all()
    with pytest.raises(InputError):
        draw_maxcut_er(np.random.Generator(np.random.PCG64(0)), "g", 10, 10, 0.001)


def test_barabasi_albert_grows_as_stated():
    rng = np.random.Generator(np.random.PCG64(0))
    for num_nodes, m in ((5, 4), (2, 1), (60, 4), (300, 3)):
        edges = barabasi_albert_edges(rng, num_nodes, m)
        assert len(edges) == len({tuple(e) for e in edges.tolist()}) == (num_nodes - m) * m
        assert (
            np.bincount(edges[:, 1], minlength=num_nodes)[m + 1 :] == m
        ).all()  # m earlier ones each
    # Preference: old nodes gather far more than m = 3 neighbours on average than they would
    # uniformly (about 15).
    degrees = np.bincount(edges.ravel())
    assert degrees[:10].mean() > 20


def test_rb_has_the_exclusions_that_it_states():
    """Two groups lack the pairs of whole constraints; how many groups have none is a matter of
    chance alone.
    """
    for k, (groups, size, p) in enumerate([(10, 5, 0.3), (6, 4, 0.9), (25, 19, 0.5), (12, 8, 0.9)]):
        graph = clique_problem(np.random.Generator(np.random.PCG64(k)), "g", groups, size, p)
        assert (graph.num_nodes, graph.reference) == (groups * size, groups)
        left, right = (graph.edges // size).T
        assert (left != right).all()  # so no clique has two of a group
        edges = np.zeros((groups, groups), dtype=int)
        np.add.at(edges, (np.minimum(left, right), np.maximum(left, right)), 1)
        excluded = size**2 - edges[np.triu_indices(groups, 1)]
        one = int(p * size**2)
        constraints = int(-math.log(size) / math.log1p(-p) * groups - 1)
        # No constraint excludes more than `one`, and a pair of groups that has any lacks at least
        # as many edges.
        assert ((excluded == 0) | (excluded >= one)).all()
        assert one <= excluded.sum() <= constraints * one
        # C constraints on P pairs of groups, at random, leave each pair without one with
        # probability (1 - 1/P)^C.
        pairs = len(excluded)
        free = (1 - 1 / pairs) ** constraints
        # False alarm below 1e-6 each: their variance is below that of independent pairs.
        assert abs((excluded == 0).sum() - pairs * free) <= 5 * math.sqrt(pairs * free * (1 - free))


def test_rb_sizes_and_density():
    # Graphs differ in density by about .07, so .04 is four standard errors of a mean of 50; the
    # seed pins the draws.
    graphs = [generators.CLIQUES.draw(0, k) for k in range(50)]
    density = [2 * g.num_edges / (g.num_nodes * (g.num_nodes - 1)) for g in graphs]
    assert abs(np.mean(density) - 0.786) < 0.04
    assert all(50 <= g.num_nodes <= MAX_NODES and g.num_edges <= MAX_EDGES for g in graphs)
    assert all(10 <= g.reference <= 25 for g in graphs)


def test_torus_is_six_regular_with_fair_signs():
    graphs = [generators.TORUS.draw(0, k) for k in range(10)]
    for graph in graphs:
        assert (graph.num_nodes, graph.num_edges) == (125, 375)
        assert (np.bincount(graph.edges.ravel()) == 6).all()
        assert set(graph.weights) == {-1, 1}
        torus = nx.grid_graph([5, 5, 5], periodic=True)
        assert {tuple(e) for e in graph.edges.tolist()} == {
            tuple(sorted(25 * x + 5 * y + z for x, y, z in e)) for e in torus.edges
        }
    total = sum(g.weights.sum() for g in graphs)
    assert abs(total) < 5 * math.sqrt(3750)  # false alarm 6e-7
