"""Any log-density given as a function: with gains by automatic differentiation, or with values alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sl_discs.errors import InputError
from sl_discs.models.base import Model, Params, apply_flips


def scalar(name: str, value: Any) -> Float[Array, ""]:
    """What a log-density returned, as float32; InputError naming the argument unless it is a scalar."""
    value = jnp.asarray(value)
    if value.shape != ():
        raise InputError(f"{name} returns shape {value.shape}; expected a scalar", name)
    if jnp.iscomplexobj(value):
        raise InputError(f"{name} returns a complex number; expected a real one, such as its real part", name)
    return value.astype(jnp.float32)


def check_differentiable(name: str, model: Model, params: Params, num_sites: int, sampler: str) -> None:
    """InputError naming the argument if a model cannot be traced because JAX cannot differentiate its log-density."""
    try:
        jax.eval_shape(model.init, params, jax.ShapeDtypeStruct((num_sites,), jnp.int8))
    except InputError:
        raise
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputError(
            f"{name} cannot be differentiated, as {sampler} requires; use gibbs, metropolis or exchange, or correct "
            f"this: {str(error).splitlines()[0]}",
            name,
        ) from error


class ValueAndGrad(NamedTuple):
    """f(x) and its gradient at x, the field of a general model."""

    value: Float[Array, ""]
    grad: Float[Array, "N *q"]


class GradientModel(Model):
    """A model whose field is its value and gradient, recomputed at each state by `init` of a subclass.

    The gains (`Sites.gains`) are exact when f is multilinear (at most linear in each site). Otherwise they are a
    first-order estimate, which samplers use only for proposals: acceptance uses the difference of true values.
    """

    def value(self, params, x, field):
        """f(x)."""
        return field.value

    def gains(self, params, x, field):
        """(1 - 2x) times the gradient, for two values."""
        return self.sites.gains(x, field.grad)

    def flip(self, params, x, field, flips):
        """Flips, and recomputes value and gradient."""
        y = apply_flips(x, flips)
        return y, self.init(params, y)

    def change(self, params, x, before, flips, after):
        """Difference of the two values."""
        return after.value - before.value


@dataclasses.dataclass(frozen=True)
class DifferentiableModel(GradientModel):
    """f given as a function of (params, x) with x as float32 [N], differentiable in x."""

    log_density: Callable[..., Float[Array, ""]]
    num_sites: int

    def init(self, params, x):
        """Value and gradient at x; a value of NaN is -inf, which every sampler rejects, and a gradient of NaN 0."""
        value, grad = jax.value_and_grad(self.log_density, argnums=1)(params, x.astype(jnp.float32))
        return ValueAndGrad(jnp.where(jnp.isnan(value), -jnp.inf, value), jnp.nan_to_num(grad))


@dataclasses.dataclass(frozen=True)
class ValueModel(Model):
    """f given as a function of (params, x) with x int8 [N]: for samplers that do not ask for gains."""

    log_density: Callable[..., Float[Array, ""]]
    num_sites: int

    def init(self, params, x):
        """f(x); -inf instead of NaN, so that every sampler rejects it."""
        value = self.log_density(params, x)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    def value(self, params, x, field):
        """The field."""
        return field

    def gains(self, params, x, field):
        """NotImplementedError: N more values a step would be needed, or a gradient."""
        raise NotImplementedError("a ValueModel has no gains; use DifferentiableModel")

    def flip(self, params, x, field, flips):
        """Flips, and recomputes the value."""
        y = apply_flips(x, flips)
        return y, self.init(params, y)

    def change(self, params, x, before, flips, after):
        """Difference of the two values."""
        return after - before
