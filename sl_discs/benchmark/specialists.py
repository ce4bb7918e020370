"""Peers made for one kind of problem: KaMIS for independent sets, simulated bifurcation for dense couplings."""

from __future__ import annotations

import importlib
import time

import numpy as np

from sl_discs.benchmark.contenders import Measurement, NotPlayed, best_of_reads, timed
from sl_discs.experiment.settings import Settings
from sl_discs.instances.complement import complement
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.graph import Graph
from sl_discs.models.kinds import graph_kind

_DEFAULT_S = 0.1


class KaMIS:
    """ReduMIS of the package `chszlablib`, on the graph for sets and on its complement for cliques.

    Raises:
      NotPlayed: the problem is another one.
    """

    name = "kamis"
    unit = "graphs"

    def __init__(self, sampler: str, dataset: Dataset, settings: Settings):
        del sampler, settings
        if dataset.problem not in ("mis", "maxclique"):
            raise NotPlayed("it solves mis and maxclique")
        package = importlib.import_module("chszlablib")
        self._search = package.IndependenceProblems.redumis
        self._dataset = dataset
        own = dataset.graphs if dataset.problem == "mis" else [complement(graph) for graph in dataset.graphs]
        self._graphs = [package.Graph.from_csr(*_adjacency(graph)) for graph in own]

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """One graph after the other, each for its part of the seconds; it may take longer than it is told."""
        limit = _DEFAULT_S if seconds is None else seconds / len(self._graphs)

        def search():
            return [self._search(graph, time_limit=limit, seed=seed) for graph in self._graphs]

        cpu_seconds, elapsed, results = timed(search)
        states = []
        for graph, result in zip(self._dataset.graphs, results, strict=True):
            states.append(np.zeros((1, graph.num_nodes), np.int8))
            states[-1][0, result.vertices] = 1
        return Measurement(len(states), None, elapsed, cpu_seconds, best_of_reads(self._dataset, states))


def _adjacency(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Starts [N + 1] of the nodes' neighbours, and the neighbours."""
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    ends = ends[np.lexsort(ends.T[::-1])]
    starts = np.searchsorted(ends[:, 0], np.arange(graph.num_nodes + 1))
    return starts.astype(np.int64), ends[:, 1].astype(np.int32)


class Bifurcation:
    """Discrete simulated bifurcation (Goto et al. 2021) of the package `simulated-bifurcation`, on one core.

    Raises:
      NotPlayed: a graph is too large for its dense matrices.
    """

    name = "bifurcation"
    unit = "runs"
    _MOST_NODES = 4_000

    def __init__(self, sampler: str, dataset: Dataset, settings: Settings):
        del sampler
        if max(graph.num_nodes for graph in dataset.graphs) > self._MOST_NODES:
            raise NotPlayed(f"it keeps dense matrices; more than {self._MOST_NODES:,} nodes take too long")
        self._package = importlib.import_module("simulated_bifurcation")
        self._torch = importlib.import_module("torch")
        self._torch.set_num_threads(1)
        self._dataset, self._agents = dataset, settings.batch_size
        kind = graph_kind(dataset.problem)
        self._problems = []
        for terms in (kind.terms(graph).listed() for graph in dataset.graphs):
            matrix = np.zeros((len(terms.linear),) * 2)
            u, v = terms.edges.T
            matrix[u, v] = terms.scale * terms.weights
            self._problems.append([self._torch.from_numpy(one) for one in (matrix, np.array(terms.linear, float))])

    def _read(self, problem, seconds: float) -> np.ndarray:
        """States of repeated runs until the CPU-seconds are used up."""
        end = time.process_time() + seconds
        states: list[np.ndarray] = []
        while (left := end - time.process_time()) > 0 or not states:
            found, _ = self._package.maximize(
                *problem, domain="binary", mode="discrete", agents=self._agents, best_only=False, verbose=False,
                timeout=max(left, 0.01), dtype=self._torch.float32,
            )  # fmt: skip
            states.append(found.numpy().astype(np.int8))
        return np.concatenate(states)

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """One graph after the other."""
        self._torch.manual_seed(seed)
        limit = _DEFAULT_S if seconds is None else seconds / len(self._problems)
        cpu_seconds, elapsed, reads = timed(lambda: [self._read(problem, limit) for problem in self._problems])
        runs = sum(map(len, reads))
        return Measurement(runs, None, elapsed, cpu_seconds, best_of_reads(self._dataset, reads))
