"""Pieces of work of the studies that are done once, in JSON files named by what identifies them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sl_discs import __version__
from sl_discs.support.documents import Damaged, read_json, write_json
from sl_discs.support.identity import digest


def finished(
    folder: Path, identity: dict[str, Any], compute: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Returns the result of `compute` in plain values, read from the folder if it is there.

    `identity` is everything that the result depends on, in plain values; the file's name begins
    with its `kind`.
    """
    identity = identity | {"version": __version__}
    path = folder / f"{identity['kind']}-{digest(identity)[:16]}.json"
    try:
        content = read_json(path)
    except Damaged:  # it is computed again
        content = None
    if content is None or content.get("identity") != identity or "found" not in content:
        content = {"identity": identity, "found": compute()}
        write_json(path, content, indent=None, allow_nan=False)
    return content["found"]
