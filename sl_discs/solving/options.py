"""The arguments of `sl_discs.solve`: `SolveOptions`, which check themselves and complete each other
with defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int8

from sl_discs.chains.annealing import Annealing
from sl_discs.engines.choice import ENGINES, choose_engine
from sl_discs.engines.devices import num_cores
from sl_discs.engines.program import Engine
from sl_discs.localization.method import IGNORED_SAMPLER_FIELDS, Method, build_method, method_fields
from sl_discs.problems import Problem
from sl_discs.problems.problem import of_series, samples_of_frame
from sl_discs.samplers.registry import own_name, registered
from sl_discs.samplers.single_site import SEQUENTIAL, Metropolis
from sl_discs.support.checks import (
    boolean,
    function,
    integer,
    keywords,
    one_of,
    real,
    real_array,
    shown,
)
from sl_discs.support.errors import InputError

AUTO = "auto"
# Of samplers that try one site per step: sweeps of an annealing, the most steps, and chains, which
# a core steps together.
_SWEEPS, _MOST_TRIES, _IN_STEP = 2_000, 20_000_000, 16
# Site updates of these chains on a core per second, and seconds of the longest annealing without a
# time limit, by this rate.
_UPDATES_PER_SECOND, _LONGEST_S = 1e8, 3.2
# Of other samplers.
_FEWEST_INFORMED, _MOST_INFORMED, _CHAINS = 2_000, 20_000, 32
# Steps of the round that measures the rate, few enough for one call to the engine, so that large
# problems also end cold: in sweeps for samplers that try one site per step, in steps for others.
_FIRST_SWEEPS, _FIRST_STEPS = 3, 200
# The temperatures of this number of steps take a few hundred megabytes.
MOST_STEPS = 10_000_000
_ANNEALING = [field.name for field in dataclasses.fields(Annealing)]


class Lengths(NamedTuple):
    """The chains of a run.

    Attributes:
      chains: their number.
      default: steps of an annealing without a time limit.
      first: steps of the round that measures the rate, or of each.
      unit: lengths of rounds are multiples of it.
    """

    chains: int
    default: int
    first: int
    unit: int


@dataclasses.dataclass(frozen=True)
class SolveOptions:
    """The arguments of `sl_discs.solve`, which documents them, checked and completed when an object
    is made.

    `fields` are those of the sampler's config. `annealing` becomes a dict of the given fields of
    `Annealing`, and `presolve` a decision. From the others follow `built`, the sampler with all
    fields as given; `counts`, whether what reductions and provers find counts beside the states
    that chains visit, so that a proof ends the run; and `searches`, whether greedy answers and
    local searches do, too.

    A sampler `auto` becomes the one that is chosen: `metropolis` if the CPU engine can run it, else
    `path_auxiliary`. Metropolis then scans the sites in order, which takes half the time of a
    random scan and finds better answers in the same number of steps. It is for such a scan alone,
    with all steps that there is time for, that searches count.

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
    counts: bool = False
    searches: bool = False
    built: Method = dataclasses.field(init=False)

    def __post_init__(self):
        one_of("engine", self.engine, ENGINES)
        if not isinstance(self.sampler, str):
            raise InputError(
                f"sampler is {shown(self.sampler)}; expected a name such as 'sl_path_auxiliary', "
                "or 'auto'",
                "sampler",
            )
        values: dict[str, Any] = {"seed": integer("seed", self.seed, bits=64)}
        if self.sampler == AUTO:
            # No GPU scans sites in order, and one that is missing is named as that.
            in_order = Metropolis(scan=SEQUENTIAL)
            scans = self.engine != "cuda" and choose_engine(self.engine, in_order)[0].name == "cpu"
            values["sampler"] = "metropolis" if scans else "path_auxiliary"
            values["fields"] = ({"scan": SEQUENTIAL} if scans else {}) | dict(self.fields)
            values["counts"] = self.presolve is not False
            if self.steps is None and values["fields"] == {"scan": SEQUENTIAL}:
                values["searches"] = values["counts"]
        else:
            values["sampler"] = own_name(self.sampler)
            registered(values["sampler"])
        for name in "chains", "steps":
            if getattr(self, name) is not None:
                values[name] = integer(name, getattr(self, name), 1, bits=31)
        if self.time_limit is not None:
            real("time_limit", self.time_limit, above=0)
        if self.target is not None:
            real("target", self.target)
        for name in "proofs", "progress":
            boolean(name, getattr(self, name))
        if self.presolve is None:
            values["presolve"] = self.sampler == AUTO and self.initial_states is None
        elif boolean("presolve", self.presolve) and self.initial_states is not None:
            raise InputError(
                "presolve and initial_states are both given; what is left has other variables"
            )
        elif self.presolve:
            values["counts"] = True
        for name in "callback", "interrupt":
            if getattr(self, name) is not None:
                function(name, getattr(self, name))
        values["annealing"] = given_annealing(self.annealing)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        known = [field for field in method_fields(self.sampler) if field != "name"]
        derived = "fields", "counts", "searches", "built"
        arguments = [field.name for field in dataclasses.fields(self) if field.name not in derived]
        keywords(
            sorted(set(self.fields) - IGNORED_SAMPLER_FIELDS),
            [*arguments, "problem"],
            self.sampler,
            known,
        )
        object.__setattr__(self, "built", build_method({"name": self.sampler, **self.fields}))
        self.choose_engine()
        most = self.steps or MOST_STEPS
        localization = self.method(most, fit=self.time_limit is not None).localization
        if localization is not None:
            localization.levels(most)

    @property
    def fills_time(self) -> bool:
        """Whether annealings are as long as the time limit allows."""
        return self.time_limit is not None and self.steps is None

    @property
    def num_chains(self) -> int:
        if self.chains is not None:
            return self.chains
        return _IN_STEP if self.tries_one_site else _CHAINS

    @property
    def tries_one_site(self) -> bool:
        """Whether the sampler tries one site a step, or a pair, so that its steps are counted in
        sweeps.
        """
        return self.built.sampler.counts_sweeps

    def method(self, steps: int = MOST_STEPS, *, fit: bool = True) -> Method:
        """Returns the sampler for `steps` steps; lowers a default number of levels K to fit, and
        with `fit` any.
        """
        localization = self.built.localization
        if localization is None or ("K" in self.fields and not fit):
            return self.built
        levels = max(1, min(localization.K, steps // max(localization.n_min, 1)))
        return dataclasses.replace(
            self.built, localization=dataclasses.replace(localization, K=levels)
        )

    def choose_engine(self, num_sites: int = 0) -> tuple[Engine, str]:
        """Returns the engine for the sampler on a problem of this size, and why it was chosen."""
        return choose_engine(
            self.engine, self.built.sampler, num_sites=num_sites, num_chains=self.num_chains
        )

    def lengths(self, num_sites: int, on_host: bool) -> Lengths:
        """Returns how many chains there are, and how many steps they make.

        A core runs a chain alone where as many as it steps together would make less than half of
        their sweeps, since one that cools slowly finds more; without a time limit it makes all
        their steps. This only applies to samplers that try one site per step on the CPU engine,
        whose number of steps in a given time is predictable. The number of cores counts under a
        time limit alone.
        """
        chains = self.num_chains
        least = _FIRST_STEPS
        default = min(max(_FEWEST_INFORMED, 10 * num_sites), _MOST_INFORMED)
        if self.tries_one_site:
            least = _FIRST_SWEEPS * num_sites
            default = min(_SWEEPS * num_sites, _MOST_TRIES)
            seconds = _LONGEST_S if self.time_limit is None else self.time_limit
            together = _IN_STEP * _SWEEPS * num_sites / _UPDATES_PER_SECOND
            if on_host and self.chains is None and 2 * seconds < together:
                chains = 1
                default *= _IN_STEP
        if self.time_limit is not None and self.chains is None and on_host:
            chains = min(chains * num_cores(), _CHAINS)
        default = self.steps or default
        # On JAX, the steps of a call, so that rounds share one program.
        unit = 1_000 if not on_host and self.tries_one_site else 100
        if not self.fills_time:
            return Lengths(chains, default, default, unit)
        if self.built.localization is not None:
            least = max(least, self.built.localization.n_min)
        return Lengths(chains, default, -(-least // unit) * unit, unit)


def given_annealing(annealing: Any) -> dict[str, Any]:
    """Returns the given fields of `Annealing`, from what `sl_discs.solve` takes.

    A t_schedule of temperatures includes the initial and final one. InputError for anything else,
    or a field out of range.
    """
    if annealing is None:
        return {}
    if not isinstance(annealing, Mapping):
        ends = real_array("annealing: a temperature", annealing)
        if ends.shape != (2,):
            raise InputError(
                f"annealing is {shown(annealing)}; expected (initial, final) temperatures or a "
                "dict of " + ", ".join(_ANNEALING)
            )
        annealing = dict(zip(("init_temperature", "final_temperature"), ends.tolist(), strict=True))
        if ends[1] > ends[0]:
            raise InputError(
                f"annealing goes from {ends[0]} to {ends[1]}; expected initial >= final > 0",
                "annealing",
            )
    fields = dict(annealing)
    unknown = [name for name in fields if name not in _ANNEALING]
    if unknown:
        raise InputError(f"annealing has no field {unknown[0]!r}; known: {', '.join(_ANNEALING)}")
    for name in {"init_temperature", "final_temperature", "decay_rate"} & set(fields):
        fields[name] = real(f"annealing: {name}", fields[name])
    if "anneal_every" in fields:
        fields["anneal_every"] = integer("annealing: anneal_every", fields["anneal_every"], 1)
    if isinstance(fields.get("t_schedule"), list | tuple | np.ndarray):
        table = tuple(real_array("annealing: t_schedule", fields["t_schedule"]).tolist())
        fields["t_schedule"] = table
        if table:
            fields |= {"init_temperature": table[0], "final_temperature": table[-1]}
    try:
        Annealing(**fields)
    except InputError as error:
        raise InputError(
            str(error).replace("config.experiment.", "annealing: "), "annealing"
        ) from None
    return fields


def times(annealing: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Returns fields of `Annealing` with temperatures that are multiplied by a factor."""
    fields = dict(annealing)
    for name in {"init_temperature", "final_temperature"} & set(fields):
        fields[name] *= factor
    if isinstance(fields.get("t_schedule"), tuple):
        fields["t_schedule"] = tuple(factor * value for value in fields["t_schedule"])
    return fields


def as_states(problem: Problem, states: Any, chains: int) -> Int8[np.ndarray, "R N"] | None:
    """Returns initial states of zeros and ones from what `sl_discs.solve` takes; InputError for
    anything else.
    """
    if states is None:
        return None
    states = samples_of_frame(of_series("initial_states", states))
    if not hasattr(states, "__getitem__") or getattr(states, "ndim", 1) == 0:
        raise InputError(
            f"initial_states is {shown(states)}; expected a sample as a dict or [N], or several, "
            "such as Result.states",
            "initial_states",
        )
    if isinstance(states, Mapping) or (
        len(states) and not isinstance(states[0], Mapping) and np.ndim(states[0]) == 0
    ):
        states = [states]
    if not 1 <= len(states) <= chains:
        raise InputError(
            f"{len(states)} initial_states for {chains} chains; give from 1 to as many as chains"
        )
    return np.stack([problem.as_state(state) for state in states])
