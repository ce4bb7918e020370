"""Makes modules of the plugin importable under `discs`, where DISCS looks for a sampler or model by its name.

| module | holds |
|---|---|
| discs.samplers.sl_NAME | NAME of DISCS, or of sl_discs, localized |
| discs.samplers.sldiscs_NAME | NAME of sl_discs |
| discs.samplers.configs.*_config | the config of either |
| discs.models.sldiscs_PROBLEM | mis, maxcut, maxclique of sl_discs |
| discs.models.configs.sldiscs_PROBLEM_config | its config |
| discs.models.configs.sldiscs_PROBLEM.* | the config of a family |

Nothing is written to the folder of DISCS: a finder on `sys.meta_path` provides these names only.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import math
import re
import sys
from collections.abc import Callable
from typing import Any

import jax
from ml_collections import config_dict

from sl_discs.discs_plugin import own, upstream
from sl_discs.discs_plugin.base_sampler import BaseSampler, States
from sl_discs.discs_plugin.localized_sampler import LocalizedSampler
from sl_discs.discs_plugin.own import OwnProblem, OwnSampler
from sl_discs.errors import InputError
from sl_discs.localization.method import build_localization, build_method, method_config
from sl_discs.localization.schedule import Localization
from sl_discs.models.sites import MOST_VALUES
from sl_discs.problems.graph_kind import GRAPH_KINDS
from sl_discs.samplers.registry import PREFIX, is_localized, known_samplers

OWN = "sldiscs_"
# The problems that DISCS poses; its experiments maximise, and report the model without a constant.
_PROBLEMS = tuple(name for name, kind in GRAPH_KINDS.items() if kind.discs_family)

# DISCS's models of several values whose gradients give exact gains.
_LINEAR_IN_EACH_SITE = ("categorical", "potts")

_LOCALIZATION_FIELDS = tuple(field.name for field in dataclasses.fields(Localization))


def sampler_names() -> list[str]:
    """Every sampler that the plugin adds to DISCS, to which its own samplers need not be added."""
    bases = [name for name in known_samplers() if not is_localized(name)]
    own = [OWN + name for name in bases if not name.startswith(upstream.NAMESPACE)]
    return [*(PREFIX + name for name in upstream.sampler_names()), *own, *(PREFIX + name for name in own)]


def sampler_config(name: str) -> config_dict.ConfigDict:
    """The config of one of those samplers: the base sampler's fields, then those of localization.

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


def build_sampler(name: str, config: config_dict.ConfigDict, fixes: frozenset[str]) -> Any:
    """The sampler that DISCS requests by `build_sampler(config)`, where `config` is its whole config.

    Raises:
      InputError: a sampler that does not take the model's number of values, or a field that is unknown or has an
        invalid value.
    """
    states = States(tuple(config.model.shape), config.model.get("num_categories", 2))
    chains = upstream.local_chains(config.experiment, jax.local_device_count())
    fields = {key: value for key, value in config.sampler.to_dict().items() if key != "name"}
    base = name.removeprefix(PREFIX)
    schedule = {key: fields.pop(key) for key in _LOCALIZATION_FIELDS if key in fields} if name != base else {}
    localization = None if name == base else build_localization(name, schedule)
    if base.startswith(OWN):
        sampler = build_method({"name": base.removeprefix(OWN), **fields}, chains).sampler
        _check_values(config, states, MOST_VALUES if sampler.several_values else 2)
        if states.several and base == f"{OWN}gibbs" and config.model.name not in _LINEAR_IN_EACH_SITE:
            raise InputError(
                f"{config.sampler.name} needs exact gains, which gradients of {config.model.name} are not; "
                f"use {OWN}metropolis, or gibbs or sl_gibbs of DISCS"
            )
        return OwnSampler(sampler, chains, states, localization, config.experiment.chain_length)
    theirs = upstream.build_upstream_sampler(base, config)
    # DISCS's samplers for several values keep their number; locallybalanced does too, but has no form for them.
    takes_several = hasattr(theirs, "num_categories") and base != "locallybalanced"
    _check_values(config, states, math.inf if takes_several else 2)
    sampler = BaseSampler(base, theirs, states, fixes)
    if localization is None:
        return sampler
    return LocalizedSampler(sampler, localization, config.experiment.chain_length, chains)


