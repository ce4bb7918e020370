"""Runs: repeatable, independent of batching and devices, verified, and annealed as prescribed."""

import dataclasses
import functools
import itertools
import math
from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pytest
from enumerated import optimum
from programs import python

import sl_discs
from sl_discs.chains.batches import best_layout
from sl_discs.chains.chains import schedule_of
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import PROBLEMS
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.localization.method import build_method
from sl_discs.problems.graph_kind import graph_kind

SETTINGS = Settings(batch_size=8, chain_length=250, log_every_steps=50, engine="reference")


def on_both_engines(*fast, slow):
    """Methods with the settings of an engine, given as `gwg-cpu`, and which of them are slow."""
    cases = []
    for case in (*fast, *slow):
        name, _, engine = case.partition("-")
        fields = {"K": 20} if name.startswith("sl_") else {}
        chosen = method(name, **fields | ({"scan": "sequential"} if name.endswith("gibbs") else {}))
        marks = pytest.mark.slow if case in slow else ()
        cases.append(
            pytest.param(chosen, dataclasses.replace(SETTINGS, engine=engine), id=case, marks=marks)
        )
    return pytest.mark.parametrize(("chosen", "settings"), cases)


def random_dataset(count, num_nodes=40, problem="mis"):
    graphs = []
    for k in range(count):
        graph = nx.gnp_random_graph(num_nodes + k % 3, 0.2, seed=k)
        graphs.append(Graph.from_arrays(f"g{k}", len(graph), np.array(graph.edges), None, None))
    return Dataset(
        f"{problem}/test", problem, "generated", "test", graphs, list(range(count)), count
    )


def method(name, **fields):
    return build_method({"name": name, **fields})


def play(dataset, chosen, settings=SETTINGS):
    return run_sampler(plan_of(dataset, 1.0001, chosen, settings))


def only(dataset, k):
    return dataclasses.replace(dataset, graphs=[dataset.graphs[k]], index=[dataset.index[k]])


def share(record, k):
    """What a record says of instance k."""
    traces = {
        name: getattr(record, name)[:, k : k + 1] for name in ("trajectory", "acceptance", "hops")
    }
    return dataclasses.replace(record, instances=[record.instances[k]], **traces)


def assert_equal(ours, theirs):
    for one, other in zip(ours.instances, theirs.instances, strict=True):
        for field in ("name", "best", "best_logged", "final", "solution"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    for field in ("trajectory", "acceptance", "hops"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))


def test_one_or_three_threads():
    one, three = (
        dataclasses.replace(SETTINGS, engine="cpu", threads=threads) for threads in (1, 3)
    )
    assert_equal(*(play(random_dataset(2), method("gwg"), settings) for settings in (one, three)))


def test_cold_chains_do_not_depend_on_those_before_them():
    """The weights of cold chains need other units, which the next chain of the same thread must not
    take over.
    """
    dataset = random_dataset(3)
    cold = dataclasses.replace(
        SETTINGS, engine="cpu", chain_length=1_000, decay_rate=0.005, threads=1
    )
    together = play(dataset, method("sl_gwg", K=20), cold)
    for k in range(3):
        assert_equal(play(only(dataset, k), method("sl_gwg", K=20), cold), share(together, k))


@on_both_engines(
    "sl_metropolis-reference", "sl_path_auxiliary-cpu", "sl_gibbs-cpu",
    slow=["gwg-reference", "gibbs-reference", "sl_path_auxiliary-reference", "sl_dmala-reference", "metropolis-cpu"],
)  # fmt: skip
def test_an_instance_alone_or_with_seven_others(chosen, settings):
    dataset = random_dataset(8)
    together = play(dataset, chosen, settings)
    for k in (0, 5):
        assert_equal(play(only(dataset, k), chosen, settings), share(together, k))


