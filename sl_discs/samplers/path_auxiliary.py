"""Path auxiliary sampler (Sun et al. 2022): distinct sites drawn in turn, and the reverse path from the end point."""

from __future__ import annotations

import dataclasses

from sl_discs.samplers.path import PathSampler


@dataclasses.dataclass(frozen=True)
class PathAuxiliary(PathSampler):
    """Sites drawn without replacement at x; the reverse draws the same sites at y in reverse order."""

    replacement: bool = dataclasses.field(default=False, init=False)
