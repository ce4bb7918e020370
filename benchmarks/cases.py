"""The cases of the benchmarks: small sets of drawn graphs, with DISCS's annealing of their
family.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.instances.graph_files import conflict_graph
from sl_discs.samplers.single_site import SEQUENTIAL
from sl_discs.support.checks import check_choice

ENGINES = ("reference", "cpu", "cuda")
# Names for the case's own choice of a sampler: further fields, and its steps in the time of one
# default step.
TUNED = {"tuned": ({}, 1), "tuned-sequential": ({"scan": SEQUENTIAL}, 2)}


# Draws the first graphs of a case, given their number.
Family = Callable[[int], list[Graph]]


def each(draw: Callable[..., Graph], *given: Any) -> Family:
    """The first graphs, each drawn from what is given and its number."""
    return lambda count: [draw(*given, number) for number in range(count)]


def family(problem: str, graph_type: str, cfg_str: str) -> Family:
    """Draws the first graphs of a random family of DISCS."""
    return lambda count: (
        load_dataset(problem, graph_type, cfg_str, None, num_instances=count).graphs
    )


def satlib_like(number: int) -> Graph:
    """Conflict graph of a random 3-SAT formula of SATLIB's size: 100 variables, 403 to 449
    clauses.
    """
    rng = np.random.default_rng([403, number])
    clauses = []
    for _ in range((403, 418, 423, 449)[number % 4]):
        variables = 1 + rng.choice(100, size=3, replace=False)
        signs = rng.choice((-1, 1), size=3)
        clauses.append(tuple(int(literal) for literal in variables * signs))
    return conflict_graph(f"3sat-{number}", clauses)


def torus(side: int, dimensions: int, real: bool, number: int) -> Graph:
    """Toroidal lattice with weights -1 or 1 of equal probability, or with Gaussian weights."""
    sites = np.arange(side**dimensions).reshape((side,) * dimensions)
    edges = np.concatenate(
        [
            np.stack([sites, np.roll(sites, -1, axis)], axis=-1).reshape(-1, 2)
            for axis in range(dimensions)
        ]
    )
    rng = np.random.default_rng([side, number])
    weights = rng.normal(size=len(edges)) if real else rng.choice((-1.0, 1.0), len(edges))
    return Graph.from_arrays(f"torus-{number}", sites.size, edges, weights)


def sparse(size: int, degree: int, number: int) -> Graph:
    """Uniformly random graph with `size` nodes and size * degree / 2 edges."""
    graph = nx.gnm_random_graph(size, size * degree // 2, seed=number)
    return Graph.from_arrays(f"sparse-{number}", size, np.array(graph.edges))


def complete(size: int, number: int) -> Graph:
    """Complete graph with weights -1 or 1: Sherrington and Kirkpatrick's glass."""
    edges = np.argwhere(np.triu(np.ones((size, size), bool), 1))
    weights = np.random.default_rng([size, number]).choice((-1.0, 1.0), len(edges))
    return Graph.from_arrays(f"complete-{number}", size, edges, weights)


def planar_union(size: int, number: int) -> Graph:
    """Union of two planar graphs on the same nodes, as in some graphs of the Gset."""
    rng = np.random.default_rng([size, number])
    triangles = np.concatenate([Delaunay(rng.random((size, 2))).simplices for _ in range(2)])
    edges = np.sort(
        np.concatenate([triangles[:, pair] for pair in ((0, 1), (1, 2), (0, 2))]), axis=1
    )
    return Graph.from_arrays(f"planar-{number}", size, np.unique(edges, axis=0))


