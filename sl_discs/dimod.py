"""A dimod sampler: usable where `dwave.samplers.SimulatedAnnealingSampler` is, with any sampler of this package.

    sampleset = SLSampler().sample(bqm, num_reads=32, seed=0)

Energies are dimod's, so an inverse temperature beta weighs a state by exp(-beta energy).
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

try:
    import dimod
except ImportError as error:
    raise ImportError("sl_discs.dimod needs dimod; install it with: pip install 'sl_discs[dimod]'") from error

from sl_discs.errors import InputError
from sl_discs.localization.method import NOT_LOCALIZED, not_localized_note
from sl_discs.problems import from_bqm
from sl_discs.solving.recipe import AUTO, choose_sampler, tries_one_site
from sl_discs.solving.sample import sample

SCHEDULES = ("geometric",)
STATES = ("best", "final")


class SLSampler(dimod.Sampler, dimod.Initialized):
    """Anneals chains of a discrete MCMC sampler, localized or not; each read is one chain."""

    @property
    def parameters(self) -> dict[str, list[str]]:
        """Arguments of `sample`, and the properties that say more about them."""
        return {
            "sampler": [],
            "num_reads": [],
            "num_sweeps": [],
            "steps": [],
            "time_limit": [],
            "beta_range": [],
            "beta_schedule_type": ["beta_schedule_options"],
            "initial_states": [],
            "initial_states_generator": [],
            "seed": [],
            "interrupt_function": [],
            "states": ["states_options"],
            "engine": [],
            "sampler_fields": [],
        }

    @property
    def properties(self) -> dict[str, Any]:
        """What some arguments may be."""
        return {"beta_schedule_options": SCHEDULES, "states_options": STATES}

    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        *,
        sampler: str = AUTO,
        num_reads: int | None = None,
        num_sweeps: int | None = None,
        steps: int | None = None,
        time_limit: float | None = None,
        beta_range: Sequence[float] | None = None,
        beta_schedule_type: str = "geometric",
        initial_states: Any = None,
        initial_states_generator: str = "random",
        seed: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        states: str = "best",
        engine: str = "auto",
        sampler_fields: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> dimod.SampleSet:
        """Samples from a binary quadratic model.

        Args:
          bqm: to be minimised; BINARY or SPIN, any labels, possibly empty.
          sampler: a name, as for `sl_discs.sample`.
          num_reads: chains, each of which is one read; None: as many as there are initial states, else 1.
          num_sweeps: of each chain; a sweep is a step a variable for `metropolis` and `gibbs`, which try one variable
            a step, and one step for the others, which look at all of them. None: 1,000, or the others' default.
          steps: of each chain, instead of num_sweeps.
          time_limit: seconds, as for `sl_discs.sample`.
          beta_range: first and last inverse temperature; None: from the model's gains.
          beta_schedule_type: `geometric`.
          initial_states: samples-like, one a read.
          initial_states_generator: `none`, `tile` or `random`, as dimod's `Initialized` has them.
          seed: from 0 to 2^32 - 1; None: a new one, which `info` names.
          interrupt_function: called without arguments between calls to the engine; True ends the run, and what was
            found so far comes back.
          states: `best`: the lowest state that each chain met at any step; `final`: the one that it ended with, which
            is what samples at a fixed temperature are. `info["states"]` says what these are; of an `sl_` sampler that
            does not localize they are the chains' last states, and a warning says so.
          engine: as for `sl_discs.sample`.
          sampler_fields: of the sampler's config, as {"K": 128, "sigma": 4.0} of localized ones.
          **kwargs: are warned of and passed over.

        Returns:
          reads with their exact energies; `info` holds beta_range, beta_schedule_type, sampler, states, engine, seed,
          steps and timing in nanoseconds.

        Raises:
          InputError: a wrong argument.
        """
        begin = time.perf_counter_ns()
        self.remove_unknown_kwargs(**kwargs)
        if beta_schedule_type not in SCHEDULES:
            raise InputError(f"beta_schedule_type is {beta_schedule_type!r}; known: {', '.join(SCHEDULES)}")
        if states not in STATES:
            raise InputError(f"states is {states!r}; known: {', '.join(STATES)}")
        if steps is not None and num_sweeps is not None:
            raise InputError("num_sweeps and steps are both given; give one of them")
        seed = random.getrandbits(32) if seed is None else seed
        name = choose_sampler(sampler, engine)
        parsed = self.parse_initial_states(bqm, initial_states, initial_states_generator, num_reads, seed)
        info = {"beta_schedule_type": beta_schedule_type, "sampler": name, "seed": seed}
        if not bqm.num_variables:
            empty = np.empty((parsed.num_reads, 0), np.int8), []
            return dimod.SampleSet.from_samples_bqm(empty, bqm, info=info)
        if num_sweeps is not None:
            steps = num_sweeps * (bqm.num_variables if tries_one_site(name) else 1)
        begun = None
        if initial_states is not None:
            order = [parsed.initial_states.variables.index(label) for label in bqm.variables]
            begun = parsed.initial_states.record.sample[:, order]
        result = sample(
            from_bqm(bqm),
            name,
            steps=steps,
            time_limit=time_limit,
            chains=parsed.num_reads,
            annealing=None if beta_range is None else _temperatures(beta_range),
            initial_states=begun,
            engine=engine,
            seed=seed,
            callback=interrupt_function and (lambda steps, best: interrupt_function()),
            **(sampler_fields or {}),
        )
        sampled = time.perf_counter_ns()
        reads = result.states if states == "best" else result.final_states
        if states == "final" and result.final_is == NOT_LOCALIZED:
            warnings.warn(not_localized_note(name), stacklevel=2)
        found = dimod.SampleSet.from_samples_bqm((reads, list(bqm.variables)), bqm)
        sampling, compiling = (int(1e9 * result.timing[key]) for key in ("run_s", "compile_s"))
        end = time.perf_counter_ns()
        found.info.update(
            info,
            beta_range=[1 / result.annealing["init_temperature"], 1 / result.annealing["final_temperature"]],
            states=states if states == "best" else result.final_is,
            engine=result.engine,
            steps=result.steps,
            timing={
                "preprocessing_ns": sampled - begin - sampling - compiling,
                "compilation_ns": compiling,
                "sampling_ns": sampling,
                "postprocessing_ns": end - sampled,
            },
        )
        return found


def _temperatures(beta_range: Sequence[float]) -> tuple[float, float]:
    try:
        first, last = (float(beta) for beta in beta_range)
    except (TypeError, ValueError):
        raise InputError(f"beta_range is {beta_range!r}; expected two numbers (first, last)") from None
    if not 0 < first <= last < float("inf"):
        raise InputError(f"beta_range goes from {first} to {last}; expected 0 < first <= last")
    return 1 / first, 1 / last
