"""Batches are cut to fit the memory that there is, and what cannot fit is refused before anything
runs.
"""

import dataclasses
import math

import numpy as np
import pytest
from marks import slow_except
from test_run import SETTINGS, method, random_dataset

from sl_discs.chains.batches import batch_bytes, build_batch, plan
from sl_discs.chains.chains import program_of
from sl_discs.engines.choice import get_engine
from sl_discs.engines.program import init_chains
from sl_discs.engines.reference import advance
from sl_discs.experiment.run_sampler import plan_of, plans_in_memory
from sl_discs.models.batching import make_mesh
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.support.errors import InputError
from sl_discs.support.memory import GIB


def terms_of(dataset):
    return [graph_kind("mis").model(graph, 1.0001) for graph in dataset.graphs]


def need(dataset, instances):
    """Bytes of batches of `instances` instances."""
    packs = plan(terms_of(dataset), instances, SETTINGS.batch_size)
    return max(batch_bytes(pack.shape, 5, "reference") for pack in packs)


def test_batches_are_halved_until_they_fit():
    dataset, methods = random_dataset(8), [method("gwg")]
    for instances in (8, 4, 2, 1):
        limited = dataclasses.replace(SETTINGS, memory_gib=need(dataset, instances) / GIB)
        [fitted], line = plans_in_memory(dataset, 1.0001, methods, limited)
        assert fitted.settings == dataclasses.replace(
            limited, instances_per_batch=instances * (instances < 8)
        )
        assert (
            line == ""
            if instances == 8
            else "would not fit into" in line and f": using {instances} per" in line
        )
    limited = dataclasses.replace(SETTINGS, memory_gib=0.99 * need(dataset, 1) / GIB)
    with pytest.raises(InputError):
        plans_in_memory(dataset, 1.0001, methods, limited)
    unlimited = dataclasses.replace(SETTINGS, memory_gib=math.inf)
    [fitted], line = plans_in_memory(dataset, 1.0001, methods, unlimited)
    assert (fitted.settings, line) == (unlimited, "")


def test_a_device_that_is_kept_busy_gets_smaller_batches_too(monkeypatch):
    """A GPU takes more instances at once by default than it has memory for, but not than one asks
    for.
    """
    dataset, methods = random_dataset(8), [method("gwg")]
    monkeypatch.setattr(type(get_engine("reference")), "busy_chains", 10_000, raising=False)
    assert plan_of(dataset, 1.0001, methods[0], SETTINGS).at_once() == 1_250
    three = dataclasses.replace(SETTINGS, instances_per_batch=3)
    assert plan_of(dataset, 1.0001, methods[0], three).at_once() == 3
    limited = dataclasses.replace(SETTINGS, memory_gib=need(dataset, 2) / GIB)
    [fitted], line = plans_in_memory(dataset, 1.0001, methods, limited)
    assert fitted.at_once() == 2 and "1250 instances per batch would not fit" in line


def test_logged_values_of_all_instances_must_fit():
    settings = dataclasses.replace(SETTINGS, batch_size=10**9, log_every_steps=1)
    with pytest.raises(InputError):
        plans_in_memory(random_dataset(2), 1.0001, [method("gwg")], settings)


@pytest.mark.parametrize("name", slow_except(["gwg", "sl_path_auxiliary"], ["sl_path_auxiliary"]))
def test_the_estimate_covers_what_the_compiler_plans(name):
    """XLA's own account of a call: arguments, results and temporaries."""
    dataset = random_dataset(2, num_nodes=200)
    chosen = method(name, **({"K": 20} if name.startswith("sl_") else {}))
    (pack,) = plan(terms_of(dataset), 2, SETTINGS.batch_size)
    model, batch = build_batch(terms_of(dataset), dataset.index, pack.shape, 0)

    def planned(lowered):
        account = lowered.compile().memory_analysis()
        parts = (
            getattr(account, f"{part}_size_in_bytes") for part in ("argument", "output", "temp")
        )
        return sum(parts) - account.alias_size_in_bytes

    states = np.zeros((*batch.keys.mcmc.shape[:2], pack.shape.num_sites), np.int8)
    program = program_of(chosen, SETTINGS)
    chains = init_chains(model, chosen.sampler, batch, states, program.levels)
    temperature, mesh = program.temperature.whole().reshape(-1, 50), make_mesh()
    call = advance.lower(
        batch,
        chains,
        program.levels,
        None,
        temperature,
        0,
        model=model,
        sampler=chosen.sampler,
        mesh=mesh,
    )
    largest = planned(call)
    assert (
        largest <= batch_bytes(pack.shape, 5, "reference") <= 4 * largest
    )  # JAX 0.9 plans a fifth less than 0.10
    # The engine `cpu` copies the couplings.
    copies = batch_bytes(pack.shape, 5, "cpu") - batch_bytes(pack.shape, 5, "reference")
    assert copies >= batch.params.coupling.rows.nbytes
