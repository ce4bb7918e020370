"""Known truths of a planted direction with a spin glass as the rest, of any length."""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex128, Float64

from sl_discs.checks import real, whole
from sl_discs.errors import InputError
from sl_discs.testing.truth import Truth, spin_problem, weight_of_mode

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
    """A planted direction u and an Edwards-Anderson spin glass on a strip of the square lattice with open boundary.

    f(s) = strength/N sum_{i<j} u_i u_j s_i s_j + glass sum over neighbours of J_ij s_i s_j + field u . s, with J_ij =
    1 or -1 and u drawn. The first term has one eigenvalue, `strength`; the spectrum of the rest has a length of at
    most 8 glass. States are summed site by site with the spins of the last `width` sites and the number of spins that
    agree with u. The mode weight is P(u . s > 0).

    Args:
      width: 1 .. 8.
      length: N = width x length.
      strength: of the direction; without a rest it has two modes below this temperature.
      glass: strength of the rest.
      temperature: above 0.
      field: favours u over -u.
      seed: of u and the signs of the couplings.

    Raises:
      InputError: a wrong argument.
    """
    if whole("width", width, 1) > _WIDEST:
        raise InputError(f"width is {width}; strips are summed up to width {_WIDEST}")
    size = width * whole("length", length, 1)
    rng = np.random.default_rng(seed)
    direction = rng.choice((-1, 1), size)
    ahead = glass * rng.choice((-1.0, 1.0), size)  # of a site and the one a column before
    across = np.where(np.arange(size) % width > 0, glass * rng.choice((-1.0, 1.0), size), 0.0)  # and the one before
    ahead[:width] = 0
    beta = 1 / real("temperature", temperature, above=0)

    overlap = 2.0 * np.arange(size + 1) - size
    last = strength / (2 * size) * (overlap**2 - size) + field * overlap
    gauged = across * direction * np.roll(direction, 1), ahead * direction * np.roll(direction, width)
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
    width: int, across: Float64[np.ndarray, "N"], ahead: Float64[np.ndarray, "N"], last, beta: complex
) -> tuple[complex, Float64[np.ndarray, "N+1"], Float64[np.ndarray, "N"]]:
    """Log Z as an analytic function, the law of the number of spins 1, and P(s_i = 1).

    A table [2^width, N + 1] of weights goes from site to site: bit j of the row is the spin j + 1 sites ago, the
    column how many spins were 1 so far.
    """
    size, rows = len(across), 2**width
    spins = 2.0 * (np.arange(rows)[:, None] >> np.arange(width) & 1) - 1
    # A state is followed by two: the new spin is bit 0.
    steps = [
        [np.exp(beta * new * (across[i] * spins[:, 0] + ahead[i] * spins[:, width - 1])) for new in (-1, 1)]
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
