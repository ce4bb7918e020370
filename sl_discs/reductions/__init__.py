"""Exact reductions: a smaller problem whose best states give best states of the original."""

from sl_discs.reductions.presolve import Presolved, presolve

__all__ = ["Presolved", "presolve"]
