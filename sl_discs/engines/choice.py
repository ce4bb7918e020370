"""The engines by name, and the choice of an engine for a sampler."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Iterable

import jax

from sl_discs.engines.devices import has_card, local_devices, missing_card, num_cores
from sl_discs.engines.program import Engine
from sl_discs.samplers.registry import registered_name
from sl_discs.samplers.sampler import Sampler
from sl_discs.support.errors import InputError, NotSupported

AUTO = "auto"
# Modules are imported on first use, since that of `cpu` imports a compiler.
_ENGINES = {
    "reference": ("sl_discs.engines.reference", "Reference"),
    "cpu": ("sl_discs.engines.cpu.cpu_engine", "Cpu"),
    "cuda": ("sl_discs.engines.cuda.cuda_engine", "Cuda"),
}
ENGINES = (AUTO, *_ENGINES)


@functools.cache
def get_engine(name: str) -> Engine:
    """Returns the engine of a name other than `auto`.

    Raises:
      InputError: there is none.
    """
    if name not in _ENGINES:
        raise InputError(f"engine is {name!r}; known: {', '.join(ENGINES)}")
    module, kind = _ENGINES[name]
    return getattr(importlib.import_module(module), kind)()


# `auto` leaves fewer chains than this to the CPU cores: a GPU plays as many in the time of one.
_CARD_CHAINS = 128
# Millions of chain-steps a second on ER-0.05, of one H200 with 1,024 chains and of one core of an
# x86-64: `docs/measured/gpu.json` and `localization.json`; of gibbs the kernel alone on a card, and
# 32 chains of 20,000 steps on a core; metropolis on a card as gibbs. Other cards and processors
# differ.
_RATES = {
    "gwg": (179, 1.27),
    "path_auxiliary": (140, 0.99),
    "dmala": (141, 1.35),
    "gibbs": (1261, 16),
    "metropolis": (1261, 19),
}


def choose_engine(
    wanted: str, sampler: Sampler, *, num_sites: int = 0, num_chains: int | None = None
) -> tuple[Engine, str]:
    """Returns the engine for a sampler, and why it was chosen (empty if it was requested by name).

    `auto` is `cuda` on a machine with a GPU, if it can run the sampler and there are many chains,
    else `cpu`, else `reference`.

    Args:
      wanted: its name, or `auto`.
      sampler: that it is to run.
      num_sites: the largest number of sites, where it is known.
      num_chains: number of chains of one instance, which `auto` weighs; None: many.

    Raises:
      InputError: there is no engine of this name, or JAX finds no device.
      NotSupported: the engine cannot run the sampler here.
    """
    if wanted == AUTO:
        return _fastest(sampler, num_sites, num_chains)
    engine = get_engine(wanted)
    if not engine.on_host:
        local_devices()  # before anything else asks JAX for its devices
    obstacle = engine.obstacle(sampler, num_sites)
    if obstacle is None:
        return engine, ""
    if obstacle == missing_card():
        raise NotSupported(f"engine is {wanted!r}: {obstacle}; choose {AUTO!r} or 'cpu'", "engine")
    name = registered_name(type(sampler))
    raise NotSupported(
        f"engine is {wanted!r}, which cannot run {name}: {obstacle}; choose {AUTO!r} or "
        "'reference'",
        "engine",
    )


def _fastest(sampler: Sampler, num_sites: int, num_chains: int | None) -> tuple[Engine, str]:
    many = num_chains is None or num_chains >= _CARD_CHAINS
    # JAX_PLATFORMS=cpu keeps everything on the cores.
    platforms = os.environ.get("JAX_PLATFORMS", "")
    cards = (
        many and has_card() and (not platforms or bool({"cuda", "gpu"} & set(platforms.split(","))))
    )
    notes: list[str] = []
    for name in ("cuda", "cpu") if cards else ("cpu",):
        engine = get_engine(name)
        obstacle = engine.obstacle(sampler, num_sites)
        if obstacle is None and name == "cuda":
            of_card, of_core = _RATES[registered_name(type(sampler))]
            if num_cores() * of_core > of_card:
                obstacle = f"{num_cores()} cores are faster"
        if obstacle is None:
            why = (
                "the fastest on CPU cores" if name == "cpu" else f"faster than {num_cores()} cores"
            )
            return engine, "; ".join(notes) or f"auto: {why}"
        notes.append(f"not {name}: {obstacle}")
    local_devices()
    return get_engine("reference"), "; ".join(notes)


def leave_cards_alone(engines: Iterable[Engine]) -> None:
    """Keeps JAX from opening GPUs, which takes seconds and memory, where all engines are on the
    host.

    Args:
      engines: all that this process will run; JAX must not be in use yet.
    """
    if all(engine.on_host for engine in engines) and has_card():
        jax.config.update("jax_platforms", "cpu")
