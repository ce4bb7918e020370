"""Reductions: the core of cliques, and how much work rules may do. That they keep the optimum is
tested in tests/soundness.
"""

import itertools
import time

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs.instances.graph import Graph
from sl_discs.solving.reductions import presolve
from sl_discs.solving.set_reductions import core


def test_every_larger_clique_is_in_the_core():
    """Also with weights of nodes: what a clique weighs decides."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph = nx.gnp_random_graph(12, 0.5, seed=seed)
        edges = np.array(list(graph.edges), np.int32)
        near = Graph.from_arrays("graph", 12, edges).neighbours
        weights = np.ones(12) if seed % 2 else rng.integers(1, 5, 12).astype(float)
        for clique in nx.find_cliques(graph):
            mass = weights[clique].sum()
            assert core(near, weights, mass - 1)[clique].all()


@pytest.mark.parametrize("kind", ["mis", "maxcut"])
def test_work_is_bounded(monkeypatch, kind):
    """Rules do not begin where they cannot end; on a machine where each look takes a second, the
    clock ends them, and what is done until then counts.
    """
    problem = getattr(sl_discs, kind)(nx.gnp_random_graph(200, 0.012, seed=4))
    clock = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: 0.0)
        parts = [presolve(problem, seconds) for seconds in (1e-6, 1.0)]
        patch.setattr(time, "perf_counter", lambda: float(next(clock)))
        parts += [presolve(problem, seconds) for seconds in (4.0, 40.0)]
    assert next(clock) < 100
    sizes = [len(part.kept) for part in parts]
    assert sizes[0] == 200 > sizes[2] > sizes[3] > sizes[1]
    solved = [
        0
        if part.problem is None
        else sl_discs.solve(part.problem, "metropolis", steps=60_000, chains=8).best_value
        for part in parts
    ]
    assert len({value + part.constant for value, part in zip(solved, parts, strict=True)}) == 1
