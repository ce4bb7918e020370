"""The arguments of `sl_discs.solve`: `SolveOptions`, which check themselves and complete each other with defaults."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.engines.base import Engine
from sl_discs.engines.registry import choose_engine, num_cores
from sl_discs.errors import InputError, boolean, check_memory, integer, keywords, real, real_array, unmasked
from sl_discs.experiment.batches import Layout, Shape, batch_bytes, padded_size, program_bytes
from sl_discs.experiment.settings import ENGINES, SCHEDULES
from sl_discs.localization.method import DISCS_ONLY, Method, build_method, method_fields
from sl_discs.localization.schedule import Localization
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS
from sl_discs.samplers.registry import base_name, counts_sweeps, is_localized, own_name
from sl_discs.samplers.single_site import SEQUENTIAL, Metropolis

AUTO = "auto"
SWEEPS = 1_000
CHAINS = 32
# Approximate site updates of a core per second, and the number of sweeps in which a chain cools slowly enough.
_UPDATES_PER_SECOND, _SLOW_SWEEPS = 5e7, 20_000
# The temperatures of this number of steps take a few hundred megabytes.
MOST_STEPS = 10_000_000
# Seconds of a bound, and the part of a time limit.
_MOST_BOUND_S, _BOUND_PART = 2.0, 0.05
_FEWEST_INFORMED, _MOST_INFORMED = 2_000, 20_000
_ANNEALING = ("t_schedule", "init_temperature", "final_temperature", "decay_rate", "anneal_every")


@dataclasses.dataclass(frozen=True)
class SolveOptions:
    """The arguments of `sl_discs.solve`, which documents them, checked when an object is made.

    `fields` are those of the sampler's config. `annealing` becomes a dict of the given fields of `Annealing`.

    Raises:
      InputError: an argument is wrong; the message names it.
    """

    sampler: str = AUTO
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    steps: int | None = None
    time_limit: float | None = None
    target: float | None = None
    chains: int | None = None
    annealing: Any = None
    initial_states: Any = None
    presolve: bool | None = None
    proofs: bool = True
    engine: str = AUTO
    seed: int = 0
    callback: Callable[[int, float], object] | None = None
    interrupt: Callable[[], object] | None = None
    progress: bool = False

    def __post_init__(self):
        plain: dict[str, Any] = {"seed": integer("seed", self.seed, bits=64)}
        for name in "chains", "steps":
            if getattr(self, name) is not None:
                plain[name] = integer(name, getattr(self, name), 1, bits=31)
        if self.time_limit is not None:
            real("time_limit", self.time_limit, above=0)
        if self.target is not None:
            real("target", self.target)
        if self.presolve is not None:
            boolean("presolve", self.presolve)
        boolean("proofs", self.proofs)
        for name in "callback", "interrupt":
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise InputError(f"{name} is {function!r}; expected a function")
        if self.presolve and self.initial_states is not None:
            raise InputError("presolve and initial_states are both given; what is left has other variables")
        known = [field for field in method_fields(self.sampler_name) if field != "name"]
        arguments = [field.name for field in dataclasses.fields(self) if field.name != "fields"]
        keywords(sorted(set(self.fields) - DISCS_ONLY), [*arguments, "problem"], self.sampler_name, known)
        plain["annealing"] = given_annealing(self.annealing)
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        self.choose_engine()
        most = self.steps or MOST_STEPS
        localization = self.method(most, fit=self.time_limit is not None).localization
        if localization is not None:
            localization.levels(most)

    @functools.cached_property
    def _chosen(self) -> tuple[str, Mapping[str, Any]]:
        """The sampler's name and fields; InputError if the sampler or the engine is unknown.

        `auto` is `metropolis` if the CPU engine can run it, else `path_auxiliary`. Metropolis then scans the sites in
        order, which takes half the time of a random scan and finds better answers in the same number of steps.
        """
        if not isinstance(self.engine, str) or self.engine not in ENGINES:
            raise InputError(f"engine is {self.engine!r}; known: {', '.join(ENGINES)}", "engine")
        if not isinstance(self.sampler, str):
            raise InputError(
                f"sampler is {self.sampler!r}; expected a name such as 'sl_path_auxiliary', or 'auto'", "sampler"
            )
        if not self.automatic:
            sampler = own_name(self.sampler)
            base_name(sampler)
            return sampler, self.fields
        if choose_engine(self.engine, Metropolis(scan=SEQUENTIAL))[0].name == "cpu":
            return "metropolis", {"scan": SEQUENTIAL, **self.fields}
        return "path_auxiliary", self.fields

    @property
    def sampler_name(self) -> str:
        """The name of the sampler, which is chosen where `auto` was given."""
        return self._chosen[0]

    @property
    def sampler_fields(self) -> Mapping[str, Any]:
        """The fields of its config that are given, or chosen with it."""
        return self._chosen[1]

    @property
    def automatic(self) -> bool:
        """Whether the sampler was chosen."""
        return isinstance(self.sampler, str) and self.sampler == AUTO

    @property
    def presolves(self) -> bool:
        """Whether the problem is enumerated or reduced first, and the run ends with a proof."""
        return self.automatic and self.initial_states is None if self.presolve is None else self.presolve

    @property
    def fills_time(self) -> bool:
        """Whether annealings are as long as the time limit allows."""
        return self.time_limit is not None and self.steps is None

    @property
    def num_chains(self) -> int:
        return CHAINS if self.chains is None else self.chains

    @property
    def tries_one_site(self) -> bool:
        """Whether the sampler tries one site a step, or a pair, so that its steps are counted in sweeps."""
        return counts_sweeps(self.sampler_name)

    @property
    def n_min(self) -> int:
        """The least number of steps of a level of localization; 1 without localization."""
        least = self.sampler_fields.get("n_min", Localization.n_min) if is_localized(self.sampler_name) else 1
        return least if isinstance(least, int) else 1

    @property
    def bound_seconds(self) -> float:
        """Returns the seconds for a bound: a twentieth of a time limit, and at most two; none without proofs."""
        if not self.proofs:
            return 0.0
        return _MOST_BOUND_S if self.time_limit is None else min(_BOUND_PART * self.time_limit, _MOST_BOUND_S)

    def is_interrupted(self) -> bool:
        """Whether the user has interrupted the run."""
        return self.interrupt is not None and bool(self.interrupt())

    def method(self, steps: int = MOST_STEPS, *, fit: bool = True) -> Method:
        """Builds the sampler for `steps` steps; lowers a default number of levels K to fit, and with `fit` any."""
        fields = {"name": self.sampler_name, **self.sampler_fields}
        if is_localized(self.sampler_name):
            levels = fields.get("K", Localization.K)
            if (fit or "K" not in fields) and isinstance(levels, int):
                fields["K"] = max(1, min(levels, steps // max(self.n_min, 1)))
        return build_method(fields, self.num_chains)

    def choose_engine(self, num_sites: int = 0) -> tuple[Engine, str]:
        """The engine for the sampler on a problem of this size, and why it was chosen."""
        sampler, chains = self.method().sampler, self.num_chains
        return choose_engine(self.engine, sampler, num_sites=num_sites, num_chains=chains)

    def for_size(self, num_sites: int, on_host: bool) -> SolveOptions:
        """With a number of chains: 32, or under a time limit fewer, so that each can cool slowly, but one per core.

        This only applies to samplers that try one site per step on the CPU engine, whose number of sweeps in a given
        time is predictable.
        """
        chains = self.num_chains
        if self.chains is None and self.time_limit is not None and self.tries_one_site and on_host:
            cores = num_cores()
            sweeps = self.time_limit * cores * _UPDATES_PER_SECOND / num_sites
            chains = int(min(max(sweeps / _SLOW_SWEEPS // cores * cores, cores), CHAINS))
        return dataclasses.replace(self, chains=chains)

    def default_steps(self, num_sites: int) -> int:
        if self.tries_one_site:
            return min(SWEEPS * num_sites, MOST_STEPS)
        return min(max(_FEWEST_INFORMED, 10 * num_sites), _MOST_INFORMED)

    @property
    def has_rivals(self) -> bool:
        """Whether `auto` is free to try others beside its first choice, under a time limit, on the CPU engine."""
        return self.automatic and self.fills_time and self.sampler_fields == {"scan": SEQUENTIAL}

    @property
    def uses_local_searches(self) -> bool:
        """Whether local searches are among them: not where the values asked for are those that chains visit."""
        return self.has_rivals and self.presolves

    def rivals(self, problem: Problem) -> list[tuple[Problem, SolveOptions]]:
        """The samplers that `auto` also tries under a time limit, beside its first choice.

        That is `exchange`, where it helps on this kind of problem, with a penalty of its own, unless the problem's
        owner has chosen one.
        """
        kind = KINDS[problem.kind]
        if not (self.has_rivals and kind.exchange_penalty):
            return []
        penalty = kind.exchange_penalty if problem.penalty == kind.penalty else problem.penalty
        exchange = dataclasses.replace(self, sampler="exchange", fields={})
        return [(dataclasses.replace(problem, penalty=penalty), exchange)]


def given_annealing(annealing: Any) -> dict[str, Any]:
    """The given fields of `Annealing`, from what `sl_discs.solve` takes; a t_schedule of temperatures includes the
    initial and final one. InputError for anything else, or a field out of range.
    """
    if annealing is not None and not isinstance(annealing, Mapping):
        given = annealing.tolist() if isinstance(annealing, np.ndarray) else annealing
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise InputError(
                f"annealing is {annealing!r}; expected (initial, final) temperatures or a dict of "
                + ", ".join(_ANNEALING)
            )
        initial, final = (real("annealing: a temperature", one, above=0) for one in given)
        if final > initial:
            raise InputError(f"annealing goes from {initial} to {final}; expected initial >= final > 0", "annealing")
        return {"init_temperature": initial, "final_temperature": final}
    given = dict(annealing or {})
    unknown = [name for name in given if name not in _ANNEALING]
    if unknown:
        raise InputError(f"annealing has no field {unknown[0]!r}; known: {', '.join(_ANNEALING)}")
    for name in {"init_temperature", "final_temperature", "decay_rate"} & set(given):
        given[name] = real(f"annealing: {name}", given[name], above=0)
    if given.get("decay_rate", 1) > 1:
        raise InputError(f"annealing: decay_rate is {given['decay_rate']}; expected a number in (0, 1]")
    if "anneal_every" in given:
        given["anneal_every"] = integer("annealing: anneal_every", given["anneal_every"], 1)
    schedule = given.get("t_schedule", SCHEDULES[0])
    if isinstance(schedule, list | tuple | np.ndarray) and len(schedule):
        temperatures = real_array("annealing: t_schedule", schedule)
        if temperatures.ndim != 1 or not (np.isfinite(temperatures) & (temperatures > 0)).all():
            raise InputError("annealing: t_schedule: expected finite temperatures [T] above 0")
        table = tuple(temperatures.tolist())
        given |= {"t_schedule": table, "init_temperature": table[0], "final_temperature": table[-1]}
    elif schedule not in SCHEDULES:
        raise InputError(f"annealing: t_schedule is {given['t_schedule']!r}; known: {', '.join(SCHEDULES)}")
    return given


def as_states(problem: Problem, given: Any, chains: int) -> Int8[np.ndarray, "R N"] | None:
    """The initial states as zeros and ones, from the forms that `sl_discs.solve` takes; InputError for any other."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        given = [given]
    if not (isinstance(given, list | tuple) and given and isinstance(given[0], Mapping)):
        given = unmasked("initial_states", given)
        try:
            given = np.asarray(given)
        except ValueError:
            raise InputError("initial_states have rows of different lengths; expected [N] or [R, N]") from None
        if given.ndim not in (1, 2):
            raise InputError(
                f"initial_states have shape {given.shape}; expected a dict, a list of dicts, or values [N] or [R, N]"
            )
        given = np.atleast_2d(given)
    if not 1 <= len(given) <= chains:
        raise InputError(f"{len(given)} initial_states for {chains} chains; give from 1 to as many as chains")
    return np.stack([problem.as_state(one) for one in given])


# Estimates the memory and time that building the arrays of a problem will take, before they are built.

# Bytes of a term in the problem, in the model, and in the matrices for temperatures and exact values.
_TERM_BYTES = 60
# The least number of terms that one core processes per second.
_TERMS_PER_S = 2e6


def check_fit(
    problem: Problem, options: SolveOptions, steps: int, engine: Engine, shape: Shape | None = None
) -> None:
    """InputError if the estimated memory of chains is not there; without a shape, couplings do not count yet."""
    size, terms = problem.num_variables, problem.num_terms
    shape = shape or Shape(padded_size(size), 1, options.num_chains, 0, Layout(1, 1))
    logged = min(steps, 100)
    need = terms * _TERM_BYTES + program_bytes(steps, not options.tries_one_site)
    need += batch_bytes(shape, logged, engine.name) * shape.layout.instances * shape.layout.chains
    check_memory(
        f"{problem.name} ({size:,} variables, {terms:,} terms) with {options.num_chains:,} chains of {steps:,} steps",
        need,
        "give a smaller problem, or fewer chains or steps",
    )


def layout_seconds(problem: Problem) -> float:
    """An upper estimate of the seconds that building the arrays of a problem takes."""
    return problem.num_terms / _TERMS_PER_S
