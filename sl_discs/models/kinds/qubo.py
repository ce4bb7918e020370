"""Quadratic functions of zeros and ones."""

from sl_discs.models.form_kind import FormKind

KIND = FormKind(name="qubo", title="Quadratic binary optimisation")
