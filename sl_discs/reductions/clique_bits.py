"""Cliques in small graphs, with sets of nodes as the bits of Python's integers."""

from __future__ import annotations

import collections
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

# Passes over all nodes, of which the first few find most.
_MOST_PASSES = 10
TRIANGLES, COLOURS = "triangles", "colours"


def neighbour_sets(size: int, edges: Int[np.ndarray, "E 2"]) -> list[int]:
    """The neighbours of each node."""
    near = [0] * size
    for u, v in edges.tolist():
        near[u] |= 1 << v
        near[v] |= 1 << u
    return near


def members(nodes: int) -> Iterator[int]:
    """The nodes of a set, in order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


def grow(near: list[int], node: int) -> list[int]:
    """A maximal clique with this node: always the candidate with most neighbours among the candidates joins."""
    clique, candidates = [node], near[node]
    while candidates:
        node = max(members(candidates), key=lambda one: (near[one] & candidates).bit_count())
        clique.append(node)
        candidates &= near[node]
    return clique


def in_larger(near: list[int], size: int) -> tuple[int, collections.Counter[str], bool]:
    """The nodes that may be in a clique larger than `size`, how many others each rule removed, and whether it ended.

    `near` loses the edges that are in none.
    """
    left, removed = (1 << len(near)) - 1, collections.Counter[str]()
    for _ in range(_MOST_PASSES):
        before = list(near)
        for node in members(left):
            near[node] &= left
            for other in members(near[node]):
                if (near[node] & near[other]).bit_count() < size - 1:
                    near[node] ^= 1 << other
                    near[other] &= ~(1 << node)
            few = near[node].bit_count() < size
            if few or not _needs_colours(near, near[node], size):
                left ^= 1 << node
                near[node] = 0
                removed[TRIANGLES if few else COLOURS] += 1
        if near == before:
            return left, removed, True
    return left, removed, not left


def _needs_colours(near: list[int], nodes: int, number: int) -> bool:
    """Whether a greedy colouring of some nodes needs at least so many colours."""
    while nodes and number > 0:
        same = nodes
        while same:
            lowest = same & -same
            nodes ^= lowest
            same &= ~(near[lowest.bit_length() - 1] | lowest)
        number -= 1
    return number <= 0
