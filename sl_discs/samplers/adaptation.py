"""Adaptation of a sampler's scale to a target acceptance, per chain."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sl_discs.batching import chain_mean
from sl_discs.checks import whole
from sl_discs.errors import InputError


def adaptation_gain(steps: Int[Array, ""], adapt_until: int | None) -> Float[Array, ""]:
    """Always 1, or falling linearly from 1 to 0 at step `adapt_until`, and 0 from then on.

    A sampler whose scale never stops depending on the past is slightly inexact; set `adapt_until` to sample.
    """
    if adapt_until is None:
        return jnp.float32(1)
    return jnp.clip(1.0 - steps.astype(jnp.float32) / adapt_until, 0.0, 1.0)


def adapted(
    scale: Float[Array, ""],
    acceptance: Float[Array, ""],
    *,
    target: float,
    steps: Int[Array, ""],
    adapt_until: int | None,
    shared: bool,
) -> Float[Array, ""]:
    """scale + gain (acceptance - target); DISCS's form uses the mean acceptance of the chains."""
    if shared:
        acceptance = chain_mean(acceptance)
    return scale + adaptation_gain(steps, adapt_until) * (acceptance - target)


def check_adaptation(target: float, adapt_until: int | None) -> None:
    """Raises InputError for an invalid target or horizon."""
    if not 0 < target < 1:
        raise InputError(f"sampler_config.target_acceptance_rate is {target}; expected a number in (0, 1)")
    if adapt_until is not None:
        whole("sampler_config.adapt_until", adapt_until, 1, bits=31)
