"""Cells of the study of laws: one method on one target with one time limit and seed, measured once
and kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from finished import finished
from laws_targets import (
    Observed,
    Target,
    by_long_tempering,
    observe,
    standard_error_of_mode,
    width_of_rest,
)
from sl_discs.engines.compiled import compile_cpu_seconds
from sl_discs.engines.devices import num_cores
from sl_discs.sampling.draw_samples import sample
from sl_discs.support.identity import digest
from truths import Truth, weight_of_mode

BASELINE, LOW_RANK, SEARCHED = "tempering", "low-rank", "localization-searched"

# Few groups, so that warm-ups take little of a short time; `SEARCHED` starts from the settings of
# `localization`.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "gibbs": {"method": "chain"},
    "path-auxiliary": {"method": "chain", "sampler": "path_auxiliary"},
    "localization": {"method": "localization", "groups": 2},
    SEARCHED: {"method": "localization", "groups": 2},
    BASELINE: {"method": "tempering", "groups": 2},
    LOW_RANK: {"method": "low_rank"},
}

# Settings of Algorithm 1 that are tried; with each of them sign(Y) is a draw.
CANDIDATES: tuple[Mapping[str, Any], ...] = (
    {"sigma": 2.0, "K": 64, "mc_ratio": 0.5},
    {"sigma": 2.0, "K": 512, "mc_ratio": 0.5},
    {"sigma": 1.0, "K": 128, "mc_ratio": 0.5},
    {"sigma": 1.0, "K": 256, "mc_ratio": 1.0},
    {"sigma": 0.5, "K": 256, "mc_ratio": 0.5},
)


# Largest number of bins in which distributions of the order parameter are compared.
_BINS = 32
# Seeds of the instance of a family that is measured, and of the one on which settings are searched.
MEASURED, SEARCHED_ON = 1, 2
_SEARCH_SEEDS, _SEARCH_SECONDS = 4, 0.3
ERRORS = "mode", "energy", "marginals", "log_z", "tv"


class Known(NamedTuple):
    """A target with its truth; `evidence` are round trips and standard errors of a truth from long
    tempering.
    """

    name: str
    truth: Truth
    width: float
    evidence: Mapping[str, float]


def know(name: str, target: Target, seed: int, folder: Path) -> Known:
    """An instance of the family with its truth; a truth from long tempering is cached in the
    folder.
    """
    made = target.make(seed)
    terms = made.problem.terms()
    width = width_of_rest(terms, made.temperature, target.rank)
    if isinstance(made, Truth):
        return Known(name, made, width, {})

    def compute() -> dict[str, Any]:
        truth, evidence = by_long_tempering(made)
        assert truth.counts is not None
        return {
            "log_z": truth.log_z, "mean_value": truth.mean_value, "marginals": truth.marginals.tolist(),
            "counts": truth.counts.tolist(), "evidence": evidence,
        }  # fmt: skip

    plain = {field: np.asarray(value).tolist() for field, value in terms._asdict().items()}
    identity = {"kind": name, "problem": digest(plain), "draws": made.draws}
    found = finished(folder / "truths", identity, compute)
    counts = np.array(found["counts"])
    truth = Truth(
        made.problem, made.temperature, found["log_z"], found["mean_value"], np.array(found["marginals"]),
        weight_of_mode(counts), counts, made.direction,
    )  # fmt: skip
    return Known(name, truth, width, found["evidence"])


class Cell(NamedTuple):
    method: str  # name of the method
    arguments: Mapping[str, Any]  # arguments of `sample`
    seconds: float  # time limit
    seed: int  # seed of the draws


class Play(NamedTuple):
    """The result of a cell.

    Attributes:
      cpu_s: CPU-seconds of the whole call, including its diagnostics but not compilation.
      draws: number of draws.
      errors: by name, None if the method or the truth does not give the quantity: `mode` of the
        mode weight, `energy` of the mean of f/temperature per variable, `marginals` root mean
        square over variables, `log_z`, and `tv`, the total variation between binned distributions
        of the number of spins along the direction.
      reliable: the verdict on the draws.
      mode_se: the standard error of the mode weight estimated from the draws; None if there is no
        mode.
    """

    cpu_s: float
    draws: int
    errors: dict[str, float | None]
    reliable: bool
    mode_se: float | None


def play(truth: Truth, cell: Cell) -> Play:
    """Measures a cell; InputError if the method refuses the target.

    After Ctrl-C, `sample` returns the draws that it has; they do not make a cell.
    """
    begin, compiling = time.process_time(), compile_cpu_seconds()
    samples = sample(
        truth.problem, truth.temperature, seed=cell.seed, time_limit=cell.seconds, **cell.arguments
    )
    if samples.interrupted:
        raise KeyboardInterrupt
    cpu = time.process_time() - begin - (compile_cpu_seconds() - compiling)
    mode_se = (
        None if truth.mode_weight is None else standard_error_of_mode(samples, truth.direction)
    )
    errors = errors_of(truth, observe(samples, truth.direction))
    return Play(cpu, len(samples), errors, samples.reliable, mode_se)


def errors_of(truth: Truth, found: Observed) -> dict[str, float | None]:
    size = len(truth.marginals)
    mode = tv = log_z = None
    if truth.counts is not None and truth.mode_weight is not None:
        mode = abs(weight_of_mode(found.counts) - truth.mode_weight)
        tv = float(np.abs(_in_bins(found.counts) - _in_bins(truth.counts)).sum() / 2)
    if found.log_z is not None:
        log_z = abs(found.log_z - truth.log_z)
    return {
        "mode": mode,
        "energy": abs(found.mean_value - truth.mean_value) / truth.temperature / size,
        "marginals": float(np.sqrt(np.mean((found.marginals - truth.marginals) ** 2))),
        "log_z": log_z,
        "tv": tv,
    }


def coin(truth: Truth) -> dict[str, float | None]:
    """The null control: the errors of the exact distribution with the sign of the mode drawn by a
    fair coin.

    A method that ignores the direction can do no better. The marginals are those of a symmetric
    distribution, 1/2.
    """
    if truth.counts is None:
        return dict.fromkeys(ERRORS)
    size = len(truth.marginals)
    k = np.arange(len(truth.counts))
    up = 2 * k >= len(truth.counts)
    weights = np.where(up, truth.counts[up].sum(), truth.counts[~up].sum())
    counts = truth.counts / weights / 2
    found = Observed(truth.mean_value, np.full(size, 0.5), counts, None)
    return errors_of(truth, found) | {"energy": None}


def _in_bins(counts: Float64[np.ndarray, "K"]) -> Float64[np.ndarray, "B"]:
    return np.bincount(np.arange(len(counts)) * _BINS // max(_BINS, len(counts)), counts)


def identity_of(known: Known, cell: Cell) -> dict[str, Any]:
    """Everything that a cell's numbers depend on, except the machine's speed."""
    truth = known.truth
    return {
        "kind": cell.method, "target": known.name, "temperature": truth.temperature, "log_z": truth.log_z,
        "mean": truth.mean_value, "arguments": dict(cell.arguments), "seconds": cell.seconds, "seed": cell.seed,
        "threads": num_cores(),
    }  # fmt: skip


def searched(
    name: str, target: Target, arguments: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Arguments with the settings of Algorithm 1 that have the least error on another instance of
    the family.
    """

    def compute() -> dict[str, Any]:
        truth = know(f"{name}-searched", target, SEARCHED_ON, folder).truth
        return {"scores": [_score(truth, {**arguments, **one}) for one in CANDIDATES]}

    identity = {
        "kind": name, "candidates": [dict(one) for one in CANDIDATES], "seconds": _SEARCH_SECONDS,
        "seeds": _SEARCH_SEEDS, "arguments": dict(arguments),
    }  # fmt: skip
    scores = finished(folder / "settings", identity, compute)["scores"]
    return {**arguments, **CANDIDATES[int(np.argmin(scores))]}


def _score(truth: Truth, arguments: Mapping[str, Any]) -> float:
    """Mean square error of the marginals and the mode weight, times the CPU time that it took."""
    total = 0.0
    for seed in range(_SEARCH_SEEDS):
        found = play(truth, Cell("", arguments, _SEARCH_SECONDS, seed))
        squares = [
            one**2 for one in (found.errors["mode"], found.errors["marginals"]) if one is not None
        ]
        total += found.cpu_s * float(np.mean(squares))
    return total / _SEARCH_SEEDS
