"""Method `low_rank`: stochastic localization of the few directions that a local sampler cannot cross.

Let the coupling of p(s) ~ exp(1/2 s'Js + b's) be J = J0 + U D U', where U [N, r] are eigenvectors whose eigenvalues
stand D above the mean of the rest. Given the observation z = D^(1/2) U's + noise, noise ~ N(0, I),

    p(s|z) ~ exp(1/2 s'J0 s + (b + U D^(1/2) z)'s),    p(z) ~ exp(-|z|^2/2) Z0(b + U D^(1/2) z),

where Z0 is the normalisation of p(s|z), and the gradient of log Z0 with respect to z is D^(1/2) U'E[s|z]. There are
three steps:

1. parallel chains at the nodes of a grid over z estimate E[s|z], by Rao-Blackwell means;
2. log Z0 is fitted to these gradients, which gives a table of p(z) and, with Z0 at one node, log Z;
3. z is drawn from the table, and s given z by a chain that starts at the nearest node.

If J0 = 0 everything has a closed form. The draws are as accurate as the chains given z, which mix fast if the
spectrum of J0 is narrower than 1 (Koehler, Lee and Risteski 2022). If it is wider, or if chains with different starts
at the same z disagree, the verdict says so. Groups share only the grid, and their differences give the error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int8
from numpy.polynomial import chebyshev
from scipy.spatial import cKDTree
from scipy.special import chdtri, logsumexp

from sl_discs.errors import InputError
from sl_discs.models.terms import Coefficients
from sl_discs.sampling.diagnostics import FALSE_ALARM
from sl_discs.sampling.directions import (
    MOST_COUPLED,
    NARROW,
    SWEEPS,
    CoupledRest,
    Directions,
    FreeRest,
    ScaledSpins,
    Series,
    find_directions,
    is_free,
    spin_terms,
)
from sl_discs.sampling.draws import Budget, Drawn, Request, packed

# Densities on a regular grid in one or two dimensions: their integrals, the location of their mass, and draws.

# Grid spacing for locating the mass, and for drawing in each number of dimensions. The densities are mixtures of
# normal densities with variance 1, so sums over points at distance 1 equal the integrals up to 1e-8, and the uniform
# position of a draw in its cell adds at most 3e-3 to the variance.
COARSE, FINE = 1.0, {1: 0.1, 2: 0.2}
# Largest number of cells in each direction.
_MOST_CELLS = {1: 1 << 16, 2: 1 << 10}


def even_axes(box: Float64[np.ndarray, "r 2"], distance: float) -> list[Float64[np.ndarray, "_P"]]:
    """Midpoints of the cells into which a box is divided, in each direction."""
    found = []
    for low, high in box:
        count = min(_MOST_CELLS[len(box)], max(8, int(np.ceil((high - low) / distance))))
        found.append(low + (high - low) * (np.arange(count) + 0.5) / count)
    return found


def locates(box: Float64[np.ndarray, "r 2"]) -> bool:
    """Returns whether a grid for locating the mass on this box is not much coarser than its spacing should be."""
    return bool((box[:, 1] - box[:, 0]).max() <= 2 * COARSE * _MOST_CELLS[len(box)])


class DensityTable:
    """G densities on one grid, from their values at the midpoints of equal cells, each up to a constant factor.

    `log_integrals` are theirs, and `pooled` is the mean of the normalised densities, as probabilities of cells.
    """

    def __init__(self, axes: list[Float64[np.ndarray, "_P"]], log_densities: Float64[np.ndarray, "G *P"]):
        self._axes = axes
        self._cell = np.array([axis[1] - axis[0] for axis in axes])
        flat = log_densities.reshape(len(log_densities), -1)
        log_sums = logsumexp(flat, axis=1)
        self.log_integrals = log_sums + np.log(self._cell).sum()
        self._shares = np.exp(flat - log_sums[:, None])
        self.pooled = self._shares.mean(axis=0).reshape(log_densities.shape[1:])

    def effective_draws(self) -> float:
        """Returns the number of independent draws that would determine the density as well as its G independent
        estimates.
        """
        pooled = self.pooled.ravel()
        apart = (self._shares - pooled) ** 2 / np.where(pooled > 0, pooled, 1.0)
        squares = apart.sum(axis=1).mean()
        return float(len(self._shares) - 1) / squares if squares > 0 else float("inf")

    def hull(self, drop: float) -> Float64[np.ndarray, "r 2"]:
        """Returns the box around all cells whose pooled density is at least exp(-drop) of the largest."""
        inside = self.pooled >= np.exp(-drop) * self.pooled.max()
        found = []
        for number, axis in enumerate(self._axes):
            places = np.flatnonzero(inside.any(axis=tuple(k for k in range(inside.ndim) if k != number)))
            half = self._cell[number] / 2
            found.append([axis[places[0]] - half, axis[places[-1]] + half])
        return np.array(found)

    def peak(self) -> Float64[np.ndarray, "r"]:
        places = np.unravel_index(np.argmax(self.pooled), self.pooled.shape)
        return np.array([axis[place] for axis, place in zip(self._axes, places, strict=True)])

    def sample(self, rng: np.random.Generator, draws: int) -> Float64[np.ndarray, "G draws r"]:
        """Returns independent draws from each density, uniform within a cell."""
        sums = np.cumsum(self._shares, axis=1)
        cells = np.stack([np.searchsorted(one, rng.random(draws) * one[-1], side="right") for one in sums])
        places = np.stack(np.unravel_index(cells, self.pooled.shape), axis=-1)
        middles = np.stack([axis[places[..., k]] for k, axis in enumerate(self._axes)], axis=-1)
        return middles + (rng.random(middles.shape) - 0.5) * self._cell


# A function on a box, from noisy gradients at its nodes: least squares by Chebyshev polynomials.

# Degree relative to the number of nodes in a direction: fewer coefficients than gradients, so that a misfit shows.
_DEGREE = 2 / 3
# Errors of a gradient below this are ignored: over the distance between two nodes they change phi by less.
_EXACT_ENOUGH = 0.002


class GradientFit:
    """Fits functions phi up to an additive constant, which gradients leave undetermined.

    Gradients are needed at the `nodes` [Q, r], `count` Chebyshev nodes in each direction of the box. `freedom` is the
    number of gradients minus that of coefficients.
    """

    def __init__(self, box: Float64[np.ndarray, "r 2"], count: int):
        self._box, self._degree = box, int(np.ceil(_DEGREE * count))
        axis = np.cos(np.pi * (np.arange(count) + 0.5) / count)
        axes = [low + (high - low) * (axis + 1) / 2 for low, high in box]
        self.nodes = np.array(list(itertools.product(*axes)))
        designs = [self._design(self.nodes, slope) for slope in range(len(box))]
        self._matrix = np.concatenate(designs)
        self._inverse = np.linalg.pinv(self._matrix)
        self.freedom = self._matrix.shape[0] - self._matrix.shape[1]

    def _polynomials(self, points: np.ndarray, direction: int, derivative: bool) -> np.ndarray:
        low, high = self._box[direction]
        scaled = (2 * points - low - high) / (high - low)
        if not derivative:
            return chebyshev.chebvander(scaled, self._degree)
        slopes = chebyshev.chebder(np.eye(self._degree + 1)) * 2 / (high - low)
        return chebyshev.chebvander(scaled, self._degree - 1) @ slopes

    def _design(self, points: Float64[np.ndarray, "Q r"], slope: int) -> Float64[np.ndarray, "Q K"]:
        """Derivatives of all products of polynomials except the constant one."""
        factors = [self._polynomials(points[:, k], k, k == slope) for k in range(points.shape[1])]
        product = factors[0]
        for factor in factors[1:]:
            product = (product[:, :, None] * factor[:, None, :]).reshape(len(points), -1)
        return product[:, 1:]

    def __call__(self, gradients: Float64[np.ndarray, "G Q r"]) -> Float64[np.ndarray, "G K"]:
        """Returns the coefficients of the functions whose gradients fit best."""
        return _stacked(gradients) @ self._inverse.T

    def misfit(self, gradients: Float64[np.ndarray, "G Q r"]) -> float:
        """Returns how far the mean gradients are from what can be fitted: chi-squared for its degrees of freedom.

        About 1 where polynomials of this degree are enough.
        """
        columns = _stacked(gradients)
        mean, error = columns.mean(axis=0), columns.std(axis=0, ddof=1) / np.sqrt(len(columns))
        error = np.maximum(error, _EXACT_ENOUGH)
        apart = (mean - self._matrix @ (self._inverse @ mean)) / error
        return float(apart @ apart) / self.freedom

    def values(
        self, coefficients: Float64[np.ndarray, "G K"], axes: list[Float64[np.ndarray, "_P"]]
    ) -> Float64[np.ndarray, "G *P"]:
        """Returns the functions on the tensor product of axes."""
        degrees = [self._degree + 1] * len(axes)
        found = np.concatenate([np.zeros((len(coefficients), 1)), coefficients], axis=1).reshape(-1, *degrees)
        for number, axis in enumerate(axes):
            # The axis that is summed over goes, and that of the points comes last.
            found = np.tensordot(found, self._polynomials(axis, number, False), (1, 1))
        return found


def _stacked(gradients: Float64[np.ndarray, "G Q r"]) -> Float64[np.ndarray, "G rQ"]:
    return np.swapaxes(gradients, 1, 2).reshape(len(gradients), -1)


# How far log p(z) may be below its maximum where it counts, while the grid is rough and when it is known.
_ROUGH_DROP, _DROP = 12.0, 40.0
# Nodes in each direction at first and at most, by the number of directions.
_NODES = {1: (17, 129), 2: (9, 33)}
# Moments: of a warm-up, of the first round, and of all rounds at most.
_WARM_UP, _FIRST_ROUND, _MOST_MOMENTS = 32, 32, 4096
# The relative growth of the grid in each direction if it is too small.
_LARGER = 0.5
# Chi-squared per degree of freedom above which more nodes are needed.
_MOST_MISFIT = 2.0
# R-hat at a node above which chains disagree, whatever their number.
_DISAGREE = 1.1
# Variances below this are negligible.
_HARDLY = 1e-6
# Sweeps from the node to a draw, in autocorrelation times, and their limits.
_TIMES, _LEAST_BURN, _MOST_BURN = 5, 8, 512
# Part of a time limit that the table of z may take, and number of chains that draw in parallel.
_PART_OF_TABLE, _TOGETHER = 0.5, 4096
# Draws under a time limit if everything has a closed form.
_DRAWS_IN_TIME = 10_000
# Of the chains.
_STREAM = 64


def applies(terms: Coefficients, temperature: float, is_over: Callable[[], bool]) -> bool:
    """Returns whether few directions stand out from a rest that is narrow and small enough to sample."""
    spin = spin_terms(terms, temperature)
    found = find_directions(spin, is_over=is_over)
    if found is None or found.width >= NARROW or not locates(_reachable(found.loadings)):
        return False
    return len(spin.field) <= MOST_COUPLED or is_free(spin, found)


def draw(terms: Coefficients, temperature: float, options: Request, budget: Budget) -> Drawn:
    """Draws of every group.

    InputError: no direction stands out from the couplings, or the rest is too large.
    """
    spin = spin_terms(terms, temperature)
    directions = find_directions(spin)
    if directions is None:
        raise InputError("method low_rank: no direction stands out from the couplings; use method='tempering'")
    if not locates(_reachable(directions.loadings)):
        raise InputError(
            f"method low_rank: at temperature {temperature:g} the grid over the directions has too many points; use "
            "method='tempering'"
        )
    if is_free(spin, directions):
        return _in_closed_form(spin, directions, options, budget)
    return _by_chains(spin, directions, options, budget)


def _description(directions: Directions) -> dict:
    return {
        "directions": len(directions.strengths),
        "eigenvalues": ", ".join(f"{one:.3g}" for one in directions.eigenvalues),
        "width of the rest": round(directions.width, 3),
    }


def _reachable(loadings: Float64[np.ndarray, "N r"]) -> Float64[np.ndarray, "r 2"]:
    """Returns a box that contains every z up to six standard deviations of its noise."""
    most = np.abs(loadings).sum(axis=0) + 6
    return np.stack([-most, most], axis=1)


def _log_normal(axes: list[np.ndarray]) -> Float64[np.ndarray, "*P"]:
    """Returns the logarithm of the normal density on the tensor product of axes."""
    squares = sum(np.meshgrid(*(axis**2 for axis in axes), indexing="ij"))
    return -squares / 2 - len(axes) * np.log(2 * np.pi) / 2


def _in_closed_form(spin: ScaledSpins, directions: Directions, options: Request, budget: Budget) -> Drawn:
    rest = FreeRest(spin, directions.loadings)

    def table(box: np.ndarray, distance: float) -> DensityTable:
        axes = even_axes(box, distance)
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        log_z = rest.log_z(points.reshape(-1, len(axes))).reshape(points.shape[:-1])
        return DensityTable(axes, (log_z + _log_normal(axes))[None])

    rough = table(_reachable(directions.loadings), COARSE)
    fine = table(rough.hull(_DROP), FINE[len(directions.strengths)])
    each = options.draws_each or -(-_DRAWS_IN_TIME // options.groups)
    rng = np.random.default_rng(options.seed)
    states = rest.draw(rng, fine.sample(rng, each * options.groups)[0])
    budget.say(len(states))
    how = _description(directions) | {"means": "in closed form"}
    bits = packed(states.reshape(options.groups, each, -1))
    return Drawn(bits, "none", how, log_z=(float(fine.log_integrals[0]), 0.0), exact=True)


class _Nodes:
    """G chains at each node of a grid, for a fit of log Z0; chain g Q + q is group g's at node q."""

    def __init__(self, rest: CoupledRest, box: Float64[np.ndarray, "r 2"], count: int, groups: int, stream: int):
        self.fit = GradientFit(box, count)
        self._rest, self._box, self._groups = rest, box, groups
        self._points = np.tile(self.fit.nodes, (groups, 1))
        self._chains = rest.chains(len(self._points), stream)
        # Different starts: random in one group, along the fields in the next.
        shape = groups, len(self.fit.nodes), len(rest.terms.linear)
        states = np.random.default_rng((rest.seed, stream)).integers(0, 2, shape, np.int8)
        states[1::2] = rest.fields(self.fit.nodes) > 0
        self._chains.restart(states.reshape(len(self._points), -1), rest.fields(self._points))

    def watch(self, moments: int) -> Series:
        return self._rest.watch(self._chains, self._points, moments)

    def states(self) -> Int8[np.ndarray, "G Q N"]:
        return self._chains.current().reshape(self._groups, len(self.fit.nodes), -1)

    def gradients(self, series: Series) -> Float64[np.ndarray, "G Q r"]:
        """Gradients of log Z0 at the nodes, from each group."""
        return series.means[:, :-1].reshape(self._groups, len(self.fit.nodes), -1)

    def table(self, series: Series, distance: float) -> DensityTable:
        """Returns p(z), up to a constant for each group."""
        axes = even_axes(self._box, distance)
        return DensityTable(axes, self.fit.values(self.fit(self.gradients(series)), axes) + _log_normal(axes))

    def times(self, series: Series) -> Float64[np.ndarray, "Q K"]:
        """Returns autocorrelation times in records, assuming geometrically falling correlations."""
        shape = self._groups, len(self.fit.nodes), -1
        variance = (series.squares / series.moments - series.means**2).reshape(shape).mean(axis=0)
        moves = (series.moves / series.moments).reshape(shape).mean(axis=0)
        # Quantities that hardly vary count as white noise.
        correlation = np.clip(1 - (moves + _HARDLY) / (2 * variance + _HARDLY), 0, 0.999)
        return (1 + correlation) / (1 - correlation)

    def disagreement(self, first: Series, last: Series) -> tuple[float, float]:
        """Returns the split R-hat of the node where it is largest relative to its limit, and that limit; halves are
        equal.
        """
        count, both = first.moments, first.joined(last)
        halves = np.stack([first.means, last.means]).reshape(2 * self._groups, len(self.fit.nodes), -1)
        within = np.stack([one.squares / count - one.means**2 for one in (first, last)])
        within = within.reshape(halves.shape).mean(axis=0)
        between = halves.var(axis=0, ddof=1)
        r_hat = np.sqrt(1 + between / (within + _HARDLY))
        freedom = len(halves) - 1
        spread = chdtri(freedom, FALSE_ALARM / r_hat.size) / freedom
        limit = np.maximum(_DISAGREE, np.sqrt(1 + spread * self.times(both) / count))
        worst = np.unravel_index(np.argmax(r_hat / limit), r_hat.shape)
        return float(r_hat[worst]), float(limit[worst])


