"""Potts models: variables with several values, of which neighbours are rewarded or punished for being equal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.errors import InputError
from sl_discs.instances.form import PottsForm
from sl_discs.models.bounds import of_potts
from sl_discs.models.kind import PENALTY, Evaluated, Kind
from sl_discs.models.potts import PottsTerms, potts_terms
from sl_discs.models.quadratic import Coefficients, are_whole


@dataclasses.dataclass(frozen=True, kw_only=True)
class PottsKind(Kind):
    """A Potts form; any assignment is feasible."""

    @property
    def spins(self) -> bool:
        """Variables are numbered from 0."""
        return False

    def accepts(self, source: Any) -> bool:
        """Whether this is a Potts form."""
        return isinstance(source, PottsForm)

    def num_variables(self, source: PottsForm) -> int:
        """Number of variables N."""
        return source.num_variables

    def num_values(self, source: PottsForm) -> tuple[int, ...]:
        """q_i of each variable."""
        return source.values

    def maximises(self, source: PottsForm) -> bool:
        """Whether the form is maximised."""
        return source.maximise

    def terms(self, source: PottsForm, penalty: float = PENALTY) -> Coefficients:
        """There are none in zeros and ones: always an InputError."""
        raise InputError(
            f"{source.name}: this needs variables of two values, and those of a {self.name} problem may have more; "
            "sl_discs.solve and sl_discs.sample take them"
        )

    def objective(self, source: PottsForm, penalty: float) -> PottsTerms:
        """The form as a function that is maximised."""
        return potts_terms(source)

    def bound_of(self, source: PottsForm, seconds: float) -> float:
        """As `Kind.bound_of`."""
        return of_potts(source)

    def whole_values(self, source: PottsForm) -> bool:
        """As `Kind.whole_values`."""
        return are_whole(np.concatenate([source.couplings, source.fields.ravel()]))

    def evaluator(self, source: PottsForm) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """The exact value of each state."""

        def evaluate(states: Int8[np.ndarray, "B N"]) -> Evaluated:
            values = np.array([source.value(state) for state in states], np.float64)
            return Evaluated(values, np.ones(len(states), bool), states)

        return evaluate


KIND = PottsKind(
    name="potts",
    title="Potts model",
    recounted="all terms as given, summed in exact arithmetic",
    answer="a value for each of {size:,} variables",
)
