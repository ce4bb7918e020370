"""What a problem maximises, as a list of its terms on the host; problems are made and checked
without JAX.

What differs between functions is a method of their terms, see `sl_discs.models.functions.Terms`.
The arrays of chains are built from terms by `sl_discs.chains.batches.build_batch`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8, Int32
from scipy import sparse

from sl_discs.instances.form import QuadraticForm, fraction

# Rounds of a quench, in each of which half of the sites that gain move; the number of sites of all
# quenched states together, and the most states.
_ROUNDS = 50
_MANY_SITES, _MOST_STATES = 1_000, 16
# How many times the largest gain of all else penalties are lowered from, and to; couplings above
# this part of the largest are penalties.
_FAR_ABOVE = 2.0**14
_ABOVE = 4.0
_PENALTIES = 1e-3
# Relative error of sums of coefficients, with a margin.
_ROUNDED = 2.0**-46


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
        """N."""
        return len(self.linear)

    def max_degree(self) -> int:
        """Returns the largest number of terms of a site; with a background, at most all other
        sites.
        """
        if self.background:
            return self.num_sites - 1
        return int(np.bincount(self.edges.ravel(), minlength=1).max())

    def largest(self) -> float:
        """Returns the largest absolute value of a coefficient, including a background."""
        coupling = float(np.abs(self.weights).max(initial=abs(self.background)))
        return max(float(np.abs(self.linear).max()), abs(self.scale) * coupling)

    def bounds(self) -> Float64[np.ndarray, "N"]:
        """Returns bounds of the absolute field of each site: the sums of its absolute terms."""
        above = abs(self._above_background())
        ones = np.ones(self.num_sites)
        pairs = abs(self.background) * (self.num_sites - 1)
        with np.errstate(over="ignore"):
            return np.abs(self.linear) + abs(self.scale) * (above @ ones + ones @ above + pairs)

    def reach(self) -> float:
        """Returns an upper bound on |f| without its constant."""
        with np.errstate(over="ignore"):
            return float(np.abs(self.linear).sum() + self.bounds().sum()) / 2

    def listed(self) -> Coefficients:
        """Returns the same terms, all of them listed, which takes O(N^2) memory with a
        background.
        """
        if not self.background:
            return self
        pairs = missing_pairs(self.num_sites, self.edges)
        kept = self.weights != 0
        edges = np.concatenate([self.edges[kept], pairs])
        weights = np.concatenate([self.weights[kept], np.full(len(pairs), self.background)])
        return self._replace(edges=edges, weights=weights, background=0.0)

    def resolution(self, values: Float64[np.ndarray, "*B"]) -> float:
        """Returns how far apart values of f near these have to be for chains to tell them apart.

        It is the rounding of the largest bound by 24 bits, or that of the largest term, where sums
        of couplings are exact in 24 bits, as of whole multiples of one number.
        """
        finest = abs(self.scale) * _finest(np.append(self.weights, self.background)).min()
        largest = float(self.bounds().max())
        return 2.0**-24 * (self.largest() if largest < 2**24 * finest else largest)

    def supported(self, states: Int8[np.ndarray, "*B N"]) -> Int8[np.ndarray, "*B N"]:
        """Returns states from which chains can start: all of them."""
        return states

    def log_states(self, rng: np.random.Generator) -> tuple[float, float]:
        """Returns the logarithm of the number of states, and its error."""
        return self.num_sites * math.log(2), 0.0

    def values(self, states: Int8[np.ndarray, "B N"]) -> Float64[np.ndarray, "B"]:
        """Returns constant + c.x + sum over pairs of J x x of each state."""
        upper = self.scale * self._above_background()
        x = states.astype(np.float64)
        ones = x.sum(axis=1)
        # It counts for every pair, so listed pairs only add the difference from it.
        background = self.scale * self.background * ones * (ones - 1) / 2
        pairs = np.einsum("bn,bn->b", x, (upper.T @ x.T).T)
        return self.constant + x @ self.linear + pairs + background

    def losses(self, rng: np.random.Generator) -> Float64[np.ndarray, "L"]:
        """Returns absolute changes of f by all flips, at states that hardly any flip improves."""
        above = self._above_background()
        states = min(_MOST_STATES, -(-_MANY_SITES // self.num_sites))
        return np.concatenate(
            [np.abs(self._gains(above, self._quenched(above, rng))) for _ in range(states)]
        )

    def _above_background(self) -> sparse.csr_matrix:
        """Returns [N, N] K on the listed pairs u < v, minus the background."""
        weights = self.weights - self.background
        return sparse.csr_matrix((weights, tuple(self.edges.T)), (self.num_sites, self.num_sites))

    def _gains(
        self, above: sparse.csr_matrix, x: Int8[np.ndarray, "N"]
    ) -> Float64[np.ndarray, "N"]:
        state = x.astype(np.float64)
        coupled = above @ state + above.T @ state + self.background * (state.sum() - state)
        return (1 - 2 * x) * (self.linear + self.scale * coupled)

    def _quenched(
        self, above: sparse.csr_matrix, rng: np.random.Generator
    ) -> Int8[np.ndarray, "N"]:
        """Returns a state that hardly any single flip improves."""
        x = rng.integers(0, 2, self.num_sites, np.int8)
        for _ in range(_ROUNDS):
            willing = self._gains(above, x) > 0
            if not willing.any():
                break
            x ^= willing & (rng.random(len(x)) < 0.5)
        return x


def missing_pairs(size: int, pairs: Int[np.ndarray, "M 2"]) -> Int32[np.ndarray, "P 2"]:
    """Returns all other pairs u < v of `size` sites, in ascending order."""
    missing = np.triu(np.ones((size, size), bool), 1)
    missing[pairs[:, 0], pairs[:, 1]] = False
    return np.argwhere(missing).astype(np.int32)


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

    They are the multiples of one unit next to all coefficients. Values of chains have 32 bits, in
    which penalties far above the costs hide them; and at temperatures at which costs matter, no
    chain crosses such penalties. In the lowered terms, whose constant is such that feasible states
    keep their values, a unit still outweighs what any flip gains.
    """
    couplings = terms.scale * np.append(terms.weights, terms.background)
    sizes = np.abs(couplings)
    if not sizes.max() > 0:
        return None
    unit = float(sizes[sizes > _PENALTIES * sizes.max()].min())
    coefficients = np.append(terms.linear, couplings)
    counts = np.rint(coefficients / unit)
    costs = coefficients - unit * counts

    def terms_of(coefficients: Float64[np.ndarray, "K"]) -> Coefficients:
        linear, weights = np.split(coefficients, [terms.num_sites])
        weights = weights / terms.scale
        return terms._replace(linear=linear, weights=weights[:-1], background=float(weights[-1]))

    gain = float(terms_of(costs).bounds().max())
    # What is left may also be due to rounding.
    if not _ROUNDED * terms.bounds().max() < gain < unit / _FAR_ABOVE:
        return None
    # A power of 2, so that nothing is rounded.
    lower = 2.0 ** np.ceil(np.log2(_ABOVE * gain))
    alone = terms_of(counts)._replace(constant=0.0)
    lowered = terms_of(costs + lower * counts)
    rng = np.random.default_rng(0)
    states = [lowered._quenched(lowered._above_background(), rng) for _ in range(_MOST_STATES)]
    largest = float(alone.values(np.stack(states)).max())
    lowered = lowered._replace(constant=terms.constant + (unit - lower) * largest)
    return Penalties(unit * largest, gain, lowered)


