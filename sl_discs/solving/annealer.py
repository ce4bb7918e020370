"""What anneals: chains of one sampler on one problem, at temperatures from its gains; and local searches beside."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int8

from sl_discs.errors import InputError
from sl_discs.experiment.batches import devices_for, shape_of_one
from sl_discs.experiment.chains import Chains, Outcome, anneal
from sl_discs.experiment.settings import Annealing, Settings
from sl_discs.localization.method import Method
from sl_discs.models.quadratic import sparse_is_cheaper
from sl_discs.models.terms import Terms
from sl_discs.problems import Problem
from sl_discs.samplers.registry import is_localized
from sl_discs.solving.options import SolveOptions, check_fit

# Steps of the round that measures the rate, few enough for one call to the engine, so that large problems also end
# cold: in sweeps for samplers that try one site per step, in steps for others.
_FIRST_SWEEPS, _FIRST_STEPS = 3, 200
# The most padded sites of which rows cost next to nothing.
_SMALL = 128


def first_round(options: SolveOptions, num_sites: int, on_host: bool) -> tuple[int, int]:
    """The steps of the round that measures the rate, or of each round; and what lengths are multiples of."""
    one_site = options.tries_one_site
    # On JAX, the steps of a call, so that rounds share one program.
    unit = 1_000 if not on_host and one_site else 100
    if not options.fills_time:
        return options.steps or options.default_steps(num_sites), unit
    least = max(_FIRST_SWEEPS * num_sites if one_site else _FIRST_STEPS, options.n_min)
    return -(-least // unit) * unit, unit


class Annealer:
    """Annealings of one sampler on one problem, perhaps with a penalty of its own; each has its own random numbers.

    InputError where coefficients are beyond the range of the model's 32-bit numbers.
    """

    # Steps between two checks of the clock, and seconds per step of the last round, once they are known.
    steps_per_call: int | None = None
    pace: float | None = None
    # The best exact value found, times the sign of the problem's sense.
    best: float = -np.inf
    # Whether it may have the rest of the time.
    conclusive = True

    def __init__(self, problem: Problem, options: SolveOptions):
        self._terms = terms = objective_of(problem)
        self.problem, self.options = problem, options
        self.annealing = complete_annealing(options.annealing, terms)
        self.engine, self.note = options.choose_engine(problem.num_variables)
        self.first, self.unit = first_round(options, problem.num_variables, self.engine.on_host)
        self._settings = Settings(
            batch_size=options.num_chains, chain_length=self.first, log_every_steps=1, engine=options.engine,
            seed=options.seed, **vars(self.annealing),
        )  # fmt: skip
        # The part of the problem's value that the model omits, times the sign of its sense.
        self.constant = terms.constant

    def method(self, steps: int) -> Method:
        """Builds the sampler for chains of `steps` steps."""
        return self.options.method(steps, fit=self.options.fills_time)

    def settings(self, steps: int, every: int) -> Settings:
        """Returns the settings of a run of `steps` steps, which logs every `every`-th of them.

        Where a step tries one site, the temperature changes once in a sweep, but at least a hundred times.
        """
        same = self.annealing.anneal_every
        if "anneal_every" not in self.options.annealing and self.options.tries_one_site:
            same = max(1, min(self.problem.num_variables, steps // 100))
        return dataclasses.replace(self._settings, chain_length=steps, log_every_steps=every, anneal_every=same)

    def reported(self) -> dict[str, Any]:
        """Returns the fields of the annealing that results show: those of its temperatures, and the given ones."""
        names = "t_schedule", "init_temperature", "final_temperature", "decay_rate", *self.options.annealing
        return {name: getattr(self.annealing, name) for name in names}

    @property
    def timed(self) -> bool:
        """Whether temperatures can follow the time.

        Levels of localization are numbers of steps, and the CPU engine weighs proposals for a whole run.
        """
        options = self.options
        return not is_localized(options.sampler_name) and (options.tries_one_site or not self.engine.on_host)

    @functools.cached_property
    def chains(self) -> Chains:
        """The chains, whose arrays are built on first use; InputError where they do not fit into memory."""
        terms, options, sampler = self._terms, self.options, self.method(self.first).sampler
        shape = shape_of_one(terms, options.num_chains, *devices_for(self.engine, sampler, self._settings))
        shape = dataclasses.replace(shape, degree=_rounded(shape.degree, shape.num_sites))
        check_fit(self.problem, options, self.first, self.engine, shape)
        return Chains.of_one(terms, 0, shape, sampler, self.engine, options.seed)

    def anneal(self, number: int, method: Method, settings: Settings, states, **how) -> Outcome:
        """Round `number`, whose random numbers it determines; `how` is passed to `experiment.chains.anneal`."""
        self.chains.rename([number] * self.chains.shape.num_instances)
        return anneal(self.chains, method, settings, states=states, **how)


def _rounded(degree: int | None, num_sites: int) -> int | None:
    """The length of neighbour lists, chosen so that similar problems share a program; None: rows.

    Lengths are powers of two, and small problems have no lists.
    """
    if degree is None or num_sites <= _SMALL:
        return None
    longer = 1 << max(degree - 1, 0).bit_length()
    return longer if sparse_is_cheaper(longer, num_sites) else degree


class LocalSearch(abc.ABC):
    """A search beside the annealings of a problem under a time limit, of those that fit its structure.

    Attributes:
      name: what it is, in words.
      best: the best exact value found, times the sign of the problem's sense.
      conclusive: whether a trial of it is long enough to tell what it would find in the rest of the time.
    """

    name: str
    best: float = -np.inf
    conclusive: bool = True

    @property
    @abc.abstractmethod
    def state(self) -> Int8[np.ndarray, "n"]:
        """The best state found, as zeros and ones."""

    @abc.abstractmethod
    def advance(self, seconds: float) -> bool:
        """Searches for about `seconds`; returns whether more is to do."""


# Sums of terms between these sizes stay finite in float32, and the smallest terms do not vanish.
_LARGEST, _SMALLEST = 1e30, 1e-30


def objective_of(problem: Problem) -> Terms:
    """The terms of what is maximised; InputError if they are beyond the range of the model's 32-bit numbers."""
    terms = problem.terms()
    largest = terms.largest()
    if not (largest == 0 or _SMALLEST < largest < _LARGEST):
        raise InputError(
            f"{problem.name}: the largest coefficient is {largest:g}; multiply all of them by one number so that it "
            f"lies between {_SMALLEST:g} and {_LARGEST:g}"
        )
    return terms