def triangles(count: int, number: int) -> Graph:
    """Triangles whose nodes are also joined by a random path, with plateaus that exchanges of nodes
    cross.
    """
    rng = np.random.default_rng([3, number])
    inside = [
        pair for k in range(count) for pair in itertools.combinations(range(3 * k, 3 * k + 3), 2)
    ]
    # A random path through all nodes, without its edges inside triangles.
    order = rng.permutation(3 * count)
    across = [pair for pair in itertools.pairwise(order.tolist()) if pair[0] // 3 != pair[1] // 3]
    return Graph.from_arrays(f"triangles-{number}", 3 * count, np.array(inside + across))


def hidden_clique(size: int, density: float, clique: int, number: int) -> Graph:
    """Random graph with a hidden clique, whose nodes have the same mean degree as the others."""
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


def steiner(dimensions: int, number: int) -> Graph:
    """A set covering problem on the lines of an affine space of order 3 as an independent set, its
    nodes permuted.

    A point is a node, and so is each of the three points on a line, joined to the other two and to
    the point. The largest sets have a node of each line, and the points outside a smallest set that
    meets all lines. These are the complements of the graphs MANN_a9 (2 dimensions), MANN_a27 and
    MANN_a81 of DIMACS, by C. Mannino, with largest sets of 16, 126 and 1,100 nodes.
    """
    points = list(itertools.product(range(3), repeat=dimensions))
    place = {point: k for k, point in enumerate(points)}
    # Of two points, the third on their line makes each coordinate's sum a multiple of 3.
    lines = {
        tuple(
            sorted(
                (
                    place[one],
                    place[other],
                    place[tuple(-(a + b) % 3 for a, b in zip(one, other, strict=True))],
                )
            )
        )
        for one, other in itertools.combinations(points, 2)
    }
    edges: list[tuple[int, int]] = []
    for first, line in zip(itertools.count(len(points), 3), sorted(lines)):
        nodes = range(first, first + 3)
        edges += [*itertools.combinations(nodes, 2), *zip(line, nodes, strict=True)]
    order = np.random.default_rng([dimensions, number]).permutation(len(points) + 3 * len(lines))
    return Graph.from_arrays(f"steiner-{number}", len(order), order[np.array(edges)])


def planted_assignment(groups: int, size: int, number: int) -> Graph:
    """An independent set of model RB at its threshold, with one node in each group planted, as the
    frb graphs.

    Source: Xu, Boussemart, Hemery and Lecoutre 2007, "Random constraint satisfaction: easy
    generation of hard (satisfiable) instances". Each constraint excludes a quarter of the pairs of
    nodes of two groups.
    """
    rng = np.random.default_rng([groups, size, number])
    chosen = rng.integers(size, size=groups)
    joined = np.kron(np.eye(groups), np.ones((size, size))).astype(bool)
    for _ in range(round(np.log(size) / np.log(4 / 3) * groups)):
        one, other = rng.choice(groups, 2, replace=False) * size
        pairs = np.delete(
            np.arange(size * size), chosen[one // size] * size + chosen[other // size]
        )
        u, v = np.divmod(rng.permutation(pairs)[: round(size * size / 4)], size)
        joined[one + u, other + v] = joined[other + v, one + u] = True
    return Graph.from_arrays(f"planted-{number}", groups * size, np.argwhere(np.triu(joined, 1)))


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A sampler with its annealing, chosen on other graphs of the family for the best objective in
    a fixed time.

    The search covered metropolis, gwg and path_auxiliary with six pairs of temperatures each, on
    four graphs of another seed, with up to a second of one core per graph. `steps` is the number of
    its steps per step of `--steps`, so that run times are similar.
    """

    sampler: str
    steps: float
    initial: float
    final: float

    def settings(self, settings: Settings, pace: float = 1) -> Settings:
        """The settings of a run with this annealing, and with `steps` times `pace` as many
        steps.
        """
        return dataclasses.replace(
            settings,
            chain_length=max(
                settings.log_every_steps, round(pace * self.steps * settings.chain_length)
            ),
            t_schedule="exp_decay",
            init_temperature=self.initial,
            final_temperature=self.final,
            decay_rate=self.final / self.initial,
        )


def _exp_decay(rate: float, floor: float) -> dict[str, Any]:
    return {
        "t_schedule": "exp_decay",
        "init_temperature": 1.0,
        "decay_rate": rate,
        "final_temperature": floor,
    }


_ANNEALING = {
    "mis": _exp_decay(0.05, 1e-4),
    "maxcut": _exp_decay(0.1, 1e-6),
    "maxclique": _exp_decay(0.1, 1e-3),
}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str  # name in `--cases`, which begins with that of the problem
    graphs: Family  # draws the first graphs, given their number
    tuned: Tuned | None = None  # the choice that `--samplers=tuned` runs; None if there is none
    annealing: dict[str, Any] | None = None  # fields of `Settings`; None: those of the problem

    @property
    def problem(self) -> str:
        return self.name.partition("-")[0]

    def dataset(self, num_graphs: int) -> Dataset:
        """The first graphs of the case, the same on every machine."""
        graphs = self.graphs(num_graphs)
        index = list(range(num_graphs))
        return Dataset(
            f"{self.problem}/{self.name}",
            self.problem,
            "generated",
            self.name,
            graphs,
            index,
            num_graphs,
        )

    def settings(self, num_graphs: int, num_chains: int, num_steps: int) -> Settings:
        """The settings of a run on all graphs at once with the case's annealing."""
        return Settings(
            batch_size=num_chains,
            chain_length=num_steps,
            log_every_steps=min(100, num_steps),
            instances_per_batch=num_graphs,
            **(self.annealing or _ANNEALING[self.problem]),
        )


_LINEAR = {"t_schedule": "linear", "init_temperature": 1.0, "final_temperature": 0.5}
CASES = {
    case.name: case
    for case in (
        Case(
            "mis-er-0.05",
            family("mis", "er_density", "r-0.05"),
            Tuned("metropolis", 100, 0.4, 0.15),
        ),
        Case("mis-er-0.10", family("mis", "er_density", "r-0.10")),
        Case("mis-er-0.20", family("mis", "er_density", "r-0.20")),
        Case(
            "mis-er-0.25",
            family("mis", "er_density", "r-0.25"),
            Tuned("path_auxiliary", 2, 0.4, 0.15),
        ),
        Case(
            "mis-satlib-like",
            each(satlib_like),
            Tuned("metropolis", 120, 0.2, 0.1),
            _exp_decay(0.005, 1e-5),
        ),
        Case(
            "maxcut-ba-512",
            family("maxcut", "ba", "r-ba-4-n-512-600"),
            Tuned("metropolis", 100, 1.0, 0.3),
        ),
        Case(
            "maxcut-er-256",
            family("maxcut", "er", "r-er-0.15-n-256-300"),
            Tuned("path_auxiliary", 1, 2.0, 0.3),
            _LINEAR,
        ),
        Case(
            "maxcut-ba-1024",
            family("maxcut", "ba", "r-ba-4-n-1024-1100"),
            Tuned("metropolis", 120, 1.5, 0.25),
        ),
        Case("maxcut-torus-64", each(torus, 64, 2, False), Tuned("metropolis", 100, 1.0, 0.3)),
        Case("maxcut-torus-15-3d", each(torus, 15, 3, False)),
        Case("maxcut-torus-15-3d-gaussian", each(torus, 15, 3, True)),
        Case("maxcut-sparse-10000", each(sparse, 10_000, 4)),
        Case("maxcut-dense-1000", each(complete, 1_000)),
        Case("maxcut-dense-2500", each(complete, 2_500)),
        Case("maxcut-planar-800", each(planar_union, 800)),
        Case("mis-sparse-10000", each(sparse, 10_000, 5)),
        Case("mis-triangles", each(triangles, 126)),
        Case("mis-er-700-800", family("mis", "ertest", "r-800")),
        Case("mis-random-3000", each(sparse, 3_000, 20)),
        Case("mis-steiner-27", each(steiner, 3)),
        Case("mis-steiner-81", each(steiner, 4)),
        Case("mis-frb-40-19", each(planted_assignment, 40, 19)),
        Case("mis-frb-50-23", each(planted_assignment, 50, 23)),
        Case("maxclique-hidden", each(hidden_clique, 400, 0.75, 40)),
        Case("maxclique-brock-400", each(hidden_clique, 400, 0.75, 29)),
        Case("maxclique-rb", family("maxclique", "rb", "_"), Tuned("gwg", 2.5, 0.4, 0.05)),
    )
}


def chosen_cases(names: list[str]) -> list[Case]:
    check_choice("cases", names, CASES)
    return [CASES[name] for name in names]
