"""Chains of one problem at temperatures that may change from call to call, with records of states and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float32, Float64, Int8

from sl_discs import keys
from sl_discs.engines.base import Program
from sl_discs.engines.registry import choose_engine
from sl_discs.errors import check_memory
from sl_discs.experiment.batches import shape_of_one
from sl_discs.experiment.chains import Chains, copied
from sl_discs.experiment.memory import batch_bytes
from sl_discs.localization.schedule import Levels
from sl_discs.models.functions import checked
from sl_discs.models.terms import Terms
from sl_discs.samplers.registry import build_sampler, counts_sweeps, sampler_fields

# For samplers whose steps read all sites, a sweep is one step per this many sites.
_SITES_A_STEP = 10
# Largest size of a call's records in bytes, and its approximate duration; time limits are checked between calls.
_MOST_RECORDED, _CALL_S = 2**26, 0.2
# Approximate seconds of a step that tries one or two sites, of any other step, of each coupling of a site, and of a
# chain's record. They are not measured, since calls must end at the same steps in every run for equal rounding.
_FEW_SITES_S, _STEP_S, _COUPLING_S, _RECORD_S = 5e-9, 2e-6, 1e-10, 2e-6
# The same of a step of the engine `reference` on a core, for each site.
_SITE_S = 1e-8
# Step numbers have 31 bits; chains that run longer get new keys.
_MOST_STEPS = 2**31 - 1
# A run has fewer streams than this.
_STREAMS = 1 << 16
# A level that never ends, whose observation is the constant tilt.
_TILTED = Levels(
    tilt_scale=np.array([1], np.float32),
    last=np.array([_MOST_STEPS - 1], np.int32),
    collected=np.array([1], np.int32),
    drift=np.array([0], np.float32),
    noise=np.array([0], np.float32),
)


class Recorded(NamedTuple):
    """The records of a call at L moments.

    Values are those of f, without the constant of the problem; states those of the first rung of each ladder, L = 0
    if they are not kept; `exchanged` is whether a chain exchanged states with the next one, None without ladders.
    """

    values: Float32[np.ndarray, "L B"]
    states: Int8[np.ndarray, "_L C N"]
    exchanged: Bool[np.ndarray, "L B"] | None

    @classmethod
    def joined(cls, parts: list[Recorded]) -> Recorded:
        """Joins the records of consecutive calls."""
        values, states, exchanged = zip(*parts, strict=True)
        swaps = None if exchanged[0] is None else np.concatenate(exchanged)
        return cls(np.concatenate(values), np.concatenate(states), swaps)


class RecordedChains(Chains):
    """B chains of a base sampler on one problem of N variables, whose records are kept.

    `sweep` is the number of steps in a sweep, `steps` that of the Markov steps of all chains so far, `clusters` that
    of the rungs that exchange clusters.
    """

    def __init__(
        self,
        terms: Terms,
        sampler: str,
        fields: dict,
        num_chains: int,
        *,
        rungs: int = 1,
        engine: str = "auto",
        seed: int = 0,
        stream: int = 0,
        keeps_states: bool = True,
        tilted: bool = False,
        clusters: int = 0,
    ):
        """Chains of a base sampler, with fields of its config, in ladders of consecutive rungs.

        `stream` numbers these chains in a run: each has its own random numbers. `keeps_states` says whether states
        are recorded, and `tilted` whether each chain has a tilt, which is 0 until `restart` sets it. The first
        `clusters` rungs of ladders 2k and 2k + 1 exchange clusters where the engine can do that.
        """
        kernel = build_sampler(sampler, sampler_fields(sampler) | fields, num_chains)
        chosen, _ = choose_engine(engine, kernel, num_chains=0)
        shape = shape_of_one(terms, num_chains)
        check_memory(
            f"{num_chains:,} chains of {terms.num_sites:,} variables",
            batch_bytes(shape, 0, chosen.name),
            "ask for fewer draws or groups",
        )
        self._names = [stream] * shape.num_instances
        super().__init__([terms] * shape.num_instances, self._names, shape, kernel, chosen, seed)
        self.size, self.num_chains, self.rungs, self.steps = terms.num_sites, num_chains, rungs, 0
        few_sites = counts_sweeps(sampler)
        self.sweep = self.size if few_sites else -(-self.size // _SITES_A_STEP)
        # The current temperatures, of which all rows of the program are views.
        self._temperatures = np.ones(num_chains, np.float32)
        self.clusters = clusters if clusters and chosen.has_clusters(self.sampler, self.batch) else 0
        rows = np.broadcast_to(self._temperatures, (_MOST_STEPS, num_chains))
        self._program = Program(rows, _TILTED if tilted else None, rungs, keeps_states, clusters=self.clusters)
        row = shape.num_sites if shape.degree is None else shape.degree
        self._step_s = num_chains * ((_FEW_SITES_S if few_sites else _STEP_S) + row * _COUPLING_S)

    def restart(
        self, states: Int8[np.ndarray, "B N"] | None = None, tilts: Float32[np.ndarray, "B N"] | None = None
    ) -> None:
        """Puts the chains into the given states, or random ones, and resets the samplers' adaptation.

        With tilts h the target of a tilted chain is exp(f/temperature + <s, h>).
        """
        # The number of the step goes on: it numbers the random numbers.
        done = self.done
        self.start(self._program, states, None if self._program.levels is None else 0.0)
        self.done = done
        if tilts is not None:
            chain = self.states.chain
            y = np.zeros(chain.x.shape, np.float32)
            y[:, :, : self.size] = tilts
            chain = chain._replace(state=chain.state._replace(y=y))
            self.states = self.states._replace(chain=chain)

    def current(self) -> Int8[np.ndarray, "B N"]:
        """A copy of the chains' current states."""
        if not hasattr(self, "states"):
            self.restart()
        return np.array(self.states.chain.x[0, :, : self.size])

    def copy(self, chosen: np.ndarray) -> None:
        """Makes chain b continue from the state of chain chosen[b]."""
        chain = self.states.chain
        x, field = copied((chain.x, chain.field), np.tile(chosen, (len(chain.x), 1)))
        self.states = self.states._replace(chain=chain._replace(x=x, field=field))

    def uniforms(self, count: int) -> Float32[np.ndarray, "{count}"]:
        """Uniform numbers on [0, 1) for use between two calls; they change after each call."""
        return np.asarray(keys.uniforms(keys.fold(self.initial_keys[0, 0], self.done + 1), (count,)))

    def play(
        self, temperatures: Float64[np.ndarray, "B"] | float, moments: int, sweeps: int = 1
    ) -> Iterator[Recorded]:
        """Continues the chains and yields `moments` records, a few per call, one after every `sweeps` sweeps.

        At infinite temperature all states are equally likely.
        """
        if not hasattr(self, "states"):
            self.restart()
        self._temperatures[:] = temperatures
        steps = sweeps * self.sweep
        most = self._worth_a_call(moments, steps)
        while moments > 0:
            count = min(most, moments)
            if self.done + count * steps > _MOST_STEPS:
                self._names = [name + _STREAMS for name in self._names]
                self.rename(self._names)
                self.prepare(self._program)
            trace = self.advance(count, steps)
            self.steps += count * steps * self.num_chains
            moments -= count
            exchanged = None if trace.exchanged is None else np.asarray(trace.exchanged)[:, 0]
            states = np.zeros((0, self.num_chains // self.rungs, self.size), np.int8)
            if trace.states is not None:
                states = np.asarray(trace.states)[:, 0, :, : self.size]
            yield Recorded(checked(np.asarray(trace.value)[:, 0]), states, exchanged)

    def _worth_a_call(self, moments: int, steps: int) -> int:
        """The number of moments per call; if each number needs its own compiled code, one or two numbers for all."""
        bytes_each = self.num_chains // self.rungs * self.shape.num_sites
        most = max(1, min(moments, _MOST_RECORDED // bytes_each))
        if self.engine.on_host:
            return max(1, min(most, int(_CALL_S / (self._step_s * steps + self.num_chains * _RECORD_S))))
        most = min(most, max(1, self.engine.steps_per_call(self.sampler) // steps))
        if jax.default_backend() == "cpu":
            # All sites are evaluated in each step; a time limit is checked between calls.
            step_s = self.num_chains * self.shape.num_sites * _SITE_S
            most = max(1, min(most, int(_CALL_S / (step_s * steps))))
        calls = -(-moments // (1 << (most.bit_length() - 1)))
        return -(-moments // calls)

    def record(
        self, temperatures, moments: int, sweeps: int = 1, is_over: Callable[[], bool] = lambda: False
    ) -> Recorded:
        """Continues the chains as `play`, and returns all records until `is_over` at once."""
        parts = []
        for part in self.play(temperatures, moments, sweeps):
            parts.append(part)
            if is_over():
                break
        return Recorded.joined(parts)
