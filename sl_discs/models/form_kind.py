"""Problems on a quadratic form: any state is feasible, and the form determines whether its value is maximised."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.instances.form import FormValues, QuadraticForm
from sl_discs.models.bounds import of_form
from sl_discs.models.kind import PENALTY, Evaluated, Kind
from sl_discs.models.quadratic import Coefficients, form_coefficients, has_whole_values
from sl_discs.problem_names import FORM_PROBLEMS


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormKind(Kind):
    """A problem on a form."""

    recounted: str = "all terms as given, summed in exact arithmetic"
    answer: str = "{ones:,} of {size:,} variables are 1"
    reduction: str = "sl_discs.reductions.quadratic:reduce_form"

    @property
    def spins(self) -> bool:
        """Whether variables are -1 and 1 instead of 0 and 1."""
        return FORM_PROBLEMS[self.name]

    def accepts(self, source: Any) -> bool:
        """Whether this is a form of such variables."""
        return isinstance(source, QuadraticForm) and source.spins == self.spins

    def num_variables(self, source: QuadraticForm) -> int:
        """Number of variables N."""
        return source.num_variables

    def maximises(self, source: QuadraticForm) -> bool:
        """Whether the form is maximised."""
        return source.maximise

    def terms(self, source: QuadraticForm, penalty: float = PENALTY) -> Coefficients:
        """The form as a function of zeros and ones that is maximised; there is nothing to penalise."""
        return form_coefficients(source)

    def bound_of(self, source: QuadraticForm, seconds: float) -> float:
        """As `Kind.bound_of`."""
        return of_form(source)

    def whole_values(self, source: QuadraticForm) -> bool:
        """As `Kind.whole_values`."""
        return has_whole_values(source)

    def magnitude(self, source: QuadraticForm, penalty: float) -> float:
        """As `Kind.magnitude`: of the terms as given, which may cancel."""
        return source.magnitude()

    def evaluator(self, source: QuadraticForm) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """The exact value of each state."""
        values = FormValues(source)
        return lambda states: Evaluated(values(states), np.ones(len(states), bool), states)
