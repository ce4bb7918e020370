"""The result of `sl_discs.sample`: draws, estimates with errors and a verdict, as tables, pictures
and files.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import itertools
import math
import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int8, Shaped, UInt8

from sl_discs.problems.problem import label_of, plain_label
from sl_discs.sampling.diagnostics import Diagnostic, Verdict, diagnose, disagreement, r_hat_limit
from sl_discs.sampling.drawn import (
    LEAST_VISITS,
    MAGNETISATION,
    OVERLAP,
    VALUE,
    Averages,
    Batches,
    Curve,
    Estimate,
    Known,
    Ladder,
    column,
    pieces,
    unpacked,
    value_at,
    variable_name,
    visits,
)
from sl_discs.sampling.pictures import layout
from sl_discs.support.checks import check_label, file_path, one_of, shown
from sl_discs.support.checks import function as function_of
from sl_discs.support.documents import check_fields, read_document, write_document
from sl_discs.support.errors import FormatError, InputError, import_extra
from sl_discs.support.figures import new_figure, save_figure
from sl_discs.support.files import write_text
from sl_discs.support.terminal import aligned, printable

# `Samples` are one .npz file: arrays, and all else as JSON text in it. Nothing is pickled.
_FORMAT = "sl_discs samples 6"
_ARRAYS = ("bits", "group_values", "group_overlaps", "group_magnetisations")
# Fields that are arrays by name.
_GROUPS: dict[str, Any] = {"ladder": Ladder, "known": Known, "averages": Averages, "curve": Curve}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Draws from p(x) ~ exp(f(x)/temperature), where f is what the problem maximises, or minus what
    it minimises.

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
      grid: rows and columns, if these are the labels of the variables, row by row, or x is a
        matrix; None otherwise.
      temperature: tau, in units of the problem's value.
      method: the method used: `chain`, `tempering`, `localization`, `low_rank` or `exact`.
      chosen: why this method; empty if it was requested.
      how: details of the run, by name.
      bits: [C, D, W] the draws of C groups with different starts, as in `sl_discs.sampling.drawn`.
      group_values: [C, D] the value of each draw in the problem's sense and offset, without repair.
      group_overlaps: [C, D] overlap s.s'/N of each draw with one of another group.
      group_magnetisations: [C, D] the mean spin of each draw.
      dependence: of the draws of a group, as in `sampling.drawn.Batches`.
      log_z: log sum_x exp(f(x)/temperature), the offset included; None where the method does not
        give it.
      ladder: the ladder of temperatures, for `tempering`.
      known: exact probabilities and means, for `exact`; their errors are 0.
      averages: over the time between draws, for `chain` and `tempering`; the means of the value and
        the magnetisation are theirs.
      curve: value, heat capacity, log Z and entropy at several temperatures, where these were asked
        for.
      diagnostics: R-hat and effective sample sizes of the value, the magnetisation, the overlap and
        the worst variables.
      verdict: whether the draws are reliable for what `diagnostics` names, and why not;
        `expectation` and `pair_marginal` tell by their errors.
      notes: further remarks on the draws.
      interrupted: whether the run was stopped before its end.
      seconds: of wall time: `compile_s`, `draw_s` without it, `evaluate_s` for estimates and
        evidence, and `total_s` since the call, including the chains that `auto` tried first.
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
    curve: Curve | None
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
        return self._own(
            unpacked(np.asarray(self.bits), len(self.labels)).reshape(-1, len(self.labels))
        )

    def _own(self, states: Int8[np.ndarray, "*B N"]) -> Int8[np.ndarray, "*B N"]:
        return (2 * states - 1).astype(np.int8) if self.spins else states

    @property
    def values(self) -> Float64[np.ndarray, "S"]:
        """Returns the values of all draws, in the order of `states`."""
        return self.group_values.ravel()

    def _batches(self, effective: float = math.inf) -> Batches:
        """Returns batches of draws that are worth at most `effective` independent ones."""
        # Of the value, the magnetisation and the overlap.
        least = min(diagnostic.ess_bulk for diagnostic in self.diagnostics[:3])
        groups, draws = self.group_values.shape
        return Batches(groups, draws, self.dependence, min(least, effective))

    def _estimate(self, name: str, values: Shaped[np.ndarray, "C D"]) -> Estimate:
        """Returns the mean of an observable, or the probability of an event, whose values are
        booleans; its own effective sample size counts. A warning says why an error is unknown:
        infinite where R-hat is above its limit, or NaN.
        """
        batches = self._batches()
        if self.dependence != "none":
            own = diagnose(name, values)
            batches = self._batches(own.ess_bulk)
            own = own._replace(limit=r_hat_limit(len(values), own.ess_bulk))
            if own.r_hat > own.limit:
                warnings.warn(f"{disagreement(own)}; its error is unknown", stacklevel=3)
                return Estimate(float(values.mean()), math.inf)
        if values.dtype == bool:
            return Estimate(*map(float, batches.shares(values)))
        estimate = batches.estimate(values)
        if math.isnan(estimate.error):
            warnings.warn(
                f"{name} has the same value at all draws, and nothing bounds its values at other "
                "states; its error is unknown",
                stacklevel=3,
            )
        return estimate

    @functools.cached_property
    def marginals(self) -> dict[Hashable, Estimate]:
        """Returns the probability that each variable is 1, with its standard error."""
        size = len(self.labels)
        batches = self._batches()
        if self.known is not None:
            means = self.known.marginals[:, 1]
            errors = np.zeros(size)
        else:  # a few variables of all draws at a time
            step = max(8, 2**26 // len(self) // 8 * 8)
            parts = [
                batches.shares(unpacked(self.bits, size, start, min(start + step, size)))
                for start in range(0, size, step)
            ]
            means, errors = np.concatenate(parts, axis=1)
        rows = zip(self.labels, means.tolist(), errors.tolist(), strict=True)
        return {label: Estimate(mean, error) for label, mean, error in rows}

    def marginal(self, label: Hashable, value: int = 1) -> Estimate:
        """Returns the probability that one variable has a value; InputError for an unknown label or
        value.
        """
        variable, value_index = self._event(label, value)
        if self.known is not None:
            return Estimate(float(self.known.marginals[variable, value_index]), 0.0)
        events = column(self.bits, len(self.labels), variable) == value_index
        return Estimate(*map(float, self._batches().shares(events)))

    def pair_marginal(
        self, first: Hashable, second: Hashable, values: tuple[int, int] = (1, 1)
    ) -> Estimate:
        """Returns the probability that two variables have these values; InputError for an unknown
        label or value.

        Of exact draws it is known for all pairs after enumeration, and otherwise for those with a
        coupling. Errors are those of `expectation`.
        """
        if not (isinstance(values, tuple | list) and len(values) == 2):
            raise InputError(
                f"{self.name}: values are {shown(values)}; expected one for each of two variables"
            )
        u, k = self._event(first, values[0])
        v, m = self._event(second, values[1])
        if self.known is not None:
            joint = self.known.joint
            for pair, shares in ((u, v), joint[:, k, m]), ((v, u), joint[:, m, k]):
                exact = shares[(self.known.pairs == pair).all(axis=1)]
                if exact.size:
                    return Estimate(float(exact[0]), 0.0)
        size = len(self.labels)
        both = (column(self.bits, size, u) == k) & (column(self.bits, size, v) == m)
        return self._estimate(f"P({first!r}, {second!r})", both)

    def mean(self, observable: str = VALUE) -> Estimate:
        """Returns the mean of `value`, `magnetisation` or `overlap`, with its standard error.

        If all draws agree, the error of the value is NaN, and that of the others, which lie between
        -1 and 1, is that of a change by 2 in one of the effective draws. The error of the overlap
        is from above, at most by a factor of sqrt(2): overlaps with the groups before and after
        share draws, so their covariances add up to at most the variances.

        Raises:
          InputError: an unknown observable.
        """
        values = self._averaged(observable)
        if self.known is not None:
            sign = -1.0 if observable == VALUE and not self.maximise else 1.0
            return Estimate(sign * self.known.mean(observable), 0.0)
        span = math.nan if observable == VALUE else 2.0
        estimate = self._batches().estimate(values, span)
        if observable != OVERLAP:
            return estimate
        # Groups have all overlaps in common.
        alone = self.dependence == "group" and len(self.bits) == 2
        return estimate._replace(error=math.inf if alone else math.sqrt(2) * estimate.error)

    def observable(self, name: str) -> Float64[np.ndarray, "C D"]:
        """Returns `value`, `magnetisation` or `overlap` of each draw; InputError for any other
        name.
        """
        one_of("observable", name, (VALUE, MAGNETISATION, OVERLAP))
        return getattr(self, f"group_{name}s")

    def _averaged(self, observable: str) -> Float64[np.ndarray, "C D"]:
        """Returns an observable of each draw, or its average over the time since the previous draw,
        where known.
        """
        values = self.observable(observable)
        over_time = self.averages is not None and observable != OVERLAP
        return getattr(self.averages, observable) if over_time else values

    def judged_by_errors(self) -> Samples:
        """Returns the same draws, not reliable without an error of the value; notes say which
        errors rest on few.
        """
        if self.known is not None:
            return self
        reasons = list(self.verdict.reasons)
        notes = []
        for name in (VALUE, MAGNETISATION):
            values = self._averaged(name)
            differ = visits(values) * self._batches().effective / values.size
            if differ == 0 and name == VALUE:
                reasons.append(
                    "the error of value is unknown, as all draws agree, and nothing bounds the "
                    "values of other states: only the method exact, where it can run, tells"
                )
            elif 0 < differ < LEAST_VISITS:
                notes.append(
                    f"the error of {name} rests on about {max(1, differ):.0f} draws that differ "
                    f"from the others, below {LEAST_VISITS}, and is itself uncertain: draw more"
                )
        verdict = self.verdict._replace(reliable=not reasons, reasons=tuple(reasons))
        return dataclasses.replace(self, verdict=verdict, notes=(*self.notes, *notes))

    def expectation(self, function) -> Estimate:
        """Returns the mean of a function of states, with its error.

        It counts the function's own effective sample size, and a warning says why it is unknown:
        infinite where R-hat is above its limit, as between groups that hold different modes, and
        NaN where the function has the same value at all draws, as nothing bounds its values at
        other states. Booleans are an event, whose probability then has the error of `marginal`.

        Example:
            >>> problem = sl_discs.ising({"a": -0.5}, {("a", "b"): -1, ("b", "c"): -1})
            >>> samples = sl_discs.sample(problem, draws=1000, seed=0)
            >>> samples.expectation(lambda states: states.sum(axis=1))  # of a + b + c
            Estimate(mean=1.196..., error=0.076...)
            >>> samples.expectation(lambda states: states[:, 0] == states[:, 2])  # P(a = c)
            Estimate(mean=0.798..., error=0.012...)

        Args:
          function: maps states [S, N] to [S] real numbers or booleans, each row by itself. States
            are in the problem's own values, 0 and 1 or -1 and 1, in the order of `labels`, as
            integers of 64 bits. It is called with some of the draws at a time.

        Raises:
          InputError: the function returns another shape, or other than finite real numbers.
        """
        function_of("function", function)
        size = len(self.labels)
        parts = []
        for _, states in pieces(self.bits, size):
            # Sums of a few weighted values would overflow the 8 bits of states.
            own = self._own(states).astype(np.int64)
            rows = own.reshape(-1, size)
            result = np.asarray(function(rows))
            fits = result.shape == (len(rows),) and result.dtype.kind in "biuf"
            if not fits or not np.isfinite(result).all():
                raise InputError(
                    f"the function returned {result.dtype} of shape {result.shape}; expected a "
                    "finite real number for each state"
                )
            parts.append(result.reshape(own.shape[:2]))
        values = np.concatenate(parts, axis=1)
        return self._estimate(getattr(function, "__name__", "this function"), values)

    @functools.cached_property
    def _places(self) -> dict[Hashable, int]:
        return {label: index for index, label in enumerate(self.labels)}

    def _event(self, label: Hashable, value: int) -> tuple[int, int]:
        """Returns the place of a variable, and the number of one of its values; InputError if there
        is none.
        """
        check_label(self.name, label)
        index = self._places.get(label)
        if index is None:
            raise InputError(f"{self.name}: {shown(label)} is not a label")
        known = [-1, 1] if self.spins else [0, 1]
        if not isinstance(value, int | np.integer) or value not in known:
            raise InputError(
                f"{self.name}: {label!r} is never {shown(value)}; expected {known[0]} or 1"
            )
        return index, known.index(value)

    def to_dataframe(self, value: Hashable = VALUE):
        """Returns a pandas DataFrame with a row for each draw, and columns for the labels and the
        value.

        Raises:
          InputError: pandas is not installed, or a label has the name of the column of values.
        """
        pandas = import_extra("pandas")
        check_label("the column of values", value)
        if value in self.labels:
            raise InputError(
                f"{value!r} is also a label; name the column of values with to_dataframe(value=...)"
            )
        frame = pandas.DataFrame(
            self.states, columns=pandas.Index(list(self.labels), tupleize_cols=False)
        )
        frame[value] = self.values
        return frame

    def to_dimod(self):
        """Returns a dimod SampleSet; energies are values, negated if the problem is maximised.

        Raises:
          InputError: dimod is not installed.
        """
        dimod = import_extra("dimod")
        kind = dimod.SPIN if self.spins else dimod.BINARY
        return dimod.SampleSet.from_samples(
            (self.states, list(self.labels)),
            kind,
            -self.values if self.maximise else self.values,
            info=self.summary(),
            sort_labels=False,
        )

    def summary(self) -> dict[str, object]:
        """Estimates and evidence as plain values."""
        return {
            "temperature": self.temperature,
            "method": self.method,
            "chosen": self.chosen,
            "how": dict(self.how),
            "draws": len(self),
            "interrupted": self.interrupted,
            "reliable": self.reliable,
            "reasons": list(self.verdict.reasons),
            "notes": list(self.notes),
            "log_z": None if self.log_z is None else list(self.log_z),
            "curve": self.curve
            and {name: column.tolist() for name, column in self.curve._asdict().items()},
            "mean": {name: list(self.mean(name)) for name in (VALUE, MAGNETISATION, OVERLAP)},
            "diagnostics": [diagnostic._asdict() for diagnostic in self.diagnostics],
            "seconds": dict(self.seconds),
            "seed": self.seed,
        }

    def plot(self, path: str | os.PathLike | None = None, panels: Sequence[str] | None = None):
        """Plots the draws in panels, by default all that there are.

        These are `trace` (the value by the number of the draw), the distributions `values`,
        `magnetisation` and `overlaps`, P(q); `marginals`, a map where labels are rows and columns;
        of tempering `swaps` and `round_trips`; and of several temperatures `value`, `heat_capacity`
        and `entropy`, with standard errors.

        Args:
          path: of a PNG file; None to return the matplotlib figure, which a notebook shows.
          panels: their names, shown side by side.

        Raises:
          InputError: these draws have no such panel, matplotlib is not installed, or the file
            cannot be written.
        """
        size, paint = layout(self, panels)
        return (
            new_figure(size, paint)
            if path is None
            else save_figure(file_path("path", path), size, paint)
        )

    def save(self, path: str | os.PathLike) -> Path:
        """Writes everything to an .npz file, which `load` reads without unpickling, or the
        marginals to a .csv file.

        The latter has the columns `variable`, `probability` (that it is 1) and `error` (the
        standard error).

        Raises:
          InputError: the file's name does not end in .npz or .csv, it cannot be written, or a label
            is not made of numbers, strings, None and tuples.
        """
        path = file_path("path", path)
        if path.suffix == ".csv":
            text = io.StringIO()
            rows = csv.writer(text, lineterminator="\n")
            rows.writerow(("variable", "probability", "error"))
            rows.writerows((label, *part) for label, part in self.marginals.items())
            return write_text(path, text.getvalue())
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays = {name: fields.pop(name) for name in _ARRAYS}
        labels = fields.pop("labels")
        for group in _GROUPS:
            part = fields.pop(group)
            if part is not None:
                arrays |= {f"{group}_{name}": leaf for name, leaf in part._asdict().items()}
        fields["labels"] = (
            None if isinstance(labels, range) else [plain_label(path, label) for label in labels]
        )
        fields["num_labels"] = len(labels)
        return write_document(path, _FORMAT, arrays, fields)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Samples:
        """Reads a file of `save`.

        Raises:
          InputError: there is no such file, it is another kind of file, or its fields contradict
            each other.
        """
        try:
            arrays, fields = read_document(file_path("path", path), _FORMAT)
            count = fields.pop("num_labels")
            labels = fields["labels"]
            for group, kind in _GROUPS.items():
                own = {name: arrays.pop(f"{group}_{name}", None) for name in kind._fields}
                fields[group] = None if all(leaf is None for leaf in own.values()) else kind(**own)
            reliable, reasons, *times = fields["verdict"]
            fields |= arrays | {
                "labels": range(count) if labels is None else tuple(map(label_of, labels)),
                "grid": None if fields["grid"] is None else tuple(fields["grid"]),
                "log_z": None if fields["log_z"] is None else Estimate(*fields["log_z"]),
                "diagnostics": tuple(Diagnostic(*value) for value in fields["diagnostics"]),
                "verdict": Verdict(reliable, tuple(reasons), *times),
                "notes": tuple(fields["notes"]),
            }
            check_fields(cls, fields)
            if len(fields["labels"]) != count or fields["bits"].shape[2] != -(-count // 8):
                raise ValueError(f"labels or draws of another number of variables than {count}")
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise FormatError(f"{path}: not a file that Samples.save wrote ({error})") from error
        return cls(**fields)

    def __repr__(self) -> str:
        z = "" if self.log_z is None else f", log Z {self.log_z}"
        return (
            f"Samples({self._head}: {len(self):,} draws by {self.method}, value "
            f"{self.mean()}{z}; {self.verdict})"
        )

    def __str__(self) -> str:
        """Estimates with their standard errors and evidence, as a table, and the verdict."""
        stopped = " (interrupted)" if self.interrupted else ""
        return "\n".join([f"{self._head}{stopped}", *summary_lines(self), "", f"  {self.verdict}"])

    @property
    def _head(self) -> str:
        return f"{self.kind} {self.name!r} at temperature {self.temperature:g}"


# Tables of estimates with their evidence.

_TITLES = "", "mean", "error", "R-hat", "limit", "ESS bulk", "ESS tail", "limit"
_CURVE_TITLES = (
    "temperature",
    "value",
    "error",
    "heat capacity",
    "error",
    "log Z",
    "error",
    "entropy",
    "error",
)


def summary_lines(samples: Samples) -> list[str]:
    """Returns how the draws were made, notes, and the table of estimates with their evidence."""
    chosen = f" ({samples.chosen})" if samples.chosen else ""
    how = ", ".join(f"{name} {value}" for name, value in samples.how.items())
    title = f"{len(samples):,} draws by {samples.method}{chosen}: {how}"
    lines = [f"  {printable(line)}" for line in (title, *samples.notes)]
    tables = [[_TITLES, *estimates(samples)]]
    if samples.curve is not None:
        rows = [
            (f"{temperature:g}", *itertools.chain(*(numbers(Estimate(*one)) for one in columns)))
            for temperature, *columns in zip(*samples.curve, strict=True)
        ]
        tables.append([_CURVE_TITLES, *rows])
    for table in tables:
        lines += ["", *(line.rstrip() for line in aligned(table))]
    return lines


def estimates(samples: Samples) -> list[tuple[str, ...]]:
    """Returns the rows of means, of the value at other temperatures, of the variables with the
    largest R-hat and the least ESS, and of log Z.
    """
    means = {name: samples.mean(name) for name in (VALUE, MAGNETISATION, OVERLAP)}
    if samples.curve is not None:
        for temperature, value in zip(samples.curve.temperature, samples.curve.value, strict=True):
            means[value_at(temperature)] = Estimate(*value)
    known = {variable_name(label): label for label in samples.labels}
    variables = [entry for entry in samples.diagnostics if entry.name in known]
    rows = [
        (entry.name, *numbers(means[entry.name]), *_evidence(entry))
        for entry in samples.diagnostics
        if entry.name in means
    ]
    worst = max(variables, key=lambda entry: entry.r_hat)
    least = min(variables, key=lambda entry: entry.ess)
    for entry in dict.fromkeys((worst, least)):
        share = numbers(samples.marginal(known[entry.name]))
        rows.append((f"P({entry.name} = 1)", *share, *_evidence(entry)))
    if samples.log_z is not None:
        rows.append(("log Z", *numbers(samples.log_z), *[""] * 5))
    return rows


def numbers(estimate: Estimate) -> tuple[str, str]:
    """Returns a mean to the digit of its error, and the error."""
    if estimate.error == 0:
        return f"{estimate.mean:.10g}", "exact"
    if math.isnan(estimate.error):
        return f"{estimate.mean:.10g}", "unknown: all draws agree"
    if not math.isfinite(estimate.error):
        return f"{estimate.mean:.6g}", "unknown"
    digits = min(12, max(0, 1 - math.floor(math.log10(estimate.error))))
    return f"{estimate.mean:,.{digits}f}", f"{estimate.error:,.{digits}f}"


def _evidence(diagnostic: Diagnostic) -> tuple[str, ...]:
    """Returns R-hat, effective sample sizes and their limits, empty where they have no meaning."""
    _, r_hat, bulk, tail, limit, least = diagnostic
    cells = (r_hat, ".3f"), (limit, ".3f"), (bulk, ",.0f"), (tail, ",.0f"), (least, ",.0f")
    return tuple("" if math.isnan(value) else f"{value:{form}}" for value, form in cells)
