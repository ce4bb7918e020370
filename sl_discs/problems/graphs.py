"""Problems on graphs: `mis`, `maxcut`, `maxclique` and `vertex_cover`, each with its kind and its
constructor.
"""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float64, Int, Int32
from scipy import sparse

from sl_discs.instances.form import fraction
from sl_discs.instances.graph import (
    Graph,
    check_isolated,
    checked_node_weights,
    graph_from_networkx,
    is_networkx,
    one_direction,
    other_numbers,
)
from sl_discs.models.terms import (
    Coefficients,
    SpinForm,
    are_integers,
    merged_pairs,
    missing_pairs,
)
from sl_discs.problems.forms import entries, is_sparse
from sl_discs.problems.graph_kind import (
    Edges,
    GraphKind,
    TwoImprovement,
    drop_conflicts,
    weights_of_nodes,
)
from sl_discs.problems.kind import PENALTY, Chosen
from sl_discs.problems.problem import (
    Problem,
    has_matrix,
    in_order,
    is_frame,
    matrix_of_frame,
    of_series,
)
from sl_discs.support.checks import join_names, real_array, text
from sl_discs.support.doubles import unmasked
from sl_discs.support.errors import InputError

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    GraphLike: TypeAlias = (
        nx.Graph | Graph | ArrayLike | sparse.sparray | sparse.spmatrix | DataFrame
    )
    """A graph of networkx, an adjacency matrix of NumPy, SciPy or pandas, edges [E, 2], or a
    `sl_discs.Graph`.
    """
else:  # Anything else gets an `InputError`.
    GraphLike = ArrayLike = object

# What `weight` may be: the attribute of nodes of a networkx graph, weights by label, or [N] in the
# order of labels.
Weight = str | Mapping[Hashable, float] | Sequence[float] | np.ndarray | None

# Maximum independent set: f(x) = |x| - penalty * (edges inside), so c = 1 and J = -penalty A.
#
# With weights w of nodes, |x| is w.x, and an edge counts as much as its lighter end: J_uv =
# -penalty min(w_u, w_v). Dropping the lighter end of a conflict then never costs, so every
# maximiser is feasible with a penalty above 1, up to nodes of weight 0, which are dropped for
# nothing. The same holds of the conflicts of cliques and covers.


# The relative error of a sum of weights in double precision, from above.
_ROUNDED = 1e-9


def _most(
    edges: Edges, chosen: Bool[np.ndarray, "B N"], conflicts: Int[np.ndarray, "B N"]
) -> Float64[np.ndarray, "B"]:
    """What is left at most of chosen nodes, of which `conflicts` tells how many others each is in
    conflict with.

    A node is dropped from each component of the graph of conflicts, which has at least nodes minus
    edges of them.
    """
    if edges.node_weights is not None:
        return (chosen @ edges.node_weights) * (1 + _ROUNDED)
    pairs = conflicts.sum(axis=1) // 2
    return chosen.sum(axis=1) - np.maximum(
        np.count_nonzero(conflicts, axis=1) - pairs, np.minimum(pairs, 1.0)
    )


MIS = GraphKind(
    name="mis",
    problem="maximum independent set",
    weights_of_nodes=True,
    proportional=True,
    unit="set size",
    recounted="recounted from the edges as given, none of which lies inside the set",
    model=lambda graph, penalty: Coefficients(
        weights_of_nodes(graph), graph.edges, graph.lighter_ends(), -penalty
    ),
    violations=Edges.num_inside,
    repair=lambda edges, chosen: drop_conflicts(
        chosen, edges.ends[edges.inside(chosen)], edges.node_weights
    ),
    most=lambda edges, chosen: _most(edges, chosen, edges.inside_each(chosen)),
    improve=lambda graph: TwoImprovement(graph.num_nodes, graph.edges, graph.node_weights),
    discs_family=("er_density", "r-0.10"),
).register()


