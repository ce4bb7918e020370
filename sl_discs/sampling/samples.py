"""The result of `sl_discs.sample`: draws with the problem's own labels, estimates with errors, and a verdict."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int8, Num, UInt8
from scipy.special import softmax

from sl_discs.errors import FormatError, InputError, MissingExtra, check_label
from sl_discs.experiment.figures import COLOURS, new_figure, save_figure
from sl_discs.files import check_fields, read_document, write_document
from sl_discs.problems.problem import label_of, plain_label
from sl_discs.sampling.diagnostics import Diagnostic, Verdict
from sl_discs.sampling.draws import (
    DEPENDENCES,
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
from sl_discs.terminal import printable

# `Samples` are one .npz file: arrays, and all else as JSON text in it. Nothing is pickled.
_FORMAT = "sl_discs samples 4"
_ARRAYS = ("bits", "group_values", "group_overlaps", "group_magnetisations", "log_weights")
# Fields that are arrays by name.
_GROUPS: dict[str, Any] = {"ladder": Ladder, "known": Known, "averages": Averages}


def _check_values(fields: dict[str, Any], size: int) -> None:
    """Checks what types and shapes of arrays do not say; ValueError if something contradicts something else."""
    labels, bits, ladder, known = (fields[name] for name in ("labels", "bits", "ladder", "known"))
    if bits.shape[0] < 1 or bits.shape[1] < 1:
        raise ValueError("no draws")
    if len(labels) != size or (not isinstance(labels, range) and len(set(labels)) != size):
        raise ValueError(f"{len(labels)} labels for {size} variables, or equal ones")
    if bits.shape[2] != num_bytes(size):
        raise ValueError(f"{bits.shape[2]} bytes a draw do not fit {size} variables")
    if fields["dependence"] not in DEPENDENCES or not 0 < fields["temperature"] < math.inf:
        raise ValueError("a dependence or temperature that is none")
    if ladder is not None and (
        len(ladder.acceptance) != len(ladder.inverse) - 1 or ladder.round_trips.shape != bits.shape[:1]
    ):
        raise ValueError("a ladder of another length")
    if known is not None and (
        known.marginals.shape != (size, 2)
        or known.joint.shape != (len(known.pairs), 2, 2)
        or not ((known.pairs >= 0) & (known.pairs < size)).all()
    ):
        raise ValueError("exact probabilities of other variables")


def _imported(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(f"this needs {name}; install it with: pip install {name}") from error


VALUE, MAGNETISATION, OVERLAP = "value", "magnetisation", "overlap"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Draws from p(x) ~ exp(f(x)/temperature), where f is what the problem maximises, or minus what it minimises.

    Draws are not repaired: sets may have conflicts, each of which costs `penalty` in f.

    Attributes:
      kind: of the problem.
      name: of the problem.
      labels: [N] labels of the variables.
      maximise: whether the problem's best value is the largest.
      spins: whether variables are -1 and 1 instead of 0 and 1.
      temperature: tau, in units of the problem's value.
      method: the method used: `chain`, `tempering`, `population`, `localization`, `low_rank` or `exact`.
      chosen: why this method; empty if it was requested.
      how: details of the run, by name.
      bits: [C, D, W] the draws of C groups with different starts, as in `sl_discs.sampling.draws`.
      group_values: [C, D] the value of each draw in the problem's sense and offset, without repair.
      group_overlaps: [C, D] overlap s.s'/N of each draw with one of another group.
      group_magnetisations: [C, D] the mean spin of each draw.
      dependence: of the draws of a group, as in `estimates.Batches`.
      log_weights: [C] of the groups; None: equal weights.
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
    temperature: float
    method: str
    chosen: str
    how: Mapping[str, Any]
    bits: UInt8[np.ndarray, "C D W"]
    group_values: Float64[np.ndarray, "C D"]
    group_overlaps: Float64[np.ndarray, "C D"]
    group_magnetisations: Float64[np.ndarray, "C D"]
    dependence: str
    log_weights: Float64[np.ndarray, "C"] | None
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
        """Whether the verdict has no reasons against the draws."""
        return self.verdict.reliable

    @property
    def states(self) -> Int8[np.ndarray, "S N"]:
        """All S = C D draws in the problem's own values, group by group."""
        return self._own(unpacked(np.asarray(self.bits), len(self.labels)).reshape(-1, len(self.labels)))

    def _own(self, states: Int8[np.ndarray, "*B N"]) -> Int8[np.ndarray, "*B N"]:
        return (2 * states - 1).astype(np.int8) if self.spins else states

    def draw(self, number: int) -> dict[Hashable, int]:
        """One of the S draws by label; numbers as of a list.

        Raises:
          InputError: there are fewer draws.
        """
        if not isinstance(number, int | np.integer) or not -len(self) <= number < len(self):
            raise InputError(f"draw {number!r} of {len(self):,}; expected a whole number from 0 to {len(self) - 1}")
        group, place = divmod(number % len(self), self.bits.shape[1])
        state = self._own(unpacked(np.asarray(self.bits[group, place]), len(self.labels)))
        return dict(zip(self.labels, state.tolist(), strict=True))

    @property
    def values(self) -> Float64[np.ndarray, "S"]:
        """The values of all draws, in the order of `states`."""
        return self.group_values.ravel()

    @property
    def weights(self) -> Float64[np.ndarray, "S"]:
        """The weights of all draws, with sum 1; equal except for populations."""
        groups = softmax(np.zeros(len(self.bits)) if self.log_weights is None else self.log_weights)
        return np.repeat(groups, self.bits.shape[1]) / self.bits.shape[1]

    @property
    def _batches(self) -> Batches:
        groups, draws = self.group_values.shape
        least = min(one.ess_bulk for one in self.diagnostics if one.name in (VALUE, MAGNETISATION, OVERLAP))
        return Batches(groups, draws, self.dependence, self.log_weights, least)

    @functools.cached_property
    def marginals(self) -> dict[Hashable, Estimate]:
        """The probability that each variable is 1, with its standard error."""
        found = zip(self.labels, *(one.tolist() for one in self._shares()), strict=True)
        return {label: Estimate(mean, error) for label, mean, error in found}

    def _shares(self) -> tuple[Float64[np.ndarray, "N"], Float64[np.ndarray, "N"]]:
        """The probability that each variable is 1, and the errors."""
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
        """The probability that one variable has a value; InputError for an unknown label or value."""
        place, number = self._event(label, value)
        if self.known is not None:
            return Estimate(float(self.known.marginals[place, number]), 0.0)
        return self._share(self._has(place, number))

    def pair_marginal(self, first: Hashable, second: Hashable, values: tuple[int, int] = (1, 1)) -> Estimate:
        """The probability that two variables have these values; InputError for an unknown label or value.

        Of exact draws it is known for all pairs after enumeration, and otherwise for those with a coupling.
        """
        one, other = self._event(first, values[0]), self._event(second, values[1])
        exact = self._joint.get((one[0], other[0]))
        if exact is not None:
            return Estimate(float(exact[one[1], other[1]]), 0.0)
        return self._share(self._has(*one) & self._has(*other))

    @functools.cached_property
    def _joint(self) -> dict[tuple[int, int], Float64[np.ndarray, "K K"]]:
        """The exact laws of the pairs of places of which they are known, in both orders."""
        if self.known is None:
            return {}
        pairs = list(zip(self.known.pairs.tolist(), self.known.joint, strict=True))
        return {(a, b): law for (a, b), law in pairs} | {(b, a): law.T for (a, b), law in pairs}

    def pair_marginals(
        self, pairs: Iterable[tuple[Hashable, Hashable]], values: tuple[int, int] = (1, 1)
    ) -> dict[tuple[Hashable, Hashable], Estimate]:
        """`pair_marginal` of each pair."""
        return {(first, second): self.pair_marginal(first, second, values) for first, second in pairs}

    def _share(self, events: Num[np.ndarray, "C D"]) -> Estimate:
        return _estimate(self._batches.share(events.astype(float)))

    def mean(self, observable: str = VALUE) -> Estimate:
        """The mean of `value`, `magnetisation` or `overlap`, with its standard error: NaN if all draws agree.

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
        """The exact mean of an observable."""
        if observable == VALUE:
            return float(known.mean_value if self.maximise else -known.mean_value)
        if observable == OVERLAP:  # of independent draws
            return float((2 * (known.marginals**2).sum(axis=1) - 1).mean())
        return float((2 * known.marginals[:, 1] - 1).mean())

    def observable(self, name: str) -> Float64[np.ndarray, "C D"]:
        """`value`, `magnetisation` or `overlap` of each draw; InputError for any other name."""
        known = {
            VALUE: self.group_values, MAGNETISATION: self.group_magnetisations, OVERLAP: self.group_overlaps
        }  # fmt: skip
        if not isinstance(name, str) or name not in known:
            raise InputError(f"unknown observable {name!r}; known: {', '.join(known)}, and marginal(label)")
        return known[name]

    def expectation(self, function) -> Estimate:
        """The mean of a function that maps states [S, N], in the problem's own values as integers of 64 bits, to [S]
        real numbers.

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
        """The place of a variable, and the number of one of its values; InputError if there is none."""
        check_label(self.name, label)
        place = self._places.get(label)
        if place is None:
            raise InputError(f"{self.name}: {label!r} is not a label")
        known = [-1, 1] if self.spins else [0, 1]
        if value not in known:
            raise InputError(f"{self.name}: {label!r} is never {value!r}; expected {known[0]} or 1")
        return place, known.index(value)

    def _has(self, place: int, number: int) -> Bool[np.ndarray, "C D"]:
        """Whether the variable at a place has a value, in each draw."""
        return column(self.bits, len(self.labels), place) == number

    def to_dataframe(self, value: Hashable = VALUE):
        """A pandas DataFrame with a row for each draw, and columns for the labels, the value and `weight`.

        Raises:
          InputError: pandas is not installed, or a label has the name of another column.
        """
        pandas = _imported("pandas")
        check_label("the column of values", value)
        for name in (value, "weight"):
            if name in self.labels:
                raise InputError(f"{name!r} is also a label; name the column of values with to_dataframe(value=...)")
        frame = pandas.DataFrame(self.states, columns=pandas.Index(list(self.labels), tupleize_cols=False))
        frame[value], frame["weight"] = self.values, self.weights
        return frame

    def to_dimod(self):
        """A dimod SampleSet; energies are values, negated if the problem is maximised.

        Raises:
          InputError: dimod is not installed.
        """
        dimod = _imported("dimod")
        kind = dimod.SPIN if self.spins else dimod.BINARY
        return dimod.SampleSet.from_samples(
            (self.states, list(self.labels)), kind, -self.values if self.maximise else self.values,
            info=self.summary(), sort_labels=False, weight=self.weights,
        )  # fmt: skip

    def to_inference_data(self):
        """The draws for arviz: variables `x` [chain, draw, variable], `value`, `magnetisation` and `overlap`.

        Raises:
          InputError: arviz is not installed, or draws have unequal weights, which arviz does not support.
        """
        if self.log_weights is not None:
            raise InputError("populations have weights, which arviz does not support; use another method")
        arviz = _imported("arviz")
        scalars = {name: self.observable(name) for name in (VALUE, MAGNETISATION, OVERLAP)}
        groups = {"posterior": {"x": self.states.reshape(*self.group_values.shape, -1), **scalars}}
        axes = {"coords": {"variable": [str(label) for label in self.labels]}, "dims": {"x": ["variable"]}}
        if hasattr(arviz, "InferenceData"):  # before version 1
            return arviz.from_dict(**groups, **axes)
        return arviz.from_dict(groups, **axes)

    def summary(self) -> dict[str, Any]:
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
        """Plots values by draw and their histogram, the distribution P(q) of overlaps, and a ladder if there is one.

        Args:
          path: of a PNG file; None to return the matplotlib figure, which a notebook shows.

        Raises:
          InputError: matplotlib is not installed, or the file cannot be written.
        """
        paint = functools.partial(paint_all, self)
        size = 8.0, 5.4 if self.ladder is not None else 2.7
        return new_figure(size, paint) if path is None else save_figure(Path(path), size, paint)

    def save(self, path: str | os.PathLike) -> Path:
        """Writes everything atomically to one .npz file, which `load` reads without unpickling.

        Raises:
          InputError: the file's name does not end in .npz, it cannot be written, or a label is not made of numbers,
            strings, None and tuples.
        """
        path = Path(path)
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays = {name: fields.pop(name) for name in _ARRAYS}
        arrays = {name: value for name, value in arrays.items() if value is not None}
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
            fields |= dict.fromkeys(_ARRAYS) | arrays | {
                "labels": range(count) if labels is None else tuple(map(label_of, labels)),
                "log_z": None if fields["log_z"] is None else Estimate(*fields["log_z"]),
                "diagnostics": tuple(Diagnostic(*one) for one in fields["diagnostics"]),
                "verdict": Verdict(fields["verdict"][0], tuple(fields["verdict"][1]), *fields["verdict"][2:]),
                "notes": tuple(fields["notes"]),
            }  # fmt: skip
            check_fields(cls, fields)
            _check_values(fields, count)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise FormatError(f"{path}: not a file that Samples.save wrote ({error})") from error
        return cls(**fields)

    def __repr__(self) -> str:
        draws = f"{len(self):,} draws" + (", interrupted" if self.interrupted else "")
        z = "" if self.log_z is None else f", log Z {self.log_z}"
        return (
            f"Samples({self.kind} {self.name!r} at temperature {self.temperature:g}: {draws} by {self.method}, "
            f"value {self.mean()}{z}; {self.verdict})"
        )


