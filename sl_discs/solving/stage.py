"""The arrays of one problem, and rounds of chains on them."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Int8

from sl_discs.errors import InputError
from sl_discs.experiment.batches import build_batch, initial_keys, plan, step_keys
from sl_discs.experiment.chains import Outcome, Player, Progress, Watch
from sl_discs.experiment.monitor import Recorder
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import Method
from sl_discs.models.quadratic import sparse_is_cheaper
from sl_discs.models.terms import Coefficients, Terms
from sl_discs.problems import Problem
from sl_discs.solving.options import check_fit
from sl_discs.solving.recipe import Recipe

# Sums of terms between these sizes stay finite in float32, and the smallest terms do not vanish.
_LARGEST, _SMALLEST = 1e30, 1e-30
# Up to so many padded sites, rows cost next to nothing.
_SMALL = 128


def terms_of(problem: Problem) -> Coefficients:
    """The maximised model, as `Kind.terms`.

    Raises:
      InputError: coefficients are beyond the range of the model's 32-bit numbers.
    """
    terms = problem.terms()
    check_range(problem, terms.largest())
    return terms


def check_range(problem: Problem, largest: float) -> None:
    """Raises InputError where the largest coefficient is beyond the range of 32-bit numbers."""
    if not (largest == 0 or _SMALLEST < largest < _LARGEST):
        raise InputError(
            f"{problem.name}: the largest coefficient is {largest:g}; multiply all of them by one number so that it "
            f"lies between {_SMALLEST:g} and {_LARGEST:g}"
        )


class Stage:
    """Chains of one problem; each round has its own random numbers."""

    def __init__(
        self,
        problem: Problem,
        terms: Terms,
        recipe: Recipe,
        steps: int,
        states: Int8[np.ndarray, "R N"] | None,
        *,
        fit: bool,
    ):
        """Lays out chains.

        Args:
          problem: the problem to sample.
          terms: of its model.
          recipe: for the chains.
          steps: of the first round.
          states: initial states of the chains, in turn; None: random ones.
          fit: as in `Recipe.method`.

        Raises:
          InputError: they do not fit into memory.
        """
        self._seed = recipe.seed
        player = Player(recipe.method(steps, fit=fit), recipe.settings(steps))
        [pack] = plan([terms], 1, recipe.chains, player.num_devices, player.layout)
        self._shape = dataclasses.replace(pack.shape, degree=_rounded(pack.shape.degree, pack.shape.num_sites))
        check_fit(problem, recipe, steps, player.engine, self._shape)
        places = len(pack.filled)
        self._model, self._batch = build_batch([terms] * places, [0] * places, self._shape, recipe.seed)
        self._states = None
        if states is not None:
            padded = np.zeros((places, self._shape.num_chains, self._shape.num_sites), np.int8)
            padded[:, :, : states.shape[1]] = np.resize(states, (self._shape.num_chains, states.shape[1]))
            self._states = padded

    def play(
        self,
        number: int,
        method: Method,
        settings: Settings,
        watch: Watch,
        progress: Progress,
        steps_per_call: int | None,
        recorder: Recorder,
    ) -> Outcome:
        """One round of chains.

        Args:
          number: of the round, which determines its random numbers.
          method: of the recipe.
          settings: of the recipe.
          watch: as in `Player.play`.
          progress: as in `Player.play`.
          steps_per_call: as in `Player.play`.
          recorder: as in `Player.play`.
        """
        names = [number] * len(self._batch.mask)
        batch = self._batch._replace(keys=step_keys(names, self._shape, self._seed))
        keys = initial_keys(names, self._shape, self._seed)
        return Player(method, settings).play(
            self._model,
            batch,
            keys,
            self._shape,
            progress,
            recorder=recorder,
            states=self._states,
            watch=watch,
            steps_per_call=steps_per_call,
        )


def _rounded(degree: int | None, num_sites: int) -> int | None:
    """The length of neighbour lists, chosen so that similar problems share a program; None: rows.

    Lengths are powers of two, and small problems have no lists.
    """
    if degree is None or num_sites <= _SMALL:
        return None
    longer = 1 << max(degree - 1, 0).bit_length()
    return longer if sparse_is_cheaper(longer, num_sites) else degree
