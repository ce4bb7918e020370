"""Parts of a study that are computed once, each stored in a JSON file named by everything that it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sl_discs.finished_work import Damaged, digest, read_json, write_json
from sl_discs.models.spin import SpinForm
from sl_discs.version import __version__


def name_of(form: SpinForm) -> str:
    """A digest of a target's couplings and fields, used in identities."""
    return hashlib.sha256(form.beta.hex().encode() + form.W.tobytes() + form.b.tobytes()).hexdigest()[:16]


def finished(folder: Path, identity: dict[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of `compute`, read from the folder if it is there.

    Args:
      folder: folder of the cells.
      identity: everything that the result depends on, as plain values; the file's name begins with its `kind`.
      compute: computes the result as plain values.
    """
    identity = identity | {"version": __version__}
    path = folder / f"{identity['kind']}-{digest(identity)[:16]}.json"
    try:
        content = read_json(path)
    except Damaged:  # it is computed again
        content = None
    if content is None or content.get("identity") != identity:
        content = {"identity": identity, "found": compute()}
        write_json(path, content, indent=None, allow_nan=False)
    return content["found"]