def mis(
    graph: GraphLike,
    *,
    weight: Weight = None,
    num_nodes: int | None = None,
    penalty: float = PENALTY,
    name: str = "",
) -> Problem:
    """Makes the problem of the largest, or heaviest, independent set: nodes of which no two are
    joined.

    Example:
        >>> weight = {"Ann": 1, "Bob": 3, "Cy": 1}
        >>> problem = sl_discs.mis(nx.path_graph(["Ann", "Bob", "Cy"]), weight=weight)
        >>> sl_discs.solve(problem).best_set
        {'Bob'}

    Args:
      graph: an undirected networkx graph with any labels; an adjacency matrix [N, N], dense,
        SciPy's sparse or a DataFrame with the same labels of rows and columns, symmetric or
        triangular, whose nonzero entries are edges; edges [E, 2] of integers, each once; or a
        `Graph`. Weights of edges are ignored.
      weight: of nodes, at least 0: the name of an attribute of a networkx graph's nodes, {label:
        weight}, a Series, or [N] in the order of the problem's labels; None: those of a `Graph`,
        and otherwise 1.
      num_nodes: for edges; None: the largest index plus 1.
      penalty: of a conflict in the sampled model, in units of the lighter node's weight; at least
        1.
      name: used in results; empty: the graph's own name, or `mis`.

    Raises:
      InputError: a directed graph or multigraph, a self-loop, an edge given twice, no nodes, a
        penalty below 1, or a node without a weight or with one that is negative or not a finite
        number.
    """
    return _problem(MIS, graph, None, num_nodes, penalty, name, weight)


# Maximum cut: f(x) is the weight of the edges between the two sides, so c = row sums of w and J =
# -2 w.


def _maxcut_model(graph: Graph, penalty: float) -> Coefficients:
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    linear = np.zeros(graph.num_nodes)
    np.add.at(linear, graph.edges[:, 0], weights)
    np.add.at(linear, graph.edges[:, 1], weights)
    return Coefficients(linear, graph.edges, weights, -2.0)


def _spins_of_cut(graph: Graph) -> SpinForm:
    """Returns the weight of a cut: an edge counts where (1 - s_u s_v) / 2 is 1."""
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    pairs, couplings = merged_pairs(graph.num_nodes, graph.edges, -weights / 2)
    return SpinForm(np.zeros(graph.num_nodes), pairs, couplings, float(weights.sum() / 2))


def _cut_of_spins(spins: SpinForm, graph: Graph) -> tuple[Graph, float]:
    """Returns the graph whose cuts are a function of spins without fields, but for a constant."""
    weights = -2 * spins.couplings
    cut = Graph.from_arrays(
        graph.name, spins.num_spins, spins.pairs, None if (weights == 1).all() else weights
    )
    return cut, spins.constant - float(weights.sum() / 2)


def _maxcut_bound(graph: Graph) -> Fraction | float:
    """Returns the sum of all positive weights."""
    return (
        float(graph.num_edges) if graph.weights is None else fraction(np.maximum(graph.weights, 0))
    )


