"""Stores the fields of a `Result` in one .npz file: arrays, and everything else as JSON text. Nothing is pickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError
from sl_discs.npz import check_fields, read_document, write_document
from sl_discs.problem_names import CATEGORICAL
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
    text["labels"] = None if isinstance(labels, range) else [plain_label(path, label) for label in labels]
    arrays = {name: fields[name] for name in _ARRAYS}
    arrays |= {f"trajectory_{name}": leaf for name, leaf in fields["trajectory"]._asdict().items()}
    arrays |= {f"contraction_{name}": leaf for name, leaf in fields["contraction"]._asdict().items()}
    return write_document(path, _FORMAT, arrays, text)


def read_fields(path: Path, kind: type) -> dict[str, Any]:
    """Reads the fields of `Result`, which is `kind`, by name; errors are those of `Result.load`."""
    try:
        arrays, text = read_document(path, _FORMAT)
        labels, states = text.pop("labels"), arrays["states"]
        fields = text | {
            "labels": range(states.shape[-1]) if labels is None else tuple(map(label_of, labels)),
            "trajectory": Trajectory(*(arrays.pop(f"trajectory_{name}") for name in Trajectory._fields)),
            "contraction": Contraction(*(arrays.pop(f"contraction_{name}") for name in Contraction._fields)),
            **arrays,
        }
        check_fields(kind, fields)
        _check_values(fields)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a file that Result.save wrote ({error})") from error
    return fields


def _check_values(fields: Mapping[str, Any]) -> None:
    """Checks what types and shapes of arrays do not say; ValueError if something contradicts something else."""
    labels, timing = fields["labels"], fields["timing"]
    chains, size = fields["states"].shape
    if chains < 1:
        raise ValueError("no chains")
    if len(labels) != size or (not isinstance(labels, range) and len(set(labels)) != size):
        raise ValueError(f"{len(labels)} labels for {size} variables, or equal ones")
    least, most = (-1, 1) if fields["spins"] else (0, 127 if fields["kind"] in CATEGORICAL else 1)
    for name in "states", "final_states":
        found = fields[name]
        if ((found < least) | (found > most)).any() or (fields["spins"] and not found.all()):
            raise ValueError(f"{name} has values that no variable has")
    if not {"construct_s", "build_s", "compile_s", "run_s", "verify_s"} <= set(timing):
        raise ValueError("timing lacks a part")
