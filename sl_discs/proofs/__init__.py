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
    match structure:
        case Structure.SETS:
            from sl_discs.proofs import cliques, covers, integer

            return covers.set_prover, cliques.set_prover, integer.set_prover
        case Structure.CLIQUES:
            from sl_discs.proofs import cliques, covers, integer

            return covers.clique_prover, cliques.clique_prover, integer.clique_prover
        case Structure.CUT:
            from sl_discs.proofs.semidefinite import cut_prover

            return *exact_provers(structure), cut_prover
        case Structure.FORM:
            from sl_discs.proofs.semidefinite import form_prover

            return *exact_provers(structure), form_prover
    return exact_provers(structure)
