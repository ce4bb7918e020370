"""What a problem maximises, as a list of its terms on the host; problems are made and checked without JAX.

What differs between functions is a method of their terms. The arrays of chains are built from terms by
`sl_discs.chains.batches.build_batch`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int8, Int32
from scipy import sparse

from sl_discs.instances.form import QuadraticForm

Values = Callable[[Int8[np.ndarray, "B N"]], Float64[np.ndarray, "B"]]

# Rounds of a quench, in each of which half of the sites that gain move; the number of sites of all quenched states
# together, and the most states.
_ROUNDS = 50
_MANY_SITES, _MOST_STATES = 1_000, 16
# How many times the largest gain of all else penalties are lowered from, and to; couplings above this part of the
# largest are penalties.
_FAR_ABOVE, _ABOVE, _PENALTIES = 2.0**14, 4.0, 1e-3
# Relative error of sums of coefficients, with a margin.
_ROUNDED = 2.0**-46


@runtime_checkable
class Terms(Protocol):
    """A function f of N zeros and ones, which `Coefficients` and `models.functions.Density` describe."""

    @property
    def constant(self) -> float:
        """The constant part of f; samplers do not need it."""

    @property
    def num_sites(self) -> int:
        """N."""

    @property
    def quadratic(self) -> Coefficients | None:
        """The terms themselves where they are those of a quadratic function of zeros and ones."""

    def max_degree(self) -> int:
        """Returns the largest number of couplings of a site."""

    def largest(self) -> float:
        """Returns the largest absolute value of a coefficient; 0 if nothing is known."""

    def reach(self) -> float:
        """Returns an upper bound on |f| without its constant; 0 if nothing is known."""

    def resolution(self, values: Float64[np.ndarray, "*B"]) -> float:
        """Returns how far apart these values of f have to be to be told apart; 0 where they are sums in doubles."""

    def supported(self, states: Int8[np.ndarray, "*B N"]) -> Int8[np.ndarray, "*B N"]:
        """Returns states from which chains can start: these, or others where f is -inf."""

    def evaluator(self) -> Values:
        """Returns a function that computes f of many states in double precision."""


# Of what sums are exact: multiples of 2^-10 below 2^33.
_BITS, _LARGEST_SUM = 10, 2.0**33


class Coefficients(NamedTuple):
    """A quadratic model as a list of its terms, on the host.

    Attributes:
      linear: [N] c.
      edges: [M, 2] pairs with u < v, each once.
      weights: [M] K on those pairs.
      scale: J = scale K.
      background: K on all other pairs.
      constant: the constant part of the problem's value; samplers do not need it.
    """

    linear: Float64[np.ndarray, "N"]
    edges: Int32[np.ndarray, "M 2"]
    weights: Float64[np.ndarray, "M"]
    scale: float
    background: float = 0.0
    constant: float = 0.0

    @property
    def num_sites(self) -> int:
        return len(self.linear)

    @property
    def quadratic(self) -> Coefficients:
        return self

    def max_degree(self) -> int:
        """Returns the largest number of terms of a site; with a background, at most all other sites."""
        if self.background:
            return len(self.linear) - 1
        return int(np.bincount(self.edges.ravel(), minlength=1).max()) if len(self.edges) else 0

    def largest(self) -> float:
        """Returns the largest absolute value of a coefficient, including a background."""
        coupling = float(np.abs(self.weights).max(initial=abs(self.background)))
        return max(float(np.abs(self.linear).max()), abs(self.scale) * coupling)

    def reach(self) -> float:
        with np.errstate(over="ignore"):
            pairs = np.abs(self.scale * (self.weights - self.background)).sum()
            background = abs(self.scale * self.background) * self.num_sites * (self.num_sites - 1) / 2
            return float(np.abs(self.linear).sum() + pairs + background)

    def magnitude(self) -> float:
        """Returns the sum of all absolute terms."""
        couplings = abs(self.scale) * (np.abs(self.weights).sum() + abs(self.background) * self.num_sites**2 / 2)
        return float(np.abs(self.linear).sum() + couplings + abs(self.constant))

    def listed(self) -> Coefficients:
        """Returns the same terms, all of them listed, which takes O(N^2) memory with a background."""
        if not self.background:
            return self
        others = np.triu(np.ones((len(self.linear), len(self.linear)), bool), 1)
        others[self.edges[:, 0], self.edges[:, 1]] = False
        pairs = np.argwhere(others).astype(np.int32)
        kept = self.weights != 0
        edges = np.concatenate([self.edges[kept], pairs])
        weights = np.concatenate([self.weights[kept], np.full(len(pairs), self.background)])
        return self._replace(edges=edges, weights=weights, background=0.0)

    def resolution(self, values: Float64[np.ndarray, "*B"]) -> float:
        return 0.0

    def supported(self, states: Int8[np.ndarray, "*B N"]) -> Int8[np.ndarray, "*B N"]:
        return states

    def evaluator(self) -> Values:
        """Returns the function that computes constant + c.x + sum over pairs of J x x."""
        upper = self.scale * self._above_background()

        def values(states: Int8[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
            x = states.astype(np.float64)
            ones = x.sum(axis=1)
            # It counts for every pair, so listed pairs only add the difference from it.
            background = self.scale * self.background * ones * (ones - 1) / 2
            pairs = np.einsum("bn,bn->b", x, (upper.T @ x.T).T)
            return self.constant + x @ self.linear + pairs + background

        return values

    def losses(self, rng: np.random.Generator) -> Float64[np.ndarray, "L"]:
        """Returns absolute changes of f by all flips, at states that hardly any flip improves."""
        above = self._above_background()
        states = min(_MOST_STATES, -(-_MANY_SITES // self.num_sites))
        return np.concatenate([np.abs(self._gains(above, self._quenched(above, rng))) for _ in range(states)])

    def _above_background(self) -> sparse.csr_matrix:
        """Returns [N, N] K on the listed pairs u < v, minus the background."""
        weights = self.weights - self.background
        return sparse.csr_matrix((weights, tuple(self.edges.T)), (self.num_sites, self.num_sites))

    def _gains(self, above: sparse.csr_matrix, x: Int8[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
        state = x.astype(np.float64)
        coupled = above @ state + above.T @ state + self.background * (state.sum() - state)
        return (1 - 2 * x) * (self.linear + self.scale * coupled)

    def _quenched(self, above: sparse.csr_matrix, rng: np.random.Generator) -> Int8[np.ndarray, "N"]:
        """Returns a state that hardly any single flip improves."""
        x = rng.integers(0, 2, self.num_sites, np.int8)
        for _ in range(_ROUNDS):
            willing = self._gains(above, x) > 0
            if not willing.any():
                break
            x ^= willing & (rng.random(len(x)) < 0.5)
        return x


class Penalties(NamedTuple):
    """Penalties of terms that are far above everything else that counts, called costs.

    Attributes:
      largest: the largest value that they have in some quenched states, all of them together.
      gain: the most that a flip changes the costs by.
      lowered: the terms with penalties a few times as large as that.
    """

    largest: float
    gain: float
    lowered: Coefficients


def penalties_of(terms: Coefficients) -> Penalties | None:
    """Returns the penalties of terms; None where they are none, or not far above the costs.

    They are the multiples of one unit next to all coefficients. Values of chains have 32 bits, in which penalties far
    above the costs hide them; and at temperatures at which costs matter, no chain crosses such penalties. In the
    lowered terms, whose constant is such that feasible states keep their values, a unit still outweighs what any
    flip gains.
    """
    couplings, own = terms.scale * terms.weights, float(terms.scale * terms.background)
    sizes = np.abs(np.append(couplings, own))
    if not sizes.max() > 0:
        return None
    unit = float(sizes[sizes > _PENALTIES * sizes.max()].min())
    counts = np.rint(terms.linear / unit), np.rint(couplings / unit), float(np.rint(own / unit))
    costs = terms.linear - unit * counts[0], couplings - unit * counts[1], own - unit * counts[2]

    def largest_gain(linear: np.ndarray, couplings: np.ndarray, own: float) -> float:
        of_sites = np.abs(linear) + abs(own) * terms.num_sites
        for end in terms.edges.T:
            of_sites += np.bincount(end, np.abs(couplings), terms.num_sites)
        return float(of_sites.max())

    gain = largest_gain(*costs)
    # What is left may also be due to rounding.
    if not _ROUNDED * largest_gain(terms.linear, couplings, own) < gain < unit / _FAR_ABOVE:
        return None
    # A power of 2, so that nothing is rounded.
    lower = 2.0 ** np.ceil(np.log2(_ABOVE * gain))

    def with_unit(of: float, linear: np.ndarray, weights: np.ndarray, background: float) -> Coefficients:
        return terms._replace(
            linear=linear + of * counts[0],
            weights=(weights + of * counts[1]) / terms.scale,
            background=(background + of * counts[2]) / terms.scale,
        )

    alone = with_unit(1.0, 0 * costs[0], 0 * costs[1], 0.0)._replace(constant=0.0)
    lowered, rng = with_unit(lower, *costs), np.random.default_rng(0)
    states = [lowered._quenched(lowered._above_background(), rng) for _ in range(_MOST_STATES)]
    largest = float(alone.evaluator()(np.stack(states)).max())
    lowered = lowered._replace(constant=terms.constant + (unit - lower) * largest)
    return Penalties(unit * largest, gain, lowered)


def are_integers(values: Float64[np.ndarray, "..."]) -> bool:
    """Returns whether these are whole numbers whose sums are below 2^33."""
    return bool((values == np.rint(values)).all() and np.abs(values).sum() < _LARGEST_SUM)


def has_integer_values(form: QuadraticForm) -> bool:
    """Returns whether every value of a form is surely a whole number, below 2^33.

    That is so where its coefficients as a function of zeros and ones are whole, which two halves may add up to. They
    are computed without rounding from multiples of 2^-10.
    """
    given = np.concatenate([form.linear, form.couplings, [form.offset]])
    finest = given * 2**_BITS
    if not (np.array_equal(finest, np.rint(finest)) and np.abs(given).sum() < _LARGEST_SUM):
        return False
    terms = form_coefficients(form)
    found = np.concatenate([terms.linear, terms.scale * terms.weights, [terms.background, terms.constant]])
    return np.array_equal(found, np.rint(found))


def form_coefficients(form: QuadraticForm) -> Coefficients:
    """Returns the terms of a form as a function of x in {0,1}^N to maximise, negated if the form is minimised.

    Spins are 2x - 1. Repeated pairs are summed, and those of a variable with itself are linear. If all variables are
    coupled, most pairs equally, as by a penalty on their number, that coupling is the background.
    """
    sign = 1.0 if form.maximise else -1.0
    first, second = form.pairs.T
    own = first == second
    linear, constant = form.linear.copy(), form.offset
    couplings = form.couplings
    if form.spins:
        # s_a s_b = 4 x_a x_b - 2 x_a - 2 x_b + 1 and s_a s_a = 1.
        constant += couplings.sum() - linear.sum()
        linear *= 2
        for ends in (first, second):
            np.add.at(linear, ends[~own], -2 * couplings[~own])
        couplings = 4 * couplings
    else:
        np.add.at(linear, first[own], couplings[own])
    size, background = form.num_variables, 0.0
    edges, weights = merged_pairs(size, form.pairs[~own], couplings[~own])
    if len(weights) > 1 and len(weights) == size * (size - 1) // 2:
        # A weight that more than half of them have is their median.
        most_common = np.partition(weights, len(weights) // 2)[len(weights) // 2]
        others = weights != most_common
        if 2 * np.count_nonzero(others) < len(weights):
            edges, weights, background = edges[others], weights[others], float(most_common)
    return Coefficients(sign * linear, edges, weights, sign, background, sign * constant)


def merged_pairs(
    size: int, pairs: Int32[np.ndarray, "M 2"], couplings: Float64[np.ndarray, "M"]
) -> tuple[Int32[np.ndarray, "E 2"], Float64[np.ndarray, "E"]]:
    """Returns each pair u < v once and in order, with the sum of its couplings if that is not 0."""
    upper = sparse.csr_matrix((couplings, (np.minimum(*pairs.T), np.maximum(*pairs.T))), (size, size))
    upper.sum_duplicates()
    upper.eliminate_zeros()
    rows = np.repeat(np.arange(size, dtype=np.int32), np.diff(upper.indptr))
    return np.stack([rows, upper.indices], axis=1), upper.data
