"""Marks of parameters."""

import pytest


def slow_except(names, fast):
    """All names, those that are not among the fast ones marked as slow."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]
