"""Sums that are rounded once."""

import math

import numpy as np
import pytest

from sl_discs.instances.form import exact_sum


@pytest.mark.parametrize("count", [0, 1, 255, 256, 3_000])
@pytest.mark.parametrize("spread", [0, 30, 400, 2_000])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_fsum(count, spread, seed):
    """Numbers over up to 2,000 binary orders of magnitude, which cancel but for a few."""
    rng = np.random.default_rng(seed)
    half = np.ldexp(
        rng.normal(size=count // 2), rng.integers(-spread // 2, spread // 2 + 1, count // 2)
    )
    values = rng.permutation(np.concatenate([half, -half[3:], rng.normal(size=count - count // 2)]))
    assert exact_sum(values) == math.fsum(values)


def test_ties_and_the_smallest_and_largest_numbers():
    for values in (
        [5e-324] * 400,
        [1e300] * 400,
        [1e16, 1.0, -1e16] * 100,
        [2.0**53] + [1.0] * 511,
        [0.0] * 300,
    ):
        assert exact_sum(np.array(values)) == math.fsum(values)
