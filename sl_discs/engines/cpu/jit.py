"""How the native loops are compiled: inlined, without reference counts, and cached on disk for the next run.

All arrays are allocated outside the loops, so references need not be counted. By default numba would count,
atomically, each array of each tuple that a function unpacks, which costs more than a Markov step.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from pathlib import Path

import numba
from numba import types
from numba._dynfunc import make_function
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic, overload

from sl_discs.engines.compiled import Stopwatch
from sl_discs.errors import InputError
from sl_discs.files import cache_folder

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment
    raise InputError("NUMBA_DISABLE_JIT is set, and without a compiler there are no chains on CPUs; unset it")

# Compilation of functions that only compiled loops call: it stops at LLVM's intermediate code.
#
# By default numba optimises each such function by itself and generates machine code for it, and then does both again
# for the copies of it in every caller. Here a callee stays intermediate code, and the loop is optimised once, as a
# whole: the first run of sl_path_auxiliary takes 12.5 CPU-seconds instead of 21.5.


class _Intermediate(JITCodeLibrary):
    """Code that is linked into its callers."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """Lowers to intermediate code, in place of the pass that continues to machine code."""

    _name = "lowering_of_callee"

    def run_pass(self, state):
        context, name = state.targetctx, state.func_id.func_qualname
        state.library = _Intermediate(context.codegen(), name)
        state.flags.no_compile = True
        super().run_pass(state)
        state.library.finalize()
        # Callers find the code by this entry, which points to nothing that Python could call.
        entry = make_function(state.func_id.module, name, "", 0, state.cr.env, (state.library,))
        context.insert_user_function(entry, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=entry)
        return True


class CalleeCompiler(CompilerBase):
    """numba's own pipeline with that pass replaced."""

    def define_pipelines(self):
        """Returns the pipelines, as `CompilerBase` requires."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(_Lowering if one is NativeLowering else one, words) for one, words in passes.passes]
        passes.finalize()
        return [passes]


# For loops over sites: products and sums may be fused.
FUSED = frozenset({"contract"})
# For sums over sites: terms may also be reordered, which vectorises them. Elementary functions would lose accuracy.
REORDERED = frozenset({"contract", "reassoc"})

# Nothing calls the loops as C functions, and a wrapper for that would be one more copy of each loop to optimise.
_COMMON = {"_nrt": False, "error_model": "numpy", "no_cfunc_wrapper": True}
_CALLEE = {"no_cpython_wrapper": True, "pipeline_class": CalleeCompiler}


def _jit(**options):
    def decorate(function=None, *, fastmath=frozenset()):
        if function is None:
            return functools.partial(decorate, fastmath=fastmath)
        return numba.njit(fastmath=set(fastmath), **options, **_COMMON, **_CALLEE)(function)

    return decorate


# For functions that only loops call; `from_python` makes them callable from Python.
inlined = _jit(forceinline=True)
called = _jit()


def chosen_by_type(function):
    """Decorates a function that selects the code of another one by the types of its arguments."""
    return overload(function, jit_options=_CALLEE)


@intrinsic
def in_long_vectors(typing_context):
    """Makes the calling function, with everything inlined into it, use the processor's longest vectors.

    LLVM prefers 256 bits on Intel processors, since the first ones with 512 bits lowered their clock for them. numba
    has only a process-wide setting, which would also affect other packages. Chains in step are 23 to 30 % slower
    without this. Alternating between both lengths costs more than either alone, so all loops over sites that are not
    inlined call it. Sums do not depend on the length, except for dmala's product over all sites, which can differ in
    the last bits of float64.
    """

    def codegen(context, builder, signature, arguments):
        # llvmlite only accepts attributes that it knows, none of which has a value, so this one is added as text.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), codegen


def from_python(function):
    """Returns, for tests, a function with the same arguments that can be called from Python."""

    def entry(*arguments):
        in_long_vectors()
        return function(*arguments)

    return numba.njit(**_COMMON)(entry)


class _Timed(event.Listener):
    """Counts what numba compiles or loads as compilation of the thread (`compile_seconds`)."""

    def __init__(self):
        self._thread = threading.local()

    def on_start(self, _):
        depth = getattr(self._thread, "depth", 0)
        if depth == 0:
            self._thread.stopwatch = Stopwatch()
        self._thread.depth = depth + 1

    def on_end(self, _):
        self._thread.depth -= 1
        if self._thread.depth == 0:
            self._thread.stopwatch.stop()


event.register("numba:compiler_lock", _Timed())


@functools.cache
def _folder(package: Path = Path(__file__).parents[2]) -> str | None:
    """Returns the folder for machine code, which is that of all sources of the package; None if nothing can be kept.

    numba compares only the source of the loop itself, not of the functions and constants that it was compiled with.
    """
    folder = cache_folder(numba.config.CACHE_DIR)  # type: ignore[attr-defined]  # set from the environment
    if folder is None or not os.access(folder, os.W_OK):
        return None
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        digest.update(f"{source.relative_to(package).as_posix()}\0".encode())
        digest.update(source.read_bytes())
    return str(folder / f"numba-{digest.hexdigest()[:16]}")


def entered(function):
    """Compiles a loop that Python calls: it releases the interpreter's lock, and numba caches its machine code.

    The folder is in $NUMBA_CACHE_DIR if that is set, otherwise in the project's cache.
    """
    folder, before = _folder(), numba.config.CACHE_DIR  # type: ignore[attr-defined]
    # numba reads the folder when a function is decorated, and has no argument for it.
    numba.config.CACHE_DIR = folder or ""  # type: ignore[attr-defined]
    try:
        return numba.njit(nogil=True, cache=folder is not None, **_COMMON)(function)
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]
