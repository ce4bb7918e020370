"""Problems with constraints: rounds of annealing with penalties, raised where constraints are violated.

A round whose best state satisfies all constraints has penalties that are large enough, and its answers count as they
are: nothing is repaired. Under a time limit, rounds are short until then.
"""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Callable

import numpy as np
from jaxtyping import Int8
from scipy import sparse

from sl_discs.engines.compiled import compiled
from sl_discs.engines.cpu.descent import Rules, descend
from sl_discs.engines.registry import get_engine
from sl_discs.instances.form import ConstrainedForm
from sl_discs.models.terms import form_coefficients
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS, Evaluated
from sl_discs.reductions.penalised import first_penalties, penalised
from sl_discs.samplers.exchange import Exchange
from sl_discs.solving.options import AUTO, Options, as_states
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock
from sl_discs.solving.search import annealed, by_enumeration

# The local search of `sl_discs.engines.cpu.descent` for answers to a problem with constraints.

# Pairs of variables, and their coefficients in constraints, that one core looks at in a second, roughly.
_PER_SECOND = 2e8
# Without a time limit: seconds for all states, at most, and tries for each variable of a state.
_USUAL_S, _TRIES = 1.0, 80
# For kicks; the same for all problems.
_DRAWS = np.random.default_rng(0).integers(0, 2**31, (1 << 16, 4))
# Gains of so small a part of the largest coefficient are rounding errors.
_NEGLIGIBLE = 1e-9


class Descent:
    """Prepared once for a problem."""

    def __init__(self, source: ConstrainedForm):
        terms = form_coefficients(source.form).listed()
        size = source.num_variables
        upper = sparse.csr_array((terms.scale * terms.weights, tuple(terms.edges.T)), (size, size))
        self._coupling = (upper + upper.T).tocsr()
        self._matrix = source.matrix
        coupling, columns = self._coupling, source.matrix.tocsc()
        self._rules = Rules(
            np.ascontiguousarray(terms.linear, np.float64),
            *(coupling.indptr.astype(np.int32), coupling.indices.astype(np.int32), coupling.data.astype(np.float64)),
            *(columns.indptr.astype(np.int32), columns.indices.astype(np.int32), columns.data.astype(np.int64)),
            # Columns of a table are compiled for as another type.
            *(np.ascontiguousarray(source.low), np.ascontiguousarray(source.high), _NEGLIGIBLE * terms.largest()),
        )

    def __call__(self, states: Int8[np.ndarray, "B N"], seconds: float | None = None) -> Int8[np.ndarray, "B N"]:
        """States of zeros and ones that violate constraints less, or as little and whose value is as good, up to
        differences that may be rounding errors, or better.

        It takes about so many seconds; None: the work depends on the states alone.
        """
        distinct, place = np.unique(states, axis=0, return_inverse=True)
        found = np.ascontiguousarray(distinct, np.int8)
        real, whole = found.T.astype(np.float64), found.T.astype(np.int64)
        fields = np.ascontiguousarray((self._rules.linear[:, None] + self._coupling @ real).T)
        sides = np.ascontiguousarray((self._matrix @ whole).T)
        count, size = found.shape
        kept = np.zeros(size, np.int8), np.zeros(size), np.zeros(sides.shape[1], np.int64)
        # A try looks at all pairs with one variable, and their constraints.
        tries = int((_USUAL_S if seconds is None else seconds) * _PER_SECOND / (count * (size + self._matrix.nnz)))
        tries = max(tries if seconds is not None else min(tries, _TRIES * size), size)
        search = compiled(("descend",), _compile)
        search(self._rules, found, fields, sides, kept, _DRAWS, tries)
        return found[place.reshape(-1)]


def _compile() -> Callable[..., None]:
    """`descend`, compiled by a call that does nothing."""
    bounds, places = np.zeros(2, np.int32), np.zeros(0, np.int32)
    none, numbers = np.zeros(0), np.zeros(0, np.int64)
    rules = Rules(none, bounds, places, none, bounds, places, numbers, numbers, numbers, 0.0)
    kept = np.zeros(1, np.int8), np.zeros(1), numbers
    descend(rules, np.zeros((0, 1), np.int8), np.zeros((0, 1)), np.zeros((0, 0), np.int64), kept, _DRAWS, 1)
    return descend


# Penalties are doubled at most so often.
_RAISES = 8
# Part of the time left that a round takes until one satisfies the constraints, and afterwards.
_TRIAL, _LONG = 0.15, 0.75
# A round is not worth less of the time limit.
_LEAST = 0.05


