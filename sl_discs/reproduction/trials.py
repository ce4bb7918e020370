"""The trials of protocol `as published`, and of its null control.

The paper searched the settings of localization for each dataset and reports the best result, chosen on the graphs of
its tables. Here trial 0 has the default settings, and trial k > 0 has a point of the paper's search space. Points
are a
fixed list, the same for every dataset and method: each block of eight is a Latin hypercube, so that eight trials
cover all eight values of sigma and every eighth of each other range. A trial thus only depends on its number, and
finished trials stay valid when more are requested. Trial k runs with seed k.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sl_discs.errors import InputError
from sl_discs.localization.method import method_fields
from sl_discs.reproduction.cell import AS_PUBLISHED, NULL, Cell, Choice
from sl_discs.reproduction.datasets import PublishedSet
from sl_discs.tuning.points import Candidate, candidate_of
from sl_discs.tuning.space import Point, propose, space_of

_BLOCK = 8
_SEED = 0


class Uniform:
    """Chooses by a number from [0, 1) for each name: a position in the range, or among the choices."""

    def __init__(self, numbers: dict[str, float]):
        self._numbers = numbers

    def suggest_categorical(self, name, choices):
        """The choice at that position."""
        return choices[int(self._numbers[name] * len(choices))]

    def suggest_float(self, name, low, high, *, log, step):
        """The number at that position, on a logarithmic scale or on a grid if the range has one."""
        u = self._numbers[name]
        if step is not None:
            return low + step * int(u * (round((high - low) / step) + 1))
        return float(low * (high / low) ** u) if log else low + (high - low) * u


def point_of_trial(trial: int, method: str, chain_length: int) -> Point:
    """The point of a trial from 1 on.

    Args:
      trial: its number.
      method: an `sl_` method.
      chain_length: steps, which limit how many levels there can be.

    Raises:
      InputError: the chain is too short for any point.
    """
    space = space_of(method, "sl", chain_length)
    block, place = divmod(trial - 1, _BLOCK)
    rng = np.random.default_rng([_SEED, block])
    strata = rng.permuted(np.tile(np.arange(_BLOCK), (len(space), 1)), axis=1)
    numbers = (strata + rng.random(strata.shape)) / _BLOCK
    return propose(space, Uniform({one.name: float(u) for one, u in zip(space, numbers[:, place], strict=True)}))


def trial_cells(
    choice: Choice, dataset: PublishedSet, methods: list[str], trials: int
) -> tuple[list[Cell], list[str]]:
    """Trials 0..trials-1 of each `sl_` method, and as many with the tilt off; and reasons if there are none.

    Annealing is DISCS's, as in the paper's base rows, so there is nothing to search for a base sampler, which is
    represented by its cell at defaults.
    """
    cells = []
    try:
        for method in (name for name in methods if name.startswith("sl_")):
            start = Candidate(method_fields(method), {})
            for trial in range(trials):
                alone = dataclasses.replace(choice, seeds=(trial,))
                point = point_of_trial(trial, method, choice.steps(dataset)) if trial else {}
                changes = candidate_of(point, start).sampler if trial else {}
                for protocol, switch in ((AS_PUBLISHED, {}), (NULL, {"tilt": False})):
                    setting = f"trial {trial}"
                    cells.append(
                        alone.cell(dataset, method, changes=changes | switch, setting=setting, protocol=protocol)
                    )
    except InputError as error:
        return [], [f"{dataset.name}, search on the test instances: left out: {error}"]
    return cells, []
