"""`sl_discs.sample`: from a problem to draws at a temperature."""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.chains.budget import Budget
from sl_discs.engines.choice import choose_engine
from sl_discs.engines.devices import check_threads
from sl_discs.localization.method import Method, method_fields
from sl_discs.models.functions import Terms, check_not_traced
from sl_discs.models.terms import Coefficients
from sl_discs.problems import Problem
from sl_discs.problems.density import LogDensity
from sl_discs.problems.kind import KINDS
from sl_discs.problems.problem import checked_problem
from sl_discs.samplers.registry import (
    is_localized,
    localized_name,
    own_name,
    registered,
)
from sl_discs.sampling import exact, localized, low_rank, plain_chains, tempering
from sl_discs.sampling.diagnostics import judge
from sl_discs.sampling.directions import mixes_fast
from sl_discs.sampling.drawn import (
    MAGNETISATION,
    OVERLAP,
    ROUNDED,
    VALUE,
    Drawn,
    Request,
    observed,
)
from sl_discs.sampling.samples import Samples
from sl_discs.support.checks import (
    boolean,
    function,
    integer,
    join_names,
    keywords,
    one_of,
    real,
    real_array,
    shown,
    text,
)
from sl_discs.support.errors import InputError, fields_are_keywords
from sl_discs.support.terminal import Advance, progress_bar

# Each makes the draws of a request.
METHODS: dict[str, Callable[[Request, Budget], Drawn]] = {
    "chain": plain_chains.draw,
    "tempering": tempering.draw,
    "localization": localized.draw,
    "low_rank": low_rank.draw,
    "exact": exact.draw,
}
AUTO = "auto"
# Methods that `auto` tries before tempering, when it does, and why.
_TRIED = {
    "low_rank": (low_rank.applies, "few directions stand out from the couplings"),
    "chain": (tempering.needs_no_ladder, "chains at all temperatures forget their starts"),
}
# Those that give a curve over temperatures.
_CURVES = "exact", "tempering"
ENGINES = "auto", "cpu", "reference"
# The most variables that `auto` enumerates, and the parts of a time limit for the search for
# certificates and for each method that may not be enough.
_ENUMERATED, _SEARCH_PART, _TRIED_PART = 16, 0.2, 0.6
# Independent groups. Where the draws of a group depend on each other, more of them are needed; and
# 16 chains, in step on the CPU engine, give two to three times the effective draws a second of 8.
_GROUPS = {"chain": 16, "low_rank": 16}
_USUAL_GROUPS = 8
# Draws where no number is given, and by how much it may grow until there are enough effective ones.
_USUAL_DRAWS, _MOST_TIMES = 1_000, 16
# Where chains need at most this many times their draws, `auto` tries no ladder.
_FEW_TIMES = 4
# The largest value and temperature of chains, whose numbers are in single precision.
_LARGEST = 1e30
# Values that are this part of the temperature apart, as what chains round is, change draws.
_MOST_APART = 0.01
_UNCERTIFIED = (
    "nothing is known of how fast a local sampler mixes here: chains that agree may all have "
    "missed a mode; the method tempering looks for others"
)