def penalties_raised(problem: Problem[ConstrainedForm], options: Options) -> Result:
    """The answers of the round with the best one, and what was recorded of it; steps, rounds and timing are of all.

    `auto` is `exchange` where the CPU engine can run it: its exchanges of two variables move inside the group of a
    constraint, whose penalty couples all pairs, and between variables and slack.
    """
    source, time_limit, target = problem.source, options.time_limit, options.target
    if options.presolve and (result := by_enumeration(problem, options.seed, Clock())):
        return result
    if options.automatic and options.engine in (AUTO, "cpu") and get_engine("cpu").obstacle(Exchange()) is None:
        options = dataclasses.replace(options, sampler="exchange", fields={}, automatic=False)
    states = as_states(problem, options.initial_states, options.num_chains)
    sign = 1.0 if problem.maximise else -1.0
    clock, penalties, descent = Clock(), first_penalties(problem), Descent(source)
    played: list[Result] = []
    best: Result | None = None
    found = problem.bound(options.bound_seconds)
    best_possible = None if found is None else float(found)
    raises, part = 0, _TRIAL

    def left() -> float:
        return math.inf if time_limit is None else time_limit - clock()

    def told(steps: int, value: float) -> object:
        assert options.callback is not None
        return options.callback(sum(one.steps for one in played) + steps, value)

    while True:
        model = penalised(problem, penalties)
        # Half for chains, half for the local search.
        seconds = None if time_limit is None else max(part * left(), 1e-3)
        of_round = dataclasses.replace(
            options,
            time_limit=None if seconds is None else seconds / 2,
            initial_states=None if states is None else model.extend(states),
            seed=(options.seed + len(played)) % 2**64,
            callback=None if options.callback is None else told,
        )
        with warnings.catch_warnings():
            # The limit of a round is not that of the user.
            warnings.filterwarnings("ignore", message=".*: building the arrays of the problem")
            result = annealed(model.problem, of_round)
        met = source.met(model.lift(result.states))
        answer = _answers(problem, result, descent, seconds)
        played.append(answer)
        # Without a feasible answer, the last round counts, which has the largest penalties.
        further = best is None or sign * (answer.best_value - best.best_value) > 0
        if best is None or not best.feasible or (answer.feasible and further):
            best = answer
        enough = bool(met[result.best_chain].all())
        reached = best.feasible and target is not None and sign * (best.best_value - target) >= 0
        over = time_limit is not None and left() < _LEAST * time_limit
        # The model's best state, known to be that, is an answer; or nothing is better without constraints.
        optimal = (enough and result.stopped == "bound") or (best.feasible and best.best_value == best_possible)
        if reached or over or optimal or result.stopped in ("callback", "interrupt"):
            break
        if not enough and raises < _RAISES:
            penalties = np.where(met.all(axis=0), penalties, 2 * penalties)
            raises, part = raises + 1, _TRIAL
        elif time_limit is None:
            break
        else:
            part = _LONG
    # A round may have met the target, or a bound, with violations.
    met_early = "target" if reached else "bound" if optimal else ""
    by_caller = result.stopped if result.stopped in ("callback", "interrupt") else ""
    stopped = met_early or by_caller or ("steps" if time_limit is None else "time")
    if not best.feasible:
        words = problem.violated(best.best_sample)
        more = f" and {len(words) - 1} more" if len(words) > 1 else ""
        warnings.warn(
            f"{problem.name}: no answer found satisfies all constraints; the best one violates {words[0]}{more}",
            stacklevel=4,
        )
    timing = {name: sum(one.timing[name] for one in played) for name in played[0].timing}
    return dataclasses.replace(
        best,
        bound=best.best_value if optimal else best_possible,
        bound_by=result.bound_by if enough and result.stopped == "bound" else KINDS[problem.kind].bounded_by,
        steps=sum(one.steps for one in played),
        rounds=sum(one.rounds for one in played),
        stopped=stopped,
        timing=timing | {"construct_s": problem.construct_s},
        seed=options.seed,
    )


def _answers(problem: Problem, result: Result, descent: Descent, seconds: float | None) -> Result:
    """Of each chain the best or the last state, whichever is the better answer after a local search."""
    begin = time.perf_counter()
    size, sign = problem.num_variables, 1.0 if problem.maximise else -1.0
    best, last = (problem.evaluate(states[:, :size]) for states in (result.states, result.final_states))
    part = None if seconds is None else seconds / 4

    def descended(found: Evaluated) -> Evaluated:
        after = problem.evaluate(descent(found.states, part))
        # It neglects differences that may be rounding errors, which exact values tell from losses.
        worse = found.feasible & (sign * (found.values - after.values) > 0)
        return problem.evaluate(np.where(worse[:, None], found.states, after.states))

    one, other = descended(best), descended(last)
    further = sign * (other.values - one.values) > 0
    better = np.where(one.feasible == other.feasible, further, other.feasible)
    before, values = (np.where(better, two.values, first.values) for first, two in ((best, last), (one, other)))
    return dataclasses.replace(
        result,
        kind=problem.kind,
        labels=problem.labels,
        values=values,
        improved=sign * (values - before),
        states=np.where(better[:, None], other.states, one.states),
        feasible_chains=np.where(better, other.feasible, one.feasible),
        final_states=last.states,
        timing={**result.timing, "verify_s": result.timing["verify_s"] + time.perf_counter() - begin},
    )
