"""A sampler by name, localized or not, as a run needs it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ml_collections import config_dict

from sl_discs.errors import InputError
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.registry import base_name, build_sampler, is_localized, sampler_fields

# Fields of DISCS's sampler configs that have no meaning here and are accepted for its files' sake.
DISCS_ONLY = {"use_fast_path", "approx_with_grad", "schedule_step", "reset_z_est"}


@dataclasses.dataclass(frozen=True)
class Method:
    """What `path_auxiliary` or `sl_path_auxiliary` stands for."""

    name: str
    sampler: Sampler
    localization: Localization | None


def method_fields(name: str) -> dict[str, Any]:
    """All config fields of a sampler or `sl_` variant, with their defaults; `name` among them."""
    base_name(name)
    localized = dataclasses.asdict(Localization()) if is_localized(name) else {}
    return {"name": name} | sampler_fields(name) | localized


def method_config(name: str) -> config_dict.ConfigDict:
    """`method_fields` as a config whose every field can be overridden on the command line."""
    fields = method_fields(name)
    return config_dict.ConfigDict(
        {field: config_dict.placeholder(int) if value is None else value for field, value in fields.items()}
    )


def _checked(name: str, field: str, value: Any, default: Any) -> Any:
    """The value in its default's type; InputError if it has another."""
    if default is None:
        return value
    truth = isinstance(value, bool)
    if isinstance(default, float) and isinstance(value, int) and not truth:
        return float(value)
    if not isinstance(value, type(default)) or truth != isinstance(default, bool) or value != value:
        raise InputError(f"{name}: {field} is {value!r}; expected {type(default).__name__} such as {default!r}")
    return value


def build_localization(name: str, fields: Mapping[str, Any]) -> Localization:
    """The localization of an `sl_` sampler from its config fields; those left out take their defaults.

    Raises:
      InputError: an unknown field or a value of the wrong type.
    """
    defaults = dataclasses.asdict(Localization())
    unknown = sorted(set(fields) - set(defaults))
    if unknown:
        raise InputError(f"sampler {name!r} has no field {unknown[0]!r}; known: {', '.join(defaults)}")
    return Localization(**{field: _checked(name, field, value, defaults[field]) for field, value in fields.items()})


def build_method(fields: Mapping[str, Any], num_chains: int) -> Method:
    """A method from config fields; those left out take their defaults.

    Raises:
      InputError: an unknown sampler or field, or a value of the wrong type or out of range.
    """
    name = fields.get("name", "")
    known = method_fields(name)
    unknown = sorted(set(fields) - set(known) - DISCS_ONLY)
    if unknown:
        raise InputError(f"sampler {name!r} has no field {unknown[0]!r}; known: {', '.join(known)}")
    values = {field: _checked(name, field, fields.get(field, default), default) for field, default in known.items()}
    base = {field: values[field] for field in sampler_fields(name)}
    sampler = build_sampler(name, base, num_chains)
    if not is_localized(name):
        return Method(name, sampler, None)
    schedule = {field.name: values[field.name] for field in dataclasses.fields(Localization)}
    return Method(name, sampler, build_localization(name, schedule))
