"""Contenders of the benchmark: each runs a case with a seed and reports its work, its time and its results."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float64

from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError
from sl_discs.experiment.run import run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.localization.method import build_method, method_fields
from sl_discs.localization.schedule import Localization
from sl_discs.models.kind import PENALTY
from sl_discs.models.kinds import graph_kind
from sl_discs.problems import Problem
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.solving.result import Result
from sl_discs.solving.solve import solve


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
    """An engine of this project, or a peer.

    Attributes:
      name: name in the report.
      unit: the unit of its `chain_steps`.
    """

    name: str
    unit: str

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """One repetition; if `seconds` is given and quality depends on it, of about that many CPU-seconds."""


class NotPlayed(Exception):
    """An engine cannot run a sampler; the message says why."""


class Own:
    """A sampler of this project on one of its engines; `more` are fields of its config that differ from the defaults.

    Raises:
      NotPlayed: the engine does not support the sampler.
    """

    unit = "chain-steps"

    def __init__(
        self, engine: str, sampler: str, dataset: Dataset, settings: Settings, more: Mapping[str, Any] | None = None
    ):
        fields: dict[str, Any] = {"name": sampler, **(more or {})}
        unknown = [name for name in fields if name not in {"name", *method_fields(sampler)}]
        if unknown:
            raise NotPlayed(f"{sampler} has no {unknown[0]}")
        if "K" in method_fields(sampler):
            # As many levels as fit: short runs measure speed, which does not depend on their number.
            fields["K"] = max(1, min(Localization.K, settings.chain_length // Localization.n_min))
        self.name = engine
        self._method = build_method(fields, settings.batch_size)
        self._dataset = dataset
        self._settings = dataclasses.replace(settings, engine=engine)
        try:
            choose_engine(engine, self._method.sampler)
        except InputError as error:
            raise NotPlayed(str(error)) from error

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """Runs the whole chain, whatever `seconds`."""
        del seconds
        settings = dataclasses.replace(self._settings, seed=seed)
        cpu_seconds, _, record = timed(
            run_sampler,
            self._dataset.problem, self._dataset, PENALTY, self._method, settings, lambda steps: None,
        )  # fmt: skip
        chain_steps = round(record.chain_steps_per_s * record.run_s)
        best = np.array([instance.best for instance in record.instances])
        return Measurement(chain_steps, float(record.hops.mean()) * chain_steps, record.run_s, cpu_seconds, best)


class Default:
    """`sl_discs.solve` with its defaults, which choose sampler and annealing, and a time limit per graph.

    Raises:
      NotPlayed: `solve` would choose another engine.
    """

    unit = "chain-steps"

    def __init__(self, engine: str, dataset: Dataset, seconds: float):
        self.name, self._seconds = engine, seconds
        if choose_engine("auto", Metropolis())[0].name != engine:
            raise NotPlayed("sl_discs.solve chooses another engine here")
        self._problems = [
            Problem(dataset.problem, graph.name, range(graph.num_nodes), graph) for graph in dataset.graphs
        ]

    def _solve(self, seed: int) -> list[Result]:
        return [solve(problem, seed=seed, time_limit=self._seconds) for problem in self._problems]

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """Solves one graph after the other; `seconds` only applies to the peers."""
        del seconds
        cpu_seconds, elapsed, results = timed(self._solve, seed)
        steps = [result.steps * len(result.values) for result in results]
        flips = float(sum(result.hops * one for result, one in zip(results, steps, strict=True)))
        return Measurement(
            sum(steps), flips, elapsed, cpu_seconds, np.array([result.best_value for result in results])
        )


def best_of_reads(dataset: Dataset, reads: list[np.ndarray]) -> Float64[np.ndarray, "G"]:
    """Verified objective of the best of each graph's states [R, N]."""
    kind, best = graph_kind(dataset.problem), []
    for graph, states in zip(dataset.graphs, reads, strict=True):
        verifier = kind.verifier(graph)
        objectives = [verifier(state.astype(np.int8)).objective for state in states]
        best.append(max(objectives, key=lambda objective: kind.sign * objective))
    return np.array(best)


def timed(function, *arguments):
    """CPU-seconds of all cores and wall seconds that a call took, and its result."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return time.process_time() - cpu_begin, time.perf_counter() - begin, result
