"""A log-density given as a function, on binary arrays of a shape: what chains need to know of it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Int8

from sl_discs.models.base import Model, Params
from sl_discs.models.general import DifferentiableModel, ValueModel, scalar

# States at which the function is evaluated at once.
_BLOCK = 256


class Density(NamedTuple):
    """In the place of `Coefficients`, for models that are not quadratic.

    Attributes:
      function: of (params, x) with x float32 of the shape; returns a scalar.
      params: any pytree of arrays.
      shape: of x.
      constant: 0; what samplers do not need is part of the function.
    """

    function: Callable[..., Float[Array, ""]]
    params: Params
    shape: tuple[int, ...]
    constant: float = 0.0

    @property
    def num_sites(self) -> int:
        """N, the size of x."""
        return math.prod(self.shape)

    def max_degree(self) -> int:
        """All other sites, as nothing is known of couplings."""
        return self.num_sites - 1

    def values(self, states: Int8[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """The function at many states, a block at a time."""
        found = [
            np.asarray(_values(self.model(self.num_sites, gains=False), self.params, _filled(states[k : k + _BLOCK])))
            for k in range(0, len(states), _BLOCK)
        ]
        return np.concatenate(found)[: len(states)].astype(np.float64)

    def model(self, num_sites: int, *, gains: bool = True) -> Model:
        """The model on a padded number of sites, equal for equal functions; without gains it needs no gradient."""
        return (DifferentiableModel if gains else ValueModel)(_OfVectors(self.function, self.shape), num_sites)


def _filled(states: Int8[np.ndarray, "B N"]) -> Int8[np.ndarray, "_block N"]:
    return np.pad(states.astype(np.int8), ((0, _BLOCK - len(states)), (0, 0)))


@functools.partial(jax.jit, static_argnums=0)
def _values(model: Model, params: Params, states: Int8[Array, "B N"]) -> Float[Array, "B"]:
    return jax.vmap(lambda x: model.init(params, x))(states)


@dataclasses.dataclass(frozen=True)
class _OfVectors:
    """The function on padded vectors."""

    function: Callable[..., Float[Array, ""]]
    shape: tuple[int, ...]

    def __call__(self, params: Params, x: Float[Array, "N"] | Int8[Array, "N"]) -> Float[Array, ""]:
        size = math.prod(self.shape)
        return scalar("fn", self.function(params, x[:size].reshape(self.shape).astype(jnp.float32)))