def _maxcut_most(edges: Edges, chosen: Bool[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
    return edges.weight_between(chosen) + (
        0 if edges.weights is None else _ROUNDED * np.abs(edges.weights).sum()
    )


MAXCUT = GraphKind(
    name="maxcut",
    problem="maximum cut",
    unit="cut weight",
    recounted="the weights of the cut edges, summed in exact arithmetic from the graph as given",
    model=_maxcut_model,
    to_spins=_spins_of_cut,
    from_spins=_cut_of_spins,
    count=lambda edges, chosen: edges.weight(chosen[edges.u] != chosen[edges.v]),
    most=_maxcut_most,
    bound=_maxcut_bound,
    integral=lambda graph: graph.weights is None or are_integers(graph.weights),
    bounded_by="the positive weights",
    penalty=None,
    weighted=True,
    proportional=True,
    in_percent=True,
    discs_family=("ba", "r-ba-4-n-512-600"),
).register()


def maxcut(
    graph: GraphLike,
    weights: ArrayLike | str | None = None,
    *,
    num_nodes: int | None = None,
    name: str = "",
) -> Problem:
    """Makes the problem of the heaviest cut: nodes in two parts, and the weights of the edges
    between them.

    Example:
        >>> problem = sl_discs.maxcut([[0, 1], [1, 2], [2, 0]], weights=[3, 2, 1])
        >>> sl_discs.solve(problem).best_value
        5.0

    Args:
      graph: an undirected networkx graph with any labels; an adjacency matrix [N, N], dense,
        SciPy's sparse or a DataFrame with the same labels of rows and columns, symmetric or
        triangular, whose nonzero entries are edges; edges [E, 2] of integers, each once; or a
        `Graph`. Weights, of either sign, are the edge attribute `weight` of a networkx graph (1 on
        every edge where no edge has it; a warning says where edges have other numbers), the entries
        of a matrix, or those of a `Graph`.
      weights: [E] for edges [E, 2], None: 1; or the name of another edge attribute of a networkx
        graph.
      num_nodes: for edges; None: the largest index plus 1.
      name: used in results; empty: the graph's own name, or `maxcut`.

    Raises:
      InputError: a directed graph or multigraph, a self-loop, an edge given twice, no nodes, or a
        weight that is not a finite number.
    """
    return _problem(MAXCUT, graph, weights, num_nodes, PENALTY, name)


# Maximum clique: f(x) = |x| - penalty * (pairs inside that are not joined), so c = 1 and J =
# -penalty (11' - I - A).
#
# With a penalty above 1 every maximiser is feasible. DISCS writes the penalty as n(n-1)/2 minus the
# edges inside; as a function on {0,1}^N that is the same, but its derivative is off by penalty/2
# and gives no exact gains. Weights of nodes make pairs unequal, so they are listed, unless that
# takes too much memory: then each counts as much as the heaviest node, which is exact as well.

_MOST_LISTED = 5 * 10**6


def _missing_pairs(graph: Graph) -> Int32[np.ndarray, "P 2"] | None:
    """Returns the pairs that are not joined, in ascending order; None where they are too many to be
    listed.
    """
    size = graph.num_nodes
    count = size * (size - 1) // 2 - graph.num_edges
    if count >= graph.num_edges and (graph.node_weights is None or count > _MOST_LISTED):
        return None
    return missing_pairs(size, graph.edges)


def _maxclique_model(graph: Graph, penalty: float) -> Coefficients:
    linear = weights_of_nodes(graph)
    pairs = _missing_pairs(graph)
    if pairs is None:
        background = float(linear.max())
        return Coefficients(linear, graph.edges, np.zeros(graph.num_edges), -penalty, background)
    return Coefficients(linear, pairs, linear[pairs].min(axis=1), -penalty)


def _maxclique_violations(edges: Edges, chosen: Chosen) -> int:
    size = int(np.count_nonzero(chosen))
    return size * (size - 1) // 2 - edges.num_inside(chosen)


def _maxclique_improve(graph: Graph) -> TwoImprovement | None:
    """Returns the improvement of independent sets of the complement, if its edges are few."""
    pairs = _missing_pairs(graph)
    return None if pairs is None else TwoImprovement(graph.num_nodes, pairs, graph.node_weights)


def _maxclique_most(edges: Edges, chosen: Bool[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
    rest = chosen.sum(axis=1, keepdims=True) - 1
    return _most(edges, chosen, np.where(chosen, rest - edges.inside_each(chosen), 0))


MAXCLIQUE = GraphKind(
    name="maxclique",
    problem="maximum clique",
    weights_of_nodes=True,
    proportional=True,
    unit="clique size",
    recounted="recounted from the edges as given, which join every pair of its nodes",
    model=_maxclique_model,
    violations=_maxclique_violations,
    repair=lambda edges, chosen: drop_conflicts(
        chosen, edges.ends[edges.inside(chosen)], edges.node_weights, joined=True
    ),
    most=_maxclique_most,
    improve=_maxclique_improve,
    joined=True,
    in_percent=True,
    discs_family=("rb", "_"),
).register()


def maxclique(
    graph: GraphLike,
    *,
    weight: Weight = None,
    num_nodes: int | None = None,
    penalty: float = PENALTY,
    name: str = "",
) -> Problem:
    """Makes the problem of the largest, or heaviest, clique: nodes of which every two are joined.

    Arguments and errors are those of `sl_discs.mis`; a name that is empty is the graph's own, or
    `maxclique`.

    Example:
        >>> sl_discs.solve(sl_discs.maxclique([[0, 1], [1, 2], [2, 0], [2, 3]])).best_set
        {0, 1, 2}
    """
    return _problem(MAXCLIQUE, graph, None, num_nodes, penalty, name, weight)


# Minimum vertex cover: f(x) = -|x| - penalty * (edges without a chosen end), which is maximised.
#
# An edge is uncovered where (1 - x_u)(1 - x_v) = 1, so c = penalty * degrees - 1, J = -penalty A,
# and the constant -penalty * (number of edges) remains; with weights of nodes, -|x| is -w.x and
# each edge counts min(w_u, w_v) times. With a penalty above 1 every maximiser is a cover. The nodes
# that are left out are an independent set, so this is MIS with ones and zeros exchanged: the repair
# adds the node that covers most uncovered edges, until none is left.


def _vertex_cover_model(graph: Graph, penalty: float) -> Coefficients:
    lighter = graph.lighter_ends()
    degrees = np.bincount(graph.edges.ravel(), np.repeat(lighter, 2), graph.num_nodes)
    linear = penalty * degrees - weights_of_nodes(graph)
    constant = -penalty * math.fsum(lighter)
    return Coefficients(linear, graph.edges, lighter, -penalty, constant=constant)


def _vertex_cover_improve(graph: Graph):
    improved = TwoImprovement(graph.num_nodes, graph.edges, graph.node_weights)
    return lambda chosen: ~improved(~chosen)


def _vertex_cover_most(edges: Edges, chosen: Bool[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
    total = (
        chosen.shape[1] if edges.node_weights is None else edges.node_weights.sum() * (1 - _ROUNDED)
    )
    return _most(edges, ~chosen, edges.inside_each(~chosen)) - total


VERTEX_COVER = GraphKind(
    name="vertex_cover",
    problem="minimum vertex cover",
    weights_of_nodes=True,
    proportional=True,
    unit="cover size",
    recounted="recounted from the edges as given, each of which has an end in the cover",
    model=_vertex_cover_model,
    violations=lambda edges, chosen: edges.num_inside(~chosen),
    repair=lambda edges, chosen: (
        ~drop_conflicts(~chosen, edges.ends[edges.inside(~chosen)], edges.node_weights)
    ),
    most=_vertex_cover_most,
    improve=_vertex_cover_improve,
    maximise=False,
).register()


def vertex_cover(
    graph: GraphLike,
    *,
    weight: Weight = None,
    num_nodes: int | None = None,
    penalty: float = PENALTY,
    name: str = "",
) -> Problem:
    """Makes the problem of the smallest, or lightest, vertex cover: nodes of which every edge has
    one at least.

    Arguments and errors are those of `sl_discs.mis`; a name that is empty is the graph's own, or
    `vertex_cover`.

    Example:
        >>> sl_discs.solve(sl_discs.vertex_cover(nx.star_graph(5))).best_set
        {0}
    """
    return _problem(VERTEX_COVER, graph, None, num_nodes, penalty, name, weight)


# A kind of one's own.


def register_problem(kind: GraphKind) -> Callable[..., Problem]:
    """Makes a kind of problem on graphs known that is not part of the package.

    Example: a cut of few edges, which maximises what lies within the two sides.
        >>> def model(graph, penalty):
        ...     degrees = np.bincount(graph.edges.ravel(), minlength=graph.num_nodes)
        ...     ones = np.ones(graph.num_edges)
        ...     return Coefficients(-degrees, graph.edges, ones, 2.0, constant=graph.num_edges)
        >>> kind = GraphKind(
        ...     name="uncut",
        ...     problem="minimum cut",
        ...     unit="edges",
        ...     recounted="recounted from the edges as given",
        ...     model=model,
        ...     count=lambda edges, chosen: float((chosen[edges.u] == chosen[edges.v]).sum()),
        ...     penalty=None,
        ... )
        >>> uncut = sl_discs.register_problem(kind)
        >>> sl_discs.solve(uncut([[0, 1], [1, 2]])).best_value
        2.0

    Args:
      kind: a `sl_discs.problems.graph_kind.GraphKind`, with a bound and an improvement if it names
        them. Without an entry in `sl_discs.solving.workers.WORKERS` it has no reductions, and
        proofs by enumeration alone. Commands know it by its name where `--import` runs this.

    Returns:
      the function that makes such a problem from a graph, with the arguments of `sl_discs.maxcut`
      if weights count, and of `sl_discs.mis` otherwise.

    Raises:
      InputError: it is no `GraphKind`, or its name is that of another problem.
    """
    if not isinstance(kind, GraphKind):
        raise InputError(f"the kind is a {type(kind).__name__}; expected a GraphKind")
    kind.register()

    def construct(
        graph: Any,
        weights: Any = None,
        *,
        weight: Weight = None,
        num_nodes: int | None = None,
        penalty: float = kind.penalty or PENALTY,
        name: str = "",
    ) -> Problem:
        for what, example, counts in (
            ("weights", weights, kind.weighted),
            ("weight", weight, kind.weights_of_nodes),
        ):
            if example is not None and not counts:
                raise InputError(f"{kind.name}: {what} has no effect here; leave it out")
        return _problem(kind, graph, weights, num_nodes, penalty, name, weight)

    construct.__name__ = construct.__qualname__ = kind.name
    construct.__doc__ = (
        f"{kind.task} Arguments are those of `sl_discs.{'maxcut' if kind.weighted else 'mis'}`."
    )
    return construct


def _problem(
    kind: GraphKind,
    given: Any,
    weights: Any,
    num_nodes: int | None,
    penalty: float,
    name: str,
    weight: Weight = None,
) -> Problem:
    name, labels, graph = _read_graph(kind, given, weights, num_nodes, text("name", name))
    if isinstance(weight, str):
        if not is_networkx(given):
            raise InputError(
                f"{name}: weight={weight!r} is for a networkx graph; give an array or {{node: "
                f"weight}}"
            )
        weight = {node: data[weight] for node, data in given.nodes(data=True) if weight in data}
    weight = of_series(f"{name}: weights of nodes", weight)
    # So that messages name the node.
    if isinstance(weight, list | tuple) and len(weight) == len(labels):
        weight = dict(zip(labels, weight, strict=True))
    if weight is not None:
        graph = dataclasses.replace(graph, node_weights=checked_node_weights(name, weight, labels))
    return Problem(kind.name, name, labels, kind.counted(graph), penalty)


def _read_graph(
    kind: GraphKind, given: Any, weights: Any, num_nodes: int | None, name: str
) -> tuple[str, Sequence[Hashable], Graph]:
    """Returns the name, labels and graph of a problem from any of the forms that the constructors
    take.
    """
    if isinstance(given, str | os.PathLike):
        raise InputError(
            f"{kind.name}: {os.fspath(given)!r} is text where a graph is expected; read a file "
            f"with sl_discs.read({os.fspath(given)!r}, {kind.name!r})"
        )
    named = isinstance(weights, str) and is_networkx(given)
    given, labels = _unlabelled(name or kind.name, given)
    given = _dense_as_sparse(name or kind.name, given)
    complete = is_networkx(given) or isinstance(given, Graph) or is_sparse(given)
    if complete and not ((weights is None or named) and num_nodes is None):
        raise InputError(
            f"{kind.name}: weights and num_nodes are only for edges [E, 2]; a graph or matrix has "
            "its own"
        )
    if not is_networkx(given):
        if isinstance(given, Graph):
            name = name or given.name
            graph = given
        elif is_sparse(given):
            graph = _graph_of_matrix(name or kind.name, given, kind.weighted, labels)
        else:
            graph = _graph_of_edges(name or kind.name, given, weights, num_nodes)
        return (
            name or kind.name,
            range(graph.num_nodes) if labels is None else in_order(labels),
            graph,
        )
    name = str(name or given.name or kind.name)
    labels = tuple(given.nodes)
    if kind.weighted:
        _check_names(name, given, weights)
    graph = graph_from_networkx(given, name, kind.weighted, weight=weights if named else "weight")
    return name, range(len(labels)) if set(labels) == set(range(len(labels))) else labels, graph


def _check_names(name: str, graph: nx.Graph, weight: str | None) -> None:
    """Warns of numbers of edges that do not count; InputError where no edge has the attribute that
    is named.
    """
    attributes = [data for *_, data in graph.edges(data=True)]
    if any((weight or "weight") in data for data in attributes):
        return
    unused = list(other_numbers((None, data) for data in attributes))
    there = f"numbers of edges under {join_names(unused)}" if unused else "no numbers of edges"
    if weight is not None and attributes:
        raise InputError(f"{name}: weights is {weight!r}, which no edge has; the graph has {there}")
    if unused:
        warnings.warn(
            f"{name}: {there} do not count; weights={unused[0]!r} uses them", stacklevel=5
        )


def _unlabelled(name: str, given: Any) -> tuple[Any, Sequence[Hashable] | None]:
    """Returns a DataFrame as its adjacency matrix with labels, or as edges; anything else
    as it is.
    """
    if not is_frame(given):
        return given, None
    if has_matrix(given):
        labels, matrix = matrix_of_frame(name, given)
        # Labels of nodes: [2, 2] is no list of two edges.
        named = matrix.dtype.kind in "iu" and labels != [
            0,
            1,
        ]
        return sparse.csr_array(matrix) if named else matrix, labels
    if given.shape[1] == 2 and all(dtype.kind in "iu" for dtype in given.dtypes):
        return given.to_numpy(), None
    raise InputError(
        f"{name}: a DataFrame whose rows and columns have different labels; label those of a "
        "matrix alike, and of a "
        "table of edges give networkx.from_pandas_edgelist(frame, SOURCE, TARGET, WEIGHT), the "
        "names of its columns"
    )


def _dense_as_sparse(name: str, given: Any) -> Any:
    """Returns a dense adjacency matrix [N, N], an array or lists, as a sparse one, and anything
    else as it is.

    Whole numbers [2, 2] may be two edges. They are not if they are symmetric with a zero diagonal,
    as these edges would be one edge twice, or self-loops.
    """
    if isinstance(given, list | tuple):
        try:
            rows = np.asarray(given)
        except ValueError:
            return given
        if rows.dtype.kind not in "biuf":
            return given
        given = real_array(name, given) if rows.dtype.kind == "f" else rows
    if not isinstance(given, np.ndarray) or given.ndim != 2 or given.shape[0] != given.shape[1]:
        return given
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):  # a masked entry is no edge
        return sparse.csr_array(given.filled(0))
    given = unmasked(name, given)
    edges = len(given) == 2 and given.dtype.kind in "iu"
    if edges and (given.diagonal().any() or given[0, 1] != given[1, 0]):
        return given
    if given.dtype.kind not in "biuf":
        raise InputError(f"{name}: the adjacency matrix has dtype {given.dtype}; expected numbers")
    return sparse.csr_array(given)


def _graph_of_edges(name: str, edges: Any, weights: Any, num_nodes: int | None) -> Graph:
    given = unmasked(f"{name}: edges", edges)
    try:
        edges = np.asarray(given)
    except ValueError:
        raise InputError(f"{name}: edges have no rectangular shape; expected [E, 2]") from None
    if edges.size and (edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu"):
        raise InputError(f"{name}: {_not_edges(given, edges)}")
    if num_nodes is None:
        num_nodes = int(edges.max()) + 1 if edges.size else 0
        check_isolated(
            name, num_nodes, edges.nbytes, "number nodes without gaps, or give num_nodes"
        )
    return Graph.from_arrays(name, num_nodes, edges, weights)


def _not_edges(given: Any, edges: np.ndarray) -> str:
    """Returns what was given in the place of edges, as an array too, and what to give instead."""
    if edges.ndim == 2 and edges.shape[1] in (2, 3) and edges.dtype.kind in "UO":
        fill = "add_weighted_edges_from" if edges.shape[1] == 3 else "add_edges_from"
        return (
            f"edges between labels such as {given[0][0]!r}; give a networkx graph: graph = "
            f"networkx.Graph(); graph.{fill}(edges)"
        )
    if edges.ndim == 2 and edges.shape[1] == 3:
        return "edges of shape [E, 3]; give edges [E, 2] and their weights apart, in weights"
    if edges.ndim == 0:
        return (
            f"a {type(given).__name__}; expected edges [E, 2], a networkx graph (which may have "
            "any labels) or an adjacency matrix [N, N]"
        )
    return (
        f"edges of shape {edges.shape} and dtype {edges.dtype}; expected integers [E, 2], a "
        "networkx graph (which "
        "may have any labels) or an adjacency matrix [N, N]"
    )


def _graph_of_matrix(
    name: str, matrix: Any, weighted: bool, labels: Sequence[Hashable] | None
) -> Graph:
    called = repr if labels is None else lambda node: repr(labels[node])
    if matrix.dtype.kind == "b":  # edges of weight 1; duplicate entries are one edge
        matrix = matrix.tocsr().astype(np.int8)
    rows, columns, values = entries(f"{name}: the adjacency matrix", matrix)
    for wrong in np.flatnonzero(~np.isfinite(values))[:1]:
        where = f"{called(int(rows[wrong]))}, {called(int(columns[wrong]))}"
        raise InputError(
            f"{name}: the adjacency matrix is {values[wrong]} at {where}; expected a finite number"
        )
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"{name}: the adjacency matrix has shape {matrix.shape}; expected a square one"
        )
    if (rows == columns).any():
        node = called(int(rows[np.argmax(rows == columns)]))
        raise InputError(f"{name}: self-loop at node {node}; clear the diagonal")
    edges = np.stack([rows, columns], axis=1)
    above = rows < columns
    if above.any() and not above.all():
        what = (
            "the adjacency matrix is neither symmetric nor triangular: use A + A.T, or its "
            "upper triangle"
        )
        edges, values = one_direction(f"{name}: {what}", edges.T, values)
    return Graph.from_arrays(name, matrix.shape[0], edges, values if weighted else None)
