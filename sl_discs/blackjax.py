"""The samplers as algorithms of blackjax, for any log-density on an array, or a pytree of arrays,
of 0 and 1.

    algorithm = sl_discs.blackjax.gwg(logdensity_fn)
    state = algorithm.init(position)
    state, info = algorithm.step(rng_key, state)

There is a function for each registered base sampler; `algorithm(name, ...)` also takes names that
are not Python's. `localized` wraps a base sampler in Algorithm 1.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from sl_discs.support.checks import integer, shown
from sl_discs.support.errors import InputError, MissingExtra, fields_are_keywords

try:
    from blackjax.base import SamplingAlgorithm
except ImportError as error:
    raise MissingExtra(
        "sl_discs.blackjax needs blackjax; install it with: pip install -e '.[blackjax]' in the "
        "clone"
    ) from error

from sl_discs.localization.algorithm import Localized
from sl_discs.localization.method import build_method
from sl_discs.models import keys
from sl_discs.models.functions import (
    DifferentiableModel,
    ValueAndGrad,
    ValueModel,
    check_differentiable,
    scalar,
)
from sl_discs.models.model import Field, Model, Sites
from sl_discs.samplers import registry
from sl_discs.samplers.sampler import Chain, Sampler, SamplerState, asks_for_gains
from sl_discs.sampling.localized import SCHEDULE_FIELDS

# An array, or a pytree of arrays.
Position = Any
LogDensity = Callable[[Position], Float[Array, ""]]

# Steps in which a sampler adapts, unless the user says otherwise; afterwards it leaves the target
# invariant.
ADAPT_UNTIL = 1_000
# Levels of localization, and steps of each, unless the user says otherwise.
_MOST_LEVELS, _STEPS_A_LEVEL = 256, 8


class DiscreteState(NamedTuple):
    """The state of a chain, from `init` and `step`; under `jax.vmap` each leaf has a leading axis.

    Example: a position of two arrays.
        >>> gwg = algorithm("gwg", lambda x: jnp.sum(x["a"]) - x["b"])
        >>> state = gwg.init({"a": jnp.zeros((2, 2)), "b": jnp.array(1.0)})
        >>> state.position["a"].shape, float(state.logdensity), float(state.logdensity_grad["b"])
        ((2, 2), -1.0, -1.0)

    Attributes:
      position: zeros and ones, in the structure, shapes and dtypes that the chain was started with.
      logdensity: at the position, in the type that the function returns, in which values are
        subtracted.
      logdensity_grad: at the position, float32; None for samplers that do not need it.
      sampler: counters and what adapts, such as `radius`.
    """

    position: Position
    logdensity: Float[Array, ""]
    logdensity_grad: Position | None
    sampler: SamplerState


class DiscreteInfo(NamedTuple):
    """What is known of a step of a chain, two scalars.

    Attributes:
      acceptance_rate: acceptance probability of the proposal, 1 where nothing is rejected.
      num_flips: number of sites that changed, of all leaves of the position.
    """

    acceptance_rate: Float[Array, ""]
    num_flips: Float[Array, ""]


class LocalizedDiscreteState(DiscreteState):
    """The state of a localized chain; `sampler` is a `localization.algorithm.LocalizedState`.

    Its position visits the posterior given the observation Y, which `sampler.y` holds as a vector
    [N] of all leaves of the position.

    Example:
        >>> gibbs = localized("gibbs", lambda x: jnp.sum(x), 16)
        >>> state = gibbs.init(jnp.zeros((3, 2)), jax.random.key(0))
        >>> state.draw.shape, state.sampler.y.shape
        ((3, 2), (6,))
    """

    @property
    def draw(self) -> Position:
        """The sign of Y as zeros and ones: a draw from the log-density once the last step
        is done.
        """
        x, unravel = ravel_pytree(self.position)
        return unravel(jnp.asarray(Sites().decode(self.sampler.y), x.dtype))


def algorithm(name: str, logdensity_fn: LogDensity, **fields: object) -> SamplingAlgorithm:
    """Returns a base sampler as an algorithm of blackjax.

    A state at which the log-density is -inf or NaN is never accepted.

    Example:
        >>> gwg = algorithm("gwg", lambda x: jnp.sum(x) - 2 * x[0] * x[1])
        >>> state = gwg.init(jnp.zeros(3))
        >>> state, info = jax.jit(gwg.step)(jax.random.key(0), state)
        >>> state.position.tolist(), float(state.logdensity)
        ([0.0, 0.0, 1.0], 1.0)

    Args:
      name: of a registered base sampler.
      logdensity_fn: takes zeros and ones in the structure of the position and returns a scalar.
        Samplers that propose by the gradient call it with float32; the others, with the dtypes of
        the position, and it need not be differentiable.
      **fields: of the sampler's config. Adaptation ends at step `adapt_until`, 1000 by default, and
        the steps before should be discarded.

    Raises:
      InputError: an argument is wrong; from `init`, also if the position holds other values than 0
        and 1, or `logdensity_fn` is not finite there, does not return a scalar, or cannot be
        differentiated. Values that are not known, as under `jit` and `vmap`, are not checked.
    """
    with fields_are_keywords():
        name = _base_checked("name", name)
        kernel = _Kernel(
            build_method({"name": name, **_adapting(name), **fields}).sampler, logdensity_fn
        )
    return SamplingAlgorithm(kernel.init, kernel.step)


def localized(
    base: str, logdensity_fn: LogDensity, num_steps: int, **fields: object
) -> SamplingAlgorithm:
    """Returns Algorithm 1 around a base sampler: each chain gives one draw, `state.draw`, after
    `num_steps` steps.

    Draws are as accurate as the posterior means that the base sampler estimates at each level.
    Later steps leave the draw as it is. `init` needs a key, from which the first observation is
    drawn. Chains are independent: `jax.vmap` over keys gives many draws.

    Example:
        >>> steps = 64
        >>> gibbs = localized("gibbs", lambda x: jnp.sum(x) - 2 * x[0] * x[1], steps)
        >>> keys = jax.random.split(jax.random.key(0), steps + 1)
        >>> state = gibbs.init(jnp.zeros(3), keys[steps])
        >>> state, _ = jax.lax.scan(lambda s, key: gibbs.step(key, s), state, keys[:steps])
        >>> state.draw.shape, int(state.sampler.step)
        ((3,), 64)

    Args:
      base: name of the base sampler.
      logdensity_fn: as for `algorithm`.
      num_steps: steps of a chain, of all levels together, at least 8.
      **fields: of the base sampler's config and of `Localization`; by default at most 256 levels of
        8 steps on average, with sigma = 2 and eps_end = 0.01.

    Returns:
      `init` and `step`, whose states are `LocalizedDiscreteState`.

    Raises:
      InputError: as `algorithm`; or sign(Y) would be mostly noise with these fields.
    """
    with fields_are_keywords():
        base = _base_checked("base", base)
        num_steps = integer("num_steps", num_steps, _STEPS_A_LEVEL, bits=31)
        defaults = (
            _adapting(base)
            | SCHEDULE_FIELDS
            | {"K": min(_MOST_LEVELS, num_steps // _STEPS_A_LEVEL)}
        )
        method = build_method({"name": registry.localized_name(base), **defaults, **fields})
        localization = method.localization
        assert localization is not None
        kernel = _Kernel(Localized(method.sampler, localization.levels(num_steps)), logdensity_fn)
    if not localization.localizes:
        raise InputError(
            f"sigma is {localization.sigma} and eps_end {localization.eps_end}, with which "
            "sign(Y) is mostly noise; lower one of them"
        )
    return SamplingAlgorithm(kernel.init, kernel.step)


def _base_checked(argument: str, given: Any) -> str:
    if not isinstance(given, str) or registry.is_localized(registry.own_name(given)):
        raise InputError(
            f"{argument} is {shown(given)}; expected a base sampler, such as 'gwg'", argument
        )
    name = registry.own_name(given)
    registry.registered(name, variants=False)
    return name


def _adapting(name: str) -> dict[str, int]:
    return {"adapt_until": ADAPT_UNTIL} if "adapt_until" in registry.registered(name).fields else {}


class _Kernel:
    """A sampler on a log-density: states in the user's shape outside, vectors of int8 inside."""

    def __init__(self, sampler: Sampler, logdensity_fn: LogDensity):
        if not callable(logdensity_fn):
            raise InputError(
                f"logdensity_fn is a {type(logdensity_fn).__name__}; expected a function"
            )
        self._sampler = sampler
        self._logdensity_fn = logdensity_fn
        self._base = sampler.base if isinstance(sampler, Localized) else sampler
        self._differentiates = asks_for_gains(self._base)

    def init(self, position: Any, rng_key: PRNGKeyArray | None = None) -> DiscreteState:
        position = _as_arrays(position)
        flat, _ = ravel_pytree(position)
        if not flat.size or not (isinstance(flat, jax.core.Tracer) or np.isin(flat, (0, 1)).all()):
            raise InputError("position holds values other than 0 and 1, or none", "position")
        model = self._model(position)
        x = flat.astype(jnp.int8)
        if self._differentiates:
            check_differentiable("logdensity_fn", model, (), x.size, type(self._base).__name__)
        if self._sampler is not self._base and rng_key is None:
            raise InputError("rng_key: the first observation is random; give init a key", "rng_key")
        key = keys.from_rng(jax.random.key(0) if rng_key is None else rng_key)
        state = self._state(position, model.init((), x), self._sampler.init_state(key, x.shape))
        if not isinstance(state.logdensity, jax.core.Tracer) and not np.isfinite(state.logdensity):
            raise InputError(
                "logdensity_fn is not finite at the position; start where it is", "logdensity_fn"
            )
        return state

    def step(
        self, rng_key: PRNGKeyArray, state: DiscreteState
    ) -> tuple[DiscreteState, DiscreteInfo]:
        key: Any = keys.from_rng(rng_key)
        if self._sampler is not self._base:
            key = keys.StepKeys(keys.fold(key, 0), keys.fold(key, 1))
        flat, unravel = ravel_pytree(state.position)
        grad = state.logdensity_grad
        field = ValueAndGrad(state.logdensity, None if grad is None else ravel_pytree(grad)[0])
        x = flat.astype(jnp.int8)
        target = self._model(state.position).target((), jnp.ones(x.shape, bool))
        chain, info = self._sampler.kernel(key, target, Chain(x, field, state.sampler))
        position = unravel(chain.x.astype(flat.dtype))
        return self._state(position, chain.field, chain.state), DiscreteInfo(
            info.acceptance, info.hops
        )

    def _state(self, position: Position, field: Field, sampler: SamplerState) -> DiscreteState:
        grad = None if field.grad is None else _as_float32(position)(field.grad)
        state = DiscreteState if self._sampler is self._base else LocalizedDiscreteState
        return state(position, field.value, grad, sampler)

    def _model(self, position: Position) -> Model:
        flat, unravel = ravel_pytree(position)

        def log_density(params, x):
            del params
            x = _as_float32(position)(x) if self._differentiates else unravel(x.astype(flat.dtype))
            return scalar("logdensity_fn", self._logdensity_fn(x))

        return (DifferentiableModel if self._differentiates else ValueModel)(log_density, flat.size)


def _as_arrays(position: Any) -> Position:
    """Returns a position as a pytree of arrays; a list of numbers is one of them."""
    if isinstance(position, list) and all(
        isinstance(leaf, bool | int | float) for leaf in jax.tree.leaves(position)
    ):
        position = np.array(position)
    try:
        return jax.tree.map(jnp.asarray, position)
    except (TypeError, ValueError):
        raise InputError(
            "position holds what is no array of numbers; give zeros and ones, as an array or a "
            "pytree of arrays",
            "position",
        ) from None


def _as_float32(position: Position) -> Callable[[Float[Array, "N"]], Position]:
    """Returns what gives a vector of float32 the structure of a position."""
    return ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.float32), position))[1]


def __getattr__(name: str) -> Callable[..., SamplingAlgorithm]:
    if name not in registry.base_samplers():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return functools.partial(algorithm, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.base_samplers()})
