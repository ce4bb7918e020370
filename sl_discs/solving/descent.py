"""The local search of `sl_discs.engines.cpu.descent` for answers to a problem with constraints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Int8
from scipy import sparse

from sl_discs.engines.compiled import compiled
from sl_discs.engines.cpu.descent import Rules, descend
from sl_discs.instances.constrained import ConstrainedForm
from sl_discs.models.coefficients import form_coefficients

# Pairs of variables that are looked at for all states together, about a second on one core.
_PAIRS = 100_000_000
# Gains of so small a part of the largest coefficient are rounding errors.
_NEGLIGIBLE = 1e-9


class Descent:
    """Prepared once for a problem."""

    def __init__(self, source: ConstrainedForm):
        terms = form_coefficients(source.form).listed()
        size = source.num_variables
        upper = sparse.csr_array((terms.scale * terms.weights, tuple(terms.edges.T)), (size, size))
        self._linear, self._coupling = terms.linear, (upper + upper.T).tocsr()
        self._matrix = source.matrix
        columns = source.matrix.tocsc()
        largest = max(float(np.abs(terms.linear).max()), abs(terms.scale) * terms.largest_coupling())
        coupling = self._coupling
        self._rules = Rules(
            *(coupling.indptr.astype(np.int32), coupling.indices.astype(np.int32), coupling.data.astype(np.float64)),
            *(columns.indptr.astype(np.int32), columns.indices.astype(np.int32), columns.data.astype(np.int64)),
            *(source.low, source.high, _NEGLIGIBLE * largest),
        )

    def __call__(self, states: Int8[np.ndarray, "B N"]) -> Int8[np.ndarray, "B N"]:
        """States whose constraints are violated less, or as little and whose value is at least as good."""
        distinct, place = np.unique(states, axis=0, return_inverse=True)
        found = np.ascontiguousarray(distinct, np.int8)
        real, whole = found.T.astype(np.float64), found.T.astype(np.int64)
        fields = np.ascontiguousarray((self._linear[:, None] + self._coupling @ real).T)
        sides = np.ascontiguousarray((self._matrix @ whole).T)
        size = found.shape[1]
        search = compiled(("descend",), _compile)
        search(self._rules, found, fields, sides, max(size, _PAIRS // (size * len(found))))
        return found[place.reshape(-1)]


def _compile() -> Callable[..., None]:
    """`descend`, compiled by a call that does nothing."""
    bounds, places = np.zeros(2, np.int32), np.zeros(0, np.int32)
    none, numbers = np.zeros(0), np.zeros(0, np.int64)
    rules = Rules(bounds, places, none, bounds, places, numbers, numbers, numbers, 0.0)
    descend(rules, np.zeros((0, 1), np.int8), np.zeros((0, 1)), np.zeros((0, 0), np.int64), 1)
    return descend
