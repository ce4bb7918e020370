"""Compares the best settings of a search with the base sampler's defaults on the test instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.special import stdtrit

from sl_discs.experiment.output import Spread
from sl_discs.instances.dataset import Dataset
from sl_discs.tuning.playing import Stage
from sl_discs.tuning.points import Candidate


def paired(differences: Float64[np.ndarray, "G"]) -> dict[str, Any]:
    """Mean of differences over instances, with its 95% interval by Student's t (None for a single instance)."""
    spread = Spread.of(differences)
    half = None if spread.se is None else float(stdtrit(spread.n - 1, 0.975)) * spread.se
    interval = None if half is None else [spread.mean - half, spread.mean + half]
    return {"mean": spread.mean, "ci95": interval, "n": spread.n}


def held_out(
    stage: Stage,
    test: Dataset,
    seeds: int,
    tuned: Candidate,
    default: Candidate,
    tuned_base: Candidate | None,
    progress: Callable[[str, int], None],
) -> dict[str, Any]:
    """Test means and paired differences; the value of an instance is its mean over run seeds 0..seeds-1.

    Args:
      stage: how to evaluate candidates.
      test: the instances.
      seeds: number of run seeds.
      tuned: the best settings of the search.
      default: the base sampler's default settings, with the dataset's usual annealing.
      tuned_base: the base sampler's tuned settings, if there are any.
      progress: called with (name, chain-steps).
    """

    def values(name: str, candidate: Candidate) -> Float64[np.ndarray, "G"]:
        runs = [stage.play(candidate, test, seed, lambda steps: progress(name, steps)) for seed in range(seeds)]
        return np.mean(runs, axis=0)

    ours, theirs = values("tuned", tuned), values("default", default)
    found = {
        "test_mean": float(ours.mean()),
        "default_test_mean": float(theirs.mean()),
        "paired": paired(ours - theirs),
    }
    if tuned_base is not None:
        base = values("tuned base", tuned_base)
        found["tuned_base"] = {"test_mean": float(base.mean()), "paired": paired(ours - base)}
    return found


def in_words(difference: dict[str, Any]) -> str:
    """`+0.25, 95% interval 0.05 to 0.45, 32 instances`."""
    interval = difference["ci95"]
    words = "" if interval is None else f", 95% interval {interval[0]:+.3f} to {interval[1]:+.3f}"
    return f"{difference['mean']:+.3f}{words}, {difference['n']} instances"
