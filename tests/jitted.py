"""Functions that only compiled loops call, called from Python."""

import numba

from sl_discs.engines.cpu.jit import COMMON, in_long_vectors


def from_python(function):
    """A function with the same arguments, compiled as in a loop."""

    def entry(*arguments):
        in_long_vectors()
        return function(*arguments)

    return numba.njit(**COMMON)(entry)
