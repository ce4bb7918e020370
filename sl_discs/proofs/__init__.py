"""Proofs of what `solve` finds: bounds and searches that need no chains."""

from __future__ import annotations

from sl_discs.problems.kind import Structure
from sl_discs.proofs.provers import Factory


def exact_provers(structure: Structure | None) -> tuple[Factory, ...]:
    """Returns the provers that compare all answers to a problem of this structure, in exact arithmetic."""
    from sl_discs.proofs.tables import elimination, enumeration

    return (enumeration, elimination) if structure in (Structure.CUT, Structure.FORM) else (enumeration,)


def provers_of(structure: Structure | None) -> tuple[Factory, ...]:
    """Returns the provers that `solve` lets work beside its search, in the order of their first turns.

    They are imported where they are needed, since numba and SciPy's optimisers take a while.
    """
    if structure in (Structure.SETS, Structure.CLIQUES):
        from sl_discs.proofs.cliques import clique_prover
        from sl_discs.proofs.covers import Cover
        from sl_discs.proofs.integer import integer_prover

        # Weights that are not whole are known to branch and bound up to rounding, and to enumeration exactly.
        return Cover, clique_prover, integer_prover, *exact_provers(structure)
    if structure in (Structure.CUT, Structure.FORM):
        from sl_discs.proofs.semidefinite import semidefinite_prover

        return *exact_provers(structure), semidefinite_prover
    return exact_provers(structure)
