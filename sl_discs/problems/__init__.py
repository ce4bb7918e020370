"""Problems with the user's labels, sense and offset, and the exact values of answers.

A further kind of problem is a module here with its constructor, which `sl_discs/__init__.pyi` makes public.
"""

from sl_discs.problems.categorical import coloring, potts
from sl_discs.problems.constraints import Linear, at_least, at_most, exactly, from_cqm, linear, one_hot
from sl_discs.problems.forms import from_bqm, ising, qubo
from sl_discs.problems.graphs import maxclique, maxcut, mis, register_problem, vertex_cover
from sl_discs.problems.problem import Evaluated, Problem

__all__ = [
    "Evaluated", "Linear", "Problem", "at_least", "at_most", "coloring", "exactly", "from_bqm", "from_cqm", "ising",
    "linear", "maxclique", "maxcut", "mis", "one_hot", "potts", "qubo", "register_problem", "vertex_cover",
]  # fmt: skip
