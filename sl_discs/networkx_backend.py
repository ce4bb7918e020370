"""A backend of networkx, by its entry points: `nx.approximation.max_clique(G, backend="sl_discs")`.

networkx finds the functions by their names, so that this module has no other names of networkx's
functions. It is imported whenever networkx is, and therefore imports nothing else itself.

Each function takes a networkx graph, with the arguments of networkx's own function and these:

- time_limit: seconds; None: `networkx.config.backends.sl_discs.time_limit`, and if that is None, a
  number of steps that does not depend on the clock.
- seed: from 0 to 2^64 - 1, where networkx's function has none; equal seeds give equal answers
  without a time limit.

Bad values of these, and weights that are no numbers, raise InputError; weights beyond double
precision are left to networkx. A proof, of which only `max_weight_clique` tells, may end a call
before its time limit; other calls without a limit do not work on one. Self-loops and parallel edges
are treated as in networkx: the first count only in a vertex cover, where they force their node, the
second count once.
"""

from __future__ import annotations  # networkx has no Graph yet when it imports this

import functools
import inspect
import math
import numbers
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import networkx as nx

_NAME = "sl_discs"


def _uncached(function: Callable) -> Callable:
    """Forgets the graph that networkx keeps as the converted one; it would warn that it may be out
    of date.
    """

    @functools.wraps(function)
    def call(G: nx.Graph, *args: Any, **kwargs: Any) -> Any:
        (getattr(G, "__networkx_cache__", None) or {}).get("backends", {}).pop(_NAME, None)
        return function(G, *args, **kwargs)

    return call


@_uncached
def maximum_independent_set(
    G: nx.Graph, *, time_limit: float | None = None, seed: int = 0
) -> set[Hashable]:
    """Returns the largest independent set that was found."""
    return _solved("mis", G, time_limit, seed)[0]


@_uncached
def max_clique(G: nx.Graph, *, time_limit: float | None = None, seed: int = 0) -> set[Hashable]:
    """Returns the largest clique that was found."""
    return _solved("maxclique", G, time_limit, seed)[0]


@_uncached
def max_weight_clique(
    G: nx.Graph, weight: str | None = "weight", *, time_limit: float | None = None, seed: int = 0
) -> tuple[list[Hashable], int]:
    """Returns the heaviest clique, and its weight; a warning says so if it is not proved to be the
    heaviest.

    Raises:
      KeyError: a node has no attribute `weight`.
      ValueError: the weight of a node is not an integer.
    """
    weights = dict.fromkeys(G, 1) if weight is None else dict(G.nodes(data=weight))
    for node, value in weights.items():
        if weight is not None and weight not in G.nodes[node]:
            raise KeyError(f"node {node!r} has no attribute {weight!r}; give every node an integer")
        if not isinstance(value, int):
            raise ValueError(
                f"the attribute {weight!r} of node {node!r} is {value!r}; expected an integer"
            )
    # Others never help, and networkx leaves them out, too.
    helpful = [node for node, value in weights.items() if value > 0]
    clique, proved = _solved(
        "maxclique", G.subgraph(helpful), time_limit, seed, weights, proofs=True
    )
    if not proved:
        warnings.warn(
            "the clique is not proved to be the heaviest; a longer time_limit may",
            RuntimeWarning,
            3,
        )
    return list(clique), sum(weights[node] for node in clique)


@_uncached
def min_weighted_vertex_cover(
    G: nx.Graph, weight: str | None = None, *, time_limit: float | None = None, seed: int = 0
) -> set[Hashable]:
    """Returns the lightest vertex cover that was found; a node without the attribute `weight`
    weighs 1.

    The directions of edges do not count, and nodes of negative weight are always in it.
    """
    weights = dict(G.nodes(data=weight, default=1))
    negative = {
        node for node, value in weights.items() if isinstance(value, numbers.Real) and value < 0
    }
    # They leave the graph, and so do the edges that they cover.
    cover = negative | {u for u, v in G.edges() if u == v}
    rest = G.subgraph([node for node in G if node not in cover])
    return cover | _solved("vertex_cover", rest, time_limit, seed, weights)[0]


