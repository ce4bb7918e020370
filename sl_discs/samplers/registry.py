"""Samplers by name. Registering a base sampler also makes its `sl_` variant available."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from sl_discs.samplers.langevin import DLMC, DMALA, INTERPOLATE
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.sampler import Sampler, StepSampler
from sl_discs.samplers.single_site import Exchange, Gibbs, Metropolis
from sl_discs.support.checks import function, join_names, shown, text
from sl_discs.support.errors import InputError
from sl_discs.support.own_code import imported

PREFIX = "sl_"
# Before the names of this project's samplers in DISCS, which has samplers of its own.
IN_DISCS = "sldiscs_"

# Names for a sampler: those with a meaning of their own are never looked up among the registered
# ones.
_NAME = re.compile(rf"(?!{PREFIX}|{IN_DISCS})[A-Za-z]\w*")
_PAPER_NAMES = {"GWG": "gwg", "PAS": "path_auxiliary", "DMALA": "dmala"}
_PAPER_NAMES |= {f"SL-{paper}": PREFIX + name for paper, name in _PAPER_NAMES.items()}
_NOT_FREE = {"auto", *_PAPER_NAMES}

_FACTORIES: dict[str, Callable[..., Sampler]] = {}
_DEFAULTS: dict[str, dict[str, object]] = {}


def register_sampler(name: str, factory: Callable[..., Sampler], **defaults: object) -> None:
    """Makes `name` and `sl_<name>` available in configs, runs and the conformance suite.

    Example:
        >>> register_sampler("one_flip", GWG, adaptive=False)
        >>> sampler_fields("sl_one_flip")["adaptive"]  # now known to `solve`, `sample` and commands
        False

    Args:
      name: a new name of letters, digits and `_` that does not start with `sl_` or
        `sldiscs_`.
      factory: returns a sampler from keyword arguments; every argument with a default becomes a
        config field. A `Sampler` must be hashable (a frozen dataclass); any other object needs
        DISCS's `make_init_state(rng)` and `step(model, rng, x, model_param, state, x_mask)`, and is
        given batches of one chain.
      **defaults: defaults of the config that differ from those of the factory.

    Raises:
      InputError: a name that is taken or begins with `sl_`, or a factory that cannot be called with
        `defaults`.
    """
    if not _NAME.fullmatch(text("name", name)) or name in _NOT_FREE or name in _FACTORIES:
        raise InputError(
            f"sampler name {name!r} is taken, or is not one; expected letters, digits and _, as in "
            f"own_gwg, without {PREFIX} or {IN_DISCS} in front"
        )
    _check_factory(name, factory, defaults)
    _FACTORIES[name] = factory
    _DEFAULTS[name] = defaults


def _check_factory(
    name: str, factory: Callable[..., Sampler], defaults: Mapping[str, object]
) -> None:
    try:
        parameters = inspect.signature(function("factory", factory)).parameters.values()
    except ValueError as error:
        raise InputError(f"sampler {name!r}: {error}") from None
    if lacking := sorted(getattr(factory, "__abstractmethods__", ())):
        raise InputError(
            f"sampler {name!r}: its class does not define {join_names(lacking, 'and')}"
        )
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if required := [p.name for p in named if p.default is p.empty and p.name not in defaults]:
        raise InputError(
            f"sampler {name!r}: {join_names(required, 'and')} of its factory must have a default"
        )
    takes_any = any(p.kind == p.VAR_KEYWORD for p in parameters)
    if (unknown := sorted(set(defaults) - {p.name for p in named})) and not takes_any:
        raise InputError(f"sampler {name!r}: its factory has no argument {join_names(unknown)}")


def code_of(name: str) -> dict[str, str]:
    """Returns the user's code on which a sampler's results depend, with its digests; none if it is
    built in.
    """
    if name in BUILT_IN:
        return {}
    return {f"import {code}": digest for code, digest in imported().items()}


def localized_name(base: str) -> str:
    """Returns the name of a base sampler's localized variant, such as `sl_gwg`."""
    return PREFIX + base


def name_of_paper(name: str) -> str:
    """Returns `sl_path_auxiliary` for the paper's `SL-PAS`, and other names as they are."""
    return _PAPER_NAMES.get(name, name)


def own_name(name: str) -> str:
    """Returns the name of a sampler in this project's programs.

    It may be given by the paper's, `SL-PAS`, or as in DISCS's programs: `sl_sldiscs_gwg`.
    """
    return re.sub(f"^({PREFIX}|){IN_DISCS}", r"\1", _PAPER_NAMES.get(name, name))


