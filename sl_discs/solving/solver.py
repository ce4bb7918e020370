"""`sl_discs.solve`: from a problem to its answer, by reductions, provers, samplers and local
searches.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sl_discs.chains.budget import Budget
from sl_discs.engines.devices import check_threads
from sl_discs.problems import Problem
from sl_discs.problems.problem import checked_problem, normal_form
from sl_discs.solving.board import REDUCTIONS
from sl_discs.solving.options import AUTO, SolveOptions, as_states
from sl_discs.solving.policy import Policy, check_fit
from sl_discs.solving.presolved import Presolved, unreduced
from sl_discs.solving.provers.tables import EXACT
from sl_discs.solving.reductions import presolve
from sl_discs.solving.result import Result
from sl_discs.solving.workers import workers_of
from sl_discs.support.errors import fields_are_keywords

# Part of a time limit that reductions may take, and nominal seconds of exact proofs where they
# leave nothing.
_PRESOLVE, _EXACT_S = 0.5, 2.0

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    States: TypeAlias = Mapping[Hashable, int] | Sequence[Mapping[Hashable, int]] | ArrayLike
    """Values by label, a list of such dicts, [N], or [R, N]."""
else:  # Anything else gets an `InputError`.
    States = object


@fields_are_keywords()
def solve(
    problem: Problem,
    sampler: str = AUTO,
    *,
    steps: int | None = None,
    time_limit: float | None = None,
    target: float | None = None,
    chains: int | None = None,
    annealing: tuple[float, float] | Mapping[str, object] | None = None,
    initial_states: States | None = None,
    presolve: bool | None = None,
    proofs: bool = True,
    engine: str = "auto",
    seed: int = 0,
    callback: Callable[[int, float], object] | None = None,
    interrupt: Callable[[], object] | None = None,
    progress: bool = False,
    **sampler_fields: object,
) -> Result:
    """Anneals many chains of a sampler on a problem.

    The same problem, arguments and engine give bit-identical results, unless there is a time limit,
    or integer programming, whose process is counted in seconds, has a turn.

    Example:
        >>> result = sl_discs.solve(sl_discs.maxcut(nx.petersen_graph()), seed=0)
        >>> result.best_value, result.optimal
        (12.0, True)

    Args:
      problem: from `sl_discs.maxcut`, `sl_discs.qubo` or another constructor.
      sampler: a registered sampler, such as `gwg` or, localized, `sl_gwg`; or `auto`: `metropolis`
        with scan="sequential" on the CPU engine, else `path_auxiliary`.
      steps: of each chain; None: 2,000 per variable, but at most 20 million, for samplers that try
        one or two variables per step, such as `metropolis`; ten per variable, but 2,000 to 20,000,
        for the others.
      time_limit: seconds of wall time for reductions, building the arrays and sampling; imports,
        compilation, loading of compiled code, and the exact verification of the answers are not
        included. A short annealing measures the rate; the last one fills the rest of the time, with
        a temperature that follows the clock. With `steps`, annealings of that length follow each
        other. The best state of all counts. The time is checked between calls to the engine, about
        ten times per second on CPU cores, and may be exceeded by that much. If none is left for
        chains, a warning says so, and the answer is another one that is known, such as a greedy
        one, or that of one short annealing. `auto` also tries a local search, see
        `sl_discs.solving.policy`.
      target: a value: the run ends as soon as a value this good is found, which is checked between
        calls to the engine.
      chains: number of parallel chains; None: 16 of samplers that try one or two variables per
        step, and 32 of others. On the CPU engine, one of the former, with the steps of all, where
        the problem is too large for 16 to cool slowly, and under a time limit as many on each core,
        but at most 32.
      annealing: the initial and the final temperature, in units of the problem's value; None:
        temperatures chosen from the problem's gains (`temperature_range` of
        `sl_discs.chains.annealing`). The temperature decays exponentially between them. In Python
        also a dict of t_schedule, init_temperature, final_temperature, decay_rate, anneal_every,
        where t_schedule may be a sequence of temperatures, each for an equal part of the steps.
      initial_states: initial states of every round: one sample as a dict or [N] for all chains, or
        a list or array [R, N] of up to `chains` samples, such as `Result.states`, which are
        repeated in turn; None: random.
        The answer is no worse than these.
      presolve: whether exact reductions remove variables first (`sl_discs.solving.reductions`),
        what provers find counts, and the run ends as soon as an answer is proved to be optimal;
        None: for the sampler `auto`, without reductions where there are initial states.
      proofs: whether provers bound the answers beside the search, and end it with a proof where
        they may. False saves their time, and leaves the bound to what is known without any work.
      engine: `cpu`, `cuda`, `reference`, or `auto`: the fastest that can run the sampler here.
      seed: at least 0, less than 2^64.
      callback: called between calls to the engine with the steps done and the exact best value so
        far; a true result ends the run.
      interrupt: called without arguments between calls to the engine; a true result ends the run.
        It is cheaper than `callback`, since nothing is evaluated for it.
      progress: whether to show a progress bar, with tqdm.
      **sampler_fields: of the sampler's config, such as `K=128, sigma=4.0` of localized ones. The
        default number of levels K is the largest for which the steps suffice, but at most 256; a
        given K is only lowered in the short rounds of a time limit.

    Raises:
      InputError: an argument is wrong (the message names it), the problem or run does not fit into
        memory, or the process was forked from one that was using JAX, where chains would wait for
        threads for ever: use multiprocessing's start method `spawn`.
      KeyboardInterrupt: Ctrl-C, which discards the results. To keep them, end the run with
        `interrupt` or `callback`.
    """
    arguments = locals()
    checked_problem(arguments.pop("problem"))
    return annealed(problem, SolveOptions(fields=arguments.pop("sampler_fields"), **arguments))


def annealed(problem: Problem, options: SolveOptions) -> Result:
    """Returns the answer of all workers on a problem that the options ask for.

    InputError where the problem's coefficients are out of range, or it does not fit into memory.
    """
    check_threads()
    size = problem.num_variables
    engine, _ = options.choose_engine(size)
    budget = Budget(options.time_limit, options.interrupt)
    problem = normal_form(problem)
    check_fit(problem, options, options.lengths(size, engine.on_host).first, engine)
    states = as_states(problem, options.initial_states, options.num_chains)
    presolved = unreduced(problem)
    if options.presolve:
        presolved = presolve(problem, _PRESOLVE * budget.left())
    if presolved.problem is None:
        return _by_reductions(presolved, options, budget)
    run = Policy(presolved, options, budget, states, workers_of(problem).provers)
    with contextlib.closing(run.proofs):
        return run.play()


def _by_reductions(presolved: Presolved, options: SolveOptions, budget: Budget) -> Result:
    """Returns the result where reductions leave nothing to search.

    Reductions round real coefficients, so that the best answer is theirs only up to a rounding
    error. Enumeration and elimination of the whole problem compare exactly, where they can.
    """
    problem = presolved.original
    states = np.concatenate([presolved.lift(np.zeros((1, 0), np.int8)), presolved.found])
    whole = dataclasses.replace(
        unreduced(problem), kept=presolved.kept, found=states, removed=presolved.removed
    )
    run = Policy(whole, options, budget, provers=() if problem.integer_values else EXACT)
    with contextlib.closing(run.proofs) as proofs:
        bound = presolved.lifted_bound(run.board.value - presolved.constant)
        proofs.board.take_bound(bound, REDUCTIONS)
        proofs.advance(min(_EXACT_S, budget.left()), 0.0, budget.is_over)
        return run.result("reductions left nothing to search")
