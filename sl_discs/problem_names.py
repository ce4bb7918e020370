"""The names of problems, for commands and file formats that load no JAX; `sl_discs.problems` has the rest."""

from collections.abc import Iterable

# Problems on a graph.
GRAPH_PROBLEMS = ("mis", "maxcut", "maxclique", "vertex_cover")
# Problems on a quadratic form, and whether its variables are spins.
FORM_PROBLEMS = {"qubo": False, "ising": True}


def form_problem(spins: bool) -> str:
    """Returns the problem that a form of spins, or of zeros and ones, poses."""
    return next(name for name, of_spins in FORM_PROBLEMS.items() if of_spins == spins)


def join_names(names: Iterable[str], joined: str = "or") -> str:
    """`mis, maxcut or maxclique`."""
    *others, last = names
    return f"{', '.join(others)} {joined} {last}" if others else last
