"""Exact independent draws from exp(f/temperature), with the exact log Z, marginals and mean value.

Up to 20 variables are enumerated. More are eliminated one by one: the sum over a variable is a
table of the states of its neighbours that remain, so that time and memory grow as 2^width, where
the width is at least the treewidth. The tables are passed forward for log Z, and backward for draws
and marginals (Dechter 1999, "Bucket elimination").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int8
from scipy.special import expit

from sl_discs.chains.budget import Budget
from sl_discs.models.exact_sums import Elimination, enumerate_law, narrow_elimination
from sl_discs.models.functions import Terms
from sl_discs.models.terms import Coefficients
from sl_discs.sampling.drawn import Curve, Drawn, Estimate, Known, Request, packed
from sl_discs.sampling.thermodynamics import curve_of
from sl_discs.support.errors import InputError
from sl_discs.support.memory import check_memory

MOST_WIDTH = 25
# Above this number of variables they are eliminated.
ENUMERATED = 20
# The most variables that `auto` eliminates, the width, and the entries of all tables: about a
# second.
_QUICK_VARIABLES = 1_000
_QUICK_WIDTH = 18
_QUICK_ENTRIES = 2**24


class ExactLaw(NamedTuple):
    """The law exp(f/temperature)."""

    log_z: float  # log sum_x exp(f(x)/temperature), the constant of f included
    variance: float  # of f/temperature; NaN after elimination without moments
    entropy: float  # in nats, likewise
    known: Known
    width: int | None  # of the elimination; None after enumeration
    # Independent states, from a NumPy generator and their number.
    sample: Callable[[np.random.Generator, int], Int8[np.ndarray, "draws N"]]


def exact(terms: Terms, temperature: float, moments: bool = False) -> ExactLaw:
    """Returns the law by enumeration of up to 2^20 states, or by elimination of more than 20
    variables of a quadratic model; with moments, which take twice the time and memory, also
    variance and entropy.

    InputError for a large treewidth, or too many states.
    """
    if isinstance(terms, Coefficients) and terms.num_sites > ENUMERATED:
        return eliminated(terms, temperature, moments)
    law = enumerate_law(terms, temperature)
    joint = law.moments()
    first, second = np.triu_indices(terms.num_sites, 1)
    marginals = np.einsum("ikik->ik", joint).copy()
    pairs = np.stack([first, second], axis=1)
    known = Known(marginals, pairs, joint[first, :, second], np.array(law.mean_value))
    return ExactLaw(law.log_z, law.variance, law.entropy, known, None, law.sample)


def exact_curve(terms: Terms, temperatures: Sequence[float]) -> Curve:
    """Returns the curve by enumeration, or by elimination of more than 20 variables of a quadratic
    model.
    """
    laws = [exact(terms, temperature, moments=True) for temperature in temperatures]
    points = np.array(
        [(law.known.mean_value, law.variance, law.log_z, law.entropy) for law in laws]
    )
    return curve_of(temperatures, points, np.zeros_like(points))


def is_narrow(terms: Coefficients) -> bool:
    """Returns whether elimination takes about a second at most."""
    elimination = _elimination(terms, _QUICK_WIDTH) if terms.num_sites <= _QUICK_VARIABLES else None
    return elimination is not None and elimination.table_entries() <= _QUICK_ENTRIES


def _elimination(terms: Coefficients, most_width: int) -> Elimination | None:
    """Returns an elimination of at most this width, if one is found."""
    size = terms.num_sites
    weights = terms.weights
    num_others = size * (size - 1) // 2 - len(weights) if terms.background else 0
    # A graph of treewidth w has at most w N edges; this is known before they are listed.
    if np.count_nonzero(weights) + num_others > most_width * size:
        return None
    return narrow_elimination(size, terms.listed().edges, most_width)


def eliminated(terms: Coefficients, temperature: float, moments: bool = False) -> ExactLaw:
    """Eliminates the variables, in time and memory of about N 2^width; `moments` as in `exact`."""
    elimination = _elimination(terms, MOST_WIDTH)
    if elimination is None:
        raise InputError(
            f"these {terms.num_sites} variables have a treewidth above {MOST_WIDTH} as far as "
            "min-fill and Cuthill-McKee orders tell, and memory grows as 2^width; use "
            "the method tempering"
        )
    listed = terms.listed()
    # Of each table half is kept; the widest ones are also summed, and their marginals passed on.
    need = 8 * (elimination.table_entries() // 2 + (18 if moments else 8) * 2**elimination.width)
    check_memory(
        f"tree decomposition of width {elimination.width}", need, "use the method tempering"
    )
    couplings = listed.scale * listed.weights
    tables = _Tables(
        elimination, listed.linear / temperature, listed.edges, couplings / temperature, moments
    )
    marginals, joint = tables.marginals()
    mean = listed.constant + listed.linear @ marginals[:, 1] + couplings @ joint[:, 1, 1]
    known = Known(marginals, listed.edges.astype(np.int64), joint, np.array(mean))
    log_z = listed.constant / temperature + float(tables.sums[0])
    variance, entropy = tables.sums[2:] if moments else (np.nan, np.nan)
    return ExactLaw(log_z, variance, entropy, known, elimination.width, tables.sample)


class _Tables:
    """The log-odds of each variable given the later ones that it is joined to, by forward
    elimination.

    The scope of a table is the variable and these neighbours in the order of elimination, an axis
    of length 2 each. `sums` are log Z and, if asked for, the mean and the variance of
    f/temperature, and the entropy: of what was eliminated, each is a table of the states of the
    neighbours that remain, and nothing cancels, as variances add up from positive parts.
    """

    def __init__(
        self,
        elimination: Elimination,
        linear: np.ndarray,
        edges: np.ndarray,
        couplings: np.ndarray,
        moments: bool,
    ):
        self._order = elimination.order
        self._edges = edges
        self.sums = np.zeros(4 if moments else 1)
        position = {v: k for k, v in enumerate(self._order)}
        nears = zip(self._order, elimination.neighbours, strict=True)
        self._scope = {v: [v, *sorted(near, key=position.__getitem__)] for v, near in nears}
        # The couplings of a variable with later ones, and what was eliminated into its table.
        self._pairs: dict[int, list[tuple[int, int]]] = {v: [] for v in self._order}
        for edge, (u, v) in enumerate(edges.tolist()):
            first, later = (u, v) if position[u] < position[v] else (v, u)
            self._pairs[first].append((later, edge))
        self._from: dict[int, list[int]] = {v: [] for v in self._order}
        self._odds: dict[int, np.ndarray] = {}
        sums: dict[int, np.ndarray] = {}
        for v in self._order:
            scope = self._scope[v]
            # Of log-weights, and of the moments.
            tables = np.zeros((len(self.sums), *(2,) * len(scope)))
            tables[:2, 1] += linear[v]
            for later, edge in self._pairs[v]:
                position = tuple(1 if u in (v, later) else slice(None) for u in scope)
                tables[(slice(2), *position)] += couplings[edge]
            for earlier in self._from[v]:
                tables += sums.pop(earlier).reshape(
                    [-1, *(2 if u in self._scope[earlier] else 1 for u in scope)]
                )
            table = tables[0]
            self._odds[v] = odds = table[1] - table[0]
            summed = np.logaddexp(table[0], table[1])[None]
            if moments:
                summed = np.concatenate([summed, _mixed(odds, tables[1:, 0], tables[1:, 1])])
            if len(scope) > 1:
                self._from[scope[1]].append(v)
                sums[v] = summed
            else:
                self.sums += summed

    def sample(self, rng: np.random.Generator, draws: int) -> Int8[np.ndarray, "draws N"]:
        """Returns independent draws, the last variable first."""
        states = np.empty((draws, len(self._order)), np.int8)
        for v in reversed(self._order):
            near = self._scope[v][1:]
            row = states[:, near].astype(np.int64) @ (
                1 << np.arange(len(near), dtype=np.int64)[::-1]
            )
            states[:, v] = rng.random(draws) < expit(self._odds[v].ravel()[row])
        return states

    def marginals(self) -> tuple[Float64[np.ndarray, "N 2"], Float64[np.ndarray, "M 2 2"]]:
        """Returns P(x_i = k), and P(x_a = k, x_b = l) of the pairs with a coupling."""
        probabilities = np.empty((len(self._order), 2))
        joint = np.empty((len(self._edges), 2, 2))
        near_law = {v: np.ones(()) for v in self._order if len(self._scope[v]) == 1}
        for v in reversed(self._order):
            scope = self._scope[v]
            odds = self._odds[v]
            near = near_law.pop(v)
            law = np.stack([near * expit(-odds), near * expit(odds)])
            probabilities[v] = _summed(law, scope, [v])
            for later, edge in self._pairs[v]:
                pair_law = _summed(law, scope, [v, later])
                joint[edge] = pair_law if self._edges[edge, 0] == v else pair_law.T
            for earlier in self._from[v]:
                near_law[earlier] = _summed(law, scope, self._scope[earlier][1:])
        return probabilities, joint


def _mixed(odds: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Returns mean, variance and entropy over both values of a variable, from those given each
    value, stacked.
    """
    chance = expit(odds)
    complement = expit(-odds)
    mixture = complement * lower + chance * upper
    mixture[1] += complement * chance * (upper[0] - lower[0]) ** 2
    mixture[2] += chance * np.logaddexp(0, -odds) + complement * np.logaddexp(0, odds)
    return mixture