@fields_are_keywords()
def sample(
    problem: Problem | LogDensity,
    temperature: float | Sequence[float] = 1.0,
    draws: int | None = None,
    method: str = AUTO,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    sampler: str = AUTO,
    groups: int | None = None,
    engine: str = "auto",
    interrupt: Callable[[], object] | None = None,
    progress: bool = False,
    **sampler_fields: object,
) -> Samples:
    """Draws from p(x) ~ exp(f(x)/temperature), where f is what the problem maximises, or minus what
    it minimises.

    The same problem, arguments and engine give the same draws, unless there is a time limit.

    Example:
        >>> problem = sl_discs.ising(None, {("a", "b"): -1, ("b", "c"): -1})
        >>> samples = sl_discs.sample(problem, temperature=2.0)
        >>> print(samples.pair_marginal("a", "c"), samples.verdict)  # P(both are 1)
        0.303388 (exact) reliable

    Args:
      problem: from `sl_discs.maxcut`, `sl_discs.ising`, `sl_discs.from_log_density` or another
        constructor. Sets and covers may have conflicts, each of which costs the problem's
        `penalty`.
      temperature: tau > 0, in units of the problem's value; or several, with `exact` or
        `tempering`: draws are those of the lowest, and `Samples.curve` has value, heat capacity,
        log Z and entropy at each.
      draws: minimum number of draws, rounded up to a multiple of the number of groups; None: 1,000
        or, where these are worth less than 400 independent ones, up to 16 times as many.
      method: `chain`, `tempering`, `localization`, `low_rank` or `exact`; `auto` enumerates small
        problems, runs chains where the couplings are so weak that a local sampler is known to mix
        fast, low_rank where one or two directions stand out from a narrow rest, and tempering
        otherwise. `Samples.chosen` says why.
      seed: at least 0, less than 2^64.
      time_limit: seconds of wall time, without compilation, which then determine the number of
        draws in place of `draws`.
      sampler: a registered base sampler, such as `gwg`; `auto` is `gibbs`. `exact` uses none and
        refuses it, and `auto` ignores it where it enumerates or eliminates.
      groups: number of independent chains or ladders; None: 8, or 16 for chain and low_rank. Of
        ladders that swap clusters, see `tempering.swaps_clusters`, two are one group of the draws.
      engine: `cpu`, `reference`, or `auto`: `cpu` where it can run the sampler, otherwise
        `reference`, on the device of JAX.
      interrupt: called repeatedly without arguments; a true result ends the run, which returns the
        draws so far.
      progress: whether to show a progress bar, with tqdm.
      **sampler_fields: of the sampler's config.

    Raises:
      InputError: an argument is wrong; the message names it.
      KeyboardInterrupt: Ctrl-C, or an `interrupt`, before there are draws; later, the run returns
        `Samples` marked as interrupted.
    """
    arguments = locals()
    checked_problem(arguments.pop("problem"), (LogDensity,))
    return drawn_from(problem, SampleOptions(fields=arguments.pop("sampler_fields"), **arguments))


def drawn_from(problem: Problem | LogDensity, options: SampleOptions) -> Samples:
    """Returns the draws that the options ask for."""
    spent = Budget()
    with progress_bar(options.draws, " draws", shown=options.progress) as bar:
        run = _Run(problem, problem.terms(), options, bar, spent)
        if options.method == AUTO:
            return _choose(run)
        samples = run(options.method)
        if options.method != "chain" or mixes_fast(
            run.terms, options.lowest, lambda: options.time_limit is not None
        ):
            return samples
        return dataclasses.replace(samples, notes=(*samples.notes, _UNCERTIFIED))


