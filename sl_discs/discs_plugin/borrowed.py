"""Samplers of DISCS inside the runner of sl_discs, as `discs:NAME` and, localized, `sl:discs:NAME`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import jax
from ml_collections import config_dict

from sl_discs.discs_plugin import register, upstream
from sl_discs.discs_plugin.base_sampler import BaseSampler, States
from sl_discs.discs_plugin.upstream import NAMESPACE
from sl_discs.samplers.base import Sampler, StepSampler
from sl_discs.samplers.registry import known_samplers, register_sampler

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
            sampler = upstream.build_upstream_sampler(self.name, config)
            return StepSampler(BaseSampler(self.name, sampler, States((num_sites,)), self.fixes))

    def init_state(self, num_sites):
        return self._for_sites(max(num_sites, _SOME_SITES)).init_state(num_sites)

    def kernel(self, key, target, chain):
        return self._for_sites(target.num_sites).kernel(key, target, chain)


def borrow_samplers() -> None:
    """Registers every sampler of the importable DISCS under `discs:`; does nothing the second time.

    Their config fields are DISCS's, `fixes`, whether errors are corrected, and `co_opt_prob`.

    Raises:
      InputError: as `register`.
    """
    register(compat=True)
    for name in upstream.sampler_names():
        if NAMESPACE + name not in known_samplers():
            fields = upstream.sampler_config(name).to_dict()
            del fields["name"]
            register_sampler(NAMESPACE + name, functools.partial(_build, name), **fields)


def borrow_named(names: Iterable[str]) -> None:
    """Calls `borrow_samplers` if one of the names is that of a sampler of DISCS; InputError likewise."""
    if any(NAMESPACE in name for name in names):
        borrow_samplers()


def _build(
    name: str, *, num_chains: int = 1, fixes: bool = False, co_opt_prob: bool = True, **fields: Any
) -> BorrowedSampler:
    return BorrowedSampler(name, fields, co_opt_prob, fixes, num_chains)
