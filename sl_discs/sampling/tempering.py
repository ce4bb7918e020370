"""Method `tempering`: non-reversible parallel tempering on several independent ladders.

Each ladder leads from infinite temperature, where a sweep forgets everything, to the target temperature. Even and odd
pairs of neighbours alternate in exchanging their states (Okabe et al. 2001; Syed et al. 2022). Rounds of doubling
length place the rungs so that all swaps are rejected equally often, and choose their number; then the ladder is
fixed, and draws are taken from its coldest rung. R-hat compares the ladders.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from sl_discs.sampling.arena import Arena, Recorded
from sl_discs.sampling.chain import MOST_SWEEPS_A_DRAW, frozen_after, sweeps_a_draw
from sl_discs.sampling.diagnostics import FALSE_ALARM, Agreement
from sl_discs.sampling.drawn import Budget, Drawn, Ladder, Store
from sl_discs.sampling.ladder import (
    adapted_ladder,
    best_number_of_rungs,
    first_ladder,
    rejection_rates,
    round_trips,
    sweeps_a_round_trip,
)
from sl_discs.sampling.layout import Terms, counts_of, log_num_states
from sl_discs.sampling.log_z import log_z_of_ladder
from sl_discs.sampling.options import Options

# Rungs at first, and rounds that adapt them: sweeps of the first one; each later one is twice as long. The last one
# keeps their number, and is followed by a round that warms the chains up.
_FIRST_RUNGS, _ROUNDS, _FIRST_ROUND = 16, 5, 32
_LAST_ROUND = 256
# Parts of a time limit after which the search for a ladder ends, and the warm-up.
_SEARCH_PART, _WARM_UP_PART = 0.5, 0.3
# Relative tolerance of the number of rungs.
_ABOUT_RIGHT = 0.2
# Of the first arena; the others follow.
_STREAM = 16
# With fewer round trips in total, modes that only tempering connects were hardly exchanged.
_LEAST_ROUND_TRIPS = 20
_MOST_MOMENTS_FOR_LOG_Z = 2_000


class _Tempering:
    """Ladders of R rungs each, the coldest first."""

    def __init__(self, terms: Terms, options: Options, inverse: np.ndarray, stream: int):
        self.rungs, self.ladders = len(inverse), options.groups
        fields = frozen_after(_FIRST_ROUND, options, terms.num_sites)
        self.arena = Arena(
            terms, options.sampler, fields, self.ladders * self.rungs,
            rungs=self.rungs, engine=options.engine, seed=options.seed, stream=stream,
        )  # fmt: skip
        self.inverse, self.terms = inverse, terms

    @property
    def temperatures(self) -> np.ndarray:
        """[B] temperatures of the chains."""
        with np.errstate(divide="ignore"):
            return np.tile(1 / self.inverse[::-1], self.ladders)

    def by_rung(self, recorded: Recorded) -> np.ndarray:
        """The values [C, D, R], the hottest rung first."""
        values = recorded.values.reshape(-1, self.ladders, self.rungs)
        return np.swapaxes(values, 0, 1)[:, :, ::-1]

    def better_ladder(self, sweeps: int, is_over: Callable[[], bool], *, keep_rungs: bool) -> np.ndarray:
        """Continues the chains, and returns better rungs; keeps their number if it is about right."""
        recorded = self.arena.record(self.temperatures, sweeps, is_over=is_over)
        rates = rejection_rates(self.inverse, self.by_rung(recorded))
        rungs = best_number_of_rungs(rates)
        if keep_rungs or abs(rungs - self.rungs) <= _ABOUT_RIGHT * self.rungs:
            rungs = self.rungs
        return adapted_ladder(self.inverse, rates, rungs)


def _at_other_rungs(old: _Tempering, new: _Tempering) -> np.ndarray:
    """For each rung of the new ladders, the states of the old ones at the nearest temperature."""
    nearest = np.abs(new.inverse[::-1, None] - old.inverse[::-1]).argmin(axis=1)
    states = old.arena.states.reshape(old.ladders, old.rungs, -1)
    return states[:, nearest].reshape(new.arena.num_chains, -1)


def draw(terms: Terms, temperature: float, options: Options, budget: Budget) -> Drawn:
    """Draws from the coldest rung of every ladder.

    Args:
      terms: of the model.
      temperature: tau > 0.
      options: number of ladders and draws, sampler, engine, seed.
      budget: time, interruption and progress.
    """
    store = Store(options.groups, terms.num_sites, int(counts_of(terms).max()), options.draws_each, options.store)
    tempering = _Tempering(terms, options, first_ladder(1 / temperature, _FIRST_RUNGS), _STREAM)
    searched, is_over = 0, budget.after(_SEARCH_PART)
    for number in range(_ROUNDS):
        budget.check_interrupt()
        if is_over():
            break
        inverse = tempering.better_ladder(_FIRST_ROUND << number, is_over, keep_rungs=number == _ROUNDS - 1)
        if len(inverse) == tempering.rungs:
            tempering.inverse = inverse
        else:
            before, searched = tempering, searched + tempering.arena.steps
            tempering = _Tempering(terms, options, inverse, _STREAM + 1 + number)
            tempering.arena.restart(_at_other_rungs(before, tempering))
    warm = tempering.arena.record(tempering.temperatures, _LAST_ROUND, is_over=budget.after(_WARM_UP_PART))
    thinning = _sweeps_a_draw(tempering, warm) if len(warm.states) == _LAST_ROUND else 1

    values, exchanged = [], []
    wanted = (options.draws_each or 2**31 // thinning) * thinning
    offset = counted = 0
    agreement = Agreement()
    with budget.keeping(store):
        for recorded in tempering.arena.play(tempering.temperatures, wanted):
            kept = np.arange(len(recorded.states))
            store.add(recorded.states[(kept + offset) % thinning == thinning - 1])
            offset += len(kept)
            values.append(tempering.by_rung(recorded))
            assert recorded.exchanged is not None
            exchanged.append(recorded.exchanged.reshape(-1, tempering.ladders, tempering.rungs))
            budget.say((len(store) - counted) * options.groups, agreement.add(values[-1][:, :, -1]))
            counted = len(store)
            if budget.is_over() and len(store):
                break
    return _drawn(
        tempering, options, np.concatenate(values, axis=1), np.concatenate(exchanged), store, thinning, budget,
        searched,
    )  # fmt: skip


def _sweeps_a_draw(tempering: _Tempering, warm: Recorded) -> int:
    """As `chain.sweeps_a_draw`, but at least those of a round trip: modes that only the hot rungs connect are drawn
    anew by round trips, however fast a mode's values decorrelate.
    """
    values = tempering.by_rung(warm)
    trip = sweeps_a_round_trip(rejection_rates(tempering.inverse, values))
    return max(sweeps_a_draw(values[:, :, -1].T, warm.states), min(trip, MOST_SWEEPS_A_DRAW))


def _effective(trips: np.ndarray) -> float:
    """The independent draws of modes that R round trips of each of C ladders are worth.

    A ladder's mean has the variance of as many draws, so the mean over all ladders has that of C times the harmonic
    mean: round trips of one ladder do not make up for another one without any.
    """
    return 0.0 if trips.min() == 0 else len(trips) / float((1 / trips).mean())


def _dispersion(trips: np.ndarray) -> tuple[float, float]:
    """Variance over mean of the ladders' round trips, and the limit that Poisson numbers pass by chance.

    Round trips of equal ladders are more even than Poisson numbers. Where some ladders hold modes that others do not,
    they are less even, although their sum may be large.
    """
    freedom = len(trips) - 1
    found = float(trips.var(ddof=1) / max(trips.mean(), 1e-9))
    return found, float(stats.chi2.isf(FALSE_ALARM, freedom) / freedom)


def _drawn(
    tempering, options: Options, values, exchanged, store: Store, thinning: int, budget: Budget, steps: int
) -> Drawn:
    """The outcome of the ladders; `steps` counts those of the earlier chains used for adaptation."""
    trips = round_trips(exchanged)
    every = -(-values.shape[1] // _MOST_MOMENTS_FOR_LOG_Z)
    arena = tempering.arena
    ladder = Ladder(
        tempering.inverse,
        1 - rejection_rates(tempering.inverse, values),
        trips,
        values.mean(axis=(0, 1), dtype=float),
    )
    reasons = []
    if trips.sum() < _LEAST_ROUND_TRIPS:
        reasons.append(
            f"{trips.sum()} round trips between hottest and coldest rung, below {_LEAST_ROUND_TRIPS}: draw more"
        )
    apart, limit = _dispersion(trips)
    if apart > limit:
        reasons.append(
            f"round trips differ between ladders ({trips.min()} to {trips.max()}): variance over mean {apart:.1f} is "
            f"above {limit:.1f}; some ladders may hold modes that others do not"
        )
    how = {
        "sampler": options.sampler,
        "engine": arena.engine.name,
        "ladders": tempering.ladders,
        "rungs": tempering.rungs,
        "sweeps a draw": thinning,
        "round trips": int(trips.sum()),
        "steps": steps + arena.steps,
    }
    return Drawn(
        store.bits(), "serial", how, tuple(reasons), ladder=ladder, interrupted=budget.interrupted,
        log_z=log_z_of_ladder(log_num_states(tempering.terms), tempering.inverse, values[:, ::every]),
        most_effective=_effective(trips),
    )  # fmt: skip