# Of multiples of one number that add up to less than this many of it, sums are exact.
_LARGEST_SUM = 2.0**33


def are_integers(values: Float64[np.ndarray, "..."]) -> bool:
    """Returns whether these are whole numbers whose sums are below 2^33."""
    return bool((values == np.rint(values)).all() and np.abs(values).sum() < _LARGEST_SUM)


# Quadratic functions of spins s = 2x - 1, and of zeros and ones x.


@dataclasses.dataclass(frozen=True, eq=False)
class SpinForm:
    """constant + fields.s + 1/2 s'Js on spins, where J is zero on the diagonal.

    J is `background` on all pairs, plus `couplings` on those that are listed. The paper writes W =
    -J/beta and b = fields.

    Attributes:
      fields: [N].
      pairs: [M, 2] with a < b, each once.
      couplings: [M].
      constant: the constant part.
      background: of all pairs.
    """

    fields: Float64[np.ndarray, "N"]
    pairs: Int[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    constant: float
    background: float = 0.0

    @property
    def num_spins(self) -> int:
        """N."""
        return len(self.fields)

    @functools.cached_property
    def rows(self) -> sparse.csr_matrix:
        """[N, N] J without the background."""
        upper = sparse.csr_matrix(
            (self.couplings, tuple(self.pairs.T)), (self.num_spins, self.num_spins)
        )
        return (upper + upper.T).tocsr()

    def times(self, vectors: Float64[np.ndarray, "N *k"]) -> Float64[np.ndarray, "N *k"]:
        """Returns J times vectors."""
        return self.rows @ vectors + self.background * (vectors.sum(axis=0) - vectors)

    def matrix(self) -> Float64[np.ndarray, "N N"]:
        """Returns J."""
        matrix = self.rows.toarray() + self.background
        np.fill_diagonal(matrix, 0.0)
        return matrix


def to_spin(terms: Coefficients, temperature: float = 1.0) -> SpinForm:
    """Returns f/temperature as a function of spins, equal up to rounding."""
    size = terms.num_sites
    background = float(terms.scale * terms.background / 4)
    couplings = terms.scale * (terms.weights - terms.background) / 4
    linear = terms.linear / 2
    fields = linear + background * (size - 1)
    for ends in terms.edges.T:
        np.add.at(fields, ends, couplings)
    constant = terms.constant + float(
        linear.sum() + couplings.sum() + background * size * (size - 1) / 2
    )
    # Divided last, so that sums of whole numbers are exact.
    return SpinForm(
        fields / temperature,
        terms.edges,
        couplings / temperature,
        constant / temperature,
        background / temperature,
    )


def from_spin(spin: SpinForm) -> Coefficients:
    """Returns the same function of zeros and ones, up to rounding."""
    size = spin.num_spins
    background = spin.background
    linear = 2 * spin.fields - 2 * background * (size - 1)
    for ends in spin.pairs.T:
        np.add.at(linear, ends, -2 * spin.couplings)
    constant = float(spin.couplings.sum() - spin.fields.sum() + background * size * (size - 1) / 2)
    weights = 4 * (spin.couplings + background)
    return Coefficients(linear, spin.pairs, weights, 1.0, 4 * background, spin.constant + constant)


# Forms as they were given, as functions to maximise: those that are minimised are negated. A pair
# of a variable with itself is linear, as x_a x_a = x_a, or constant, as s_a s_a = 1.


def spin_form(form: QuadraticForm) -> SpinForm:
    """Returns a form as a function of spins to maximise; pairs are merged, and no coupling is 0."""
    linear, pairs, couplings, constant = _merged(form)
    if form.spins:
        return SpinForm(linear, pairs, couplings, constant)
    return to_spin(Coefficients(linear, pairs, couplings, 1.0, constant=constant))


def form_of_spins(spin: SpinForm, like: QuadraticForm) -> QuadraticForm:
    """Returns the form that is this function of spins, without a background, of the sense and the
    kind of variables that another form has.
    """
    sign = 1.0 if like.maximise else -1.0
    terms = from_spin(spin)
    linear, couplings, constant = (
        (spin.fields, spin.couplings, spin.constant)
        if like.spins
        else (terms.linear, terms.weights, terms.constant)
    )
    return QuadraticForm.from_arrays(
        like.name,
        sign * linear,
        spin.pairs,
        sign * couplings,
        sign * constant,
        spins=like.spins,
        maximise=like.maximise,
    )


def form_coefficients(form: QuadraticForm) -> Coefficients:
    """Returns the terms of a form as a function of x in {0,1}^N to maximise; pairs are merged.

    If all variables are coupled, most pairs equally, as by a penalty on their number, that coupling
    is the background.
    """
    linear, pairs, couplings, constant = _merged(form)
    terms = Coefficients(linear, pairs, couplings, 1.0, constant=constant)
    if form.spins:
        terms = from_spin(SpinForm(linear, pairs, couplings, constant))
    size = form.num_variables
    weights = terms.weights
    if len(weights) > 1 and len(weights) == size * (size - 1) // 2:
        # A weight that more than half of them have is their median.
        most_common = np.partition(weights, len(weights) // 2)[len(weights) // 2]
        uncommon = weights != most_common
        if 2 * np.count_nonzero(uncommon) < len(weights):
            return terms._replace(
                edges=terms.edges[uncommon],
                weights=weights[uncommon],
                background=float(most_common),
            )
    return terms


def _merged(
    form: QuadraticForm,
) -> tuple[Float64[np.ndarray, "N"], Int[np.ndarray, "M 2"], Float64[np.ndarray, "M"], float]:
    """Returns the linear terms, merged pairs, couplings and constant of a form to maximise, without
    pairs a, a.
    """
    sign = 1.0 if form.maximise else -1.0
    own = form.pairs[:, 0] == form.pairs[:, 1]
    linear = sign * form.linear
    couplings = sign * form.couplings
    constant = sign * form.offset
    if form.spins:
        constant += float(couplings[own].sum())
    else:
        np.add.at(linear, form.pairs[own, 0], couplings[own])
    pairs, couplings = merged_pairs(len(linear), form.pairs[~own], couplings[~own])
    return linear, pairs, couplings, constant


def merged_pairs(
    size: int, pairs: Int[np.ndarray, "M 2"], couplings: Float64[np.ndarray, "M"]
) -> tuple[Int[np.ndarray, "E 2"], Float64[np.ndarray, "E"]]:
    """Returns each pair u < v once and in order, with the sum of its couplings if that is not 0."""
    first = np.minimum(*pairs.T)
    second = np.maximum(*pairs.T)
    order = first * np.int64(size) + second
    if couplings.all() and (order[1:] > order[:-1]).all():
        return np.stack([first, second], axis=1), couplings
    upper = sparse.csr_matrix((couplings, (first, second)), (size, size))
    upper.sum_duplicates()
    upper.eliminate_zeros()
    rows = np.repeat(np.arange(size, dtype=np.int32), np.diff(upper.indptr))
    return np.stack([rows, upper.indices], axis=1), upper.data


def has_integer_values(form: QuadraticForm) -> bool:
    """Returns whether every value of a form is surely a whole number.

    That is so where its coefficients as a function of zeros and ones are whole, which two halves
    may add up to. They are computed without rounding from multiples of one number.
    """
    numbers = np.append(form.numbers, form.offset)
    if are_integers(numbers):
        return True
    if _whole_unit(numbers) is None:
        return False
    terms = form_coefficients(form)
    coefficients = np.concatenate([terms.linear, terms.weights, [terms.background, terms.constant]])
    return np.array_equal(coefficients, np.rint(coefficients))


# Units: a problem times a power of two is the same problem.


def _finest(numbers: Float64[np.ndarray, "K"]) -> Float64[np.ndarray, "K"]:
    """Returns the largest power of two of which each number is a whole multiple; infinite for 0."""
    mantissas, exponents = np.frexp(numbers)
    bits = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = np.ldexp((bits & -bits).astype(np.float64), exponents - 53)
    return np.where(bits == 0, np.inf, lowest)


def _whole_unit(numbers: Float64[np.ndarray, "K"]) -> float | None:
    """Returns the power of two of which numbers are multiples that add up to less than 2^33; None:
    there is none.
    """
    unit = float(_finest(numbers).min(initial=np.inf))
    return unit if float(np.abs(numbers).sum()) < _LARGEST_SUM * unit else None


def unit_of(numbers: Float64[np.ndarray, "K"], offset: float = 0.0) -> float:
    """Returns the power of two in units of which numbers are in a fixed range.

    Whole multiples of one unit become whole numbers, and of others the largest comes to lie between
    1 and 2. It is 1 where nothing can be scaled, or the offset or a number would lose digits.
    """
    unit = _whole_unit(numbers)
    if unit is None:
        unit = math.ldexp(1.0, math.frexp(float(np.abs(numbers).max()))[1] - 1)
    every = np.append(numbers, offset)
    return unit if math.isfinite(unit) and np.array_equal(every / unit * unit, every) else 1.0


def normal_form(form: QuadraticForm) -> tuple[QuadraticForm, float, Fraction]:
    """Returns a form in units of a power of two, that unit, and a constant.

    The given form is the unit times the returned one plus the constant, exactly. Where all
    coefficients are multiples of a unit, each pair is there once, and values of the returned form
    are whole numbers, 0 for all zeros or all spins down. Otherwise terms stay as they are given,
    and the constant is 0.
    """
    linear = form.linear
    pairs = form.pairs
    couplings = form.couplings
    offset = form.offset
    if _whole_unit(form.numbers) is None:
        constant = Fraction(0)
        unit = unit_of(form.numbers, offset)
    else:
        constants = np.array([offset])
        if form.spins:
            constants = np.append(constants, couplings[pairs[:, 0] == pairs[:, 1]])
        sign = 1.0 if form.maximise else -1.0
        linear, pairs, couplings, _ = _merged(form)
        terms = Coefficients(linear, pairs, couplings, 1.0)
        if form.spins:
            terms = from_spin(SpinForm(linear, pairs, couplings, 0.0))
        unit = unit_of(np.concatenate([terms.linear, terms.weights]))
        linear = sign * linear
        couplings = sign * couplings
        offset = -sign * terms.constant
        constant = fraction(constants) - Fraction(offset)
    scaled = dataclasses.replace(
        form, linear=linear / unit, pairs=pairs, couplings=couplings / unit, offset=offset / unit
    )
    return scaled, unit, constant
