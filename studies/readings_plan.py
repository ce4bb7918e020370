"""The readings of the paper's algorithm: temperatures, levels, tilts and observations.

Each reading has a control without tilt, which is otherwise the same run. `readings.py` plays them.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32

from sl_discs.engines.program import Program, StepTemperatures
from sl_discs.experiment.settings import Settings
from sl_discs.localization.schedule import Localization

# Temperatures of a run.
RUN = "over the run"  # DISCS's annealing
LEVEL = "inside each level"  # DISCS's annealing, from its start to its end in every level
CONSTANT = "constant"
HELD = "held over each level"  # as over the run, in the middle of the level
BY_LEVEL = "by level"  # level i of K has the temperature of the part i/K of the run
SEARCHED = "searched"  # over the run, as a search for GWG found it on other graphs of the set

# Tilts of a run.
OUTSIDE = "outside"  # f/tau + <s, h>, as in this package
INSIDE = "inside"  # (f + <s, h>)/tau
FIRST, LAST = "first half", "last half"  # of the steps; none in the other half


class Reading(NamedTuple):
    """A way to play the paper's algorithm.

    Attributes:
      annealing: how the temperature goes with steps and levels.
      localization: fields that differ from the package's defaults.
      tilt: where it stands; None: there is none.
      control: the reading that is the same run without tilt.
      shared: whether the chains of a graph have one observation, which moves by the mean of their
        spins.
    """

    annealing: str
    localization: dict[str, Any]
    tilt: str | None
    control: str
    shared: bool = False


BASE = "base"


def _readings() -> dict[str, Reading]:
    found = {
        BASE: Reading(RUN, {}, None, BASE),
        "annealing over the run": Reading(RUN, {}, OUTSIDE, BASE),
    }

    def add(name: str, annealing: str, localization: dict[str, Any], tilt: str) -> None:
        without = f"{name}, no tilt"
        found[name] = Reading(annealing, localization, tilt, without)
        found[without] = Reading(annealing, localization, None, without)

    for levels in (512, 256, 1024):
        add(
            f"annealing inside each level, K {levels}", LEVEL, {"K": levels, "sigma": 15.0}, OUTSIDE
        )
    add("constant temperature", CONSTANT, {"sigma": 15.0}, OUTSIDE)
    found["searched annealing, no localization"] = Reading(
        SEARCHED, {}, None, "searched annealing, no localization"
    )
    add("temperature by level", BY_LEVEL, {}, OUTSIDE)
    inside = "tilt inside the temperature"
    add(inside, HELD, {}, INSIDE)
    found["one observation a graph"] = Reading(RUN, {}, OUTSIDE, BASE, shared=True)
    found[f"one observation a graph, {inside}"] = Reading(
        HELD, {}, INSIDE, f"{inside}, no tilt", shared=True
    )
    found |= {f"tilt in the {half}": Reading(RUN, {}, half, BASE) for half in (FIRST, LAST)}
    # y of the coding {0, 1} is alpha (1 + s)/2 + sigma B: but for what is known, half of alpha s +
    # 2 sigma B.
    found["0/1 coding"] = Reading(RUN, {"sigma": 20.0}, OUTSIDE, BASE)
    # The paper's GEOM(3, 1), see `localization.schedule`.
    found["SLIPS's Geom(2,1)"] = Reading(RUN, {"alpha": "geom(3,1)"}, OUTSIDE, BASE)
    return found


READINGS = _readings()
PRIMARY = tuple(READINGS)[:11]
SECONDARY = tuple(READINGS)[11:]
# What stays out, and why.
LEFT_OUT = {
    "tilt inside a temperature that changes at every step": "a level has one tilt; the temperature "
    "is held over it",
}

# The constant temperature of sets whose names begin so. Of cuts the best of 0.3, 0.4, 0.7, 1, 1.5,
# 2 and 3 without localization, for PAS and GWG with one flip on 16 other graphs of each set.
CONSTANTS = {
    "mis": 0.2, "maxclique": 0.2, "maxcut/ba": 0.4, "maxcut/er/r-er-0.15-n-256": 1.0,
    "maxcut/er/r-er-0.15-n-512": 1.0, "maxcut/er/r-er-0.15-n-1024": 1.5,
}  # fmt: skip

ER = tuple(f"mis/er_density/r-{p}" for p in ("0.10", "0.20", "0.05", "0.25"))
# The twelve sets on which the paper publishes a gain.
SETS = (
    *ER, "mis/satlib", "maxclique/rb", "maxcut/er/r-er-0.15-n-256-300", "maxcut/ba/r-ba-4-n-256-300",
    "maxcut/ba/r-ba-4-n-512-600", "maxcut/er/r-er-0.15-n-512-600", "maxcut/ba/r-ba-4-n-1024-1100",
    "maxcut/er/r-er-0.15-n-1024-1100",
)  # fmt: skip
WITH_SECONDARY = ER[:2]
SECONDARY_SAMPLER = "gwg_one_flip"


def searched(dataset: str) -> dict[str, Any] | None:
    """Returns the searched annealing of a set, as fields of settings; None if there was no
    search.
    """
    path = Path(__file__).parents[1] / "configs" / "sampler" / "tuned" / dataset / "gwg.json"
    return json.loads(path.read_text())["experiment"] if path.exists() else None


def constant_of(dataset: str) -> float:
    """Returns the constant temperature of a set."""
    return next(temperature for name, temperature in CONSTANTS.items() if dataset.startswith(name))


def program_of(reading: Reading, settings: Settings, constant: float) -> Program:
    """Returns the program of all steps.

    The observations of chains that share theirs are replaced by their mean after each level
    (`readings.play_shared`), so that the noise of each has the standard deviation of the mean's,
    times the root of the number of chains.
    """
    length = settings.chain_length
    fields = {"K": 256} | reading.localization
    # A short chain has fewer levels.
    fields["K"] = max(2, fields["K"] * length // 10_000)
    localization = Localization(**fields, tilt=reading.tilt is not None)
    levels = localization.levels(length)
    last = np.asarray(levels.last)
    temperature = temperatures(reading.annealing, settings, last, constant)
    scale = np.array(levels.tilt_scale)
    if reading.tilt == INSIDE:
        scale /= temperature[last]
    elif reading.tilt in (FIRST, LAST):
        scale[(last < length // 2) == (reading.tilt == LAST)] = 0
    spread = np.float32(math.sqrt(settings.batch_size) if reading.shared else 1)
    noises = {"noise": spread * levels.noise, "first_noise": spread * levels.first_noise}
    return Program(StepTemperatures(temperature), levels._replace(tilt_scale=scale, **noises))


def temperatures(
    annealing: str, settings: Settings, last: Int32[np.ndarray, "K"], constant: float
) -> Float32[np.ndarray, "T"]:
    """Returns the temperature of each step, where each level ends with the step `last`, counted
    from 0.
    """

    def of_length(length) -> Float32[np.ndarray, "T"]:
        return dataclasses.replace(
            settings, chain_length=int(length), log_every_steps=1
        ).temperatures()[:]

    steps, run = np.diff(last, prepend=-1), of_length(settings.chain_length)
    if annealing in (RUN, SEARCHED):
        return run
    if annealing == LEVEL:
        return settings.temperatures(last)[:]
    if annealing == CONSTANT:
        return np.full_like(run, constant)
    if annealing == HELD:
        return np.repeat(run[last - steps // 2], steps)
    return np.repeat(of_length(len(last)), steps)
