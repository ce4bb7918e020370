"""The plugin's access to DISCS: its samplers by name, and as `discs:NAME` in the runner of sl_discs."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import importlib.util
import math
import pkgutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
from ml_collections import config_dict

from sl_discs.discs_plugin.base_sampler import DiscsSampler, States
from sl_discs.errors import InputError, MissingExtra
from sl_discs.samplers.base import Sampler, StepSampler
from sl_discs.samplers.registry import known_samplers, register_sampler

# Of the names of DISCS's samplers in this project's runner.
NAMESPACE = "discs:"

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
            "https://github.com/google-research/discs and put the folder that holds setup.py on PYTHONPATH"
        )
    if compat:
        # Imported only here, since what it replaces takes long to import, and `sl-discs run` needs none of it.
        from sl_discs.discs_plugin import compat as compatibility

        compatibility.install()
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


# DISCS's samplers in the runner of sl_discs.

# DISCS's states do not depend on the number of sites, so any number serves to make one.
_SOME_SITES = 64


@dataclasses.dataclass(frozen=True, eq=False)
class BorrowedSampler(Sampler):
    """A sampler of DISCS for one chain at a time, so that chains neither adapt nor propose together.

    Attributes:
      name: DISCS's name for it.
      fields: its config.
      co_opt_prob: DISCS's flag of combinatorial experiments, for which dmala and dlmc do not adapt to the acceptance.
      fixes: whether its errors are corrected (`fixes.py`).
      num_chains: chains per batch in DISCS's calling convention.
    """

    name: str
    fields: dict[str, Any]
    co_opt_prob: bool = True
    fixes: bool = False
    num_chains: int = 1

    @functools.cache  # noqa: B019 (one entry a padded size; the sampler lives as long as its run)
    def _for_sites(self, num_sites: int) -> StepSampler:
        """Returns DISCS's object for a number of sites; it must not contain tracers of the run that requests it."""
        config = config_dict.ConfigDict(
            {
                "sampler": dict(self.fields),
                "model": {"name": "sl_discs", "shape": (num_sites,), "num_categories": 2},
                "experiment": {"co_opt_prob": self.co_opt_prob},
            }
        )
        with jax.ensure_compile_time_eval():
            sampler = build_upstream_sampler(self.name, config)
            return StepSampler(DiscsSampler(self.name, sampler, States((num_sites,)), self.fixes))

    def init_state(self, num_sites):
        return self._for_sites(max(num_sites, _SOME_SITES)).init_state(num_sites)

    def kernel(self, key, target, chain):
        return self._for_sites(target.num_sites).kernel(key, target, chain)


def borrow_samplers() -> None:
    """Registers every sampler of the importable DISCS under `discs:`; does nothing the second time.

    Their config fields are DISCS's, `fixes`, whether errors are corrected, and `co_opt_prob`.

    Raises:
      InputError: as `import_discs`.
    """
    import_discs(compat=True)
    for name in sampler_names():
        if NAMESPACE + name not in known_samplers():
            fields = sampler_config(name).to_dict()
            del fields["name"]
            register_sampler(NAMESPACE + name, functools.partial(_borrowed, name), **fields)


def borrow_named(names: Iterable[str]) -> None:
    """Calls `borrow_samplers` if one of the names is that of a sampler of DISCS; InputError likewise."""
    if any(NAMESPACE in name for name in names):
        borrow_samplers()


def _borrowed(
    name: str, *, num_chains: int = 1, fixes: bool = False, co_opt_prob: bool = True, **fields: Any
) -> BorrowedSampler:
    return BorrowedSampler(name, fields, co_opt_prob, fixes, num_chains)
