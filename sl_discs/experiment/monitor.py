"""Curves of a run in progress, as event files for TensorBoard.

`<folder>/events/<method>` holds the curves of a method, which are means over the instances of a batch. If there are
several batches, which run one after the other, each has its own curves in `batch-K-of-N`; so has each part of a run.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from sl_discs.engines.base import Trace
from sl_discs.errors import InputError
from sl_discs.experiment.chains import Chains
from sl_discs.experiment.settings import Settings
from sl_discs.terminal import tell

# Event files of scalars for TensorBoard, written with tensorboardX and without TensorFlow.
#
# tensorboardX's summary writer works in a thread, where a full disk goes unnoticed, so its file and message classes
# are used here directly.


def check_tensorboardx() -> None:
    """For commands that will write events: InputError without tensorboardX, before a long run."""
    if importlib.util.find_spec("tensorboardX") is None:
        raise InputError(
            "tensorboardX is missing, so no events; install it with: pip install -e '.[run]' in the clone"
        )


class EventsFile:
    """A new event file in a folder; additions are on disk when a call returns. OSError if it cannot be written.

    Readers drop the first step and later ones from older files of the folder.
    """

    def __init__(self, folder: Path, first_step: int = 0):
        from tensorboardX.proto.event_pb2 import SessionLog
        from tensorboardX.record_writer import RecordWriter

        folder.mkdir(parents=True, exist_ok=True)
        # Readers sort a folder's files by name.
        path = folder / f"events.out.tfevents.{time.time():017.6f}.{socket.gethostname()}.{os.getpid()}"
        self._records = RecordWriter(str(path))
        start = {"step": first_step, "session_log": SessionLog(status=SessionLog.START)}
        self._write({"file_version": "brain.Event:2"}, start)

    def add(self, rows: list[tuple[int, Mapping[str, float]]]) -> None:
        """Adds scalars, by tag, for some steps."""
        from tensorboardX.proto.summary_pb2 import Summary

        summaries = (
            (step, Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]))
            for step, scalars in rows
        )
        self._write(*({"step": step, "summary": summary} for step, summary in summaries))

    def _write(self, *events: dict) -> None:
        from tensorboardX.proto.event_pb2 import Event

        now = time.time()
        for fields in events:
            self._records.write(Event(wall_time=now, **fields).SerializeToString())
        self._records.flush()


class Curves:
    """The curves of one batch of a method, in the problem's own sense.

    Args:
      folder: folder of the events.
      sign: 1.0 if the objective is maximised, else -1.0.
      constants: [G] constants that the models omit; surplus instances of the batch are not included.
      settings: settings of the run.
    """

    def __init__(self, folder: Path, sign: float, constants: Float64[np.ndarray, "G"], settings: Settings):
        self._folder, self._members, self._settings = folder, len(constants), settings
        self._sign, self._constant = sign, constants.mean()
        self._temperature = settings.temperatures()
        self._best = np.full(self._members, -np.inf)
        self._file: EventsFile | None = None
        self._failed = False

    def _value(self, trace: Trace) -> np.ndarray:
        """[L, G] best value over the chains at each logged step."""
        return np.asarray(trace.value)[:, : self._members, : self._settings.batch_size].max(axis=2)

    def __call__(self, every: int, trace: Trace, chains: Chains, seconds: float | None) -> None:
        """Writes the curves of a call; steps after the last logged one have none."""
        if every != self._settings.log_every_steps or self._failed:
            return
        best = np.maximum.accumulate(np.maximum(self._value(trace), self._best), axis=0)
        self._best = best[-1]
        if seconds is None:  # the curves were written before the run was interrupted
            return
        chosen = slice(self._members), slice(self._settings.batch_size)
        acceptance, hops = (np.asarray(leaf)[(slice(None), *chosen)] for leaf in (trace.acceptance, trace.hops))
        rows: list[tuple[int, Mapping[str, float]]] = []
        first = chains.done - len(best) * every
        for k in range(len(best)):
            step = first + (k + 1) * every
            scalars = {
                "objective": float(self._sign * (best[k].mean() + self._constant)),
                "temperature": float(self._temperature[step - 1]),
                "acceptance": float(acceptance[k].mean()),
                "radius": float(hops[k].mean()),
            }
            rows.append((step, scalars))
        # Of the last step, there is more.
        if seconds > 0:
            scalars["chain_steps_per_s"] = len(best) * every * acceptance[0].size / seconds
        scalars |= contractions(chains, chosen)
        # A failure does not end the run.
        try:
            if self._file is None:
                self._file = EventsFile(self._folder, first + 1)
            self._file.add(rows)
        except OSError as error:
            tell(f"warning: no events: {self._folder}: {error.strerror}; the run continues without")
            self._failed = True


def contractions(chains: Chains, chosen: tuple[slice, slice]) -> dict[str, float]:
    """How far localization has decided the spins: means over sites, chains and instances, from 0 to 1.

    `posterior_contraction` is |U|, where U is the posterior mean estimated from the states that the current level has
    collected so far. It is omitted until half of them are collected, since a few samples always look decided.
    `tilt_contraction` is |tanh h|, the mean of a free spin in the field h of the observation. Empty without
    localization, and where sites have several values.

    Args:
      chains: that have run at least one step.
      chosen: the instances and chains that count.
    """
    state, levels, step = chains.states.chain.state, chains.program.levels, chains.done
    if levels is None or np.ndim(state.y) > np.ndim(chains.batch.mask) + 1:
        return {}
    mask = np.asarray(chains.batch.mask)[chosen[0]]

    def over_sites(sizes: np.ndarray) -> float:
        return float((sizes[chosen].mean(axis=1, dtype=np.float64) * mask).sum() / mask.sum())

    level = levels.at(step)
    sizes = np.abs(np.tanh(levels.tilt_scale[level] * np.asarray(state.y)))
    found = {"tilt_contraction": over_sites(sizes)}
    # For the current level: steps that have counted for U so far, as a fraction of those that will.
    counted = step - (levels.last[level] + 1 - levels.collected[level])
    collected = max(0.0, float(counted / levels.collected[level])) if step <= levels.last[level] else 0.0
    if collected >= 0.5:
        # In float32, the terms of a mean may add up to slightly more than 1.
        found["posterior_contraction"] = min(1.0, over_sites(np.abs(np.asarray(state.mean))) / collected)
    return found
