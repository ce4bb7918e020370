"""DISCS's experiment on models that are not combinatorial: effective sample sizes of its samplers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from sl_discs.engines.registry import num_cores
from sl_discs.errors import InputError
from sl_discs.experiment.progress import progress_bar
from sl_discs.experiment.record import device_in_words, versions
from sl_discs.experiment.run import check_methods
from sl_discs.experiment.settings import Settings
from sl_discs.instances.ising_lattice import IsingLattice
from sl_discs.localization.method import Method
from sl_discs.models.kinds import KINDS
from sl_discs.sampling.ess_chains import EssRecord, check_stationary, play_chains

# Fields of DISCS's model config that have no meaning here, or that are the same for every Ising lattice.
_NAMES = ("name", "save_dir_name")
_DISCS_ONLY = {"num_categories": 2, "external_field_type": 1}


@dataclasses.dataclass(frozen=True)
class EssExperiment:
    """One command's result: several samplers on the same lattice.

    Attributes:
      lattice: the distribution that the lattice was drawn from.
      config: the full configuration as nested plain dicts.
      settings: settings of the experiment.
      device: the device in words.
      versions: package name to version.
      samplers: name to record, in the order given.
    """

    lattice: IsingLattice
    config: dict
    settings: Settings
    device: str
    versions: dict[str, str]
    samplers: dict[str, EssRecord]


def lattice_from(fields: Mapping[str, Any]) -> IsingLattice:
    """The lattice of a model config.

    Raises:
      InputError: an unknown field, such as one of graphs, or a value that does not fit a lattice.
    """
    known = [field.name for field in dataclasses.fields(IsingLattice)]
    for name, value in fields.items():
        if name in _DISCS_ONLY and value != _DISCS_ONLY[name]:
            raise InputError(f"model_config.{name} is {value!r}; an Ising lattice has {_DISCS_ONLY[name]}")
        if name not in (*_NAMES, *_DISCS_ONLY, *known):
            raise InputError(f"model_config of 'ising' has no field {name!r}; known: {', '.join((*_NAMES, *known))}")
    given = {name: value for name, value in fields.items() if name in known}
    if isinstance(given.get("shape"), list):
        given["shape"] = tuple(given["shape"])
    return IsingLattice(**given)


def ess_settings(settings: Settings, methods: list[Method]) -> Settings:
    """Settings that record every step.

    Raises:
      InputError: chains without an effective sample size (see `check_stationary`), or a field of experiments on
        graphs.
    """
    check_stationary(methods, settings)
    check_methods(methods, settings)
    if settings.num_instances not in (None, 1):
        raise InputError(
            f"config.experiment.num_instances is {settings.num_instances}; one lattice is run, number "
            "config.experiment.first_instance"
        )
    if settings.events:
        raise InputError("--events: effective sample sizes have no curves; leave it out")
    return dataclasses.replace(settings, log_every_steps=1)


def run_ess(lattice: IsingLattice, methods: list[Method], settings: Settings, config: dict) -> EssExperiment:
    """Runs every method on the same lattice.

    Args:
      lattice: the distribution to draw the lattice from.
      methods: methods with distinct names.
      settings: settings from `ess_settings`.
      config: the configuration to be saved.
    """
    form = lattice.draw(settings.data_seed, settings.first_instance)
    terms = KINDS["ising"].terms(form)
    records = {}
    with progress_bar(settings.chain_length * settings.batch_size) as progress:
        for method in methods:
            report = functools.partial(progress, method.name)
            records[method.name] = play_chains(terms, method, settings, report)
    return EssExperiment(lattice, config, settings, device_in_words(num_cores()), versions(), records)
