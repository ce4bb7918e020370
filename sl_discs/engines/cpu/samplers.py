"""The samplers that this engine runs, and the selection of the kernel by the type of the settings.

The kernel is selected when the loop is compiled, so no sampler pays for the others.
"""

from __future__ import annotations

from collections.abc import Callable

from sl_discs.engines.cpu import langevin, path, single_site
from sl_discs.engines.cpu.jit import chosen_by_type
from sl_discs.engines.cpu.step import Kernel
from sl_discs.samplers.exchange import Exchange
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis

ENTRIES = {
    GWG: path.ENTRY,
    PathAuxiliary: path.ENTRY,
    DMALA: langevin.ENTRY,
    Gibbs: single_site.ENTRY,
    Metropolis: single_site.ENTRY,
    Exchange: single_site.EXCHANGE,
}
_KERNELS = {settings: kernel for entry in ENTRIES.values() for settings, kernel in entry.kernels.items()}


def _chosen(field: str) -> Callable:
    """A function for compiled loops: a field of the kernel that belongs to the type of its first argument."""

    def call(settings, *arguments):
        raise NotImplementedError("compiled code only")

    @chosen_by_type(call)
    def choose(settings, *arguments):
        function = getattr(_KERNELS[settings.instance_class], field)
        return lambda settings, *arguments: function(settings, *arguments)

    return call


play_step, weigh_state, fill_block = map(_chosen, Kernel._fields)