def is_localized(name: str) -> bool:
    """Returns whether a name is that of a localized variant."""
    return name.startswith(PREFIX)


def known_samplers() -> list[str]:
    """Returns the names of base samplers and their localized variants."""
    return [*_FACTORIES, *map(localized_name, _FACTORIES)]


def base_name(name: str, *, variants: bool = True) -> str:
    """Returns the name of the base sampler of a sampler or its variant.

    Raises:
      InputError: an unknown name; it lists those of variants where they are accepted.
    """
    base = name.removeprefix(PREFIX)
    if base not in _FACTORIES:
        code = f"; not registered by --import={','.join(imported())}" if imported() else ""
        known = ", ".join(known_samplers() if variants else _FACTORIES)
        papers = ", ".join(paper for paper in _PAPER_NAMES if variants or "-" not in paper)
        raise InputError(f"unknown sampler {name!r}{code}; known: {known}, and {papers}")
    return base


def registered_name(kind: type[Sampler]) -> str:
    """Returns the name by which a class is registered, itself or as what a factory returns;
    otherwise its own.
    """
    for name, factory in _FACTORIES.items():
        if factory is kind or inspect.signature(factory).return_annotation in (kind, kind.__name__):
            return name
    return kind.__name__


def sampler_fields(name: str) -> dict[str, Any]:
    """Returns config fields of a base sampler with their defaults."""
    base = base_name(name)
    parameters = inspect.signature(_FACTORIES[base]).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty} | _DEFAULTS[base]


def counts_sweeps(name: str) -> bool:
    """Returns whether a sampler's steps are counted in sweeps over all sites
    (`Sampler.counts_sweeps`).
    """
    return getattr(_FACTORIES[base_name(name)], "counts_sweeps", False)


def build_sampler(name: str, fields: Mapping[str, Any]) -> Sampler:
    """Returns the base sampler of `name` with the given config fields.

    Raises:
      InputError: an unknown name, or a factory that returned no sampler, or one that is not
        hashable.
    """
    sampler = _FACTORIES[base_name(name)](**fields)
    if not isinstance(sampler, Sampler):
        if not all(
            callable(getattr(sampler, method, None)) for method in ("make_init_state", "step")
        ):
            raise InputError(
                f"sampler {name!r}: its factory returned {shown(sampler)}; expected a Sampler, "
                "or an object with DISCS's methods make_init_state and step"
            )
        sampler = StepSampler(sampler)
    try:
        hash(sampler)
    except TypeError as error:
        raise InputError(
            f"sampler {name!r}: {error}; make the class a dataclass with frozen=True and hashable "
            "fields"
        ) from None
    return sampler


def _dmala(adaptive: bool = True, co_opt_prob: bool = True, **fields: Any) -> DMALA:
    """Interprets the config as DISCS does.

    `adaptive` scales the step by the gains and, if the problem is not combinatorial (`co_opt_prob`
    false), also adapts to the acceptance; otherwise the step size is fixed.
    """
    scaling = "normalized" if adaptive else "fixed"
    return DMALA(scaling=scaling, adaptive=adaptive and not co_opt_prob, **fields)


def _dlmc(solver: str = INTERPOLATE, n: float = 3.0, **fields: Any) -> DLMC:
    """Interprets the config as `_dmala` does; `n` is DISCS's name for the expected number
    of flips.
    """
    langevin = _dmala(expected_flips=n, **fields)
    return DLMC(**dataclasses.asdict(langevin), solver=solver)


# The fields that these two pass on, and those of the second for the first.
_PASSED_ON: dict[str, Any] = {one.name: one.default for one in dataclasses.fields(DMALA)}
for _own in ("scaling", "adaptive"):
    del _PASSED_ON[_own]
_OF_DLMC = {"adaptive": True, "co_opt_prob": True} | _PASSED_ON
del _OF_DLMC["expected_flips"], _OF_DLMC["shared_scale"]

# Adaptive as in DISCS's configs: one flip misses the published means
# (tests/reproduction/test_published.py).
register_sampler("gwg", GWG, adaptive=True)
register_sampler("path_auxiliary", PathAuxiliary, adaptive=True)
register_sampler("dmala", _dmala, **_PASSED_ON)
register_sampler("gibbs", Gibbs)
register_sampler("metropolis", Metropolis)
register_sampler("exchange", Exchange)
register_sampler("dlmc", _dlmc, **_OF_DLMC)

# The names that every process knows; any other was registered by a user's code.
BUILT_IN = frozenset(known_samplers())
