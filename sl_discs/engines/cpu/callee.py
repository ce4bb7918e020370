"""Compilation of functions that only compiled loops call: it stops at LLVM's intermediate code.

By default numba optimises each such function by itself and generates machine code for it, and then does both again
for the copies of it in every caller. That takes longer than the loop itself. Here a callee stays intermediate code,
and the loop is optimised once, as a whole.
"""

from __future__ import annotations

from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


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
        """The pipelines, as `CompilerBase` requires."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(_Lowering if one is NativeLowering else one, words) for one, words in passes.passes]
        passes.finalize()
        return [passes]
