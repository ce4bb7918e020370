"""From a problem to its answer: optimal where that can be enumerated, repeatable, and ended when it
was asked to.
"""

import contextlib
import dataclasses
import itertools
import math
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from enumerated import optimum
from programs import python
from scipy.optimize import linear_sum_assignment

import sl_discs
from sl_discs import InputError
from sl_discs.chains.annealing import TimedSchedule, temperature_range
from sl_discs.engines.devices import has_card
from sl_discs.experiment.settings import Settings
from sl_discs.models.terms import Coefficients, penalties_of
from sl_discs.solving.options import SolveOptions
from sl_discs.solving.policy import Annealer
from sl_discs.solving.presolved import unreduced


def small_problems():
    rng = np.random.default_rng(5)
    graph = nx.gnp_random_graph(12, 0.4, seed=3)
    weighted = nx.relabel_nodes(graph, "n{}".format)
    for _, _, data in weighted.edges(data=True):
        data["weight"] = int(rng.integers(-9, 10))
    Q, h, J = rng.normal(size=(10, 10)), rng.normal(size=11), np.triu(rng.normal(size=(11, 11)), 1)
    return {
        "mis": sl_discs.mis(graph),
        "maxclique": sl_discs.maxclique(graph),
        "maxcut": sl_discs.maxcut(weighted),
        "qubo": sl_discs.qubo(Q, offset=3.5),
        "qubo, maximised": sl_discs.qubo(Q, offset=-1.0, maximise=True),
        "ising": sl_discs.ising(h, J, offset=0.25),
        "ising, maximised": sl_discs.ising(h, J, maximise=True),
        "penalties": sl_discs.qubo(Q + 1e4 * (np.ones((10, 10)) - 6 * np.eye(10)), offset=9e4),
        "one variable": sl_discs.qubo({("a", "a"): -2.0}),
        "all zero": sl_discs.ising(np.zeros(3), {}, offset=1.5),
    }


PROBLEMS = small_problems()


def assert_exact(problem, result):
    """Every value is that of its state, and the best is the best."""
    assert result.values.tolist() == [problem.value(state) for state in result.states]
    assert result.best_value == problem.value(result.best_sample)
    assert result.best_value == (max if problem.maximise else min)(result.values)
    assert result.feasible and set(result.best_sample) == set(problem.labels)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimum_of_every_kind(name):
    problem = PROBLEMS[name]
    result = sl_discs.solve(problem, chains=8, seed=1, presolve=False)
    assert_exact(problem, result)
    assert result.best_value == optimum(problem)
    assert (result.sampler, result.engine, result.stopped) == ("metropolis", "cpu", "steps")
    best = result.trajectory.best
    assert len(best) == 100 and (np.diff(best) * (1 if problem.maximise else -1) >= 0).all()
    assert abs(best[-1]) <= abs(result.best_value) * (1 + 1e-5) + 1e-5 or not problem.maximise


@pytest.mark.usefixtures("limits_in_cpu_time")
def test_the_reference_engine_under_a_time_limit():
    """Rounds of any length are calls of one shape, for which nothing is compiled anew."""
    problem = PROBLEMS["maxcut"]
    sl_discs.solve(problem, chains=4, engine="reference", time_limit=0.1, presolve=False)
    result = sl_discs.solve(
        problem, chains=4, engine="reference", time_limit=0.8, seed=2, presolve=False
    )
    assert_exact(problem, result)
    assert result.best_value == optimum(problem) and result.sampler == "path_auxiliary"
    assert result.rounds > 1 and result.stopped == "time" and result.timing["compile_s"] == 0
    first = result.trajectory.step[result.trajectory.round == 0]
    assert first.tolist() == [100, 200]


