"""Problems with the user's labels, sense and offset, and the exact values of answers."""

from sl_discs.problems.bqm import from_bqm
from sl_discs.problems.categorical import coloring, potts
from sl_discs.problems.constraints import Linear, at_least, at_most, exactly, linear, one_hot
from sl_discs.problems.cqm import from_cqm
from sl_discs.problems.forms import ising, qubo
from sl_discs.problems.graphs import CONSTRUCTORS, register_problem
from sl_discs.problems.problem import Evaluated, Problem

__all__ = [
    "Evaluated", "Linear", "Problem", "at_least", "at_most", "coloring", "exactly", "from_bqm", "from_cqm", "ising",
    "linear", "one_hot", "potts", "qubo", "register_problem",
]  # fmt: skip

globals().update(CONSTRUCTORS)
__all__.extend(CONSTRUCTORS)
