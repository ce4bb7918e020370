"""Problems whose law exp(f/temperature) is known exactly, beyond what can be enumerated, to test
samplers on.

Sums over all states are sums over classes of equal ones (Curie and Weiss, complete bipartite
graphs, Hopfield's and block models, two sides): for spins that fall into a few classes, with M_a
the sum of the spins of class a, f is a function of the M_a alone. A torus has Kaufman's formula,
grids and strips are summed site by site, and the few hidden units of a machine are enumerated.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Complex128, Float64, Int, Int8
from scipy import linalg, optimize, special

from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Graph
from sl_discs.problems.problem import Problem
from sl_discs.support.checks import integer, real, real_array
from sl_discs.support.errors import InputError

# d/db F(b) = Im F(b + ih) / h for an analytic F, without the cancellation of a difference.
_STEP = 1e-30


class Truth(NamedTuple):
    """A problem at a temperature, and known quantities of its distribution.

    Attributes:
      problem: f is its value; all of them are maximised.
      temperature: of the law.
      log_z: log sum_x exp(f(x)/temperature).
      mean_value: of f.
      marginals: [N] P(x_i = 1), where x_i = 1 is spin 1.
      mode_weight: P(direction . s > 0), or the probability of the mode that the function's
        documentation names; None if there is none.
      counts: [D + 1] P(k of the D spins in `direction` agree with it); None if unknown.
      direction: [N] -1, 1, and 0 for variables that are left out; None: all ones.
    """

    problem: Problem
    temperature: float
    log_z: float
    mean_value: float
    marginals: Float64[np.ndarray, "N"]
    mode_weight: float | None = None
    counts: Float64[np.ndarray, "D+1"] | None = None
    direction: Int8[np.ndarray, "N"] | None = None


def spin_problem(
    name: str, fields: np.ndarray, pairs: Int[np.ndarray, "M 2"], couplings: np.ndarray
) -> Problem:
    """f(s) = sum couplings_k s_a s_b + fields . s, to be maximised."""
    form = QuadraticForm.from_arrays(name, fields, pairs, couplings, spins=True, maximise=True)
    return Problem("ising", name, range(len(fields)), form)


def log_binomial(n, k) -> np.ndarray:
    """Log of n over k."""
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def summed(
    log_counts: np.ndarray, values: np.ndarray, temperature: float
) -> tuple[float, np.ndarray, float]:
    """Log Z, probabilities and the mean value of classes of states, from the size and the value of
    each class.
    """
    exponents = log_counts + values / real("temperature", temperature, above=0)
    log_z = float(special.logsumexp(exponents))
    law = np.exp(exponents - log_z)
    return log_z, law, float((law * values).sum())


def curie_weiss(
    num_variables: int, temperature: float, *, coupling: float = 1.0, field: float = 0.0
) -> Truth:
    """The Curie-Weiss model, f(s) = coupling/N sum_{i<j} s_i s_j + field sum_i s_i, summed over the
    magnetisation.

    Below the temperature `coupling` it has two modes; the mode weight is P(sum_i s_i > 0). See
    Friedli and Velenik, Statistical Mechanics of Lattice Systems (2017), chapter 2.

    Args:
      num_variables: N.
      temperature: above 0.
      coupling: at least 0; 1 puts the critical temperature at 1.
      field: favours one of the modes; at N = 1,000 and below the critical temperature even 1e-3
        decides.
    """
    size = integer("num_variables", num_variables, 1)
    ones = np.arange(size + 1)
    spins = 2.0 * ones - size
    values = coupling / (2 * size) * (spins**2 - size) + field * spins
    log_z, law, mean = summed(log_binomial(size, ones), values, temperature)
    pairs = np.argwhere(np.triu(np.ones((size, size), bool), 1))
    problem = spin_problem(
        "curie-weiss", np.full(size, field), pairs, np.full(len(pairs), coupling / size)
    )
    marginals = np.full(size, law @ ones / size)
    return Truth(problem, temperature, log_z, mean, marginals, float(law[spins > 0].sum()), law)


def complete_bipartite(
    left: int, right: int, temperature: float, *, penalty: float = 1.0001
) -> Truth:
    """Independent sets of a complete bipartite graph: f = a + b - penalty a b for a nodes left and
    b right.

    At low temperature there are two modes, each side alone, and chains that flip single nodes pass
    between them only through the empty set. The mode weight is P(a > b). The sum is over a and b.

    Args:
      left: number of nodes 0 .. left - 1.
      right: number of the nodes after them.
      temperature: above 0.
      penalty: of a conflict, at least 1.
    """
    a, b = np.arange(left + 1)[:, None], np.arange(right + 1)
    log_counts = log_binomial(left, a) + log_binomial(right, b)
    log_z, law, mean = summed(log_counts, a + b - penalty * a * b, temperature)
    edges = np.argwhere(np.ones((left, right), bool)) + np.array([0, left])
    graph = Graph.from_arrays("complete-bipartite", left + right, edges)
    problem = Problem("mis", graph.name, range(left + right), graph, penalty)
    marginals = np.repeat([(law * a).sum() / left, (law * b).sum() / right], [left, right])
    counts = np.bincount((a + b).ravel(), law.ravel())
    return Truth(problem, temperature, log_z, mean, marginals, float(law[a > b].sum()), counts)


def ising_torus(side: int, temperature: float) -> Truth:
    """The Ising model f(s) = sum over neighbours of s_i s_j on a periodic side x side square
    lattice.

    log Z is from Kaufman (Phys. Rev. 76, 1232, 1949) in the notation of Ferdinand and Fisher (Phys.
    Rev. 185, 832, 1969); the mean of f is its derivative with respect to 1/temperature. `CRITICAL`
    is the critical temperature of the infinite lattice.

    Args:
      side: at least 3.
      temperature: at least 0.01, below which there are no states but the two ground states.
    """
    side = integer("side", side, 3)
    log_z = _kaufman(side, complex(1 / real("temperature", temperature, least=0.01), _STEP))
    site = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [np.stack([site, np.roll(site, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    )
    problem = spin_problem("ising-torus", np.zeros(side * side), pairs, np.ones(len(pairs)))
    return Truth(problem, temperature, log_z.real, log_z.imag / _STEP, np.full(side * side, 0.5))


CRITICAL = 2 / math.log(1 + math.sqrt(2))


def random_field_grid(side: int, temperature: float, *, field: float = 1.0, seed: int = 0) -> Truth:
    """The Ising model with couplings 1 on a side x side grid with open boundary, in a Gaussian
    field.

    Its transfer matrix between columns of 2^side states is applied site by site.

    Args:
      side: 1 .. 12.
      temperature: above 0.
      field: standard deviation of each site's.
      seed: of the fields.
    """
    if integer("side", side, 1) > 12:
        raise InputError(f"side is {side}; a transfer matrix is made for grids of side up to 12")
    fields = field * np.random.default_rng(seed).normal(size=(side, side))
    log_z, marginals = _transferred(
        fields, complex(1 / real("temperature", temperature, above=0), _STEP)
    )
    site = np.arange(side * side).reshape(side, side)
    ends = [(site[:, :-1], site[:, 1:]), (site[:-1], site[1:])]
    pairs = np.concatenate([np.stack([u.ravel(), v.ravel()], axis=1) for u, v in ends])
    problem = spin_problem("random-field-grid", fields.ravel(), pairs, np.ones(len(pairs)))
    return Truth(problem, temperature, log_z.real, log_z.imag / _STEP, marginals.ravel())


def _kaufman(side: int, beta: complex) -> complex:
    """Log Z of the square lattice on a torus, as an analytic function.

    Kaufman's four products are over 2 cosh and 2 sinh of side/2 gamma_k for even and for odd k.
    Each product of sinh is written as the product of cosh times one of tanh, whose sign is that of
    gamma_0.
    """
    cosh_gamma = np.cosh(2 * beta) / np.tanh(2 * beta) - np.cos(np.pi * np.arange(2 * side) / side)
    gamma = np.arccosh(cosh_gamma)
    gamma[0] = 2 * beta + np.log(np.tanh(beta))
    half = (side / 2 * gamma).reshape(side, 2).T  # even and odd
    # cosh is even; the real part is made positive, so that nothing overflows.
    turned = np.where(half.real < 0, -half, half)
    logs = (turned + np.log1p(np.exp(-2 * turned))).sum(axis=1)
    shift = logs.real.max()
    total = (np.exp(logs - shift) * (1 + np.tanh(half).prod(axis=1))).sum()
    return -math.log(2) + side**2 / 2 * np.log(2 * np.sinh(2 * beta)) + shift + np.log(total)


def _transferred(
    fields: Float64[np.ndarray, "L L"], beta: complex
) -> tuple[complex, Float64[np.ndarray, "L L"]]:
    """Log Z as an analytic function, and P(s = 1) of each site, of columns passed forward and
    backward.
    """
    side = len(fields)
    spins = 2.0 * (np.arange(2**side) >> np.arange(side)[:, None] & 1) - 1  # [L, 2^L]
    inside = (spins[1:] * spins[:-1]).sum(axis=0)
    columns = beta * (inside + fields.T @ spins)  # [L, 2^L]
    bond = np.exp(beta * np.array([[1, -1], [-1, 1]]))

    def passed(log_weights: np.ndarray) -> np.ndarray:
        """The log of the transfer matrix of the bonds between two columns, times a vector."""
        shift = log_weights.real.max()
        vector = np.exp(log_weights - shift)
        for i in range(side):
            vector = np.einsum("ab,xby->xay", bond, vector.reshape(-1, 2, 2**i))
        with np.errstate(divide="ignore"):  # weights too small for a double are 0
            return np.log(vector.ravel()) + shift

    forward, backward = [columns[0]], [np.zeros(2**side, complex)]
    for k in range(1, side):
        forward.append(columns[k] + passed(forward[-1]))
        backward.append(passed(columns[-k] + backward[-1]))
    last = forward[-1]
    log_z = last.real.max() + np.log(np.exp(last - last.real.max()).sum())
    laws = np.exp(
        np.array(forward) + np.array(backward[::-1]) - log_z
    ).real  # [L, 2^L], of each column
    return complex(log_z), (laws @ (spins > 0).T).T


# Tuples of magnetisations; the tables of so many take half a gigabyte.
_MOST_TUPLES = 2**23


def dense_spin_problem(
    name: str, fields: np.ndarray, couplings: Float64[np.ndarray, "N N"]
) -> Problem:
    """f(s) = 1/2 s'Js + fields . s, where the diagonal of J is ignored."""
    upper = np.triu(couplings, 1)
    pairs = np.argwhere(upper)
    return spin_problem(name, fields, pairs, upper[*pairs.T])


