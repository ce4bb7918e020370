"""What a run says of itself while it goes on, in events files that TensorBoard reads.

`<folder>/events/<method>` holds the curves of a method, means over the instances that run side by side. Batches run
one after the other; where there are several, each has curves of its own, in `batch-K-of-N`, and so has each host.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from sl_discs.engines.contract import Batch, Chains, Program, Trace
from sl_discs.experiment.events import EventsFile
from sl_discs.experiment.settings import Settings


class Monitor:
    """Where the events of a run go.

    Attributes:
      folder: of the events.
      label: of this host, empty for one alone.
    """

    def __init__(self, folder: Path, label: str = ""):
        self.folder, self.label = Path(folder), label.replace(" ", "-")

    def folder_of(self, method: str, number: int, count: int) -> Path:
        """Where the curves of batch `number` of `count` go."""
        batch = f"batch-{number}-of-{count}" if count > 1 else ""
        return self.folder / method.replace("/", "-") / self.label / batch


@runtime_checkable
class Recorder(Protocol):
    """What a player tells of its calls; see `Curves`."""

    def recall(self, every: int, trace: Trace) -> None:
        """Of a call that was made before the run was interrupted."""

    def add(
        self, first: int, stop: int, every: int, trace: Trace, chains: Chains, batch: Batch, program, seconds: float
    ) -> None:
        """Of a call that was just made."""


class Curves:
    """The curves of one batch of a method, in the problem's own sense.

    Args:
      folder: of the events.
      sign: 1.0 where the objective is maximised, else -1.0.
      constants: [G] what the model of each instance that counts leaves out; surplus instances of the batch do not.
      settings: of the run.
    """

    def __init__(self, folder: Path, sign: float, constants: Float64[np.ndarray, "G"], settings: Settings):
        self._folder, self._members, self._settings = folder, len(constants), settings
        self._sign, self._constant = sign, constants.mean()
        self._temperature = settings.temperatures()
        self._best = np.full(self._members, -np.inf)
        self._file: EventsFile | None = None
        self._failed = False

    def _value(self, trace: Trace) -> np.ndarray:
        """[L, G] best of the chains at each logged step."""
        return np.asarray(trace.value)[:, : self._members, : self._settings.batch_size].max(axis=2)

    def recall(self, every: int, trace: Trace) -> None:
        """Takes notice of a call whose curves were written before the run was interrupted."""
        if every == self._settings.log_every_steps:
            self._best = np.maximum(self._best, self._value(trace).max(axis=0))

    def add(
        self, first: int, stop: int, every: int, trace: Trace, chains: Chains, batch: Batch, program, seconds: float
    ) -> None:
        """Writes what a call has recorded.

        Args:
          first: steps that were done before it.
          stop: steps that are done after it.
          every: steps of its intervals; a rest after the last logged step has no curves.
          trace: leaves [L, G, B].
          chains: after it.
          batch: of the chains.
          program: of the whole chain.
          seconds: that it took.
        """
        if every != self._settings.log_every_steps or self._failed:
            return
        best = np.maximum.accumulate(np.maximum(self._value(trace), self._best), axis=0)
        self._best = best[-1]
        chosen = slice(self._members), slice(self._settings.batch_size)
        acceptance, hops = (np.asarray(leaf)[(slice(None), *chosen)] for leaf in (trace.acceptance, trace.hops))
        rows = []
        for k in range(len(best)):
            step = first + (k + 1) * every
            scalars = {
                "objective": self._sign * (best[k].mean() + self._constant),
                "temperature": self._temperature[step - 1],
                "acceptance": acceptance[k].mean(),
                "radius": hops[k].mean(),
            }
            rows.append((step, {tag: float(value) for tag, value in scalars.items()}))
        last = rows[-1][1]
        if seconds > 0:
            last["chain_steps_per_s"] = (stop - first) * acceptance[0].size / seconds
        last |= contractions(chains, batch, program, stop, chosen)
        self._write(first, rows)

    def _write(self, first: int, rows) -> None:
        """Curves that cannot be written must not end the run."""
        try:
            if self._file is None:
                self._file = EventsFile(self._folder, first + 1)
            self._file.add(rows)
        except OSError as error:
            sys.stderr.write(f"warning: no events: {self._folder}: {error.strerror}; the run continues without\n")
            self._failed = True


def contractions(
    chains: Chains, batch: Batch, program: Program, step: int, chosen: tuple[slice, slice]
) -> dict[str, float]:
    """How far localization has decided the spins: means over sites, chains and instances, from 0 to 1.

    `posterior_contraction` is |U|, U the estimate of the posterior mean from what the level at work has collected so
    far; left out until that is half of what it will collect, as few samples always look decided. `tilt_contraction`
    is |tanh h|, what the field h of the observation alone would make of free spins. Empty without localization, and
    where sites have several values.

    Args:
      chains: after `step` steps, leaves [G, B, ...].
      batch: of the chains.
      program: of the run.
      step: from 1 to T.
      chosen: the instances and chains that count.
    """
    observation, levels = chains.chain.observation, program.levels
    if observation is None or levels is None or np.ndim(observation.y) > np.ndim(batch.mask) + 1:
        return {}
    mask = np.asarray(batch.mask)[chosen[0]]

    def over_sites(sizes: np.ndarray) -> float:
        return float((sizes[chosen].mean(axis=1, dtype=np.float64) * mask).sum() / mask.sum())

    level = levels.at(step)
    sizes = np.abs(np.tanh(levels.tilt_scale[level] * np.asarray(observation.y)))
    found = {"tilt_contraction": over_sites(sizes)}
    # Of the level at work: steps that have counted for U so far, as a part of those that will.
    counted = step - (levels.last[level] + 1 - levels.collected[level])
    collected = max(0.0, float(counted / levels.collected[level])) if step <= levels.last[level] else 0.0
    if collected >= 0.5:
        # The parts of a mean in 32 bits may add up to a little more than 1.
        found["posterior_contraction"] = min(1.0, over_sites(np.abs(np.asarray(observation.mean))) / collected)
    return found
