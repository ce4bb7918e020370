"""What a problem is posed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np


class Source(Protocol):
    """A graph, a quadratic form, or what a kind of problem of one's own is posed on.

    A reader of a format returns it; `Kind.accepts` says which kinds of problems take it.
    """

    @property
    def name(self) -> str:
        """Its name in results."""

    @property
    def own_problem(self) -> str | None:
        """The kind of problem that it poses by itself; None: the user says which."""

    @property
    def num_variables(self) -> int:
        """Number of variables N."""

    @property
    def num_terms(self) -> int:
        """Number of edges, quadratic terms or clauses."""

    @property
    def words(self) -> tuple[str, str, str]:
        """What it is, and what its variables and terms are, such as a graph, node and edge."""

    @property
    def coefficients(self) -> Mapping[str, np.ndarray]:
        """The numbers that it has, by what they are: `weights`, `weights of nodes`, `couplings`."""
