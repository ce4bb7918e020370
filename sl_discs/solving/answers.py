"""Files of answers by label, whose values anybody can recompute from the problem's own file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sl_discs.atomic import write_atomically
from sl_discs.errors import InputError
from sl_discs.parse_json import parse_json
from sl_discs.problems import Problem
from sl_discs.version import __version__

_FORMAT = "sl_discs answers 1"


@dataclasses.dataclass(frozen=True)
class Answer:
    """One problem's answer.

    Attributes:
      name: of the problem.
      value: the claimed value.
      labels: [N] labels of nodes or variables, as in the problem's file.
      values: [N] their values: 0 and 1, or -1 and 1 for `ising`.
    """

    name: str
    value: float
    labels: Sequence[Any]
    values: Sequence[int]


@dataclasses.dataclass(frozen=True)
class Answers:
    """The answers to all problems of a file.

    Attributes:
      kind: of the problems, such as `mis` or `qubo`.
      source: name of their file.
      sha256: digest of the file.
      command: the command that found them.
      answers: in the order of the file.
      interrupted: whether the run was stopped: the last answer is then the best that was found, and later problems
        have none.
    """

    kind: str
    source: str
    sha256: str
    command: str
    answers: tuple[Answer, ...]
    interrupted: bool = False


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
        "answers": [
            {"name": one.name, "value": one.value, "labels": list(one.labels), "values": list(one.values)}
            for one in answers.answers
        ],
    }
    text = json.dumps(content, allow_nan=False)
    return write_atomically(path, lambda file: file.write(text.encode()))


def read_answers(path: Path) -> Answers:
    """Reads a file of `write_answers`.

    Raises:
      InputError: it cannot be read, or is another kind of file.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError
        found = tuple(
            Answer(str(one["name"]), _number(one["value"]), list(one["labels"]), [int(v) for v in one["values"]])
            for one in content["answers"]
        )
        if any(len(one.labels) != len(one.values) for one in found):
            raise ValueError
        kind, file, sha256, command = (str(content[name]) for name in ("problem", "file", "sha256", "command"))
        return Answers(kind, file, sha256, command, found, content.get("interrupted") is True)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a file that solve --save wrote") from error
    except (ValueError, KeyError, TypeError, OverflowError):
        raise InputError(f"{path}: not a file of answers; sl-discs solve FILE --save=... writes one") from None


def _number(value: Any) -> float:
    """A claimed value as in the file: whole numbers are not rounded, so they do not equal neighbouring doubles."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return value


def recount(problem: Problem, answer: Answer) -> tuple[float, bool]:
    """The exact value of an answer in the problem of the file, and whether it satisfies the constraints.

    A set or clique with conflicts is not repaired here, because it is not an answer.

    Raises:
      InputError: labels are missing or unknown, or a value is not one of the two.
    """
    state = problem.as_state(dict(zip(answer.labels, answer.values, strict=True)))
    evaluated = problem.evaluate(state[None])
    return float(evaluated.values[0]), bool((evaluated.states[0] == state).all() and evaluated.feasible[0])
