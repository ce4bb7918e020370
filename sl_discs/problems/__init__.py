"""Problems with the user's labels, sense and offset, and the exact values of answers.

A further kind of problem is a module here, which is imported below so that its kinds are known.
"""

from sl_discs.problems import forms, graphs
from sl_discs.problems.problem import Evaluated, Problem

__all__ = ["Evaluated", "Problem", "forms", "graphs"]