def _check_values(config: config_dict.ConfigDict, states: States, most: float) -> None:
    if states.num_values < 2:
        raise InputError(f"model_config.num_categories is {states.num_values}; expected at least 2")
    if states.num_values > most:
        raise InputError(
            f"{config.sampler.name} needs a model of at most {most} values at each site; {config.model.name} has "
            f"num_categories = {states.num_values}"
        )


@dataclasses.dataclass(frozen=True)
class _Rule:
    """Modules with matching names, whose contents `contents` makes from the match; `exists` says which exist."""

    pattern: str
    exists: Callable[[str], bool]
    contents: Callable[[str], dict[str, Any]]
    is_package: bool = False


class PluginFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and makes the modules in the table above.

    Attributes:
      fixes: fixes for samplers that are built from now on.
    """

    def __init__(self):
        self.fixes: frozenset[str] = frozenset()
        added, problem = rf"((?:{PREFIX}|{OWN})\w+?)", rf"{OWN}({'|'.join(_PROBLEMS)})"
        self._rules = [
            _Rule(rf"discs\.samplers\.configs\.{added}_config", self._is_sampler, self._sampler_config_module),
            _Rule(rf"discs\.samplers\.{added}", self._is_sampler, self._sampler_module),
            _Rule(rf"discs\.models\.configs\.{problem}_config", self._is_problem, self._model_config_module),
            _Rule(rf"discs\.models\.configs\.{problem}\.\w+", self._is_problem, self._graph_config_module),
            _Rule(rf"discs\.models\.configs\.{problem}", self._is_problem, lambda name: {}, is_package=True),
            _Rule(rf"discs\.models\.{problem}", self._is_problem, self._model_module),
        ]

    def _match(self, fullname: str) -> tuple[_Rule, str] | None:
        for rule in self._rules:
            match = re.fullmatch(rule.pattern, fullname)
            if match and rule.exists(match[1]):
                return rule, match[1]
        return None

    def find_spec(self, fullname, path=None, target=None):
        found = self._match(fullname) if fullname.startswith("discs.") else None
        if found is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin="sl_discs", is_package=found[0].is_package)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        rule, name = self._match(module.__name__)
        vars(module).update(rule.contents(name))

    @staticmethod
    def _is_sampler(name: str) -> bool:
        return name in sampler_names()

    @staticmethod
    def _is_problem(name: str) -> bool:
        return name in _PROBLEMS

    def _sampler_module(self, name: str) -> dict[str, Any]:
        return {"build_sampler": lambda config: build_sampler(name, config, self.fixes)}

    def _sampler_config_module(self, name: str) -> dict[str, Any]:
        return {"get_config": lambda: sampler_config(name)}

    def _model_module(self, problem: str) -> dict[str, Any]:
        return {"build_model": lambda config: OwnProblem(problem, config)}

    def _model_config_module(self, problem: str) -> dict[str, Any]:
        return {"get_config": lambda: own.problem_config(problem, OWN + problem)}

    def _graph_config_module(self, problem: str) -> dict[str, Any]:
        del problem
        return {"get_model_config": lambda cfg_str: own.graph_config()}


def install(fixes: frozenset[str]) -> None:
    """Puts the finder on `sys.meta_path` once; a further call only changes the fixes."""
    for finder in sys.meta_path:
        if isinstance(finder, PluginFinder):
            finder.fixes = fixes
            return
    finder = PluginFinder()
    finder.fixes = fixes
    sys.meta_path.insert(0, finder)