@on_both_engines(
    "gibbs-reference", "sl_gibbs-cpu", slow=["gwg-reference", "sl_dmala-reference", "metropolis-cpu"]
)  # fmt: skip
def test_an_instance_beside_one_whose_fields_need_more_bits(chosen, settings):
    """Fields of 16 bits, of 32, and of 16 in a batch that takes 32: the same numbers, whatever was
    compiled first.
    """
    graph = nx.complete_graph(300)
    graphs = [
        Graph.from_arrays(
            str(weight), 300, np.array(graph.edges), np.full(graph.number_of_edges(), weight), None
        )
        for weight in (1.0, 127.0)
    ]
    dataset = Dataset("maxcut/test", "maxcut", "generated", "test", graphs, [0, 1], 2)
    together = play(dataset, chosen, settings)
    assert_equal(
        together, play(dataset, chosen, dataclasses.replace(settings, instances_per_batch=1))
    )
    assert together.instances[1].best == 127 * 150**2
    for k in range(2):
        assert_equal(play(only(dataset, k), chosen, settings), share(together, k))


@pytest.mark.parametrize(
    ("localized", "runs"),
    [
        ("sl_metropolis", ("all", "shared")),
        pytest.param("sl_metropolis", ("three",), marks=pytest.mark.slow),
        pytest.param(
            "sl_path_auxiliary", ("all", "three", "shared radius"), marks=pytest.mark.slow
        ),
    ],
)
def test_one_or_eight_devices(quickly_compiled, localized, runs, tmp_path):
    """The same results on 1 and on 8 forced host devices, or on 3 of these, which share 5 instances
    x 8 chains.
    """
    eight = "--xla_force_host_platform_device_count=8"
    path = str(tmp_path / "8.npz")
    code = (
        f"import numpy, test_run; numpy.savez({path!r}, **test_run.arrays_on(8, {localized!r}, "
        f"{runs!r}))"
    )
    variables = {"XLA_FLAGS": eight, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    python("-c", code, path=Path(__file__).parents[:2], **variables)
    with np.load(path) as theirs:
        for key, found in arrays_on(1, localized, runs).items():
            np.testing.assert_array_equal(theirs[key], found, err_msg=key)


def arrays_on(devices, localized, runs):
    """Results on so many devices; 3 parts of 8 chains leave one to be padded."""
    assert jax.device_count() == devices
    others = {
        "shared": method("gwg", adaptive=True, shared_adaptation=True),
        "shared radius": method("path_auxiliary", shared_adaptation=True),
    }
    arrays = {}
    for name in runs:
        settings = dataclasses.replace(
            SETTINGS, use_devices=3 if name == "three" and devices > 1 else 0
        )
        record = play(random_dataset(5), others.get(name, method(localized, K=20)), settings)
        arrays |= {
            f"{name} {field}": getattr(record, field) for field in ("trajectory", "acceptance")
        }
        arrays[f"{name} solutions"] = np.concatenate(
            [instance.solution for instance in record.instances]
        )
    return arrays


@functools.cache
def optima(problem):
    """Of the two graphs of 12 nodes."""
    return [
        optimum(getattr(sl_discs, problem)(graph))
        for graph in random_dataset(2, num_nodes=12).graphs
    ]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    "name", ["gwg", "path_auxiliary", "dmala", "gibbs", "metropolis", "exchange"]
)
def test_small_problems_are_solved(problem, name):
    """On 12 nodes every sampler and its localized variant meet the optimum, verified and
    feasible.
    """
    dataset = random_dataset(2, num_nodes=12, problem=problem)
    settings = dataclasses.replace(SETTINGS, chain_length=1_000, engine="auto")
    sign = graph_kind(problem).sign
    for chosen in (method(name), method("sl_" + name, K=50)):
        record = play(dataset, chosen, settings)
        for graph, best, instance in zip(
            dataset.graphs, optima(problem), record.instances, strict=True
        ):
            assert instance.feasible and instance.best == best
            assert sign * instance.best >= max(sign * instance.best_logged, sign * instance.final)
            assert len(instance.solution) == graph.num_nodes
        assert record.trajectory.shape == (20, 2)
        assert (sign * np.diff(record.trajectory, axis=0) >= 0).all()
        bests = [instance.best_logged for instance in record.instances]
        np.testing.assert_allclose(record.trajectory[-1], bests, atol=1e-3)
        # Nothing is compiled where a problem before this one had a program of the same shape.
        assert record.chain_steps_per_s > 0 and record.compile_s >= 0 and record.run_s > 0
        assert ((record.acceptance >= 0) & (record.acceptance <= 1)).all()


