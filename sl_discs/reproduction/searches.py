"""The results of a search: its best trial, and all trials for the record."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.models.kinds import graph_kind
from sl_discs.reproduction.cell import AS_PUBLISHED, NULL
from sl_discs.reproduction.runner import Done


@dataclasses.dataclass(frozen=True)
class Search:
    """Trials of one method on one dataset.

    Attributes:
      trials: at least one, by number; trial k runs with seed k.
    """

    trials: list[Done]

    def means(self) -> Float64[np.ndarray, "N"]:
        """The objective's mean over graphs, of each trial."""
        return np.array([one.result.best.mean() for one in self.trials])

    def best(self) -> Done:
        """The trial with the largest mean; the first of these if there are several."""
        return self.trials[int(np.argmax(self.means()))]

    def record(self) -> dict[str, Any]:
        """All trials as plain values: means, the best so far, settings."""
        means = self.means()
        return {
            "best_trial": int(np.argmax(means)),
            "best_of": np.maximum.accumulate(means).tolist(),
            "trials": [
                {"trial": number, "seed": one.cell.seeds[0], "mean": float(mean), "sampler": dict(one.cell.sampler)}
                for number, (one, mean) in enumerate(zip(self.trials, means, strict=True))
            ],
        }


def searches(done: list[Done]) -> dict[tuple[str, str, str], Search]:
    """The searches among cells, by dataset, method and protocol."""
    trials: dict[tuple[str, str, str], list[Done]] = {}
    for one in done:
        if one.cell.protocol in (AS_PUBLISHED, NULL):
            trials.setdefault((one.dataset.name, one.cell.method, one.cell.protocol), []).append(one)
    return {key: Search(group) for key, group in trials.items()}


def reported(done: list[Done]) -> list[Done]:
    """The cells in order, where only the best trial of each search is kept."""
    best = [search.best() for search in searches(done).values()]
    return [one for one in done if one.cell.protocol not in (AS_PUBLISHED, NULL) or any(one is two for two in best)]


def search_rows(done: list[Done]) -> list[dict[str, Any]]:
    """A row for each dataset and method: every trial of the search, and of its null control."""
    found, rows = searches(done), []
    for (dataset, method, protocol), search in found.items():
        if protocol == AS_PUBLISHED:
            first = search.trials[0]
            rows.append(
                {
                    "dataset": dataset,
                    "method": method,
                    "num_trials": len(search.trials),
                    "n": len(first.dataset.graphs),
                    "unit": graph_kind(first.dataset.problem).unit,
                    AS_PUBLISHED: search.record(),
                    NULL: found[dataset, method, NULL].record(),
                }
            )
    return rows
