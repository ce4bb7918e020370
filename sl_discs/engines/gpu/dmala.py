"""One step of dmala: the mathematics of `sl_discs.samplers.dmala`, with one uniform number per site."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from sl_discs.engines.gpu.steps import Adapting, decide
from sl_discs.engines.gpu.target import State, Target, add_row, flipped, gains, softmax
from sl_discs.engines.gpu.vectors import Words, pick, uniforms
from sl_discs.keys import fold_words
from sl_discs.samplers.adaptation import adapted
from sl_discs.samplers.base import Info
from sl_discs.samplers.dmala import DMALA


class _Odds(NamedTuple):
    """Logarithms a_i of the odds of flipping each site, -inf outside the mask, and the sum of log(1 + e^{a_i})."""

    logits: Float[Array, "P"]
    log_norm: Float[Array, ""]


def _odds(sampler: DMALA, target: Target, state: State, expected_flips: Float[Array, ""]) -> _Odds:
    balanced = gains(target, state.spins, state.coupled) / 2
    if sampler.scaling == "fixed":
        logits = jnp.where(target.mask, balanced - 1 / (2 * sampler.step_size), -jnp.inf)
        return _Odds(logits, jnp.sum(jax.nn.softplus(logits)))
    shape = softmax(balanced, target.mask)
    scale = expected_flips / shape.total
    logits = jnp.where(target.mask, shape.logits + jnp.log(scale), -jnp.inf)
    return _Odds(logits, jnp.sum(jnp.log1p(shape.weights * scale)))


def _log_prob(odds: _Odds, flips: Bool[Array, "P"]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(flips, odds.logits, 0.0)) - odds.log_norm


def _coupled_after(target: Target, state: State, flips: Bool[Array, "P"]) -> Float[Array, "P"]:
    """Kx after the flips, computed row by row."""
    sites = target.sites()

    def turn(_, carry):
        left, coupled = carry
        site = jnp.min(jnp.where(left, sites, target.num_sites - 1))
        here = sites == site
        return left & ~here, add_row(target, state.spins, coupled, site, here)

    count = jnp.sum(flips, dtype=jnp.int32)
    return lax.fori_loop(0, count, turn, (flips, state.coupled))[1]


def step(
    sampler: DMALA, key: Words, target: Target, state: State, adapting: Adapting
) -> tuple[State, Float[Array, ""], Info]:
    """Flips each site independently, with a test if adjusted; as `path.step`, with expected flips as the scale."""
    odds = _odds(sampler, target, state, adapting.scale)
    proposal = uniforms(fold_words(key, 0), target.num_sites, target.mask.shape[0])
    flips = proposal < jax.nn.sigmoid(odds.logits)
    proposed, change = flipped(target, state, flips, _coupled_after(target, state, flips))
    if sampler.adjusted:
        odds_back = _odds(sampler, target, proposed, adapting.scale)
        log_ratio = change + _log_prob(odds_back, flips) - _log_prob(odds, flips)
        acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))
    else:
        acceptance = jnp.float32(1)
    state, info = decide(key, acceptance, proposed, state, pick(jnp.float32(1), flips))
    if not sampler.adaptive:
        return state, adapting.scale, info
    scale = adapted(
        adapting.scale / 3,
        acceptance,
        target=sampler.target_acceptance_rate,
        steps=adapting.steps,
        adapt_until=sampler.adapt_until,
        shared=False,
    )
    available = jnp.sum(target.mask, dtype=jnp.float32)
    return state, jnp.minimum(jnp.maximum(3 * scale, 1.0), available), info
