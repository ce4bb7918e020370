"""The result of `sl_discs.solve`, and how it is collected from the rounds of a run."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import time
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int, Int8, Int32, Int64

from sl_discs.chains.annealing import TemperatureSchedule
from sl_discs.chains.chains import Outcome
from sl_discs.engines.program import Trace
from sl_discs.instances.graph import Graph
from sl_discs.localization.method import LAST_STATE
from sl_discs.problems import Evaluated
from sl_discs.problems.kind import KINDS
from sl_discs.problems.problem import (
    best_row,
    improve,
    label_of,
    plain_label,
    reported_bound,
    units,
)
from sl_discs.solving.answers import Answer, Answers
from sl_discs.solving.options import times
from sl_discs.solving.presolved import Presolved
from sl_discs.support.checks import check_label, integer
from sl_discs.support.documents import check_fields, read_document, write_document
from sl_discs.support.errors import FormatError, InputError, import_extra
from sl_discs.support.figures import COLOURS, new_figure, paint_graph, save_figure
from sl_discs.support.files import write_text
from sl_discs.support.terminal import printable


class Trajectory(NamedTuple):
    """Records of L logged steps, in the problem's own sense and offset; values have 32 bits and
    include penalties.

    Attributes:
      step: of the whole run, over all rounds.
      round: of the step, from 0.
      best: the best value at a logged step so far.
      mean: mean value of the chains at this step.
      temperature: at this step.
      acceptance: mean acceptance probability of the steps since the previous logged step.
    """

    step: Int64[np.ndarray, "L"]
    round: Int64[np.ndarray, "L"]
    best: Float64[np.ndarray, "L"]
    mean: Float64[np.ndarray, "L"]
    temperature: Float64[np.ndarray, "L"]
    acceptance: Float64[np.ndarray, "L"]


# A `Result` is stored in one .npz file: arrays, and everything else as JSON text. Nothing is
# pickled.
_FORMAT = "sl_discs result 7"

# The most nodes of a graph that is drawn with an answer.
_DRAWN = 200

# A bound that is farther off, as a part of the value, says nothing.
_FAR = 0.5


def _check_values(fields: Mapping[str, Any]) -> None:
    """Checks what types and shapes of arrays do not say; ValueError if something contradicts
    something else.
    """
    labels = fields["labels"]
    timing = fields["timing"]
    chains, size = fields["states"].shape
    if chains < 1:
        raise ValueError("no chains")
    if len(labels) != size or (not isinstance(labels, range) and len(set(labels)) != size):
        raise ValueError(f"{len(labels)} labels for {size} variables, or equal ones")
    least = -1 if fields["spins"] else 0
    for name in "states", "final_states":
        value = fields[name]
        if ((value < least) | (value > 1)).any() or (fields["spins"] and not value.all()):
            raise ValueError(f"{name} has values that no variable has")
    if not {"build_s", "compile_s", "run_s", "verify_s"} <= set(timing):
        raise ValueError("timing lacks a part")


_ENDINGS = {
    "steps": "ended after all steps",
    "time": "ended by the time limit",
    "target": "ended at the target",
    "bound": "ended at the bound",
    "callback": "ended by the callback",
    "interrupt": "interrupted before its end",
}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Answers to a problem; all values are exact, evaluated on the host from the problem as it was
    given.

    Example:
        >>> result = sl_discs.solve(sl_discs.mis(nx.cycle_graph(7)))
        >>> result.best_value, result.bound, result.gap
        (3.0, 3.0, 0.0)
        >>> len(result.best_set)
        3

    Attributes:
      kind: of the problem.
      name: of the problem.
      labels: [N] labels of the variables.
      maximise: whether the best value is the largest.
      spins: whether variables are -1 and 1 instead of 0 and 1.
      values: [B] value of the best state that each chain visited at any step, or that was found
        beside the chains, after `sl_discs.problems.problem.improve`.
      improved: [B] how much better this is than before.
      states: [B, N] these states, in the problem's own values and the order of `labels`; sets are
        repaired.
      feasible_chains: [B] whether they satisfy the constraints.
      final_states: [B, N] the final state of each chain in the last complete round, as sampled and
        not repaired, unless reductions came first. In a run at a constant temperature these are the
        samples.
      final_is: the kind of final state: `last state`; for an `sl_` sampler `sign(Y)`, the sign of
        the observation, or `last state (not localized)` if that sign is mostly noise, see
        `Localization.localizes`.
      trajectory: records of the logged steps.
      acceptance: mean acceptance probability of a step.
      hops: mean number of variables that a step changed.
      steps: steps of each chain, over all rounds.
      rounds: number of annealings.
      stopped: why the run ended: `steps`, `time`, `target`, `bound`, `callback` or `interrupt`.
      bound: a value that no answer is better than; None: not known.
      bound_by: what it is from, in words, such as `a semidefinite relaxation`, and what else could
        not be used.
      presolved: what exact reductions did before the search; empty: nothing.
      timing: seconds: `build_s` for reductions, first proofs and the arrays of the problem,
        `compile_s` to trace and compile, `run_s` to sample, search and prove, `verify_s` to repair,
        improve and verify the best state of every chain.
      engine: the engine used.
      engine_note: why this engine; empty if it was requested.
      sampler: its name.
      annealing: settings of the temperature.
      seed: of the chains.
      edges: [E, 2] positions in `labels` of the edges of a graph that `plot` draws, of at most 200
        nodes; else none.
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
    acceptance: float
    hops: float
    steps: int
    rounds: int
    stopped: str
    bound: float | None
    bound_by: str
    presolved: str
    timing: Mapping[str, float]
    engine: str
    engine_note: str
    sampler: str
    annealing: Mapping[str, object]
    seed: int
    edges: Int32[np.ndarray, "E 2"]

    @property
    def best_chain(self) -> int:
        """The chain with the best value, of the feasible ones if there are any; the first one of
        equal ones.
        """
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
        """The best answer by label: 0 and 1, or -1 and 1."""
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
    def feasible(self) -> bool:
        """Whether the best answer satisfies the constraints; True where there are none."""
        return bool(self.feasible_chains[self.best_chain])

    @property
    def optimal(self) -> bool:
        """Whether the best answer is proved to be optimal: its value is the bound, and it is
        feasible.
        """
        return self.feasible and self.best_value == self.bound

    @property
    def gap(self) -> float | None:
        """|bound - best value| / |best value|; None where no bound is known, or only the best value
        is 0.
        """
        if self.bound is None or (self.best_value == 0 != self.bound):
            return None
        return abs(self.bound - self.best_value) / abs(self.best_value) if self.best_value else 0.0

    def distinct(self, most: int | None = None) -> Result:
        """Returns this result with one row for each different answer, the best first, and at most
        `most`.

        The answers are those that chains visited, one of each. A proof may leave one:
        `presolve=False` and more chains give more of them.

        Example:
            >>> result = sl_discs.solve(sl_discs.mis(nx.cycle_graph(4)), presolve=False)
            >>> len(result.states), len(result.distinct().states)
            (32, 2)
        """
        order = self._order()
        _, first = np.unique(self.states[order], axis=0, return_index=True)
        rows = order[np.sort(first)][: None if most is None else integer("most", most, 1)]
        fields = "values", "improved", "states", "feasible_chains", "final_states"
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in fields})

    @property
    def gap_in_words(self) -> str:
        """The gap, or that the bound is so far off that it says nothing; empty where there
        is none.
        """
        if self.gap is None:
            return ""
        return f"a gap of {100 * self.gap:.3g} %" if self.gap <= _FAR else "no useful bound"

    def _text(self) -> dict[str, Any]:
        """Returns the fields that are numbers or words."""
        left_out = "labels", "trajectory"
        return {
            k: value
            for k, value in vars(self).items()
            if not isinstance(value, np.ndarray) and k not in left_out
        }

    @property
    def answer(self) -> Answer:
        """The best answer, as files of answers hold it."""
        run = self._text() | {"chain_values": self.values.tolist()}
        name, bound, bound_by = (run.pop(field) for field in ("name", "bound", "bound_by"))
        return Answer(
            name=name,
            value=self.best_value,
            labels=self.labels,
            values=self.states[self.best_chain].tolist(),
            feasible=self.feasible,
            optimal=self.optimal,
            bound=bound,
            gap=self.gap,
            bound_by=bound_by,
            run=run,
        )

    def answer_lines(self) -> list[str]:
        """Returns the label and the value of each variable in the best answer, as lines."""
        return [f"{printable(str(label))} {value}" for label, value in self.best_sample.items()]

    @property
    def ending(self) -> str:
        """Why the run ended, in words."""
        further = (
            "; more time may find a better value"
            if self.stopped == "time" and not self.optimal
            else ""
        )
        return _ENDINGS[self.stopped] + further

    def to_dataframe(self, value: Hashable = "value"):
        """Returns a pandas DataFrame with a row for each chain, the best first, and columns for
        labels and value.

        Args:
          value: name of the column of values.

        Raises:
          InputError: pandas is not installed, or a label has the name of the column of values.
        """
        check_label("the column of values", value)
        if value in self.labels:
            raise InputError(
                f"{value!r} is also a label; name the column of values with to_dataframe(value=...)"
            )
        pandas = import_extra("pandas")
        frame = pandas.DataFrame(
            self.states, columns=pandas.Index(list(self.labels), tupleize_cols=False)
        )
        frame[value] = self.values
        return frame.iloc[self._order()].reset_index(drop=True)

    def plot(self, path: str | os.PathLike | None = None):
        """Plots best and mean value, the bound and the temperature against steps.

        Where nothing was sampled, it draws the graph with the best answer, if it has at most 200
        nodes.

        Args:
          path: of a PNG file; None to return the matplotlib figure, which a notebook shows.

        Raises:
          InputError: matplotlib is not installed, or the file cannot be written.
        """
        size = 6.0, 3.6
        return (
            new_figure(size, self._paint)
            if path is None
            else save_figure(Path(path), size, self._paint)
        )

    def _paint(self, figure) -> None:
        axes = figure.subplots()
        bound = "optimal" if self.optimal else "" if self.bound is None else f"bound {self.bound:g}"
        parts = (f"best {self.best_value:g}", bound, self.sampler if self.rounds else "")
        title = printable(f"{self.name}: {', '.join(filter(None, parts))}")
        if not self.rounds:
            axes.set(title=title, xticks=[], yticks=[])
            if len(self.edges):
                names = ("one side", "the other side")
                if self.kind in KINDS and KINDS[self.kind].penalty:
                    names = ("chosen", "not chosen")
                answer = self.states[self.best_chain] > 0
                inside = self.kind == "maxclique"
                paint_graph(axes, self.edges, answer, self.labels, names, inside=inside)
                return
            axes.text(
                0.5, 0.5, f"nothing was sampled\n{self.engine_note}", ha="center", va="center"
            )
            return
        axes.plot(
            self.trajectory.step, self.trajectory.mean, color=COLOURS[5], label="mean of chains"
        )
        axes.plot(self.trajectory.step, self.trajectory.best, color=COLOURS[0], label="best so far")
        if self.gap is not None and self.gap <= _FAR:
            axes.axhline(self.bound, color="0.4", linewidth=0.8, linestyle="--", label="bound")
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.set(xlabel="step", ylabel="value", title=title)
        right_axes = axes.twinx()
        right_axes.plot(
            self.trajectory.step,
            self.trajectory.temperature,
            color=COLOURS[1],
            linewidth=0.8,
            label="temperature",
        )
        right_axes.set(yscale="log", ylabel="temperature")
        if self.rounds > 1:  # each annealing is longer than those before
            axes.set_xscale("log")
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        right_axes.spines["right"].set_visible(True)

    def save(self, path: str | os.PathLike) -> Path:
        """Writes the result atomically, in the format that the suffix of the file's name says.

        `.npz` holds all of it, and is what `load` reads, without unpickling. `.json` holds the best
        answer, fields that are numbers or words, and the value of each chain;
        `sl_discs.read_answers` and `sl-discs check` read it. `.csv` and `.txt` have a line with the
        label and the value of each variable; the former begins with a heading.

        Raises:
          InputError: another suffix, the file cannot be written, or a label is not made of numbers,
            strings, None and tuples.
        """
        path = Path(path)
        if path.suffix == ".csv":
            text = io.StringIO(newline="")
            csv.writer(text, lineterminator="\n").writerows(
                [("label", "value"), *self.best_sample.items()]
            )
            return write_text(path, text.getvalue())
        if path.suffix == ".txt":
            return write_text(path, "".join(f"{line}\n" for line in self.answer_lines()))
        if path.suffix == ".json":
            return Answers(self.kind, [self.answer]).save(path)
        if path.suffix != ".npz":
            raise InputError(
                f"{path}: results are saved as .npz, .json, .csv or .txt; choose one of these "
                "suffixes"
            )
        arrays = {
            name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        text = self._text()
        text["labels"] = (
            None
            if isinstance(self.labels, range)
            else [plain_label(path, label) for label in self.labels]
        )
        arrays |= {f"trajectory_{name}": leaf for name, leaf in self.trajectory._asdict().items()}
        return write_document(path, _FORMAT, arrays, text)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Result:
        """Reads a file of `save`.

        Raises:
          InputError: there is no such file, it is another kind of file, or its fields contradict
            each other.
        """
        try:
            arrays, text = read_document(Path(path), _FORMAT)
            labels = text.pop("labels")
            states = arrays["states"]
            fields = text | {
                "labels": range(states.shape[-1])
                if labels is None
                else tuple(map(label_of, labels)),
                "trajectory": Trajectory(
                    *(arrays.pop(f"trajectory_{name}") for name in Trajectory._fields)
                ),
                **arrays,
            }
            check_fields(cls, fields)
            _check_values(fields)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise FormatError(f"{path}: not a file that Result.save wrote ({error})") from error
        return cls(**fields)

    def __repr__(self) -> str:
        quality = "" if self.feasible else ", infeasible"
        if self.optimal:
            quality += ", optimal"
        elif self.gap is not None:
            quality += f", {self.gap_in_words} by {self.bound_by}"
        else:
            quality += f", no bound{self.bound_by and f': {self.bound_by}'}"
        how = self.engine_note
        if self.rounds:
            rounds = f" in {self.rounds} rounds" if self.rounds > 1 else ""
            how = (
                f"{self.sampler} on {self.engine}, {len(self.values)} chains x {self.steps:,} "
                f"steps{rounds}, {self.timing['run_s']:.3g} s"
            )
        return (
            f"Result({self.kind} {self.name!r}: best_value={self.best_value:.12g}{quality}, "
            f"{how}, {self.ending})"
        )


class Collector:
    """Collects the outcomes of rounds of chains into one result, with all values recomputed."""

    def __init__(self, presolved: Presolved, initial: Evaluated | None = None):
        """Begins; chains count as having visited the `initial` states, in turn."""
        self._problem = presolved.original
        self._presolved = presolved
        self._sign = 1.0 if self._problem.maximise else -1.0
        # The best values and states of chains, which begin anew in each round.
        self._chains: tuple[np.ndarray, np.ndarray] | None = None
        if initial is not None:
            self._chains = self._sign * initial.values, initial.states
        self._final: np.ndarray | None = None
        self._final_is = LAST_STATE
        self._parts: list[Trajectory] = []
        self._traces: list[Trace] = []
        self._steps = 0

    def add(
        self,
        outcome: Outcome,
        every: int,
        temperatures: TemperatureSchedule,
        steps: int,
        constant: float,
        *,
        complete: bool,
    ) -> None:
        """Adds a round of `steps` steps, of which every `every`-th was logged.

        `constant` is what the chains' values leave out of the problem's, and `complete` is whether
        the round was not cut short.
        """
        size = len(self._presolved.kept)
        values = outcome.best[0][0].astype(np.float64) + constant
        states = outcome.best[1][0][:, :size]
        if self._chains is not None:
            before = np.resize(self._chains[0], values.shape)
            earlier = np.resize(self._chains[1], states.shape)
            better = values > before
            values = np.where(better, values, before)
            states = np.where(better[:, None], states, earlier)
        self._chains = values, states
        if self._final is None or complete:
            self._final = outcome.final[0][:, :size]
            self._final_is = outcome.final_is
        trace = outcome.trace
        self._traces.append(trace)
        logged_steps = every * np.arange(1, len(trace.value) + 1)
        values = self._sign * (np.asarray(trace.value)[:, 0].astype(np.float64) + constant)
        part = Trajectory(
            step=self._steps + logged_steps,
            round=np.full(len(logged_steps), len(self._parts)),
            best=self._sign * (self._sign * values).max(axis=1),
            mean=values.mean(axis=1),
            temperature=temperatures[logged_steps - 1].astype(np.float64),
            acceptance=np.asarray(trace.acceptance)[:, 0].mean(axis=1, dtype=np.float64),
        )
        self._parts.append(part)
        self._steps += steps

    def result(
        self,
        *,
        incumbent: Evaluated | None,
        bound: Fraction | float | None,
        annealing: Mapping[str, Any],
        timing: Mapping[str, float],
        **how: Any,
    ) -> Result:
        """Returns the result so far; an incumbent that is better than the answers of all chains
        stands for theirs.

        Chains keep the state with the highest value, which may be worth less after its repair than
        another one.

        `how` holds the remaining fields of `Result`, `timing` what the problem cannot know. The
        chains' best states are evaluated once, here: for a dense problem this takes longer than a
        round.
        """
        begin = time.perf_counter()
        problem = self._problem
        presolved = self._presolved
        if problem.left_out:
            bound = None
            how["bound_by"] = f"of the file, {problem.left_out}"
        final = self._final
        if self._chains is None or not self._parts:
            assert incumbent is not None
            answer = incumbent
        else:
            answer = problem.evaluate(presolved.lift(self._chains[1]))
        if incumbent is not None:
            pairs = zip(answer, incumbent, strict=True)
            rows = len(answer.values)
            if best_row(problem, Evaluated(*map(np.concatenate, pairs))) == rows:
                answer = Evaluated(*(np.repeat(part, rows, axis=0) for part in incumbent))
        states = improve(problem, answer.states)
        best = answer if np.array_equal(states, answer.states) else problem.evaluate(states)
        problem_in_units = units(problem)
        unit = problem_in_units.unit
        constant = float(problem_in_units.constant)
        improved = unit * self._sign * (best.values - answer.values)
        row = best_row(problem, best)
        values = np.array([problem_in_units.value(value) for value in best.values.tolist()])
        # Where values are equal after rounding, the best state stands for all.
        hidden = best.feasible & (values == values[row])
        if problem.integer_values:
            hidden &= best.values != best.values[row]
        best.states[hidden] = best.states[row]
        reported = (
            None
            if bound is None
            else reported_bound(problem, bound, best.states[row], float(values[row]))
        )
        timing = {**timing, "verify_s": time.perf_counter() - begin}
        # Over logged steps of all rounds and chains.
        means: dict[str, Any] = {}
        for name in "acceptance", "hops":
            parts = [np.asarray(getattr(trace, name)) for trace in self._traces]
            means[name] = float(np.concatenate(parts).mean(dtype=np.float64)) if parts else 0.0
        # Empty where nothing was sampled.
        empty = Trajectory(*np.zeros((2, 0), np.int64), *np.zeros((4, 0)))
        trajectory = Trajectory(*map(np.concatenate, zip(empty, *self._parts, strict=True)))
        drawn = isinstance(problem.source, Graph) and problem.num_variables <= _DRAWN
        so_far = self._sign * np.maximum.accumulate(self._sign * trajectory.best)
        scaled = trajectory._replace(
            best=so_far * unit + constant,
            mean=trajectory.mean * unit + constant,
            temperature=trajectory.temperature * unit,
        )
        final = best.states if final is None else presolved.lift(final)
        return Result(
            kind=problem.kind,
            name=problem.name,
            labels=problem.labels,
            maximise=problem.maximise,
            spins=problem.spins,
            values=values,
            improved=improved,
            states=problem.as_values(best.states),
            feasible_chains=best.feasible,
            final_states=problem.as_values(final),
            final_is=self._final_is,
            presolved=presolved.summary() if presolved.removed else "",
            trajectory=scaled,
            **means,
            steps=self._steps,
            rounds=len(self._parts),
            annealing=times(annealing, unit),
            timing=timing,
            bound=reported,
            edges=np.asarray(problem.source.edges if drawn else np.empty((0, 2)), np.int32),
            **how,
        )
