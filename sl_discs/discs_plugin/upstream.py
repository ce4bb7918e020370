"""The plugin's access to DISCS: checks that it is present and has the expected form, and its samplers by name."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

from ml_collections import config_dict

from sl_discs.errors import InputError, MissingExtra

# Of the names of DISCS's samplers in this project's runner.
NAMESPACE = "discs:"

_WHERE = "clone https://github.com/google-research/discs and put the folder that holds setup.py on PYTHONPATH"

# Modules of discs.samplers that are not samplers.
_NOT_SAMPLERS = ("abstractsampler", "configs")

_EXPECTED = {
    "discs.samplers.abstractsampler": "AbstractSampler",
    "discs.models.abstractmodel": "AbstractModel",
    "discs.experiment.sampling": "Experiment",
    "discs.experiment.main_sampling": "main",
}


def require_discs() -> None:
    """Checks that there is a package `discs`; imports nothing.

    Raises:
      InputError: there is none.
    """
    if importlib.util.find_spec("discs") is None:
        raise MissingExtra(f"the package discs is not importable; {_WHERE}")


def check_discs() -> None:
    """Checks the parts of DISCS and the signatures that the plugin relies on; imports a small part of it.

    Raises:
      InputError: it is another package, is too different a version, or cannot be imported.
    """
    for module, name in _EXPECTED.items():
        try:
            spec = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            spec = None
        if spec is None or spec.origin is None:
            raise InputError(f"the package discs that is importable has no module {module}; {_WHERE}")
        if not re.search(rf"^(class|def) {name}\b", Path(spec.origin).read_text(), re.MULTILINE):
            raise InputError(
                f"{spec.origin} does not define {name}; this version of discs is too different; {_WHERE}"
            )
    try:
        abstract = importlib.import_module("discs.samplers.abstractsampler").AbstractSampler
    except (ImportError, AttributeError) as error:
        raise InputError(f"discs cannot be imported ({error}); call register(compat=True)") from error
    wanted = {"make_init_state": ["rng"], "step": ["model", "rng", "x", "model_param", "state", "x_mask"]}
    for method, parameters in wanted.items():
        found = list(inspect.signature(getattr(abstract, method, lambda: None)).parameters)[1:]
        if found != parameters:
            raise InputError(
                f"discs.samplers.abstractsampler.AbstractSampler.{method} takes {found}, expected {parameters}; "
                f"this version of discs is too different; {_WHERE}"
            )


def sampler_names() -> list[str]:
    """Names of the samplers that this version of DISCS has."""
    folder = importlib.import_module("discs.samplers").__path__
    names = [module.name for module in pkgutil.iter_modules(folder)]
    return sorted(name for name in names if name not in _NOT_SAMPLERS)


def sampler_config(name: str) -> config_dict.ConfigDict:
    """DISCS's own config of one of its samplers, with its defaults."""
    return importlib.import_module(f"discs.samplers.configs.{name}_config").get_config()


def build_upstream_sampler(name: str, config: config_dict.ConfigDict) -> Any:
    """DISCS's own object of a sampler for a whole config (sampler, model, experiment); config is not changed."""
    config = copy.deepcopy(config)
    with config.unlocked():
        config.sampler.name = name
    return importlib.import_module(f"discs.samplers.{name}").build_sampler(config)


def local_chains(experiment: config_dict.ConfigDict, devices: int) -> int:
    """The number of chains of an instance on one device, in DISCS's arrangement.

    DISCS divides the instances of a combinatorial problem among devices; if there are fewer instances than devices,
    or for other problems, it divides the chains.
    """
    on_one_device = not experiment.run_parallel or devices == 1
    if on_one_device or (experiment.evaluator == "co_eval" and experiment.num_models >= devices):
        return experiment.batch_size
    return experiment.batch_size // devices