def weight_of_mode(counts: Float64[np.ndarray, "D+1"]) -> float:
    """P(more spins agree with the direction than not)."""
    return float(counts[len(counts) // 2 + len(counts) % 2 :].sum())


def hopfield(
    num_variables: int,
    weights: Sequence[float],
    temperature: float,
    *,
    field: float = 0.0,
    seed: int = 0,
) -> Truth:
    """Hopfield's model of orthogonal patterns, f(s) = sum_m weights_m/(2N) (xi_m . s)^2 + field
    xi_1 . s.

    The 1 to 8 patterns are rows of a Hadamard matrix of 1, 2, 4 or 8 columns, which are repeated
    over the sites, N being a multiple of them, with signs drawn for each site. So the weights are
    the eigenvalues of the coupling, and the critical temperatures of their patterns. The mode
    weight is P(xi_1 . s > 0). The diagonal of the coupling is left out, as spins make it a
    constant. InputError for a wrong argument, or too many tuples of magnetisations to sum over.
    """
    weights = real_array("weights", weights)
    if weights.ndim != 1 or not 1 <= len(weights) <= 8:
        raise InputError(f"weights have shape {weights.shape}; expected 1 to 8 numbers")
    columns = 1 << (len(weights) - 1).bit_length()
    if integer("num_variables", num_variables, 1) % columns:
        raise InputError(
            f"num_variables is {num_variables}; {len(weights)} patterns need a multiple of "
            f"{columns}"
        )
    patterns = linalg.hadamard(columns)[: len(weights)]
    sizes = np.full(columns, num_variables // columns)
    coupling = (patterns.T * weights) @ patterns
    return _of_classes(
        "hopfield", sizes, coupling, field * patterns[0], patterns[0], temperature, seed
    )


def communities(
    sizes: Sequence[int],
    inside: float,
    between: float,
    temperature: float,
    *,
    field: float = 0.0,
    seed: int = 0,
) -> Truth:
    """A block model, f(s) = 1/N sum_{i<j} A_{ij} s_i s_j + field sum of the first community's
    spins.

    A is `inside` for two sites of one community and `between` otherwise. All spins have signs drawn
    for each site. The mode weight is that of the first community's magnetisation. InputError as
    `hopfield`.
    """
    found = np.array([integer("sizes", size, 1) for size in sizes])
    coupling = np.full((len(found), len(found)), float(between))
    np.fill_diagonal(coupling, inside)
    first = np.eye(1, len(found))[0]
    return _of_classes("communities", found, coupling, field * first, first, temperature, seed)


def _of_classes(
    name: str,
    sizes: Int[np.ndarray, "C"],
    coupling: Float64[np.ndarray, "C C"],
    fields,
    direction,
    temperature,
    seed,
) -> Truth:
    """f = 1/N sum_{i<j} coupling s_i s_j + fields . s for the classes of i and j, with a sign drawn
    for each site.
    """
    tuples = math.prod(int(size) + 1 for size in sizes)
    if tuples > _MOST_TUPLES:
        raise InputError(
            f"{name}: classes of {sizes.tolist()} spins have {tuples:,} tuples of magnetisations; "
            "at most "
            f"{_MOST_TUPLES:,} are summed"
        )
    total = int(sizes.sum())
    ones = np.meshgrid(*(np.arange(size + 1) for size in sizes), indexing="ij", sparse=True)
    spins = [2.0 * k - size for k, size in zip(ones, sizes, strict=True)]
    values = -(sizes @ np.diagonal(coupling)) / (2 * total)
    for a, M in enumerate(spins):
        values = values + M * (fields[a] + coupling[a, a] / (2 * total) * M)
        values = values + M * sum((coupling[a, b] / total * spins[b] for b in range(a)), 0.0)
    log_counts = functools.reduce(np.add, map(log_binomial, sizes, ones))
    log_z, law, mean = summed(log_counts, values, temperature)
    agreeing = sum(
        k if sign > 0 else size - k for k, size, sign in zip(ones, sizes, direction, strict=True) if sign
    )  # fmt: skip
    counts = np.bincount(np.broadcast_to(agreeing, law.shape).ravel(), law.ravel())
    means = [float((law * k).sum()) / size for k, size in zip(ones, sizes, strict=True)]

    signs = np.random.default_rng(seed).choice((-1, 1), total)
    of_site = np.repeat(np.arange(len(sizes)), sizes)
    problem = dense_spin_problem(
        name,
        fields[of_site] * signs,
        coupling[np.ix_(of_site, of_site)] / total * np.outer(signs, signs),
    )
    up = np.array(means)[of_site]
    marginals = np.where(signs > 0, up, 1 - up)
    planted = (np.asarray(direction)[of_site] * signs).astype(np.int8)
    return Truth(
        problem, temperature, log_z, mean, marginals, weight_of_mode(counts), counts, planted
    )


def two_sides(
    left: int, right: int, temperature: float, *, gain: float, penalty: float, weight: float
) -> Truth:
    """f = g a + gain b - penalty a b of a ones among the `left` first variables and b among the
    `right` others.

    The mode is that more than half of the left variables are 1, and g such that it has this weight.
    With few variables on the left and a large penalty it is a golf hole: at high temperature the
    many states of the right side exclude it, and at the given one hardly anything leads there.
    """
    a, b = np.arange(left + 1)[:, None], np.arange(right + 1)
    log_counts = log_binomial(left, a) + log_binomial(right, b)

    def law_of(g: float):
        return summed(log_counts, g * a + gain * b - penalty * a * b, temperature)

    def excess(g: float) -> float:
        return float(law_of(g)[1][2 * a[:, 0] > left].sum()) - weight

    g = optimize.brentq(excess, 0, 1e3 * temperature)
    log_z, law, mean = law_of(g)
    pairs = np.argwhere(np.ones((left, right), bool)) + np.array([0, left])
    linear, couplings = np.repeat([g, gain], [left, right]), np.full(len(pairs), -penalty)
    form = QuadraticForm.from_arrays("two-sides", linear, pairs, couplings, maximise=True)
    problem = Problem("qubo", form.name, range(left + right), form)
    marginals = np.repeat([(law * a).sum() / left, (law * b).sum() / right], [left, right])
    direction = np.repeat(np.array([1, 0], np.int8), [left, right])
    return Truth(problem, temperature, log_z, mean, marginals, weight, law.sum(axis=1), direction)


# d/db F(b) = Im F(b + ih) / h for an analytic F, without the cancellation of a difference.
_STEP = 1e-30
_WIDEST = 8


def planted_strip(
    width: int,
    length: int,
    strength: float,
    glass: float,
    temperature: float = 1.0,
    *,
    field: float = 0.0,
    seed: int = 0,
) -> Truth:
    """A planted direction u and an Edwards-Anderson spin glass on a strip of the square lattice
    with open boundary.

    f(s) = strength/N sum_{i<j} u_i u_j s_i s_j + glass sum over neighbours of J_ij s_i s_j + field
    u . s, with J_ij = 1 or -1 and u drawn, N = width x length, and width up to 8. The first term
    has one eigenvalue, `strength`, and two modes below this temperature; the spectrum of the rest
    has a length of at most 8 glass. States are summed site by site with the spins of the last
    `width` sites and the number of spins that agree with u. The mode weight is P(u . s > 0).
    """
    if integer("width", width, 1) > _WIDEST:
        raise InputError(f"width is {width}; strips are summed up to width {_WIDEST}")
    size = width * integer("length", length, 1)
    rng = np.random.default_rng(seed)
    direction = rng.choice((-1, 1), size)
    ahead = glass * rng.choice((-1.0, 1.0), size)  # of a site and the one a column before
    across = np.where(
        np.arange(size) % width > 0, glass * rng.choice((-1.0, 1.0), size), 0.0
    )  # and the one before
    ahead[:width] = 0
    beta = 1 / real("temperature", temperature, above=0)

    overlap = 2.0 * np.arange(size + 1) - size
    last = strength / (2 * size) * (overlap**2 - size) + field * overlap
    gauged = (
        across * direction * np.roll(direction, 1),
        ahead * direction * np.roll(direction, width),
    )
    log_z, counts, agrees = _summed_by_site(width, *gauged, last, complex(beta, _STEP))

    sites = np.arange(size)
    weak = np.triu(np.outer(direction, direction), 1) * strength / size
    weak[sites[1:] - 1, sites[1:]] += across[1:]
    if length > 1:
        weak[sites[width:] - width, sites[width:]] += ahead[width:]
    pairs = np.argwhere(weak)
    problem = spin_problem("planted-strip", field * direction, pairs, weak[*pairs.T])
    marginals = np.where(direction > 0, agrees, 1 - agrees)
    return Truth(
        problem, temperature, log_z.real, log_z.imag / _STEP, marginals, weight_of_mode(counts), counts,
        direction.astype(np.int8),
    )  # fmt: skip


def _summed_by_site(
    width: int,
    across: Float64[np.ndarray, "N"],
    ahead: Float64[np.ndarray, "N"],
    last,
    beta: complex,
) -> tuple[complex, Float64[np.ndarray, "N+1"], Float64[np.ndarray, "N"]]:
    """Log Z as an analytic function, the law of the number of spins 1, and P(s_i = 1).

    A table [2^width, N + 1] of weights goes from site to site: bit j of the row is the spin j + 1
    sites ago, the column how many spins were 1 so far.
    """
    size, rows = len(across), 2**width
    spins = 2.0 * (np.arange(rows)[:, None] >> np.arange(width) & 1) - 1
    # A state is followed by two: the new spin is bit 0.
    steps = [
        [
            np.exp(beta * new * (across[i] * spins[:, 0] + ahead[i] * spins[:, width - 1]))
            for new in (-1, 1)
        ]
        for i in range(size)
    ]
    following = [(np.arange(rows) << 1 & rows - 1) | bit for bit in (0, 1)]

    table: Complex128[np.ndarray, "R K"] = np.zeros((rows, size + 1), complex)
    table[0, 0] = 1.0  # spins before the first are not coupled to anything
    forward, log_scale = [table], [0j]
    for down, up in steps:
        new = np.zeros_like(table)
        np.add.at(new, following[0], down[:, None] * table)
        np.add.at(new[:, 1:], following[1], up[:, None] * table[:, :-1])
        scale = new.real.max()
        table = new / scale
        forward.append(table)
        log_scale.append(log_scale[-1] + np.log(scale))
    # Weights of what follows, up to a factor that the marginals divide out.
    shift = (beta * last).real.max()
    ends = np.exp(beta * last - shift)
    by_count = table.sum(axis=0) * ends
    total = by_count.sum()
    rest = np.tile(ends, (rows, 1))
    ones = np.empty(size)
    for i in range(size - 1, -1, -1):
        down, up = steps[i]
        zero = down[:, None] * rest[following[0]]
        one = np.zeros_like(rest)
        one[:, :-1] = up[:, None] * rest[following[1], 1:]
        weights = [(forward[i] * part).sum().real for part in (zero, one)]
        ones[i] = weights[1] / sum(weights)
        rest = zero + one
        rest /= rest.real.max()
    return np.log(total) + log_scale[-1] + shift, (by_count / total).real, ones


_MOST_HIDDEN = 16


def boltzmann_machine(
    weights: Float64[np.ndarray, "V H"],
    visible: Float64[np.ndarray, "V"],
    hidden: Float64[np.ndarray, "H"],
    temperature: float = 1.0,
) -> Truth:
    """f(v, h) = v'Wh + visible . v + hidden . h for v in {0,1}^V and h in {0,1}^H, summed over all
    h, H at most 16.

    Variables are the visible units, then the hidden ones. The direction is on the hidden units: the
    signs of W's first right singular vector, the first of them positive. InputError for shapes that
    do not fit.
    """
    weights, visible, hidden = (
        real_array(name, one)
        for name, one in (("weights", weights), ("visible", visible), ("hidden", hidden))
    )  # fmt: skip
    if (
        weights.shape != (*visible.shape, *hidden.shape)
        or weights.ndim != 2
        or weights.shape[1] > _MOST_HIDDEN
    ):
        raise InputError(
            f"weights have shape {weights.shape}, biases {visible.shape} and {hidden.shape}; "
            "expected [V, H] with H "
            f"at most {_MOST_HIDDEN}, [V] and [H]"
        )
    size = len(hidden)
    states = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(float)  # [2^H, H]
    beta = 1 / real("temperature", temperature, above=0)
    gains = visible + states @ weights.T  # of the visible units
    log_counts = np.logaddexp(0, beta * gains).sum(axis=1)
    on = 1 / (1 + np.exp(-beta * gains))
    log_z, law, mean_hidden = summed(log_counts, states @ hidden, temperature)
    mean = mean_hidden + float(law @ (on * gains).sum(axis=1))
    signs = np.sign(np.linalg.svd(weights)[2][0])
    signs = np.where(signs == 0, 1, signs)
    direction = np.concatenate([np.zeros(len(visible)), signs * signs[0]]).astype(np.int8)
    agreeing = (states == (direction[len(visible) :] > 0)).sum(axis=1)
    counts = np.bincount(agreeing, law, size + 1)
    pairs = np.argwhere(np.ones(weights.shape, bool)) + np.array([0, len(visible)])
    form = QuadraticForm.from_arrays(
        "boltzmann-machine",
        np.concatenate([visible, hidden]),
        pairs,
        weights.ravel(),
        maximise=True,
    )
    problem = Problem("qubo", form.name, range(form.num_variables), form)
    marginals = np.concatenate([law @ on, law @ states])
    return Truth(
        problem, temperature, log_z, mean, marginals, weight_of_mode(counts), counts, direction
    )


# A pixel with a value in 0 .. 16 is on if it is above this.
_ON = 7
_BATCH, _RATE = 64, 0.1


def digit_images() -> Bool[np.ndarray, "S 64"]:
    """The 8 x 8 images that ship with scikit-learn, by which pixels are on; InputError
    without it.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise InputError(
            "the digits need scikit-learn; install it with: pip install scikit-learn"
        ) from None
    return load_digits().data > _ON


def digits_machine(hidden: int, seed: int) -> Truth:
    """The known quantities of a machine with 64 pixels and a few hidden units after 200 epochs of
    training.
    """
    return boltzmann_machine(*fit(digit_images(), hidden, seed, 200))


def fit(
    data: np.ndarray, hidden: int, seed: int, epochs: int
) -> tuple[Float64[np.ndarray, "V H"], Float64[np.ndarray, "V"], Float64[np.ndarray, "H"]]:
    """Weights and biases of a machine fitted to rows [S, V] by persistent contrastive divergence
    (Tieleman 2008).
    """
    rng, data = np.random.default_rng(seed), np.asarray(data, float)

    def on(gains):
        return (rng.random(gains.shape) < 1 / (1 + np.exp(-gains))).astype(float)

    weights = 0.01 * rng.normal(size=(data.shape[1], hidden))
    mean = data.mean(axis=0).clip(0.01, 0.99)
    a, b = np.log(mean / (1 - mean)), np.zeros(hidden)
    free = data[rng.choice(len(data), _BATCH)]
    for epoch in range(epochs):
        rate = _RATE * (1 - epoch / epochs)
        for rows in np.array_split(rng.permutation(len(data)), len(data) // _BATCH):
            seen, up = data[rows], 1 / (1 + np.exp(-b - data[rows] @ weights))
            free = on(a + on(b + free @ weights) @ weights.T)
            dreamt = 1 / (1 + np.exp(-b - free @ weights))
            weights += rate * (seen.T @ up / len(rows) - free.T @ dreamt / len(free))
            a += rate * (seen.mean(axis=0) - free.mean(axis=0))
            b += rate * (up.mean(axis=0) - dreamt.mean(axis=0))
    return weights, a, b
