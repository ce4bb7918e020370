"""Quadratic functions of spins."""

from sl_discs.models.form_kind import FormKind

KIND = FormKind(name="ising", title="Ising model")
