"""Independent sets and cliques of sparse graphs by integer programming, in a process of its own.

HiGHS complements branch and bound (`cliques`): it proves sparse graphs with thousands of nodes, on
which the relaxation with clique inequalities is nearly tight. The process computes the relaxation
with low priority and stops. Where that is near the best known answer, it goes on to a proof, but
only while it has its turn.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator

import numpy as np

from sl_discs.instances.graph import complement
from sl_discs.solving.presolved import Presolved
from sl_discs.solving.proofs import TURN, SetProver, Worker
from sl_discs.solving.provers import integer_program

# Graphs with more edges, in all or for each node, are not relaxed well, or take seconds to be laid
# out.
_MOST_EDGES, _SPARSE = 200_000, 8
# Seconds of turns that are saved before the process begins, so that short searches have none.
_START_S = 0.1
# The distance from the best known answer, as a part of it, within which the relaxation promises a
# proof, and that from which on it never will.
_NEAR, _FAR = 0.04, 0.16


class IntegerProgram(SetProver):
    """The heaviest sets of a graph, which are those of the reduced problem, or its cliques."""

    by = "integer programming"

    def __init__(self, presolved: Presolved):
        super().__init__(presolved)
        self._process: subprocess.Popen | None = None
        self._relaxed: float | None = None

    def _run(self) -> Iterator[float]:
        yield _START_S
        self._process = self._begun()
        seconds = _START_S
        while True:
            if self._relaxed is not None and np.isfinite(self.best):
                known = self.weight_of(self.best)
                gap = self._relaxed - known
                self.expected = (
                    0.0 if gap <= _NEAR * known else None if gap <= _FAR * known else np.inf
                )
            # It waits for better answers, or is given up, where the relaxation is too far off.
            if (self._relaxed is None or self.expected == 0) and not self._wait(
                self._process, seconds
            ):
                return
            seconds = TURN
            yield seconds

    def _begun(self) -> subprocess.Popen:
        graph = complement(self.problem.source) if self.cliques else self.problem.source
        with tempfile.TemporaryFile() as arrays_file:
            np.savez(arrays_file, weights=self.weights, edges=graph.edges)
            arrays_file.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-P", integer_program.__file__],
                stdin=arrays_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        self._end = weakref.finalize(self, _end, process)
        return process

    def _wait(self, process: subprocess.Popen, seconds: float) -> bool:
        """Waits for `seconds`, or until the process prints a line; returns whether it goes on."""
        assert process.stdout is not None
        proving = self._relaxed is not None
        if proving:
            process.send_signal(signal.SIGCONT)
        if not select.select([process.stdout], [], [], seconds)[0]:
            if proving:
                process.send_signal(signal.SIGSTOP)
            return True
        line = process.stdout.readline()
        if line:
            message = json.loads(line)
            self.take_bound(message["bound"])
            if not proving:
                self._relaxed = message["bound"]
                return True
            self.take_nodes(message["set"])
        return False

    def close(self) -> None:
        if self._process is not None:
            self._end()


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.communicate()


def integer_prover(presolved: Presolved) -> Worker | None:
    """Returns a prover of heaviest sets or cliques, which are sets of the complement; None where
    there is none.
    """
    prover = IntegerProgram(presolved)
    graph = presolved.left.source
    size = graph.num_nodes
    count = graph.num_edges
    if prover.cliques:
        count = size * (size - 1) // 2 - count
    can_wait = hasattr(signal, "SIGSTOP") and bool(sys.executable)
    return prover if can_wait and 0 < count <= min(_MOST_EDGES, _SPARSE * size) else None
