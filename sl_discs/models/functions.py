"""Any log-density given as a function: with gains by automatic differentiation, or with values
alone.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Int8

from sl_discs.models.model import Model, Params
from sl_discs.models.terms import Coefficients
from sl_discs.support.errors import InputError


def scalar(name: str, value: Any) -> Float[Array, ""]:
    """Returns what a log-density returned, in float32 or more; InputError, naming it, if it is no
    scalar.
    """
    value = jnp.asarray(value)
    if value.shape != ():
        raise InputError(f"{name} returns shape {value.shape}; expected a scalar", name)
    if jnp.iscomplexobj(value):
        raise InputError(
            f"{name} returns a complex number; expected a real one, such as its real part", name
        )
    return value.astype(jnp.promote_types(value.dtype, jnp.float32))


def check_differentiable(
    name: str, model: Model, params: Params, num_sites: int, sampler: str
) -> None:
    """Raises InputError, naming the argument, if JAX cannot differentiate the log-density of a
    model.
    """
    try:
        jax.eval_shape(model.init, params, jax.ShapeDtypeStruct((num_sites,), jnp.int8))
    except InputError:
        raise
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputError(
            f"{name} cannot be differentiated, as {sampler} requires; use gibbs, metropolis or "
            f"exchange, or correct this: {str(error).splitlines()[0]}",
            name,
        ) from error


class ValueAndGrad(NamedTuple):
    """f(x) and its gradient at x, if that is known: the field of a general model."""

    value: Float[Array, ""]
    grad: Float[Array, "N *q"] | None


class FunctionModel(Model):
    """A model whose field is a `ValueAndGrad`, recomputed at each state by `init` of a subclass."""

    def value(self, params, x, field):
        return field.value.astype(jnp.float32)

    def change(self, params, x, before, y, after):
        """Returns f(y) - f(x), subtracted in the type that the function returns."""
        return (after.value - before.value).astype(jnp.float32)


class GradientModel(FunctionModel):
    """A model whose field has a gradient.

    The gains (`Sites.gains`) are exact when f is multilinear (at most linear in each site).
    Otherwise they are a first-order estimate, which samplers use only for proposals: acceptance
    uses the difference of true values.
    """

    def gains(self, params, x, field):
        """Returns (1 - 2x) times the gradient, for two values."""
        return self.sites.gains(x, field.grad)


@dataclasses.dataclass(frozen=True)
class DifferentiableModel(GradientModel):
    """f given as a function of (params, x) with x as float32 [N], differentiable in x."""

    estimates: ClassVar[bool] = True

    log_density: Callable[..., Float[Array, ""]]
    num_sites: int

    def init(self, params, x):
        """Returns value and gradient at x: -inf for a NaN, so that every sampler rejects it, and 0
        for an infinite or missing derivative, which says nothing.
        """
        value, grad = jax.value_and_grad(self.log_density, argnums=1)(params, x.astype(jnp.float32))
        value = jnp.where(jnp.isnan(value), -jnp.inf, value)
        return ValueAndGrad(value, jnp.where(jnp.isfinite(grad), grad, 0.0))


@dataclasses.dataclass(frozen=True)
class ValueModel(FunctionModel):
    """f given as a function of (params, x) with x int8 [N]: for samplers that do not ask for
    gains.
    """

    log_density: Callable[..., Float[Array, ""]]
    num_sites: int

    def init(self, params, x):
        """Returns f(x); -inf instead of NaN, so that every sampler rejects it."""
        value = self.log_density(params, x)
        return ValueAndGrad(jnp.where(jnp.isnan(value), -jnp.inf, value), None)

    def gains(self, params, x, field):
        raise NotImplementedError("a ValueModel has no gains; use DifferentiableModel")


def check_not_traced(*values: Any) -> None:
    """Raises InputError where JAX traces these values, or all that is computed here."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((values, jnp.zeros(())))):
        raise InputError(
            "called under JAX's jit, grad or vmap: sample runs on the host and returns no traced "
            "values; draw first and differentiate functions of the draws, or run chains by "
            "sl_discs.blackjax, which works there"
        )


# A log-density given as a function, on binary arrays of a shape: what chains need to know of it.

# States at which the function is evaluated at once.
_BLOCK = 256
# Random states that are tried to estimate how many states have a probability above 0, and how many
# of them must.
_TRIED = 2**14
_LEAST_INSIDE = 50


def checked(values: Float[np.ndarray, "*B"]) -> Float[np.ndarray, "*B"]:
    """Returns the values of a log-density at some states; InputError if one is +inf."""
    if np.isposinf(values).any():
        raise InputError(
            "fn is inf at some states, which no log-density is; it may be -inf there", "fn"
        )
    return values


