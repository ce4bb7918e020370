"""Exact reductions: a smaller problem whose best states give best states of the original."""

from sl_discs.reductions.presolve import presolve
from sl_discs.reductions.presolved import Presolved

__all__ = ["Presolved", "presolve"]
