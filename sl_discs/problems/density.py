"""`sl_discs.from_log_density`: any log-density on binary arrays, for `sl_discs.sample`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8

from sl_discs.models.exact_sums import all_states
from sl_discs.models.functions import Density, check_not_traced
from sl_discs.models.model import Params
from sl_discs.support.checks import integer, real_array, text
from sl_discs.support.errors import InputError

# Random states at which the function is tried, beside all zeros and all ones.
_RANDOM_STATES = 64
# With no more variables than this, it is tried at all states.
_ALL_STATES = 10


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
    fn: Callable[..., Float[Array, ""]],
    params: Params,
    shape: int | Sequence[int],
    *,
    start: Any = None,
    name: str = "",
) -> LogDensity:
    """Returns a problem of drawing from p(x) ~ exp(fn(params, x)) on binary arrays x, for
    `sl_discs.sample`.

    Samplers estimate flip gains to first order by the gradient in x, and accept by exact
    differences; `gibbs`, `metropolis` and `exchange` only evaluate `fn`.

    Example:
        >>> weights = jnp.array([0.0, 1.0, 2.0])
        >>> problem = sl_discs.from_log_density(lambda weights, x: weights @ x, weights, 3)
        >>> sl_discs.sample(problem).marginal(2).mean  # sigmoid(2)
        0.880...

    Args:
      fn: of (params, x), with x float32 of `shape`, zeros and ones; returns a scalar. JAX must be
        able to trace it, and to differentiate it in x, unless the sampler only evaluates it. It is
        -inf at states of probability 0. Values are subtracted in the type that it returns.
      params: any pytree of arrays, such as those of a flax module. Other values of the same shapes
        compile nothing.
      shape: of x, such as 64 or (8, 8).
      start: an x at which `fn` is finite, from which chains start where others have probability 0;
        None: one of all zeros, all ones and random states.
      name: used in results; by default that of the function.

    Raises:
      InputError: `fn` is not a function, cannot be traced on `params` and an x of this shape, does
        not return a real scalar, is NaN or inf at a state that is tried, or finite at none; or an
        argument is not as above.
    """
    if not callable(fn):
        raise InputError(f"fn is a {type(fn).__name__}; expected a function of (params, x)", "fn")
    name = text("name", name)
    sides = tuple(
        integer("shape", side, 1) for side in (shape if isinstance(shape, Sequence) else [shape])
    )
    if not sides:
        raise InputError("shape is empty; expected that of x, such as (8, 8)", "shape")
    try:
        params = jax.tree.map(jnp.asarray, params)
    except (TypeError, ValueError):
        raise InputError(
            "params hold what is not an array; expected a pytree of arrays", "params"
        ) from None
    check_not_traced(params)
    starts, constant = _starts(Density(fn, params, sides, np.empty((0, 0), np.int8)), start)
    return LogDensity(
        Density(fn, params, sides, starts, constant),
        name or getattr(fn, "__name__", type(fn).__name__),
    )


def _starts(density: Density, start: Any) -> tuple[Int8[np.ndarray, "S N"], float]:
    """Returns states at which the function is finite, and its value at the first of them;
    InputError for none.
    """
    size = density.num_sites
    rng = np.random.default_rng(0)
    if size <= _ALL_STATES:
        states = all_states(size)
    else:
        shares = np.geomspace(1 / size, 0.5, _RANDOM_STATES // 2)
        states = rng.random((_RANDOM_STATES, size)) < np.concatenate([shares, 1 - shares])[:, None]
        states = np.concatenate([np.zeros((1, size)), np.ones((1, size)), states]).astype(np.int8)
    if start is not None:
        states = _checked_start(density.shape, start)
    try:
        values = density.raw_values(states)
    except InputError:
        raise
    except Exception as error:  # whatever the user's function raises
        reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        raise InputError(
            f"fn cannot be traced by JAX on params and an x of shape {density.shape}; write it "
            f"with jax.numpy, for these shapes ({reason})",
            "fn",
        ) from error
    wrong = np.flatnonzero(np.isnan(values) | (values == np.inf))
    if len(wrong):
        raise InputError(
            f"fn is {values[wrong[0]]} at {_format_state(states[wrong[0]])}; a log-density is "
            "finite, or -inf",
            "fn",
        )
    finite = np.isfinite(values)
    if not finite.any():
        tried = "start" if start is not None else f"{len(states):,} states"
        raise InputError(f"fn is -inf at {tried}; give start=x, an x at which it is finite", "fn")
    states = states[finite]
    values = values[finite]
    return states, float(values[0])


def _checked_start(shape: tuple[int, ...], start: Any) -> Int8[np.ndarray, "1 N"]:
    array = real_array("start", start)
    if array.shape != shape or not np.isin(array, (0, 1)).all():
        raise InputError(
            f"start has shape {array.shape}; expected zeros and ones of shape {shape}", "start"
        )
    return array.astype(np.int8).reshape(1, -1)


def _format_state(state: Int8[np.ndarray, "N"]) -> str:
    if (state == state[0]).all():
        return f"all {'ones' if state[0] else 'zeros'}"
    return f"the flattened x = {state.tolist()}" if len(state) <= _ALL_STATES else "a random state"
