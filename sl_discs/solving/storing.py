"""Stores the fields of a `Result` in one .npz file: arrays, and everything else as JSON text. Nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.atomic import write_atomically
from sl_discs.damaged_npz import DAMAGED_NPZ
from sl_discs.errors import InputError
from sl_discs.parse_json import parse_json
from sl_discs.problems.labels import label_of, plain_label
from sl_discs.solving.contraction import Contraction
from sl_discs.solving.trajectory import Trajectory

_FORMAT = "sl_discs result 3"
_ARRAYS = ("values", "improved", "states", "feasible_chains", "final_states")
_PLAIN = (
    "kind", "name", "maximise", "spins", "acceptance", "hops", "steps", "rounds", "stopped", "timing", "engine",
    "engine_note", "sampler", "annealing", "seed", "final_is", "bound", "presolved",
)  # fmt: skip


def write_fields(path: Path, fields: Mapping[str, Any]) -> Path:
    """Writes fields by name; errors are those of `Result.save`."""
    labels = fields["labels"]
    text = {name: fields[name] for name in _PLAIN}
    text |= {
        "format": _FORMAT,
        "labels": None if isinstance(labels, range) else [plain_label(path, label) for label in labels],
    }
    arrays = {name: fields[name] for name in _ARRAYS}
    arrays |= {f"trajectory_{name}": leaf for name, leaf in fields["trajectory"]._asdict().items()}
    arrays |= {f"contraction_{name}": leaf for name, leaf in fields["contraction"]._asdict().items()}
    arrays["json"] = np.array(json.dumps(text))
    return write_atomically(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def read_fields(path: Path) -> dict[str, Any]:
    """Reads the fields by name; errors are those of `Result.load`."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        text = parse_json(str(arrays["json"]))
        if text.pop("format") != _FORMAT:
            raise ValueError("another format")
        labels = text.pop("labels")
        if set(text) != set(_PLAIN):
            raise ValueError("other fields")
        labels = range(arrays["states"].shape[1]) if labels is None else tuple(map(label_of, labels))
        trajectory = Trajectory(*(arrays[f"trajectory_{name}"] for name in Trajectory._fields))
        contraction = Contraction(*(arrays[f"contraction_{name}"] for name in Contraction._fields))
        whole = {name: arrays[name] for name in _ARRAYS}
        return {"labels": labels, "trajectory": trajectory, "contraction": contraction, **whole, **text}
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror or error})") from error
    except DAMAGED_NPZ as error:
        raise InputError(f"{path}: not a file that Result.save wrote ({error})") from error
