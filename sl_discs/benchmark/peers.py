"""Other packages' samplers, if installed: DISCS itself, and simulated annealing of D-Wave and OpenJij."""

from __future__ import annotations

import abc
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from sl_discs.benchmark.choices import TUNED
from sl_discs.benchmark.contenders import Contender, Measurement, NotPlayed, best_of_reads, timed
from sl_discs.benchmark.specialists import Bifurcation, KaMIS
from sl_discs.engines.devices import num_cores
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.models.coefficients import Coefficients
from sl_discs.models.kinds import graph_kind


class Discs:
    """A sampler of DISCS in its own loop, for a few steps; only its speed is measured."""

    name = "discs"
    unit = "chain-steps"
    _STEPS = 20

    def __init__(self, sampler: str, dataset: Dataset, settings: Settings):
        if sampler in (*TUNED, "default"):
            raise NotPlayed("its steps are those of our samplers by their names")
        loops = importlib.import_module("sl_discs.discs_plugin.step_loop")
        experiment = loops.upstream_experiment(dataset, settings.batch_size, max(settings.chain_length, 1_100))
        self._loop = loops.StepLoop(sampler, experiment)
        self._per_step = len(dataset.graphs) * settings.batch_size
        self._loop.play(2)  # compiles

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """The next steps of the same chains."""
        del seed, seconds
        cpu_seconds, _, elapsed = timed(self._loop.play, self._STEPS)
        return Measurement(self._STEPS * self._per_step, None, elapsed, cpu_seconds, None)


class _Minimiser(abc.ABC):
    """A heuristic that runs on one core, one graph after the other, with as many reads as our runs have chains."""

    def __init__(self, sampler: str, dataset: Dataset, settings: Settings):
        del sampler
        self._dataset, self._reads = dataset, settings.batch_size
        kind = graph_kind(dataset.problem)
        terms = [kind.terms(graph).listed() for graph in dataset.graphs]
        self._problems = [self._problem(term) for term in terms]

    @abc.abstractmethod
    def _problem(self, terms: Coefficients) -> Any:
        """The minimisation of -f in the peer's form."""


class _Annealer(_Minimiser):
    """Simulated annealing.

    Given CPU-seconds, the number of sweeps is chosen to use them; otherwise it runs its default schedule.
    """

    unit = "updates of a site"
    _TRIAL_SWEEPS = 100
    _sweep_s: float | None = None
    _fixed_s = 0.0

    @abc.abstractmethod
    def _states(self, problem: Any, sweeps: int, seed: int) -> np.ndarray:
        """States [R, N] of zeros and ones after annealing."""

    def _anneal(self, sweeps: int, seed: int) -> list[np.ndarray]:
        return [self._states(problem, sweeps, seed + 1) for problem in self._problems]

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """Anneals all graphs."""
        if self._sweep_s is None:
            self._anneal(1, seed)  # loads libraries
            self._fixed_s = timed(self._anneal, 1, seed)[0]
            trial = timed(self._anneal, self._TRIAL_SWEEPS, seed)[0]
            # On a tiny problem the difference may be noise.
            self._sweep_s = max(trial - self._fixed_s, trial / 10) / self._TRIAL_SWEEPS
        sweeps = self._TRIAL_SWEEPS
        if seconds is not None:
            sweeps = max(1, round((seconds - self._fixed_s) / self._sweep_s))
        cpu_seconds, elapsed, reads = timed(self._anneal, sweeps, seed)
        sites = sum(graph.num_nodes for graph in self._dataset.graphs)
        return Measurement(
            sweeps * sites * self._reads, None, elapsed, cpu_seconds, best_of_reads(self._dataset, reads)
        )


def as_bqm(terms: Coefficients) -> Any:
    """Minus f as a binary quadratic model of dimod."""
    dimod = importlib.import_module("dimod")
    u, v = terms.edges.T
    weights = -terms.scale * terms.weights
    return dimod.BinaryQuadraticModel.from_numpy_vectors(-terms.linear, (u, v, weights), 0.0, dimod.BINARY)


class DWave(_Annealer):
    """`dwave.samplers.SimulatedAnnealingSampler`, its default schedule."""

    name = "dwave-samplers"
    _problem = staticmethod(as_bqm)

    def _states(self, problem, sweeps, seed):
        sampler = importlib.import_module("dwave.samplers").SimulatedAnnealingSampler()
        found = sampler.sample(problem, num_reads=self._reads, num_sweeps=sweeps, seed=seed)
        order = np.argsort(found.variables)
        return found.record.sample[:, order]


class Tabu(_Minimiser):
    """`dwave.samplers.TabuSampler`, which takes a time limit for each read."""

    name = "tabu"
    unit = "reads"
    _problem = staticmethod(as_bqm)

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """Searches all graphs; given CPU-seconds, each read takes its part of them, 20 ms otherwise."""
        sampler = importlib.import_module("dwave.samplers").TabuSampler()
        reads = self._reads * len(self._problems)
        limit = 20.0 if seconds is None else max(1.0, 1e3 * seconds / reads)  # milliseconds

        def search():
            found = [
                sampler.sample(problem, num_reads=self._reads, timeout=limit, seed=seed + 1)
                for problem in self._problems
            ]
            return [one.record.sample[:, np.argsort(one.variables)] for one in found]

        cpu_seconds, elapsed, states = timed(search)
        return Measurement(reads, None, elapsed, cpu_seconds, best_of_reads(self._dataset, states))


class OpenJij(_Annealer):
    """`openjij.SASampler`, its default schedule."""

    name = "openjij"

    def _problem(self, terms):
        linear = {(k, k): -float(value) for k, value in enumerate(terms.linear)}
        weights = (-terms.scale * terms.weights).tolist()
        return linear | {(u, v): w for (u, v), w in zip(terms.edges.tolist(), weights, strict=True)}

    def _states(self, problem, sweeps, seed):
        sampler = importlib.import_module("openjij").SASampler()
        found = sampler.sample_qubo(problem, num_reads=self._reads, num_sweeps=sweeps, seed=seed)
        order = np.argsort(found.variables)
        return found.record.sample[:, order]


def _has(*modules: str) -> bool:
    try:
        return all(importlib.util.find_spec(module) for module in modules)
    except ModuleNotFoundError:
        return False


class Peer(NamedTuple):
    """What a peer needs.

    Attributes:
      contender: what runs it.
      modules: that it imports.
      how: to get them.
    """

    contender: Callable[..., Contender]
    modules: tuple[str, ...]
    how: str


_EXTRA = "pip install -e '.[peers]' in the clone"
_PEERS = {
    Discs.name: Peer(
        Discs,
        ("discs.samplers", "flax", "optax"),
        "a checkout of google-research/discs on PYTHONPATH, and pip install -e '.[discs]' in the clone",
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


def describe_machine() -> str:
    """Device and cores."""
    return f"{jax.devices()[0].device_kind}, {num_cores()} cores"
