"""`Samples` as one .npz file: arrays, and all else as JSON text in it. Nothing is pickled."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.atomic import write_atomically
from sl_discs.damaged_npz import DAMAGED_NPZ
from sl_discs.errors import InputError
from sl_discs.parse_json import parse_json
from sl_discs.problems.labels import label_of, plain_label
from sl_discs.sampling.diagnostics import Diagnostic, Verdict
from sl_discs.sampling.drawn import Ladder
from sl_discs.sampling.estimates import Estimate

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
    arrays["json"] = np.array(json.dumps({"format": _FORMAT, **fields}))
    return write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **arrays))


def read_samples(path: Path) -> dict[str, Any]:
    """The fields by their names; errors are those of `Samples.load`."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        fields = parse_json(str(arrays["json"]))
        if fields.pop("format") != _FORMAT:
            raise ValueError("another format")
        has_ladder = "ladder_inverse" in arrays
        count, labels = fields.pop("num_labels"), fields["labels"]
        return fields | {name: arrays.get(name) for name in _ARRAYS} | {
            "labels": range(count) if labels is None else tuple(map(label_of, labels)),
            "num_values": None if fields["num_values"] is None else tuple(fields["num_values"]),
            "log_z": None if fields["log_z"] is None else Estimate(*fields["log_z"]),
            "ladder": Ladder(*(arrays[f"ladder_{name}"] for name in Ladder._fields)) if has_ladder else None,
            "diagnostics": tuple(Diagnostic(*one) for one in fields["diagnostics"]),
            "verdict": Verdict(fields["verdict"][0], tuple(fields["verdict"][1])),
            "notes": tuple(fields["notes"]),
        }  # fmt: skip
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror or error})") from error
    except DAMAGED_NPZ as error:
        raise InputError(f"{path}: not a file that Samples.save wrote ({error})") from error
