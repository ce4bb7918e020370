"""One step of gwg or path_auxiliary: the mathematics of `sl_discs.samplers.path`."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from sl_discs.engines.gpu.steps import ROUND, Adapting, decide
from sl_discs.engines.gpu.target import State, Target, Weights, add_row, flipped, gains, softmax
from sl_discs.engines.gpu.vectors import Words, draw_site, pick, uniform
from sl_discs.samplers.adaptation import adapted
from sl_discs.samplers.base import Info
from sl_discs.samplers.path import PathSampler


class Path(NamedTuple):
    """The drawn sites.

    Attributes:
      flips: the distinct sites.
      coupled: Kx after flipping them.
      turns: how often each site was drawn (with replacement), or in which turn, -1 for never (without).
      log_mass: sum over the turns of the logarithm of the total weight drawn from.
    """

    flips: Bool[Array, "P"]
    coupled: Float[Array, "P"]
    turns: Int[Array, "P"]
    log_mass: Float[Array, ""]


def _length(sampler: PathSampler, key: Words, adapting: Adapting, limit: Int[Array, ""]) -> Int[Array, ""]:
    """The number of draws; once the radius is frozen, it is rounded up or down at random."""
    if not sampler.adaptive:
        return jnp.minimum(jnp.int32(sampler.num_flips), limit)
    length = jnp.floor(adapting.scale + 0.5)
    if sampler.adapt_until is not None:
        either = jnp.floor(adapting.scale - 0.5 + uniform(key, ROUND))
        length = jnp.where(adapting.steps < sampler.adapt_until, length, either)
    return jnp.minimum(jnp.maximum(length.astype(jnp.int32), 1), limit)


def _draw_with_replacement(key: Words, target: Target, state: State, weights: Weights, length) -> Path:
    sites = target.sites()
    running = jnp.cumsum(weights.weights)

    def turn(number, carry):
        counts, coupled = carry
        site = draw_site(uniform(key, number), weights.weights, running, weights.total)
        here = sites == site
        coupled = add_row(target, state.spins, coupled, site, here & (counts == 0))
        return counts + here.astype(jnp.int32), coupled

    counts, coupled = lax.fori_loop(0, length, turn, (jnp.zeros(sites.shape, jnp.int32), state.coupled))
    return Path(counts > 0, coupled, counts, jnp.asarray(length, jnp.float32) * jnp.log(weights.total))


def _draw_without_replacement(key: Words, target: Target, state: State, weights: Weights, length) -> Path:
    """Draws distinct sites; the remaining weights are summed in every turn, to avoid cancellation."""
    sites = target.sites()

    def turn(number, carry):
        left, turns, coupled, log_mass = carry
        mass = jnp.sum(left)
        site = draw_site(uniform(key, number), left, jnp.cumsum(left), mass)
        here = sites == site
        coupled = add_row(target, state.spins, coupled, site, here)
        return jnp.where(here, 0.0, left), jnp.where(here, number, turns), coupled, log_mass + jnp.log(mass)

    start = (weights.weights, jnp.full(sites.shape, -1, jnp.int32), state.coupled, jnp.float32(0))
    _, turns, coupled, log_mass = lax.fori_loop(0, length, turn, start)
    return Path(turns >= 0, coupled, turns, log_mass)


def _log_mass_reversed(weights: Weights, path: Path, length) -> Float[Array, ""]:
    """`Path.log_mass` for the distinct sites in reverse order: the mass grows from that of all other sites."""

    def turn(number, carry):
        mass, log_mass = carry
        mass = mass + pick(weights.weights, path.turns == number)
        return mass, log_mass + jnp.log(mass)

    untouched = pick(weights.weights, ~path.flips)
    return lax.fori_loop(0, length, turn, (untouched, jnp.float32(0)))[1]


def step(
    sampler: PathSampler, key: Words, target: Target, state: State, adapting: Adapting
) -> tuple[State, Float[Array, ""], Info]:
    """Draws sites in turn from the balanced softmax at x, flips them, and accepts or rejects the whole path.

    Args:
      sampler: a sampler with balancing_fn_type SQRT.
      key: key of this chain and step.
      target: target of this chain and step.
      state: state before the step.
      adapting: steps done and the radius.

    Returns:
      the state and the radius after the step, and its info.
    """
    available = jnp.sum(target.mask, dtype=jnp.int32)
    limit = jnp.int32(target.num_sites) if sampler.replacement else available
    length = _length(sampler, key, adapting, limit)
    forward = softmax(gains(target, state.spins, state.coupled) / 2, target.mask)
    draw = _draw_with_replacement if sampler.replacement else _draw_without_replacement
    path = draw(key, target, state, forward, length)
    proposed, change = flipped(target, state, path.flips, path.coupled)
    backward = softmax(gains(target, proposed.spins, proposed.coupled) / 2, target.mask)
    turned = backward.logits - forward.logits
    if sampler.replacement:
        drawn = jnp.sum(path.turns.astype(jnp.float32) * turned)
        log_mass = jnp.asarray(length, jnp.float32) * jnp.log(backward.total)
    else:
        drawn = pick(turned, path.flips)
        log_mass = _log_mass_reversed(backward, path, length)
    acceptance = jnp.exp(jnp.minimum(change + drawn - (log_mass - path.log_mass), 0.0))
    state, info = decide(key, acceptance, proposed, state, jnp.sum(path.flips, dtype=jnp.float32))
    if not sampler.adaptive:
        return state, adapting.scale, info
    radius = adapted(
        adapting.scale,
        acceptance,
        target=sampler.target_acceptance_rate,
        steps=adapting.steps,
        adapt_until=sampler.adapt_until,
        shared=False,
    )
    return state, jnp.minimum(jnp.maximum(radius, 1.0), available.astype(jnp.float32)), info
