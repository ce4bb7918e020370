"""What localization costs: short runs of a sampler and of its localized variant in turn, compared pair by pair."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from sl_discs.benchmark.contenders import Own
from sl_discs.experiment.devices import num_cores
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset

# Fewer pairs say nothing about their spread.
_FEWEST = 3


class Cost(NamedTuple):
    """What localization adds to a sampler.

    Attributes:
      base_us: microseconds of one core for a step of a chain of the base, the median.
      added: part of the base's time that localization adds, the median over pairs.
      error: standard error of `added`, from the median deviation as of normal numbers.
      pairs: how many pairs of runs.
    """

    base_us: float
    added: float
    error: float
    pairs: int


def cost_of(base: Float64[np.ndarray, "P"], localized: Float64[np.ndarray, "P"]) -> Cost:
    """The cost from microseconds a chain-step of P pairs of runs."""
    ratios = localized / base
    middle = np.median(ratios)
    deviation = 1.4826 * np.median(np.abs(ratios - middle))
    error = np.sqrt(np.pi / 2) * deviation / np.sqrt(len(ratios))
    return Cost(float(np.median(base)), float(middle - 1), float(error), len(ratios))


def measure(engine: str, sampler: str, dataset: Dataset, settings: Settings, seconds: float) -> Cost:
    """The cost of sl_SAMPLER over SAMPLER by runs of about `seconds` together, compilation apart.

    Raises:
      NotPlayed: the engine does not know the sampler.
    """
    pair = [Own(engine, name, dataset, settings) for name in (sampler, f"sl_{sampler}")]
    for one in pair:
        one.play(0)  # compiles
    times: list[list[float]] = [[], []]
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times[0]) < _FEWEST:
        for one, mine in zip(pair, times, strict=True):
            done = one.play(len(mine) + 1)
            mine.append(1e6 * num_cores() * done.seconds / done.chain_steps)
    return cost_of(*np.array(times))
