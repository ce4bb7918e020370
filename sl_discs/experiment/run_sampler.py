"""Runs samplers on the instances of a dataset, in batches that fit into memory, and verifies their
solutions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

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
from sl_discs.experiment.record import InstanceRecord, SamplerRecord
from sl_discs.experiment.settings import Settings
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.localization.method import Method
from sl_discs.problems.graph_kind import GraphKind, graph_kind
from sl_discs.problems.kind import Evaluated
from sl_discs.samplers.sampler import Sampler
from sl_discs.support.errors import InputError
from sl_discs.support.memory import check_memory, format_bytes

# Instances in a batch by default; more where a GPU needs them, while a batch takes no more bytes on
# the host.
_INSTANCES = 8
_BATCH_BYTES = 1 << 30


def engine_for(dataset: Dataset, sampler: Sampler, settings: Settings) -> tuple[Engine, str]:
    """Returns the engine of a sampler on the instances of a dataset, and why it was chosen."""
    engine, note = choose_engine(settings.engine, sampler, num_sites=_largest_size(dataset))
    return dataclasses.replace(engine, threads=settings.threads, devices=settings.use_devices), note


def _largest_size(dataset: Dataset) -> int:
    return max(graph.num_nodes for graph in dataset.graphs)


def instances_at_once(engine: Engine, settings: Settings, num_sites: int) -> int:
    """Returns the largest number of instances in a batch: that of the settings, or as many as keep
    a GPU busy.
    """
    busy = -(-engine.busy_chains // settings.batch_size)
    return settings.instances_per_batch or max(
        _INSTANCES, min(busy, _BATCH_BYTES // max(1, num_sites**2))
    )


def batches_of(
    dataset: Dataset, penalty: float, sampler: Sampler, settings: Settings, engine: Engine
) -> list[Pack]:
    """Returns the batches in which an engine runs a sampler on the instances of a dataset."""
    kind = graph_kind(dataset.problem)
    return plan(
        (kind.model(graph, penalty) for graph in dataset.graphs),
        instances_at_once(engine, settings, _largest_size(dataset)),
        settings.batch_size,
        *devices_for(engine, sampler, settings),
    )


def fit_to_memory(
    dataset: Dataset, penalty: float, methods: list[Method], settings: Settings
) -> tuple[Settings, str]:
    """Settings with which the batches of all methods fit into memory, and a line about the change;
    empty if none.

    If necessary, instances per batch are halved until they fit.

    Raises:
      InputError: the smallest possible batch, or the records of all instances, would not fit.
    """
    num_logged = settings.chain_length // settings.log_every_steps
    count = len(dataset.graphs)
    check_memory(
        f"what {settings.batch_size} chains of each of {count} instances record at {num_logged} "
        "logged steps",
        3
        * count
        * settings.batch_size
        * num_logged
        * LOGGED_BYTES,  # they are joined and summarised at the end
        "log less often (config.experiment.log_every_steps), or give fewer chains or instances",
    )
    limit = memory_of_a_device(settings.memory_gib)
    if limit is None:
        return settings, ""
    engines = [
        (method.sampler, engine_for(dataset, method.sampler, settings)[0]) for method in methods
    ]

    def largest(settings: Settings) -> tuple[int, Pack]:
        """Bytes per device of the largest batch of all methods, and that batch."""
        found = []
        for sampler, engine in engines:
            # Batches of an engine on the host are in one place and may use the memory of all CPU
            # devices.
            share = len(local_devices()) if engine.on_host else 1
            packs = batches_of(dataset, penalty, sampler, settings, engine)
            found += [
                (batch_bytes(pack.shape, num_logged, engine.name) // share, pack) for pack in packs
            ]
        return max(found, key=lambda pair: pair[0])

    wanted = max(
        instances_at_once(engine, settings, _largest_size(dataset)) for _, engine in engines
    )
    at_once = min(wanted, count)
    need, pack = largest(settings)
    if need <= limit:
        return settings, ""
    while need > limit:
        if at_once == 1:
            graph = max(
                (dataset.graphs[k] for k in pack.positions), key=lambda graph: graph.num_nodes
            )
            raise InputError(
                f"{graph.name} ({graph.num_nodes} sites, {settings.batch_size} chains) takes about "
                f"{format_bytes(need)} on a device with {format_bytes(limit)}; give fewer chains "
                "(config.experiment.batch_size), or config.experiment.memory_gib if there is more"
            )
        at_once //= 2
        settings = dataclasses.replace(settings, instances_per_batch=at_once)
        need, pack = largest(settings)
    return settings, (
        f"{wanted} instances per batch would not fit into {format_bytes(limit)} per device: "
        f"using {at_once} per batch, about {format_bytes(need)}; the results are the same"
    )


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
      progress: called with the number of chain-steps done, and the batch and its mean best value so
        far in words.
      checkpoints: checkpoints of the command, if it can be interrupted; Interrupted is raised when
        it is.

    Returns:
      the record, with every solution verified on the host.
    """
    kind = graph_kind(dataset.problem)
    sampler = method.sampler
    count = len(dataset.graphs)
    engine, note = engine_for(dataset, sampler, settings)
    packs = batches_of(dataset, penalty, sampler, settings, engine)
    compile_s = run_s = 0.0
    instances: dict[int, InstanceRecord] = {}
    constants = np.zeros(count)
    value, acceptance, hops = np.zeros(
        (3, settings.chain_length // settings.log_every_steps, count)
    )
    for number, pack in enumerate(packs):
        positions = pack.positions
        terms = [kind.model(dataset.graphs[k], penalty) for k in pack.filled]
        instance_ids = [dataset.index[k] for k in pack.filled]
        chains = Chains(terms, instance_ids, pack.shape, sampler, engine, settings.seed)
        constants[pack.filled] = [term.constant for term in terms]
        batch = f"batch {number + 1} of {len(packs)}, " if len(packs) > 1 else ""

        def report(steps, chains=chains, own=constants[positions], batch=batch):
            words = ""
            if chains.done:
                values = np.asarray(chains.states.best.value)[: len(own)].max(axis=1) + own
                words = f"{batch}mean best {kind.sign * values.mean():.6g}"  # before verification
            progress(steps * settings.batch_size * len(own), words)

        outcome = anneal(
            chains,
            method,
            settings,
            report,
            checkpoints=checkpoints,
            part=f"{method.name}-{number}",
            steps_per_call=engine.visible_steps(sampler, settings.chain_length),
        )
        compile_s += chains.compile_s
        run_s += chains.run_s
        trace = outcome.trace
        own = slice(len(positions))
        value[:, positions] = trace.value[:, own].max(axis=2)
        acceptance[:, positions] = trace.acceptance[:, own].mean(axis=2, dtype=np.float64)
        hops[:, positions] = trace.hops[:, own].mean(axis=2, dtype=np.float64)
        for place, k in enumerate(positions):
            instances[k] = _verified(kind, dataset.graphs[k], outcome, place)
    return SamplerRecord(
        instances=[instances[k] for k in range(count)],
        trajectory=kind.sign * (np.maximum.accumulate(value, axis=0) + constants),
        acceptance=acceptance,
        hops=hops,
        temperature=schedule_of(method, settings)[settings.logged_steps() - 1].astype(np.float64),
        chain_steps_per_s=total_chain_steps(dataset, settings) / run_s,
        compile_s=compile_s,
        run_s=run_s,
        engine=engine.name + (f" ({note})" if note else ""),
        final_is=method.final_is,
    )


def _verified(kind: GraphKind, graph: Graph, outcome: Outcome, place: int) -> InstanceRecord:
    """Exact evaluation of the best, best logged and best final states of the chains of the instance
    in a place.

    A state with conflicts may be repaired to a better solution than that of the best state.
    """
    size = graph.num_nodes
    tops = [
        states[place, np.argmax(values[place]), :size]
        for values, states in (outcome.best, outcome.best_logged)
    ]
    of_tops = kind.evaluator(graph)(np.stack(tops))
    of_final = kind.best_evaluator(graph)(outcome.final[place, :, :size])
    found = Evaluated(*map(np.concatenate, zip(of_tops, of_final, strict=True)))
    best = int(np.argmax(kind.sign * found.values))
    return InstanceRecord(
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
