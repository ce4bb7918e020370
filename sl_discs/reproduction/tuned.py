"""Settings that a search found on training instances, kept as configs/sampler/tuned/<dataset>/<method>.json."""

from __future__ import annotations

from sl_discs.reproduction.datasets import CONFIGS
from sl_discs.tuning.points import Candidate
from sl_discs.tuning.tuned import read_tuned


def load_tuned(dataset: str, method: str) -> Candidate | None:
    """The tuned settings of a method on a dataset such as `mis/er_density/r-0.10`; None if there are none.

    Raises:
      InputError: the file exists, but its settings cannot be read or are invalid.
    """
    path = CONFIGS / "sampler" / "tuned" / dataset / f"{method}.json"
    return read_tuned(path) if path.exists() else None
