"""Answers to the problems of a file: in words, and in files whose values anybody can recompute from the problem."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sl_discs.errors import FormatError, InputError
from sl_discs.files import parse_json, write_text
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS
from sl_discs.problems.problem import label_of
from sl_discs.solving.result import Result
from sl_discs.version import __version__

# A bound that is farther off says nothing.
_FAR = 0.5


def verification(problem: Problem, result: Result) -> tuple[bool, str]:
    """Returns whether the best answer has the claimed value in the problem as given, and how this was verified."""
    value = problem.value(result.best_sample)
    if value != result.best_value:
        return False, f"not verified: recomputed, the value of the answer is {value:.17g}"
    if not result.feasible:
        return False, "not verified: the answer violates constraints"
    return True, f"verified: {KINDS[problem.kind].recounted_of(problem.source)}"


def proof(result: Result) -> str:
    """Returns in words how good the best answer is at least, or why that is not known; perhaps empty."""
    if result.optimal:
        return f"optimal, proved by {result.bound_by}"
    if result.bound is None:
        return f"no bound: {result.bound_by}" if result.bound_by else ""
    if result.gap is not None and result.gap > _FAR:
        return f"no useful bound ({100 * result.gap:,.0f} % off, by {result.bound_by})"
    gap = "" if result.gap is None else f", a gap of {100 * result.gap:.3g} %"
    return f"no answer is better than {result.bound:,.12g}{gap}, by {result.bound_by}"


def seconds(read_s: float, result: Result) -> dict[str, float]:
    """Returns the parts of the wall time, from reading the source to the verified answer."""
    parts = {
        "reductions and bounds": "build_s",
        "compiling": "compile_s",
        "sampling": "run_s",
        "recounting": "verify_s",
    }
    return {"reading": read_s} | {words: result.timing[name] for words, name in parts.items()}


_FORMAT = "sl_discs answers 1"


@dataclasses.dataclass(frozen=True)
class Answer:
    """One problem's answer: the claimed value, and the [N] labels and values, which are 0 and 1, or -1 and 1."""

    name: str
    value: float
    labels: Sequence[Any]
    values: Sequence[int]


@dataclasses.dataclass(frozen=True)
class Answers:
    """The answers to all problems of a file, in its order.

    If the run was interrupted, the last answer is the best that was found, and later problems have none. `weights`
    says whether the weights of nodes in the file count.
    """

    kind: str
    source: str
    sha256: str
    command: str
    answers: tuple[Answer, ...]
    interrupted: bool = False
    weights: bool = False


def digest_of(path: Path) -> str:
    """SHA-256 digest of a file, in hexadecimal; InputError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give the problem's file") from error


def write_answers(path: Path, answers: Answers) -> Path:
    """Writes a JSON file atomically; InputError if it cannot be written."""
    content = {
        "format": _FORMAT,
        "version": __version__,
        "problem": answers.kind,
        "file": answers.source,
        "sha256": answers.sha256,
        "command": answers.command,
        "interrupted": answers.interrupted,
        "weights": answers.weights,
        "answers": [dataclasses.asdict(one) for one in answers.answers],
    }
    return write_text(path, json.dumps(content, allow_nan=False))


def read_answers(path: Path) -> Answers:
    """Reads a file of `write_answers`; InputError if it cannot be read, or is another kind of file."""
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError
        found = tuple(
            Answer(
                str(one["name"]),
                _number(one["value"]),
                list(map(label_of, one["labels"])),
                list(map(_whole, one["values"])),
            )
            for one in content["answers"]
        )
        if any(not len(set(one.labels)) == len(one.labels) == len(one.values) for one in found):
            raise ValueError
        kind, file, sha256, command = (str(content[name]) for name in ("problem", "file", "sha256", "command"))
        interrupted, weights = (content.get(name) is True for name in ("interrupted", "weights"))
        return Answers(kind, file, sha256, command, found, interrupted, weights)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a file that solve --save wrote") from error
    except (ValueError, KeyError, TypeError, OverflowError):
        raise FormatError(f"{path}: not a file of answers; sl-discs solve FILE --save=... writes one") from None


def _whole(value: Any) -> int:
    """A value of a state, which is not rounded to one."""
    if type(value) is not int:
        raise TypeError
    return value


def _number(value: Any) -> float:
    """A claimed value as in the file: whole numbers are not rounded, so they do not equal neighbouring doubles."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return value


def recount(problem: Problem, answer: Answer) -> tuple[float, bool]:
    """The exact value of an answer in the problem of the file, and whether it satisfies the constraints.

    A set or clique with conflicts is not repaired here, because it is not an answer. InputError where labels are
    missing or unknown, or a value is not one of the two.
    """
    state = problem.as_state(dict(zip(answer.labels, answer.values, strict=True)))
    evaluated = problem.evaluate(state[None])
    return float(evaluated.values[0]), bool((evaluated.states[0] == state).all() and evaluated.feasible[0])
