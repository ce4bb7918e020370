"""Method `tempering`: non-reversible parallel tempering on several independent ladders.

Each ladder leads from infinite temperature, where a sweep forgets everything, to the target
temperature. Even and odd pairs of neighbours alternate in swapping their states (Okabe et al. 2001;
Syed et al. 2022). Rounds of doubling length place the rungs so that all swaps are rejected equally
often, and choose their number; then the ladder is fixed, and draws are taken from its coldest rung.

R-hat compares the ladders, of which the first half start hot, in random states, and the second half
cold, in the best states that chains reach at the target temperature. At a transition of first
order, hot starts meet the phase of many states and cold ones that of the largest values, and where
ladders do not lead from one to the other, they disagree.

On sparse graphs the cold rungs of two ladders swap clusters (Houdayer 2001, `engines.cpu.lanes`).
The two are independent at each moment, but not over time: draws, values and round trips then count
by pair of ladders.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float, Float64, Int
from scipy import optimize
from scipy.special import expit

from sl_discs.chains.budget import Budget
from sl_discs.models.functions import Terms
from sl_discs.sampling.diagnostics import effective_size, spread_by_chance
from sl_discs.sampling.drawn import ROUNDING, Drawn, Estimate, Ladder, Request, value_at
from sl_discs.sampling.plain_chains import (
    FIRST_ROUND,
    MOST_SWEEPS_A_DRAW,
    Recorded,
    RecordedChains,
    by_group,
    collect,
    dispersed,
    scalars,
    sweeps_a_draw,
)
from sl_discs.sampling.thermodynamics import ladder_curve

# A ladder of temperatures for tempering: the placement of its rungs, and its round trips (Syed et
# al. 2022).
#
# Swaps between neighbours are rejected with rates r_k. Their cumulative sum, the barrier, is a
# function of the inverse temperature that hardly depends on the ladder, and the best ladder of R
# rungs has equal increments of it.

# A rate of 0 would leave no distance between two rungs.
_LEAST_RATE = 1e-3
_MOST_RUNGS = 128
# Rates above this on average say little of the barrier but that there are too few rungs.
_SATURATED = 0.7


def rejection_rates(
    inverse: Float64[np.ndarray, "R"], values: Float[np.ndarray, "D L R"]
) -> Float64[np.ndarray, "Q"]:
    """Returns the mean probability that each swap is rejected, from f at each rung in D records of
    L ladders.
    """
    gains = np.diff(inverse) * np.diff(values.astype(np.float64), axis=2)
    return 1 - np.exp(-np.maximum(gains, 0)).mean(axis=(0, 1))


def adapted_ladder(
    inverse: Float64[np.ndarray, "R"], rates: Float64[np.ndarray, "Q"], rungs: int
) -> Float64[np.ndarray, "S"]:
    """Returns `rungs` inverse temperatures with equal increments of the barrier."""
    barrier = np.concatenate([[0.0], np.cumsum(np.maximum(rates, _LEAST_RATE))])
    interpolated = np.interp(np.linspace(0, barrier[-1], rungs), barrier, inverse)
    interpolated[[0, -1]] = inverse[[0, -1]]
    return interpolated


def best_number_of_rungs(rates: Float64[np.ndarray, "Q"]) -> int:
    """Returns about twice the barrier, where half of the swaps succeed and round trips are most
    frequent for the work.

    If there are far too few rungs to estimate the barrier, it doubles their number.
    """
    saturated = rates.mean() > _SATURATED
    wanted = 2 * (len(rates) + 1) if saturated else math.ceil(2 * rates.sum()) + 1
    return int(np.clip(wanted, 3, _MOST_RUNGS))


def round_trips(swaps: Bool[np.ndarray, "D L R"]) -> Int[np.ndarray, "L"]:
    """Returns the number of round trips of states from the hottest rung to the coldest one and
    back, in each ladder.

    Rung k swapped with k + 1, or did not, at each of D records; rung 0 is the coldest.
    """
    num_records, ladders, rungs = swaps.shape
    # In each row, the place that the replica of a rung comes from.
    source = np.tile(np.arange(ladders * rungs), (num_records, 1)).reshape(swaps.shape)
    source[:, :, :-1] += swaps[:, :, :-1]
    source[:, :, 1:] -= swaps[:, :, :-1]
    # Of the replica at each place: 0 before it was at the hottest rung, 1 after it, and -1 once it
    # was at the coldest rung since.
    stage = np.zeros(ladders * rungs, np.int8)
    arrived = np.empty((num_records, ladders), np.int8)
    for record in range(num_records):
        stage = stage[source[record].ravel()]
        arrived[record] = stage[rungs - 1 :: rungs]
        stage[rungs - 1 :: rungs] = 1
        stage[::rungs] = -abs(stage[::rungs])
    return (arrived < 0).sum(axis=0)


# log Z from the values of f at the temperatures of a ladder: Bennett's acceptance ratio between
# neighbours.
#
# With equally many draws at two inverse temperatures b < b', log Z(b')/Z(b) is the C at which the
# sum over the draws at b of sigmoid((b' - b) f - C) equals the sum over those at b' of sigmoid(C -
# (b' - b) f), the estimate of least variance (Bennett 1976). The neighbours' ratios add up from
# infinite temperature, where Z is the number of states, to the temperature that is asked for. The
# states are those at which f is finite, as chains never leave them.

# About how many blocks are left out in turn.
_BLOCKS = 20


def blocks_of(values: Float[np.ndarray, "L D R"]) -> list[Float[np.ndarray, "_D R"]]:
    """Returns the records of L ladders in nearly independent blocks, about `_BLOCKS` of them."""
    blocks = max(1, min(_BLOCKS // values.shape[0], values.shape[1] // 2))
    bounds = np.arange(blocks + 1) * values.shape[1] // blocks
    return [values[row, a:b] for row in range(len(values)) for a, b in itertools.pairwise(bounds)]


def log_ratios(
    inverse: Float64[np.ndarray, "R"], parts: Sequence[Float[np.ndarray, "_D R"]]
) -> tuple[Float64[np.ndarray, "Q"], Float64[np.ndarray, "K Q"]]:
    """Returns the logarithms of Z at each rung over Z at the one before it, from values of f at
    each rung in K nearly independent blocks, and the same without each block.
    """
    joined = np.concatenate(parts)
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    ratios = np.empty(len(inverse) - 1)
    without = np.empty((len(parts), len(inverse) - 1))
    for rung, step in enumerate(np.diff(inverse)):
        lower, upper = (step * joined[:, index].astype(np.float64) for index in (rung, rung + 1))
        least = min(lower.min(), upper.min())
        most = max(lower.max(), upper.max())
        ratio = optimize.brentq(
            lambda c, a, b: expit(a - c).sum() - expit(c - b).sum(), least, most, (lower, upper)
        )
        # A step of Newton's method from the ratio of all draws to that without a block.
        below = expit(lower - ratio)
        above = expit(ratio - upper)
        excess = np.add.reduceat(below - above, starts)
        slopes = np.add.reduceat(below * (1 - below) + above * (1 - above), starts)
        moved = excess / np.maximum(slopes.sum() - slopes, 1e-300)
        ratios[rung] = ratio
        without[:, rung] = np.clip(ratio - moved, least, most)
    return ratios, without


def log_z_of_ladder(
    log_states: tuple[float, float],
    inverse: Float64[np.ndarray, "R"],
    values: Float[np.ndarray, "L D R"],
) -> Estimate | None:
    """Returns log Z at the last temperature, and its standard error by leaving out one block of
    draws at a time; NaN if all values agree. None if the number of states is unknown.

    `log_states` is the logarithm of the number of states and its error, inverse temperatures begin
    at 0, and values are those of f at each of them, of D draws of L independent ladders.
    """
    if math.isnan(log_states[0]):
        return None
    parts = blocks_of(values)
    ratios, without = log_ratios(inverse, parts)
    log_z = log_states[0] + float(ratios.sum())
    variance = (len(parts) - 1) * without.sum(axis=1).var()
    # As of a mean: where all values agree, nothing bounds those of other states.
    if values.min() == values.max():
        variance = math.nan
    return Estimate(log_z, math.hypot(math.sqrt(variance), log_states[1], ROUNDING * log_z))


# Rungs at first, and rounds that adapt them: sweeps of the first one; each later one is twice as
# long. The last one keeps their number, and is followed by a round that warms the chains up.
_FIRST_RUNGS, _ROUNDS, _FIRST_ROUND = 16, 5, 32
_LAST_ROUND = 256
# Parts of a time limit after which the search for a ladder ends, and the warm-up.
_SEARCH_PART, _WARM_UP_PART = 0.5, 0.3
# Relative tolerance of the number of rungs.
_ABOUT_RIGHT = 0.2
# Of the first chains, which the others follow, and of those that tell whether ladders are needed.
_STREAM, _PILOT = 16, 4_096
# So many of these count sums of spins, and forget their starts if they are worth this many
# independent draws within the longest pilot.
_PILOTS, _SUMS, _FORGOTTEN, _LONGEST_PILOT = 8, 4, 100, 2_048
# With fewer round trips in total, modes that only tempering connects were hardly connected.
_LEAST_ROUND_TRIPS = 20
_MOST_MOMENTS_FOR_LOG_Z = 2_000
_UNCOUNTED = (
    "log Z is unknown, as too few of all states have a probability above 0 to be counted "
    "by drawing random states"
)
# Records times rungs from which values at other temperatures are computed, about twenty times.
_MOST_REWEIGHTED = 5_000_000
# Ladders swap clusters where no site has more couplings, in this part of their rungs, the coldest
# ones. On cubic lattices, with 6 couplings, no gain was measured: there most differing sites are in
# one large cluster. At least two pairs are needed, as R-hat compares them, and many more sites than
# a site has neighbours.
_MOST_NEIGHBOURS = 4
_CLUSTERED = 1 / 3
_LEAST_PAIRS = 2
_SITES_A_NEIGHBOUR = 16


def swaps_clusters(terms: Terms, ladders: int) -> bool:
    """Returns whether cluster moves are worth their time, and there are enough ladders for them."""
    has_pairs = ladders % 2 == 0 and ladders >= 2 * _LEAST_PAIRS
    return has_pairs and terms.max_degree() <= min(
        _MOST_NEIGHBOURS, terms.num_sites / _SITES_A_NEIGHBOUR
    )


class _Ladders(RecordedChains):
    """Ladders of R rungs each, the coldest first; `inverse` are 1/temperature of the rungs, the
    hottest first. Without swaps, rungs are chains by themselves.
    """

    def __init__(self, request: Request, inverse: np.ndarray, stream: int, swaps: bool = True):
        clusters = 0
        if swaps and swaps_clusters(request.terms, request.groups):
            clusters = math.ceil(_CLUSTERED * len(inverse))
        super().__init__(
            request,
            request.groups * len(inverse),
            adapting=_FIRST_ROUND,
            rungs=len(inverse) if swaps else 1,
            stream=stream,
            clusters=clusters,
        )
        self.ladders = request.groups
        self.place(inverse)

    def place(self, inverse: Float64[np.ndarray, "R"]) -> None:
        """Gives the rungs other temperatures."""
        self.inverse = inverse
        with np.errstate(divide="ignore"):
            self.temperatures = np.tile(1 / inverse[::-1], self.ladders)

    def by_rung(self, recorded: Recorded) -> np.ndarray:
        """Returns the values [D, C, R], the hottest rung first."""
        return recorded.values.reshape(-1, self.ladders, self.rungs)[:, :, ::-1]

    def followed_by(self, inverse: np.ndarray, stream: int) -> _Ladders:
        """Returns ladders with other rungs, which start from the states at the nearest
        temperature.
        """
        following = _Ladders(self.request, inverse, stream, self.rungs > 1)
        nearest = np.abs(inverse[::-1, None] - self.inverse[::-1]).argmin(axis=1)
        states = self.current().reshape(self.ladders, len(self.inverse), -1)[:, nearest]
        following.restart(states.reshape(-1, self.size))
        following.steps = self.steps
        return following


def draw(request: Request, budget: Budget) -> Drawn:
    """Draws from the coldest rung of every ladder."""
    chains = _adapted(request, budget, budget.after(_SEARCH_PART))
    # Ladders of a group.
    each = 2 if chains.clusters else 1
    warm = chains.record(_LAST_ROUND, is_over=budget.after(_WARM_UP_PART))
    thinning = _sweeps_a_draw(chains, warm) if len(warm.states) == _LAST_ROUND else 1
    recorded, drawn = collect(chains, budget, thinning, each=each)
    values = chains.by_rung(recorded)
    of_ladders = round_trips(recorded.swaps.reshape(-1, chains.ladders, chains.rungs))
    trips = of_ladders.reshape(-1, each).sum(axis=1)
    every = -(-len(values) // _MOST_MOMENTS_FOR_LOG_Z)
    some = np.swapaxes(by_group(values[::every], each), 0, 1)
    log_states = request.terms.log_states(np.random.default_rng(request.seed))
    log_z = log_z_of_ladder(log_states, chains.inverse, some)
    curve = None
    if request.temperatures:
        parts = blocks_of(some[:, :: -(-some.size * chains.rungs // _MOST_REWEIGHTED)])
        ratios = log_ratios(chains.inverse, parts)
        curve = ladder_curve(request.temperatures, chains.inverse, parts, ratios, log_states)
    how = {
        "sampler": request.method.name,
        "engine": chains.engine.name,
        "ladders": chains.ladders,
        "rungs": chains.rungs,
        "rungs with cluster moves": chains.clusters,
        "sweeps a draw": thinning,
        "round trips": int(trips.sum()),
        "steps": chains.steps,
    }
    return drawn._replace(
        how=how,
        reasons=_reasons(of_ladders),
        ladder=Ladder(
            chains.inverse,
            1 - rejection_rates(chains.inverse, values),
            trips,
            values.mean((0, 1), float),
        ),
        log_z=log_z,
        most_effective=_effective(trips),
        curve=curve,
        observables={
            value_at(t): some[:, :, np.abs(chains.inverse - 1 / t).argmin()]
            for t in request.temperatures
            if t != request.temperature
        },
        notes=() if log_z else (_UNCOUNTED,),
    )


def _adapted(request: Request, budget: Budget, is_over: Callable[[], bool]) -> _Ladders:
    """Returns ladders whose swaps are rejected equally often.

    The second half of the ladders have cold starts, one for all rungs of a ladder. With every
    second ladder, pairs of ladders would not differ in their starts.
    """
    chains = _begin(request, is_over)
    for k in range(_ROUNDS):
        budget.check_interrupt()
        if is_over():
            break
        recorded = chains.record(_FIRST_ROUND << k, is_over=is_over)
        rates = rejection_rates(chains.inverse, chains.by_rung(recorded))
        rungs = best_number_of_rungs(rates)
        if k == _ROUNDS - 1 or abs(rungs - chains.rungs) <= _ABOUT_RIGHT * chains.rungs:
            rungs = chains.rungs
        inverse = adapted_ladder(chains.inverse, rates, rungs)
        if rungs == chains.rungs:
            chains.place(inverse)
        else:
            chains = chains.followed_by(inverse, _STREAM + 1 + k)
    return chains


def _begin(request: Request, is_over: Callable[[], bool], swaps: bool = True) -> _Ladders:
    """Returns the first ladders, of which the second half start in the best of quenched states.
    Without swaps the first half start in quenched states too, and most sweeps of all are in the
    sampler's own order.
    """
    # At first denser at high temperatures.
    inverse = 1 / request.temperature * np.linspace(0, 1, _FIRST_RUNGS) ** 2
    chains = _Ladders(request, inverse, _STREAM if swaps else _PILOT, swaps)
    quenched = dispersed(
        request._replace(groups=chains.num_chains),
        is_over,
        FIRST_ROUND if swaps else FIRST_ROUND // 8,
    )
    chains.restart(None if swaps else quenched.current())
    if not swaps:
        # Sweeps in order cost a fifth of those in random order, of which a few choose the modes.
        chains.temperatures = request.temperature
        chains.record(FIRST_ROUND // 2, is_over=is_over)
        chains.place(inverse)
        quenched = chains
    starts = quenched.current()
    states = chains.current().reshape(chains.ladders, len(inverse), -1)
    cold = chains.ladders // 2
    # A large constant would hide which are best.
    terms = request.terms._replace(constant=0.0)
    best = np.argsort(-terms.values(starts), kind="stable")[:cold]
    states[-cold:] = starts[best, None]
    chains.restart(states.reshape(-1, chains.size))
    chains.steps = quenched.steps
    return chains


def needs_no_ladder(request: Request, is_over: Callable[[], bool]) -> bool:
    """Returns whether chains at the temperature, and at all those above it on a ladder without
    swaps, are seen to forget whether they started hot or cold.

    This counts f, the magnetisation and sums of spins with random signs, in which chains that hold
    different modes differ. On the way from infinite temperature modes divide somewhere, and chains
    are slow there, also those of a mode that hardly any of them would leave at the end. Where they
    are seen to forget, and at all temperatures above, they end.
    """
    chains = _begin(request._replace(groups=_PILOTS), is_over, swaps=False)
    seen = np.empty((0, _PILOTS, _FIRST_RUNGS, 1 + _SUMS))
    while True:
        parts = [seen]
        for recorded in chains.play(max(len(seen), FIRST_ROUND)):
            part = scalars(recorded.values, recorded.states, _SUMS)
            parts.append(part.reshape(len(part), _PILOTS, -1, 1 + _SUMS))
        seen = np.concatenate(parts)
        # Chains that all agree tell nothing.
        sizes = [[effective_size(one) for one in rung] for rung in seen.transpose(2, 3, 1, 0)]
        worst = np.nan_to_num(sizes).min(axis=1)
        slow = np.flatnonzero(worst < _FORGOTTEN)
        if not len(slow):
            return True
        if worst.min() * _LONGEST_PILOT < _FORGOTTEN * len(seen) or is_over():
            return False
        if chains.engine.on_host:  # others would compile anew
            colder = slow[-1] + 1
            chains = chains.followed_by(chains.inverse[-colder:], _PILOT + len(seen))
            seen = seen[:, :, :colder]


def _sweeps_a_draw(chains: _Ladders, warm: Recorded) -> int:
    """Returns the sweeps between draws, as `chain.sweeps_a_draw`, but at least those of a round
    trip.

    Modes that only the hot rungs connect are drawn anew by round trips, however fast a mode's
    values decorrelate. Where chains forget their state between swaps, which are rejected at rates
    r, a ladder makes one round trip in 2 + 2 sum r/(1 - r) sweeps (Syed et al. 2022); otherwise
    they take longer.
    """
    values = chains.by_rung(warm)
    rates = rejection_rates(chains.inverse, values)
    trip = math.ceil(2 + 2 * (rates / np.maximum(1 - rates, _LEAST_RATE)).sum())
    return max(sweeps_a_draw(values[:, :, -1], warm.states), min(trip, MOST_SWEEPS_A_DRAW))


def _effective(trips: np.ndarray) -> float:
    """Returns the independent draws of modes that R round trips of each of C ladders are worth.

    A ladder's mean has the variance of as many draws, so the mean over all ladders has that of C
    times the harmonic mean: round trips of one ladder do not make up for another one without any.
    """
    return 0.0 if trips.min() == 0 else len(trips) / float((1 / trips).mean())


def _reasons(trips: np.ndarray) -> tuple[str, ...]:
    """Returns what the ladders' round trips say against the draws.

    Round trips of equal ladders are more even than Poisson numbers. Where some ladders hold modes
    that others do not, they are less even, although their sum may be large.
    """
    reasons = []
    if trips.sum() < _LEAST_ROUND_TRIPS:
        reasons.append(
            f"{trips.sum()} round trips between hottest and coldest rung, below "
            f"{_LEAST_ROUND_TRIPS}: draw more"
        )
    spread = trips.var(ddof=1) / max(trips.mean(), 1e-9)
    if spread > spread_by_chance(len(trips)):
        reasons.append(
            f"the ladders made {trips.min()} to {trips.max()} round trips, which is more than "
            "chance apart; some ladders may hold modes that others do not"
        )
    return tuple(reasons)
