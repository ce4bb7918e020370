"""An adapter for DISCS's models that adds the tilt of stochastic localization, missing methods, and optional fixes.

DISCS's models compute log-likelihoods, temperature included, of batches of states in integers [B, *shape] or in
coordinates [B, *spin_shape] (`states.py`). The adapter has the same three methods:

    forward(params, x)                   -> value [B]
    get_value_and_grad(params, x)        -> value [B], gradient with respect to the coordinates
    logratio_in_neighborhood(params, x)  -> value [B], gains of all coordinates, evaluations, neighbour function

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

from sl_discs.discs_plugin.states import States

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
    tilt: Float[Array, "B *spin_shape"] | None = None
    origin: Int[Array, "B *shape"] | None = None
    mask: Bool[Array, "*shape"] | None = None


class AdaptedModel:
    """The model's log-likelihood plus <s(x) - s(origin), tilt>, where s are the spins of a state.

    Attributes:
      model: DISCS's model, or any other with `forward` and a gradient or ratios.
      states: that the sampler uses.
      float_states: whether a model of two values is given float32 states even if the sampler uses integers.
      tagged: whether states carry the number of their chain (`States.tag`), which is needed if the sampler evaluates
        states of single chains rather than the batch.
      shape: shape of the model's states, in integers, if the sampler's are flat, else None.
    """

    def __init__(
        self,
        model: Any,
        states: States,
        *,
        float_states: bool = False,
        tagged: bool = False,
        shape: tuple[int, ...] | None = None,
    ):
        self.model = model
        self.states = states
        self.float_states = float_states and not states.several
        self.tagged = tagged
        self.shape = shape

    def forward(self, params: AdaptedParams, x: Num[Array, "M *any"]) -> Float[Array, "M"]:
        """Values of M states; M = B unless they are tagged or B = 1."""
        x, tilt, origin = self._untagged(params, x)
        held = self._held(x, params.mask, origin)
        return self.model.forward(params.base, self._as_model_takes(held)) + self._tilted(held, tilt, origin)

    def get_value_and_grad(
        self, params: AdaptedParams, x: Num[Array, "B *spin_shape"]
    ) -> tuple[Float[Array, "B"], Float[Array, "B *spin_shape"]]:
        """Values, and gradients with gains `States.gains`."""
        held = self._held(x, params.mask, params.origin)
        value, grad = self._gradient(params.base, held)
        value = value + self._tilted(held, params.tilt, params.origin)
        if params.tilt is not None:
            grad = grad + self.states.scale * params.tilt
        if params.mask is not None:
            grad = jnp.where(self.states.over_values(params.mask), grad, self.states.gradient(x, _NEVER))
        return value, grad

    def logratio_in_neighborhood(self, params: AdaptedParams, x: Num[Array, "B *spin_shape"]):
        """Values, gains, the number of evaluations that they cost, and `neighbor(params, x, place)`."""
        held = self._held(x, params.mask, params.origin)
        value, gains, calls = self._ratios(params.base, held)
        value = value + self._tilted(held, params.tilt, params.origin)
        if params.tilt is not None:
            gains = gains + self.states.gains(held, self.states.scale * params.tilt)
        if params.mask is not None:
            gains = jnp.where(self.states.over_values(params.mask), gains, _NEVER)
        return value, gains, calls, lambda params, x, place: self.states.neighbour(x, place)

    def _gradient(self, params: Any, x: Num[Array, "B *spin_shape"]):
        """The model's values and gradients, derived from its ratios if it has no gradient."""
        if hasattr(self.model, "get_value_and_grad"):
            try:
                value, grad = self.model.get_value_and_grad(params, self._as_model_takes(x))
                return value, grad.reshape(x.shape)
            except NotImplementedError:
                pass  # DISCS's abstract method
        value, gains, _ = self._ratios(params, x)
        return value, self.states.gradient(x, gains)

    def _ratios(self, params: Any, x: Num[Array, "B *spin_shape"]):
        """The model's values, gains and cost; evaluates every neighbour if the model has no ratios."""
        taken = self._as_model_takes(x)
        if hasattr(self.model, "logratio_in_neighborhood"):
            *value, gains, calls, _ = self.model.logratio_in_neighborhood(params, taken)
            return (value[0] if value else self.model.forward(params, taken)), gains.reshape(x.shape), calls
        value = self.model.forward(params, taken)
        size, integers = math.prod(x.shape[1:]), self.states.integers(x)

        def gain(place):
            neighbour = self.states.neighbour(integers, jnp.full(x.shape[0], place))
            return self.model.forward(params, self._as_model_takes(neighbour)) - value

        gains = jnp.moveaxis(jax.lax.map(gain, jnp.arange(size)), 0, 1)
        return value, gains.reshape(x.shape), size + 1

    def _as_model_takes(self, x: Num[Array, "M *any"]) -> Num[Array, "M *any"]:
        if self.shape is not None:
            x = x.reshape(-1, *self.shape, *x.shape[1 + len(self.states.shape) :])
        return x.astype(jnp.float32) if self.float_states else x

    def _untagged(self, params: AdaptedParams, x: Num[Array, "M *any"]):
        """States without tags, and the tilt and origin of each."""
        if not self.tagged:
            return x, params.tilt, params.origin
        chain = self.states.tagged_chain(x)
        return self.states.untag(x), *jax.tree.map(lambda leaf: leaf[chain], (params.tilt, params.origin))

    def _held(self, x: Num[Array, "M *any"], mask, origin) -> Num[Array, "M *any"]:
        """x with the sites outside the mask replaced by those of `origin`."""
        if mask is None:
            return x
        if x.ndim > origin.ndim:
            mask, origin = self.states.over_values(mask), self.states.coordinates(origin)
        return jnp.where(mask, x, origin.astype(x.dtype))

    def _tilted(self, x: Num[Array, "M *any"], tilt, origin) -> Float[Array, "M"] | float:
        """<s(x) - s(origin), tilt>."""
        if tilt is None:
            return 0.0
        product = (self.states.coordinates(x) - self.states.coordinates(origin)) * tilt
        return self.states.scale * jnp.sum(product.reshape(product.shape[0], -1), axis=1)
