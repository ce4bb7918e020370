"""The plugin's access to DISCS: its samplers by name, and with a tilt."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import importlib.util
import math
import pkgutil
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num
from ml_collections import config_dict

from sl_discs.discs_plugin.fixes import mend
from sl_discs.models.batching import AnyArray
from sl_discs.models.model import SPIN_LENGTH, Categories, Sites
from sl_discs.support.errors import InputError, MissingExtra

# Modules of discs.samplers that are not samplers.
_NOT_SAMPLERS = ("abstractsampler", "configs")


def import_discs(compat: bool) -> None:
    """Imports a small part of DISCS, as `register` describes it.

    Raises:
      MissingExtra: there is no package `discs` with DISCS's samplers.
      InputError: it cannot be imported, as on current packages without `compat`.
    """
    spec = importlib.util.find_spec("discs")
    folders = [] if spec is None else spec.submodule_search_locations or []
    if not any((Path(folder) / "samplers" / "abstractsampler.py").is_file() for folder in folders):
        raise MissingExtra(
            "the package discs of google-research is not importable; clone "
            "https://github.com/google-research/discs and put the folder that holds setup.py on "
            "PYTHONPATH"
        )
    if compat:
        # Imported only here, since what it replaces takes long to import, and other commands need
        # none of it.
        from sl_discs.discs_plugin import compat as compatibility

        compatibility.install()
    try:
        importlib.import_module("discs.samplers.abstractsampler")
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"discs cannot be imported ({error}); call register(compat=True)"
        ) from error


def sampler_names() -> list[str]:
    """Returns the names of the samplers that this version of DISCS has."""
    folder = importlib.import_module("discs.samplers").__path__
    names = [module.name for module in pkgutil.iter_modules(folder)]
    return sorted(name for name in names if name not in _NOT_SAMPLERS)


def sampler_config(name: str) -> config_dict.ConfigDict:
    """Returns DISCS's own config of one of its samplers, with its defaults."""
    return importlib.import_module(f"discs.samplers.configs.{name}_config").get_config()


def build_upstream_sampler(name: str, config: config_dict.ConfigDict) -> Any:
    """Returns DISCS's own object of a sampler for a whole config (sampler, model, experiment), for
    flat states.
    """
    config = copy.deepcopy(config)
    with config.unlocked():
        config.sampler.name = name
        config.model.shape = (math.prod(config.model.shape),)
    return importlib.import_module(f"discs.samplers.{name}").build_sampler(config)


# DISCS's sampler objects in a uniform form, with a tilt: a state of fixed keys and dtypes, and
# three results.
#
# DISCS's objects do the sampling unchanged, on flat states [B, N]. Where they differ is found by
# tracing `step` once on a stand-in model, before any data are read:
#
# - the final dtypes of the state (some samplers begin with integers and return floats), and added
# or removed keys;
# - whether a sampler evaluates the whole batch, or the states of one chain after the other.


@dataclasses.dataclass(frozen=True)
class States:
    """The states of a model of DISCS, with q values at each of N sites.

    DISCS writes a state as integers [N], or as `coordinates`, which models differentiate and
    informed samplers give them: the same zeros and ones where q = 2, one-hot vectors [N, q] where q
    > 2.

    Attributes:
      shape: of one state in DISCS, whose size is N.
      num_values: q.
    """

    shape: tuple[int, ...]
    num_values: int = 2

    @property
    def num_sites(self) -> int:
        """N."""
        return math.prod(self.shape)

    @property
    def sites(self) -> Sites:
        """The spins and gains of a flat state."""
        return Categories(self.num_values) if self.num_values > 2 else Sites()

    @property
    def spin_shape(self) -> tuple[int, ...]:
        """Shape of the spins and coordinates of one flat state."""
        return self.sites.shape(self.num_sites)

    def integers(self, x: Num[Array, "M *any"]) -> Int[Array, "M N"]:
        """Returns flat states, given as integers or coordinates, as integers of 8 bits."""
        return (x if x.ndim == 2 else jnp.argmax(x, axis=-1)).astype(jnp.int8)

    def coordinates(self, x: Int[Array, "M N"]) -> Num[Array, "M *spin_shape"]:
        """Returns flat states as coordinates."""
        return jax.nn.one_hot(x, self.num_values, dtype=jnp.float32) if self.sites.several else x

    def over_values(self, per_site: Num[Array, "*B N"] | Bool[Array, "*B N"]) -> Array:
        """Returns an array over sites with the axes of coordinates."""
        return per_site[..., None] if self.sites.several else per_site

    def in_shape(self, x: Num[AnyArray, "M *any"]) -> Num[AnyArray, "M *any"]:
        """Returns flat states, as integers or coordinates, in the shape of the model."""
        return x.reshape(-1, *self.shape, *x.shape[2:])

    def neighbour(self, x: Num[Array, "M N"], place: Int[Array, "M"]) -> Num[Array, "M N"]:
        """Returns x with one site changed: flipped, or set to the value at `place` in the flattened
        coordinates.
        """
        rows = jnp.arange(x.shape[0])
        site, value = (
            jnp.divmod(place, self.num_values)
            if self.sites.several
            else (place, 1 - x[rows, place])
        )
        return x.at[rows, site].set(value)