def _grown(box: np.ndarray, part: float, inside: np.ndarray) -> np.ndarray:
    """Returns a box that is larger by this part in each direction, but inside another one."""
    margin = 1 + part / 2 * (box[:, 1] - box[:, 0])
    return np.stack([np.maximum(box[:, 0] - margin, inside[:, 0]), np.minimum(box[:, 1] + margin, inside[:, 1])], 1)


def _where_the_mass_is(rest: CoupledRest, reachable: Float64[np.ndarray, "r 2"]) -> Float64[np.ndarray, "r 2"]:
    """Returns a guess by mean-field theory."""
    fit = GradientFit(reachable, _NODES[len(reachable)][1])
    axes = even_axes(reachable, COARSE)
    guess = fit.values(fit(rest.mean_field(fit.nodes)[None]), axes) + _log_normal(axes)
    return _grown(DensityTable(axes, guess).hull(_ROUGH_DROP), _LARGER / 2, reachable)


class _Table:
    """Estimates p(z), with more nodes while polynomials do not fit, and more sweeps while draws would show it.

    `density` is p(z) of each group, `reasons` are those against it, and `burn` the sweeps from a node to a draw.
    """

    def __init__(self, rest: CoupledRest, loadings: np.ndarray, options: Request, budget: Budget):
        least = (1 - _PART_OF_TABLE) * budget.left()
        wanted = np.inf if options.draws_each is None else options.draws_each * options.groups
        reachable = _reachable(loadings)
        box, (count, most_nodes) = _where_the_mass_is(rest, reachable), _NODES[loadings.shape[1]]
        for stream in itertools.count(_STREAM):
            self.nodes = _Nodes(rest, box, count, options.groups, stream)
            self.nodes.watch(_WARM_UP)
            first = self.nodes.watch(_FIRST_ROUND)
            while True:
                budget.check_interrupt()
                last = self.nodes.watch(first.moments)
                self.series = first.joined(last)
                misfit = self.nodes.fit.misfit(self.nodes.gradients(self.series))
                self.density = self.nodes.table(self.series, FINE[len(box)])
                larger = _grown(self.density.hull(_ROUGH_DROP), 0.0, reachable)
                outside = (larger[:, 0] < box[:, 0]) | (larger[:, 1] > box[:, 1])
                poor = misfit > _MOST_MISFIT or outside.any()
                over = self.series.moments >= _MOST_MOMENTS or budget.left() < least
                if poor or over or self.density.effective_draws() >= wanted:
                    break
                first = self.series
            if not poor or budget.left() < least or (not outside.any() and 2 * count - 1 > most_nodes):
                break
            if outside.any():
                box = _grown(box, _LARGER, reachable)
            else:
                count = 2 * count - 1
        slowest = SWEEPS * self.nodes.times(self.series).max()
        self.burn = int(np.clip(np.ceil(_TIMES * slowest), _LEAST_BURN, _MOST_BURN))
        self.reasons = []
        r_hat, limit = self.nodes.disagreement(first, last)
        if r_hat > limit:
            self.reasons.append(f"R-hat of chains at the same z is {min(r_hat, 99):.2f}, above {limit:.2f}")
        if misfit > _MOST_MISFIT:
            self.reasons.append(f"p(z) is not resolved by {count} nodes per direction")
        if outside.any():
            self.reasons.append("the grid over z does not hold all of the mass")

    def log_z(self, rest: CoupledRest, options: Request) -> tuple[float, float]:
        """Returns log Z and its standard error, Z0 at the peak included."""
        peak = self.density.peak()
        at_peak = rest.log_z(peak, _STREAM - 2)
        fit = self.nodes.fit
        values = fit.values(fit(self.nodes.gradients(self.series)), [np.array([one]) for one in peak])
        each = at_peak + self.density.log_integrals - values.reshape(options.groups)
        parts = np.exp(each - each.max())
        error = parts.std(ddof=1) / parts.mean() / np.sqrt(options.groups)
        return float(logsumexp(each) - np.log(options.groups)), float(error)


