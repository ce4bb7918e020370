"""Method `chain`: many chains of the base sampler at the temperature, from dispersed starts.

Chains start in pairs of opposite states. They first visit sites in random order, because sweeps in the same order
would lead many of them to the same mode. A warm-up of doubling rounds ends when the values of f of different chains
agree; its last round also determines the number of sweeps between draws. Adaptation ends with the first round. A mode
that no chain has visited does not show in any diagnostic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Float64, Int8, Shaped

from sl_discs.models.terms import Terms
from sl_discs.samplers.registry import sampler_fields
from sl_discs.samplers.single_site import RANDOM, SEQUENTIAL
from sl_discs.sampling.diagnostics import Agreement, diagnose
from sl_discs.sampling.draws import Averages, Budget, Drawn, Request, Store, magnetisations
from sl_discs.sampling.recorded import Recorded, RecordedChains

# Rounds of the warm-up in sweeps; adaptation ends with the first one.
FIRST_ROUND, LAST_ROUND = 64, 2_048
# The warm-up ends when R-hat of the values is below this.
_AGREEMENT = 1.05
MOST_SWEEPS_A_DRAW = 64
# Times that the value and the magnetisation are looked at from one draw to the next, for their averages.
_LOOKS = 8
# Numbers of its streams.
DISPERSING = 5
# Samplers with a sequential scan, which costs half as much. metropolis is not among them: where all gains are 0, as
# at infinite temperature, its sequential scan only flips every site.
ORDERED = ("gibbs",)


def draw(terms: Terms, temperature: float, options: Request, budget: Budget) -> Drawn:
    """Draws of every chain."""
    collector, chains = DrawCollector(terms, options, budget), chains_of(terms, options, options.groups)
    chains.restart(dispersed(terms, temperature, options).current())
    warm_up, length = 0, FIRST_ROUND
    while True:
        recorded = chains.record(temperature, length)
        warm_up += length
        found = diagnose("value", recorded.values.T)
        if found.r_hat <= _AGREEMENT or length >= LAST_ROUND or budget.is_over():
            break
        length *= 2
    thinning = sweeps_a_draw(recorded.values, recorded.states)
    looks = min(_LOOKS, thinning)
    sweeps = -(-thinning // looks)
    collector.play(chains, temperature, looks, sweeps)
    how = {
        "sampler": options.sampler, "engine": chains.engine.name, "chains": options.groups,
        "warm-up sweeps": warm_up, "sweeps a draw": looks * sweeps, "steps": chains.steps,
    }  # fmt: skip
    return collector.drawn(how)


def dispersed(
    terms: Terms, temperature: float, options: Request, is_over: Callable[[], bool] = lambda: False
) -> RecordedChains:
    """Chains, one of each group, that have reached their states from different starts, or until `is_over`."""
    if options.sampler in ORDERED:
        options = options._replace(fields={**options.fields, "scan": RANDOM})
    chains = chains_of(terms, options, options.groups, stream=DISPERSING)
    states, chain = chains.current(), np.arange(len(chains.current()))
    second = chain % 2
    chains.restart((states[chain - second] ^ second[:, None]).astype(np.int8))
    chains.record(temperature, FIRST_ROUND, is_over=is_over)
    return chains


def chains_of(
    terms: Terms, options: Request, num_chains: int, *, adapting: int = FIRST_ROUND, stream: int = 0, **more: Any
) -> RecordedChains:
    """So many chains of the options' sampler, whose adaptation ends after `adapting` sweeps.

    Fields that are those of a method are left out.
    """
    known = sampler_fields(options.sampler)
    fields = {name: value for name, value in options.fields.items() if name in known}
    if options.sampler in ORDERED:
        fields.setdefault("scan", SEQUENTIAL)
    if "adapt_until" in known:
        fields.setdefault("adapt_until", max(1, adapting * terms.num_sites // 10))
    return RecordedChains(
        terms, options.sampler, fields, num_chains, engine=options.engine, seed=options.seed, stream=stream, **more
    )


class DrawCollector:
    """Makes draws of chains, or of the first rungs of ladders, of which `each` in a row are a group.

    Space for the draws is allocated at once.
    """

    def __init__(self, terms: Terms, options: Request, budget: Budget, each: int = 1):
        self._terms, self._draws_each, self._budget, self._each = terms, options.draws_each, budget, each
        self._groups = options.groups // each
        wanted = None if options.draws_each is None else options.draws_each * each
        self._store = Store(self._groups, terms.num_sites, wanted, options.store)

    def play(
        self, chains: RecordedChains, temperatures: Float64[np.ndarray, "B"] | float, every: int, sweeps: int = 1
    ) -> Recorded:
        """Continues the chains until all draws are made, one every `every` records, or the budget is over.

        Returns all records, without their states.
        """
        parts, spins, agreement = [], [], Agreement()
        done = before = 0
        with self._budget.keeping(self._store):
            for recorded in chains.play(temperatures, (self._draws_each or 2**31 // every) * every, sweeps):
                kept = np.arange(done, done + len(recorded.states)) % every == every - 1
                self._store.add(by_group(recorded.states[kept], self._each))
                done += len(kept)
                parts.append(recorded._replace(states=recorded.states[:0].copy()))  # a view would keep all states
                spins.append(magnetisations(recorded.states))
                said = agreement.add(recorded.values[:, :: chains.rungs].T)
                self._budget.say((len(self._store) - before) * self._groups, said)
                before = len(self._store)
                if self._budget.is_over() and before:
                    break
        found = Recorded.joined(parts)
        values = found.values[:, :: chains.rungs]
        observed = values, np.concatenate(spins)
        self._averages = Averages(*(by_group(averaged(one, every), self._each).T for one in observed))
        self._recorded = by_group(values[every - 1 :: every], self._each).T
        return found

    def drawn(self, how: dict[str, Any], **more: Any) -> Drawn:
        """The draws, with what the method knows of them."""
        return Drawn(
            self._store.bits(), "serial", how, averages=self._averages, recorded=self._recorded,
            interrupted=self._budget.interrupted, **more,
        )  # fmt: skip


def by_group(records: Shaped[np.ndarray, "D C *shape"], each: int) -> Shaped[np.ndarray, "E G *shape"]:
    """Returns the records of C chains as those of groups of `each`, one chain of a group after the other.

    This is a chain like any other, whose autocorrelation includes the correlation of the chains of a group.
    """
    moments, chains, *shape = records.shape
    apart = records.reshape(moments, chains // each, each, *shape)
    return np.swapaxes(apart, 1, 2).reshape(moments * each, chains // each, *shape)


def averaged(records: Float[np.ndarray, "L C"], every: int) -> Float64[np.ndarray, "D C"]:
    """Returns the means of every `every` records, without those after the last draw."""
    count = len(records) // every
    return records[: count * every].reshape(count, every, -1).mean(axis=1, dtype=np.float64)


def sweeps_a_draw(values: Float[np.ndarray, "L C"], states: Int8[np.ndarray, "L C N"]) -> int:
    """The number of sweeps between nearly independent draws, from the values of f after each of L sweeps of C chains.

    Of the states, their sum counts, which is the magnetisation, and the sum with signs drawn once.
    """
    signs = np.random.default_rng(0).choice((-1, 1), states.shape[2])
    both = np.stack([np.ones_like(signs), signs], axis=1).astype(np.float32)
    # One record at a time: all of them as floats would take gigabytes, and NumPy is slow at products of integers.
    sums = np.array([one.astype(np.float32) @ both for one in states])
    sizes = [diagnose("", one.T).ess_bulk for one in (values, sums[..., 0], sums[..., 1])]
    return int(np.clip(np.ceil(values.size / max(min(sizes), 1)), 1, MOST_SWEEPS_A_DRAW))