@pytest.mark.parametrize(("problem", "better"), [("mis", max), ("vertex_cover", min)])
def test_the_best_solution_is_that_of_all_verified_states(problem, better):
    """A hot state with conflicts may be repaired to more than the state of the largest f is
    worth.
    """
    settings = dataclasses.replace(SETTINGS, engine="cpu")
    record = play(random_dataset(2, 300, problem), method("metropolis"), settings)
    for instance in record.instances:
        assert instance.best == instance.solution.sum()
        assert instance.best == better(instance.best, instance.best_logged, instance.final)


@pytest.mark.parametrize(
    ("problem", "count", "length"), [("mis", 1, 20_030), ("vertex_cover", 3, 20_000)]
)
def test_progress_moves_within_a_long_chain_and_names_the_best_value(problem, count, length):
    """Ten reports a batch, and one of the tail after the last logged step, add up to all
    chain-steps.

    The values only get better, up to that of the result.
    """
    dataset, told = random_dataset(count, problem=problem), []
    settings = dataclasses.replace(
        SETTINGS, chain_length=length, engine="cpu", instances_per_batch=2
    )
    record = run_sampler(
        plan_of(dataset, 1.0001, method("gwg"), settings), lambda *said: told.append(said)
    )
    assert sum(steps for steps, _ in told) == length * 8 * count
    assert record.trajectory.shape == (400, count)
    last = "batch 2 of 2, " if count > 2 else ""
    values = [
        float(words.rpartition(" ")[2])
        for _, words in told
        if words.startswith(f"{last}mean best ")
    ]
    assert len(values) == 10 + (length % 50 > 0)
    assert values == sorted(values, reverse=problem == "vertex_cover")
    assert values[-1] == pytest.approx(record.trajectory[-1, -1:].mean(), rel=0.5)


@pytest.mark.parametrize("anneal", ["run", "level"])
def test_without_the_tilt_chains_are_those_of_the_base_sampler(anneal):
    """The reference engine rounds acceptances differently, to one part in 1e7."""
    dataset, without = random_dataset(2), method("sl_metropolis", K=20, tilt=False, anneal=anneal)
    course = tuple(map(float, schedule_of(without, SETTINGS)[:]))
    flat = play(dataset, without)
    base = play(dataset, method("metropolis"), dataclasses.replace(SETTINGS, t_schedule=course))
    np.testing.assert_array_equal(flat.temperature, base.temperature)
    np.testing.assert_array_equal(flat.trajectory, base.trajectory)
    np.testing.assert_allclose(flat.acceptance, base.acceptance, rtol=1e-6)
    for one, other in zip(flat.instances, base.instances, strict=True):
        np.testing.assert_array_equal(one.solution, other.solution)


def test_layouts_leave_no_device_idle():
    """The busiest device of the best layout has no more chains than in any other."""
    for devices, instances, chains in itertools.product((1, 2, 6, 16), (1, 3, 8, 50), (1, 5, 32)):
        loads = {
            (parts, devices // parts): math.ceil(instances / parts)
            * math.ceil(chains / (devices // parts))
            for parts in range(1, devices + 1)
            if devices % parts == 0
        }
        assert loads[best_layout(devices, instances, chains)] == min(loads.values())
    assert best_layout(2, 1, 32) == (1, 2) and best_layout(4, 8, 32) == (4, 1)
