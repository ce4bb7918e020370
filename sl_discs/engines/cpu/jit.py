"""How the native loops are compiled: inlined, and kept on disk for the next run.

What numba has no public way for is in `internals`: without it, loops compile longer and run slower.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import types
from pathlib import Path
from typing import Any

import numba
from numba.extending import intrinsic, overload

from sl_discs.engines.compiled import digest_of_sources
from sl_discs.support.cache import cache_folder
from sl_discs.support.errors import InputError

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    raise InputError(
        "NUMBA_DISABLE_JIT is set, and without a compiler there are no chains on CPUs; unset it"
    )

# The newest version of numba whose private interfaces were tried; with later ones loops compile the
# public way.
_TRIED = 0, 68


def _internals() -> types.ModuleType | None:
    """Returns the module of numba's private interfaces, None where they are missing or were not
    tried.
    """
    if tuple(map(int, re.findall(r"\d+", numba.__version__)[:2])) > _TRIED:
        return None
    try:
        return importlib.import_module("sl_discs.engines.cpu.internals")
    except (ImportError, AttributeError):
        return None


INTERNALS = _internals()

# For loops over sites: products and sums may be fused.
FUSED = frozenset({"contract"})
# For sums over sites: terms may also be reordered, which vectorises them. Elementary functions
# would lose accuracy.
REORDERED = frozenset({"contract", "reassoc"})

COMMON = {"error_model": "numpy"} | (INTERNALS.OF_ALL if INTERNALS else {})
_CALLEE: dict[str, Any] = INTERNALS.OF_CALLEES if INTERNALS else {}


def _jit(**options):
    def decorate(function=None, *, fastmath=frozenset()):
        if function is None:
            return functools.partial(decorate, fastmath=fastmath)
        return numba.njit(fastmath=set(fastmath), **options, **COMMON, **_CALLEE)(function)

    return decorate


# For functions that only loops call.
inlined = _jit(forceinline=True)
called = _jit()


def chosen_by_type(function):
    """Decorates a function that selects the code of another one by the types of its arguments."""
    return overload(function, jit_options=_CALLEE)


@intrinsic
def in_long_vectors(typing_context):
    """Makes the calling function, with everything inlined into it, use the processor's longest
    vectors.

    LLVM prefers 256 bits on Intel processors, since the first ones with 512 bits lowered their
    clock for them. numba has only a process-wide setting, which would also affect other packages.
    Chains in step are 23 to 30 % slower without this. Alternating between both lengths costs more
    than either alone, so all loops over sites that are not inlined call it. Sums do not depend on
    the length, except for dmala's product over all sites, which can differ in the last bits of
    float64.
    """

    def codegen(context, builder, signature, arguments):
        # llvmlite only accepts attributes that it knows, none of which has a value, so this one is
        # added as text.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return numba.types.none(), codegen


@functools.cache
def _folder(loop: Path) -> Path | None:
    """Returns the folder for machine code of the loops of a file; None if nothing can be kept."""
    folder = cache_folder(
        numba.config.CACHE_DIR,  # type: ignore[attr-defined]  # set from the environment
        f"numba-{digest_of_sources(loop)[:16]}",
        "NUMBA_CACHE_DIR",
    )
    return folder if folder is not None and os.access(folder, os.W_OK) else None


def entered(function):
    """Compiles a loop that Python calls: it releases the interpreter's lock, and numba caches its
    machine code.

    The folder is in $NUMBA_CACHE_DIR if that is set, otherwise in the project's cache.
    """
    folder = _folder(Path(function.__code__.co_filename))
    if INTERNALS:
        dispatcher = numba.njit(nogil=True, **COMMON)(function)
        if folder is not None:
            INTERNALS.keep(dispatcher, folder)
        return dispatcher
    # numba's own cache takes the folder from its settings when a function is decorated.
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = str(folder or "")  # type: ignore[attr-defined]
    try:
        return numba.njit(nogil=True, cache=folder is not None, **COMMON)(function)
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]
