"""The cases of the benchmarks: small sets of drawn graphs, with DISCS's annealing of their family."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from sl_discs.command import check_choice
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.instances.graph import Graph
from sl_discs.instances.graph_files import conflict_graph
from sl_discs.samplers.single_site import SEQUENTIAL

ENGINES = ("reference", "cpu")
# Names for the case's own choice of a sampler: further fields, and its steps in the time of one default step.
TUNED = {"tuned": ({}, 1), "tuned-sequential": ({"scan": SEQUENTIAL}, 2)}


# Each function of a family returns a function that draws its first graphs.
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
    """Toroidal lattices with weights -1 or 1 of equal probability, or with Gaussian weights."""
    return functools.partial(_each, functools.partial(_torus, side, dimensions, real))


def sparse(size: int, degree: int) -> Family:
    """Uniformly random graphs with `size` nodes and size * degree / 2 edges."""
    return functools.partial(_each, functools.partial(_sparse, size, degree))


def complete(size: int) -> Family:
    """Complete graphs with weights -1 or 1: Sherrington and Kirkpatrick's glass."""
    return functools.partial(_each, functools.partial(_complete, size))


def planar_union(size: int) -> Family:
    """Unions of two planar graphs on the same nodes, as in some graphs of the Gset."""
    return functools.partial(_each, functools.partial(_planar_union, size))


def triangles(count: int) -> Family:
    """Triangles whose nodes are also joined by a random path, with plateaus that exchanges of nodes cross."""
    return functools.partial(_each, functools.partial(_triangles, count))


