"""Identities of what files belong to: digests, and what differs between two."""

import hashlib
import json
from typing import Any

from sl_discs.support.errors import InputError

# Pieces of work that are done once: what identifies one.
#
# The identity of a piece of work is everything that its numbers depend on, in nested dicts of plain
# values. A run's checkpoints, a sweep's runs, a search for settings and a reproduction's cells each
# keep it beside what they have found, which counts only where the identity is the same.


def digest(content: dict[str, Any]) -> str:
    """Returns the SHA-256 of plain values, in hexadecimal; the order of names does not matter."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    """Returns what differs between two identities, in words; `theirs` is the one that was found."""
    lines = []
    for name in sorted(ours.keys() | theirs.keys()):
        our_value = ours.get(name)
        their_value = theirs.get(name)
        if isinstance(our_value, dict) and isinstance(their_value, dict):
            lines += differences(our_value, their_value, f"{prefix}{name}.")
        elif our_value != their_value:
            short = all(len(json.dumps(value)) < 80 for value in (our_value, their_value))
            lines.append(
                f"{prefix}{name} {their_value!r} there, {our_value!r} here"
                if short
                else f"another {prefix}{name}"
            )
    return lines


def check_same(what: str, ours: dict[str, Any], theirs: dict[str, Any], advice: str) -> None:
    """Raises an InputError unless two identities agree; `what` says of what `theirs` is, `advice`
    what to do.
    """
    if differs := differences(ours, theirs):
        raise InputError(f"{what}: {'; '.join(differs)}; {advice}")
