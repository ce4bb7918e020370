"""Pieces of work that are done once: what identifies one, and the JSON files that say how it ended.

The identity of a piece of work is everything that its numbers depend on, in nested dicts of plain values. A run's
checkpoints, a sweep's runs, a search for settings and a reproduction's cells each keep it beside what they have
found, which counts only where the identity is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sl_discs.atomic import write_atomically
from sl_discs.parse_json import parse_json
from sl_discs.version import __version__


class Damaged(Exception):
    """A file is there, but is not what was written."""


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of plain values, in hexadecimal; the order of names does not matter."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    """What differs between two identities, in words; `theirs` is the one that was found."""
    words = []
    for name in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(name), theirs.get(name)
        if isinstance(mine, dict) and isinstance(other, dict):
            words += differences(mine, other, f"{prefix}{name}.")
        elif mine != other:
            short = all(len(json.dumps(value)) < 80 for value in (mine, other))
            words.append(f"{prefix}{name} {other!r} there, {mine!r} here" if short else f"another {prefix}{name}")
    return words


def write_json(path: Path, content: dict[str, Any], *, indent: int | None = 1, allow_nan: bool = True) -> Path:
    """Writes a file atomically; InputError where that is impossible, ValueError at NaN if not allowed."""
    text = json.dumps(content, indent=indent, allow_nan=allow_nan).encode() + b"\n"
    return write_atomically(path, lambda file: file.write(text))


def read_json(path: Path) -> dict[str, Any] | None:
    """The content of a file of `write_json`, None where there is none.

    Raises:
      Damaged: it cannot be read, or holds something else.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Damaged(f"{path}: cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise Damaged(f"{path}: cannot be read (it holds no object)")
    return content


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
