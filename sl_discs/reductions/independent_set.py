"""Maximum independent sets and minimum vertex covers, reduced by rules on their graph."""

from __future__ import annotations

import dataclasses

import numpy as np

from sl_discs.instances.graph import Graph
from sl_discs.problems import Problem
from sl_discs.reductions.arcs import ALIVE, edges_of
from sl_discs.reductions.clique_cover import set_of_a_cover
from sl_discs.reductions.independent_rules import lift_sets, reduce_graph
from sl_discs.reductions.independent_work import NUM_NOTES, NUM_TAKEN, RULES, make_work
from sl_discs.reductions.presolved import Presolved, none_found, unreduced

# Arcs that are looked at: so many times the size of the graph, and at least the other number. Sparse graphs need some
# tens of times their size; graphs on which rules are tested in vain and at length are given up after a second or so.
_MOST_LOOKS, _LEAST_LOOKS = 200, 10**7
COVER = "clique cover"


def reduce_mis(problem: Problem) -> Presolved:
    """Reduces a problem `mis`."""
    return _reduced(problem, cover=False)


def reduce_vertex_cover(problem: Problem) -> Presolved:
    """Reduces a problem `vertex_cover`: the nodes that are left out are an independent set."""
    return _reduced(problem, cover=True)


def _reduced(problem: Problem, cover: bool) -> Presolved:
    graph = problem.source
    assert isinstance(graph, Graph)
    size = graph.num_nodes
    work = make_work(graph)
    complete = bool(reduce_graph(work, max(_LEAST_LOOKS, _MOST_LOOKS * (size + 2 * graph.num_edges))))
    taken, kept = int(work.state[NUM_TAKEN]), np.flatnonzero(work.graph.nodes[:, ALIVE])
    # The cover is that of the graph as it was given: the rules leave graphs where a greedy one is worse.
    best = set_of_a_cover(graph) if len(kept) else None
    if best is not None:
        return _solved(problem, 1 - best if cover else best)
    if len(kept) == size:
        return unreduced(problem, complete)
    lists, notes = work.lists[:taken].copy(), work.notes[: work.state[NUM_NOTES]].copy()
    removed = {rule: int(count) for rule, count in zip(RULES, work.state, strict=False) if count}

    def lift(states):
        sets = np.zeros((len(states), size), np.int8)
        sets[:, kept] = 1 - states if cover else states
        lift_sets(lists, notes, sets)
        return 1 - sets if cover else sets

    return Presolved(
        original=problem,
        problem=_smaller(problem, kept, edges_of(work.graph)) if len(kept) else None,
        kept=kept,
        constant=float(size - len(kept) - taken if cover else taken),
        found=none_found(size),
        removed=removed,
        complete=complete,
        _lift=lift,
    )


def _solved(problem: Problem, state: np.ndarray) -> Presolved:
    return Presolved(
        original=problem,
        problem=None,
        kept=np.arange(0),
        constant=float(state.sum()),
        found=none_found(len(state)),
        removed={COVER: len(state)},
        complete=True,
        _lift=lambda states: np.repeat(state[None], len(states), axis=0),
    )


def _smaller(problem: Problem, kept: np.ndarray, edges: np.ndarray) -> Problem:
    place = np.empty(problem.num_variables, np.int32)
    place[kept] = np.arange(len(kept))
    graph = Graph.from_arrays(problem.name, len(kept), place[edges])
    labels = tuple(problem.labels[k] for k in kept)
    return dataclasses.replace(problem, labels=labels, source=graph)