class Density(NamedTuple):
    """A log-density given as a function, in the place of `Coefficients`.

    Attributes:
      function: of (params, x) with x float32 of the shape; returns a scalar.
      params: any pytree of arrays.
      shape: of x.
      starts: [S, N] states at which the function is finite, which replace starts of chains where it
        is not.
      constant: the function's value at one of them: chains compute what is above it, in the type of
        the function's values, as their records have single precision.
    """

    function: Callable[..., Float[Array, ""]]
    params: Params
    shape: tuple[int, ...]
    starts: Int8[np.ndarray, "S N"]
    constant: float = 0.0

    @property
    def num_sites(self) -> int:
        """N, the size of x."""
        return math.prod(self.shape)

    def max_degree(self) -> int:
        """Returns all other sites, as nothing is known of couplings."""
        return self.num_sites - 1

    def reach(self) -> float:
        """Returns 0: no bound is known."""
        return 0.0

    def resolution(self, values: Float64[np.ndarray, "*B"]) -> float:
        """Returns the distance of neighbouring numbers of the function's type near its largest
        value.
        """
        x = jax.ShapeDtypeStruct((self.num_sites,), jnp.int8)
        dtype = jax.eval_shape(self._function, (self.params, 0.0), x).dtype
        return float(np.abs(values[np.isfinite(values)]).max(initial=0.0) * jnp.finfo(dtype).eps)

    def supported(self, states: Int8[np.ndarray, "*B N"]) -> Int8[np.ndarray, "*B N"]:
        """Returns states from which chains can start: these, or others where f is -inf."""
        rows = states.reshape(-1, states.shape[-1]).copy()
        outside = np.flatnonzero(~np.isfinite(self.values(rows[:, : self.num_sites])))
        rows[outside, : self.num_sites] = self.starts[np.arange(len(outside)) % len(self.starts)]
        return rows.reshape(states.shape)

    def log_states(self, rng: np.random.Generator) -> tuple[float, float]:
        """Returns the logarithm of the number of states at which the function is finite, and its
        error, from random states; NaN if it is finite at few of them.
        """
        inside = int(
            np.isfinite(self.values(rng.integers(0, 2, (_TRIED, self.num_sites), np.int8))).sum()
        )
        if inside < _LEAST_INSIDE:
            return math.nan, math.nan
        error = math.sqrt((1 + _TRIED - inside) / _TRIED / inside)
        return self.num_sites * math.log(2) + math.log(inside / _TRIED), error

    def values(self, states: Int8[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """Returns the function at many states, -inf where it is NaN; InputError if it is +inf
        somewhere.
        """
        values = checked(self.raw_values(states))
        return np.where(np.isnan(values), -np.inf, values)

    def raw_values(self, states: Int8[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """Returns the function at many states, a block at a time."""
        # Whole blocks, so that one program serves any number of states.
        filled = np.pad(states.astype(np.int8), ((0, -len(states) % _BLOCK), (0, 0)))
        batches = [
            _values(self._function, (self.params, 0.0), filled[k : k + _BLOCK])
            for k in range(0, len(filled), _BLOCK)
        ]
        check_not_traced(batches)
        return np.concatenate(batches)[: len(states)].astype(np.float64)

    def arrays(self) -> Params:
        """Returns the model's parameters on the host: the function's own, and its constant."""
        return jax.tree.map(np.asarray, self.params), np.float64(self.constant)

    def model(self, num_sites: int, asking: Callable[[], str]) -> Model:
        """Returns the model on a padded number of sites.

        Args:
          num_sites: with padding.
          asking: tells the name of the sampler if it asks for gains, otherwise an empty string.

        Raises:
          InputError: gains are asked for, and the function cannot be differentiated.
        """
        function = self._function
        if not (sampler := asking()):
            return ValueModel(function, num_sites)
        model = DifferentiableModel(function, num_sites)
        check_differentiable("fn", model, self.arrays(), num_sites, sampler)
        return model

    @property
    def _function(self) -> _AboveConstant:
        return _AboveConstant(self.function, self.shape)


# What chains maximise: a function f of N zeros and ones, without its constant.
Terms = Coefficients | Density


@functools.partial(jax.jit, static_argnums=0)
def _values(
    function: _AboveConstant, params: Params, states: Int8[Array, "B N"]
) -> Float[Array, "B"]:
    return jax.vmap(lambda x: function(params, x))(states)


@dataclasses.dataclass(frozen=True)
class _AboveConstant:
    """The function on padded vectors, minus a constant, the second of its parameters."""

    function: Callable[..., Float[Array, ""]]
    shape: tuple[int, ...]

    def __call__(
        self, params: tuple[Params, Float[Array, ""]], x: Float[Array, "N"] | Int8[Array, "N"]
    ) -> Float[Array, ""]:
        own, constant = params
        x = x[: math.prod(self.shape)].reshape(self.shape).astype(jnp.float32)
        value = scalar("fn", self.function(own, x))
        return value - jnp.asarray(constant, value.dtype)
