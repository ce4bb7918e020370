"""A function for each problem on graphs, which takes graphs in several forms."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.graph import Graph, graph_from_networkx, is_networkx
from sl_discs.models.graph_kind import GraphKind
from sl_discs.models.kind import PENALTY
from sl_discs.models.kinds import GRAPH_KINDS, register
from sl_discs.problems.matrices import entries, is_sparse
from sl_discs.problems.problem import Problem, timed

_WEIGHTED = """{task}

Args:
  graph: an undirected networkx graph with any labels; a SciPy sparse adjacency matrix [N, N], symmetric or
    triangular; edges [E, 2] of integers, each once; or a `Graph`. Weights, of either sign, are the edge attribute
    `weight` of a networkx graph (1 on every edge where no edge has it), the entries of a sparse matrix, or those of
    a `Graph`.
  weights: [E] for edges [E, 2]; None: 1.
  num_nodes: for edges; None: the largest index plus 1.
  name: used in results; empty: the graph's own name, or `{kind}`.

Raises:
  InputError: a directed graph or multigraph, a self-loop, an edge given twice, no nodes, or a weight that is not a
    finite number.
"""

_PENALISED = """{task}

Args:
  graph: an undirected networkx graph with any labels; a SciPy sparse adjacency matrix [N, N], symmetric or
    triangular; edges [E, 2] of integers, each once; or a `Graph`. Weights are ignored.
  num_nodes: for edges; None: the largest index plus 1.
  penalty: of a conflict in the sampled model; at least 1.
  name: used in results; empty: the graph's own name, or `{kind}`.

Raises:
  InputError: a directed graph or multigraph, a self-loop, an edge given twice, no nodes.
"""


def _constructor(kind: GraphKind) -> Callable[..., Problem]:
    """The public function that makes this problem from a graph."""
    if kind.weighted:

        def construct(graph: Any, weights: Any = None, *, num_nodes: int | None = None, name: str = "") -> Problem:
            return _problem(kind, graph, weights, num_nodes, PENALTY, name)

    else:

        def construct(  # type: ignore[misc]  # of other arguments than the one above
            graph: Any, *, num_nodes: int | None = None, penalty: float = kind.penalty or PENALTY, name: str = ""
        ) -> Problem:
            return _problem(kind, graph, None, num_nodes, penalty, name)

    construct.__name__ = construct.__qualname__ = kind.name
    construct.__doc__ = (_WEIGHTED if kind.weighted else _PENALISED).format(task=kind.task, kind=kind.name)
    return timed(construct)


CONSTRUCTORS = {name: _constructor(kind) for name, kind in GRAPH_KINDS.items()}


def register_problem(kind: GraphKind) -> Callable[..., Problem]:
    """Makes a kind of problem on graphs known that is not part of the package.

    Args:
      kind: a `sl_discs.models.graph_kind.GraphKind`. Without a bound, reduction and improvement it has none of these.

    Returns:
      the function that makes such a problem from a graph, as `sl_discs.mis` does.

    Raises:
      InputError: it is no `GraphKind`, or its name is that of another problem.
    """
    if not isinstance(kind, GraphKind):
        raise InputError(f"the kind is a {type(kind).__name__}; expected a GraphKind")
    register(kind)
    return _constructor(kind)


def _problem(kind: GraphKind, given: Any, weights: Any, num_nodes: int | None, penalty: float, name: str) -> Problem:
    name, labels, graph = read_graph(kind.name, given, weights, num_nodes, name, weighted=kind.weighted)
    return Problem(kind.name, name, labels, graph, penalty)


def read_graph(
    kind: str, given: Any, weights: Any, num_nodes: int | None, name: str, *, weighted: bool
) -> tuple[str, Sequence[Hashable], Graph]:
    """The name, labels and graph of a problem from any of the forms that the constructors take.

    Args:
      kind: name of the problem.
      given: the graph.
      weights: of edges [E, 2].
      num_nodes: likewise.
      name: of the graph; empty: its own, or that of the problem.
      weighted: whether weights count.

    Raises:
      InputError: as the constructors.
    """
    whole = is_networkx(given) or isinstance(given, Graph) or is_sparse(given)
    if whole and not (weights is None and num_nodes is None):
        raise InputError(f"{kind}: weights and num_nodes are only for edges [E, 2]; a graph or matrix has its own")
    if isinstance(given, Graph):
        return name or given.name, range(given.num_nodes), given
    if is_networkx(given):
        name = str(name or given.name or kind)
        if not len(given):
            raise InputError(f"{name}: the graph is empty; give at least one node")
        graph = graph_from_networkx(given, name, weighted)
        labels = tuple(given.nodes)
        labels = range(len(labels)) if set(labels) == set(range(len(labels))) else labels
        return name, labels, graph
    name = name or kind
    if is_sparse(given):
        graph = _graph_of_matrix(name, given, weighted)
    else:
        graph = _graph_of_edges(name, given, weights, num_nodes)
    return name, range(graph.num_nodes), graph


def _graph_of_edges(name: str, edges: Any, weights: Any, num_nodes: int | None) -> Graph:
    try:
        edges = np.asarray(edges)
    except ValueError:
        raise InputError(f"{name}: edges have no rectangular shape; expected [E, 2]") from None
    if edges.size and (edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu"):
        raise InputError(
            f"{name}: edges of shape {edges.shape} and dtype {edges.dtype}; expected integers [E, 2], a networkx "
            "graph (which may have any labels) or a SciPy sparse matrix"
        )
    if num_nodes is None:
        num_nodes = int(edges.max()) + 1 if edges.size else 0
    return Graph.from_arrays(name, num_nodes, edges, weights)


def _graph_of_matrix(name: str, matrix: Any, weighted: bool) -> Graph:
    if matrix.dtype.kind == "b":  # edges of weight 1; duplicate entries are one edge
        matrix = matrix.tocsr().astype(np.int8)
    rows, columns, values = entries(f"{name}: the adjacency matrix", matrix)
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{name}: the adjacency matrix has shape {matrix.shape}; expected a square one")
    if (rows == columns).any():
        raise InputError(f"{name}: self-loop at node {rows[np.argmax(rows == columns)]}; clear the diagonal")
    above = rows < columns
    if above.any() and not above.all():
        upper = _in_order(rows[above], columns[above], values[above])
        lower = _in_order(columns[~above], rows[~above], values[~above])
        if not all(np.array_equal(one, other, equal_nan=True) for one, other in zip(upper, lower, strict=True)):
            raise InputError(
                f"{name}: the adjacency matrix is neither symmetric nor triangular, so the graph is directed; "
                "use A + A.T, or its upper triangle"
            )
        rows, columns, values = upper
    edges = np.stack([rows, columns], axis=1)
    return Graph.from_arrays(name, matrix.shape[0], edges, values if weighted else None)


def _in_order(rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
    order = np.lexsort((columns, rows))
    return rows[order], columns[order], values[order]
