"""The private interfaces of numba: they save time, and `jit` does without them where a version
lacks them.

They compile callees only once, keep machine code in files with a checksum, and tell how long
compilation takes.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba._dynfunc import make_function
from numba.core import event
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.serialize import dumps
from numba.core.typed_passes import NativeLowering

from sl_discs.engines.compiled import Announcement, Stopwatch
from sl_discs.support.cache import checked, or_no_cache, read_checked
from sl_discs.support.files import write_atomically

# Compilation of functions that only compiled loops call: it stops at LLVM's intermediate code.
#
# By default numba optimises each such function by itself and generates machine code for it, and
# then does both again for the copies of it in every caller. Here a callee stays intermediate code,
# and the loop is optimised once, as a whole: the first run of sl_path_auxiliary takes 12.5
# CPU-seconds instead of 21.5.


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
        context = state.targetctx
        name = state.func_id.func_qualname
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
        passes.passes = [
            (_Lowering if compiler_pass is NativeLowering else compiler_pass, description)
            for compiler_pass, description in passes.passes
        ]
        passes.finalize()
        return [passes]


# All arrays are allocated outside the loops, so references need not be counted: by default numba
# would count, atomically, each array of each tuple that a function unpacks, which costs more than a
# Markov step. Nothing calls the loops as C functions, and a wrapper for that would be one more copy
# of each loop to optimise.
OF_ALL = {"_nrt": False, "no_cfunc_wrapper": True}
OF_CALLEES = {"no_cpython_wrapper": True, "pipeline_class": CalleeCompiler}


class _Kept(NullCache):
    """Machine code of a function on disk, a file for each signature, in place of numba's own cache.

    numba's own ends a command where the disk is full, and runs whatever a damaged file holds. Here
    such a file is as good as none: the code is compiled again and replaces it.
    """

    def __init__(self, function: Callable, folder: Path):
        self._folder = folder
        self._name = f"{function.__module__}.{function.__qualname__}"

    @property
    def cache_path(self):
        return str(self._folder)

    def _key(self, signature, codegen) -> tuple:
        """Returns all that the code depends on; the folder is that of the sources."""
        versions = numba.__version__, llvmlite.__version__, platform.python_version()
        return self._name, signature, codegen.magic_tuple(), versions

    def _path(self, key: tuple) -> Path:
        # Types of one name may differ, so a file also holds its key.
        name = self._name.replace("<", "").replace(">", "")
        return self._folder / f"{name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.code"

    def load_overload(self, signature, context):
        """Returns the compiled function, None if there is none or it cannot be loaded."""
        context.refresh()
        key = self._key(signature, context.codegen())
        try:
            content = read_checked(self._path(key))
            loaded, parts = (None, ()) if content is None else pickle.loads(content)
            return CompileResult._rebuild(context, *parts) if loaded == key else None
        # A version of numba, or of what it has pickled, that differs in spite of the key.
        except Exception:
            return None

    def save_overload(self, signature, result):
        """Keeps a compiled function."""
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        key = self._key(signature, result.library.codegen)
        content = checked(dumps((key, result._reduce())))
        with or_no_cache(self._folder.parent):
            write_atomically(self._path(key), lambda file: file.write(content))


def keep(dispatcher: Any, folder: Path) -> None:
    """Lets a function of this package find its machine code in a folder, and keep it there."""
    dispatcher._cache = _Kept(dispatcher.py_func, folder)


class _Timed(event.Listener):
    """Counts the time of events of numba in a thread, from the outermost start to its end."""

    def __init__(self, clock: Callable[[], Any]):
        self._clock = clock
        self._thread = threading.local()

    def on_start(self, _):
        depth = getattr(self._thread, "depth", 0)
        if depth == 0:
            self._thread.running = self._clock()
        self._thread.depth = depth + 1

    def on_end(self, _):
        self._thread.depth -= 1
        if self._thread.depth == 0:
            self._thread.running.stop()


# All that numba compiles or loads counts as compilation of the thread; what it compiles may be
# announced.
event.register("numba:compiler_lock", _Timed(Stopwatch))
event.register("numba:compile", _Timed(Announcement))
