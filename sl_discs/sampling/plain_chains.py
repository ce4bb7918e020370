"""Method `chain`: many chains of the base sampler at the temperature, from dispersed starts.

Chains start in pairs of opposite states. They first visit sites in random order, because sweeps in
the same order would lead many of them to the same mode. A warm-up of doubling rounds ends when the
values of f of different chains agree; its last round also determines the number of sweeps between
draws. Adaptation ends with the first round. A mode that no chain has visited does not show in any
diagnostic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int8, Shaped

from sl_discs.chains.batches import batch_bytes, shape_of_one
from sl_discs.chains.budget import Budget
from sl_discs.chains.chains import Chains
from sl_discs.engines.choice import choose_engine
from sl_discs.engines.program import ChainTemperatures, Program
from sl_discs.localization.method import Method, build_method
from sl_discs.models.functions import checked
from sl_discs.samplers.single_site import RANDOM, SEQUENTIAL
from sl_discs.sampling.diagnostics import diagnose
from sl_discs.sampling.drawn import Averages, Drawn, Request, magnetisations, packed
from sl_discs.support.memory import check_memory

# Rounds of the warm-up in sweeps; adaptation ends with the first one.
FIRST_ROUND, LAST_ROUND = 64, 2_048
# The warm-up ends when R-hat of the values is below this.
_AGREEMENT = 1.05
MOST_SWEEPS_A_DRAW = 64
# Times that the value and the magnetisation are recorded from one draw to the next, for their
# averages.
_RECORDS = 8
# The stream of the chains that disperse.
DISPERSING = 5
# Samplers with a sequential scan, which costs half as much. metropolis is not among them: where all
# gains are 0, as at infinite temperature, its sequential scan only flips every site.
ORDERED = ("gibbs",)


def ordered_method(sampler: str, fields: Mapping[str, Any], name: str = "") -> Method:
    """Returns a base sampler with these fields of its config, which scans in order by default, or
    its localized variant of this name.
    """
    scan = {"scan": SEQUENTIAL} if sampler in ORDERED else {}
    return build_method({**scan, **fields, "name": name or sampler})


def draw(request: Request, budget: Budget) -> Drawn:
    """Draws from every chain."""
    chains = RecordedChains(request, request.groups)
    chains.restart(dispersed(request).current())
    warm_up = 0
    length = FIRST_ROUND
    while True:
        recorded = chains.record(length)
        warm_up += length
        r_hat = diagnose("value", recorded.values.T).r_hat
        if r_hat <= _AGREEMENT or length >= LAST_ROUND or budget.is_over():
            break
        length *= 2
    thinning = sweeps_a_draw(recorded.values, recorded.states)
    records = min(_RECORDS, thinning)
    sweeps = -(-thinning // records)
    _, drawn = collect(chains, budget, records, sweeps)
    how = {
        "sampler": request.method.name,
        "engine": chains.engine.name,
        "chains": request.groups,
        "warm-up sweeps": warm_up,
        "sweeps a draw": records * sweeps,
        "steps": chains.steps,
    }
    return drawn._replace(how=how)


def dispersed(
    request: Request, is_over: Callable[[], bool] = lambda: False, sweeps: int = FIRST_ROUND
) -> RecordedChains:
    """Returns chains, one of each group, after a first round from different starts, or until
    `is_over`.
    """
    if request.method.name in ORDERED:
        random = ordered_method(request.method.name, {"scan": RANDOM})
        request = request._replace(method=random)
    chains = RecordedChains(request, request.groups, stream=DISPERSING)
    chains.restart()
    states = chains.current()
    chain = np.arange(request.groups)
    second = chain % 2
    chains.restart((states[chain - second] ^ second[:, None]).astype(np.int8))
    chains.record(sweeps, is_over=is_over)
    return chains


def collect(
    chains: RecordedChains,
    budget: Budget,
    every: int,
    sweeps: int = 1,
    each: int = 1,
) -> tuple[Recorded, Drawn]:
    """Continues chains until each group has its draws, one every `every` records, or the budget is
    over.

    Of ladders, draws are those of the first rungs, and `each` ladders in a row are a group. Returns
    all records, without their states, and the draws.
    """
    parts = []
    done = 0
    draws_each = chains.request.draws_each or 2**31 // every
    try:
        for recorded in chains.play(draws_each * every, sweeps):
            kept = np.arange(done, done + len(recorded.states)) % every == every - 1
            bits = packed(np.swapaxes(by_group(recorded.states[kept], each), 0, 1))
            spins = magnetisations(recorded.states)
            # Without the states, of which a view would keep all.
            parts.append((recorded._replace(states=recorded.states[:0].copy()), bits, spins))
            done += len(kept)
            budget.advance(bits.shape[0] * bits.shape[1])
            if budget.is_over() and done >= every:
                break
    except KeyboardInterrupt:  # the draws so far are kept
        if done < every:
            raise
        budget.interrupted = True
    records, bits, spins = zip(*parts, strict=True)
    joined = _joined(records)
    values = joined.values[:, :: chains.rungs]
    whole = done // every * every

    def averaged(rows: np.ndarray) -> np.ndarray:
        means = rows[:whole].reshape(-1, every, rows.shape[1]).mean(axis=1, dtype=np.float64)
        return by_group(means, each).T

    averages = Averages(averaged(values), averaged(np.concatenate(spins)))
    at_draws = values[every - 1 :: every]
    recorded = by_group(at_draws, each).T
    return joined, Drawn(
        np.concatenate(bits, axis=1), "serial", {}, averages=averages, recorded=recorded
    )


def by_group(
    records: Shaped[np.ndarray, "D C *shape"], each: int
) -> Shaped[np.ndarray, "E G *shape"]:
    """Returns the records of C chains as those of groups of `each`, one chain of a group after the
    other.

    This is a chain like any other, whose autocorrelation includes the correlation of the chains of
    a group.
    """
    num_records, chains, *shape = records.shape
    groups = records.reshape(num_records, chains // each, each, *shape)
    return np.swapaxes(groups, 1, 2).reshape(num_records * each, chains // each, *shape)


def scalars(
    values: Float[np.ndarray, "L C"], states: Int8[np.ndarray, "L C N"], count: int
) -> Float[np.ndarray, "L C K"]:
    """Returns the value and the sum of each state, and `count` - 1 other sums with signs that are
    drawn once.
    """
    signs = np.random.default_rng(0).choice((-1, 1), (count - 1, states.shape[2]))
    weights = np.vstack([np.ones_like(signs[:1]), signs]).T.astype(np.float32)
    # One record at a time: all of them as floats would take gigabytes, and NumPy is slow at
    # products of integers.
    sums = [batch.astype(np.float32) @ weights for batch in states]
    return np.concatenate([values[..., None], sums], axis=2)


def sweeps_a_draw(values: Float[np.ndarray, "L C"], states: Int8[np.ndarray, "L C N"]) -> int:
    """Returns the number of sweeps between nearly independent draws, from the values of f after
    each of L sweeps of C chains.

    Of the states, their sum counts, which is the magnetisation, and the sum with signs drawn once.
    """
    sizes = [diagnose("", series).ess_bulk for series in scalars(values, states, 2).T]
    return int(np.clip(np.ceil(values.size / max(min(sizes), 1)), 1, MOST_SWEEPS_A_DRAW))


# Chains of one problem, whose states and values are recorded: all methods but `exact` run them.

# For samplers whose steps read all sites, a sweep is one step per this many sites.
_SITES_A_STEP = 10
# Largest size of a call's records in bytes, and its approximate duration; time limits are checked
# between calls.
_MOST_RECORDED = 2**26
_CALL_S = 0.2
# Approximate seconds of a step that tries one or two sites, of any other step, of each coupling of
# a site, and of a chain's record. They are not measured, since calls must end at the same steps in
# every run for equal rounding.
_FEW_SITES_S, _STEP_S, _COUPLING_S, _RECORD_S = 5e-9, 2e-6, 1e-10, 2e-6
# The same of a step of the engine `reference` on a core, for each site.
_SITE_S = 1e-8
# Step numbers have 31 bits; chains that run longer get new keys.
_MOST_STEPS = 2**31 - 1
# A run has fewer streams than this.
_STREAMS = 1 << 16


class Recorded(NamedTuple):
    """The L records of a call.

    Values are those of f, without the constant of the problem; states those of the first rung of
    each ladder, L = 0 if they are not kept; `swaps` is whether a chain swaps states with the next
    one, of no chain without ladders.
    """

    values: Float32[np.ndarray, "L B"]
    states: Int8[np.ndarray, "_L C N"]
    swaps: Bool[np.ndarray, "L _B"]


def _joined(parts: list[Recorded]) -> Recorded:
    return Recorded(*map(np.concatenate, zip(*parts, strict=True)))


class RecordedChains(Chains):
    """B chains of a request's sampler on its problem of N variables, whose records are kept.

    `temperatures` are those of the chains, at first the request's, `sweep` is the number of steps
    in a sweep, `steps` that of the Markov steps of all chains so far, and `clusters` that of the
    rungs that swap clusters.
    """

    temperatures: Float64[np.ndarray, "B"] | float

    def __init__(
        self,
        request: Request,
        num_chains: int,
        *,
        adapting: int = FIRST_ROUND,
        rungs: int = 1,
        stream: int = 0,
        clusters: int = 0,
    ):
        """Lays out the chains, before `restart`.

        Args:
          request: names the problem, the sampler with its fields, of which those of a method are
            left out, and the engine.
          num_chains: B.
          adapting: number of sweeps with which the adaptation ends, if the sampler's field does not
            end it earlier.
          rungs: R; each R chains in a row are a ladder.
          stream: number of these chains in a run, for random numbers of their own.
          clusters: number of rungs of ladders 2k and 2k + 1 that swap clusters, where the engine
            can do that.
        """
        terms = request.terms
        kernel: Any = request.method.sampler
        if hasattr(kernel, "adapt_until"):
            until = max(1, adapting * terms.num_sites // _SITES_A_STEP)
            until = min(until, kernel.adapt_until or until)
            kernel = dataclasses.replace(kernel, adapt_until=until)
        chosen, _ = choose_engine(request.engine, kernel, num_chains=0)
        shape = shape_of_one(terms, num_chains)
        check_memory(
            f"{num_chains:,} chains of {terms.num_sites:,} variables",
            batch_bytes(shape, 0, chosen.name),
            "ask for fewer draws or groups",
        )
        self._instance_ids = [stream] * shape.num_instances
        super().__init__(
            [terms] * shape.num_instances, self._instance_ids, shape, kernel, chosen, request.seed
        )
        self.request = request
        self.temperatures = request.temperature
        self.size = terms.num_sites
        self.num_chains = num_chains
        self.rungs = rungs
        self.steps = 0
        few_sites = kernel.counts_sweeps
        many_sites = self.size if kernel.is_sweep else _SITES_A_STEP
        self.sweep = self.size if few_sites else -(-self.size // many_sites)
        has_clusters = chosen.has_clusters(self.sampler, self.batch)
        self.clusters = clusters if has_clusters else 0
        every = ChainTemperatures(np.ones(num_chains, np.float32))
        self._program = Program(
            every, None, ladder=rungs, keeps_states=True, clusters=self.clusters
        )
        row = shape.num_sites if shape.degree is None else shape.degree
        self._step_s = num_chains * ((_FEW_SITES_S if few_sites else _STEP_S) + row * _COUPLING_S)

    def restart(
        self,
        states: Int8[np.ndarray, "B N"] | None = None,
        fields: Float32[np.ndarray, "B N"] | None = None,
    ) -> None:
        """Puts the chains into the given states, or random ones, and resets the samplers'
        adaptation.

        With fields h, the target of each chain is exp(f/temperature + <s, h>).
        """
        done = self.done
        program = self._program
        if fields is not None:
            field = np.zeros(
                (self.shape.num_instances, self.num_chains, self.shape.num_sites), np.float32
            )
            field[:, :, : fields.shape[1]] = fields
            program = program._replace(field=field)
        self.start(program, states)
        # The number of the step goes on: it numbers the random numbers.
        self.done = done

    def current(self) -> Int8[np.ndarray, "B N"]:
        """Returns a copy of the chains' current states."""
        return np.array(self.states.chain.x[0, :, : self.size])

    def play(self, num_records: int, sweeps: int = 1) -> Iterator[Recorded]:
        """Continues the chains and yields `num_records` records, a few per call, one after every
        `sweeps` sweeps.

        At infinite temperature all states are equally likely.
        """
        values = np.broadcast_to(np.asarray(self.temperatures, np.float32), self.num_chains)
        self.prepare(self.program._replace(temperature=ChainTemperatures(values)), self.done)
        steps = sweeps * self.sweep
        most = self._worth_a_call(num_records, steps)
        while num_records > 0:
            count = min(most, num_records)
            if self.done + count * steps > _MOST_STEPS:
                self._instance_ids = [instance_id + _STREAMS for instance_id in self._instance_ids]
                self.set_instance_ids(self._instance_ids)
                self.prepare(self.program, 0)
            trace = self.advance(count, steps)
            self.steps += count * steps * self.num_chains
            num_records -= count
            assert trace.states is not None
            no_swaps = np.empty((count, 1, 0), bool)
            swaps = np.asarray(no_swaps if trace.swaps is None else trace.swaps)[:, 0]
            states = np.asarray(trace.states)[:, 0, :, : self.size]
            yield Recorded(checked(np.asarray(trace.value)[:, 0]), states, swaps)

    def _worth_a_call(self, num_records: int, steps: int) -> int:
        """Returns the number of records per call; if each number needs its own compiled code, one
        or two numbers for all.
        """
        bytes_each = self.num_chains // self.rungs * self.shape.num_sites
        limits = [num_records, _MOST_RECORDED // bytes_each]
        if self.engine.on_host:
            call_s = self._step_s * steps + self.num_chains * _RECORD_S
            return max(1, min(*limits, int(_CALL_S / call_s)))
        limits.append(self.engine.steps_per_call(self.sampler) // steps)
        if jax.default_backend() == "cpu":
            # All sites are evaluated in each step; a time limit is checked between calls.
            step_s = self.num_chains * self.shape.num_sites * _SITE_S
            limits.append(int(_CALL_S / (step_s * steps)))
        most = max(1, min(limits))
        calls = -(-num_records // (1 << (most.bit_length() - 1)))
        return -(-num_records // calls)

    def record(
        self,
        num_records: int,
        sweeps: int = 1,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Recorded:
        """Continues the chains as `play`, and returns all records until `is_over` at once."""
        parts = []
        for part in self.play(num_records, sweeps):
            parts.append(part)
            if is_over():
                break
        return _joined(parts)
