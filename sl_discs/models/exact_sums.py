"""Exact sums over states: all states of small problems, up to 2^20, and orders of elimination of
sparse ones.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from sl_discs.models.functions import Terms
from sl_discs.models.terms import Coefficients
from sl_discs.support.errors import InputError

# The law exp(f/temperature) of all states.

MOST_STATES = 2**20


class EnumeratedLaw(NamedTuple):
    """All probabilities.

    Attributes:
      log_z: log sum_x exp(f(x)/temperature), the constant of f included.
      probabilities: [2^N]; the first variable varies fastest.
      num_sites: N.
      mean_value: of f.
      variance: of f/temperature.
      entropy: in nats.
    """

    log_z: float
    probabilities: Float64[np.ndarray, "S"]
    num_sites: int
    mean_value: float
    variance: float
    entropy: float

    def moments(self) -> Float64[np.ndarray, "N 2 N 2"]:
        """Returns P(x_i = k, x_j = l), with P(x_i = k) where i is j.

        The states of the first half of the variables and of the others are a table, so a few
        products of matrices give all moments.
        """
        half = self.num_sites // 2
        first, last = (
            (all_states(size)[:, :, None] == np.arange(2)).reshape(2**size, -1).astype(np.float64)
            for size in (half, self.num_sites - half)
        )
        table = self.probabilities.reshape(len(last), len(first))
        across = first.T @ table.T @ last
        within = (first.T * table.sum(axis=0)) @ first, (last.T * table.sum(axis=1)) @ last
        return np.block([[within[0], across], [across.T, within[1]]]).reshape(
            self.num_sites, 2, self.num_sites, 2
        )

    def sample(self, rng: np.random.Generator, draws: int) -> Int8[np.ndarray, "draws N"]:
        """Draws independently and exactly, by the inverse of the cumulative distribution."""
        cumulative = np.cumsum(self.probabilities)
        # Below the total, so a state of probability 0 is never drawn.
        numbers = np.searchsorted(cumulative, rng.random(draws) * cumulative[-1], side="right")
        return _numbered(numbers, self.num_sites)


def enumerate_law(terms: Terms, temperature: float) -> EnumeratedLaw:
    """Returns the law exp(f/temperature) of any function; InputError for more than 2^20 states."""
    if 2**terms.num_sites > MOST_STATES:
        raise InputError(
            f"method 'exact' enumerates up to {MOST_STATES:,} states where there are no "
            f"couplings of zeros and ones, and these {terms.num_sites} variables have more; use "
            "method='tempering'",
            "method",
        )
    values = _above_constant(terms)
    largest = values.max()
    with np.errstate(over="ignore"):  # towards a weight of zero
        law = np.exp((values - largest) / temperature)
    total = law.sum()
    # Relative to the largest value, beside which small weights of others would be lost.
    rest = total - 1 if total > 2 else np.delete(law, np.argmax(values)).sum()
    law /= total
    below = np.where(law > 0, values - largest, 0.0) / temperature  # without 0 * -inf
    mean = float(law @ below)
    variance = float(law @ (below - mean) ** 2)
    log_z = (largest + terms.constant) / temperature + np.log(total)
    if not np.isfinite(log_z):
        raise InputError(
            f"f of up to {largest:.3g} over the temperature {temperature:g} is beyond the range "
            "of double precision; raise the temperature"
        )
    mean_value = largest + temperature * mean + terms.constant
    return EnumeratedLaw(
        float(log_z), law, terms.num_sites, mean_value, variance, math.log1p(rest) - mean
    )


def _above_constant(terms: Terms) -> Float64[np.ndarray, "S"]:
    """Returns f at all states without its constant, beside which digits would be lost; the first
    variable varies fastest.
    """
    if isinstance(terms, Coefficients):
        return _quadratic_values(terms)
    return terms.values(all_states(terms.num_sites)) - terms.constant


def _quadratic_values(terms: Coefficients) -> Float64[np.ndarray, "S"]:
    """Returns f at all states without its constant, in a fraction of the time of evaluating each of
    them.

    The variables are split into two halves, low and high: f(x) = f_low + f_high + x_low' J x_high
    is a table [2^high, 2^low] that one matrix product fills.
    """
    size = terms.num_sites
    listed = terms.listed()
    couplings = np.zeros((size, size))
    couplings[listed.edges[:, 0], listed.edges[:, 1]] = listed.scale * listed.weights
    half = size // 2
    low, high = (all_states(part).astype(np.float64) for part in (half, size - half))
    table = (high @ couplings[:half, half:].T) @ low.T
    table += _values(low, terms.linear[:half], couplings[:half, :half])
    table += _values(high, terms.linear[half:], couplings[half:, half:])[:, None]
    return table.ravel()


def _values(states: np.ndarray, linear: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return states @ linear + np.einsum("si,si->s", states @ upper, states)


def all_states(size: int) -> Int8[np.ndarray, "S N"]:
    """Returns all states of `size` variables, of which the first varies fastest."""
    return _numbered(np.arange(2**size, dtype=np.int32), size)


def _numbered(numbers: Int[np.ndarray, "B"], size: int) -> Int8[np.ndarray, "B N"]:
    return (numbers[:, None] >> np.arange(size, dtype=np.int32) & 1).astype(np.int8)


# Orders in which the variables of a sparse problem are eliminated one by one, for exact
# computations on tables.


class Elimination(NamedTuple):
    """An order of the variables of a graph, where eliminating one joins all its neighbours that
    remain.

    Attributes:
      order: the variables, the first to be eliminated first.
      neighbours: those that remain when a variable is eliminated, in the same order.
    """

    order: list[int]
    neighbours: list[set[int]]

    @property
    def width(self) -> int:
        """An upper bound on the treewidth."""
        return max(map(len, self.neighbours))

    def table_entries(self) -> int:
        """Returns the size of all tables, of an entry for each joint state of a variable and its
        neighbours.
        """
        return sum(2 ** (len(near) + 1) for near in self.neighbours)


def narrow_elimination(
    num_variables: int, edges: Int[np.ndarray, "M 2"], most: int
) -> Elimination | None:
    """Returns the better of two orders: min-fill, for irregular sparse graphs, and reverse
    Cuthill-McKee, for grids.

    On a 16 x 16 grid min-fill has width 22 and Cuthill-McKee 16; on random graphs min-fill is
    narrower. Edges may repeat. None if neither order has a width of at most `most`.
    """
    matrix = sparse.csr_matrix((np.ones(len(edges)), edges.T), (num_variables, num_variables))
    rank = np.argsort(reverse_cuthill_mckee(matrix + matrix.T, symmetric_mode=True))
    orders = [
        _eliminate(num_variables, edges, most, cost)
        for cost in (_missing, lambda near, v: int(rank[v]))
    ]
    return min(filter(None, orders), key=Elimination.table_entries, default=None)


def _missing(near: list[set[int]], v: int) -> int:
    """Counts the pairs of neighbours of v that are not joined, in both directions."""
    return sum(len(near[v]) - 1 - len(near[v] & near[u]) for u in near[v])


def _eliminate(
    num_variables: int, edges: np.ndarray, most: int, cost: Callable[[list[set[int]], int], int]
) -> Elimination | None:
    """Eliminates again and again the variable of least cost among those with at most `most`
    remaining neighbours.

    The cost is that of a variable, given the remaining neighbours of all. It stops as soon as there
    is none, so a dense graph is refused quickly.
    """
    near: list[set[int]] = [set() for _ in range(num_variables)]
    for u, v in edges.tolist():
        near[u].add(v)
        near[v].add(u)

    def entry(v: int) -> tuple[int, int, int] | None:
        return (cost(near, v), len(near[v]), v) if len(near[v]) <= most else None

    current = [entry(v) for v in range(num_variables)]
    heap = list(filter(None, current))
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        chosen = heapq.heappop(heap)
        v = chosen[2]
        if current[v] is not chosen:
            continue  # outdated
        current[v] = None
        order.append(v)
        clique = _missing(near, v) == 0
        for u in near[v]:
            near[u] |= near[v]
            near[u] -= {u, v}
        # New pairs also change the costs of their common neighbours.
        for u in near[v] if clique else near[v].union(*(near[u] for u in near[v])):
            current[u] = renewed = entry(u)
            if renewed is not None:
                heapq.heappush(heap, renewed)
    return Elimination(order, [near[v] for v in order]) if len(order) == num_variables else None