@dataclasses.dataclass(frozen=True)
class SampleOptions:
    """The arguments of `sl_discs.sample`, which documents them, checked.

    `fields` are those of its sampler, and `built` is the sampler with all of them, localized for
    that method. `lowest` is the temperature of the draws, and `temperatures` are those of a curve:
    none where a single one is given.
    """

    temperature: float | Sequence[float] = 1.0
    draws: int | None = None
    method: str = AUTO
    seed: int = 0
    time_limit: float | None = None
    sampler: str = AUTO
    groups: int | None = None
    engine: str = AUTO
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    interrupt: Callable[[], object] | None = None
    progress: bool = False
    built: Method = dataclasses.field(init=False)
    lowest: float = dataclasses.field(init=False)
    temperatures: tuple[float, ...] = dataclasses.field(init=False)

    def __post_init__(self):
        check_threads()
        check_not_traced(vars(self))
        values = real_array("temperature", self.temperature)
        if values.ndim > 1 or not np.all((values > 0) & (values < np.inf)) or not values.size:
            raise InputError(
                f"temperature is {shown(self.temperature)}; expected a number above 0, or several",
                "temperature",
            )
        temperatures = values.ravel().tolist()
        several = tuple(temperatures) if values.ndim else ()
        plain: dict[str, Any] = {
            "lowest": min(temperatures),
            "temperatures": several,
            "seed": integer("seed", self.seed, bits=64),
        }
        sampler = own_name(text("sampler", self.sampler))
        one_of("method", self.method, (AUTO, *METHODS))
        if several and self.method not in (AUTO, *_CURVES):
            raise InputError(
                f"method {self.method!r} draws at one temperature; for several give "
                f"{join_names(list(_CURVES))}",
                "method",
            )
        if self.method == "exact" and (self.sampler != AUTO or self.fields):
            raise InputError(
                "method 'exact' uses no sampler; leave it and its fields out", "sampler"
            )
        boolean("progress", self.progress)
        if self.draws is not None:
            plain["draws"] = integer("draws", self.draws, 1, bits=31)
        if self.time_limit is not None:
            real("time_limit", self.time_limit, above=0)
            if self.draws is not None:
                raise InputError(
                    "draws has no effect with a time_limit, which determines them; leave it out",
                    "draws",
                )
        if is_localized(sampler):
            raise InputError(
                f"sampler is {sampler!r}; expected a base sampler, such as 'gibbs'", "sampler"
            )
        sampler = "gibbs" if sampler == AUTO else sampler
        registered(sampler, variants=False)
        name = localized_name(sampler) if self.method == "localization" else sampler
        arguments = [
            field.name
            for field in dataclasses.fields(self)
            if field.init and field.name != "fields"
        ]
        known = sorted({*method_fields(name)} - {"name"})
        keywords(sorted(self.fields), ["problem", *arguments], name, known)
        one_of("engine", self.engine, ENGINES)
        if self.groups is not None:
            plain["groups"] = integer("groups", self.groups, 2, bits=20)
        if self.interrupt is not None:
            function("interrupt", self.interrupt)
        for field, value in plain.items():
            object.__setattr__(self, field, value)
        build = (
            localized.localized_method
            if self.method == "localization"
            else plain_chains.ordered_method
        )
        object.__setattr__(self, "built", build(sampler, self.fields))
        if self.method != "exact":
            choose_engine(self.engine, self.built.sampler, num_chains=0)


