"""An adapter for DISCS's models that adds the tilt of stochastic localization, missing methods, and optional fixes.

DISCS's models compute log-likelihoods, temperature included, of batches [B, *shape] of states of zeros and ones. The
adapter has the same three methods:

    forward(params, x)                   -> value [B]
    get_value_and_grad(params, x)        -> value [B], g [B, *shape] with gains (1 - 2x) g
    logratio_in_neighborhood(params, x)  -> value [B], gains [B, *shape], evaluations, neighbour function

DISCS's own `logratio_in_neighborhood` returns three or four values and two kinds of neighbour function, depending on
the model; here it always has the form above. If a model has only the gradient or only the ratios, the adapter derives
the other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

# A gain so low that the site is never proposed; DISCS's samplers use the same value for masked sites.
_NEVER = -1e9


class AdaptedParams(NamedTuple):
    """The parameters of the adapter's methods.

    Attributes:
      base: the model's own parameters.
      tilt: h of each chain; None for no tilt.
      origin: states at which the tilt's part of the value is zero, to avoid cancellation between the values of
        neighbouring states.
      mask: sites that may change; None for all. The others get a gain so low that they are never proposed, and are
        evaluated as in `origin`, so changes that a sampler makes to them have no effect.
    """

    base: Any
    tilt: Float[Array, "B *shape"] | None = None
    origin: Int[Array, "B *shape"] | None = None
    mask: Bool[Array, "*shape"] | None = None


class AdaptedModel:
    """The model's log-likelihood plus 2 <x - origin, tilt>, up to a constant <2x - 1, tilt>.

    Attributes:
      model: DISCS's model, or any other with `forward` and a gradient or ratios.
      float_states: whether the model is given float32 states even if the sampler uses integers.
      tagged: whether states carry the number of their chain in their upper bits (`tag`), which is needed if the
        sampler evaluates states of single chains rather than the batch.
      shape: shape of the model's states if the sampler's are flat, else None.
    """

    def __init__(
        self, model: Any, *, float_states: bool = False, tagged: bool = False, shape: tuple[int, ...] | None = None
    ):
        self.model = model
        self.float_states = float_states
        self.tagged = tagged
        self.shape = shape

    def forward(self, params: AdaptedParams, x: Num[Array, "M *shape"]) -> Float[Array, "M"]:
        """Values of M states; M = B unless they are tagged or B = 1."""
        states, tilt, origin = self._untagged(params, x)
        states = _held(states, params.mask, origin)
        value = self.model.forward(params.base, self._as_model_takes(states))
        return value + _tilted(states, tilt, origin)

    def get_value_and_grad(
        self, params: AdaptedParams, x: Num[Array, "B *shape"]
    ) -> tuple[Float[Array, "B"], Float[Array, "B *shape"]]:
        """Values, and vectors g with gains (1 - 2x) g."""
        held = _held(x, params.mask, params.origin)
        value, grad = self._gradient(params.base, held)
        value = value + _tilted(held, params.tilt, params.origin)
        if params.tilt is not None:
            grad = grad + 2 * params.tilt
        if params.mask is not None:
            grad = jnp.where(params.mask, grad, _NEVER * (1 - 2 * x))
        return value, grad

    def logratio_in_neighborhood(self, params: AdaptedParams, x: Num[Array, "B *shape"]):
        """Values, gains, the number of evaluations that they cost, and `neighbor(params, x, flat_site)`."""
        x = _held(x, params.mask, params.origin)
        value, gains, calls = self._ratios(params.base, x)
        value = value + _tilted(x, params.tilt, params.origin)
        if params.tilt is not None:
            gains = gains + 2 * (1 - 2 * x) * params.tilt
        if params.mask is not None:
            gains = jnp.where(params.mask, gains, _NEVER)
        return value, gains, calls, flip_site

    def _gradient(self, params: Any, x: Num[Array, "B *shape"]):
        """The model's values and gradients, derived from its ratios if it has no gradient."""
        if hasattr(self.model, "get_value_and_grad"):
            try:
                value, grad = self.model.get_value_and_grad(params, self._as_model_takes(x))
                return value, grad.reshape(x.shape)
            except NotImplementedError:
                pass  # DISCS's abstract method
        value, gains, _ = self._ratios(params, x)
        return value, (1 - 2 * x) * gains

    def _ratios(self, params: Any, x: Num[Array, "B *shape"]):
        """The model's values, gains and cost; evaluates every neighbour if the model has no ratios."""
        states = self._as_model_takes(x)
        if hasattr(self.model, "logratio_in_neighborhood"):
            *value, gains, calls, _ = self.model.logratio_in_neighborhood(params, states)
            return (value[0] if value else self.model.forward(params, states)), gains.reshape(x.shape), calls
        value = self.model.forward(params, states)
        size = math.prod(x.shape[1:])

        def gain(site):
            chains = jnp.full(x.shape[0], site)
            return self.model.forward(params, self._as_model_takes(flip_site(None, x, chains))) - value

        gains = jnp.moveaxis(jax.lax.map(gain, jnp.arange(size)), 0, 1)
        return value, gains.reshape(x.shape), size + 1

    def _as_model_takes(self, x: Num[Array, "M *shape"]) -> Num[Array, "M *shape"]:
        x = x if self.shape is None else x.reshape(-1, *self.shape)
        return x.astype(jnp.float32) if self.float_states else x

    def _untagged(self, params: AdaptedParams, x: Num[Array, "M *shape"]):
        """States without tags, and the tilt and origin of each."""
        if not self.tagged:
            return x, params.tilt, params.origin
        chain = jnp.max((x >> 1).reshape(x.shape[0], -1), axis=1)
        return untag(x), *jax.tree.map(lambda leaf: leaf[chain], (params.tilt, params.origin))


def _held(x: Num[Array, "M *shape"], mask, origin) -> Num[Array, "M *shape"]:
    """x with the sites outside the mask replaced by those of `origin`."""
    return x if mask is None else jnp.where(mask, x, origin.astype(x.dtype))


def _tilted(x, tilt, origin) -> Float[Array, "M"] | float:
    """2 <x - origin, tilt>, the tilt's part of the value."""
    if tilt is None:
        return 0.0
    product = (x - origin) * tilt
    return 2 * jnp.sum(product.reshape(product.shape[0], -1), axis=1)


def flip_site(params: Any, x: Num[Array, "B *shape"], site: Int[Array, "B"]) -> Num[Array, "B *shape"]:
    """x with one site of each state flipped, counted in the flattened shape."""
    del params
    flat = x.reshape(x.shape[0], -1)
    rows = jnp.arange(x.shape[0])
    return flat.at[rows, site].set(1 - flat[rows, site]).reshape(x.shape)


def tag(x: Int[Array, "B *shape"]) -> Int[Array, "B *shape"]:
    """x with each chain's number in the upper bits of its sites.

    A sampler that changes sites by arithmetic modulo 2 does not affect the tags of the other sites.
    """
    chains = jnp.arange(x.shape[0], dtype=x.dtype).reshape(-1, *(1,) * (x.ndim - 1))
    return x + 2 * chains


def untag(x: Int[Array, "M *shape"]) -> Int[Array, "M *shape"]:
    """The zeros and ones of tagged states."""
    return x & 1
