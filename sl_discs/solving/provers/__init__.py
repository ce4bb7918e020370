"""Proofs of what `solve` finds: bounds and searches that need no chains."""

from __future__ import annotations

from sl_discs.problems.kind import Kind, resolved
from sl_discs.solving.proofs import Factory


def provers_of(kind: Kind, *, exact: bool = False) -> tuple[Factory, ...]:
    """Returns the provers that `solve` uses beside its search, or only those that compare all answers exactly."""
    found = tuple(map(resolved, kind.provers))
    if not exact:
        return found
    from sl_discs.solving.provers.tables import EXACT

    return tuple(one for one in found if one in EXACT)
