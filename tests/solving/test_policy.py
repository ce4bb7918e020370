"""More work never gives a worse answer, bound or proof, and limits are kept."""

import time
import warnings

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs.chains.chains import Chains
from sl_discs.solving.proofs import Worker


def problems():
    """Some of all kinds: with proofs that come at once, late, or never."""
    rng = np.random.default_rng(0)
    torus = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 8, periodic=True))
    for u, v in torus.edges:
        torus[u][v]["weight"] = int(rng.choice([-1, 1]))
    weighted = nx.gnp_random_graph(60, 0.1, seed=1)
    weights = {node: int(rng.integers(1, 100)) for node in weighted}
    couplings = np.triu(rng.choice([-1.0, 1.0], (32, 32)), 1)
    entries = rng.normal(size=(45, 45)) * (rng.random((45, 45)) < 0.1)
    return {
        "set": sl_discs.mis(nx.gnp_random_graph(100, 0.1, seed=0)),
        "weighted set": sl_discs.mis(weighted, weight=weights),
        "cover": sl_discs.vertex_cover(nx.gnp_random_graph(90, 0.15, seed=2)),
        "clique": sl_discs.maxclique(nx.gnp_random_graph(100, 0.5, seed=3)),
        "cut": sl_discs.maxcut(nx.gnp_random_graph(50, 0.4, seed=4)),
        "cut with signs": sl_discs.maxcut(torus),
        "form": sl_discs.qubo(entries),
        "glass": sl_discs.ising(np.zeros(32), couplings),
    }


PROBLEMS = problems()
# Of work, which the last one is enough for all that a call without a limit does.
LIMITS = 0.01, 0.05, 0.2, 1.0, 4.0


@pytest.fixture
def work_is_time(monkeypatch):
    """Counts time limits in work: nominal seconds of workers, and updates of chains, a hundred
    million of which are a second.
    """
    now = [0.0]
    advance = Worker.advance
    prepare = Chains.prepare

    def work(self, work, *given):
        now[0] += work + 1e-6
        return advance(self, work, *given)

    def counting(self, program, done):
        prepare(self, program, done)
        play = self._play

        def counted(states, done, intervals, every):
            now[0] += 1e-8 * intervals * every * self.shape.num_chains
            return play(states, done, intervals, every)

        self._play = counted

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(Worker, "advance", work)
    monkeypatch.setattr(Chains, "prepare", counting)


@pytest.mark.usefixtures("work_is_time")
@pytest.mark.parametrize("name", PROBLEMS)
def test_more_work_never_gives_a_worse_answer_bound_or_proof(name):
    problem = PROBLEMS[name]
    sign = 1 if problem.maximise else -1
    found = [sl_discs.solve(problem, time_limit=limit, seed=1) for limit in LIMITS]
    values = [sign * one.best_value for one in found]
    gaps = [sign * (np.inf * sign if one.bound is None else one.bound) for one in found]
    assert values == sorted(values)
    assert gaps == sorted(gaps, reverse=True)
    proved = [one.optimal for one in found]
    assert proved == sorted(proved)
    default = sl_discs.solve(problem, seed=1)
    assert values[-1] >= sign * default.best_value and gaps[-1] <= sign * default.bound
    assert found[-1].optimal >= default.optimal


@pytest.mark.usefixtures("work_is_time")
@pytest.mark.parametrize("limit", [0.03, 0.1])
def test_no_single_change_improves_an_answer(limit):
    """Also where gains are small beside the last temperature."""
    graph = nx.gnm_random_graph(1_000, 5_000, seed=0)
    rng = np.random.default_rng(0)
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(rng.normal())
    problem = sl_discs.maxcut(graph)
    result = sl_discs.solve(problem, time_limit=limit, seed=0)
    state = np.array([result.best_sample[label] for label in problem.labels])
    changed = state ^ np.eye(len(state), dtype=state.dtype)
    assert problem.evaluate(changed).values.max() <= result.best_value * (1 + 1e-12)


def test_no_exact_proof_begins_beyond_the_limit(monkeypatch):
    """Of real coefficients, where reductions leave nothing to search: an order of 1,901 variables
    may take 0.8 seconds to be found.
    """
    graph = nx.Graph()
    for node in range(0, 1_900, 2):
        nx.add_cycle(graph, range(node, node + 3))
    rng = np.random.default_rng(0)
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(rng.normal())
    problem = sl_discs.maxcut(graph)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    short, long = (sl_discs.solve(problem, time_limit=limit) for limit in (0.2, 2))
    assert "needs more time" in short.bound_by and long.optimal
    assert short.best_value == long.best_value


@pytest.mark.usefixtures("limits_in_cpu_time")
@pytest.mark.parametrize("limit", [0.05, 0.4])
@pytest.mark.parametrize("kind", ["mis", "maxcut", "qubo"])
def test_a_limit_is_kept(kind, limit):
    """Also by reductions, arrays and verification, of a large graph and of a dense form.

    One run of four is enough, since CPU time is stretched where other processes use the machine.
    """
    graph = nx.gnm_random_graph(20_000, 50_000, seed=0)
    entries = np.random.default_rng(0).integers(-9, 10, (600, 600)).astype(float)

    def is_kept():
        problem = sl_discs.qubo(entries) if kind == "qubo" else getattr(sl_discs, kind)(graph)
        begin = time.perf_counter()
        result = sl_discs.solve(problem, time_limit=limit)
        used = time.perf_counter() - begin - result.timing["compile_s"]
        return result.feasible and used <= 1.1 * limit + 0.05

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*chains would take")
        is_kept()  # loads what is compiled
        assert any(is_kept() for _ in range(4))
