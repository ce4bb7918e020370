"""How the memory of a process grows with draws that go to a file."""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from sl_discs.benchmark.drawing import SWEEPING
from sl_discs.benchmark.growth import random_graph
from sl_discs.problems.problem import Problem
from sl_discs.sampling.arena import Arena
from sl_discs.sampling.chain import collect
from sl_discs.sampling.drawn import Budget, Store
from sl_discs.sampling.options import Options

_DEGREE, _TEMPERATURE = 8, 1.0


class Memory(NamedTuple):
    """Of a run.

    Attributes:
      variables: N.
      draws: of all chains together.
      file_mib: that the draws take.
      grown_mib: growth of the process's peak while they were drawn, pages of the file that are in memory included.
    """

    variables: int
    draws: int
    file_mib: float
    grown_mib: float


def peak_mib() -> float:
    """The largest memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def measure_memory(variables: int, draws: int, chains: int) -> Memory:
    """Draws, a sweep apart, of independent sets on a random graph, after a few that compile."""
    graph = random_graph(variables, _DEGREE)
    terms = Problem("mis", graph.name, range(variables), graph).terms()
    arena = Arena(terms, "gibbs", SWEEPING, chains, engine="cpu")
    arena.record(_TEMPERATURE, 8)
    each = -(-draws // chains)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "draws.npy"
        store = Store(chains, variables, each, str(path))
        options = Options(each, chains, "gibbs", {}, "cpu", 0, str(path))
        before = peak_mib()
        collect(arena, _TEMPERATURE, 1, store, options, Budget(None, None, lambda name, count: None))
        store.bits()
        grown = peak_mib() - before
        return Memory(variables, each * chains, path.stat().st_size / 2**20, grown)


def format_memory(found: Memory) -> str:
    """A sentence."""
    return (
        f"{found.draws:,} draws of {found.variables:,} variables take {found.file_mib:,.0f} MiB in their file; "
        f"the process's peak grew by {found.grown_mib:,.0f} MiB"
    )
