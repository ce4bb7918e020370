"""Reading a problem's file for a command: with a progress bar, if it is large enough to wait for."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from sl_discs.experiment.progress import progress_bar
from sl_discs.instances.formats import Instance, read_instances

_BAR_BYTES = 2**23


def read_with_progress(path: str | os.PathLike, problem: str | None, format: str | None) -> list[Instance]:
    """As `read_instances`."""
    path = Path(path)
    size = path.stat().st_size if path.is_file() else 0
    with progress_bar(size, " B") as advance:
        shown = functools.partial(advance, path.name) if size > _BAR_BYTES else None
        return read_instances(path, problem=problem, format=format, progress=shown)
