"""Contenders of the benchmarks: this package's engines, its `solve`, and other packages where they
are installed.

Each runs a case with a seed and reports its work, its time and its results.
"""

from __future__ import annotations

import abc
import dataclasses
import importlib
import importlib.util
import select
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from jaxtyping import Float64

from cases import TUNED
from sl_discs.engines.choice import choose_engine
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.graph import Dataset, Graph, complement
from sl_discs.localization.method import build_method, method_fields
from sl_discs.localization.schedule import Localization
from sl_discs.models.terms import Coefficients
from sl_discs.problems import Problem
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import PENALTY
from sl_discs.samplers.single_site import Metropolis
from sl_discs.solving.result import Result
from sl_discs.solving.solver import solve
from sl_discs.support.errors import InputError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Measurement(NamedTuple):
    """One repetition.

    Attributes:
      chain_steps: Markov steps of all chains; a peer's unit is its own (`Contender.unit`).
      flips: sites that changed; None if unknown.
      seconds: wall time, without compilation.
      cpu_seconds: CPU time of this process on all cores.
      best: [G] verified objective of the best state of each graph; None if only speed was measured.
    """

    chain_steps: int
    flips: float | None
    seconds: float
    cpu_seconds: float
    best: Float64[np.ndarray, "G"] | None


class Contender(Protocol):
    """An engine of this project, or a peer."""

    name: str  # name in the report
    unit: str  # the unit of its `chain_steps`

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """One repetition; if `seconds` is given and quality depends on it, of about that many
        CPU-seconds.
        """


class NotPlayed(Exception):
    """An engine cannot run a sampler; the message says why."""


