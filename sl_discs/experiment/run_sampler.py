"""Runs samplers on the instances of a dataset, in batches that fit into memory, and verifies their
solutions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sl_discs.chains.batches import (
    LOGGED_BYTES,
    Pack,
    batch_bytes,
    devices_for,
    memory_of_a_device,
    plan,
)
from sl_discs.chains.chains import Chains, Outcome, anneal, schedule_of
from sl_discs.chains.checkpoint import Checkpoints
from sl_discs.engines.choice import choose_engine
from sl_discs.engines.devices import local_devices
from sl_discs.engines.program import Engine
from sl_discs.experiment.distributions import MeasuredChains, effective_draws
from sl_discs.experiment.record import InstanceRecord, SamplerRecord
from sl_discs.experiment.settings import Settings
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.localization.method import Method
from sl_discs.models.functions import Terms
from sl_discs.problems.graph_kind import GraphKind, graph_kind
from sl_discs.problems.kind import Evaluated
from sl_discs.support.errors import InputError
from sl_discs.support.memory import check_memory, format_bytes

# Instances in a batch by default; more where a GPU needs them, while a batch takes no more bytes on
# the host.
_INSTANCES = 8
_BATCH_BYTES = 1 << 30
# Bytes of the states of a call whose distances are recorded.
_STATES_BYTES = 1 << 26


class RunPlan(NamedTuple):
    """A method on the instances of a dataset.

    Attributes:
      dataset: the instances.
      penalty: of the problem's model.
      method: the sampler and its localization.
      settings: chains, steps, annealing, seed.
      engine: that runs the chains.
      note: why it was chosen.
      packs: the batches.
    """

    dataset: Dataset
    penalty: float
    method: Method
    settings: Settings
    engine: Engine
    note: str
    packs: Sequence[Pack] = ()

    def at_once(self) -> int:
        """Returns the largest number of instances in a batch: that of the settings, or as many as
        keep a GPU busy.
        """
        settings = self.settings
        largest = max(graph.num_nodes for graph in self.dataset.graphs)
        busy = -(-self.engine.busy_chains // settings.batch_size)
        return settings.instances_per_batch or max(
            _INSTANCES, min(busy, _BATCH_BYTES // max(1, largest**2))
        )

    def terms(self, positions: Iterable[int]) -> Sequence[Terms]:
        """Returns what the chains of these instances maximise."""
        kind = graph_kind(self.dataset.problem)
        return [kind.model(self.dataset.graphs[k], self.penalty) for k in positions]

    def bytes_of(self, pack: Pack) -> int:
        """Returns the bytes per device of a batch."""
        # Batches of an engine on the host are in one place and may use the memory of all devices.
        share = len(local_devices()) if self.engine.on_host else 1
        num_logged = self.settings.chain_length // self.settings.log_every_steps
        return batch_bytes(pack.shape, num_logged, self.engine.name) // share

    def total_steps(self) -> int:
        """Returns the number of chain-steps."""
        settings = self.settings
        return settings.chain_length * settings.batch_size * len(self.dataset.graphs)


def engine_for(dataset: Dataset, method: Method, settings: Settings) -> tuple[Engine, str]:
    """Returns the engine of a method on the instances of a dataset, and why it was chosen."""
    largest = max(graph.num_nodes for graph in dataset.graphs)
    engine, note = choose_engine(settings.engine, method.sampler, num_sites=largest)
    return dataclasses.replace(engine, threads=settings.threads, devices=settings.use_devices), note


def plan_of(dataset: Dataset, penalty: float, method: Method, settings: Settings) -> RunPlan:
    """Returns the engine and the batches of a method; the arguments are those of `RunPlan`.

    Raises:
      NotSupported: the engine that the settings name cannot run the sampler.
    """
    unplanned = RunPlan(dataset, penalty, method, settings, *engine_for(dataset, method, settings))
    engine = unplanned.engine
    packs = plan(
        unplanned.terms(range(len(dataset.graphs))),
        unplanned.at_once(),
        settings.batch_size,
        *devices_for(engine, method.sampler, settings),
    )
    return unplanned._replace(packs=packs)


def plans_in_memory(
    dataset: Dataset, penalty: float, methods: list[Method], settings: Settings
) -> tuple[list[RunPlan], str]:
    """Returns plans of all methods whose batches fit into memory, and a line about it; empty if
    their settings are those that are given.

    If necessary, instances per batch are halved until they fit.

    Raises:
      InputError: the smallest possible batch, or the records of all instances, would not fit.
      NotSupported: as `plan_of`.
    """
    num_logged = settings.chain_length // settings.log_every_steps
    count = len(dataset.graphs)
    # Records are joined and summarised at the end.
    check_memory(
        f"what {settings.batch_size} chains of each of {count} instances record at {num_logged} "
        "logged steps",
        3 * count * settings.batch_size * num_logged * LOGGED_BYTES,
        "log less often (config.experiment.log_every_steps), or give fewer chains or instances",
    )
    limit = memory_of_a_device(settings.memory_gib)
    wanted = 0
    while True:
        plans = [plan_of(dataset, penalty, method, settings) for method in methods]
        if limit is None:
            return plans, ""
        sizes = [(plan.bytes_of(pack), pack) for plan in plans for pack in plan.packs]
        need, largest = max(sizes, key=lambda pair: pair[0])
        if need <= limit:
            break
        at_once = max(plan.at_once() for plan in plans)
        wanted = wanted or at_once
        at_once = min(at_once, count)
        if at_once == 1:
            graphs = [dataset.graphs[k] for k in largest.positions]
            graph = max(graphs, key=lambda graph: graph.num_nodes)
            raise InputError(
                f"{graph.name} ({graph.num_nodes} sites, {settings.batch_size} chains) takes about "
                f"{format_bytes(need)} on a device with {format_bytes(limit)}; give fewer chains "
                "(config.experiment.batch_size), or config.experiment.memory_gib if there is more"
            )
        settings = dataclasses.replace(settings, instances_per_batch=at_once // 2)
    if not wanted:
        return plans, ""
    return plans, (
        f"{wanted} instances per batch would not fit into {format_bytes(limit)} per device: "
        f"using {settings.instances_per_batch} per batch, about {format_bytes(need)}; the results "
        "are the same"
    )


def run_sampler(
    plan: RunPlan,
    progress: Callable[[int, str], None] = lambda steps, words: None,
    checkpoints: Checkpoints | None = None,
    metrics: Path | None = None,
) -> SamplerRecord:
    """Runs a method on all instances of a dataset.

    Args:
      plan: of the run.
      progress: called with the number of chain-steps done, and the batch and its mean best value so
        far in words.
      checkpoints: checkpoints of the command, if it can be interrupted; Interrupted is raised when
        it is.
      metrics: file that gets a line of JSON whenever steps of a batch are done: the sampler, their
        number, the seconds of running this batch, and the best value so far of each instance.

    Returns:
      the record, with every solution verified on the host.
    """
    dataset = plan.dataset
    settings = plan.settings
    kind = graph_kind(dataset.problem)
    count = len(dataset.graphs)
    compile_s = 0.0
    run_s = 0.0
    instances: dict[int, InstanceRecord] = {}
    constants = np.zeros(count)
    value, acceptance, hops = np.zeros(
        (3, settings.chain_length // settings.log_every_steps, count)
    )
    for index, pack in enumerate(plan.packs):
        positions = pack.positions
        terms = plan.terms(pack.filled)
        instance_ids = [dataset.index[k] for k in pack.filled]
        sampler = plan.method.sampler
        steps_per_call = plan.engine.visible_steps(sampler, settings.chain_length)
        arguments = terms, instance_ids, pack.shape, sampler, plan.engine, settings.seed
        if dataset.origin is None:
            chains = Chains(*arguments)
        else:
            chains = MeasuredChains(dataset.origin, *arguments)
            states = pack.shape.num_instances * pack.shape.num_chains * pack.shape.num_sites
            steps_per_call = min(steps_per_call, -(-_STATES_BYTES // states))
        constants[pack.filled] = [term.constant for term in terms]
        batch = f"batch {index + 1} of {len(plan.packs)}, " if len(plan.packs) > 1 else ""

        def report(steps, chains=chains, positions=positions, batch=batch):
            words = ""
            own = constants[positions]
            if chains.done:
                values = np.asarray(chains.states.best.value)[: len(own)].max(axis=1) + own
                best = kind.sign * values  # before verification
                words = f"{batch}mean best {best.mean():.6g}"
                if metrics is not None:
                    names = [dataset.graphs[k].name for k in positions]
                    _append(
                        metrics,
                        sampler=plan.method.name,
                        step=chains.done,
                        seconds=round(chains.run_s, 3),
                        best=dict(zip(names, best.tolist(), strict=True)),
                    )
            progress(steps * settings.batch_size * len(own), words)

        outcome = anneal(
            chains,
            plan.method,
            settings,
            report,
            checkpoints=checkpoints,
            part=f"{plan.method.name}-{index}",
            steps_per_call=steps_per_call,
        )
        compile_s += chains.compile_s
        run_s += chains.run_s
        trace: Any = outcome.trace
        own = slice(len(positions))
        value[:, positions] = trace.value[:, own].max(axis=2)
        acceptance[:, positions] = trace.acceptance[:, own].mean(axis=2, dtype=np.float64)
        hops[:, positions] = trace.hops[:, own].mean(axis=2, dtype=np.float64)
        for position, k in enumerate(positions):
            instances[k] = _verified(kind, dataset.graphs[k], outcome, position)
            if dataset.origin is not None:
                final = None
                if plan.method.localization is not None:
                    states = outcome.final[position, :, : len(dataset.origin)]
                    final = kind.evaluator(dataset.graphs[k])(states).values
                half = settings.chain_length // 2
                draws = effective_draws(
                    trace.states[half:, position],
                    trace.value[half:, position].astype(np.float64) + constants[k],
                    chains.run_s / 2,
                    final,
                )
                instances[k] = dataclasses.replace(instances[k], draws=draws)
    return SamplerRecord(
        instances=[instances[k] for k in range(count)],
        trajectory=kind.sign * (np.maximum.accumulate(value, axis=0) + constants),
        acceptance=acceptance,
        hops=hops,
        temperature=schedule_of(plan.method, settings)[settings.logged_steps() - 1].astype(
            np.float64
        ),
        chain_steps_per_s=plan.total_steps() / run_s,
        compile_s=compile_s,
        run_s=run_s,
        engine=plan.engine.name + (f" ({plan.note})" if plan.note else ""),
        final_is=plan.method.final_is,
    )


def _append(path: Path, **line: Any) -> None:
    """Appends a line of JSON in one call of the system, so that it is there as a whole or not at
    all; a full disk does not end the run.
    """
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


def _verified(kind: GraphKind, graph: Graph, outcome: Outcome, position: int) -> InstanceRecord:
    """Exact evaluation of the best, best logged and best final states of the chains of the instance
    in a place.

    A state with conflicts may be repaired to a better solution than that of the best state.
    """
    size = graph.num_nodes
    tops = [
        states[position, np.argmax(values[position]), :size]
        for values, states in (outcome.best, outcome.best_logged)
    ]
    of_tops = kind.evaluator(graph)(np.stack(tops))
    of_final = kind.best_evaluator(graph)(outcome.final[position, :, :size])
    evaluated = Evaluated(*map(np.concatenate, zip(of_tops, of_final, strict=True)))
    best = int(np.argmax(kind.sign * evaluated.values))
    return InstanceRecord(
        name=graph.name,
        best=float(evaluated.values[best]),
        best_logged=float(evaluated.values[1]),
        final=float(evaluated.values[2]),
        feasible=bool(evaluated.feasible[best]),
        reference=graph.reference,
        solution=evaluated.states[best],
    )
