"""Quadratic functions of zeros and ones under linear constraints, which are checked, not repaired."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Int8

from sl_discs.errors import InputError
from sl_discs.instances.form import ConstrainedForm, FormValues
from sl_discs.models.bounds import of_form
from sl_discs.models.kind import PENALTY, Evaluated, Kind
from sl_discs.models.quadratic import Coefficients, form_coefficients, has_whole_values
from sl_discs.problem_names import CONSTRAINED


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConstrainedKind(Kind):
    """A form with constraints."""

    @property
    def spins(self) -> bool:
        """Variables are 0 and 1."""
        return False

    def accepts(self, source: Any) -> bool:
        """Whether this is a form of zeros and ones with constraints."""
        return isinstance(source, ConstrainedForm) and not source.form.spins

    def num_variables(self, source: ConstrainedForm) -> int:
        """Number of variables N."""
        return source.num_variables

    def maximises(self, source: ConstrainedForm) -> bool:
        """Whether the form is maximised."""
        return source.form.maximise

    def terms(self, source: ConstrainedForm, penalty: float = PENALTY) -> Coefficients:
        """There are none without penalties, which `sl_discs.reductions.penalised` adds: always an InputError."""
        raise InputError(
            f"{source.form.name}: a problem with constraints can only be solved, by sl_discs.solve; to sample, "
            "put penalties for the constraints into Q"
        )

    def bound_of(self, source: ConstrainedForm, seconds: float) -> float:
        """As `Kind.bound_of`: without the constraints."""
        return of_form(source.form)

    def whole_values(self, source: ConstrainedForm) -> bool:
        """As `Kind.whole_values`."""
        return has_whole_values(source.form)

    def objective(self, source: ConstrainedForm, penalty: float) -> Coefficients:
        """The form as a function that is maximised."""
        return form_coefficients(source.form)

    def allowed(self, source: ConstrainedForm, states: Int8[np.ndarray, "B N"]) -> Bool[np.ndarray, "B"]:
        """Where all constraints hold."""
        return np.asarray(source.met(states).all(axis=1))

    def num_terms(self, source: ConstrainedForm) -> int:
        """Those of the form."""
        return len(source.form.couplings)

    def magnitude(self, source: ConstrainedForm, penalty: float) -> float:
        """As `Kind.magnitude`: of the terms as given, which may cancel."""
        return source.form.magnitude()

    def evaluator(self, source: ConstrainedForm) -> Callable[[Int8[np.ndarray, "B N"]], Evaluated]:
        """The exact value of the form at each state, and whether all constraints hold there."""
        values = FormValues(source.form)
        return lambda states: Evaluated(values(states), np.asarray(source.met(states).all(axis=1)), states)

    def violated(self, source: ConstrainedForm, state: Int8[np.ndarray, "N"]) -> list[str]:
        """The constraints that do not hold, in words."""
        return [source.names[c] for c in np.flatnonzero(~source.met(state[None])[0])]


KIND = ConstrainedKind(
    name=CONSTRAINED,
    constrained=True,
    title="Quadratic binary optimisation with constraints",
    recounted="all terms as given, summed in exact arithmetic, and every constraint holds",
    answer="{ones:,} of {size:,} variables are 1",
)
