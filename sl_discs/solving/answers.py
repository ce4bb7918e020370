"""Files of answers: JSON that `Result.save` and `sl-discs solve --save` write, and `sl-discs check`
and Python read.

Whoever has the problem can recompute the values of its answers.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.problems.problem import label_of, plain_label
from sl_discs.support.documents import check_fields, parse_json
from sl_discs.support.errors import FormatError, InputError
from sl_discs.support.files import open_regular, write_text

_FORMAT = "sl_discs answers 2"


@dataclasses.dataclass(frozen=True)
class Answer:
    """The best answer to one problem, and how good it is.

    Attributes:
      name: of the problem.
      value: that it claims, in the problem's own sense and offset.
      labels: [N] of the variables.
      values: [N] of the variables: 0 and 1, or -1 and 1.
      feasible: whether it satisfies the constraints.
      optimal: whether it is proved to be optimal.
      bound: a value that no answer is better than; None: not known.
      gap: see `Result.gap`.
      bound_by: what the bound is from, in words.
      run: further fields of `Result` that are numbers or words, and `chain_values`, [B].
    """

    name: str
    value: float
    labels: Sequence[Any]
    values: Sequence[int]
    feasible: bool
    optimal: bool
    bound: float | None
    gap: float | None
    bound_by: str
    run: Mapping[str, Any]

    @property
    def sample(self) -> dict[Hashable, int]:
        """Values by label, as `Problem.value` and the `initial_states` of `solve` take them."""
        return dict(zip(self.labels, self.values, strict=True))


@dataclasses.dataclass(frozen=True)
class Answers:
    """Answers to the problems of a file, or to one that was made in Python, where what belongs to
    the file is None.

    Attributes:
      problem: its kind.
      answers: in the order of the problems. If the run was interrupted, the last one is the best
        that was found, and later problems have none.
      file: its name.
      sha256: its SHA-256 digest.
      command: that solved it.
      interrupted: whether the run was.
      weights: whether the weights of nodes count.
      weight: under which name the file has weights.
    """

    problem: str
    answers: Sequence[Answer]
    file: str | None = None
    sha256: str | None = None
    command: str | None = None
    interrupted: bool = False
    weights: bool | None = None
    weight: str | None = None

    def save(self, path: str | os.PathLike) -> Path:
        """Writes them atomically; InputError where that is impossible, or a label is not made of
        plain values.
        """
        path = Path(path)
        answers = []
        for answer in self.answers:
            answers.append(
                vars(answer) | {"labels": [plain_label(path, label) for label in answer.labels]}
            )
        content = {"format": _FORMAT} | vars(self) | {"answers": answers}
        return write_text(path, json.dumps(content, indent=1, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, range):
        return list(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} in a file of answers")


def read_answers(path: str | os.PathLike) -> Answers:
    """Reads a file of answers.

    Example:
        >>> path = sl_discs.solve(sl_discs.mis(nx.cycle_graph(7))).save("seven.json")
        >>> [answer] = sl_discs.read_answers(path).answers
        >>> answer.value, answer.optimal
        (3.0, True)

    Raises:
      InputError: there is no such file, or it is another kind of file.
    """
    path = Path(path)
    try:
        with open_regular(path) as file:
            content = parse_json(file.read())
        if content.pop("format") != _FORMAT:
            raise ValueError
        answers = []
        for entry in content["answers"]:
            # Numbers stay as they are in the file: whole ones are not rounded to doubles, nor
            # values to states.
            fields = entry | {
                "labels": tuple(map(label_of, entry["labels"])),
                "values": tuple(entry["values"]),
            }
            check_fields(Answer, fields)
            if not len(set(fields["labels"])) == len(fields["labels"]) == len(fields["values"]):
                raise ValueError
            answers.append(Answer(**fields))
        content["answers"] = tuple(answers)
        check_fields(Answers, content)
        return Answers(**content)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise FormatError(
            f"{path}: not a file of answers; Result.save and sl-discs solve FILE --save=... write "
            "one"
        ) from None
