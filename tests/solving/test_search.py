"""How `auto` reduces, shares a time limit among samplers, and proves what it finds."""

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs import InputError
from sl_discs.chains.budget import Budget
from sl_discs.solving.options import SolveOptions
from sl_discs.solving.policy import Annealer, Policy
from sl_discs.solving.presolved import unreduced
from sl_discs.solving.proofs import LocalSearch, Worker
from sl_discs.solving.reductions import presolve

pytestmark = pytest.mark.usefixtures("limits_in_cpu_time")


class ClaimedSearch(LocalSearch):
    """A local search that claims to find a value."""

    by = "covers"
    state = np.zeros(2, np.int8)

    def __init__(self, value):
        self.value = value

    def walk(self, number, draws):
        raise AssertionError("is not asked")


@pytest.mark.parametrize(
    ("best", "rest"),
    [
        (6.0, [("covers", 10.0)]),
        (4.0, [("annealing", 10.0)]),
        (5.0, [("annealing", 5.0), ("covers", 10.0)]),
    ],
    ids=["better", "worse", "equal"],
)
def test_the_time_is_shared_by_success(monkeypatch, best, rest):
    """After a trial of each."""
    turns = []

    def fill(self, seconds):
        turns.append(("annealing", seconds))
        self.board.values["annealing"] = 5.0

    def walk(self, search, seconds):
        turns.append((search.by, seconds))
        self.board.values[search.by] = search.value

    monkeypatch.setattr(Policy, "_anneal", lambda self, length, left=None: length)
    monkeypatch.setattr(Policy, "_fill", fill)
    monkeypatch.setattr(Policy, "_walk", walk)
    monkeypatch.setattr(Annealer, "most", lambda self, seconds: 0.0)
    monkeypatch.setattr(Budget, "left", lambda self: 10.0)
    presolved = unreduced(sl_discs.mis([(0, 1)]))
    options = SolveOptions(time_limit=10.0, chains=2)
    run = Policy(presolved, options, Budget())
    run._search = ClaimedSearch(best)
    run._annealer = Annealer(presolved, presolved.left.terms(), options)
    run._anneal_and_search()
    assert turns == [("annealing", 1.0), ("covers", 1.0), *rest]


def test_provers_leave_three_quarters_of_the_time_to_chains_on_a_slow_machine(monkeypatch):
    """Each of their turns takes a second there, twenty times what it is on an idle one."""
    now = [0.0]

    class FirstSweep(Exception):
        pass

    def turn(self, work, best, is_late):
        now[0] += 1.0
        return True

    def begin(self, *arguments):
        raise FirstSweep

    monkeypatch.setattr(Budget, "__call__", lambda self: now[0])
    monkeypatch.setattr(Worker, "advance", turn)
    monkeypatch.setattr(Policy, "_anneal", begin)
    with pytest.raises(FirstSweep):
        sl_discs.solve(sl_discs.maxcut(nx.gnp_random_graph(60, 0.5, seed=1)), time_limit=10.0)
    assert 1.0 <= now[0] <= 0.25 * 10.0


def test_provers_have_turns_under_a_limit_of_less_than_ten_of_them():
    """Branch and bound takes a small part of either limit."""
    problem = sl_discs.mis(nx.gnp_random_graph(60, 0.3, seed=0))
    sl_discs.solve(problem, time_limit=0.5)  # loads what is compiled
    for limit in (0.4, 0.8):
        found = sl_discs.solve(problem, time_limit=limit)
        assert found.optimal and found.stopped == "bound"


@pytest.mark.filterwarnings("ignore:.*chains would take")
def test_cliques_have_a_greedy_answer_under_the_shortest_limit():
    """That of the node with most neighbours, and of those of its neighbours in this order."""
    graph = nx.gnp_random_graph(1_000, 0.05, seed=0)
    clique = set()
    for node in sorted(graph, key=graph.degree, reverse=True):
        if clique <= set(graph[node]):
            clique.add(node)
    found = sl_discs.solve(sl_discs.maxclique(graph), time_limit=0.01)
    assert found.feasible and found.best_value >= len(clique)


def test_presolve_is_for_auto_unless_it_is_asked_for(monkeypatch):
    """Without it, values are those that chains met."""
    reduced = []
    monkeypatch.setattr(
        "sl_discs.solving.solver.presolve",
        lambda problem, seconds: reduced.append(problem) or presolve(problem, seconds),
    )
    problem = sl_discs.maxcut(nx.cycle_graph(9))
    assert sl_discs.solve(problem, "metropolis", steps=2_000, chains=2).rounds == 1 and not reduced
    assert sl_discs.solve(problem, "metropolis", presolve=True).rounds == 0 and reduced
    state = np.zeros(9, int)
    reduced.clear()
    assert (
        sl_discs.solve(problem, steps=100, chains=2, initial_states=state).optimal and not reduced
    )
    assert (
        sl_discs.solve(problem, steps=100, chains=2, initial_states=state, presolve=False).rounds
        == 1
    )
    with pytest.raises(InputError, match="presolve and initial_states"):
        sl_discs.solve(problem, presolve=True, initial_states=state)
    problem = sl_discs.mis(nx.gnp_random_graph(100, 0.1, seed=4))
    met, helped = (
        sl_discs.solve(problem, "gwg", steps=2, chains=1, presolve=given) for given in (False, True)
    )
    assert met.best_value < helped.best_value and helped.optimal and not met.optimal
