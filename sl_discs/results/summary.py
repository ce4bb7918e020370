"""A summary of one sampler's results over its instances."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.record import SamplerRecord


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean over n instances, and their spread.

    Attributes:
      mean: the mean.
      std: standard deviation over the instances with divisor n, as in DISCS and in the paper's +-.
      se: standard error of the mean, sample standard deviation (divisor n - 1) over sqrt(n); None for n = 1.
      n: number of instances.
    """

    mean: float
    std: float
    se: float | None
    n: int

    @classmethod
    def of(cls, values: Float64[np.ndarray, "n"]) -> Spread:
        """Summarizes at least one value."""
        n = len(values)
        se = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else None
        return cls(float(np.mean(values)), float(np.std(values)), se, n)


def best_values(sampler: SamplerRecord) -> Float64[np.ndarray, "G"]:
    """The verified objective of each instance."""
    return np.array([instance.best for instance in sampler.instances], dtype=np.float64)


def references(sampler: SamplerRecord) -> Float64[np.ndarray, "G"] | None:
    """The reference of each instance, or None unless every instance has one other than zero."""
    values = [instance.reference for instance in sampler.instances]
    return np.array(values, dtype=np.float64) if all(values) else None


def percent_of_reference(sampler: SamplerRecord) -> Float64[np.ndarray, "G"] | None:
    """100 best / reference of each instance, or None unless every instance has a non-zero reference."""
    divisors = references(sampler)
    return None if divisors is None else 100.0 * best_values(sampler) / divisors
