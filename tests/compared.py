"""Comparisons with the published numbers, as tests leave them to the table at the end of the
output.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sl_discs.support.terminal import aligned

# The property of a test that compares: cell, published, ours, z or None, and the bound of z in
# words.
COMPARED = "compared with the published"
_TITLES = ["cell", "published", "ours", "z", "bound", "test"]


def comparisons(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """The lines of the table, from pytest's reports by their outcome; none without a comparison."""
    rows = [
        [cell, f"{published:.3f}", f"{ours:.3f}", "-" if z is None else f"{z:+.2f}", bound, outcome]
        for outcome in ("passed", "failed", "xfailed", "xpassed")
        for report in stats.get(outcome, ())
        for name, value in getattr(report, "user_properties", ())
        if name == COMPARED
        for cell, published, ours, z, bound in [value]
    ]
    return aligned([_TITLES, *sorted(rows)]) if rows else []
