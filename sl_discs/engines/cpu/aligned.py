"""Arrays that begin where a cache line does.

NumPy's begin at any multiple of 16 bytes. Whether vectors then lie across two lines at every second access is a
matter of chance, as the time of a step was: `sl_gwg` with sums of 16 bits took up to 14 per cent longer.
"""

from __future__ import annotations

import math

import numpy as np

_LINE = 64


def aligned_zeros(shape: int | tuple[int, ...], dtype=np.float64) -> np.ndarray:
    """As np.zeros."""
    dtype, shape = np.dtype(dtype), shape if isinstance(shape, tuple) else (shape,)
    # Dozens of arrays are made for each call of the loops; NumPy's product alone takes longer than all the rest.
    num_bytes = math.prod(shape) * dtype.itemsize
    room = np.zeros(num_bytes + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + num_bytes].view(dtype).reshape(shape)
