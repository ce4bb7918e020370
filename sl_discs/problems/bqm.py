"""dimod's binary quadratic models as problems; dimod itself is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from sl_discs.errors import InputError, real_array
from sl_discs.instances.form import QuadraticForm
from sl_discs.problem_names import form_problem
from sl_discs.problems.problem import Problem, in_order, timed


@timed
def from_bqm(bqm: Any, *, name: str = "bqm") -> Problem:
    """A dimod binary quadratic model, to be minimised, with its own labels, order, vartype and offset.

    Args:
      bqm: a `dimod.BinaryQuadraticModel`, BINARY or SPIN.
      name: used in results.

    Raises:
      InputError: it is not such a model, has no variables, or holds a number that is not finite.
    """
    if not all(hasattr(bqm, part) for part in ("linear", "quadratic", "offset", "vartype")):
        raise InputError(f"{name}: a {type(bqm).__name__} where a dimod BinaryQuadraticModel is expected")
    labels = list(bqm.linear)
    if not labels:
        raise InputError(f"{name}: no variables; give at least one")
    place = {label: k for k, label in enumerate(labels)}
    linear = real_array(f"{name}: linear biases", [bqm.linear[label] for label in labels])
    pairs = np.array([(place[u], place[v]) for u, v in bqm.quadratic], np.int64).reshape(-1, 2)
    couplings = real_array(f"{name}: quadratic biases", list(bqm.quadratic.values()))
    spins = bqm.vartype.name == "SPIN"
    form = QuadraticForm.from_arrays(name, linear, pairs, couplings, bqm.offset, spins=spins)
    return Problem(form_problem(spins), name, in_order(labels), form)
