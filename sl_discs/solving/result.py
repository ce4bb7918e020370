"""The result of `sl_discs.solve`: the best answer, the best of every chain, and a record of the run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int, Int8

from sl_discs.errors import InputError
from sl_discs.experiment.figures import COLOURS, new_figure, save_figure
from sl_discs.solving.contraction import Contraction
from sl_discs.solving.storing import read_fields, write_fields
from sl_discs.solving.trajectory import Trajectory

_ENDINGS = {
    "steps": "ended after all steps",
    "time": "ended by the time limit",
    "target": "ended at the target",
    "bound": "ended with an optimal answer",
    "callback": "ended by the callback",
    "interrupt": "interrupted before its end",
}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Answers to a problem; all values are exact, evaluated on the host from the problem as it was given.

    Attributes:
      kind: of the problem.
      name: of the problem.
      labels: [N] labels of the variables.
      maximise: whether the best value is the largest.
      spins: whether variables are -1 and 1 instead of 0 and 1.
      values: [B] value of the best state that each chain visited at any step, after `Problem.improve`.
      improved: [B] how much better this is than before; negative only where a local search under constraints had to
        give up value to satisfy them.
      states: [B, N] these states, in the problem's own values and the order of `labels`; sets are repaired.
      feasible_chains: [B] whether they satisfy the constraints.
      final_states: [B, N] the final state of each chain in the last complete round, as sampled and not repaired,
        unless reductions came first. In a run at a constant temperature these are the samples.
      final_is: the kind of final state: `last state`; for an `sl_` sampler `sign(Y)`, the sign of the observation, or
        `last state (not localized)` if that sign is mostly noise, see `Localization.localizes`.
      trajectory: records of the logged steps.
      contraction: how the observation localized the chains, for `sl_` samplers.
      acceptance: mean acceptance probability of a step.
      hops: mean number of variables that a step changed.
      steps: steps of each chain, over all rounds.
      rounds: number of annealings.
      stopped: why the run ended: `steps`, `time`, `target`, `bound`, `callback` or `interrupt`.
      bound: a value that no answer is better than; None: not known.
      presolved: what exact reductions did before the search; empty: nothing.
      timing: seconds: `construct_s` to construct the problem, `build_s` to build its arrays, `compile_s` to trace and
        compile, `run_s` to sample, `verify_s` to repair, improve and verify the best state of every chain.
      engine: the engine used.
      engine_note: why this engine; empty if it was requested.
      sampler: its name.
      annealing: settings of the temperature.
      seed: of the chains.
    """

    kind: str
    name: str
    labels: Sequence[Hashable]
    maximise: bool
    spins: bool
    values: Float64[np.ndarray, "B"]
    improved: Float64[np.ndarray, "B"]
    states: Int8[np.ndarray, "B N"]
    feasible_chains: Bool[np.ndarray, "B"]
    final_states: Int8[np.ndarray, "B N"]
    final_is: str
    trajectory: Trajectory
    contraction: Contraction
    acceptance: float
    hops: float
    steps: int
    rounds: int
    stopped: str
    bound: float | None
    presolved: str
    timing: Mapping[str, float]
    engine: str
    engine_note: str
    sampler: str
    annealing: Mapping[str, Any]
    seed: int

    @property
    def best_chain(self) -> int:
        """The chain with the best value, of the feasible ones if there are any; the first one of equal ones."""
        return int(self._order()[0])

    def _order(self) -> Int[np.ndarray, "B"]:
        """Chains from the best to the worst, the infeasible ones last."""
        return np.lexsort((-self.values if self.maximise else self.values, ~self.feasible_chains))

    @property
    def best_value(self) -> float:
        """The best value of all chains."""
        return float(self.values[self.best_chain])

    @property
    def best_sample(self) -> dict[Hashable, int]:
        """The best answer by label: 0 and 1, -1 and 1, or one of several values."""
        return dict(zip(self.labels, self.states[self.best_chain].tolist(), strict=True))

    @property
    def best_set(self) -> set[Hashable]:
        """Labels whose variable is 1: the set, the clique, or one side of the cut."""
        return {label for label, value in self.best_sample.items() if value == 1}

    @property
    def partition(self) -> tuple[set[Hashable], set[Hashable]]:
        """Both sides: labels whose variable is 1, and the others."""
        return self.best_set, {label for label, value in self.best_sample.items() if value != 1}

    @property
    def coloring(self) -> dict[Hashable, int]:
        """The colour of each node, 0 .. k - 1, in the best answer to `sl_discs.coloring`."""
        return self.best_sample

    @property
    def feasible(self) -> bool:
        """Whether the best answer satisfies the constraints; True where there are none."""
        return bool(self.feasible_chains[self.best_chain])

    @property
    def optimal(self) -> bool:
        """Whether the best answer is proved to be optimal: it is feasible, and its value is the bound."""
        return self.feasible and self.best_value == self.bound

    @property
    def gap(self) -> float | None:
        """|bound - best value| / |best value|; None where no bound is known, or only the best value is 0."""
        if self.bound is None or (self.best_value == 0 != self.bound):
            return None
        return abs(self.bound - self.best_value) / abs(self.best_value) if self.best_value else 0.0

    @property
    def ending(self) -> str:
        """Why the run ended, in words."""
        return _ENDINGS[self.stopped]

    def to_dataframe(self, value: Hashable = "value"):
        """A pandas DataFrame with a row for each chain, the best first, and columns for the labels and the value.

        Args:
          value: name of the column of values.

        Raises:
          InputError: pandas is not installed, or a label has the name of the column of values.
        """
        if value in self.labels:
            raise InputError(f"{value!r} is also a label; name the column of values with to_dataframe(value=...)")
        try:
            import pandas
        except ImportError as error:
            raise InputError("to_dataframe needs pandas; install it with: pip install pandas") from error
        frame = pandas.DataFrame(self.states, columns=pandas.Index(list(self.labels), tupleize_cols=False))
        frame[value] = self.values
        return frame.iloc[self._order()].reset_index(drop=True)

    def plot(self, path: str | os.PathLike | None = None):
        """Plots best and mean value and the temperature against steps.

        Args:
          path: of a PNG file; None to return the matplotlib figure, which a notebook shows.

        Raises:
          InputError: matplotlib is not installed, or the file cannot be written.
        """
        size = 6.0, 3.6
        return new_figure(size, self._paint) if path is None else save_figure(Path(path), size, self._paint)

    def _paint(self, figure) -> None:
        axes = figure.subplots()
        axes.plot(self.trajectory.step, self.trajectory.mean, color=COLOURS[5], label="mean of chains")
        axes.plot(self.trajectory.step, self.trajectory.best, color=COLOURS[0], label="best so far")
        axes.set(xlabel="step", ylabel="value", title=f"{self.name}: {self.sampler}, best {self.best_value:g}")
        axes.legend(loc="best", frameon=False)
        other = axes.twinx()
        other.plot(self.trajectory.step, self.trajectory.temperature, color=COLOURS[1], linewidth=0.8)
        other.set(yscale="log", ylabel="temperature")
        other.spines["right"].set_visible(True)

    def save(self, path: str | os.PathLike) -> Path:
        """Writes everything atomically to one .npz file, which `load` reads without unpickling.

        Raises:
          InputError: the file's name does not end in .npz, it cannot be written, or a label is not made of numbers,
            strings, None and tuples.
        """
        return write_fields(Path(path), vars(self))

    @classmethod
    def load(cls, path: str | os.PathLike) -> Result:
        """Reads a file of `save`.

        Raises:
          InputError: there is no such file, it is another kind of file, or its fields contradict each other.
        """
        return cls(**read_fields(Path(path), cls))

    def __repr__(self) -> str:
        infeasible = "" if self.feasible else ", infeasible"
        rounds = f" in {self.rounds} rounds" if self.rounds > 1 else ""
        return (
            f"Result({self.kind} {self.name!r}: best_value={self.best_value:.12g}{infeasible}, {self.sampler} on "
            f"{self.engine}, {len(self.values)} chains x {self.steps:,} steps{rounds}, "
            f"{self.timing['run_s']:.3g} s, {self.ending})"
        )
