"""Settings that a search found on training instances, kept as configs/sampler/tuned/<dataset>/<method>.json."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sl_discs.errors import InputError
from sl_discs.reproduction.datasets import CONFIGS

_PARTS = ("sampler", "experiment", "search")


class Tuned(NamedTuple):
    """What a search left.

    Attributes:
      sampler: fields of the sampler config.
      experiment: annealing fields of `Settings`.
      search: how it was found: trials, budget and so on.
    """

    sampler: dict[str, Any]
    experiment: dict[str, Any]
    search: dict[str, Any]


def load_tuned(dataset: str, method: str) -> Tuned | None:
    """The tuned settings of a method on a dataset such as `mis/er_density/r-0.10`; None where there are none.

    Raises:
      InputError: the file is there, but is not a JSON object of the three parts.
    """
    path = CONFIGS / "sampler" / "tuned" / dataset / f"{method}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); tune again, or remove it") from error
    if not isinstance(content, dict) or any(not isinstance(content.get(part), dict) for part in _PARTS):
        raise InputError(f"{path}: expected an object of {', '.join(_PARTS)}; tune again, or remove it")
    return Tuned(*(content[part] for part in _PARTS))