@dataclasses.dataclass(frozen=True)
class _Run:
    """Runs methods on one problem, and returns their draws as `Samples`."""

    problem: Problem | LogDensity
    terms: Terms
    options: SampleOptions
    bar: Advance
    spent: Budget

    def budget(self, method: str, part: float = 1.0) -> Budget:
        """Returns the budget of a method that takes this part of the time limit, if there
        is one.
        """
        limit = self.options.time_limit
        left = None if limit is None else part * limit - self.spent()
        return Budget(left, self.options.interrupt, functools.partial(self.bar, method))

    def __call__(self, method: str, chosen: str = "", part: float = 1.0) -> Samples:
        """Returns the draws of a method, which takes this part of the time limit, and why it was
        chosen.

        Without a number of draws or a time limit, it is run anew with more of them while they are
        worth too few.
        """
        samples = self._draw(method, chosen, part, 1)
        times = 1
        more = self.options.draws is None and self.options.time_limit is None
        while more and samples.verdict.times > 1 and not samples.interrupted:
            times *= samples.verdict.times
            if times > _MOST_TIMES:
                break
            try:
                samples = self._draw(method, chosen, part, times)
            except KeyboardInterrupt:  # the draws so far are kept
                return dataclasses.replace(samples, interrupted=True)
        return samples

    def request(self, method: str, times: int) -> Request:
        """Returns what a method is asked for: `times` as many draws as usual; InputError for what
        it cannot do.
        """
        options = self.options
        terms = self.terms
        engine = options.engine
        _check_range(terms, options.lowest, sys.float_info.max if method == "exact" else _LARGEST)
        if not isinstance(terms, Coefficients):
            needs = "needs the couplings of a quadratic problem; use another"
            if method == "low_rank":
                raise InputError(f"method 'low_rank' {needs} method", "method")
            if engine == "cpu":
                raise InputError(f"engine 'cpu' {needs} engine, such as 'reference'", "engine")
            engine = "reference"
        groups = options.groups or _GROUPS.get(method, _USUAL_GROUPS)
        each = -(-(options.draws or _USUAL_DRAWS) // groups)
        return Request(
            terms,
            options.lowest,
            times * each if options.time_limit is None else None,
            groups,
            options.built,
            engine,
            options.seed,
            options.temperatures,
        )

    def _draw(self, method: str, chosen: str, part: float, times: int) -> Samples:
        """Makes draws once."""
        problem = self.problem
        terms = self.terms
        request = self.request(method, times)
        budget = self.budget(method, part)
        drawn = METHODS[method](request, budget)
        draw_s = budget()
        observables = observed(terms, drawn.bits)
        more = _limits(request, drawn, observables[VALUE])
        if budget.interrupted:
            more.append("the run was interrupted")
        drawn = drawn._replace(reasons=(*drawn.reasons, *more))
        diagnostics, verdict = judge(drawn, observables, problem.labels)
        drawn = _in_double_precision(drawn, observables[VALUE], request)
        conflicts = _conflicts(problem, request, drawn, observables[VALUE])
        sign = 1.0 if problem.maximise else -1.0
        averages = drawn.averages
        curve = drawn.curve and drawn.curve._replace(value=drawn.curve.value * [sign, 1.0])
        timing = {
            "compile_s": budget.compiling(),
            "draw_s": draw_s,
            "evaluate_s": budget() - draw_s,
            "total_s": self.spent() + self.spent.compiling(),
        }
        samples = Samples(
            kind=problem.kind,
            name=problem.name,
            labels=problem.labels,
            maximise=problem.maximise,
            spins=problem.spins,
            grid=grid_of(problem.labels, getattr(terms, "shape", ())),
            temperature=request.temperature,
            method=method,
            chosen=chosen,
            how=drawn.how,
            bits=drawn.bits,
            group_values=sign * observables[VALUE],
            group_overlaps=observables[OVERLAP],
            group_magnetisations=observables[MAGNETISATION],
            dependence=drawn.dependence,
            log_z=drawn.log_z,
            ladder=drawn.ladder,
            known=drawn.known,
            averages=averages and averages._replace(value=sign * averages.value),
            curve=curve,
            diagnostics=diagnostics,
            verdict=verdict,
            notes=(*drawn.notes, *conflicts),
            interrupted=budget.interrupted,
            seconds=timing,
            seed=request.seed,
        )
        return samples.judged_by_errors()


def grid_of(labels: Sequence[Hashable], shape: tuple[int, ...] = ()) -> tuple[int, ...] | None:
    """Returns rows and columns of variables that are labelled by them, row by row, as networkx
    labels grids, or those of the matrices of a log-density with this shape of its states.
    """
    last = labels[-1]
    if isinstance(last, tuple) and all(type(size) is int for size in last):
        shape = tuple(size + 1 for size in last)
        if math.prod(shape) != len(labels) or list(labels) != list(np.ndindex(shape)):
            return None
    return shape if len(shape) == 2 else None


def _limits(request: Request, drawn: Drawn, values: Float64[np.ndarray, "C D"]) -> list[str]:
    """Returns what speaks against draws with these values of f, whatever their evidence."""
    limits = []
    terms = request.terms
    if not drawn.exact:
        sampler = request.method.sampler
        if not (sampler.exact and sampler.is_ergodic(terms.num_sites)):
            limits.append(
                f"the sampler {request.method.name} is not exact with these settings, or does not "
                "reach every state; change them, or use gibbs"
            )
    error = 0.0 if drawn.exact and isinstance(terms, Coefficients) else terms.resolution(values)
    if error > _MOST_APART * request.temperature:
        limits.append(
            f"rounding changes f by up to {error:.2g} in chains, at temperature "
            f"{request.temperature:g}: scale large terms down, fix the variables that they decide, "
            "or, of a log-density, subtract a constant from fn, or return float64, with "
            "JAX_ENABLE_X64"
        )
    return limits


# The most draws with a conflict, at a penalty that is meant to exclude them.
_HARDLY_ANY = 1e-6


def _conflicts(
    problem: Problem | LogDensity,
    request: Request,
    drawn: Drawn,
    values: Float64[np.ndarray, "C D"],
) -> list[str]:
    """Returns what share of draws with these values of f has conflicts, and a penalty with which
    hardly any has.
    """
    if not isinstance(problem, Problem) or KINDS[problem.kind].penalty is None:
        return []
    # A conflict costs its weight times the penalty.
    stricter = dataclasses.replace(problem, penalty=problem.penalty + 1).terms()
    weights = values - observed(stricter, drawn.bits)[VALUE]
    share = (weights > 1e-9 * np.maximum(1, np.abs(values))).mean()
    if share == 0:
        return []
    node_weights = getattr(problem.source, "node_weights", None)
    lightest = 1.0 if node_weights is None else float(node_weights[node_weights > 0].min())
    enough = math.ceil(
        1 + request.temperature * math.log(problem.num_variables**2 / _HARDLY_ANY) / lightest
    )
    return [
        f"{100 * share:.3g} % of the draws have conflicts, each of which costs a penalty of "
        f"{problem.penalty:g}; for draws without them, those of the hard-core model, give the "
        f"problem penalty={enough}, or the command --penalty={enough}"
    ]


def _in_double_precision(
    drawn: Drawn, values: Float64[np.ndarray, "C D"], request: Request
) -> Drawn:
    """Adds to log Z and to averages what the records of chains lack of f: its constant, and digits.

    `values` are those of the draws. Methods without such records give the whole log Z.
    """
    if drawn.recorded is None or drawn.averages is None:
        return drawn
    lacking = float((values - drawn.recorded).mean())
    since = drawn.averages.value - drawn.recorded
    log_z = drawn.log_z
    curve = drawn.curve
    if log_z is not None:
        log_z = log_z._replace(mean=log_z.mean + lacking / request.temperature)
    if curve is not None:
        more = np.array([lacking, 0.0])
        log_zs = curve.log_z + more / curve.temperature[:, None]
        curve = curve._replace(value=curve.value + more, log_z=log_zs)
    if np.abs(since).max() <= ROUNDED * max(request.terms.reach(), np.abs(drawn.recorded).max()):
        since = np.zeros_like(since)  # nothing has happened but rounding, whose spread is no error
    return drawn._replace(
        log_z=log_z, curve=curve, averages=drawn.averages._replace(value=values + since)
    )


def _check_range(terms: Terms, temperature: float, largest: float) -> None:
    """Raises InputError for temperatures, and values over the temperature, that a method with
    numbers up to `largest` cannot take.
    """
    if not 1 / largest <= temperature <= largest:
        raise InputError(
            f"temperature is {temperature}; expected a number from {1 / largest:g} to {largest:g}"
        )
    size = float(terms.reach())
    if not max(size, size / temperature) <= largest:
        raise InputError(
            f"f of up to {size:.3g} over the temperature {temperature:g} is beyond the range of "
            f"this method, {largest:g}; scale the coefficients down, or raise the temperature"
        )


def _choose(run: _Run) -> Samples:
    """Chooses a method, and draws by it."""
    terms = run.terms
    if terms.num_sites <= _ENUMERATED:
        return run("exact", f"auto: {terms.num_sites} variables are enumerated")
    if isinstance(terms, Coefficients) and exact.is_narrow(terms):
        return run("exact", "auto: the graph of couplings has a small treewidth")
    request = run.request("tempering", 1)
    if request.temperatures:
        return run("tempering", "auto: a ladder holds all temperatures")
    is_over = run.budget("auto", _SEARCH_PART).after(1.0)
    # Agreement of chains is no reason to trust them: all of them may have found the same mode.
    if mixes_fast(terms, request.temperature, is_over):
        return run("chain", "auto: a local sampler is known to mix fast here")
    why = "auto: nothing is known of how fast a local sampler mixes here"
    for method, (applies, reason) in _TRIED.items():
        if isinstance(terms, Coefficients) and applies(request, is_over):
            samples = run(method, f"auto: {reason}", _TRIED_PART)
            # More draws are enough, and a ladder would need them too.
            needs_more = method == "chain" and 1 < samples.verdict.times <= _FEW_TIMES
            if samples.reliable or samples.interrupted or needs_more:
                return samples
            why = f"auto: {method} was not enough ({samples.verdict.reasons[0]})"
    return run("tempering", why)
