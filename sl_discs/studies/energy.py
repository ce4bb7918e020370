"""Does localization help to train energy-based models? Two models of digits, at equal steps of their chains.

Each is trained by a base sampler and by its localized variant, with the same data, first parameters and number of
Markov steps. Reported is the mean log-likelihood of held-out digits, with log Z by population annealing and, for the
Boltzmann machine, by enumeration. The table goes to energy.md, images beside it; finished pieces are kept in a
folder cells, so that a stopped command continues where it left off.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from sl_discs.atomic import write_atomically
from sl_discs.command import say
from sl_discs.models import rbm
from sl_discs.problems.density import from_log_density
from sl_discs.results.canvas import can_draw, save_figure
from sl_discs.results.interval import half_width
from sl_discs.sampling.sample import sample
from sl_discs.studies.cells import finished
from sl_discs.studies.energy_training import (
    PIXELS,
    SIDE,
    Energy,
    boltzmann_machine,
    convolutional,
    digits,
    train,
)

# Images of each arm in the figure.
_SHOWN = 12


class Size(NamedTuple):
    """How much is run.

    Attributes:
      hidden: units of the Boltzmann machine.
      channels: of the convolutional energy.
      updates: of the machine, and of the convolutional energy.
      seeds: number of repetitions.
      populations: of an estimate of log Z.
    """

    hidden: int = 16
    channels: int = 4
    updates: tuple[int, int] = (3_000, 600)
    seeds: int = 3
    populations: int = 4


FULL = Size()


@dataclasses.dataclass(frozen=True)
class Arm:
    """One training run.

    Attributes:
      energy: name of the model.
      method: name of the sampler.
      localized: whether it is the localized variant.
      seed: of everything.
      found: what was measured, in plain values.
    """

    energy: str
    method: str
    localized: bool
    seed: int
    found: dict[str, Any]

    @property
    def log_z(self) -> float:
        """By enumeration where it is known."""
        exact = self.found["exact_log_z"]
        return self.found["log_z"] if exact is None else exact

    @property
    def likelihood(self) -> float:
        """Mean log-likelihood of the test images, in nats."""
        return self.found["test"] - self.log_z


def run(folder: Path, size: Size = FULL) -> list[Arm]:
    """Trains, estimates, and writes energy.md and energy.png into the folder."""
    energies = zip((boltzmann_machine(size.hidden), convolutional(size.channels)), size.updates, strict=True)
    arms = []
    for energy, updates in energies:
        for seed in range(size.seeds):
            for localized in (False, True):
                arms.append(_arm(folder / "cells", energy, updates, localized, seed, size))
                say(f"{energy.name}, {arms[-1].method}, seed {seed}: {arms[-1].likelihood:.2f}")
    write_atomically(folder / "energy.md", lambda file: file.write(page(arms).encode()))
    if can_draw():
        draw(folder / "energy.png", arms)
    return arms


def _arm(folder: Path, energy: Energy, updates: int, localized: bool, seed: int, size: Size) -> Arm:
    method = ("sl_" if localized else "") + energy.sampler["name"]
    identity = {
        "kind": "energy", "energy": energy.name, "method": method, "updates": updates, "seed": seed,
        "hidden": size.hidden, "channels": size.channels, "populations": size.populations,
        "steps": energy.steps, "levels": energy.levels, "rate": energy.rate,
    }  # fmt: skip
    found = finished(folder, identity, lambda: _measured(energy, updates, localized, seed, size.populations))
    return Arm(energy.name, method, localized, seed, found)


def _measured(energy: Energy, updates: int, localized: bool, seed: int, populations: int) -> dict[str, Any]:
    data, test = digits()
    begin = time.process_time()
    trained = train(energy, data, localized=localized, updates=updates, seed=seed)
    seconds = time.process_time() - begin
    problem = from_log_density(energy.log_density, trained.params, PIXELS, name=energy.name)
    # On pixels, whatever the chains of training were; more draws are not needed for log Z.
    drawn = sample(problem, 1.0, populations, "population", sampler="path_auxiliary", groups=populations, seed=seed)
    assert drawn.log_z is not None
    log_density = jax.jit(jax.vmap(energy.log_density, (None, 0)))
    values = [float(log_density(trained.params, rows.astype(np.float32)).mean()) for rows in (data, test)]
    chosen = np.random.default_rng(seed).choice(len(drawn), _SHOWN, p=drawn.weights)
    exact = rbm.log_z(trained.params) if isinstance(trained.params, rbm.RBMParams) else None
    return {
        "train": values[0], "test": values[1], "log_z": float(drawn.log_z[0]), "error": float(drawn.log_z[1]),
        "exact_log_z": exact, "cpu_s": seconds, "draws": drawn.states[chosen].tolist(),
        "chains": trained.chains[:_SHOWN, :PIXELS].tolist(),
    }  # fmt: skip


def page(arms: list[Arm]) -> str:
    """The table and what it says, in Markdown."""
    lines = [
        "| energy | sampler | seed | test log-likelihood | training | log Z, population | log Z, exact | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        found, exact = arm.found, arm.found["exact_log_z"]
        lines.append(
            f"| {arm.energy} | {arm.method} | {arm.seed} | {arm.likelihood:.2f} | {found['train'] - arm.log_z:.2f} | "
            f"{found['log_z']:.2f} ± {found['error']:.2f} | {'' if exact is None else f'{exact:.2f}'} | "
            f"{found['cpu_s']:.0f} |"
        )
    lines += ["", *(_difference([arm for arm in arms if arm.energy == name]) for name in _names(arms))]
    return "\n".join(lines) + "\n"


def _names(arms: list[Arm]) -> list[str]:
    return list(dict.fromkeys(arm.energy for arm in arms))


def _difference(arms: list[Arm]) -> str:
    """Localized minus base, paired by seed, with a 95 per cent interval by Student's t."""
    base, localized = ([arm.likelihood for arm in arms if arm.localized == which] for which in (False, True))
    gains = np.subtract(localized, base)
    mean = gains.mean()
    if len(gains) < 2:
        return f"- {arms[0].energy}: localized minus base {mean:+.2f} nats a test image (one seed)."
    half = half_width(gains)
    verdict = "no clear difference" if abs(mean) < half else "localized is better" if mean > 0 else "base is better"
    return (
        f"- {arms[0].energy}: localized minus base {mean:+.2f} nats a test image, 95 % interval "
        f"[{mean - half:+.2f}, {mean + half:+.2f}] over {len(gains)} seeds: {verdict}."
    )


def draw(path: Path, arms: list[Arm]) -> Path:
    """Digits, and for each arm of seed 0 draws from the model and the chains of training."""
    rows = [("digits", digits()[1][:_SHOWN])]
    for arm in (arm for arm in arms if arm.seed == 0):
        name = f"{arm.energy}\n{arm.method}"
        rows += [(f"{name}\ndraws", arm.found["draws"]), (f"{name}\nchains", arm.found["chains"])]

    def paint(figure):
        axes = figure.subplots(len(rows), 1)
        for axis, (name, images) in zip(axes, rows, strict=True):
            padded = np.pad(np.reshape(images, (_SHOWN, SIDE, SIDE)), ((0, 0), (1, 1), (1, 1)))
            axis.imshow(np.concatenate(list(padded), axis=1), cmap="gray_r", interpolation="nearest")
            axis.set_ylabel(name, rotation=0, ha="right", va="center")
            axis.set(xticks=[], yticks=[])

    return save_figure(path, (7.0, 0.62 * len(rows)), paint)