def _by_chains(spin: ScaledSpins, directions: Directions, options: Request, budget: Budget) -> Drawn:
    loadings, groups, size = directions.loadings, options.groups, len(spin.field)
    rest = CoupledRest(spin, loadings, options)
    table = _Table(rest, loadings, options, budget)
    log_z = table.log_z(rest, options)
    rng = np.random.default_rng(options.seed)
    near, states = cKDTree(table.nodes.fit.nodes), table.nodes.states()
    wanted = options.draws_each or 2**31
    together = min(wanted, max(1, _TOGETHER // groups))
    chains = rest.chains(groups * together, _STREAM - 1)
    found: list[np.ndarray] = []
    while sum(one.shape[1] for one in found) < wanted and not (found and budget.is_over()):
        points = table.density.sample(rng, together)
        start = states[np.arange(groups)[:, None], near.query(points)[1]]
        chains.restart(start.reshape(-1, size), rest.fields(points.reshape(-1, points.shape[2])))
        chains.record(1.0, 1, table.burn)
        found.append(chains.current().reshape(groups, together, size))
        budget.say(groups * together)
    reasons = list(table.reasons)
    if directions.width >= NARROW:
        reasons.insert(
            0, f"the spectrum of the remaining coupling is {directions.width:.2f} wide, not below {NARROW:g}"
        )
    how = _description(directions) | {
        "sampler": options.sampler, "engine": rest.engine, "nodes": len(table.nodes.fit.nodes), "groups": groups,
        "sweeps at a node": SWEEPS * table.series.moments, "sweeps a draw": table.burn,
        "steps": rest.steps + chains.steps,
    }  # fmt: skip
    bits = packed(np.concatenate(found, axis=1)[:, :wanted])
    return Drawn(bits, "group", how, tuple(reasons), log_z=log_z, interrupted=budget.interrupted)
