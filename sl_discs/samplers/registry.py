"""Samplers by name. Registering a base sampler also makes its `sl_` variant available."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from sl_discs.samplers.block_gibbs import BlockGibbs
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
PAPER_NAMES = {"GWG": "gwg", "PAS": "path_auxiliary", "DMALA": "dmala"}
PAPER_NAMES |= {f"SL-{paper}": PREFIX + name for paper, name in PAPER_NAMES.items()}
_NOT_FREE = {"auto", *PAPER_NAMES}


class Registered(NamedTuple):
    """A base sampler.

    Attributes:
      name: by which it was registered.
      factory: returns the sampler.
      fields: of its config, the arguments of the factory, with their defaults.
    """

    name: str
    factory: Callable[..., Sampler]
    fields: dict[str, Any]

    def build(self, fields: dict[str, Any]) -> Sampler:
        """Returns the sampler with these fields, and the defaults of the others.

        Raises:
          InputError: the factory returned no sampler, or one that is not hashable.
        """
        sampler = self.factory(**self.fields | fields)
        if not isinstance(sampler, Sampler):
            if not all(
                callable(getattr(sampler, method, None)) for method in ("make_init_state", "step")
            ):
                raise InputError(
                    f"sampler {self.name!r}: its factory returned {shown(sampler)}; expected a "
                    "Sampler, or an object with DISCS's methods make_init_state and step"
                )
            sampler = StepSampler(sampler)
        try:
            hash(sampler)
        except TypeError as error:
            raise InputError(
                f"sampler {self.name!r}: {error}; make the class a dataclass with frozen=True and "
                "hashable fields"
            ) from None
        return sampler


_REGISTERED: dict[str, Registered] = {}


def register_sampler(name: str, factory: Callable[..., Sampler], **defaults: object) -> None:
    """Makes `name` and `sl_<name>` available in configs, runs and the conformance suite.

    Example:
        >>> register_sampler("one_flip", GWG, adaptive=False)
        >>> registered("sl_one_flip").fields["adaptive"]  # now known everywhere
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
    if not _NAME.fullmatch(text("name", name)) or name in _NOT_FREE or name in _REGISTERED:
        raise InputError(
            f"sampler name {name!r} is taken, or is not one; expected letters, digits and _, as in "
            f"own_gwg, without {PREFIX} or {IN_DISCS} in front"
        )
    _REGISTERED[name] = Registered(name, factory, _fields_of(name, factory, defaults))


def _fields_of(
    name: str, factory: Callable[..., Sampler], defaults: dict[str, object]
) -> dict[str, Any]:
    """Returns the arguments of a factory with their defaults; InputError if it cannot be called
    with them.
    """
    try:
        parameters = inspect.signature(function("factory", factory)).parameters.values()
    except ValueError as error:
        raise InputError(f"sampler {name!r}: {error}") from None
    if lacking := sorted(getattr(factory, "__abstractmethods__", ())):
        raise InputError(
            f"sampler {name!r}: its class does not define {join_names(lacking, 'and')}"
        )
    named = {
        p.name: p.default for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    takes_any = any(p.kind == p.VAR_KEYWORD for p in parameters)
    if (unknown := sorted(set(defaults) - set(named))) and not takes_any:
        raise InputError(f"sampler {name!r}: its factory has no argument {join_names(unknown)}")
    fields = named | defaults
    if required := [name for name, value in fields.items() if value is inspect.Parameter.empty]:
        raise InputError(
            f"sampler {name!r}: {join_names(required, 'and')} of its factory must have a default"
        )
    return fields


def localized_name(base: str) -> str:
    """Returns the name of a base sampler's localized variant, such as `sl_gwg`."""
    return PREFIX + base


def name_of_paper(name: str) -> str:
    """Returns `sl_path_auxiliary` for the paper's `SL-PAS`, and other names as they are."""
    return PAPER_NAMES.get(name, name)


def own_name(name: str) -> str:
    """Returns the name of a sampler in this project's programs.

    It may be given by the paper's, `SL-PAS`, or as in DISCS's programs: `sl_sldiscs_gwg`.
    """
    return re.sub(f"^({PREFIX}|){IN_DISCS}", r"\1", name_of_paper(name))


def is_localized(name: str) -> bool:
    """Returns whether a name is that of a localized variant."""
    return name.startswith(PREFIX)


def base_samplers() -> list[str]:
    """Returns the names of base samplers."""
    return [*_REGISTERED]


def known_samplers() -> list[str]:
    """Returns the names of base samplers and their localized variants."""
    return [*_REGISTERED, *map(localized_name, _REGISTERED)]


def registered(name: str, *, variants: bool = True) -> Registered:
    """Returns the base sampler of a name, its own or that of its variant.

    Raises:
      InputError: an unknown name; the message lists variants where they are accepted.
    """
    base = name.removeprefix(PREFIX)
    if base not in _REGISTERED:
        code = f"; not registered by --import={','.join(imported())}" if imported() else ""
        known = ", ".join(known_samplers() if variants else _REGISTERED)
        papers = ", ".join(paper for paper in PAPER_NAMES if variants or "-" not in paper)
        raise InputError(f"unknown sampler {name!r}{code}; known: {known}, and {papers}")
    return _REGISTERED[base]


def registered_name(kind: type[Sampler]) -> str:
    """Returns the name by which a class is registered, itself or as what a factory returns;
    otherwise its own.
    """
    for name, factory, _ in _REGISTERED.values():
        if factory is kind or inspect.signature(factory).return_annotation in (kind, kind.__name__):
            return name
    return kind.__name__


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


def _passed_on(*own: str) -> dict[str, Any]:
    """Returns the fields that these factories pass on, all but their own."""
    return {
        field.name: field.default for field in dataclasses.fields(DMALA) if field.name not in own
    }


# Adaptive as in DISCS's configs: one flip misses the published means
# (tests/reproduction/test_published.py).
register_sampler("gwg", GWG, adaptive=True)
register_sampler("path_auxiliary", PathAuxiliary, adaptive=True)
register_sampler("dmala", _dmala, **_passed_on("scaling", "adaptive"))
register_sampler("gibbs", Gibbs)
register_sampler("metropolis", Metropolis)
register_sampler("block_gibbs", BlockGibbs)
register_sampler("exchange", Exchange)
register_sampler(
    "dlmc",
    _dlmc,
    adaptive=True,
    co_opt_prob=True,
    **_passed_on("scaling", "adaptive", "expected_flips", "shared_scale"),
)

# The names that every process knows; any other was registered by a user's code.
BUILT_IN = frozenset(known_samplers())
