"""Makes samplers of the plugin importable under `discs`, where DISCS looks for a sampler by its
name.

| module | holds |
|---|---|
| discs.samplers.sl_NAME | NAME of DISCS, or of sl_discs, localized |
| discs.samplers.sldiscs_NAME | NAME of sl_discs |
| discs.samplers.configs.sl_NAME_config, .sldiscs_NAME_config | their configs |

Nothing is written to the folder of DISCS: a finder on `sys.meta_path` provides these names only.
"""

from __future__ import annotations

import abc
import dataclasses
import importlib.abc
import importlib.machinery
import re
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int
from ml_collections import config_dict

from sl_discs.chains.annealing import Annealing, TemperatureSchedule
from sl_discs.discs_plugin import upstream
from sl_discs.discs_plugin.upstream import DiscsSampler, States
from sl_discs.localization.algorithm import Localized, LocalizedState, observe, tilt_of
from sl_discs.localization.method import build_localization, build_method, method_config
from sl_discs.localization.schedule import Levels, Localization
from sl_discs.models import keys
from sl_discs.models.batching import AnyArray, cond_for_batch
from sl_discs.models.functions import GradientModel, ValueAndGrad
from sl_discs.models.model import MOST_VALUES, Sites
from sl_discs.samplers.registry import IN_DISCS, PREFIX, base_samplers
from sl_discs.samplers.sampler import Sampler
from sl_discs.samplers.single_site import Gibbs
from sl_discs.support.errors import InputError

_MODULE = re.compile(
    rf"discs\.samplers\.(configs\.)?(?P<sampler>(?:{PREFIX}|{IN_DISCS})\w+?)(?P<config>_config)?"
)

# DISCS's models of several values whose gradients give exact gains.
_LINEAR_IN_EACH_SITE = ("categorical", "potts")

_LOCALIZATION_FIELDS = tuple(field.name for field in dataclasses.fields(Localization))


def sampler_names() -> list[str]:
    """Returns every sampler that the plugin adds to DISCS, to which its own samplers need not be
    added.
    """
    own = [IN_DISCS + name for name in base_samplers()]
    return [
        *(PREFIX + name for name in upstream.sampler_names()),
        *own,
        *(PREFIX + name for name in own),
    ]


def sampler_config(name: str) -> config_dict.ConfigDict:
    """Returns the config of one of those samplers: the base sampler's fields, then those of
    localization.

    Raises:
      InputError: an unknown sampler.
    """
    if name not in sampler_names():
        raise InputError(f"there is no sampler {name!r}; known: {', '.join(sampler_names())}")
    base = name.removeprefix(PREFIX)
    config = (
        method_config(base.removeprefix(IN_DISCS))
        if base.startswith(IN_DISCS)
        else upstream.sampler_config(base)
    )
    with config.unlocked():
        if name != base:
            config.update(dataclasses.asdict(Localization()))
        config.name = name
    return config


def build_sampler(name: str, config: config_dict.ConfigDict, fixes: bool) -> Any:
    """Returns the sampler that DISCS requests by `build_sampler(config)`, where `config` is its
    whole config.

    Raises:
      InputError: a sampler that does not take the model's number of values, or a field that is
        unknown or has an invalid value.
    """
    states = States(tuple(config.model.shape), config.model.get("num_categories", 2))
    chains = local_chains(config.experiment, jax.local_device_count())
    fields = {key: value for key, value in config.sampler.to_dict().items() if key != "name"}
    base = name.removeprefix(PREFIX)
    length = config.experiment.chain_length
    localization, temperatures = None, None
    if name != base:
        schedule = {key: fields.pop(key) for key in _LOCALIZATION_FIELDS if key in fields}
        localization = build_localization(name, schedule)
        if localization.anneal == "level":
            temperatures = _temperatures_by_level(config.experiment, localization)
    if localization is not None and not base.startswith(IN_DISCS):
        theirs = upstream.build_upstream_sampler(base, config)
        # DISCS's samplers for several values keep their number; locallybalanced does too, but has
        # no form for them.
        takes_several = hasattr(theirs, "num_categories") and base != "locallybalanced"
        _check_values(name, takes_several, config.model.name, states)
        return LocalizedSampler(
            DiscsSampler(base, theirs, states, fixes), localization, length, chains, temperatures
        )
    sampler = build_method({"name": base.removeprefix(IN_DISCS), **fields}).sampler
    check_own(config.sampler.name, sampler, config.model.name, states)
    return OwnSampler(sampler, chains, states, localization, length, temperatures)


