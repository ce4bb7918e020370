"""The local search of `sl_discs.engines.cpu.descent` for answers to a problem with constraints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Int8
from scipy import sparse

from sl_discs.engines.compiled import compiled
from sl_discs.engines.cpu.descent import Rules, descend
from sl_discs.instances.constrained import ConstrainedForm
from sl_discs.models.quadratic import form_coefficients

# Pairs of variables, and their coefficients in constraints, that one core looks at in a second, roughly.
_PER_SECOND = 2e8
# Without a time limit: seconds for all states, at most, and tries for each variable of a state.
_USUAL_S, _TRIES = 1.0, 80
# For kicks; the same for all problems.
_DRAWS = np.random.default_rng(0).integers(0, 2**31, (1 << 16, 4))
# Gains of so small a part of the largest coefficient are rounding errors.
_NEGLIGIBLE = 1e-9


class Descent:
    """Prepared once for a problem."""

    def __init__(self, source: ConstrainedForm):
        terms = form_coefficients(source.form).listed()
        size = source.num_variables
        upper = sparse.csr_array((terms.scale * terms.weights, tuple(terms.edges.T)), (size, size))
        self._coupling = (upper + upper.T).tocsr()
        self._matrix = source.matrix
        columns = source.matrix.tocsc()
        largest = max(float(np.abs(terms.linear).max()), abs(terms.scale) * terms.largest_coupling())
        coupling = self._coupling
        self._rules = Rules(
            np.ascontiguousarray(terms.linear, np.float64),
            *(coupling.indptr.astype(np.int32), coupling.indices.astype(np.int32), coupling.data.astype(np.float64)),
            *(columns.indptr.astype(np.int32), columns.indices.astype(np.int32), columns.data.astype(np.int64)),
            *(source.low, source.high, _NEGLIGIBLE * largest),
        )

    def __call__(self, states: Int8[np.ndarray, "B N"], seconds: float | None = None) -> Int8[np.ndarray, "B N"]:
        """States whose constraints are violated less, or as little and whose value is at least as good.

        Args:
          states: of zeros and ones.
          seconds: that it may take, roughly; None: the work depends on the states alone.
        """
        distinct, place = np.unique(states, axis=0, return_inverse=True)
        found = np.ascontiguousarray(distinct, np.int8)
        real, whole = found.T.astype(np.float64), found.T.astype(np.int64)
        fields = np.ascontiguousarray((self._rules.linear[:, None] + self._coupling @ real).T)
        sides = np.ascontiguousarray((self._matrix @ whole).T)
        count, size = found.shape
        kept = np.zeros(size, np.int8), np.zeros(size), np.zeros(sides.shape[1], np.int64)
        # A try looks at all pairs with one variable, and their constraints.
        tries = int((_USUAL_S if seconds is None else seconds) * _PER_SECOND / (count * (size + self._matrix.nnz)))
        tries = max(tries if seconds is not None else min(tries, _TRIES * size), size)
        search = compiled(("descend",), _compile)
        search(self._rules, found, fields, sides, kept, _DRAWS, tries)
        return found[place.reshape(-1)]


def _compile() -> Callable[..., None]:
    """`descend`, compiled by a call that does nothing."""
    bounds, places = np.zeros(2, np.int32), np.zeros(0, np.int32)
    none, numbers = np.zeros(0), np.zeros(0, np.int64)
    rules = Rules(none, bounds, places, none, bounds, places, numbers, numbers, numbers, 0.0)
    kept = np.zeros(1, np.int8), np.zeros(1), numbers
    descend(rules, np.zeros((0, 1), np.int8), np.zeros((0, 1)), np.zeros((0, 0), np.int64), kept, _DRAWS, 1)
    return descend
