"""Runs samplers on the instances of a dataset and verifies their solutions."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import jax
import numpy as np

from sl_discs.engines.base import Best, Trace
from sl_discs.errors import InputError
from sl_discs.experiment.batches import Pack
from sl_discs.experiment.chains import Chains, Outcome, anneal, batches_of, engine_for, program_of, visible_steps
from sl_discs.experiment.checkpoint import Checkpoints
from sl_discs.experiment.record import InstanceRecord, SamplerRecord
from sl_discs.experiment.settings import Settings
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import Method
from sl_discs.problems.graph_kind import GraphKind, graph_kind
from sl_discs.problems.kind import Evaluated


def run_sampler(
    dataset: Dataset,
    penalty: float,
    method: Method,
    settings: Settings,
    progress: Callable[[int, str], None] = lambda steps, words: None,
    checkpoints: Checkpoints | None = None,
) -> SamplerRecord:
    """Runs one method on all instances of a dataset.

    Args:
      dataset: the instances.
      penalty: penalty of the problem's model.
      method: the sampler and its localization.
      settings: chains, steps, annealing, seed.
      progress: called with the number of chain-steps done, and the batch and its mean best value so far in words.
      checkpoints: checkpoints of the command, if it can be interrupted; Interrupted is raised when it is.

    Returns:
      the record, with every solution verified on the host.
    """
    kind, sampler = graph_kind(dataset.problem), method.sampler
    engine, note = engine_for(dataset, sampler, settings)
    packs = batches_of(dataset, penalty, sampler, settings, engine)
    compile_s = run_s = 0.0
    records: dict[int, InstanceRecord] = {}
    traces: dict[int, Trace] = {}
    constants = np.zeros(len(dataset.graphs))
    for number, pack in enumerate(packs):
        terms = [kind.terms(dataset.graphs[k], penalty) for k in pack.filled]
        constants[pack.filled] = [term.constant for term in terms]
        names = [dataset.index[k] for k in pack.filled]
        chains = Chains(terms, names, pack.shape, sampler, engine, settings.seed)

        batch = f"batch {number + 1} of {len(packs)}, " if len(packs) > 1 else ""
        told = _Told(kind.sign, constants[pack.members], batch)

        def report(steps, told=told):
            progress(steps * settings.batch_size * len(told.constants), told.words)

        part = f"{method.name}-{number}"
        outcome = anneal(
            chains, method, settings, report, checkpoints=checkpoints, part=part, watch=told,
            steps_per_call=visible_steps(engine, sampler, settings.chain_length),
        )  # fmt: skip
        compile_s, run_s = compile_s + chains.compile_s, run_s + chains.run_s
        _verify(kind, dataset, pack, outcome, records)
        for place, position in enumerate(pack.members):
            traces[position] = jax.tree.map(lambda leaf, place=place: leaf[:, place], outcome.trace)

    order = range(len(dataset.graphs))
    value = np.stack([traces[k].value.max(axis=1) for k in order], axis=1).astype(np.float64)
    return SamplerRecord(
        instances=[records[k] for k in order],
        trajectory=kind.sign * (np.maximum.accumulate(value, axis=0) + constants),
        acceptance=np.stack([traces[k].acceptance.mean(axis=1, dtype=np.float64) for k in order], axis=1),
        hops=np.stack([traces[k].hops.mean(axis=1, dtype=np.float64) for k in order], axis=1),
        chain_steps_per_s=total_chain_steps(dataset, settings) / run_s,
        compile_s=compile_s,
        run_s=run_s,
        engine=engine.name + (f" ({note})" if note else ""),
        final_is=method.final_is,
    )


@dataclasses.dataclass
class _Told:
    """The watch of a batch that ends nothing: `words` are the mean best value so far, before verification."""

    sign: float
    constants: np.ndarray  # of the instances, not of those that fill the batch
    batch: str
    words: str = ""

    def __call__(self, done: int, best: Best) -> bool:
        values = np.asarray(best.value)[: len(self.constants)].max(axis=1).astype(np.float64) + self.constants
        self.words = f"{self.batch}mean best {self.sign * values.mean():.6g}"
        return False


def _verify(
    kind: GraphKind, dataset: Dataset, pack: Pack, outcome: Outcome, records: dict[int, InstanceRecord]
) -> None:
    """Exact evaluation of the best, best logged and best final states of each instance's chains.

    A state with conflicts may be repaired to a better solution than that of the best state.
    """
    for place, position in enumerate(pack.members):
        graph = dataset.graphs[position]
        size = graph.num_nodes
        tops = [
            states[place, np.argmax(values[place]), :size] for values, states in (outcome.best, outcome.best_logged)
        ]
        evaluate, evaluate_best = kind.evaluators(graph)
        parts = evaluate(np.stack(tops)), evaluate_best(outcome.final[place, :, :size])
        found = Evaluated(*map(np.concatenate, zip(*parts, strict=True)))
        best = int(np.argmax(kind.sign * found.values))
        records[position] = InstanceRecord(
            name=graph.name,
            best=float(found.values[best]),
            best_logged=float(found.values[1]),
            final=float(found.values[2]),
            feasible=bool(found.feasible[best]),
            reference=graph.reference,
            solution=found.states[best],
        )


def total_chain_steps(dataset: Dataset, settings: Settings) -> int:
    """Chain-steps of one sampler."""
    return settings.chain_length * settings.batch_size * len(dataset.graphs)


def check_methods(methods: list[Method], settings: Settings) -> None:
    """Raises InputError if a method is named twice or its schedules are invalid with these settings."""
    for first, second in itertools.combinations(methods, 2):
        if first.name == second.name:
            raise InputError(f"sampler {first.name!r} is named twice; name each once")
    for method in methods:
        program_of(method, settings)