def _estimate(found: Estimates) -> Estimate:
    """The estimate of a single mean."""
    return Estimate(*map(float, found))


# The plots: of draws, and of a ladder.

_MOST_POINTS = 2_000
_OVERLAP_BIN = 0.05


def paint_all(samples, figure) -> None:
    """All of them: a row, and a second one for a ladder."""
    paints = [paint_traces, paint_values, paint_overlaps]
    if samples.ladder is not None:
        paints += [paint_swaps, paint_barrier, paint_round_trips]
    for paint, axes in zip(paints, figure.subplots(len(paints) // 3, 3, squeeze=False).flat, strict=True):
        paint(samples, axes)
    figure.suptitle(printable(f"{samples.name}: {samples.method}, temperature {samples.temperature:g}"), fontsize=10)


def paint_traces(samples, axes, observable: str = "value") -> None:
    """An observable of each group by the number of the draw."""
    values = samples.observable(observable)
    every = -(-values.shape[1] // _MOST_POINTS)
    number = np.arange(values.shape[1])[::every]
    for group, row in enumerate(values[:8]):
        axes.plot(number, row[::every], linewidth=0.5, color=COLOURS[group % len(COLOURS)])
    axes.set(xlabel="draw", ylabel=observable)


def paint_values(samples, axes) -> None:
    """The distribution of values."""
    axes.hist(samples.values, bins=_bins(samples.values), weights=samples.weights, color=COLOURS[0])
    axes.set(xlabel="value", ylabel="probability")


def paint_overlaps(samples, axes) -> None:
    """P(q): where it has several peaks, draws of one mode differ from those of another."""
    overlaps, bins = samples.group_overlaps.ravel(), overlap_bins(len(samples.labels))
    axes.hist(overlaps, bins=bins, weights=samples.weights, color=COLOURS[2])
    axes.set(xlabel="overlap q", ylabel="P(q)", xlim=(bins[0], bins[-1]))


def overlap_bins(size: int) -> Float64[np.ndarray, "B"]:
    """Edges of bins of about .05 that all hold equally many of the overlaps that N variables can have."""
    step = 2 / size
    width = step * max(1, round(_OVERLAP_BIN / step))
    return 1 + step / 2 - width * np.arange(np.ceil((2 + step) / width), -1, -1)


def paint_swaps(samples, axes) -> None:
    """Acceptance of the swaps between neighbours."""
    axes.bar(np.arange(len(samples.ladder.acceptance)), samples.ladder.acceptance, color=COLOURS[5])
    axes.set(xlabel="pair of rungs, hottest first", ylabel="swap acceptance", ylim=(0, 1))


def paint_barrier(samples, axes) -> None:
    """The barrier over the inverse temperature: the running sum of rejections."""
    barrier = np.concatenate([[0.0], np.cumsum(1 - samples.ladder.acceptance)])
    axes.plot(samples.ladder.inverse, barrier, marker=".", color=COLOURS[1])
    axes.set(xlabel="1/temperature", ylabel="communication barrier")


def paint_round_trips(samples, axes) -> None:
    """Round trips of each ladder, or of each pair that exchanges clusters."""
    axes.bar(np.arange(len(samples.ladder.round_trips)), samples.ladder.round_trips, color=COLOURS[3])
    axes.set(xlabel="group of ladders", ylabel="round trips")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _bins(values: np.ndarray):
    if np.ptp(values) == 0:
        # Of any magnitude: an edge at a fixed distance may be rounded to the value.
        half = max(0.5, abs(values[0]) * 1e-3)
        return values[0] + np.array([-half, half])
    integral = np.array_equal(values, np.round(values)) and np.ptp(values) <= 40
    return np.arange(values.min() - 0.5, values.max() + 1) if integral else min(40, max(1, len(np.unique(values))))