def _temperatures_by_level(
    experiment: config_dict.ConfigDict, localization: Localization
) -> Float32[np.ndarray, "T"]:
    """Returns the temperature of each step, where DISCS's annealing begins anew in each level."""
    if "t_schedule" not in experiment:
        raise InputError(
            "sampler_config.anneal is 'level', but this experiment of DISCS has no t_schedule to "
            "begin anew in each level; set it to 'run'"
        )
    fields = {field.name for field in dataclasses.fields(Annealing)}
    annealing = Annealing(**{name: value for name, value in experiment.items() if name in fields})
    length = experiment.chain_length
    return TemperatureSchedule(annealing, length, np.asarray(localization.levels(length).last))[:]


def local_chains(experiment: config_dict.ConfigDict, devices: int) -> int:
    """Returns the number of chains of an instance on one device, in DISCS's arrangement.

    DISCS divides the instances of a combinatorial problem among devices; if there are fewer
    instances than devices, or for other problems, it divides the chains.
    """
    on_one_device = not experiment.run_parallel or devices == 1
    if on_one_device or (experiment.evaluator == "co_eval" and experiment.num_models >= devices):
        return experiment.batch_size
    return experiment.batch_size // devices


def _check_values(name: str, takes_several: bool, model: str, states: States) -> None:
    most = MOST_VALUES if takes_several else 2
    if states.num_values < 2:
        raise InputError(f"model_config.num_categories is {states.num_values}; expected at least 2")
    if states.num_values > most:
        raise InputError(
            f"{name} needs a model of at most {most} values at each site; {model} has "
            f"num_categories = {states.num_values}"
        )


def check_own(name: str, sampler: Sampler, model: str, states: States) -> None:
    """Raises InputError if a sampler of sl_discs, by its name in messages, does not take the states
    of a model of DISCS, or cannot have its gains.
    """
    _check_values(name, sampler.several_values, model, states)
    if states.num_values > 2 and type(sampler) is Gibbs and model not in _LINEAR_IN_EACH_SITE:
        raise InputError(
            f"{name} needs exact gains, which gradients of {model} are not; use metropolis, or in "
            "DISCS its own gibbs or sl_gibbs"
        )


class PluginFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and makes the modules in the table above.

    Attributes:
      fixes: whether samplers that are built from now on are corrected.
    """

    fixes = False

    def find_spec(self, fullname, path=None, target=None):
        name = _MODULE.fullmatch(fullname)
        if name is None or name["sampler"] not in sampler_names():
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin="sl_discs")

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = _MODULE.fullmatch(module.__name__)
        if name["config"]:
            module.get_config = lambda: sampler_config(name["sampler"])
        else:
            module.build_sampler = lambda config: build_sampler(name["sampler"], config, self.fixes)


def install(fixes: bool) -> None:
    """Puts the finder on `sys.meta_path` once; a further call only changes whether samplers are
    corrected.
    """
    finder = next(
        (candidate for candidate in sys.meta_path if isinstance(candidate, PluginFinder)), None
    )
    if finder is None:
        finder = PluginFinder()
        sys.meta_path.insert(0, finder)
    finder.fixes = fixes


# Samplers in DISCS's calling convention: DISCS's own, localized, and those of sl_discs, localized
# or not.

# Counters under the step's key, far from those that jax.random uses for the base sampler.
_FIRST, _MOVE = 0x534C0000, 0x534C0001


def _first(y: Float[Array, "B *spin_shape"], key: Array, noise) -> Float[Array, "B *spin_shape"]:
    """Draws Y_0 of a batch."""
    return noise * keys.normals(key, y.shape)


class _BatchSampler(abc.ABC):
    """A sampler of batches of B = `num_chains` chains on one device, whose state is a dictionary.

    It has num_ll_calls and steps, which DISCS reads, and `chains`; of localized chains, that is a
    `LocalizedState`. `levels` are those of localization; None without it. `temperatures` are those
    of the steps, in place of the one in the model's parameters; None: the latter counts.
    """

    def __init__(
        self,
        states: States,
        num_chains: int,
        levels: Levels | None,
        temperatures: Float32[np.ndarray, "T"] | None,
    ):
        self._states = states
        self._num_chains = num_chains
        self._levels = levels
        self._temperatures = temperatures

    @abc.abstractmethod
    def _move(self, model, rng, x, model_param, state, x_mask) -> tuple[Array, Array, Any, Array]:
        """Makes the step of a state that has begun; returns states, num_ll_calls, `chains` and the
        acceptance.
        """

    def step(
        self,
        model: Any,
        rng: Array,
        x: Int[Array, "B *shape"],
        model_param: Any,
        state: dict[str, Any],
        x_mask: Bool[Array, "*shape"] | None = None,
    ) -> tuple[Int[Array, "B *shape"], dict[str, Any], Float[Array, ""]]:
        """Makes one step of each chain; before the first one, Y_0 ~ N(0, t_0 sigma^2) is drawn.

        DISCS gives all graphs and devices the same initial state; only the keys of their steps tell
        them apart.

        Args:
          model: of the log-likelihood, temperature included.
          rng: a new key for each call.
          x: states.
          model_param: the model's parameters.
          state: before the step.
          x_mask: sites that exist; None for all.
        """
        if self._levels is not None:
            expected = (self._num_chains, *self._states.shape)
            if x.shape != expected:
                raise InputError(
                    f"a localized sampler got states of shape {x.shape}, but was built for "
                    f"{expected} from config.experiment.batch_size and config.model.shape"
                )
            chains = state["chains"]
            key = keys.fold(keys.from_rng(rng), _FIRST)
            begins = jnp.all(chains.step == 0)
            noise = jnp.float32(self._levels.first_noise)
            state = state | {
                "chains": chains._replace(y=cond_for_batch(begins, _first, chains.y, key, noise))
            }
        if self._temperatures is not None:
            temperature = jnp.asarray(model_param["temperature"])
            now = jnp.asarray(self._temperatures)[
                jnp.minimum(state["steps"], len(self._temperatures) - 1)
            ]
            model_param = {
                **model_param,
                "temperature": jnp.broadcast_to(now, temperature.shape).astype(temperature.dtype),
            }
        new_x, calls, chains, acceptance = self._move(model, rng, x, model_param, state, x_mask)
        return (
            new_x,
            {"num_ll_calls": calls, "steps": state["steps"] + 1, "chains": chains},
            acceptance,
        )

    def final_sample(self, state: dict[str, Any]) -> Int[AnyArray, "B *shape"]:
        """Returns sign(Y_K / alpha(t_K)) of each chain, or the largest entry of each site, as
        integers.

        It is a sample only if the run localizes (`Localization.localizes`); otherwise the chain's
        state is the sample.
        """
        return self._states.in_shape(self._states.sites.decode(state["chains"].y))


class LocalizedSampler(_BatchSampler):
    """Algorithm 1 of Wang et al. (ICML 2025) around a sampler of DISCS.

    Such a sampler steps a whole batch, so `localization.algorithm` is applied to the batch as to
    one chain: `base` of the `LocalizedState` is the base sampler's state, and `y` and `mean` are
    [B, N], or [B, N, q] for q > 2 values. Later steps than `chain_length` stay at the last level.
    The base sampler gets the key, the states, the parameters and the mask as DISCS passes them, but
    for the temperature where `temperatures` are given.

    Raises:
      InputError: a hyperparameter out of its range.
    """

    def __init__(
        self,
        base: DiscsSampler,
        localization: Localization,
        chain_length: int,
        num_chains: int,
        temperatures: Float32[np.ndarray, "T"] | None = None,
    ):
        super().__init__(base.states, num_chains, localization.levels(chain_length), temperatures)
        self._base = base
        self._tilts = localization.tilt

    def make_init_state(self, rng: Array) -> dict[str, Any]:
        """Returns the base sampler's initial state; the observation is drawn before the
        first step.
        """
        base = self._base.make_init_state(rng)
        zeros = jnp.zeros((self._num_chains, *self._states.spin_shape))
        chains = LocalizedState(base, jnp.int32(0), jnp.int32(0), zeros, zeros)
        return {"num_ll_calls": base["num_ll_calls"], "steps": jnp.int32(0), "chains": chains}

    def _move(self, model, rng, x, model_param, state, x_mask):
        chains = state["chains"]
        tilt = None
        if self._tilts:
            on = 1.0 if x_mask is None else self._states.over_values(x_mask.reshape(-1))
            tilt = tilt_of(self._levels, chains) * on
        new_x, base, acceptance = self._base.step(
            model, rng, x, model_param, chains.base, x_mask, tilt
        )
        spins = jax.vmap(self._states.sites.spins)(self._states.integers(new_x.reshape(len(x), -1)))
        chains = observe(keys.fold(keys.from_rng(rng), _MOVE), self._levels, chains, base, spins)
        return new_x, base["num_ll_calls"], chains, acceptance


@dataclasses.dataclass(frozen=True)
class BatchModel(GradientModel):
    """A model for single flat states, made from one of DISCS that gives values and gradients of
    batches.

    Attributes:
      inner: DISCS's model.
      states: that it takes.
      padding: number of sites behind those of the states, which do not count.
    """

    inner: Any
    states: States
    padding: int = 0

    @property
    def num_sites(self) -> int:  # type: ignore[override]  # a field of other models
        """N, with padding."""
        return self.states.num_sites + self.padding

    @property
    def sites(self) -> Sites:  # type: ignore[override]  # a field of other models
        """The sites of a flat state."""
        return self.states.sites

    def init(self, params, x):
        states = self.states
        z = states.in_shape(states.coordinates(x[None, : states.num_sites])).astype(jnp.float32)
        value, grad = self.inner.get_value_and_grad(params, z)
        grad = grad.reshape(states.spin_shape).astype(jnp.float32)
        padded = jnp.zeros(states.sites.shape(self.num_sites), jnp.float32)
        return ValueAndGrad(value[0].astype(jnp.float32), padded.at[: states.num_sites].set(grad))


class OwnSampler(_BatchSampler):
    """A sampler of sl_discs; every chain adapts on its own, and `chains` are its states, leaves [B,
    ...].

    Args:
      sampler: the base sampler; for more than two values, one that takes them
        (`Sampler.several_values`).
      num_chains: B, on one device.
      states: of its batches.
      localization: around it; None: the base sampler itself.
      chain_length: number of MCMC steps in all, of localization.
      temperatures: of the steps, in place of the one in the model's parameters.

    Raises:
      InputError: a hyperparameter of localization out of its range.
    """

    def __init__(
        self,
        sampler: Sampler,
        num_chains: int,
        states: States,
        localization: Localization | None = None,
        chain_length: int = 0,
        temperatures: Float32[np.ndarray, "T"] | None = None,
    ):
        levels = localization.levels(chain_length) if localization else None
        super().__init__(states, num_chains, levels, temperatures)
        self._base = sampler
        self._sampler = sampler if levels is None else Localized(sampler, levels)

    def make_init_state(self, rng: Array) -> dict[str, Any]:
        """Returns counters at zero, and the sampler's first state for each chain."""
        # Outside combinatorial problems DISCS passes its batch of keys, one for each model, of
        # which there is one.
        key = keys.from_rng(rng).reshape(-1, 2)[0]
        chains = self._sampler.make_init_state(key, self._num_chains, self._states.spin_shape)
        return {"num_ll_calls": jnp.int32(0), "steps": jnp.int32(0), "chains": chains}

    def _move(self, model, rng, x, model_param, state, x_mask):
        flat = x.reshape(x.shape[0], -1)
        mask = None if x_mask is None else x_mask.reshape(-1)
        own = BatchModel(model, self._states)
        flat, chains, acceptance = self._sampler.step(
            own, rng, flat, model_param, state["chains"], mask
        )
        return (
            flat.reshape(x.shape),
            state["num_ll_calls"] + self._base.calls_a_step,
            chains,
            acceptance,
        )
