"""Methods of the study of laws: a name, and arguments of `sl_discs.sample`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BASELINE, LOW_RANK, SEARCHED = "tempering", "low-rank", "localization-searched"

# Few groups, so that warm-ups take little of a short time; `SEARCHED` starts from the settings of `localization`.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "gibbs": {"method": "chain"},
    "path-auxiliary": {"method": "chain", "sampler": "path_auxiliary"},
    "localization": {"method": "localization", "groups": 2},
    SEARCHED: {"method": "localization", "groups": 2},
    BASELINE: {"method": "tempering", "groups": 2},
    "population": {"method": "population", "groups": 8},
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