# A gain so low that the site is never proposed; DISCS's samplers use the same value for masked
# sites.
_NEVER = -1e9


class AdaptedParams(NamedTuple):
    """The parameters of the methods of `AdaptedModel`.

    Attributes:
      base: the model's own parameters.
      tilt: h of each chain; None for no tilt.
      origin: the states before the step [B, N], at which the tilt's part of the value is zero.
      mask: sites that may change; None for all. The others are never proposed, and are evaluated as
        in `origin`, so changes that a sampler makes to them have no effect.
    """

    base: Any
    tilt: Float[Array, "B *spin_shape"] | None = None
    origin: Any = None
    mask: Bool[Array, "N"] | None = None


class AdaptedModel:
    """A model of DISCS whose log-likelihood is tilted, f(x) + <s(x) - s(origin), h> for spins s, on
    flat states.

    DISCS's `logratio_in_neighborhood` returns three or four values and two kinds of neighbour
    function, depending on the model; here it always has one form. If a model has only the gradient
    or only the ratios, the other is derived.

    Attributes:
      model: DISCS's model, or any other with `forward` and a gradient or ratios.
      states: that the model takes, apart from their shape.
      as_floats: whether a model of two values is given float32 states even if the sampler uses
        integers.
    """

    def __init__(self, model: Any, states: States, as_floats: bool = False):
        self.model = model
        self.states = states
        self._as_floats = as_floats and not states.sites.several

    def forward(self, params: AdaptedParams, x: Num[Array, "M *any"]) -> Float[Array, "M"]:
        """Returns the values of M states; M = B, or B = 1."""
        x = self._held(params, x)
        return self.model.forward(params.base, self._given(x)) + self._tilt_change(params, x)

    def get_value_and_grad(self, params: AdaptedParams, x: Num[Array, "B *spin_shape"]):
        """Returns the values, and gradients with respect to coordinates, which give the gains
        (`Sites.gains`).
        """
        held_x = self._held(params, x)
        value, grad = self._gradient(params.base, held_x)
        if params.tilt is not None:
            grad = grad + (SPIN_LENGTH if self.states.sites.several else 2.0) * params.tilt
        if params.mask is not None:
            never = self._as_gradient(x, jnp.full_like(grad, _NEVER))
            grad = jnp.where(self.states.over_values(params.mask), grad, never)
        return value + self._tilt_change(params, held_x), grad

    def logratio_in_neighborhood(self, params: AdaptedParams, x: Num[Array, "B *spin_shape"]):
        """Returns the values, the gains, how many evaluations they cost, and `neighbor(params, x,
        place)`.
        """
        held_x = self._held(params, x)
        value, gains, calls = self._ratios(params.base, held_x)
        if params.tilt is not None:
            gains = gains + jax.vmap(self.states.sites.tilt_gains)(
                self.states.integers(held_x), params.tilt
            )
        if params.mask is not None:
            gains = jnp.where(self.states.over_values(params.mask), gains, _NEVER)
        value = value + self._tilt_change(params, held_x)
        return value, gains, calls, lambda params, x, place: self.states.neighbour(x, place)

    def _gradient(self, params: Any, x: Num[Array, "B *spin_shape"]):
        """Returns the model's values and gradients, derived from its ratios if it has no
        gradient.
        """
        if hasattr(self.model, "get_value_and_grad"):
            try:
                value, grad = self.model.get_value_and_grad(params, self._given(x))
                return value, grad.reshape(x.shape)
            except NotImplementedError:
                pass  # DISCS's abstract method
        value, gains, _ = self._ratios(params, x)
        return value, self._as_gradient(x, gains)

    def _ratios(self, params: Any, x: Num[Array, "B *spin_shape"]):
        """Returns the model's values, gains and cost; evaluates every neighbour if the model has no
        ratios.
        """
        if hasattr(self.model, "logratio_in_neighborhood"):
            *value, gains, calls, _ = self.model.logratio_in_neighborhood(params, self._given(x))
            value = value[0] if value else self.model.forward(params, self._given(x))
            return value, gains.reshape(x.shape), calls
        value = self.model.forward(params, self._given(x))
        integers = self.states.integers(x).astype(jnp.int32)
        size = math.prod(self.states.spin_shape)

        def gain(place):
            neighbour = self.states.neighbour(integers, jnp.full(x.shape[0], place))
            return self.model.forward(params, self._given(neighbour)) - value

        gains = jnp.moveaxis(jax.lax.map(gain, jnp.arange(size)), 0, 1)
        return value, gains.reshape(x.shape), size + 1

    def _as_gradient(
        self, x: Num[Array, "B *spin_shape"], gains: Float[Array, "B *spin_shape"]
    ) -> Array:
        return jax.vmap(self.states.sites.gradient)(self.states.integers(x), gains)

    def _given(self, x: Num[Array, "M *any"]) -> Num[AnyArray, "M *any"]:
        """Returns states as the model takes them."""
        x = self.states.in_shape(x)
        return x.astype(jnp.float32) if self._as_floats else x

    def _held(self, params: AdaptedParams, x: Num[Array, "M *any"]) -> Num[Array, "M *any"]:
        """Returns x with the sites outside the mask as in `origin`."""
        if params.mask is None:
            return x
        mask = params.mask
        origin = params.origin
        if x.ndim > 2:
            mask = self.states.over_values(mask)
            origin = self.states.coordinates(origin)
        return jnp.where(mask, x, origin.astype(x.dtype))

    def _tilt_change(
        self, params: AdaptedParams, x: Num[Array, "M *any"]
    ) -> Float[Array, "M"] | float:
        """Returns <s(x) - s(origin), tilt>."""
        if params.tilt is None:
            return 0.0
        x = self.states.integers(x)
        tilt = jnp.broadcast_to(params.tilt, (len(x), *params.tilt.shape[1:]))
        origin = jnp.broadcast_to(self.states.integers(params.origin), x.shape)
        return jax.vmap(self.states.sites.tilt_change)(origin, tilt, x)


