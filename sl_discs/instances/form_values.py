"""Exact values of a quadratic form at many states, at the speed of matrix products."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64, Int
from scipy import sparse

from sl_discs.exact_sum import exact_parts
from sl_discs.instances.form import QuadraticForm

# Number of states that are evaluated together: a product with that many vectors reads the matrix once.
_TOGETHER = 8


class FormValues:
    """Evaluates a form; its terms are split once into parts whose sums are exact in any order.

    A last variable that is always 1 makes all terms quadratic.
    """

    def __init__(self, form: QuadraticForm):
        self._spins, size = form.spins, form.num_variables
        constants = np.full(len(form.offsets), size, np.int32)
        last = np.full(size + len(constants), size, np.int32)
        first = np.concatenate([form.pairs[:, 0], np.arange(size, dtype=np.int32), constants])
        second = np.concatenate([form.pairs[:, 1], last])
        parts, (places, rest) = exact_parts(np.concatenate([form.couplings, form.linear, form.offsets]))
        shape = size + 1, size + 1
        self._parts = [sparse.csr_matrix((part, (first[at], second[at])), shape) for at, part in parts]
        self._rest = first[places], second[places], rest

    def __call__(self, states: Int[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """`QuadraticForm.value` at each state of zeros and ones; sums are rounded once."""
        blocks = (states[begin : begin + _TOGETHER] for begin in range(0, len(states), _TOGETHER))
        return np.array([value for block in blocks for value in self._of_block(block)])

    def _of_block(self, states: np.ndarray) -> list[float]:
        v = np.ones((states.shape[1] + 1, len(states)))
        v[:-1] = 2.0 * states.T - 1.0 if self._spins else states.T
        first, second, rest = self._rest
        terms = [(v * (part @ v)).sum(axis=0)[None] for part in self._parts]
        terms.append(rest[:, None] * v[first] * v[second])
        return [math.fsum(column) for column in np.concatenate(terms).T.tolist()]
