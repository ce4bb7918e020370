"""Roof duality by D-Wave's library `dwave-preprocessing`, where it is installed (extra `presolve`)."""

from __future__ import annotations

import collections

import numpy as np

from sl_discs.reductions.spin_rules import Reduced, unreduced
from sl_discs.reductions.spin_terms import SpinTerms

# It takes about 0.2 s with so many couplings.
_MOST_COUPLINGS = 10**6
ROOF = "roof duality"


def fix_by_roof_duality(terms: SpinTerms) -> Reduced:
    """Fixes the spins whose values in all best states follow from a maximum flow.

    Without fields every state is as good as its opposite, and no spin can be fixed.

    Source: Boros, Hammer, Tavares, "Preprocessing of unconstrained quadratic binary optimization", 2006.
    """
    if not terms.fields.any():
        return unreduced(terms)
    if len(terms.pairs) > _MOST_COUPLINGS:
        return unreduced(terms, complete=False)
    try:
        from dimod import SPIN, BinaryQuadraticModel
        from dwave.preprocessing import roof_duality
    except ImportError:
        return unreduced(terms)
    model = BinaryQuadraticModel.from_numpy_vectors(
        -terms.fields, (*terms.pairs.T, -terms.couplings), 0.0, SPIN, variable_order=range(len(terms.fields))
    )
    # strict=True fixes the spins that agree in all best states. False should fix more, as in some best state, but
    # version 0.6.11 minimises s_0 s_2 + s_1 with it by s_0 = s_2.
    _, fixed = roof_duality(model, strict=True)
    if not fixed:
        return unreduced(terms)
    return _with_fixed(terms, np.array(list(fixed), np.int64), np.array(list(fixed.values()), np.int8))


def _with_fixed(terms: SpinTerms, spins: np.ndarray, values: np.ndarray) -> Reduced:
    size = len(terms.fields)
    full = np.zeros(size, np.int8)
    full[spins] = values
    left = full == 0
    kept = np.flatnonzero(left)
    place = np.cumsum(left) - 1
    constant, fields = terms.constant + float(terms.fields @ full), terms.fields.copy()
    for ends, others in (terms.pairs.T, terms.pairs.T[::-1]):
        np.add.at(fields, ends, terms.couplings * full[others])
    constant += float(terms.couplings @ (full[terms.pairs[:, 0]] * full[terms.pairs[:, 1]]))
    both = left[terms.pairs].all(axis=1)

    def lift(states):
        lifted = np.repeat(full[:, None], states.shape[1], axis=1)
        lifted[kept] = states
        return lifted

    rest = SpinTerms(fields[kept], place[terms.pairs[both]].astype(np.int32), terms.couplings[both], constant)
    return Reduced(rest, kept, lift, collections.Counter({ROOF: len(spins)}), True)