def hidden_clique(size: int, density: float, clique: int) -> Family:
    """Random graphs with a hidden clique, whose nodes have the same mean degree as the others."""
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
    # A random path through all nodes, without its edges inside triangles.
    order = rng.permutation(3 * count)
    across = [pair for pair in itertools.pairwise(order.tolist()) if pair[0] // 3 != pair[1] // 3]
    return Graph.from_arrays(f"triangles-{number}", 3 * count, np.array(inside + across))


def _hidden_clique(size: int, density: float, clique: int, number: int) -> Graph:
    rng = np.random.default_rng([size, number])
    joined = np.triu(rng.random((size, size)) < density, 1)
    nodes = np.sort(rng.permutation(size)[:clique])
    # Nodes of the clique have fewer neighbours outside it, to compensate for those inside.
    member = np.isin(np.arange(size), nodes)
    kept = density - (1 - density) * (clique - 1) / (size - clique)
    mixed = member[:, None] != member[None, :]
    joined &= ~mixed | (rng.random((size, size)) < kept / density)
    joined[np.ix_(nodes, nodes)] = np.triu(np.ones((clique, clique), bool), 1)
    return Graph.from_arrays(f"hidden-{number}", size, np.argwhere(joined))


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A sampler with its annealing, chosen on other graphs of the family for the best objective in a fixed time.

    The search covered metropolis, gwg and path_auxiliary with six pairs of temperatures each, on four graphs of
    another seed, with up to a second of one core per graph.

    Attributes:
      sampler: its name.
      steps: number of its steps per step of `--steps`, so that run times are similar.
      initial: temperature at step 0.
      final: temperature at the end of an exponential decay.
    """

    sampler: str
    steps: float
    initial: float
    final: float

    def settings(self, settings: Settings, pace: float = 1) -> Settings:
        """The settings of a run with this annealing, and with `steps` times `pace` as many steps."""
        return dataclasses.replace(
            settings,
            chain_length=max(settings.log_every_steps, round(pace * self.steps * settings.chain_length)),
            t_schedule="exp_decay",
            init_temperature=self.initial,
            final_temperature=self.final,
            decay_rate=self.final / self.initial,
        )


@dataclasses.dataclass(frozen=True)
class Case:
    """A problem on a few graphs.

    Attributes:
      name: name in `--cases`.
      problem: name of the problem, such as `mis`.
      graphs: draws the first graphs, given their number.
      annealing: fields of `Settings`.
      tuned: the choice that `--samplers=tuned` runs; None if there is none.
    """

    name: str
    problem: str
    graphs: Family
    annealing: dict[str, Any]
    tuned: Tuned | None = None

    def dataset(self, num_graphs: int) -> Dataset:
        """The first graphs of the case, the same on every machine."""
        graphs = self.graphs(num_graphs)
        index = list(range(num_graphs))
        return Dataset(f"{self.problem}/{self.name}", self.problem, "generated", self.name, graphs, index, num_graphs)

    def settings(self, num_graphs: int, num_chains: int, num_steps: int) -> Settings:
        """The settings of a run on all graphs at once with the case's annealing."""
        return Settings(
            batch_size=num_chains,
            chain_length=num_steps,
            log_every_steps=min(100, num_steps),
            instances_per_batch=num_graphs,
            **self.annealing,
        )


def family(problem: str, graph_type: str, cfg_str: str) -> Family:
    """Draws the first graphs of a random family of DISCS."""
    return functools.partial(_drawn, problem, graph_type, cfg_str)


def _drawn(problem: str, graph_type: str, cfg_str: str, count: int) -> list[Graph]:
    return load_dataset(problem, graph_type, cfg_str, None, num_instances=count).graphs


def _exp_decay(rate: float, floor: float) -> dict[str, Any]:
    return {"t_schedule": "exp_decay", "init_temperature": 1.0, "decay_rate": rate, "final_temperature": floor}


CASES = {
    case.name: case
    for case in (
        Case(
            "mis-er-0.05",
            "mis",
            family("mis", "er_density", "r-0.05"),
            _exp_decay(0.05, 1e-4),
            Tuned("metropolis", 100, 0.4, 0.15),
        ),
        Case("mis-er-0.10", "mis", family("mis", "er_density", "r-0.10"), _exp_decay(0.05, 1e-4)),
        Case("mis-er-0.20", "mis", family("mis", "er_density", "r-0.20"), _exp_decay(0.05, 1e-4)),
        Case(
            "mis-er-0.25",
            "mis",
            family("mis", "er_density", "r-0.25"),
            _exp_decay(0.05, 1e-4),
            Tuned("path_auxiliary", 2, 0.4, 0.15),
        ),
        Case(
            "mis-satlib-like",
            "mis",
            satlib_like,
            _exp_decay(0.005, 1e-5),
            Tuned("metropolis", 120, 0.2, 0.1),
        ),
        Case(
            "maxcut-ba-512",
            "maxcut",
            family("maxcut", "ba", "r-ba-4-n-512-600"),
            _exp_decay(0.1, 1e-6),
            Tuned("metropolis", 100, 1.0, 0.3),
        ),
        Case(
            "maxcut-er-256",
            "maxcut",
            family("maxcut", "er", "r-er-0.15-n-256-300"),
            {"t_schedule": "linear", "init_temperature": 1.0, "final_temperature": 0.5},
            Tuned("path_auxiliary", 1, 2.0, 0.3),
        ),
        Case(
            "maxcut-ba-1024",
            "maxcut",
            family("maxcut", "ba", "r-ba-4-n-1024-1100"),
            _exp_decay(0.1, 1e-6),
            Tuned("metropolis", 120, 1.5, 0.25),
        ),
        Case(
            "maxcut-torus-64",
            "maxcut",
            toroidal(64, 2),
            _exp_decay(0.1, 1e-6),
            Tuned("metropolis", 100, 1.0, 0.3),
        ),
        Case("maxcut-torus-15-3d", "maxcut", toroidal(15, 3), _exp_decay(0.1, 1e-6)),
        Case("maxcut-torus-15-3d-gaussian", "maxcut", toroidal(15, 3, real=True), _exp_decay(0.1, 1e-6)),
        Case("maxcut-sparse-10000", "maxcut", sparse(10_000, 4), _exp_decay(0.1, 1e-6)),
        Case("maxcut-dense-1000", "maxcut", complete(1_000), _exp_decay(0.1, 1e-6)),
        Case("maxcut-dense-2500", "maxcut", complete(2_500), _exp_decay(0.1, 1e-6)),
        Case("maxcut-planar-800", "maxcut", planar_union(800), _exp_decay(0.1, 1e-6)),
        Case("mis-sparse-10000", "mis", sparse(10_000, 5), _exp_decay(0.05, 1e-4)),
        Case("mis-triangles", "mis", triangles(126), _exp_decay(0.05, 1e-4)),
        Case("maxclique-hidden", "maxclique", hidden_clique(400, 0.75, 40), _exp_decay(0.1, 1e-3)),
        Case("maxclique-brock-400", "maxclique", hidden_clique(400, 0.75, 29), _exp_decay(0.1, 1e-3)),
        Case(
            "maxclique-rb",
            "maxclique",
            family("maxclique", "rb", "_"),
            _exp_decay(0.1, 1e-3),
            Tuned("gwg", 2.5, 0.4, 0.05),
        ),
    )
}


def chosen_cases(names: list[str]) -> list[Case]:
    """Cases by name.

    Raises:
      InputError: an unknown name.
    """
    check_choice("cases", names, CASES)
    return [CASES[name] for name in names]
