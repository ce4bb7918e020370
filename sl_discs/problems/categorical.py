"""Variables with several values: Potts models, which reward or punish equal neighbours, and graph colouring."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.errors import InputError, real_array, whole
from sl_discs.instances.form import PottsForm, check_sum
from sl_discs.models.terms import Coefficients, PottsTerms, are_whole, potts_terms
from sl_discs.problems.forms import entries_by_label
from sl_discs.problems.graphs import read_graph
from sl_discs.problems.kind import PENALTY, Evaluated, Kind
from sl_discs.problems.problem import Problem, timed

# States are stored as int8.
_MOST_VALUES = 127


@dataclasses.dataclass(frozen=True, kw_only=True)
class PottsKind(Kind):
    """A Potts form; any assignment is feasible."""

    several_values = True

    def accepts(self, source: Any) -> bool:
        return isinstance(source, PottsForm)

    def num_values(self, source: PottsForm) -> tuple[int, ...]:
        return source.values

    def terms(self, source: PottsForm, penalty: float = PENALTY) -> Coefficients:
        raise InputError(
            f"{source.name}: this needs variables of two values, and those of a {self.name} problem may have more; "
            "sl_discs.solve and sl_discs.sample take them"
        )

    def sampled(self, source: PottsForm, penalty: float) -> PottsTerms:
        return potts_terms(source)

    def objective(self, source: PottsForm, penalty: float) -> PottsTerms:
        return potts_terms(source)

    def bound_of(self, source: PottsForm, seconds: float) -> float:
        """With every coupling counted or not, and every variable at a value, as is best for it alone."""
        terms = potts_terms(source)
        of_values = np.where(terms.exists, terms.fields, -np.inf).max(axis=1)
        # As given: sums of those of a pair are rounded.
        of_pairs = np.maximum(terms.scale * source.couplings, 0)
        return terms.scale * math.fsum([*of_pairs.tolist(), *of_values.tolist()])

    def magnitude(self, source: PottsForm, penalty: float, *, offset: bool = True) -> float:
        return float(np.abs(source.couplings).sum() + np.abs(source.fields).sum())

    def whole_values(self, source: PottsForm) -> bool:
        return are_whole(np.concatenate([source.couplings, source.fields.ravel()]))

    def evaluator(self, source: PottsForm) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        def evaluate(states: Int8[np.ndarray, "B N"]) -> Evaluated:
            values = np.array([source.value(state) for state in states], np.float64)
            return Evaluated(values, np.ones(len(states), bool), states)

        return evaluate


POTTS = PottsKind(
    name="potts",
    recounted="all terms as given, summed in exact arithmetic",
).register()


@timed
def potts(
    J: Any, num_values: int | Sequence[int], h: Any = None, *, maximise: bool = False, name: str = "potts"
) -> Problem:
    """sum J_ij [x_i = x_j] over the entries of J, plus sum h_i(x_i), with x_i in 0 .. q_i - 1.

    Every entry of J counts, so both halves of a symmetric matrix do. Without couplings, J = {}, this is a product of
    categorical distributions, one for each entry of h.

    Args:
      J: a dict {(i, j): number} with any labels; or a matrix [N, N], dense or SciPy's sparse.
      num_values: q, the number of values of all variables or [N] of each; 2 to 127. The labels of dicts are in
        increasing order if all are integers, and otherwise in that of h, followed by further ones of J.
      h: a dict {i: q_i numbers} with the labels of J and perhaps more; numbers [N, q]; or None.
      maximise: whether the best value is the largest.
      name: used in results.

    Raises:
      InputError: no variables, a variable with fewer than two values, arrays of other shapes, a number that is not
        finite, a coupling of a variable to itself.
    """
    given = {} if h is None else h if isinstance(h, Mapping) else None
    array = real_array(f"{name}: h", [] if given is not None else h)
    if not array.ndim:
        raise InputError(f"{name}: h has shape (); expected a dict, or numbers [N, q]")
    size = None if given is not None else len(array)
    labels, rows, columns, couplings = entries_by_label(name, "J", J, size, given or {})
    if not labels:
        raise InputError(f"{name}: no variables; give at least one")
    own = rows == columns
    if own.any():
        label = labels[int(rows[np.argmax(own)])]
        raise InputError(f"{name}: J couples {label!r} to itself; expected pairs of variables")
    values = _counts(name, num_values, len(labels))
    fields = np.zeros((len(values), max(values)))
    if given is None:
        if array.shape != fields.shape:
            raise InputError(f"{name}: h has shape {array.shape}; expected {fields.shape}")
        fields[:] = array
    else:
        place = {label: k for k, label in enumerate(labels)}
        for label, numbers in given.items():
            row = real_array(f"{name}: h at {label!r}", numbers)
            if row.shape != (values[place[label]],):
                raise InputError(f"{name}: h at {label!r} has shape {row.shape}; expected [{values[place[label]]}]")
            fields[place[label], : len(row)] = row
    pairs = np.stack([rows, columns], axis=1, dtype=np.int32, casting="same_kind")
    fields = np.where(np.arange(fields.shape[1]) < np.array(values)[:, None], fields, 0.0)
    wrong = ~np.isfinite(fields).all(axis=1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{name}: h at {labels[at]!r} is {fields[at]}; expected finite numbers")
    check_sum(name, couplings, fields)
    form = PottsForm(name, values, pairs, couplings, fields, bool(maximise))
    return Problem("potts", name, labels, form)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ColoringKind(PottsKind):
    """A Potts form that counts equal pairs; only what has none is feasible, and nothing is repaired."""

    counts_violations = True

    def evaluator(self, source: PottsForm) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        evaluate = super().evaluator(source)

        def counted(states: Int8[np.ndarray, "B N"]) -> Evaluated:
            found = evaluate(states)
            return found._replace(feasible=found.values == 0)

        return counted

    def violated(self, source: PottsForm, state: Int8[np.ndarray, "N"], labels: Sequence[Hashable]) -> list[str]:
        return [f"edge {labels[u]!r}-{labels[v]!r}" for u, v in source.pairs[source.equal(state)].tolist()]

    def violation(self, violated: list[str]) -> str:
        return f"not a proper colouring: {self.value_in_words(len(violated))}, the first on {violated[0]}"

    def value_in_words(self, value: float) -> str:
        return f"{value:,.12g} conflict{'' if value == 1 else 's'}"


COLORING = ColoringKind(
    name="coloring",
    recounted="the edges between nodes of the same colour, counted from the graph as given",
).register()


@timed
def coloring(graph: Any, colors: int, *, num_nodes: int | None = None, name: str = "") -> Problem:
    """The fewest edges between nodes of the same colour, with so many colours; 0 is a proper colouring.

    Args:
      graph: an undirected networkx graph with any labels; an adjacency matrix [N, N], dense or SciPy's
        sparse, symmetric or triangular, whose nonzero entries are edges; edges [E, 2] of integers, each once; or a
        `Graph`. Weights are ignored.
      colors: their number k, 2 to 127; an answer has a colour 0 .. k - 1 for each node.
      num_nodes: for edges; None: the largest index plus 1.
      name: used in results; empty: the graph's own name, or `coloring`.

    Raises:
      InputError: a directed graph or multigraph, a self-loop, an edge given twice, no nodes, or fewer than 2 colours.
    """
    name, labels, read = read_graph("coloring", graph, None, num_nodes, name, weighted=False)
    values = _counts(name, colors, read.num_nodes, "colors")
    fields = np.zeros((len(values), max(values)))
    form = PottsForm(name, values, read.edges, np.ones(read.num_edges), fields, maximise=False)
    return Problem("coloring", name, labels, form)


def _counts(name: str, given: Any, size: int, argument: str = "num_values") -> tuple[int, ...]:
    """The number of values of each variable."""
    each = [given] * size if np.ndim(given) == 0 else list(given)
    if len(each) != size:
        raise InputError(f"{name}: {argument} has length {len(each)}; expected one number, or [{size}]")
    counts = tuple(whole(f"{name}: {argument}", count, 2) for count in each)
    if max(counts) > _MOST_VALUES:
        raise InputError(f"{name}: {argument} is {max(counts)}; expected at most {_MOST_VALUES}")
    return counts
