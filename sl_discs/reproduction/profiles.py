"""Sizes of the reproduction: a few graphs for a test, an hour or two on two cores, or everything on a GPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sl_discs.reproduction.datasets import PUBLISHED

DENSITIES = tuple(name for name in PUBLISHED if name.startswith("mis/er_density"))


@dataclasses.dataclass(frozen=True)
class Profile:
    """One profile.

    Attributes:
      name: name in `--profile`.
      instances: number of graphs of each dataset that it runs by default; None: all of them.
      chain_length: steps per chain; None: as in the dataset's config (10,000, as published).
      batch_size: chains per graph; None: as in the dataset's config.
      table_instances: largest number of graphs in `ablation` and `allocation`, which have many cells per dataset.
      trials: trials of each search on the test instances, and of its null control.
      search_instances: largest number of graphs in a trial; None: those of the cells.
    """

    name: str
    instances: Mapping[str, int | None]
    chain_length: int | None = None
    batch_size: int | None = None
    table_instances: int | None = None
    trials: int = 0
    search_instances: int | None = None

    def count(self, dataset: str, many_cells: bool) -> int | None:
        """The number of graphs of a dataset; datasets outside the profile get its smallest number."""
        counts = [count for count in self.instances.values() if count is not None]
        count = self.instances.get(dataset, min(counts) if counts else None)
        limits = [n for n in (count, self.table_instances if many_cells else None) if n is not None]
        return min(limits) if limits else None


# A little more than an hour on two cores: a fifth of it for cells at defaults, as much for tuned ones if there are
# tuned settings, and the rest for searches on the test instances with their null controls.
_CPU = (
    dict.fromkeys(PUBLISHED, 32)
    | {"mis/satlib": 125, "maxclique/rb": 256, "maxclique/twitter": 196}
    | {"maxcut/optsicom/r-b": 10}
)

PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "smoke",
            {
                "mis/er_density/r-0.10": 4,
                "maxclique/rb": 2,
                "maxcut/ba/r-ba-4-n-256-300": 4,
                "maxcut/optsicom/r-b": 4,
            },
            chain_length=1_100,
            batch_size=8,
            table_instances=2,
            trials=2,
        ),
        # Nine trials: the defaults, and each value of sigma once.
        Profile("cpu", _CPU, table_instances=8, trials=9, search_instances=8),
        Profile("full", dict.fromkeys(PUBLISHED), trials=30),
    )
}
