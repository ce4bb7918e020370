"""`Samples` as one .npz file: arrays, and all else as JSON text in it. Nothing is pickled."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.errors import InputError
from sl_discs.npz import check_fields, read_document, write_document
from sl_discs.problems.labels import label_of, plain_label
from sl_discs.sampling.diagnostics import Diagnostic, Verdict
from sl_discs.sampling.drawn import Ladder
from sl_discs.sampling.estimates import DEPENDENCES, Estimate
from sl_discs.sampling.packed import num_bytes, pieces

_FORMAT = "sl_discs samples 2"
_ARRAYS = ("bits", "group_values", "group_overlaps", "group_magnetisations", "log_weights")


def write_samples(path: Path, samples) -> Path:
    """Writes them; errors are those of `Samples.save`."""
    fields = {field.name: getattr(samples, field.name) for field in dataclasses.fields(samples)}
    arrays = {name: fields.pop(name) for name in _ARRAYS}
    arrays = {name: value for name, value in arrays.items() if value is not None}
    labels, ladder = fields.pop("labels"), fields.pop("ladder")
    if ladder is not None:
        arrays |= {f"ladder_{name}": leaf for name, leaf in ladder._asdict().items()}
    fields["labels"] = None if isinstance(labels, range) else [plain_label(path, label) for label in labels]
    fields["num_labels"] = len(labels)
    return write_document(path, _FORMAT, arrays, fields)


def read_samples(path: Path, kind: type) -> dict[str, Any]:
    """The fields of `Samples`, which is `kind`, by their names; errors are those of `Samples.load`."""
    try:
        arrays, fields = read_document(path, _FORMAT)
        count, labels = fields.pop("num_labels"), fields["labels"]
        ladder = {name: arrays.pop(f"ladder_{name}") for name in Ladder._fields if f"ladder_{name}" in arrays}
        fields |= dict.fromkeys(_ARRAYS) | arrays | {
            "labels": range(count) if labels is None else tuple(map(label_of, labels)),
            "num_values": None if fields["num_values"] is None else tuple(fields["num_values"]),
            "log_z": None if fields["log_z"] is None else Estimate(*fields["log_z"]),
            "ladder": Ladder(**ladder) if ladder else None,
            "diagnostics": tuple(Diagnostic(*one) for one in fields["diagnostics"]),
            "verdict": Verdict(fields["verdict"][0], tuple(fields["verdict"][1])),
            "notes": tuple(fields["notes"]),
        }  # fmt: skip
        check_fields(kind, fields)
        _check_values(fields, count)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a file that Samples.save wrote ({error})") from error
    return fields


def _check_values(fields: dict[str, Any], size: int) -> None:
    """Checks what types and shapes of arrays do not say; ValueError if something contradicts something else."""
    labels, bits, counts, ladder = (fields[name] for name in ("labels", "bits", "num_values", "ladder"))
    if bits.shape[0] < 1 or bits.shape[1] < 1:
        raise ValueError("no draws")
    if len(labels) != size or (not isinstance(labels, range) and len(set(labels)) != size):
        raise ValueError(f"{len(labels)} labels for {size} variables, or equal ones")
    if counts is not None and (len(counts) != size or not all(2 <= count <= 127 for count in counts)):
        raise ValueError("num_values has not one number from 2 to 127 of each variable")
    if bits.shape[2] != num_bytes(size, 2 if counts is None else max(counts)):
        raise ValueError(f"{bits.shape[2]} bytes a draw do not fit {size} variables")
    if counts is not None and any((states >= np.array(counts)).any() for _, states in pieces(bits, size)):
        raise ValueError("bits has values that no variable has")
    if fields["dependence"] not in DEPENDENCES or not 0 < fields["temperature"] < math.inf:
        raise ValueError("a dependence or temperature that is none")
    if ladder is not None and (
        len(ladder.acceptance) != len(ladder.inverse) - 1 or ladder.round_trips.shape != bits.shape[:1]
    ):
        raise ValueError("a ladder of another length")
