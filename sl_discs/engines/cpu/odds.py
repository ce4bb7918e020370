"""A product over sites, used in place of a sum of logarithms."""

from __future__ import annotations

import numpy as np

from sl_discs.engines.cpu.jit import REORDERED, called, in_long_vectors


@called(fastmath=REORDERED)
def product_of_odds(weights, first, last, scale):
    """The product of 1 + scale w over the sites from `first` to `last` - 1."""
    in_long_vectors()
    product = 1.0
    for i in range(first, last):
        product *= 1.0 + scale * np.float64(weights[i])
    return product
