"""The plugin's access to DISCS: checks that it is present, and its samplers by name."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import math
import pkgutil
from pathlib import Path
from typing import Any

from ml_collections import config_dict

from sl_discs.errors import InputError, MissingExtra

# Of the names of DISCS's samplers in this project's runner.
NAMESPACE = "discs:"

_WHERE = "clone https://github.com/google-research/discs and put the folder that holds setup.py on PYTHONPATH"

# Modules of discs.samplers that are not samplers.
_NOT_SAMPLERS = ("abstractsampler", "configs")


def require_discs() -> None:
    """Checks that there is a package `discs` with DISCS's samplers; imports none of them.

    Raises:
      MissingExtra: there is none.
    """
    spec = importlib.util.find_spec("discs")
    folders = [] if spec is None else spec.submodule_search_locations or []
    if not any((Path(folder) / "samplers" / "abstractsampler.py").is_file() for folder in folders):
        raise MissingExtra(f"the package discs of google-research is not importable; {_WHERE}")


def check_discs() -> None:
    """Imports a small part of DISCS; InputError if that fails, as it does on current packages without `compat`."""
    try:
        importlib.import_module("discs.samplers.abstractsampler")
    except (ImportError, AttributeError) as error:
        raise InputError(f"discs cannot be imported ({error}); call register(compat=True)") from error


def sampler_names() -> list[str]:
    """Returns the names of the samplers that this version of DISCS has."""
    folder = importlib.import_module("discs.samplers").__path__
    names = [module.name for module in pkgutil.iter_modules(folder)]
    return sorted(name for name in names if name not in _NOT_SAMPLERS)


def sampler_config(name: str) -> config_dict.ConfigDict:
    """Returns DISCS's own config of one of its samplers, with its defaults."""
    return importlib.import_module(f"discs.samplers.configs.{name}_config").get_config()


def build_upstream_sampler(name: str, config: config_dict.ConfigDict) -> Any:
    """Returns DISCS's own object of a sampler for a whole config (sampler, model, experiment), for flat states."""
    config = copy.deepcopy(config)
    with config.unlocked():
        config.sampler.name = name
        config.model.shape = (math.prod(config.model.shape),)
    return importlib.import_module(f"discs.samplers.{name}").build_sampler(config)


def local_chains(experiment: config_dict.ConfigDict, devices: int) -> int:
    """Returns the number of chains of an instance on one device, in DISCS's arrangement.

    DISCS divides the instances of a combinatorial problem among devices; if there are fewer instances than devices,
    or for other problems, it divides the chains.
    """
    on_one_device = not experiment.run_parallel or devices == 1
    if on_one_device or (experiment.evaluator == "co_eval" and experiment.num_models >= devices):
        return experiment.batch_size
    return experiment.batch_size // devices
