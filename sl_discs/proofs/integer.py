"""Independent sets and cliques of sparse graphs by integer programming, in a process of its own.

HiGHS complements branch and bound (`cliques`): it proves sparse graphs with thousands of nodes, on which the
relaxation with clique inequalities is nearly tight. The process computes the relaxation with low priority and stops.
Where that is near the best known answer, it goes on to a proof, but only while it has its turn.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from typing import IO

import numpy as np

from sl_discs.instances.graph import Graph, complement
from sl_discs.problems.kind import KINDS, Structure
from sl_discs.proofs import integer_program
from sl_discs.proofs.provers import Prover, SetProver
from sl_discs.reductions.presolve import Presolved

# Graphs with more edges, in all or for each node, are not relaxed well, or take seconds to be laid out.
_MOST_EDGES, _SPARSE = 200_000, 8
# Seconds of turns that are saved before the process begins, so that short searches have none.
_START_S = 0.1
# The distance from the best known answer, as a part of it, within which the relaxation promises a proof, and that
# from which on it never will.
_NEAR, _FAR = 0.04, 0.16
# Seconds between two looks at what the process has printed.
_LOOK_S = 0.005


class IntegerProgram(SetProver):
    """The heaviest sets of a graph, which are those of the reduced problem, or its cliques."""

    by = "integer programming"

    def __init__(self, presolved: Presolved, graph: Graph):
        super().__init__(presolved)
        self._graph, self._work = graph, 0.0
        self._process: subprocess.Popen | None = None
        # Of the file into which it prints, and how much of that was read.
        self._printed, self._read = -1, 0
        self._end: Callable[[], object] = lambda: None
        self._relaxed: float | None = None

    def advance(self, work: float, best: float) -> bool:
        if self._relaxed is not None and np.isfinite(best):
            known = self.weight_of(best)
            gap = self._relaxed - known
            self.expected = 0.0 if gap <= _NEAR * known else None if gap <= _FAR * known else np.inf
        if self._relaxed is not None and self.expected != 0:  # it waits for better answers, or is given up
            return True
        self._work += work
        if self._process is None:
            if self._work < _START_S:
                return True
            self._begin()
        seconds, self._work = self._work, 0.0
        return self._run(seconds)

    def _begin(self) -> None:
        with tempfile.TemporaryFile() as given:
            np.savez(given, weights=self.weights, edges=self._graph.edges)
            given.seek(0)
            printed = tempfile.TemporaryFile()  # noqa: SIM115  # it is closed with the process
            self._process = subprocess.Popen(
                [sys.executable, "-P", integer_program.__file__],
                stdin=given,
                stdout=printed,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        self._printed = printed.fileno()
        self._end = weakref.finalize(self, _end, self._process, printed)

    def _run(self, seconds: float) -> bool:
        """Waits for `seconds`, or until the process prints a line; returns whether it goes on."""
        assert self._process is not None
        end, proving = time.perf_counter() + seconds, self._relaxed is not None
        if proving:
            self._process.send_signal(signal.SIGCONT)
        while True:
            over = self._process.poll() is not None
            lines, newline, _ = os.pread(self._printed, 2**30, self._read).rpartition(b"\n")
            self._read += len(lines + newline)
            for line in lines.splitlines():
                self._take(json.loads(line))
            left = end - time.perf_counter()
            if over or lines or left <= 0:
                break
            time.sleep(min(left, _LOOK_S))
        if proving and not over:
            self._process.send_signal(signal.SIGSTOP)
        return not over

    def _take(self, found: dict) -> None:
        """Takes a line of the program."""
        self.take_bound(found["bound"])
        if "set" in found:
            self.take_nodes(found["set"])
        else:
            self._relaxed = found["bound"]

    def close(self) -> None:
        self._end()


def _end(process: subprocess.Popen, printed: IO[bytes]) -> None:
    process.kill()
    process.wait()
    printed.close()


def integer_prover(presolved: Presolved) -> Prover | None:
    """Returns a prover of heaviest sets or cliques, which are sets of the complement; None where there is none."""
    graph = presolved.left.source
    most = min(_MOST_EDGES, _SPARSE * graph.num_nodes)
    if KINDS[presolved.left.kind].structure is Structure.CLIQUES:
        missing = graph.num_nodes * (graph.num_nodes - 1) // 2 - graph.num_edges
        if missing > most:
            return None
        graph = complement(graph)
    can_wait = hasattr(signal, "SIGSTOP") and bool(sys.executable)
    return IntegerProgram(presolved, graph) if can_wait and 0 < graph.num_edges <= most else None
