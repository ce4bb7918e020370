"""Exact rules that shrink a graph without changing which independent sets are heaviest, as compiled loops.

Neighbourhood: a node that is at least as heavy as all its neighbours together is taken.

Dominated: a neighbour u of v is removed where v is at least as heavy as u and all neighbours of v that are not joined
to u: in a set that holds u, v can take the place of these. If v is at least as heavy as all its neighbours but u, it
can take their place in any set without u, so that its neighbours that are joined to u are removed.

Clique: where the neighbours of v are all joined to each other, and heavier than v, v is removed and its weight is
subtracted from each of them. A set that holds one of them has the weight of v from there; v joins any other.

Fold: where v has two neighbours x and y that are not joined, is at least as heavy as each, and lighter than both
together, some heaviest set holds v or both. v becomes the node that stands for both, joined to the neighbours of
both, of weight w(x) + w(y) - w(v).

Sources: Lamm, Schulz, Strash, Williger and Zhang, "Exactly solving the maximum weight independent set problem on
large real-world graphs", 2019; Gu, Zheng, Cai and Peng, "Towards computing a near-maximum weighted independent set on
massive graphs", 2021.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sl_discs.engines.cpu.jit import entered, inlined
from sl_discs.instances.graph import Graph
from sl_discs.reductions.arcs import (
    AFTER,
    ALIVE,
    CLIQUE,
    DEGREE,
    DOMINATED,
    END,
    FIRST,
    FOLD,
    INSTEAD,
    ISOLATED,
    LIST,
    LOOKS,
    MARK,
    NEIGHBOURHOOD,
    NUM_NOTES,
    NUM_TAKEN,
    PENDANT,
    QUEUE_LENGTH,
    TAKEN,
    TO,
    Arcs,
    add_edge,
    link_all,
    make_work,
    mark_neighbours,
    new_stamp,
    note_taken,
    pop,
    push,
    remove,
)  # fmt: skip


class WeightedWork(NamedTuple):
    """As `Work`, with weights of nodes.

    A node that was taken has nodes in `notes`, and is not taken where one of these is. A node that was folded has one
    in `notes`, which is taken together with INSTEAD where the node was, as it stands for both.

    Attributes:
      weights: [N] of nodes in what is left of the graph.
      gained: [N] of each node that was taken, in their order, its weight at that time.
    """

    graph: Arcs
    lists: np.ndarray
    notes: np.ndarray
    state: np.ndarray
    weights: np.ndarray
    gained: np.ndarray


def make_weighted(graph: Graph) -> WeightedWork:
    """Of a graph with weights of nodes to which nothing was done yet."""
    assert graph.node_weights is not None
    return WeightedWork(*make_work(graph), graph.node_weights.copy(), np.zeros(graph.num_nodes))


@inlined
def _note(work, node, instead, end):
    """Notes that a node is taken, as `note_taken`, with what its weight is."""
    work.gained[work.state[NUM_TAKEN]] = work.weights[node]
    note_taken(work, node, instead, end)


@inlined
def _weight_of_neighbours(work, node):
    nodes, arcs = work.graph.nodes, work.graph.arcs
    total, arc = 0.0, nodes[node, FIRST]
    while arc >= 0:
        total += work.weights[arcs[arc, TO]]
        arc = arcs[arc, AFTER]
    work.state[LOOKS] += nodes[node, DEGREE] + 1
    return total


@inlined
def _take_heavy(work, node):
    """Takes a node that is at least as heavy as its neighbours, and removes those."""
    nodes, arcs = work.graph.nodes, work.graph.arcs
    degree = nodes[node, DEGREE]
    rule = ISOLATED if degree == 0 else PENDANT if degree == 1 else NEIGHBOURHOOD
    while nodes[node, FIRST] >= 0:
        remove(work, arcs[nodes[node, FIRST], TO], rule)
    _note(work, node, -1, work.state[NUM_NOTES])
    remove(work, node, rule)


@inlined
def _remove_dominated(work, node, total):
    """Removes neighbours that a node can replace; whether its neighbours were a clique, and how many went.

    `total` is the weight of all neighbours.
    """
    graph, lists, weights = work.graph, work.lists, work.weights
    nodes, arcs = graph.nodes, graph.arcs
    stamp, others = mark_neighbours(work, node), nodes[node, DEGREE] - 1
    joined, dominated, heaviest, arc = True, 0, -1, nodes[node, FIRST]
    while arc >= 0:
        u = arcs[arc, TO]
        if heaviest < 0 or weights[u] > weights[heaviest]:
            heaviest = u
        count, apart, near = 0, total, nodes[u, FIRST]
        while near >= 0:
            other = arcs[near, TO]
            if nodes[other, MARK] == stamp:
                count += 1
                apart -= weights[other]
            near = arcs[near, AFTER]
        work.state[LOOKS] += nodes[u, DEGREE]
        if count == others:
            # Without the rounding of sums: what a clique keeps is heavier than the node.
            apart = weights[u]
        joined &= count == others
        if apart <= weights[node]:
            lists[dominated, LIST] = u
            dominated += 1
        arc = arcs[arc, AFTER]
    rule = CLIQUE if joined else DOMINATED
    for k in range(dominated):
        remove(work, lists[k, LIST], rule)
    if total - weights[heaviest] <= weights[node]:
        # The heaviest neighbour may have gone, and then the node is as heavy as the rest.
        arc = nodes[heaviest, FIRST]
        while arc >= 0:
            other, arc = arcs[arc, TO], arcs[arc, AFTER]
            if other != node and nodes[other, MARK] == stamp:
                remove(work, other, rule)
                dominated += 1
    return joined, dominated


@inlined
def _take_from_clique(work, node):
    """Takes a node whose neighbours are a clique, and heavier, by subtracting its weight from theirs."""
    graph, notes, weights = work.graph, work.notes, work.weights
    nodes, arcs = graph.nodes, graph.arcs
    end, degree = work.state[NUM_NOTES], nodes[node, DEGREE]
    if end + degree > notes.shape[0]:
        return
    arc = nodes[node, FIRST]
    while arc >= 0:
        u = arcs[arc, TO]
        notes[end] = u
        end += 1
        weights[u] -= weights[node]
        near = nodes[u, FIRST]
        while near >= 0:
            push(work, arcs[near, TO])
            near = arcs[near, AFTER]
        work.state[LOOKS] += nodes[u, DEGREE]
        arc = arcs[arc, AFTER]
    _note(work, node, -1, end)
    remove(work, node, PENDANT if degree == 1 else CLIQUE)


@inlined
def _fold(work, node):
    """Lets a node with two neighbours that are not joined stand for both, where it is not lighter than either."""
    graph, lists, weights = work.graph, work.lists, work.weights
    nodes, arcs = graph.nodes, graph.arcs
    first = nodes[node, FIRST]
    x, y, end = arcs[first, TO], arcs[arcs[first, AFTER], TO], work.state[NUM_NOTES]
    if weights[node] < max(weights[x], weights[y]) or end == work.notes.shape[0]:
        return
    stamp, size = new_stamp(work), 0
    nodes[node, MARK] = stamp
    for one in (x, y):
        arc = nodes[one, FIRST]
        while arc >= 0:
            u = arcs[arc, TO]
            if nodes[u, MARK] != stamp:
                nodes[u, MARK] = stamp
                lists[size, LIST] = u
                size += 1
            arc = arcs[arc, AFTER]
        work.state[LOOKS] += nodes[one, DEGREE]
    both = weights[x] + weights[y] - weights[node]
    remove(work, x, FOLD)
    remove(work, y, FOLD)
    for k in range(size):
        add_edge(graph, node, lists[k, LIST])
    work.notes[end] = y
    _note(work, node, x, end + 1)
    weights[node] = both
    push(work, node)


@entered
def reduce_weights(work, most_looks):
    """As `reduce_graph`, by the rules for weights."""
    graph, state = work.graph, work.state
    link_all(graph)
    for node in range(graph.nodes.shape[0]):
        push(work, node)
    while state[LOOKS] < most_looks:
        if state[QUEUE_LENGTH] == 0:
            return True
        node = pop(work)
        if not graph.nodes[node, ALIVE]:
            continue
        total = _weight_of_neighbours(work, node)
        if work.weights[node] >= total:
            _take_heavy(work, node)
            continue
        joined, dominated = _remove_dominated(work, node, total)
        if joined:
            _take_from_clique(work, node)
        elif dominated == 0 and graph.nodes[node, DEGREE] == 2:
            _fold(work, node)
    return False


@entered
def lift_weighted(lists, notes, sets):
    """Adds what was taken, backwards, to sets [B, N] of what was left, in place."""
    for row in range(sets.shape[0]):
        chosen = sets[row]
        for number in range(lists.shape[0] - 1, -1, -1):
            node, instead, end = lists[number, TAKEN], lists[number, INSTEAD], lists[number, END]
            if instead >= 0 and chosen[node]:
                chosen[node], chosen[instead], chosen[notes[end - 1]] = 0, 1, 1
            elif instead >= 0:
                chosen[node] = 1
            else:
                free = True
                for k in range(lists[number - 1, END] if number else 0, end):
                    free &= chosen[notes[k]] == 0
                if free:
                    chosen[node] = 1
