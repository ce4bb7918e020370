"""Locally balanced weight functions g with g(t) = t g(1/t), as functions of log t (Zanella 2020; DISCS's names)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from sl_discs.errors import InputError

BALANCING = {
    "SQRT": lambda log_t: log_t / 2,
    "RATIO": jax.nn.log_sigmoid,
    "MAX": lambda log_t: jnp.maximum(log_t, 0.0),
    "MIN": lambda log_t: jnp.minimum(log_t, 0.0),
}


def check_balancing(name: str) -> None:
    """Raises InputError for an unknown weight function."""
    if name not in BALANCING:
        raise InputError(f"sampler_config.balancing_fn_type is {name!r}; known: {', '.join(BALANCING)}")
