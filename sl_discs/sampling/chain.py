"""Method `chain`: many chains of the base sampler at the temperature, from dispersed starts.

Chains start in pairs of opposite states, or where variables have q values in q states that differ everywhere. They
first visit sites in random order, because sweeps in the same order would lead many of them to the same mode. A
warm-up of doubling rounds ends when the values of f of different chains agree; its last round also determines the
number of sweeps between draws. Adaptation ends with the first round. A mode that no chain has visited does not show
in any diagnostic.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int8

from sl_discs.models.terms import Terms
from sl_discs.samplers.registry import sampler_fields
from sl_discs.samplers.single_site import RANDOM
from sl_discs.sampling.diagnostics import Agreement, diagnose
from sl_discs.sampling.draws import Averages, Budget, Drawn, Options, Store, averaged, magnetisations
from sl_discs.sampling.recorded import RecordedChains

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


def draw(terms: Terms, temperature: float, options: Options, budget: Budget) -> Drawn:
    """Draws of every chain."""
    store = Store(options.groups, terms.num_sites, max(terms.num_values), options.draws_each, options.store)
    fields = frozen_after(FIRST_ROUND, options, terms.num_sites)
    chains = RecordedChains(terms, options.sampler, fields, options.groups, engine=options.engine, seed=options.seed)
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
    values, spins = [], []
    offset, before, agreement = 0, 0, Agreement()
    with budget.keeping(store):
        for recorded in chains.play(temperature, (options.draws_each or 2**31 // looks) * looks, sweeps):
            kept = np.arange(offset, offset + len(recorded.states)) % looks == looks - 1
            store.add(recorded.states[kept])
            offset += len(kept)
            values.append(recorded.values)
            spins.append(magnetisations(terms, recorded.states))
            budget.say((len(store) - before) * options.groups, agreement.add(recorded.values.T))
            before = len(store)
            if budget.is_over() and len(store):
                break
    looked = np.concatenate(values)
    averages = Averages(*(averaged(one, looks).T for one in (looked, np.concatenate(spins))))
    how = {
        "sampler": options.sampler, "engine": chains.engine.name, "chains": options.groups,
        "warm-up sweeps": warm_up, "sweeps a draw": looks * sweeps, "steps": chains.steps,
    }  # fmt: skip
    return Drawn(
        store.bits(), "serial", how, averages=averages, recorded=looked[looks - 1 :: looks].T,
        interrupted=budget.interrupted,
    )  # fmt: skip


def dispersed(
    terms: Terms, temperature: float, options: Options, is_over: Callable[[], bool] = lambda: False
) -> RecordedChains:
    """Chains, one of each group, that have reached their states from different starts, or until `is_over`."""
    fields = frozen_after(FIRST_ROUND, options, terms.num_sites)
    if options.sampler in ORDERED:
        fields["scan"] = RANDOM
    chains = RecordedChains(
        terms, options.sampler, fields, options.groups, engine=options.engine, seed=options.seed, stream=DISPERSING
    )
    counts, states = np.array(terms.num_values), chains.current()
    chain = np.arange(len(states))
    shift = chain % counts.max()
    chains.restart(((states[chain - shift] + shift[:, None]) % counts).astype(np.int8))
    chains.record(temperature, FIRST_ROUND, is_over=is_over)
    return chains


def frozen_after(sweeps: int, options: Options, size: int) -> dict:
    """Fields of the base sampler's config that end its adaptation after so many sweeps."""
    fields = dict(options.fields)
    if options.sampler in ORDERED:
        fields.setdefault("scan", "sequential")
    if "adapt_until" in sampler_fields(options.sampler):
        fields.setdefault("adapt_until", max(1, sweeps * size // 10))
    return fields


def sweeps_a_draw(values: Float[np.ndarray, "L C"], states: Int8[np.ndarray, "L C N"]) -> int:
    """The number of sweeps between nearly independent draws, from the values of f after each of L sweeps of C chains.

    Of the states, their sum counts, which for two values is the magnetisation, and the sum with signs drawn once.
    """
    signs = np.random.default_rng(0).choice((-1, 1), states.shape[2])
    both = np.stack([np.ones_like(signs), signs], axis=1).astype(np.float32)
    # One record at a time: all of them as floats would take gigabytes, and NumPy is slow at products of integers.
    sums = np.array([one.astype(np.float32) @ both for one in states])
    sizes = [diagnose("", one.T).ess_bulk for one in (values, sums[..., 0], sums[..., 1])]
    return int(np.clip(np.ceil(values.size / max(min(sizes), 1)), 1, MOST_SWEEPS_A_DRAW))