def complete_annealing(given: Mapping[str, Any], terms: Terms) -> Annealing:
    """Returns the annealing with these fields: by default, exponential decay in the terms' `temperature_range`."""
    if {"init_temperature", "final_temperature"} <= set(given):
        initial, final = given["init_temperature"], given["final_temperature"]
    else:
        hot, cold = temperature_range(terms)
        initial, final = given.get("init_temperature", hot), given.get("final_temperature", cold)
    default = {"init_temperature": initial, "final_temperature": final, "decay_rate": min(1.0, final / initial)}
    return Annealing(**{**default, **given})


# Default temperatures for annealing a model, from the gains of its flips.
#
# A few random states are quenched: half of the sites whose flips gain are flipped at a time, until hardly any are
# left. All flips then lose, by amounts that are typical of good states. Losses below a thousandth of the mean are
# ignored, because they are accepted at any temperature. Annealing starts at half the lower quartile of the other
# losses, where small losses are still often accepted, and ends where the smallest relevant ones, their 1 % quantile,
# are nearly frozen: at temperature loss / log N about one of them is accepted in a sweep over all N sites.
#
# To begin where losses are accepted and to end where small ones are frozen is White's rule ("Concepts of scale in
# simulated annealing", 1984); D-Wave's `SimulatedAnnealingSampler` derives both temperatures from the coefficients.
# Losses at quenched states are used instead so that a penalty, a hub, or the smallest of many coefficients does not
# decide. White begins at the spread of the values, which wastes most of a short run: with half a second for each of
# eight graphs, half the lower quartile gave independent sets larger by 3.75 (ER-0.05) and 1.1 (SATLIB-like) than the
# mean loss did, and cuts smaller by 1.75 of 3,159 (BA-1024).

_NEGLIGIBLE = 1e-3
_QUANTILE = 0.01


def temperature_range(terms: Terms) -> tuple[float, float]:
    """The temperatures at which annealing begins and ends, in the units of the terms; (1, 1) where all are 0."""
    losses, num_sites = terms.losses(np.random.default_rng(0)), terms.num_sites
    mean = float(losses.mean())
    if mean == 0:
        # No move changes the quenched states, so the coefficients are the only scale left.
        mean = terms.largest() or 1.0
        return mean, mean / _sweep(num_sites)
    smallest, small = np.quantile(losses[losses > _NEGLIGIBLE * mean], (_QUANTILE, 0.25))
    final = float(smallest) / _sweep(num_sites)
    return max(float(small) / 2, final), final


def _sweep(num_sites: int) -> float:
    """log N, and at least 4, so that small models also end cold."""
    return max(4.0, float(np.log(num_sites)))
