"""`sl_discs.from_log_density`: any log-density on binary arrays, for `sl_discs.sample`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sl_discs.errors import InputError, integer
from sl_discs.models.base import Params
from sl_discs.models.functions import Density

# Random states at which the function has to be finite, beside all zeros and all ones.
_RANDOM_STATES = 16


@dataclasses.dataclass(frozen=True, eq=False)
class LogDensity:
    """A log-density on {0,1}^shape; made by `sl_discs.from_log_density`.

    Attributes:
      density: the function, its parameters and its shape.
      name: used in results.
    """

    density: Density
    name: str

    kind: ClassVar[str] = "log_density"
    maximise: ClassVar[bool] = True
    spins: ClassVar[bool] = False

    @property
    def labels(self) -> Sequence[int]:
        """0 .. N-1: places in the flattened array."""
        return range(self.density.num_sites)

    def terms(self) -> Density:
        """Returns what is sampled, as `Problem.terms`."""
        return self.density

    def __repr__(self) -> str:
        return f"LogDensity({self.name!r}, shape {self.density.shape})"


def from_log_density(
    fn: Callable[..., Float[Array, ""]], params: Params, shape: int | Sequence[int], *, name: str = ""
) -> LogDensity:
    """Returns a problem of drawing from p(x) ~ exp(fn(params, x)) on binary arrays x, for `sl_discs.sample`.

    Samplers estimate flip gains to first order by the gradient in x, and accept by exact differences; `gibbs`,
    `metropolis` and `exchange` only evaluate `fn`.

    Example:
        >>> problem = sl_discs.from_log_density(lambda weights, x: weights @ x, jnp.array([0.0, 1.0, 2.0]), 3)
        >>> sl_discs.sample(problem).marginal(2).mean  # sigmoid(2)
        0.880...

    Args:
      fn: of (params, x), with x float32 of `shape`, zeros and ones; returns a scalar. JAX must be able to trace it,
        and to differentiate it in x, unless the sampler only evaluates it.
      params: any pytree of arrays, such as those of a flax module. Other values of the same shapes compile nothing.
      shape: of x, such as 64 or (8, 8).
      name: used in results; by default that of the function.

    Raises:
      InputError: `fn` is not a function, cannot be traced on `params` and an x of this shape, does not return a
        real scalar, or is not finite at all zeros, all ones or random states, from which chains start; or `params` or
        `shape` are not as above.
    """
    if not callable(fn):
        raise InputError(f"fn is a {type(fn).__name__}; expected a function of (params, x)", "fn")
    sides = tuple(integer("shape", side, 1) for side in (shape if isinstance(shape, Sequence) else [shape]))
    if not sides:
        raise InputError("shape is empty; expected that of x, such as (8, 8)", "shape")
    try:
        params = jax.tree.map(jnp.asarray, params)
    except (TypeError, ValueError):
        raise InputError("params hold what is not an array; expected a pytree of arrays", "params") from None
    density = Density(fn, params, sides)
    _check_values(density)
    return LogDensity(density, name or getattr(fn, "__name__", type(fn).__name__))


def _check_values(density: Density) -> None:
    size = density.num_sites
    states = np.random.default_rng(0).integers(0, 2, (_RANDOM_STATES + 2, size), np.int8)
    states[0], states[1] = 0, 1
    try:
        values = density.values(states)
    except InputError:
        raise
    except Exception as error:  # whatever the user's function raises
        reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        raise InputError(
            f"fn cannot be traced by JAX on params and an x of shape {density.shape}; write it with jax.numpy, for "
            f"these shapes ({reason})",
            "fn",
        ) from error
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        where = {0: "all zeros", 1: "all ones"}.get(int(wrong[0]), "a random state")
        raise InputError(f"fn is {values[wrong[0]]} at {where}; it has to be finite where chains start", "fn")
