"""Tuned settings as files: `configs/sampler/tuned/<dataset>/<method>.json`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from sl_discs.atomic import write_atomically
from sl_discs.errors import InputError
from sl_discs.experiment.settings import settings_from
from sl_discs.localization.method import build_method
from sl_discs.parse_json import parse_json
from sl_discs.tuning.points import ANNEALING_FIELDS, Candidate


def write_tuned(path: str | os.PathLike, candidate: Candidate, search: dict[str, Any]) -> Path:
    """Writes settings with the record of their search; InputError if the file cannot be written."""
    record = {"sampler": candidate.sampler, "experiment": candidate.experiment, "search": search}
    text = json.dumps(record, indent=1) + "\n"
    return write_atomically(Path(path), lambda file: file.write(text.encode()))


def read_tuned(path: str | os.PathLike) -> Candidate:
    """The settings in a file of `write_tuned`.

    Raises:
      InputError: there is no such file, or its settings are invalid.
    """
    try:
        record = parse_json(Path(path).read_text(encoding="utf-8"))
        candidate = Candidate(dict(record["sampler"]), dict(record["experiment"]))
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not a file of tuned settings; sl-discs tune writes them") from None
    odd = sorted(candidate.experiment.keys() ^ set(ANNEALING_FIELDS))
    if odd:
        raise InputError(f"{path}: experiment needs the fields {', '.join(ANNEALING_FIELDS)} alone; see {odd[0]!r}")
    settings_from(candidate.experiment)
    build_method(candidate.sampler, 1)
    return candidate