def _summed(law: np.ndarray, scope: list[int], kept: list[int]) -> np.ndarray:
    return law.sum(axis=tuple(axis for axis, v in enumerate(scope) if v not in kept))


_DRAWS_IN_TIME = 10_000
# The approximate bytes of the pieces in which draws are made.
_PIECE = 2**24


def draw(request: Request, budget: Budget) -> Drawn:
    """Returns the requested number of exact draws; 10,000 if there is a time limit."""
    groups = request.groups
    size = request.terms.num_sites
    law = exact(request.terms, request.temperature)
    each = request.draws_each or -(-_DRAWS_IN_TIME // groups)
    how = {"states": 2**size} if law.width is None else {"width": law.width}
    rng = np.random.default_rng(request.seed)
    parts = []
    most = max(1, _PIECE // (groups * size))
    for done in range(0, each, most):
        count = min(most, each - done)
        states = law.sample(rng, count * groups).reshape(count, groups, -1)
        parts.append(packed(np.swapaxes(states, 0, 1)))
        budget.advance(count * groups)
        if budget.is_interrupted():
            break
    return Drawn(
        np.concatenate(parts, axis=1),
        "none",
        how,
        log_z=Estimate(law.log_z, 0.0),
        exact=True,
        known=law.known,
        curve=exact_curve(request.terms, request.temperatures) if request.temperatures else None,
    )