@pytest.mark.parametrize("sampler", ["metropolis", "sl_metropolis"])
def test_the_same_seed_gives_the_same_bits(sampler):
    problem = PROBLEMS["ising"]
    one, two, other = (
        sl_discs.solve(problem, sampler, steps=2_000, chains=4, seed=s) for s in (7, 7, 8)
    )
    for field in ("values", "states", "final_states"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
    np.testing.assert_array_equal(one.trajectory.mean, two.trajectory.mean)
    assert not np.array_equal(one.trajectory.mean, other.trajectory.mean)


def test_chains_begin_where_they_are_told_to():
    """In one step a chain gets one flip away, at most; a state to begin with counts as met."""
    problem = PROBLEMS["ising"]
    rng = np.random.default_rng(2)
    starts = rng.choice([-1, 1], size=(3, 11))
    result = sl_discs.solve(problem, "metropolis", steps=1, chains=7, initial_states=starts)
    told = starts[np.arange(7) % 3]
    assert ((result.final_states != told).sum(axis=1) <= 1).all()
    assert all(v <= problem.value(s) for v, s in zip(result.values, told, strict=True))
    best = sl_discs.solve(problem, chains=4, seed=1).best_sample
    kept = sl_discs.solve(problem, "metropolis", steps=1, chains=2, initial_states=best)
    assert kept.values.tolist() == [optimum(problem)] * 2
    assert (
        sl_discs.solve(problem, steps=1, chains=2, initial_states=[best, best]).best_sample == best
    )


@pytest.mark.usefixtures("limits_in_cpu_time")
def test_a_start_that_is_proved_to_be_optimal_ends_the_run():
    """And the words on the end of one that is not ended do not promise a better value."""
    problem = sl_discs.maxcut(nx.random_regular_graph(3, 100, seed=0))
    best = sl_discs.solve(problem, seed=0).best_sample
    result = sl_discs.solve(problem, initial_states=best, time_limit=30)
    assert result.optimal and result.stopped == "bound" and sum(result.timing.values()) < 15
    assert result.best_sample == best
    assert dataclasses.replace(result, stopped="time").ending == "ended by the time limit"


def test_it_stops_at_the_target():
    """At the first look at the chains after it was reached; a run to a target begins as one
    without.
    """
    problem = sl_discs.maxcut(nx.random_regular_graph(3, 60, seed=1))
    whole, ended, easy = (
        sl_discs.solve(problem, "metropolis", steps=2_000_000, chains=2, seed=1, target=target)
        for target in (None, 80, 70)
    )
    assert whole.stopped == "steps" and whole.best_value >= 80
    assert ended.stopped == "target" and ended.best_value >= 80 and ended.steps <= 2_000_000
    assert easy.stopped == "target" and easy.best_value >= 70 and easy.steps < 2_000_000
    played = len(easy.trajectory.step)
    np.testing.assert_array_equal(easy.trajectory.mean, whole.trajectory.mean[:played])
    beyond = sl_discs.solve(problem, "metropolis", steps=1_000, chains=2, target=91)
    assert beyond.stopped == "steps" and beyond.steps == 1_000


def test_a_callback_sees_exact_values_and_may_stop():
    problem, seen = PROBLEMS["qubo"], []

    def callback(steps, best):
        seen.append((steps, best))
        return len(seen) == 3

    result = sl_discs.solve(problem, "metropolis", steps=2_500_000, chains=1, callback=callback)
    assert result.stopped == "callback" and len(seen) == 3
    assert [steps for steps, _ in seen] == [result.steps * k // 3 for k in (1, 2, 3)]
    assert seen[-1][1] == result.best_value


@pytest.mark.usefixtures("limits_in_cpu_time")
def test_a_time_limit_is_filled_and_kept():
    problem = sl_discs.maxcut(nx.random_regular_graph(3, 200, seed=1))
    sl_discs.solve(problem, steps=10)  # whatever must be compiled
    result = sl_discs.solve(problem, time_limit=0.8)
    assert result.stopped == "time" and result.rounds > 2
    assert 0.4 < result.timing["run_s"] < 1.6
    steps = np.bincount(result.trajectory.round)
    assert (steps > 0).all()
    fixed = sl_discs.solve(problem, steps=20_000, time_limit=0.3)
    assert fixed.rounds > 1 and (np.bincount(fixed.trajectory.round)[:-1] == 100).all()


@pytest.mark.usefixtures("limits_in_cpu_time")
def test_progress_and_the_end_say_value_bound_and_time(monkeypatch):
    """Of a graph that branch and bound does not finish."""
    told = []

    @contextlib.contextmanager
    def bar(total, shown):
        yield lambda name, steps, words: told.append(words)

    monkeypatch.setattr("sl_discs.solving.policy.progress_bar", bar)
    problem = sl_discs.mis(nx.gnp_random_graph(300, 0.1, seed=0))
    result = sl_discs.solve(problem, "metropolis", time_limit=1, presolve=True, progress=True)
    assert told[0].startswith("annealing 1, ")
    found = re.fullmatch(r"annealing (\d+), best (\d+)\S*, bound (\d+), \d s left", told[-1])
    assert int(found[1]) == result.rounds and int(
        found[2]
    ) <= result.best_value <= result.bound <= int(found[3])
    assert "branch and bound" in repr(result) and "more time may find a better value" in repr(
        result
    )


@pytest.mark.usefixtures("limits_in_cpu_time")
def test_all_time_is_accounted_for_and_layout_counts_in_the_limit():
    """Of a dense problem of 700 variables, whose layout and exact values take part of the time.

    One run of four is enough, since time between two of its parts counts as none of theirs where
    other processes use the machine.
    """
    Q = np.random.default_rng(0).normal(size=(700, 700))
    sl_discs.solve(sl_discs.qubo(Q), steps=10, chains=2)  # whatever must be compiled

    def is_accounted_for():
        begin = time.perf_counter()
        problem = sl_discs.qubo(Q)
        with pytest.warns(UserWarning, match=r"chains would take .* the time limit of 0\.001 s"):
            result = sl_discs.solve(problem, "metropolis", chains=2, time_limit=0.001)
        wall = time.perf_counter() - begin
        assert set(result.timing) == {"build_s", "compile_s", "run_s", "verify_s"}
        assert all(part > 0 for name, part in result.timing.items() if name != "compile_s")
        assert result.stopped == "time" and result.rounds == 1 and result.steps == 3 * 700
        assert sum(result.timing.values()) <= wall
        return 0.9 * wall - 0.02 < sum(result.timing.values())

    assert any(is_accounted_for() for _ in range(4))


@pytest.mark.parametrize("pace", [1e-4, 2e-4, 1e-3])
def test_one_round_of_fixed_length_fills_the_time_where_the_rate_is_known(pace):
    """Another one follows where the rate was measured too low, unless it is a quarter as long."""
    reduced = unreduced(PROBLEMS["qubo"])
    annealer = Annealer(reduced, reduced.left.terms(), SolveOptions("gwg", time_limit=7.3))
    annealer.seconds_per_step, lengths, limit, rate = pace, [], 7.3, 1e4
    while length := annealer.next_length(limit - sum(lengths) / rate, max(lengths, default=0)):
        assert length % 100 == 0
        lengths.append(length)
        annealer.seconds_per_step = 1 / rate
    assert len(lengths) == (1 if pace == 1 / rate else 2)
    assert lengths[0] == pytest.approx(0.9 * limit / pace, abs=200)
    assert 0.75 * limit * rate <= sum(lengths) <= limit * rate


@pytest.mark.parametrize("pace", [1e-4, 1e-3, 1e-5])
def test_temperatures_follow_the_time(pace):
    """Chains are cold when the time is over, whatever rate was expected, though it falls to a third
    on the way.
    """
    now, limit = 0.0, 10.0
    settings = Settings(
        chain_length=int(2 * limit / pace), final_temperature=0.01, decay_rate=0.01, anneal_every=5
    )
    temperatures = TimedSchedule(settings, len(settings.temperatures()), seconds_per_step=pace)
    done = 0
    while now < limit and done < len(temperatures):
        temperatures = temperatures.planned(done, limit - now)
        steps = min(503, len(temperatures) - done)
        played = temperatures[done : done + steps]
        assert (played == temperatures[np.arange(done, done + steps)]).all()
        assert (np.diff(played) <= 0).all() and len(np.unique(played)) <= steps // 5 + 2
        now += steps * (1e-4 if now < 6 else 3e-4)
        done += steps
    assert played[-1] < 0.012
    part = np.log(temperatures[:done]) / np.log(0.01)
    if pace < 1e-3:
        assert limit <= now < limit + 0.2
        # Half of the time is over after 50,000 steps.
        assert part[50_000] == pytest.approx(0.5, abs=0.05)
    else:
        # So slow a rate has the round end early, but cold.
        assert done == 20_000 and part[-1] > 0.95


def test_temperatures_of_known_landscapes():
    """An independent field: every loss is known. A big penalty leaves small steps their own
    temperature.
    """
    free = temperature_range(
        Coefficients(np.full(50, -3.0), np.zeros((0, 2), np.int32), np.zeros(0), 1.0)
    )
    assert free == pytest.approx((1.5, 3.0 / 4))
    mixed = temperature_range(
        Coefficients(
            np.r_[np.full(45, 100.0), np.full(5, 1.0)], np.zeros((0, 2), int), np.zeros(0), 1.0
        )
    )
    assert mixed == pytest.approx((50.0, 1 / 4))
    path = np.stack([np.arange(199), np.arange(1, 200)], axis=1)
    assert temperature_range(Coefficients(np.zeros(200), path, np.zeros(199), 1.0))[0] == 1.0
    # On a path of equal couplings each inner spin of an optimum loses twice what the ends do.
    linear = np.r_[1.0, np.full(198, 2.0), 1.0]
    initial, final = temperature_range(Coefficients(linear, path, np.full(199, -2.0), 1.0))
    assert initial == pytest.approx(1.0) and final == pytest.approx(1 / math.log(200))


def assignment(size, penalty, seed=1):
    """A QUBO of persons and tasks, and the least cost; costs are whole, from 1 to 99."""
    cost = np.random.default_rng(seed).integers(1, 100, (size, size))
    places, Q = np.arange(size * size).reshape(size, size), np.diag(cost.ravel().astype(float))
    for group in [*places, *places.T]:
        Q[np.ix_(group, group)] += penalty * (np.ones((size, size)) - 2 * np.eye(size))
    return sl_discs.qubo(Q, offset=2 * size * penalty), int(cost[linear_sum_assignment(cost)].sum())


@pytest.mark.parametrize("penalty", [1e6, 1e8, 1e9])
def test_costs_count_beside_penalties_far_above_them(penalty):
    problem, least = assignment(6, penalty)
    result = sl_discs.solve(problem, seed=0)
    assert result.best_value == least and result.annealing["final_temperature"] < 200
    assert result.trajectory.best[-1] == pytest.approx(least, abs=0.01)
    with contextlib.ExitStack() as stack:
        if penalty > 1e6:
            stack.enter_context(
                pytest.warns(UserWarning, match="values of 32 bits, which cannot tell costs")
            )
        assert sl_discs.solve(
            problem, steps=100, annealing=(penalty, 1.0), proofs=False
        ).final_states.any()


def test_penalties_that_are_not_far_above_costs_stay_as_they_are():
    """Nor are sums that were rounded, or penalties close to 1, taken for penalties and costs."""
    graph = nx.gnp_random_graph(40, 0.2, seed=1)
    tenths = np.triu(np.random.default_rng(0).integers(1, 9, (30, 30)) * 0.1)
    others = (
        sl_discs.maxcut(graph),
        sl_discs.mis(graph),
        sl_discs.qubo(tenths),
        assignment(5, 500.0)[0],
    )
    assert not any(penalties_of(problem.terms()) for problem in others)
    terms = assignment(5, 1e8)[0].terms()
    lowered = penalties_of(terms).lowered
    feasible = np.stack(
        [
            np.eye(5, dtype=np.int8)[list(order)].ravel()
            for order in itertools.permutations(range(5))
        ]
    )
    np.testing.assert_allclose(lowered.values(feasible), terms.values(feasible))
    assert lowered.largest() < 5_000


def test_steps_are_counted_in_sweeps_where_a_step_tries_a_site_or_two():
    steps = {
        name: SolveOptions(name).lengths(300, on_host=True).default
        for name in ("gibbs", "sl_metropolis", "exchange", "gwg", "sl_dmala")
    }
    sweeps, informed = 2_000 * 300, 10 * 300
    assert list(steps.values()) == [sweeps, sweeps, sweeps, informed, informed]


def test_a_localized_sampler_may_anneal_inside_each_level():
    """Also one that tries one site a step, whose temperature otherwise changes once in a sweep."""
    problem = sl_discs.maxcut(nx.random_regular_graph(3, 100, seed=0))
    for sampler in ("sl_gwg", "sl_gibbs"):
        fields = {"steps": 400, "chains": 1, "K": 4, "budget": "identical"}
        temperature = sl_discs.solve(
            problem, sampler, anneal="level", **fields
        ).trajectory.temperature
        np.testing.assert_array_equal(
            temperature.reshape(4, -1), np.broadcast_to(temperature[:25], (4, 25))
        )
        assert (np.diff(temperature[:25]) < 0).all()


def test_annealing_can_be_given():
    problem = PROBLEMS["ising"]

    def temperatures(annealing):
        return sl_discs.solve(
            problem, "gibbs", steps=100, chains=1, annealing=annealing
        ).trajectory.temperature

    decay = temperatures((2.0, 0.02))
    assert decay[-1] == pytest.approx(0.02) and decay[49] == pytest.approx(0.2)
    np.testing.assert_allclose(
        temperatures({"t_schedule": "constant", "init_temperature": 3.0}), 3.0
    )
    linear = temperatures(
        {"t_schedule": "linear", "init_temperature": 1.0, "final_temperature": 2.0}
    )
    assert linear[49] == pytest.approx(1.5)
    table = temperatures({"t_schedule": [3.0, 1.0, 2.0, 0.5]})
    np.testing.assert_allclose(table, np.repeat([3.0, 1.0, 2.0, 0.5], 25))


def test_a_gpu_that_is_missing_is_what_is_said(monkeypatch):
    pytest.importorskip("sl_discs.engines.cuda.cuda_engine")
    monkeypatch.setattr(
        "sl_discs.engines.cuda.cuda_engine.missing_card", lambda: "there is no NVIDIA GPU"
    )
    for arguments in ({}, {"sampler": "gibbs", "scan": "sequential"}):
        with pytest.raises(InputError, match=r"engine is 'cuda', which .* no NVIDIA GPU"):
            sl_discs.solve(PROBLEMS["ising"], engine="cuda", **arguments)


FORKING = """
import multiprocessing, sys
import sl_discs
problem = sl_discs.qubo({(0, 1): -1.0, (1, 2): 2.0})

def play(_):
    try:
        return sl_discs.solve(problem, "metropolis", steps=50, chains=1, engine="reference").best_value
    except sl_discs.InputError as error:
        return str(error)

sl_discs.solve  # imports JAX, which alone does no harm
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(play, [0])[0])
play(0)
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(play, [0])[0])
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_a_forked_worker_is_told_to_spawn():
    """After a fork JAX has lost its threads and would wait for ever; before it has any, a fork is
    fine.
    """
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "-1.0" and "forked" in second and "spawn" in second


@pytest.mark.parametrize("name", ["mis", "maxcut", "ising"])
def test_a_solved_problem_is_pickled_for_workers(name):
    problem = PROBLEMS[name]
    solved = sl_discs.solve(problem, steps=100, chains=2)
    copied = pickle.loads(pickle.dumps(problem))
    assert copied.value(solved.best_sample) == solved.best_value and copied.labels == problem.labels


MISSING = """
import sl_discs
problem = sl_discs.maxcut([[0, 1], [1, 2]])
for call in (lambda: sl_discs.sample(problem), lambda: sl_discs.solve(problem, "gwg")):
    try:
        call()
    except sl_discs.InputError as error:
        print(error)
"""


@pytest.mark.skipif(has_card(), reason="there is such a device")
def test_a_device_that_is_not_there_is_named():
    shown = python("-c", MISSING, JAX_PLATFORMS="cuda").stdout.splitlines()
    assert len(shown) == 2
    assert all(line.startswith("JAX_PLATFORMS is 'cuda'") for line in shown)


def test_an_interrupt_ends_a_run_and_a_keyboard_interrupt_leaves_nothing_broken():
    """One keeps what was found, the other is raised, and the next run is as it would have been."""
    problem, calls = PROBLEMS["ising"], []

    def run(**more):
        return sl_discs.solve(
            problem, "gibbs", steps=3_000, chains=2, engine="reference", seed=1, **more
        )

    def press(*_):
        raise KeyboardInterrupt

    # Asked once before provers, and after each call to the engine.
    ended = run(interrupt=lambda: calls.append(0) or len(calls) == 3)
    assert ended.stopped == "interrupt" and ended.steps == 1_500 and "interrupted" in repr(ended)
    assert_exact(problem, ended)
    for name in "interrupt", "callback":
        with pytest.raises(KeyboardInterrupt):
            run(**{name: press})
    np.testing.assert_array_equal(
        run().trajectory.mean[: len(ended.trajectory.step)], ended.trajectory.mean
    )


@pytest.mark.slow
def test_the_example_draws_its_picture(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "maxcut.py"
    subprocess.run([sys.executable, example, tmp_path / "cut.png"], check=True, timeout=600)
    assert (tmp_path / "cut.png").read_bytes().startswith(b"\x89PNG")


def test_there_are_as_many_chains_as_cool_slowly(monkeypatch):
    """A core makes 100,000,000 updates a second, of sixteen chains that it steps together."""
    monkeypatch.setattr("sl_discs.solving.options.num_cores", lambda: 2)

    def chains(seconds, sites, **options):
        return SolveOptions(time_limit=seconds, **options).lengths(sites, on_host=True).chains

    assert [chains(1.0, sites, engine="cpu") for sites in (300, 6_000, 10_000)] == [32, 32, 2]
    assert [chains(None, sites) for sites in (300, 20_000, 30_000)] == [16, 16, 1]
    assert chains(1.0, 300, chains=5) == 5 and chains(None, 300, sampler="gwg") == 32
