"""Makes samplers of the plugin importable under `discs`, where DISCS looks for a sampler by its name.

| module | holds |
|---|---|
| discs.samplers.sl_NAME | NAME of DISCS, or of sl_discs, localized |
| discs.samplers.sldiscs_NAME | NAME of sl_discs |
| discs.samplers.configs.sl_NAME_config, .sldiscs_NAME_config | their configs |

Nothing is written to the folder of DISCS: a finder on `sys.meta_path` provides these names only.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import re
import sys
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32
from ml_collections import config_dict

from sl_discs.chains.annealing import Annealing, TemperatureSchedule
from sl_discs.discs_plugin import upstream
from sl_discs.discs_plugin.base_sampler import DiscsSampler, States
from sl_discs.discs_plugin.plugin_samplers import LocalizedSampler, OwnSampler
from sl_discs.errors import InputError
from sl_discs.localization.method import build_localization, build_method, method_config
from sl_discs.localization.schedule import Localization
from sl_discs.models.base import MOST_VALUES
from sl_discs.samplers.registry import PREFIX, is_localized, known_samplers

OWN = "sldiscs_"
_MODULE = re.compile(rf"discs\.samplers\.(configs\.)?(?P<sampler>(?:{PREFIX}|{OWN})\w+?)(?P<config>_config)?")

# DISCS's models of several values whose gradients give exact gains.
_LINEAR_IN_EACH_SITE = ("categorical", "potts")

_LOCALIZATION_FIELDS = tuple(field.name for field in dataclasses.fields(Localization))


def sampler_names() -> list[str]:
    """Returns every sampler that the plugin adds to DISCS, to which its own samplers need not be added."""
    bases = [name for name in known_samplers() if not is_localized(name)]
    own = [OWN + name for name in bases if not name.startswith(upstream.NAMESPACE)]
    return [*(PREFIX + name for name in upstream.sampler_names()), *own, *(PREFIX + name for name in own)]


def sampler_config(name: str) -> config_dict.ConfigDict:
    """Returns the config of one of those samplers: the base sampler's fields, then those of localization.

    Raises:
      InputError: an unknown sampler.
    """
    if name not in sampler_names():
        raise InputError(f"there is no sampler {name!r}; known: {', '.join(sampler_names())}")
    base = name.removeprefix(PREFIX)
    config = method_config(base.removeprefix(OWN)) if base.startswith(OWN) else upstream.sampler_config(base)
    with config.unlocked():
        if name != base:
            config.update(dataclasses.asdict(Localization()))
        config.name = name
    return config


def build_sampler(name: str, config: config_dict.ConfigDict, fixes: bool) -> Any:
    """Returns the sampler that DISCS requests by `build_sampler(config)`, where `config` is its whole config.

    Raises:
      InputError: a sampler that does not take the model's number of values, or a field that is unknown or has an
        invalid value.
    """
    states = States(tuple(config.model.shape), config.model.get("num_categories", 2))
    chains = local_chains(config.experiment, jax.local_device_count())
    fields = {key: value for key, value in config.sampler.to_dict().items() if key != "name"}
    base, length = name.removeprefix(PREFIX), config.experiment.chain_length
    localization, temperatures = None, None
    if name != base:
        schedule = {key: fields.pop(key) for key in _LOCALIZATION_FIELDS if key in fields}
        localization = build_localization(name, schedule)
        if localization.anneal == "level":
            temperatures = _temperatures_by_level(config.experiment, localization)
    if localization is not None and not base.startswith(OWN):
        theirs = upstream.build_upstream_sampler(base, config)
        # DISCS's samplers for several values keep their number; locallybalanced does too, but has no form for them.
        _check_values(config, states, hasattr(theirs, "num_categories") and base != "locallybalanced")
        return LocalizedSampler(DiscsSampler(base, theirs, states, fixes), localization, length, chains, temperatures)
    sampler = build_method({"name": base.removeprefix(OWN), **fields}, chains).sampler
    _check_values(config, states, sampler.several_values)
    if states.num_values > 2 and base == f"{OWN}gibbs" and config.model.name not in _LINEAR_IN_EACH_SITE:
        raise InputError(
            f"{config.sampler.name} needs exact gains, which gradients of {config.model.name} are not; "
            f"use {OWN}metropolis, or gibbs or sl_gibbs of DISCS"
        )
    return OwnSampler(sampler, chains, states, localization, length, temperatures)


def _temperatures_by_level(
    experiment: config_dict.ConfigDict, localization: Localization
) -> Float32[np.ndarray, "T"]:
    """Returns the temperature of each step, where DISCS's annealing begins anew in each level."""
    if "t_schedule" not in experiment:
        raise InputError(
            "sampler_config.anneal is 'level', but this experiment of DISCS has no t_schedule to begin anew in each "
            "level; set it to 'run'"
        )
    fields = {field.name for field in dataclasses.fields(Annealing)}
    annealing = Annealing(**{name: value for name, value in experiment.items() if name in fields})
    length = experiment.chain_length
    return TemperatureSchedule(annealing, length, np.asarray(localization.levels(length).last))[:]


def local_chains(experiment: config_dict.ConfigDict, devices: int) -> int:
    """Returns the number of chains of an instance on one device, in DISCS's arrangement.

    DISCS divides the instances of a combinatorial problem among devices; if there are fewer instances than devices,
    or for other problems, it divides the chains.
    """
    on_one_device = not experiment.run_parallel or devices == 1
    if on_one_device or (experiment.evaluator == "co_eval" and experiment.num_models >= devices):
        return experiment.batch_size
    return experiment.batch_size // devices


def _check_values(config: config_dict.ConfigDict, states: States, takes_several: bool) -> None:
    most = MOST_VALUES if takes_several else 2
    if states.num_values < 2:
        raise InputError(f"model_config.num_categories is {states.num_values}; expected at least 2")
    if states.num_values > most:
        raise InputError(
            f"{config.sampler.name} needs a model of at most {most} values at each site; {config.model.name} has "
            f"num_categories = {states.num_values}"
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
    """Puts the finder on `sys.meta_path` once; a further call only changes whether samplers are corrected."""
    finder = next((one for one in sys.meta_path if isinstance(one, PluginFinder)), None)
    if finder is None:
        finder = PluginFinder()
        sys.meta_path.insert(0, finder)
    finder.fixes = fixes
