"""Conversion between f(x) = c.x + 1/2 x'Jx on {0,1}^N and the paper's form on spins s = 2x - 1, in double precision.

The paper writes nu(s) ~ exp(-beta/2 <s, Ws> + <s, b>) with W symmetric and zero on the diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64


class SpinForm(NamedTuple):
    """log nu(s) = -beta/2 s'Ws + b.s + constant."""

    W: Float64[np.ndarray, "N N"]
    b: Float64[np.ndarray, "N"]
    beta: float
    constant: float


def to_spin(
    c: Float64[np.ndarray, "N"], J: Float64[np.ndarray, "N N"], beta: float = 1.0, constant: float = 0.0
) -> SpinForm:
    """The spin form of f + constant, equal to it on every state up to rounding; J symmetric with zero diagonal.

    With x = (1 + s)/2: W = -J/(4 beta), b = c/2 + J1/4, constant = sum c/2 + sum J/8.
    """
    c, J = np.asarray(c, np.float64), np.asarray(J, np.float64)
    return SpinForm(-J / (4 * beta), c / 2 + J.sum(1) / 4, beta, constant + c.sum() / 2 + J.sum() / 8)


def from_spin(form: SpinForm) -> tuple[Float64[np.ndarray, "N"], Float64[np.ndarray, "N N"], float]:
    """(c, J, constant) with c.x + 1/2 x'Jx + constant equal to the spin form on every state, up to rounding."""
    J = -4 * form.beta * form.W
    c = 2 * (form.b - J.sum(1) / 4)
    return c, J, form.constant - c.sum() / 2 - J.sum() / 8