class Own:
    """A sampler of this project on one of its engines, with `more` fields; NotPlayed if it is
    unsupported.
    """

    unit = "chain-steps"

    def __init__(
        self,
        engine: str,
        sampler: str,
        dataset: Dataset,
        settings: Settings,
        more: Mapping[str, Any] | None = None,
    ):
        fields: dict[str, Any] = {"name": sampler, **(more or {})}
        unknown = [name for name in fields if name not in {"name", *method_fields(sampler)}]
        if unknown:
            raise NotPlayed(f"{sampler} has no {unknown[0]}")
        if "K" in method_fields(sampler):
            # As many levels as fit: short runs measure speed, which does not depend on their
            # number.
            fields["K"] = max(1, min(Localization.K, settings.chain_length // Localization.n_min))
        self.name = engine
        self._method = build_method(fields)
        self._dataset = dataset
        self._settings = dataclasses.replace(settings, engine=engine)
        try:
            choose_engine(engine, self._method.sampler)
        except InputError as error:
            raise NotPlayed(str(error)) from error

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        del seconds
        settings = dataclasses.replace(self._settings, seed=seed)
        cpu_seconds, _, record = timed(
            run_sampler, plan_of(self._dataset, PENALTY, self._method, settings)
        )  # fmt: skip
        chain_steps = round(record.chain_steps_per_s * record.run_s)
        best = np.array([instance.best for instance in record.instances])
        return Measurement(
            chain_steps, float(record.hops.mean()) * chain_steps, record.run_s, cpu_seconds, best
        )


class Default:
    """`sl_discs.solve` with its defaults and a time limit; NotPlayed where it chooses another
    engine.
    """

    unit = "chain-steps"

    def __init__(self, engine: str, dataset: Dataset, seconds: float):
        self.name, self._seconds = engine, seconds
        if choose_engine("auto", Metropolis())[0].name != engine:
            raise NotPlayed("sl_discs.solve chooses another engine here")
        self._problems = [
            Problem(dataset.problem, graph.name, range(graph.num_nodes), graph)
            for graph in dataset.graphs
        ]

    def _solve(self, seed: int) -> list[Result]:
        return [solve(problem, seed=seed, time_limit=self._seconds) for problem in self._problems]

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        del seconds
        cpu_seconds, elapsed, results = timed(self._solve, seed)
        steps = [result.steps * len(result.values) for result in results]
        flips = float(sum(result.hops * one for result, one in zip(results, steps, strict=True)))
        return Measurement(
            sum(steps),
            flips,
            elapsed,
            cpu_seconds,
            np.array([result.best_value for result in results]),
        )


def best_of_reads(dataset: Dataset, reads: list[np.ndarray]) -> Float64[np.ndarray, "G"]:
    """Verified objective of the best of each graph's states [R, N]."""
    kind, best = graph_kind(dataset.problem), []
    for graph, states in zip(dataset.graphs, reads, strict=True):
        best.append(kind.sign * (kind.sign * kind.evaluator(graph)(states).values).max())
    return np.array(best)


def timed(
    function: Callable[_Arguments, _Result], *arguments: _Arguments.args, **more: _Arguments.kwargs
) -> tuple[float, float, _Result]:
    """CPU-seconds of all cores and wall seconds that a call took, and its result."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    result = function(*arguments, **more)
    return time.process_time() - cpu_begin, time.perf_counter() - begin, result


class _Clock:
    """Seconds of this process, and those that it waits for another one, which proves."""

    def __init__(self):
        self._waited = 0.0
        self._select = select.select

    def __call__(self) -> float:
        return time.process_time() + self._waited

    def select(self, *arguments: Any) -> Any:
        begin = self._wall()
        found = self._select(*arguments)
        self._waited += self._wall() - begin
        return found

    _wall = staticmethod(time.monotonic)


def cpu_clock() -> Callable[[], float]:
    """Makes CPU time the clock of this process, so that other work on the machine counts little;
    returns it.
    """
    clock = _Clock()
    time.perf_counter = clock
    select.select = clock.select
    return clock


class Discs:
    """A sampler of DISCS in its own loop, for a few steps; only its speed is measured."""

    name = "discs"
    unit = "chain-steps"
    _STEPS = 20

    def __init__(self, sampler: str, dataset: Dataset, settings: Settings):
        if sampler in (*TUNED, "default"):
            raise NotPlayed("its steps are those of our samplers by their names")
        loops = importlib.import_module("discs_overhead")
        experiment = loops.upstream_experiment(
            dataset, settings.batch_size, max(settings.chain_length, 1_100)
        )
        self._loop = loops.StepLoop(sampler, experiment)
        self._per_step = len(dataset.graphs) * settings.batch_size
        self._loop.play(2)  # compiles

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """The next steps of the same chains."""
        del seed, seconds
        cpu_seconds, _, elapsed = timed(self._loop.play, self._STEPS)
        return Measurement(self._STEPS * self._per_step, None, elapsed, cpu_seconds, None)


class _Heuristic(abc.ABC):
    """A peer on one core, one graph after the other, with as many reads as our runs have chains."""

    unit = "reads"

    def __init__(self, sampler: str, dataset: Dataset, settings: Settings):
        del sampler
        self._dataset, self._reads = dataset, settings.batch_size
        self._problems = [self._problem(graph) for graph in dataset.graphs]

    def _terms(self, graph: Graph) -> Coefficients:
        return graph_kind(self._dataset.problem).model(graph, PENALTY).listed()

    @abc.abstractmethod
    def _problem(self, graph: Graph) -> Any:
        """The problem in the peer's form."""

    def _search(self, problem: Any, seconds: float | None, seed: int) -> np.ndarray:
        """States [R, N] of zeros and ones, found in so many seconds; None: the peer's choice."""
        raise NotImplementedError

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        limit = None if seconds is None else seconds / len(self._problems)
        cpu_seconds, elapsed, reads = timed(
            lambda: [self._search(problem, limit, seed) for problem in self._problems]
        )
        best = best_of_reads(self._dataset, reads)
        return Measurement(sum(map(len, reads)), None, elapsed, cpu_seconds, best)


_DEFAULT_S = 0.1


class KaMIS(_Heuristic):
    """ReduMIS of the package `chszlablib`, on the graph for sets and on its complement for cliques.

    It may take longer than it is told.
    """

    name = "kamis"
    unit = "graphs"

    def __init__(self, sampler: str, dataset: Dataset, settings: Settings):
        if dataset.problem not in ("mis", "maxclique"):
            raise NotPlayed("it solves mis and maxclique")
        self._package = importlib.import_module("chszlablib")
        super().__init__(sampler, dataset, settings)

    def _problem(self, graph):
        graph = graph if self._dataset.problem == "mis" else complement(graph)
        ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
        ends = ends[np.lexsort(ends.T[::-1])]
        starts = np.searchsorted(ends[:, 0], np.arange(graph.num_nodes + 1))
        return graph.num_nodes, self._package.Graph.from_csr(
            starts.astype(np.int64), ends[:, 1].astype(np.int32)
        )

    def _search(self, problem, seconds, seed):
        size, graph = problem
        found = self._package.IndependenceProblems.redumis(
            graph, time_limit=seconds or _DEFAULT_S, seed=seed
        )
        state = np.zeros((1, size), np.int8)
        state[0, found.vertices] = 1
        return state


class Bifurcation(_Heuristic):
    """Discrete simulated bifurcation (Goto et al. 2021) of the package `simulated-bifurcation`, on
    one core.
    """

    name = "bifurcation"
    unit = "runs"
    _MOST_NODES = 4_000

    def __init__(self, sampler: str, dataset: Dataset, settings: Settings):
        if max(graph.num_nodes for graph in dataset.graphs) > self._MOST_NODES:
            raise NotPlayed(
                f"it keeps dense matrices; more than {self._MOST_NODES:,} nodes take too long"
            )
        self._package = importlib.import_module("simulated_bifurcation")
        self._torch = importlib.import_module("torch")
        self._torch.set_num_threads(1)
        super().__init__(sampler, dataset, settings)

    def _problem(self, graph):
        terms = self._terms(graph)
        matrix = np.zeros((graph.num_nodes, graph.num_nodes))
        u, v = terms.edges.T
        matrix[u, v] = terms.scale * terms.weights
        return [self._torch.from_numpy(one) for one in (matrix, np.array(terms.linear, float))]

    def _search(self, problem, seconds, seed):
        """Runs are repeated until the CPU-seconds are used up."""
        self._torch.manual_seed(seed)
        end = time.process_time() + (seconds or _DEFAULT_S)
        states: list[np.ndarray] = []
        while (left := end - time.process_time()) > 0 or not states:
            found, _ = self._package.maximize(
                *problem, domain="binary", mode="discrete", agents=self._reads, best_only=False, verbose=False,
                timeout=max(left, 0.01), dtype=self._torch.float32,
            )  # fmt: skip
            states.append(found.numpy().astype(np.int8))
        return np.concatenate(states)


def as_bqm(terms: Coefficients) -> Any:
    """Minus f as a binary quadratic model of dimod."""
    dimod = importlib.import_module("dimod")
    u, v = terms.edges.T
    weights = -terms.scale * terms.weights
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        -terms.linear, (u, v, weights), 0.0, dimod.BINARY
    )


def states_of(found) -> np.ndarray:
    """The states of a sample set of dimod, [R, N]."""
    return found.record.sample[:, np.argsort(found.variables)]


class Tabu(_Heuristic):
    """`dwave.samplers.TabuSampler`, each read of which takes its part of the time, or 20 ms."""

    name = "tabu"

    def _problem(self, graph):
        return as_bqm(self._terms(graph))

    def _search(self, problem, seconds, seed):
        sampler = importlib.import_module("dwave.samplers").TabuSampler()
        limit_ms = 20.0 if seconds is None else max(1.0, 1e3 * seconds / self._reads)
        return states_of(
            sampler.sample(problem, num_reads=self._reads, timeout=limit_ms, seed=seed + 1)
        )


class _Annealer(_Heuristic):
    """Simulated annealing.

    Given CPU-seconds, the number of sweeps is chosen to use them; otherwise it runs its default
    schedule.
    """

    unit = "updates of a site"
    # Sweeps of the first run; and runs until one takes the given time, but for a tenth of it.
    _SWEEPS, _TRIES = 100, 8
    _chosen: int | None = None

    @abc.abstractmethod
    def _states(self, problem: Any, sweeps: int, seed: int) -> np.ndarray:
        """States [R, N] of zeros and ones after annealing."""

    def _anneal(self, sweeps: int, seed: int) -> list[np.ndarray]:
        return [self._states(problem, sweeps, seed + 1) for problem in self._problems]

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        if self._chosen is None:
            self._anneal(1, seed)  # loads libraries
        sweeps = self._chosen or self._SWEEPS
        for _ in range(self._TRIES):
            cpu_seconds, elapsed, reads = timed(self._anneal, sweeps, seed)
            self._chosen = (
                sweeps if seconds is None else max(1, round(sweeps * seconds / cpu_seconds))
            )
            if seconds is None or self._chosen == sweeps or abs(cpu_seconds / seconds - 1) < 0.1:
                break
            sweeps = self._chosen
        updates = sweeps * self._reads * sum(graph.num_nodes for graph in self._dataset.graphs)
        return Measurement(updates, None, elapsed, cpu_seconds, best_of_reads(self._dataset, reads))


class DWave(_Annealer):
    """`dwave.samplers.SimulatedAnnealingSampler`, its default schedule."""

    name = "dwave-samplers"

    def _problem(self, graph):
        return as_bqm(self._terms(graph))

    def _states(self, problem, sweeps, seed):
        sampler = importlib.import_module("dwave.samplers").SimulatedAnnealingSampler()
        return states_of(
            sampler.sample(problem, num_reads=self._reads, num_sweeps=sweeps, seed=seed)
        )


class OpenJij(_Annealer):
    """`openjij.SASampler`, its default schedule."""

    name = "openjij"

    def _problem(self, graph):
        terms = self._terms(graph)
        linear = {(k, k): -float(value) for k, value in enumerate(terms.linear)}
        weights = (-terms.scale * terms.weights).tolist()
        return linear | {(u, v): w for (u, v), w in zip(terms.edges.tolist(), weights, strict=True)}

    def _states(self, problem, sweeps, seed):
        sampler = importlib.import_module("openjij").SASampler()
        return states_of(
            sampler.sample_qubo(problem, num_reads=self._reads, num_sweeps=sweeps, seed=seed)
        )


def _has(*modules: str) -> bool:
    try:
        return all(importlib.util.find_spec(module) for module in modules)
    except ModuleNotFoundError:
        return False


class Peer(NamedTuple):
    """What runs a peer, the modules that it imports, and how to get them."""

    contender: Callable[..., Contender]
    modules: tuple[str, ...]
    how: str


_EXTRA = "pip install -e '.[peers]' in the clone"
_PEERS = {
    Discs.name: Peer(
        Discs,
        ("discs.samplers", "flax", "optax"),
        "a checkout of google-research/discs on PYTHONPATH, and pip install -e '.[discs]' in the "
        "clone",
    ),
    DWave.name: Peer(DWave, ("dwave.samplers", "dimod"), _EXTRA),
    Tabu.name: Peer(Tabu, ("dwave.samplers", "dimod"), _EXTRA),
    OpenJij.name: Peer(OpenJij, ("openjij",), _EXTRA),
    KaMIS.name: Peer(KaMIS, ("chszlablib",), "pip install chszlablib"),
    Bifurcation.name: Peer(
        Bifurcation, ("simulated_bifurcation",), "pip install simulated-bifurcation, with PyTorch"
    ),
}


def available_peers() -> dict[str, Callable[..., Contender]]:
    """Peers that can be imported, by name."""
    return {name: peer.contender for name, peer in _PEERS.items() if _has(*peer.modules)}


def how_to_get() -> dict[str, str]:
    """What to install for each peer that cannot be imported."""
    return {name: peer.how for name, peer in _PEERS.items() if not _has(*peer.modules)}
