"""Forms and cuts as functions of spins to be maximised, which is how they are reduced."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy import sparse

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph


class SpinTerms(NamedTuple):
    """constant + sum fields_i s_i + sum couplings_k s_a s_b over the pairs (a, b).

    Attributes:
      fields: [N].
      pairs: [M, 2] pairs a < b, each once.
      couplings: [M], none of them 0.
      constant: a number.
    """

    fields: Float64[np.ndarray, "N"]
    pairs: Int[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    constant: float


def terms_of_form(form: QuadraticForm) -> SpinTerms:
    """The terms of a form, those of its negative where it is minimised."""
    sign = 1.0 if form.maximise else -1.0
    first, second = form.pairs.T
    own = first == second
    pairs, couplings = _merged(form.num_variables, form.pairs[~own], sign * form.couplings[~own])
    fields, constant = sign * form.linear, sign * math.fsum(form.offsets)
    if form.spins:
        return SpinTerms(fields, pairs, couplings, constant + sign * float(form.couplings[own].sum()))
    # x = (1 + s) / 2.
    np.add.at(fields, first[own], sign * form.couplings[own])
    couplings = couplings / 4
    fields, constant = fields / 2, constant + float(fields.sum() / 2 + couplings.sum())
    for ends in pairs.T:
        np.add.at(fields, ends, couplings)
    return SpinTerms(fields, pairs, couplings, constant)


def form_of_terms(terms: SpinTerms, like: QuadraticForm) -> QuadraticForm:
    """The form with these terms, of the sense and the kind of variables that another has."""
    sign = 1.0 if like.maximise else -1.0
    linear, couplings, offset = sign * terms.fields, sign * terms.couplings, sign * terms.constant
    if not like.spins:
        offset += float(couplings.sum() - linear.sum())
        linear *= 2
        for ends in terms.pairs.T:
            np.add.at(linear, ends, -2 * couplings)
        couplings = 4 * couplings
    return QuadraticForm.from_arrays(
        like.name, linear, terms.pairs, couplings, offset, spins=like.spins, maximise=like.maximise
    )


def terms_of_cut(graph: Graph) -> SpinTerms:
    """The weight of a cut: an edge counts where (1 - s_u s_v) / 2 is 1."""
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    pairs, couplings = _merged(graph.num_nodes, graph.edges, -weights / 2)
    return SpinTerms(np.zeros(graph.num_nodes), pairs, couplings, float(weights.sum() / 2))


def cut_of_terms(terms: SpinTerms, name: str) -> tuple[Graph, float]:
    """The graph whose cuts have these terms, which have no fields, and what the terms are larger by."""
    weights = -2 * terms.couplings
    graph = Graph.from_arrays(name, len(terms.fields), terms.pairs, None if (weights == 1).all() else weights)
    return graph, terms.constant - float(weights.sum() / 2)


def _merged(size: int, pairs: np.ndarray, couplings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each pair once and in order, without those whose couplings cancel."""
    upper = sparse.csr_matrix((couplings, (pairs.min(axis=1), pairs.max(axis=1))), (size, size))
    upper.sum_duplicates()
    upper.eliminate_zeros()
    rows = np.repeat(np.arange(size, dtype=np.int32), np.diff(upper.indptr))
    return np.stack([rows, upper.indices], axis=1), upper.data
