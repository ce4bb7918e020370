"""The result of `sl_discs.sample`: draws with the problem's own labels, estimates with errors, and a verdict."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int8, Num, UInt8

from sl_discs.errors import FormatError, InputError, MissingExtra, check_label
from sl_discs.experiment.figures import new_figure, save_figure
from sl_discs.files import check_fields, read_document, write_document
from sl_discs.problems.problem import label_of, plain_label
from sl_discs.sampling.diagnostics import Diagnostic, Verdict
from sl_discs.sampling.draws import (
    MAGNETISATION,
    OVERLAP,
    VALUE,
    Averages,
    Batches,
    Estimate,
    Estimates,
    Known,
    Ladder,
    column,
    num_bytes,
    pieces,
    unpacked,
)
from sl_discs.sampling.report import paint_all, summary_lines, write_marginals

# `Samples` are one .npz file: arrays, and all else as JSON text in it. Nothing is pickled.
_FORMAT = "sl_discs samples 5"
_ARRAYS = ("bits", "group_values", "group_overlaps", "group_magnetisations")
# Fields that are arrays by name.
_GROUPS: dict[str, Any] = {"ladder": Ladder, "known": Known, "averages": Averages}


def _imported(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(f"this needs {name}; install it with: pip install {name}") from error


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Draws from p(x) ~ exp(f(x)/temperature), where f is what the problem maximises, or minus what it minimises.

    Draws are not repaired: sets may have conflicts, each of which costs `penalty` in f.

    Example:
        >>> samples = sl_discs.sample(sl_discs.mis(nx.path_graph(3), penalty=5), draws=100, seed=0)
        >>> samples.reliable, samples.marginal(1).mean
        (True, 0.169...)

    Attributes:
      kind: of the problem.
      name: of the problem.
      labels: [N] labels of the variables.
      maximise: whether the problem's best value is the largest.
      spins: whether variables are -1 and 1 instead of 0 and 1.
      grid: rows and columns, if the variables are those of a grid, numbered row by row; None otherwise.
      temperature: tau, in units of the problem's value.
      method: the method used: `chain`, `tempering`, `localization`, `low_rank` or `exact`.
      chosen: why this method; empty if it was requested.
      how: details of the run, by name.
      bits: [C, D, W] the draws of C groups with different starts, as in `sl_discs.sampling.draws`.
      group_values: [C, D] the value of each draw in the problem's sense and offset, without repair.
      group_overlaps: [C, D] overlap s.s'/N of each draw with one of another group.
      group_magnetisations: [C, D] the mean spin of each draw.
      dependence: of the draws of a group, as in `estimates.Batches`.
      log_z: log sum_x exp(f(x)/temperature), the offset included; None where the method does not give it.
      ladder: the ladder of temperatures, for `tempering`.
      known: exact probabilities and means, for `exact`; their errors are 0.
      averages: over the time between draws, for `chain` and `tempering`; the means of the value and the magnetisation
        are theirs.
      diagnostics: R-hat and effective sample sizes of the value, the magnetisation, the overlap and the worst
        variables.
      verdict: whether the draws are reliable, and why not.
      notes: further remarks on the draws.
      interrupted: whether the run was stopped before its end.
      seconds: of wall time: `compile_s`, `draw_s` without it, `evaluate_s` for estimates and evidence, and `total_s`
        since the call, including the chains that `auto` tried first.
      seed: of all random numbers.
    """

    kind: str
    name: str
    labels: Sequence[Hashable]
    maximise: bool
    spins: bool
    grid: tuple[int, ...] | None
    temperature: float
    method: str
    chosen: str
    how: Mapping[str, object]
    bits: UInt8[np.ndarray, "C D W"]
    group_values: Float64[np.ndarray, "C D"]
    group_overlaps: Float64[np.ndarray, "C D"]
    group_magnetisations: Float64[np.ndarray, "C D"]
    dependence: str
    log_z: Estimate | None
    ladder: Ladder | None
    known: Known | None
    averages: Averages | None
    diagnostics: tuple[Diagnostic, ...]
    verdict: Verdict
    notes: tuple[str, ...]
    interrupted: bool
    seconds: Mapping[str, float]
    seed: int

    def __len__(self) -> int:
        return self.group_values.size

    @property
    def reliable(self) -> bool:
        """Returns whether the verdict has no reasons against the draws."""
        return self.verdict.reliable

    @property
    def states(self) -> Int8[np.ndarray, "S N"]:
        """Returns all S = C D draws in the problem's own values, group by group."""
        return self._own(unpacked(np.asarray(self.bits), len(self.labels)).reshape(-1, len(self.labels)))

    def _own(self, states: Int8[np.ndarray, "*B N"]) -> Int8[np.ndarray, "*B N"]:
        return (2 * states - 1).astype(np.int8) if self.spins else states

    @property
    def values(self) -> Float64[np.ndarray, "S"]:
        """Returns the values of all draws, in the order of `states`."""
        return self.group_values.ravel()

    @property
    def _batches(self) -> Batches:
        groups, draws = self.group_values.shape
        least = min(one.ess_bulk for one in self.diagnostics if one.name in (VALUE, MAGNETISATION, OVERLAP))
        return Batches(groups, draws, self.dependence, least)

    @functools.cached_property
    def marginals(self) -> dict[Hashable, Estimate]:
        """Returns the probability that each variable is 1, with its standard error."""
        found = zip(self.labels, *(one.tolist() for one in self._shares()), strict=True)
        return {label: Estimate(mean, error) for label, mean, error in found}

    def _shares(self) -> tuple[Float64[np.ndarray, "N"], Float64[np.ndarray, "N"]]:
        """Returns the probability that each variable is 1, and the errors."""
        if self.known is not None:
            means = self.known.marginals[:, 1]
            return means, np.zeros_like(means)
        batches, size = self._batches, len(self.labels)
        means, errors = np.empty((2, size))
        # A few variables of all draws at a time.
        step = max(8, 2**26 // max(1, len(self)) // 8 * 8)
        for start in range(0, size, step):
            stop = min(start + step, size)
            means[start:stop], errors[start:stop] = batches.share(unpacked(self.bits, size, start, stop))
        return means, errors

    def marginal(self, label: Hashable, value: int = 1) -> Estimate:
        """Returns the probability that one variable has a value; InputError for an unknown label or value."""
        place, number = self._event(label, value)
        if self.known is not None:
            return Estimate(float(self.known.marginals[place, number]), 0.0)
        return self._share(self._has(place, number))

    def pair_marginal(self, first: Hashable, second: Hashable, values: tuple[int, int] = (1, 1)) -> Estimate:
        """Returns the probability that two variables have these values; InputError for an unknown label or value.

        Of exact draws it is known for all pairs after enumeration, and otherwise for those with a coupling.
        """
        one, other = self._event(first, values[0]), self._event(second, values[1])
        exact = self._joint.get((one[0], other[0]))
        if exact is not None:
            return Estimate(float(exact[one[1], other[1]]), 0.0)
        return self._share(self._has(*one) & self._has(*other))

    @functools.cached_property
    def _joint(self) -> dict[tuple[int, int], Float64[np.ndarray, "K K"]]:
        """Returns the exact laws of the pairs of places of which they are known, in both orders."""
        if self.known is None:
            return {}
        pairs = list(zip(self.known.pairs.tolist(), self.known.joint, strict=True))
        return {(a, b): law for (a, b), law in pairs} | {(b, a): law.T for (a, b), law in pairs}

    def _share(self, events: Num[np.ndarray, "C D"]) -> Estimate:
        return _estimate(self._batches.share(events.astype(float)))

    def mean(self, observable: str = VALUE) -> Estimate:
        """Returns the mean of `value`, `magnetisation` or `overlap`, with its standard error: NaN if all draws agree.

        That of the overlap is from above, at most by a factor of sqrt(2): overlaps with the groups before and after
        share draws, so that their covariances add up to at most the variances.

        Raises:
          InputError: an unknown observable.
        """
        values = self.observable(observable)
        if self.known is not None:
            return Estimate(self._known_mean(self.known, observable), 0.0)
        if self.averages is not None:
            values = {VALUE: self.averages.value, MAGNETISATION: self.averages.magnetisation}.get(observable, values)
        mean, error = self._batches.estimate(values)
        if observable == OVERLAP:  # which two groups have in common
            alone = self.dependence == "group" and len(self.bits) == 2
            error = np.full_like(error, np.inf) if alone else np.sqrt(2) * error
        return _estimate((mean, error))

    def _known_mean(self, known: Known, observable: str) -> float:
        """Returns the exact mean of an observable."""
        if observable == VALUE:
            return float(known.mean_value if self.maximise else -known.mean_value)
        if observable == OVERLAP:  # of independent draws
            return float((2 * (known.marginals**2).sum(axis=1) - 1).mean())
        return float((2 * known.marginals[:, 1] - 1).mean())

    def observable(self, name: str) -> Float64[np.ndarray, "C D"]:
        """Returns `value`, `magnetisation` or `overlap` of each draw; InputError for any other name."""
        known = {
            VALUE: self.group_values, MAGNETISATION: self.group_magnetisations, OVERLAP: self.group_overlaps
        }  # fmt: skip
        if not isinstance(name, str) or name not in known:
            raise InputError(f"unknown observable {name!r}; known: {', '.join(known)}, and marginal(label)")
        return known[name]

    def expectation(self, function) -> Estimate:
        """Returns the mean of a function that maps states [S, N], in the problem's own values as integers of 64 bits,
        to [S] real numbers.

        Of a function that returns booleans it is the probability of an event, with the error of `marginal`, also if
        all draws agree. Of any other function the error is then NaN, as nothing bounds its values at other states.

        Raises:
          InputError: the function returns another shape, or other than real numbers.
        """
        size, parts, is_event = len(self.labels), [], True
        for _, states in pieces(self.bits, size):
            # Sums of a few weighted values would overflow the 8 bits of states.
            own = self._own(states).astype(np.int64)
            found = np.asarray(function(own.reshape(-1, size)))
            is_event = is_event and found.dtype == bool
            if found.shape != (own.shape[0] * own.shape[1],) or found.dtype.kind not in "biuf":
                raise InputError(
                    f"the function returned {found.dtype} of shape {found.shape}; "
                    "expected a real number for each state"
                )
            parts.append(found.reshape(own.shape[:2]).astype(np.float64))
        values = np.concatenate(parts, axis=1)
        return self._share(values) if is_event else _estimate(self._batches.estimate(values))

    @functools.cached_property
    def _places(self) -> dict[Hashable, int]:
        return {label: place for place, label in enumerate(self.labels)}

    def _event(self, label: Hashable, value: int) -> tuple[int, int]:
        """Returns the place of a variable, and the number of one of its values; InputError if there is none."""
        check_label(self.name, label)
        place = self._places.get(label)
        if place is None:
            raise InputError(f"{self.name}: {label!r} is not a label")
        known = [-1, 1] if self.spins else [0, 1]
        if value not in known:
            raise InputError(f"{self.name}: {label!r} is never {value!r}; expected {known[0]} or 1")
        return place, known.index(value)

    def _has(self, place: int, number: int) -> Bool[np.ndarray, "C D"]:
        """Returns whether the variable at a place has a value, in each draw."""
        return column(self.bits, len(self.labels), place) == number

    def to_dataframe(self, value: Hashable = VALUE):
        """Returns a pandas DataFrame with a row for each draw, and columns for the labels and the value.

        Raises:
          InputError: pandas is not installed, or a label has the name of the column of values.
        """
        pandas = _imported("pandas")
        check_label("the column of values", value)
        if value in self.labels:
            raise InputError(f"{value!r} is also a label; name the column of values with to_dataframe(value=...)")
        frame = pandas.DataFrame(self.states, columns=pandas.Index(list(self.labels), tupleize_cols=False))
        frame[value] = self.values
        return frame

    def to_dimod(self):
        """Returns a dimod SampleSet; energies are values, negated if the problem is maximised.

        Raises:
          InputError: dimod is not installed.
        """
        dimod = _imported("dimod")
        kind = dimod.SPIN if self.spins else dimod.BINARY
        return dimod.SampleSet.from_samples(
            (self.states, list(self.labels)), kind, -self.values if self.maximise else self.values,
            info=self.summary(), sort_labels=False,
        )  # fmt: skip

    def summary(self) -> dict[str, object]:
        """Estimates and evidence as plain values."""
        return {
            "temperature": self.temperature, "method": self.method, "chosen": self.chosen, "how": dict(self.how),
            "draws": len(self), "interrupted": self.interrupted, "reliable": self.reliable,
            "reasons": list(self.verdict.reasons), "notes": list(self.notes),
            "log_z": None if self.log_z is None else list(self.log_z),
            "mean": {name: list(self.mean(name)) for name in (VALUE, MAGNETISATION, OVERLAP)},
            "diagnostics": [one._asdict() for one in self.diagnostics], "seconds": dict(self.seconds),
            "seed": self.seed,
        }  # fmt: skip

    def plot(self, path: str | os.PathLike | None = None):
        """Plots values, their distribution, that of overlaps P(q), the marginals, and a ladder if there is one.

        The marginals are a map where the variables form a grid, and otherwise bars with standard errors.

        Args:
          path: of a PNG file; None to return the matplotlib figure, which a notebook shows.

        Raises:
          InputError: matplotlib is not installed, or the file cannot be written.
        """
        paint, size = functools.partial(paint_all, self), (8.0, 5.4)
        return new_figure(size, paint) if path is None else save_figure(Path(path), size, paint)

    def save(self, path: str | os.PathLike) -> Path:
        """Writes everything to an .npz file, which `load` reads without unpickling, or the marginals to a .csv file.

        The latter has the columns `variable`, `probability` (that it is 1) and `error` (the standard error).

        Raises:
          InputError: the file's name does not end in .npz or .csv, it cannot be written, or a label is not made of
            numbers, strings, None and tuples.
        """
        path = Path(path)
        if path.suffix == ".csv":
            return write_marginals(path, self)
        if path.suffix != ".npz":
            raise InputError(f"{path}: the name of this file must end in .npz, for the draws, or .csv, for marginals")
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays = {name: fields.pop(name) for name in _ARRAYS}
        labels = fields.pop("labels")
        for group in _GROUPS:
            one = fields.pop(group)
            arrays |= {} if one is None else {f"{group}_{name}": leaf for name, leaf in one._asdict().items()}
        fields["labels"] = None if isinstance(labels, range) else [plain_label(path, label) for label in labels]
        fields["num_labels"] = len(labels)
        return write_document(path, _FORMAT, arrays, fields)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Samples:
        """Reads a file of `save`.

        Raises:
          InputError: there is no such file, it is another kind of file, or its fields contradict each other.
        """
        try:
            arrays, fields = read_document(Path(path), _FORMAT)
            count, labels = fields.pop("num_labels"), fields["labels"]
            for group, kind in _GROUPS.items():
                own = {name: arrays.pop(f"{group}_{name}", None) for name in kind._fields}
                fields[group] = None if all(one is None for one in own.values()) else kind(**own)
            fields |= arrays | {
                "labels": range(count) if labels is None else tuple(map(label_of, labels)),
                "grid": None if fields["grid"] is None else tuple(fields["grid"]),
                "log_z": None if fields["log_z"] is None else Estimate(*fields["log_z"]),
                "diagnostics": tuple(Diagnostic(*one) for one in fields["diagnostics"]),
                "verdict": Verdict(fields["verdict"][0], tuple(fields["verdict"][1]), *fields["verdict"][2:]),
                "notes": tuple(fields["notes"]),
            }  # fmt: skip
            check_fields(cls, fields)
            if len(fields["labels"]) != count or fields["bits"].shape[2] != num_bytes(count):
                raise ValueError(f"labels or draws of another number of variables than {count}")
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise FormatError(f"{path}: not a file that Samples.save wrote ({error})") from error
        return cls(**fields)

    def __repr__(self) -> str:
        z = "" if self.log_z is None else f", log Z {self.log_z}"
        return f"Samples({self._head}: {len(self):,} draws by {self.method}, value {self.mean()}{z}; {self.verdict})"

    def __str__(self) -> str:
        """Estimates with their standard errors and evidence, as a table, and the verdict."""
        stopped = " (interrupted)" if self.interrupted else ""
        return "\n".join([f"{self._head}{stopped}", *summary_lines(self), "", f"  {self.verdict}"])

    @property
    def _head(self) -> str:
        return f"{self.kind} {self.name!r} at temperature {self.temperature:g}"


def _estimate(found: Estimates) -> Estimate:
    """Returns the estimate of a single mean."""
    return Estimate(*map(float, found))
