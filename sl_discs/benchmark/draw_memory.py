"""Measures how the memory of a process grows with draws that are written to a file."""

from __future__ import annotations

import functools
import resource
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from sl_discs.benchmark.growth import random_graph
from sl_discs.problems.problem import Problem
from sl_discs.sampling.diagnostics import LEAST_DRAWS
from sl_discs.sampling.sample import sample

# A high temperature, at which one sweep between two draws is enough.
_DEGREE, _TEMPERATURE = 8, 4.0


class Memory(NamedTuple):
    """Memory of a run.

    Attributes:
      variables: N.
      draws: number of draws of all chains together.
      file_mib: size of the draws' file.
      grown_mib: growth of the process's peak during drawing and diagnostics, including the file's pages.
    """

    variables: int
    draws: int
    file_mib: float
    grown_mib: float


def peak_mib() -> float:
    """The peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def measure_memory(variables: int, draws: int, chains: int, engine: str = "cpu") -> Memory:
    """`sl_discs.sample` of independent sets on a random graph by `chain`, after a few draws that compile."""
    graph = random_graph(variables, _DEGREE)
    problem = Problem("mis", graph.name, range(variables), graph)
    draw = functools.partial(sample, problem, _TEMPERATURE, method="chain", groups=chains, engine=engine)
    draw(draws=LEAST_DRAWS * chains)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.npy"
        before = peak_mib()
        found = draw(draws=draws, store=str(path))
        return Memory(variables, len(found), path.stat().st_size / 2**20, peak_mib() - before)


def format_memory(found: Memory) -> str:
    """The result as a sentence."""
    return (
        f"{found.draws:,} draws of {found.variables:,} variables take {found.file_mib:,.0f} MiB in their file; "
        f"the process's peak grew by {found.grown_mib:,.0f} MiB"
    )