@_uncached
def one_exchange(
    G: nx.Graph,
    initial_cut: Iterable[Hashable] | None = None,
    seed: Any = None,
    weight: Hashable | None = None,
    *,
    time_limit: float | None = None,
) -> tuple[float, tuple[set[Hashable], set[Hashable]]]:
    """Returns the weight of the heaviest cut that was found, at least that of `initial_cut`, and
    its two sides.
    """
    if not len(G):
        return 0, (set(), set())
    # networkx makes it one of the classes that have the methods of `random.Random`.
    seed_number = 0 if seed is None else int(seed.randrange(2**32))
    cuts = [_solved("maxcut", G, time_limit, seed_number, weight=weight)[0]]
    if initial_cut is not None:
        cuts.append(set(initial_cut).intersection(G))
    sizes = [nx.cut_size(G, cut, weight=weight, backend="networkx") for cut in cuts]
    best = sizes.index(max(sizes))
    return sizes[best], (cuts[best], set(G) - cuts[best])


def _solved(
    kind: str,
    G: nx.Graph,
    time_limit: float | None,
    seed: int,
    node_weights: Mapping[Hashable, Any] | None = None,
    weight: Hashable | None = None,
    proofs: bool = False,
) -> tuple[set[Hashable], bool]:
    """Returns the nodes of the best answer to a problem on a graph, and whether it is proved to be
    optimal.

    `weight` is the attribute of edges that counts. Without a time limit, only `proofs` asks for a
    proof.
    """
    if not len(G):
        return set(), True
    import sl_discs

    configured = getattr(nx.config.backends, _NAME, None)
    if time_limit is None and configured is not None:
        time_limit = configured.time_limit
    arguments = (
        {}
        if node_weights is None
        else {"weight": {node: _number(node_weights[node]) for node in G}}
    )
    problem = getattr(sl_discs, kind)(_simple(G, weight), **arguments)
    result = sl_discs.solve(
        problem, time_limit=time_limit, seed=seed, proofs=proofs or time_limit is not None
    )
    return result.best_set, result.optimal


def _simple(G: nx.Graph, weight: Hashable | None = None) -> nx.Graph:
    """Copies a graph without self-loops, directions and parallel edges.

    `weight` is the attribute of edges that counts, 1 where it is missing; only for simple graphs.
    """
    simple = nx.Graph()
    simple.add_nodes_from(G)
    edges = ((u, v, value) for u, v, value in G.edges(data=weight, default=1) if u != v)
    simple.add_edges_from((u, v, {"weight": _number(value)}) for u, v, value in edges)
    return simple


def _number(value: Any) -> Any:
    """Returns a weight; booleans count as numbers in networkx."""
    import numpy as np

    return int(value) if isinstance(value, bool | np.bool_) else value


# What networkx asks a backend for.


def can_run(name: str, args: tuple, kwargs: dict) -> bool | str:
    """Says whether a function takes these arguments, or why not."""
    arguments = inspect.signature(globals()[name]).bind(*args, **kwargs)
    arguments.apply_defaults()
    graph = arguments.arguments["G"]
    weight = arguments.arguments.get("weight")
    if weight is not None:
        view = graph.edges if name == "one_exchange" else graph.nodes
        values = (row[-1] for row in view(data=weight, default=1))
        if any(map(_is_beyond_doubles, values)):
            return "a weight is infinite, or larger than 2^53 and not exact in double precision"
    return True


def _is_beyond_doubles(value: Any) -> bool:
    """Tells whether a weight is infinite, or a large number that rounding would change."""
    try:
        double = float(value)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False  # not a number, which the function says
    return math.isinf(double) or (abs(double) >= 2**53 and double != value)


def convert_from_nx(graph: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the graph itself, since the functions read networkx graphs."""
    return graph


# Results are of Python's types.
convert_to_nx = convert_from_nx


def get_info() -> dict[str, Any]:
    """Returns what networkx shows in its documentation, and the defaults of
    `networkx.config.backends.sl_discs`.
    """
    limit = {
        "time_limit : float or None, optional (default: "
        "None)": "Seconds; None: a fixed number of steps."
    }
    seed = {
        "seed : int, optional (default: 0)": "Equal seeds give equal answers without a time limit."
    }
    sets = "Reductions, annealing and, with a time limit, local search."
    functions: dict[Callable, tuple[str, dict[str, str]]] = {
        maximum_independent_set: (sets, limit | seed),
        max_clique: (sets, limit | seed),
        max_weight_clique: (sets + " Branch and bound; warns without a proof.", limit | seed),
        min_weighted_vertex_cover: (sets, limit | seed),
        one_exchange: ("Annealing of the whole cut.", limit),
    }
    return {
        "backend_name": _NAME,
        "project": _NAME,
        "package": _NAME,
        "short_summary": "Independent sets, cliques, covers and cuts by annealing, with proofs.",
        "default_config": {"time_limit": None},
        "functions": {
            function.__name__: {"additional_docs": text, "additional_parameters": parameters}
            for function, (text, parameters) in functions.items()
        },
    }
