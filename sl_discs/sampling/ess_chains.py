"""Chains at one temperature, and their effective sample size as DISCS defines it."""

from __future__ import annotations

import dataclasses
import zlib
from typing import Any

import numpy as np
from jaxtyping import Int8, Int32

from sl_discs.capacity import check_memory
from sl_discs.engines.base import Batch, Chains, Trace
from sl_discs.errors import InputError
from sl_discs.experiment.batches import build_batch, initial_keys, plan
from sl_discs.experiment.chains import Player, Progress
from sl_discs.experiment.memory import batch_bytes
from sl_discs.experiment.settings import Settings
from sl_discs.localization.method import Method
from sl_discs.models.quadratic import Coefficients
from sl_discs.sampling.ess_discs import DiscsEss, discs_ess, distances

# Largest size of the states of a call, in bytes.
_MOST_STATES = 2**26
# Bytes per step and chain: records and their copies, the distance, and temporaries of the effective sample size.
_RECORDED = 80


@dataclasses.dataclass(frozen=True)
class EssRecord:
    """The record of one sampler; all but `run_s` and `compile_s` refers to the chains after burn-in.

    Attributes:
      ess: DISCS's four figures.
      acceptance: mean acceptance probability.
      hops: mean number of sites changed per step.
      seconds: seconds that these steps took.
      run_s: seconds of the whole run, without compilation.
      compile_s: seconds spent tracing and compiling.
      engine: the engine used, and why if it was not asked for by name.
    """

    ess: DiscsEss
    acceptance: float
    hops: float
    seconds: float
    run_s: float
    compile_s: float
    engine: str


def check_stationary(methods: list[Method], settings: Settings) -> None:
    """Refuses settings and samplers without stationary chains.

    Raises:
      InputError: a localized sampler, a temperature that changes, chains that are resampled, or too few steps.
    """
    for method in methods:
        if method.localization is not None:
            raise InputError(
                f"sampler {method.name!r} has no effective sample size: the target of a localized chain changes all "
                "the time, and it ends in one draw; leave it out, or draw with sl_discs.sample(method='localization')"
            )
    if settings.t_schedule != "constant":
        raise InputError(
            f"config.experiment.t_schedule is {settings.t_schedule!r}; an effective sample size needs 'constant'"
        )
    if settings.resample_every:
        raise InputError(
            f"config.experiment.resample_every is {settings.resample_every}; an effective sample size needs "
            "independent chains: give 0"
        )
    if settings.chain_length - _burn_in(settings) < 2:
        raise InputError(
            f"config.experiment.chain_length is {settings.chain_length}, of which ess_ratio = {settings.ess_ratio} "
            "leaves fewer than 2 steps; run longer"
        )


def play_chains(terms: Coefficients, method: Method, settings: Settings, progress: Progress) -> EssRecord:
    """Runs the chains of one sampler and records every step.

    Args:
      terms: terms of the model.
      method: a method that has passed `check_stationary` with these settings.
      settings: settings of the run, with `log_every_steps` 1.
      progress: called with the number of chain-steps done.

    Raises:
      InputError: the engine cannot record states, or the records do not fit into memory.
    """
    player = Player(method, settings, keeps_states=True)
    [pack] = plan([terms], 1, settings.batch_size, player.num_devices, player.layout)
    shape, names = pack.shape, [settings.first_instance] * len(pack.filled)
    steps = max(1, _MOST_STATES // (shape.num_instances * shape.num_chains * shape.num_sites))
    check_memory(
        f"{settings.batch_size} chains of {settings.chain_length} steps and {len(terms.linear)} sites",
        batch_bytes(shape, 0, player.engine.name) + settings.batch_size * settings.chain_length * _RECORDED,
        "give fewer or shorter chains (config.experiment.batch_size, chain_length)",
    )
    model, batch = build_batch([terms] * len(pack.filled), names, shape, settings.seed)
    recorder = _Distances(_reference(settings.seed, len(terms.linear)), settings)
    outcome = player.play(
        model,
        batch,
        initial_keys(names, shape, settings.seed),
        shape,
        lambda steps: progress(steps * settings.batch_size),
        recorder=recorder,
        steps_per_call=min(steps, player.engine.steps_per_call(method.sampler)),
    )
    kept = outcome.trace.acceptance[_burn_in(settings) :, 0], outcome.trace.hops[_burn_in(settings) :, 0]
    acceptance, hops = (float(leaf.mean(dtype=np.float64)) for leaf in kept)
    return EssRecord(
        ess=discs_ess(recorder.trace, recorder.seconds, recorder.evaluations, ess_ratio=settings.ess_ratio),
        acceptance=acceptance,
        hops=hops,
        seconds=recorder.seconds,
        run_s=player.run_s,
        compile_s=player.compile_s,
        engine=player.engine.name + (f" ({player.engine_note})" if player.engine_note else ""),
    )


def _burn_in(settings: Settings) -> int:
    """Number of discarded steps."""
    return int(settings.chain_length * settings.ess_ratio)


def _reference(seed: int, size: int) -> Int8[np.ndarray, "N"]:
    """The state from which distances are taken, the same for all samplers of a run."""
    key = np.random.SeedSequence([seed, zlib.crc32(b"effective sample size")])
    return np.random.default_rng(key).integers(2, size=size, dtype=np.int8)


class _Distances:
    """Computes the distance of every state during the run, so that states need not be kept.

    Attributes:
      trace: [T, B] distances.
      seconds: seconds that the steps after burn-in took.
      evaluations: evaluations of the log-likelihood by a chain so far; 0 if the sampler's state does not count them.
    """

    def __init__(self, reference: Int8[np.ndarray, "N"], settings: Settings):
        self._reference, self._burn_in = reference, _burn_in(settings)
        self.trace: Int32[np.ndarray, "T B"] = np.zeros((settings.chain_length, settings.batch_size), np.int32)
        self.seconds, self.evaluations = 0.0, 0

    def recall(self, every: int, trace: Trace) -> None:
        """Not supported, as the states of earlier calls are lost."""
        raise NotImplementedError("a run that takes distances has no checkpoints")

    def add(
        self, first: int, stop: int, every: int, trace: Trace, chains: Chains, batch: Batch, program, seconds: float
    ) -> None:
        """Adds the states after steps first + 1 to stop, which took `seconds`."""
        states = np.asarray(trace.states)[:, 0, : self.trace.shape[1], : len(self._reference)]
        self.trace[first:stop] = distances(states, self._reference)
        self.seconds += seconds * max(0, stop - max(first, self._burn_in)) / (stop - first)
        self.evaluations = _evaluations(chains.chain.sampler)


def _evaluations(state: Any) -> int:
    """The number of evaluations in a chain's sampler state, under DISCS's name."""
    counted = state.get("num_ll_calls") if isinstance(state, dict) else getattr(state, "num_ll_calls", None)
    return 0 if counted is None else int(np.asarray(counted)[0, 0])
