"""Method `tempering`: non-reversible parallel tempering on several independent ladders.

Each ladder leads from infinite temperature, where a sweep forgets everything, to the target temperature. Even and odd
pairs of neighbours alternate in exchanging their states (Okabe et al. 2001; Syed et al. 2022). Rounds of doubling
length place the rungs so that all swaps are rejected equally often, and choose their number; then the ladder is
fixed, and draws are taken from its coldest rung. R-hat compares the ladders.
"""

from __future__ import annotations

import numpy as np

from sl_discs.sampling.arena import Arena, Recorded
from sl_discs.sampling.chain import frozen_after, sweeps_a_draw
from sl_discs.sampling.diagnostics import Agreement
from sl_discs.sampling.drawn import Budget, Drawn, Ladder, Store
from sl_discs.sampling.ladder import adapted_ladder, best_number_of_rungs, first_ladder, rejection_rates, round_trips
from sl_discs.sampling.layout import Terms, counts_of, log_num_states
from sl_discs.sampling.log_z import log_z_of_ladder
from sl_discs.sampling.options import Options

# Rungs at first, and rounds that adapt them: sweeps of the first one; each later one is twice as long. The last one
# keeps their number, and is followed by a round that warms the chains up.
_FIRST_RUNGS, _ROUNDS, _FIRST_ROUND = 16, 5, 32
_LAST_ROUND = 256
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

    def better_ladder(self, sweeps: int, *, keep_rungs: bool) -> np.ndarray:
        """Continues the chains, and returns better rungs; keeps their number if it is about right."""
        rates = rejection_rates(self.inverse, self.by_rung(self.arena.record(self.temperatures, sweeps)))
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
    searched = 0
    for number in range(_ROUNDS):
        budget.check_interrupt()
        inverse = tempering.better_ladder(_FIRST_ROUND << number, keep_rungs=number == _ROUNDS - 1)
        if len(inverse) == tempering.rungs:
            tempering.inverse = inverse
        else:
            before, searched = tempering, searched + tempering.arena.steps
            tempering = _Tempering(terms, options, inverse, _STREAM + 1 + number)
            tempering.arena.restart(_at_other_rungs(before, tempering))
    warm = tempering.arena.record(tempering.temperatures, _LAST_ROUND)
    thinning = sweeps_a_draw(tempering.by_rung(warm)[:, :, -1].T, warm.states)
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
    )  # fmt: skip
