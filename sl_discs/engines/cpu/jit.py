"""How the native loops are compiled: inlined, without reference counts, and kept on disk for the next run.

Arrays reach the loops from outside and none is made in them, so that nothing needs counting; numba would otherwise
count, atomically, each array of each tuple that a function takes apart, which costs more than a Markov step.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import numba
from numba import types
from numba.extending import intrinsic

# For loops over sites: products and sums may be fused.
FUSED = frozenset({"contract"})
# For sums over sites: also reordered, which vectorises them. Not for elementary functions, which would lose accuracy.
REORDERED = frozenset({"contract", "reassoc"})

_COMMON = {"_nrt": False, "error_model": "numpy"}


def _jit(**options):
    def decorate(function=None, *, fastmath=frozenset()):
        if function is None:
            return functools.partial(decorate, fastmath=fastmath)
        return numba.njit(fastmath=set(fastmath), **options, **_COMMON)(function)

    return decorate


inlined = _jit(forceinline=True)
called = _jit()


@intrinsic
def in_long_vectors(typing_context):
    """Has the loops of the function that says so compiled to vectors as long as the processor's own, in every caller.

    LLVM keeps to 256 bits on Intel's cores, whose first ones with 512 bits clocked down for them. numba could be told
    otherwise for a whole process only, other people's loops included. Loops of vectors of both lengths in turn cost
    more than either alone, so every loop over sites says it. Sums have an order of their own, whatever the length;
    only dmala's product over all sites can differ, in the last bits of float64.
    """

    def codegen(context, builder, signature, arguments):
        # llvmlite lists the attributes that it knows, none of which has a value; LLVM reads this one from the text.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), codegen


def _cache_folder() -> str:
    """A folder for this version of the loops: numba itself does not notice that a function called has changed.

    It is in $NUMBA_CACHE_DIR, $SL_DISCS_CACHE or ~/.cache/sl_discs, the first of them that is set.
    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    root = numba.config.CACHE_DIR or os.environ.get("SL_DISCS_CACHE") or Path.home() / ".cache" / "sl_discs"
    return str(Path(root) / f"native-{digest.hexdigest()[:16]}")


def entered(function):
    """A loop that Python calls: it lets go of the interpreter's lock, and its machine code is kept on disk."""
    options = {"nogil": True, **_COMMON}
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _cache_folder()
    try:
        return numba.njit(cache=True, **options)(function)
    except (RuntimeError, OSError):  # no folder that can be written
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before
