"""Method `low_rank`: stochastic localization of the few directions that a local sampler cannot
cross.

Let the coupling of p(s) ~ exp(1/2 s'Js + b's) be J = J0 + U D U', where U [N, r] are eigenvectors
whose eigenvalues stand D above the mean of the rest. Given the observation z = D^(1/2) U's + noise,
noise ~ N(0, I),

    p(s|z) ~ exp(1/2 s'J0 s + (b + U D^(1/2) z)'s),    p(z) ~ exp(-|z|^2/2) Z0(b + U D^(1/2) z),

where Z0 is the normalisation of p(s|z), and the gradient of log Z0 with respect to z is D^(1/2)
U'E[s|z]. There are three steps:

1. parallel chains at the nodes of a grid over z estimate E[s|z], by Rao-Blackwell means;
2. log Z0 is fitted to these gradients, which gives a table of p(z) and, with Z0 at one node, log Z;
3. z is drawn from the table, and s given z by a chain that starts at the nearest node.

If J0 = 0 everything has a closed form. The draws are as accurate as the chains given z, which mix
fast if the spectrum of J0 is narrower than 1 (Koehler, Lee and Risteski 2022). If it is wider, or
if chains with different starts at the same z disagree, the verdict says so. Groups share only the
grid, and their differences give the error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float32, Float64
from scipy.spatial import cKDTree
from scipy.special import expit, logsumexp

from sl_discs.chains.budget import Budget
from sl_discs.models.terms import Coefficients, SpinForm, from_spin, to_spin
from sl_discs.sampling.diagnostics import FALSE_ALARM, above, spread_by_chance
from sl_discs.sampling.directions import (
    COARSE,
    FINE,
    MOST_CELLS,
    NARROW,
    DensityTable,
    Directions,
    GradientFit,
    even_axes,
    find_directions,
)
from sl_discs.sampling.drawn import (
    LEAST_VISITS,
    ROUNDED,
    ROUNDING,
    Drawn,
    Estimate,
    Request,
    packed,
    visits,
)
from sl_discs.sampling.plain_chains import RecordedChains
from sl_discs.support.errors import InputError

# The largest number of variables of chains: J0 is a dense matrix, whose rows would take gigabytes.
MOST_COUPLED = 4096
# Couplings whose sum over all pairs is below this change no probability measurably.
_NOTHING = 1e-7
# How far log p(z) may be below its maximum where it counts, while the grid is rough and when it is
# known.
_ROUGH_DROP, _DROP = 12.0, 40.0
# Nodes in each direction at first and at most, by the number of directions.
_NODES = {1: (17, 129), 2: (9, 33)}
# Sweeps between two records, each of which costs about as much as a sweep. Records: of a warm-up,
# of the first round, and of all rounds at most.
_SWEEPS, _WARM_UP, _FIRST_ROUND, _MOST_RECORDS = 2, 32, 32, 4096
# Fractions of J0 at which its share of log Z0 is computed, records at each, and rounds of
# mean-field theory.
_PARTS, _MOMENTS_OF_A_PART, _ROUNDS = 6, 128, 50
# The relative growth of the grid in each direction if it is too small.
_LARGER = 0.5
# Chi-squared per degree of freedom above which nodes are too few, and R-hat at a node above which
# chains disagree.
_MOST_MISFIT, _DISAGREE = 2.0, 1.1
# Variances below this are negligible.
_HARDLY = 1e-6
# Sweeps from the node to a draw, in autocorrelation times, and their limits.
_TIMES, _LEAST_BURN, _MOST_BURN = 5, 8, 512
# Part of a time limit that the table of z may take, and number of chains that draw in parallel.
_PART_OF_TABLE, _TOGETHER = 0.5, 4096
# Draws under a time limit if everything has a closed form, and numbers of a piece of that work.
_DRAWS_IN_TIME = 10_000
_PIECE = 2**24
# Of the chains.
_STREAM = 64


def applies(request: Request, is_over: Callable[[], bool]) -> bool:
    """Returns whether few directions stand out from a rest that is narrow and small enough to
    sample.
    """
    assert isinstance(request.terms, Coefficients)
    spin = to_spin(request.terms, request.temperature)
    axes = find_directions(spin, is_over)
    return axes is not None and axes.width < NARROW and not _too_large(spin, axes.loadings)


def draw(request: Request, budget: Budget) -> Drawn:
    """Draws of every group.

    InputError: no direction stands out from the couplings, or the rest is too large.
    """
    assert isinstance(request.terms, Coefficients)
    spin = to_spin(request.terms, request.temperature)
    directions = find_directions(spin)
    lacking = "no direction stands out from the couplings"
    if directions is None or (lacking := _too_large(spin, directions.loadings)):
        raise InputError(f"method low_rank: {lacking}; use the method tempering")
    by = _in_closed_form if _is_free(spin, directions.loadings) else _by_chains
    return by(spin, directions, request, budget)


def _too_large(spin: SpinForm, loadings: Float64[np.ndarray, "N r"]) -> str:
    """Returns which part of the work would take too much memory; empty if none."""
    # A grid for locating the mass may not be much coarser than its spacing should be.
    if np.ptp(_reachable(loadings), axis=1).max() > 2 * COARSE * MOST_CELLS[loadings.shape[1]]:
        return "at this temperature the grid over the directions has too many points"
    if len(loadings) <= MOST_COUPLED or _is_free(spin, loadings):
        return ""
    return (
        f"without the outlying directions, the remaining coupling is dense on {len(loadings):,} "
        f"variables, above {MOST_COUPLED:,}"
    )


def _description(directions: Directions) -> dict:
    return {
        "directions": directions.loadings.shape[1],
        "eigenvalues": ", ".join(f"{eigenvalue:.3g}" for eigenvalue in directions.eigenvalues),
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


def _log_cosh(fields: Float64[np.ndarray, "*B N"]) -> Float64[np.ndarray, "*B"]:
    """Returns log Z of independent spins, the sum of log 2 cosh of their fields."""
    fields = np.abs(fields)
    return (fields + np.log1p(np.exp(-2 * fields))).sum(axis=-1)


def _is_free(spin: SpinForm, loadings: Float64[np.ndarray, "N r"]) -> bool:
    """Returns whether J0 = J - U D U' is zero except on its diagonal, which is a constant
    on spins.
    """
    probes = np.random.default_rng(0).choice((-1.0, 1.0), (len(loadings), 2))
    diagonal = (loadings**2).sum(axis=1)
    left = spin.times(probes) - loadings @ (loadings.T @ probes) + diagonal[:, None] * probes
    return float(np.linalg.norm(left, axis=0).max()) * np.sqrt(len(loadings)) < _NOTHING


def _in_closed_form(
    spin: SpinForm, directions: Directions, request: Request, budget: Budget
) -> Drawn:
    """Draws where spins are independent given z."""
    loadings = directions.loadings
    groups = request.groups

    def of_fields(
        function: Callable[[np.ndarray], np.ndarray], points: Float64[np.ndarray, "Q r"]
    ) -> np.ndarray:
        """Applies a function to the fields given each z, a piece of bounded size after the
        other.
        """
        step = max(1, _PIECE // len(loadings))
        some = (points[start : start + step] for start in range(0, len(points), step))
        return np.concatenate([function(spin.fields + part @ loadings.T) for part in some])

    def table(box: np.ndarray, distance: float) -> DensityTable:
        axes = even_axes(box, distance)
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        log_z = of_fields(_log_cosh, points.reshape(-1, len(axes))).reshape(points.shape[:-1])
        return DensityTable(axes, (log_z + _log_normal(axes))[None])

    rough = table(_reachable(loadings), COARSE)
    fine = table(rough.hull(_DROP), FINE[loadings.shape[1]])
    each = request.draws_each or -(-_DRAWS_IN_TIME // groups)
    rng = np.random.default_rng(request.seed)
    points = fine.sample(rng, each * groups)[0]
    states = of_fields(
        lambda fields: (rng.random(fields.shape) < expit(2 * fields)).astype(np.int8), points
    )
    budget.advance(len(states))
    how = _description(directions) | {"means": "in closed form"}
    bits = packed(states.reshape(groups, each, -1))
    # s_i^2 = 1: the diagonal of U D U' counts in the observation and not in J.
    log_z = float(fine.log_integrals[0]) + spin.constant - (loadings**2).sum() / 2
    # An integral over a grid of functions that `_is_free` takes for those of independent spins.
    error = _NOTHING + ROUNDING * abs(log_z)
    return Drawn(bits, "none", how, log_z=Estimate(log_z, error), exact=True)


class _Rest:
    """s given z, for chains of a base sampler at temperature 1, each with a z of its own.

    `request` asks for draws of 1/2 s'J0 s, without its constant, and `steps` are the Markov steps
    of `log_z`.
    """

    def __init__(self, spin: SpinForm, loadings: Float64[np.ndarray, "N r"], request: Request):
        couplings = spin.matrix() - loadings @ loadings.T
        np.fill_diagonal(couplings, 0.0)
        self.loadings = loadings
        self.couplings = couplings.astype(np.float32)
        self.reachable = _reachable(loadings)
        self._field = spin.fields.astype(np.float32)
        self.steps = 0
        pairs = np.stack(np.triu_indices(len(couplings), 1), axis=1).astype(np.int32)
        terms = from_spin(SpinForm(np.zeros(len(couplings)), pairs, couplings[tuple(pairs.T)], 0.0))
        self.request = request._replace(terms=terms, temperature=1.0)
        # Constants that chains omit, from x in {0,1}^N and from s_i^2 = 1.
        self._pairs_constant = terms.constant
        self._constant = spin.constant - (loadings**2).sum() / 2

    def fields(self, points: Float64[np.ndarray, "B r"]) -> Float32[np.ndarray, "B N"]:
        """Returns b + U D^(1/2) z, the tilt of each chain."""
        return self._field + points.astype(np.float32) @ self.loadings.T.astype(np.float32)

    def where_the_mass_is(self) -> Float64[np.ndarray, "r 2"]:
        """Returns a guess, by gradients from the naive mean-field equations m = tanh(b + U D^(1/2)
        z + J0 m).
        """
        fit = GradientFit(self.reachable, _NODES[len(self.reachable)][1])
        fields = self.fields(fit.nodes)
        means = np.tanh(fields)
        for _ in range(_ROUNDS):
            means = (means + np.tanh(fields + means @ self.couplings)) / 2
        axes = even_axes(self.reachable, COARSE)
        guess = fit((means @ self.loadings)[None], axes) + _log_normal(axes)
        return _grown(DensityTable(axes, guess).hull(_ROUGH_DROP), _LARGER / 2, self.reachable)

    def log_z(self, z: Float64[np.ndarray, "r"]) -> tuple[Float64[np.ndarray, "G"], float]:
        """Returns the logarithm of the sum over s given z, for each group, and how many values it
        rests on: where nearly all agree, so do the groups, and nothing bounds the error.

        Without J0 it has a closed form. The rest is the mean of 1/2 s'J0 s under lambda J0,
        integrated over lambda in [0, 1]. The tilt holds all other terms, so that lambda is an
        inverse temperature.
        """
        parts, weights = np.polynomial.legendre.leggauss(_PARTS)
        temperatures = np.tile(2 / (1 + parts), self.request.groups)
        chains = RecordedChains(self.request, len(temperatures), stream=_STREAM - 2)
        chains.temperatures = temperatures
        fields = self.fields(np.tile(z, (len(temperatures), 1)))
        chains.restart((fields > 0).astype(np.int8), fields)
        chains.record(1, _WARM_UP)
        recorded = chains.record(_MOMENTS_OF_A_PART, _SWEEPS).values
        self.steps += chains.steps
        values = recorded.mean(axis=0, dtype=float).reshape(self.request.groups, -1)
        rounding = ROUNDED * self.request.terms.reach()
        least = min(visits(part, rounding) for part in recorded.reshape(-1, _PARTS).T)
        coupled = (values + self._pairs_constant) @ weights / 2
        return self._constant + _log_cosh(fields[0].astype(np.float64)) + coupled, least


class _Nodes:
    """G chains at each of Q nodes of a grid, for a fit of log Z0; chain g Q + q is group g's at
    node q.

    `moments` are means over all `num_records` records: of K observables, their squares and squared
    changes. `halves` are those of the earlier and the later records.
    """

    def __init__(self, rest: _Rest, box: Float64[np.ndarray, "r 2"], count: int, stream: int):
        self.fit = GradientFit(box, count)
        self._rest = rest
        self._shape = rest.request.groups, len(self.fit.nodes)
        self._fields = rest.fields(np.tile(self.fit.nodes, (self._shape[0], 1)))
        self.chains = RecordedChains(rest.request, len(self._fields), stream=stream)
        # Different starts: random in one group, along the fields in the next.
        rng = np.random.default_rng((rest.request.seed, stream))
        states = rng.integers(0, 2, (*self._shape, self.chains.size), np.int8)
        states[1::2] = rest.fields(self.fit.nodes) > 0
        self.chains.restart(states.reshape(self._fields.shape), self._fields)
        self._watch(_WARM_UP)
        self.num_records = _FIRST_ROUND
        self.moments = self._watch(_FIRST_ROUND)

    def _watch(self, num_records: int) -> Float64[np.ndarray, "3 G Q K"]:
        """Continues the chains, and returns the moments of D^(1/2) U'E[s_i | other spins] and
        1/2 s'J0 s over `num_records` records.

        These conditional means have the same expectations as the spins, and less variance
        (Rao-Blackwell).
        """
        loadings = self._rest.loadings.astype(np.float32)
        last = None
        sums = np.zeros((3, len(self._fields), loadings.shape[1] + 1))
        for recorded in self.chains.play(num_records, _SWEEPS):
            for states, values in zip(recorded.states, recorded.values, strict=True):
                spins = 2 * states.astype(np.float32) - 1
                seen = np.tanh(spins @ self._rest.couplings + self._fields) @ loadings
                now = np.concatenate([seen, values[:, None]], axis=1).astype(np.float64)
                sums += now, now**2, (now - (now if last is None else last)) ** 2
                last = now
        return sums.reshape(3, *self._shape, -1) / num_records

    def double(self) -> None:
        """Makes as many records again."""
        self.halves = np.stack([self.moments, self._watch(self.num_records)], axis=1)
        self.moments = self.halves.mean(axis=1)
        self.num_records *= 2

    @property
    def gradients(self) -> Float64[np.ndarray, "G Q r"]:
        """Returns the gradients of log Z0 at the nodes, from each group."""
        return self.moments[0, :, :, :-1]

    def times(self) -> Float64[np.ndarray, "Q K"]:
        """Returns autocorrelation times in records, assuming geometrically falling correlations."""
        means, squares, moves = self.moments
        variance = (squares - means**2).mean(axis=0)
        # Quantities that hardly vary count as white noise.
        changed = moves.mean(axis=0) + _HARDLY
        correlation = np.clip(1 - changed / (2 * variance + _HARDLY), 0, 0.999)
        return (1 + correlation) / (1 - correlation)

    def disagreement(self) -> tuple[float, float]:
        """Returns the split R-hat of the node where it is largest relative to its limit, and that
        limit.
        """
        means, squares, _ = self.halves.reshape(3, -1, *self.moments.shape[2:])
        within = (squares - means**2).mean(axis=0)
        r_hat = np.sqrt(1 + means.var(axis=0, ddof=1) / (within + _HARDLY))
        spread = spread_by_chance(len(means), FALSE_ALARM / r_hat.size)
        limit = np.maximum(_DISAGREE, np.sqrt(1 + 2 * spread * self.times() / self.num_records))
        worst = np.unravel_index(np.argmax(r_hat / limit), r_hat.shape)
        return float(r_hat[worst]), float(limit[worst])


def _grown(box: np.ndarray, part: float, inside: np.ndarray) -> np.ndarray:
    """Returns a box that is larger by this part in each direction, but inside another one."""
    margin = 1 + part / 2 * (box[:, 1] - box[:, 0])
    return np.clip(box + margin[:, None] * [-1, 1], inside[:, :1], inside[:, 1:])


def _table(rest: _Rest, budget: Budget) -> tuple[_Nodes, DensityTable, list[str]]:
    """Estimates p(z), with more nodes while polynomials do not fit, and more sweeps while draws
    would show it.

    Returns the nodes, p(z) of each group, and the reasons against it.
    """
    request = rest.request
    least = (1 - _PART_OF_TABLE) * budget.left()
    wanted = np.inf if request.draws_each is None else request.draws_each * request.groups
    box = rest.where_the_mass_is()
    count, most_nodes = _NODES[len(box)]
    for stream in itertools.count(_STREAM):
        nodes = _Nodes(rest, box, count, stream)
        while True:
            budget.check_interrupt()
            nodes.double()
            misfit = nodes.fit.misfit(nodes.gradients)
            axes = even_axes(box, FINE[len(box)])
            density = DensityTable(axes, nodes.fit(nodes.gradients, axes) + _log_normal(axes))
            larger = _grown(density.hull(_ROUGH_DROP), 0.0, rest.reachable)
            outside = (larger[:, 0] < box[:, 0]) | (larger[:, 1] > box[:, 1])
            poor = misfit > _MOST_MISFIT or outside.any()
            over = nodes.num_records >= _MOST_RECORDS or budget.left() < least
            if poor or over or density.effective_draws() >= wanted:
                break
        rest.steps += nodes.chains.steps
        if not poor or budget.left() < least or (not outside.any() and 2 * count - 1 > most_nodes):
            break
        if outside.any():
            box = _grown(box, _LARGER, rest.reachable)
        else:
            count = 2 * count - 1
    reasons = []
    r_hat, limit = nodes.disagreement()
    if r_hat > limit:
        reasons.append(f"R-hat of chains at the same z is {above(r_hat, limit, 2)}")
    if misfit > _MOST_MISFIT:
        reasons.append(f"p(z) is not resolved by {count} nodes per direction")
    if outside.any():
        reasons.append("the grid over z does not hold all of the mass")
    return nodes, density, reasons


def _by_chains(spin: SpinForm, directions: Directions, request: Request, budget: Budget) -> Drawn:
    """Draws z from a table, and spins given z by chains from the nearest node."""
    groups = request.groups
    size = spin.num_spins
    rest = _Rest(spin, directions.loadings, request)
    nodes, density, reasons = _table(rest, budget)
    # With Z0 at the peak, log Z and its standard error.
    peak = density.peak()
    at_peak = nodes.fit(nodes.gradients, list(peak[:, None])).reshape(groups)
    at_z, rests_on = rest.log_z(peak)
    each = at_z + density.log_integrals - at_peak
    parts = np.exp(each - each.max())
    error = (
        parts.std(ddof=1) / parts.mean() / np.sqrt(groups) if rests_on >= LEAST_VISITS else np.nan
    )
    log_z = Estimate(float(logsumexp(each) - np.log(groups)), float(error))
    burn = int(np.clip(np.ceil(_TIMES * _SWEEPS * nodes.times().max()), _LEAST_BURN, _MOST_BURN))
    rng = np.random.default_rng(request.seed)
    near = cKDTree(nodes.fit.nodes)
    states = nodes.chains.current().reshape(groups, -1, size)
    wanted = request.draws_each or 2**31
    together = min(wanted, max(1, _TOGETHER // groups))
    chains = RecordedChains(rest.request, groups * together, stream=_STREAM - 1)
    batches: list[np.ndarray] = []
    while sum(batch.shape[1] for batch in batches) < wanted and not (batches and budget.is_over()):
        points = density.sample(rng, together)
        start = states[np.arange(groups)[:, None], near.query(points)[1]]
        chains.restart(start.reshape(-1, size), rest.fields(points.reshape(-1, points.shape[2])))
        chains.record(1, burn)
        batches.append(chains.current().reshape(groups, together, size))
        budget.advance(groups * together)
    if directions.width >= NARROW:
        reasons.insert(
            0,
            f"the spectrum of the remaining coupling is {directions.width:.2f} wide, not below "
            f"{NARROW:g}",
        )
    how = _description(directions) | {
        "sampler": request.method.name,
        "engine": chains.engine.name,
        "nodes": len(nodes.fit.nodes),
        "groups": groups,
        "sweeps at a node": _SWEEPS * nodes.num_records,
        "sweeps a draw": burn,
        "steps": rest.steps + chains.steps,
    }
    bits = packed(np.concatenate(batches, axis=1)[:, :wanted])
    return Drawn(bits, "group", how, tuple(reasons), log_z=log_z)
