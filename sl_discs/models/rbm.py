"""Restricted Boltzmann machines (Smolensky 1986): p(v, h) ~ exp(v'Wh + a.v + b.h) on {0,1}^V and {0,1}^H."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special

from sl_discs.arrays import AnyArray
from sl_discs.errors import InputError

# Of the units that `log_z` enumerates.
MOST_HIDDEN = 20


class RBMParams(NamedTuple):
    """Weights W and the biases a of visible and b of hidden units."""

    weights: Float[AnyArray, "V H"]
    visible: Float[AnyArray, "V"]
    hidden: Float[AnyArray, "H"]


def log_density(params: RBMParams, v: Float[Array, "V"]) -> Float[Array, ""]:
    """log p(v) up to a constant, the hidden units summed out; multilinear only in the joint density, not here."""
    return jnp.asarray(params.visible) @ v + jnp.sum(jax.nn.softplus(params.hidden + v @ params.weights))


def joint_log_density(params: RBMParams, x: Float[Array, "N"]) -> Float[Array, ""]:
    """log p(v, h) up to the same constant, with x = (v, h), N = V + H: for `bipartite_gibbs` with split = V."""
    v, h = jnp.split(x, [params.weights.shape[0]])
    return v @ jnp.asarray(params.weights) @ h + params.visible @ v + params.hidden @ h


def log_z(params: RBMParams) -> float:
    """log of the sum over all states, by enumerating the smaller side; InputError above 20 units."""
    weights, visible, hidden = (np.asarray(leaf, np.float64) for leaf in params)
    if len(visible) < len(hidden):
        weights, visible, hidden = weights.T, hidden, visible
    size = len(hidden)
    if size > MOST_HIDDEN:
        raise InputError(f"params have {size} units on either side; log_z enumerates up to {MOST_HIDDEN}", "params")
    total = -np.inf
    for start in range(0, 2**size, 2**12):
        numbers = np.arange(start, min(start + 2**12, 2**size))
        states = (numbers[:, None] >> np.arange(size) & 1).astype(np.float64)
        logs = states @ hidden + np.logaddexp(0, visible + states @ weights.T).sum(axis=1)
        total = np.logaddexp(total, special.logsumexp(logs))
    return float(total)
