"""Problems with the user's labels, sense and offset, and the exact values of answers."""

from sl_discs.problems.bqm import from_bqm
from sl_discs.problems.forms import ising, qubo
from sl_discs.problems.graphs import CONSTRUCTORS
from sl_discs.problems.problem import Evaluated, Problem

__all__ = ["Evaluated", "Problem", "from_bqm", "ising", "qubo"]

globals().update(CONSTRUCTORS)
__all__.extend(CONSTRUCTORS)
