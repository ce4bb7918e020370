"""A uniform interface to DISCS's sampler objects: fixed calls, a state with fixed keys, shapes and dtypes, three
results.

DISCS's objects do the sampling unchanged. Their differences are found by tracing `step` once on a stand-in model,
before any data are read:

- the final dtypes of the state (some samplers begin with integers and return floats), and added or removed keys;
- whether a sampler evaluates the whole batch, or the states of one chain after the other;
- whether it accepts states with more than one axis, or only flat ones;
- whether it returns an acceptance.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

from sl_discs.discs_plugin.fixes import mend
from sl_discs.errors import InputError
from sl_discs.models.sites import SPIN_LENGTH, Categories, Sites, TwoValues

# The states of DISCS's models and samplers, and the spins of them that localization observes.
#
# Sites of two values are zeros and ones. Sites of q > 2 values are integers 0 .. q - 1, which DISCS's informed
# samplers turn into one-hot vectors before they call a model. `coordinates` are what models differentiate: zeros and
# ones, or one-hot vectors.


@dataclasses.dataclass(frozen=True)
class States:
    """Batches of states with q values at each site.

    Spins are 2x - 1 for two values, and otherwise those of `models.sites.Categories`: centred one-hot vectors of
    length sqrt(2). Both are `scale` (z - 1/q) for coordinates z.

    Attributes:
      shape: of one state, in integers.
      num_values: q.
    """

    shape: tuple[int, ...]
    num_values: int = 2

    @property
    def several(self) -> bool:
        """Whether sites have more than two values."""
        return self.num_values > 2

    @property
    def scale(self) -> float:
        """The derivative of a spin with respect to its coordinate."""
        return SPIN_LENGTH if self.several else 2.0

    @property
    def spin_shape(self) -> tuple[int, ...]:
        """Shape of the spins and coordinates of one state."""
        return (*self.shape, self.num_values) if self.several else self.shape

    @property
    def sites(self) -> Sites:
        """Those of a flattened state, in a model of sl_discs."""
        return Categories((self.num_values,) * math.prod(self.shape)) if self.several else TwoValues()

    def coordinates(self, x: Num[Array, "M *any"]) -> Num[Array, "M *spin_shape"]:
        """Returns states as coordinates; these may be given as either."""
        if not self.several or x.ndim > 1 + len(self.shape):
            return x
        return jax.nn.one_hot(x, self.num_values, dtype=jnp.float32)

    def integers(self, x: Num[Array, "M *any"]) -> Num[Array, "M *shape"]:
        """Returns states as integers; these may be given as either."""
        if not self.several or x.ndim == 1 + len(self.shape):
            return x
        return jnp.argmax(x, axis=-1).astype(jnp.int32)

    def spins(self, x: Num[Array, "M *any"]) -> Float[Array, "M *spin_shape"]:
        """Returns the spins of states that are given as integers or coordinates."""
        return self.scale * (self.coordinates(x) - 1 / self.num_values)

    def decode(self, y: Float[Array, "M *spin_shape"]) -> Int[Array, "M *shape"]:
        """The states, in integers, whose spins are closest to an observation with alpha > 0."""
        return (jnp.argmax(y, axis=-1) if self.several else y > 0).astype(jnp.int32)

    def over_values(self, sites: Num[Array, "*shape"] | Bool[Array, "*shape"]) -> Array:
        """An array over sites, with the axes of coordinates."""
        return sites[..., None] if self.several else sites

    def gains(self, z: Num[Array, "M *spin_shape"], gradient: Float[Array, "M *spin_shape"]) -> Array:
        """What each alternative adds to a function that is linear in each site and has this gradient."""
        if self.several:
            return gradient - jnp.sum(gradient * z, axis=-1, keepdims=True)
        return (1 - 2 * z) * gradient

    def gradient(self, z: Num[Array, "M *spin_shape"], gains: Float[Array, "M *spin_shape"] | float) -> Array:
        """A gradient with these gains."""
        return (1 - (1 if self.several else 2) * z) * gains

    def neighbour(self, x: Num[Array, "M *shape"], place: Int[Array, "M"]) -> Num[Array, "M *shape"]:
        """x with one site changed, which is numbered as the entry of the flattened coordinates that is turned on.

        With two values, the entry is flipped.
        """
        flat = x.reshape(x.shape[0], -1)
        rows = jnp.arange(x.shape[0])
        site, value = jnp.divmod(place, self.num_values) if self.several else (place, 1 - flat[rows, place])
        return flat.at[rows, site].set(value).reshape(x.shape)

    # A state may carry the number of its chain in the upper digits of its sites. A sampler that changes sites by
    # arithmetic modulo q does not affect the tags of the other sites.

    def tag(self, x: Int[Array, "B *shape"]) -> Int[Array, "B *shape"]:
        """x with each chain's number added to its sites."""
        chains = jnp.arange(x.shape[0], dtype=x.dtype).reshape(-1, *(1,) * (x.ndim - 1))
        return x + self.num_values * chains

    def untag(self, x: Int[Array, "M *shape"]) -> Int[Array, "M *shape"]:
        """The values of tagged states."""
        return x % self.num_values

    def tagged_chain(self, x: Int[Array, "M *shape"]) -> Int[Array, "M"]:
        """The chains of tagged states."""
        return jnp.max((x // self.num_values).reshape(x.shape[0], -1), axis=1)


# An adapter for DISCS's models that adds the tilt of stochastic localization, missing methods, and optional fixes.
#
# DISCS's models compute log-likelihoods, temperature included, of batches of states in integers [B, *shape] or in
# coordinates [B, *spin_shape] (`States`). The adapter has the same three methods:
#
#     forward(params, x)                   -> value [B]
#     get_value_and_grad(params, x)        -> value [B], gradient with respect to the coordinates
#     logratio_in_neighborhood(params, x)  -> value [B], gains of all coordinates, evaluations, neighbour function
#
# DISCS's own `logratio_in_neighborhood` returns three or four values and two kinds of neighbour function, depending
# on the model; here it always has the form above. If a model has only the gradient or only the ratios, the adapter
# derives the other.

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


State = dict[str, Array]

# No sampler evaluates this many states of one chain, so the two ways of evaluating cannot be confused.
_TRACED_CHAINS = 1009


class _Recorder:
    """A model that returns zeros and records how many states it evaluates at a time."""

    def __init__(self, states: States):
        self.states = states
        self.rows: set[int] = set()

    def forward(self, params, x):
        """Zeros."""
        self.rows.add(x.shape[0])
        return jnp.zeros(x.shape[0], jnp.float32)

    def get_value_and_grad(self, params, x):
        """Zeros."""
        return self.forward(params, x), jnp.zeros(x.shape, jnp.float32)

    def logratio_in_neighborhood(self, params, x):
        """Zeros."""
        return *self.get_value_and_grad(params, x), 1, lambda params, x, place: self.states.neighbour(x, place)


class BaseSampler:
    """A sampler of DISCS for batches of states.

    Attributes:
      name: DISCS's name for it.
      states: of its batches.

    Raises:
      InputError: its `step` does not work for this shape, or its state is not a dictionary as in DISCS.
    """

    def __init__(self, name: str, sampler: Any, states: States, fixes: frozenset[str] = frozenset()):
        self.name = name
        self.states = states
        self._sampler = sampler
        self._fixes = fixes
        mend(name, sampler, fixes)
        self._taken = states
        recorder = _Recorder(states)
        try:
            initial, final = self._trace(recorder)
        except InputError:
            if len(states.shape) == 1:
                raise
            self._taken = States((math.prod(states.shape),), states.num_values)
            recorder = _Recorder(self._taken)
            initial, final = self._trace(recorder)
        self._dtypes = {key: final.get(key, leaf).dtype for key, leaf in initial.items()}
        self._tagged = not recorder.rows <= {_TRACED_CHAINS}

    def _trace(self, model: _Recorder) -> tuple[State, State]:
        """Shapes and dtypes of the state before and after a step."""

        def step(rng, x):
            initial = self._sampler.make_init_state(rng)
            if not (isinstance(initial, dict) and {"num_ll_calls", "steps"} <= set(initial)):
                raise InputError(f"sampler {self.name!r}: its state is not a dictionary with num_ll_calls and steps")
            initial = {key: jnp.asarray(leaf) for key, leaf in initial.items()}
            final = self._sampler.step(model, rng, x, None, dict(initial))[1]
            return initial, {key: jnp.asarray(final[key]) for key in final}

        x = jax.ShapeDtypeStruct((_TRACED_CHAINS, *model.states.shape), jnp.int32)
        try:
            return jax.eval_shape(step, jax.ShapeDtypeStruct((2,), jnp.uint32), x)
        except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
            if isinstance(error, InputError):
                raise
            text = " ".join(str(error).split())
            shape = model.states.shape
            raise InputError(f"sampler {self.name!r} does not take states of shape {shape}: {text}") from error

    def make_init_state(self, rng: Array) -> State:
        """The sampler's own initial state, with its final dtypes."""
        state = self._sampler.make_init_state(rng)
        return {key: jnp.asarray(state[key], dtype) for key, dtype in self._dtypes.items()}

    def step(
        self,
        model: Any,
        rng: Array,
        x: Int[Array, "B *shape"],
        model_param: Any,
        state: State,
        x_mask: Bool[Array, "*shape"] | None = None,
        tilt: Float[Array, "B *spin_shape"] | None = None,
    ) -> tuple[Int[Array, "B *shape"], State, Float[Array, ""]]:
        """The sampler's own step on the log-likelihood plus <s(x), tilt>, where s are the spins.

        Returns:
          new states, a state with the same keys and dtypes, and the mean acceptance (1 if there is none).
        """
        mask = x_mask if "mask" in self._fixes else None
        origin = None if tilt is None and mask is None else x
        start = x
        if self._taken != self.states:
            start = x.reshape(-1, *self._taken.shape)
            origin = None if origin is None else start
            tilt = None if tilt is None else tilt.reshape(-1, *self._taken.spin_shape)
            mask = None if mask is None else mask.reshape(self._taken.shape)
        tagged = self._tagged and origin is not None
        adapted = AdaptedModel(
            model,
            self._taken,
            float_states="float_states" in self._fixes,
            tagged=tagged,
            shape=None if self._taken == self.states else self.states.shape,
        )
        params = AdaptedParams(model_param, tilt, origin, mask)
        start = self._taken.tag(start) if tagged else start
        new_x, new_state, *acceptance = self._sampler.step(adapted, rng, start, params, dict(state), x_mask)
        new_x = self._taken.untag(new_x) if tagged else new_x
        if mask is not None:
            new_x = jnp.where(mask, new_x, x.reshape(-1, *self._taken.shape))
        new_x = new_x.reshape(x.shape).astype(x.dtype)
        new_state = {key: jnp.asarray(new_state.get(key, leaf), leaf.dtype) for key, leaf in state.items()}
        return new_x, new_state, jnp.float32(acceptance[0] if acceptance else 1)