State = dict[str, Array]

# No sampler evaluates this many states of one chain, so the two ways of evaluating cannot be
# confused.
_TRACED_CHAINS = 1009


class _CountingModel:
    """A model that returns zeros and keeps the numbers of states that it was given at a time."""

    def __init__(self):
        self.counts: set[int] = set()

    def forward(self, params, x):
        """Returns zeros."""
        self.counts.add(x.shape[0])
        return jnp.zeros(x.shape[0], jnp.float32)


class DiscsSampler:
    """A sampler of DISCS on a tilted target.

    Attributes:
      name: DISCS's name for it.
      states: of the model.

    Raises:
      InputError: its `step` does not work for these states.
    """

    def __init__(self, name: str, sampler: Any, states: States, fixes: bool = False):
        self.name = name
        self.states = states
        self._sampler = sampler
        self._fixes = fixes
        if fixes:
            mend(name, sampler)
        counting = _CountingModel()
        initial, final = self._trace(AdaptedModel(counting, states))
        self._dtypes = {key: final.get(key, leaf).dtype for key, leaf in initial.items()}
        self._goes_chain_by_chain = not counting.counts <= {_TRACED_CHAINS}

    def _trace(self, model: AdaptedModel) -> tuple[State, State]:
        """Returns shapes and dtypes of the sampler's state before and after a step."""

        def step(rng, x):
            initial = {
                key: jnp.asarray(leaf) for key, leaf in self._sampler.make_init_state(rng).items()
            }
            final = self._sampler.step(model, rng, x, AdaptedParams(None), dict(initial))[1]
            return initial, {key: jnp.asarray(final[key]) for key in final}

        x = jax.ShapeDtypeStruct((_TRACED_CHAINS, self.states.num_sites), jnp.int32)
        try:
            return jax.eval_shape(step, jax.ShapeDtypeStruct((2,), jnp.uint32), x)
        except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
            raise InputError(
                f"sampler {self.name!r} does not take states of {self.states.num_sites} sites: "
                + " ".join(str(error).split())
            ) from error

    def make_init_state(self, rng: Array) -> State:
        """Returns the sampler's own initial state, with its final dtypes."""
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
        """Makes the sampler's own step on the log-likelihood plus <s(x), tilt>, where s are the
        spins.

        A sampler that goes through the chains one by one cannot tell the model which of them it
        evaluates. With a tilt or a mask it is given batches of one chain, each with a key of its
        own; the state is that of the first.

        Returns:
          new states, a state with the same keys and dtypes, and the mean acceptance (1 if there is
          none).
        """
        flat = x.reshape(x.shape[0], self.states.num_sites)
        mask = x_mask.reshape(-1) if self._fixes and x_mask is not None else None
        adapted = AdaptedModel(model, self.states, as_floats=self._fixes)

        def batch_step(rng, x, tilt):
            params = AdaptedParams(model_param, tilt, x, mask)
            new_x, new_state, *acceptance = self._sampler.step(
                adapted, rng, x, params, dict(state), x_mask
            )
            if mask is not None:
                new_x = jnp.where(mask, new_x, x)
            new_state = {
                key: jnp.asarray(new_state.get(key, leaf), leaf.dtype)
                for key, leaf in state.items()
            }
            return new_x, new_state, jnp.float32(acceptance[0] if acceptance else 1)

        if self._goes_chain_by_chain and not (tilt is None and mask is None):
            of_one = jax.tree.map(lambda leaf: leaf[:, None], (flat, tilt))
            new_x, states, acceptances = jax.vmap(batch_step)(
                jax.random.split(rng, len(flat)), *of_one
            )
            new_state = jax.tree.map(lambda leaf: leaf[0], states)
            acceptance = jnp.mean(acceptances)
        else:
            new_x, new_state, acceptance = batch_step(rng, flat, tilt)
        return new_x.reshape(x.shape).astype(x.dtype), new_state, acceptance
