"""A sampler given by name, localized or not."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ml_collections import config_dict

from sl_discs.localization.schedule import MIN_FINAL_SNR, Localization
from sl_discs.samplers.registry import BUILT_IN, is_localized, localized_name, own_name, registered
from sl_discs.samplers.sampler import Sampler
from sl_discs.support.checks import real, shown
from sl_discs.support.errors import InputError
from sl_discs.support.own_code import imported

# Fields of DISCS's sampler configs that have no effect here, accepted so that its files work.
IGNORED_SAMPLER_FIELDS = {"use_fast_path", "approx_with_grad", "schedule_step", "reset_z_est"}


# The kinds of final sample: if a localized run ends with little signal in Y, its sign is mostly
# noise.
LAST_STATE, SIGN_OF_Y, NOT_LOCALIZED = "last state", "sign(Y)", "last state (not localized)"


@dataclasses.dataclass(frozen=True)
class Method:
    """A sampler, localized or not.

    Attributes:
      name: such as `path_auxiliary` or `sl_path_auxiliary`.
      sampler: the base sampler.
      localization: around it; None: there is none.
      fields: all of its config, `name` among them.
    """

    name: str
    sampler: Sampler
    localization: Localization | None
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def final_is(self) -> str:
        """Returns the kind of a run's final sample: `last state`, `sign(Y)` or `last state (not
        localized)`.
        """
        if self.localization is None:
            return LAST_STATE
        return SIGN_OF_Y if self.localization.localizes else NOT_LOCALIZED


def not_localized_note(names: Sequence[str]) -> str:
    """Returns a note to the user on the final samples of such methods."""
    return (
        f"final samples of {', '.join(names)} are the chains' last states. With these settings "
        "the observation Y has too much noise at the end for its sign to be a draw "
        f"(signal-to-noise ratio below {MIN_FINAL_SNR:g}). Best states do not depend on this. "
        "For draws set sigma=2, eps_end=0.01 and alpha=geom(2,1)."
    )


def code_of(name: str) -> dict[str, str]:
    """Returns the user's code on which a sampler's results depend, with its digests; none if it is
    built in.
    """
    if name in BUILT_IN:
        return {}
    return {f"import {code}": sha256 for code, sha256 in imported().items()}


def method_fields(name: str) -> dict[str, Any]:
    """Returns all config fields of a sampler or `sl_` variant, with their defaults; `name` among
    them.
    """
    name = own_name(name)
    localized = dataclasses.asdict(Localization()) if is_localized(name) else {}
    return {"name": name} | registered(name).fields | localized


def method_config(name: str) -> config_dict.ConfigDict:
    """Returns `method_fields` as a config, every field of which can be overridden on the command
    line.
    """
    fields = method_fields(name)
    return config_dict.ConfigDict(
        {
            field: config_dict.placeholder(int) if value is None else value
            for field, value in fields.items()
        }
    )


def _complete(name: str, fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(fields) - set(defaults))
    if unknown:
        near = difflib.get_close_matches(unknown[0], defaults, 1)
        hint = f", and {near[0]!r} is the nearest" if near else ""
        if unknown[0] in {field.name for field in dataclasses.fields(Localization)}:
            hint = f", which {localized_name(name)!r} has"
        raise InputError(
            f"sampler {name!r} has no field {unknown[0]!r}{hint}; known: {', '.join(defaults)}"
        )
    return {
        field: _checked(field, fields.get(field, default), default)
        for field, default in defaults.items()
    }


def _checked(field: str, value: Any, default: Any) -> Any:
    if default is None:
        return value
    if type(default) is float and type(value) is int:
        value = real(f"sampler_config.{field}", value)
    if type(default) is tuple and type(value) is list:
        value = tuple(value)
    if (
        isinstance(value, bool) != isinstance(default, bool)
        or not isinstance(value, type(default))
        or value != value
    ):
        raise InputError(
            f"sampler_config.{field} is {shown(value)}; expected {type(default).__name__}, such as "
            f"{default!r}"
        )
    return value


def build_localization(name: str, fields: Mapping[str, Any]) -> Localization:
    """Returns the localization of an `sl_` sampler from its config fields; the others have their
    defaults.

    Raises:
      InputError: a field is unknown, or a value has the wrong type.
    """
    return Localization(**_complete(name, fields, dataclasses.asdict(Localization())))


def build_method(fields: Mapping[str, Any]) -> Method:
    """Returns a method from config fields; the others have their defaults.

    Raises:
      InputError: the sampler or a field is unknown, or a value has the wrong type or is out of
        range.
    """
    name = own_name(_checked("name", fields.get("name", ""), "gwg"))
    known = method_fields(name)
    given = {
        field: fields[field]
        for field in fields
        if field in known or field not in IGNORED_SAMPLER_FIELDS
    }
    values = _complete(name, given, known)
    base = registered(name)
    sampler = base.build({field: values[field] for field in base.fields})
    localization = None
    if is_localized(name):
        schedule = {field.name: values[field.name] for field in dataclasses.fields(Localization)}
        localization = Localization(**schedule)
    return Method(name, sampler, localization, values)
