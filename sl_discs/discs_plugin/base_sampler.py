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

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs.discs_plugin.adapted_model import AdaptedModel, AdaptedParams
from sl_discs.discs_plugin.fixes import mend
from sl_discs.discs_plugin.states import States
from sl_discs.errors import InputError

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
