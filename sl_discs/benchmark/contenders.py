"""What is measured: a contender runs a case with a seed and says how much it did, in what time, and how well."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float64

from sl_discs.engines.registry import choose_engine
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
      flips: sites that changed; None where it is not known.
      seconds: of wall time, compilation apart.
      cpu_seconds: of all cores of this process for all of it, whatever else the machine does.
      best: [G] verified objective of the best state of each graph; None where speed alone was measured.
    """

    chain_steps: int
    flips: float | None
    seconds: float
    cpu_seconds: float
    best: Float64[np.ndarray, "G"] | None


class Contender(Protocol):
    """An engine of this project, or a peer.

    Attributes:
      name: in the report.
      unit: what its `chain_steps` count.
    """

    name: str
    unit: str

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """One repetition; where `seconds` is given and quality depends on it, of about that many CPU-seconds."""


class NotPlayed(Exception):
    """An engine cannot run a sampler; the message says why."""


class Own:
    """A sampler of this project on one of its engines; `more` are fields of its config that differ from the defaults.

    Raises:
      NotPlayed: the engine does not know the sampler.
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
            # As many levels as fit: short runs are for speed, which does not depend on it.
            fields["K"] = max(1, min(Localization.K, settings.chain_length // Localization.n_min))
        self.name = engine
        self._method = build_method(fields, settings.batch_size)
        self._dataset = dataset
        self._settings = dataclasses.replace(settings, engine=engine)
        chosen, note = choose_engine(engine, self._method.sampler)
        if chosen.name != engine:
            raise NotPlayed(note)

    def play(self, seed: int, seconds: float | None = None) -> Measurement:
        """The whole chain; its time does not depend on `seconds`."""
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
    """`sl_discs.solve` as it comes: its own choice of sampler and annealing, for so many seconds a graph.

    Raises:
      NotPlayed: the engine is not the one that it takes.
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
        """One graph after the other; `seconds` are those of the peers."""
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
    """Seconds that a call took: of all cores together, and on the wall; and its result."""
    begin, cpu_begin = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return time.process_time() - cpu_begin, time.perf_counter() - begin, result
