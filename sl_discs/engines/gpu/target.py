"""The target of one chain, its state, and the effect of flips."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

from sl_discs.engines.gpu.vectors import pick
from sl_discs.samplers.draws import LOWEST_LOGIT


class Target(NamedTuple):
    """f(x)/temperature + <s, h> of one chain at one step.

    Attributes:
      rows: [N, P] the rows of K; an array, or a reference to memory outside the kernel.
      linear: [P] c.
      scale: J = scale K.
      mask: [P] sites that may flip.
      num_sites: N.
      rate: 1/temperature.
      tilt: [P] h, or None for zero.
    """

    rows: Num[Array, "N P"]
    linear: Float[Array, "P"]
    scale: Float[Array, ""]
    mask: Bool[Array, "P"]
    num_sites: int
    rate: Float[Array, ""]
    tilt: Float[Array, "P"] | None

    def sites(self) -> Int[Array, "P"]:
        """0, 1, ..., P - 1."""
        return jnp.arange(self.mask.shape[0], dtype=jnp.int32)


class State(NamedTuple):
    """Spins -1 and 1, Kx, c.x and x'Kx/2."""

    spins: Float[Array, "P"]
    coupled: Float[Array, "P"]
    linear: Float[Array, ""]
    pairs: Float[Array, ""]


class Weights(NamedTuple):
    """exp(logit) over the mask and 0 outside, logits shifted to a maximum of 0 and floored as in `samplers.draws`."""

    logits: Float[Array, "P"]
    weights: Float[Array, "P"]
    total: Float[Array, ""]


def gains(target: Target, spins: Float[Array, "P"], coupled: Float[Array, "P"]) -> Float[Array, "P"]:
    """d/temperature - 2 s h: the change of the target's logarithm by each flip."""
    field = (target.linear + target.scale * coupled) * target.rate
    if target.tilt is not None:
        field = field + 2 * target.tilt
    return -spins * field


def softmax(logits: Float[Array, "P"], mask: Bool[Array, "P"]) -> Weights:
    """The floored softmax over the mask, not normalised."""
    top = jnp.max(jnp.where(mask, logits, -jnp.inf))
    logits = jnp.maximum(logits - top, LOWEST_LOGIT)
    weights = jnp.where(mask, jnp.exp(logits), 0.0)
    return Weights(logits, weights, jnp.sum(weights))


def add_row(
    target: Target,
    spins: Float[Array, "P"],
    coupled: Float[Array, "P"],
    site: Int[Array, ""],
    here: Bool[Array, "P"],
) -> Float[Array, "P"]:
    """Kx after a flip of a site; `here` is True at that site only, or nowhere if the site does not flip."""
    return coupled - pick(spins, here) * target.rows[site].astype(jnp.float32)


def flipped(
    target: Target, state: State, flips: Bool[Array, "P"], coupled: Float[Array, "P"]
) -> tuple[State, Float[Array, ""]]:
    """The state after the flips and the change of the target's logarithm.

    Args:
      target: target of the chain.
      state: state before the flips.
      flips: the sites that flip.
      coupled: Kx after the flips.
    """
    delta = jnp.where(flips, -state.spins, 0.0)
    linear = jnp.sum(delta * target.linear)
    # y'Ky - x'Kx = (y - x)'(Kx + Ky) for symmetric K, as in `models.quadratic`.
    pairs = jnp.sum(delta * (state.coupled + coupled)) / 2
    change = (linear + target.scale * pairs) * target.rate
    if target.tilt is not None:
        change = change + 2 * jnp.sum(delta * target.tilt)
    after = State(state.spins + 2 * delta, coupled, state.linear + linear, state.pairs + pairs)
    return after, change


def select(accepted: Bool[Array, ""], proposed: State, current: State) -> State:
    """The proposed state or the current one."""
    return State(*(jnp.where(accepted, new, old) for new, old in zip(proposed, current, strict=True)))
