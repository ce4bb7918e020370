"""The engines by name, and the choice of an engine for a sampler."""

from __future__ import annotations

import functools
import importlib

from sl_discs.engines.contract import Engine
from sl_discs.errors import InputError
from sl_discs.samplers.base import Sampler

AUTO = "auto"
# Modules are imported on first use, since that of `cpu` imports a compiler.
_ENGINES = {
    "reference": ("sl_discs.engines.reference", "Reference"),
    "cpu": ("sl_discs.engines.cpu.engine", "Cpu"),
}
# The reference engine's earlier name, in flags and configs.
_ALIASES = {"xla": "reference"}
ENGINES = (AUTO, *_ENGINES, *_ALIASES)


def get_engine(name: str) -> Engine:
    """The engine of a name other than `auto`.

    Raises:
      InputError: there is none.
    """
    name = _ALIASES.get(name, name)
    if name not in _ENGINES:
        raise InputError(f"engine is {name!r}; known: {', '.join(ENGINES)}")
    return _load(name)


@functools.cache
def _load(name: str) -> Engine:
    module, kind = _ENGINES[name]
    return getattr(importlib.import_module(module), kind)()


def choose_engine(wanted: str, sampler: Sampler) -> tuple[Engine, str]:
    """The engine for a sampler, and why it was chosen (empty if it was requested by name).

    `auto` is `cpu` where it can run the sampler, otherwise the reference.

    Raises:
      InputError: there is no engine of this name, or it cannot run the sampler here.
    """
    engine = get_engine("cpu" if wanted == AUTO else wanted)
    obstacle = engine.obstacle(sampler)
    if obstacle is None:
        return engine, "auto: the fastest on CPU cores" if wanted == AUTO else ""
    if wanted == AUTO:
        return get_engine("reference"), f"not {engine.name}: {obstacle}"
    raise InputError(
        f"engine is {wanted!r}, which cannot run {type(sampler).__name__}: {obstacle}; choose {AUTO!r} or "
        "'reference'",
        "engine",
    )
