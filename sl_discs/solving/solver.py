"""`sl_discs.solve`: from a problem to its answer, by reductions, provers, samplers and local
searches.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Int8

from sl_discs.chains.budget import Budget
from sl_discs.engines.devices import check_threads, num_cores
from sl_discs.problems import Problem
from sl_discs.problems.problem import checked_problem, normal_form
from sl_discs.solving.board import ANNEALING, INITIAL_STATES, REDUCTIONS
from sl_discs.solving.options import AUTO, Beside, SolveOptions, as_states
from sl_discs.solving.presolved import Presolved, unreduced
from sl_discs.solving.proofs import Proofs
from sl_discs.solving.provers.tables import EXACT
from sl_discs.solving.reductions import presolve
from sl_discs.solving.result import Collector, Result
from sl_discs.solving.rounds import (
    TERMS_PER_S,
    TRIAL,
    Annealer,
    LocalSearch,
    Rounds,
    check_fit,
)
from sl_discs.solving.workers import workers_of
from sl_discs.support.errors import fields_are_keywords
from sl_discs.support.terminal import progress_bar

# Part of the time limit that reductions may take, in nominal seconds, and the part that may have
# passed on the clock when a prover begins a turn before the first sweep. That begins within a
# quarter of the limit on a loaded machine.
_PRESOLVE, _FIRST_TURNS = 0.1, 0.15
# Nominal seconds of proofs before and after a search without a time limit, and of local searches
# before it.
_BEFORE_S, _AFTER_S, _SEARCH_S = 0.25, 5.0, 0.5

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

    The same problem, arguments and engine give bit-identical results, unless there is a time limit.

    Example:
        >>> result = sl_discs.solve(sl_discs.maxcut(nx.petersen_graph()), seed=0)
        >>> result.best_value, result.optimal
        (12.0, True)

    Args:
      problem: from `sl_discs.maxcut`, `sl_discs.qubo` or another constructor.
      sampler: a registered sampler, such as `gwg` or, localized, `sl_gwg`; or `auto`: `metropolis`
        with scan="sequential" on the CPU engine, else `path_auxiliary`.
      steps: of each chain; None: 1,000 per variable, but at most 10 million, for `metropolis`,
        `gibbs` and `exchange`, which try one or two variables per step; ten per variable, but 2,000
        to 20,000, for the others.
      time_limit: seconds of wall time for building the arrays and sampling; compilation, loading of
        compiled code, and the exact verification of the answers are not included. A short annealing
        measures the rate, another takes a twentieth of the time, and one whose temperature follows
        the clock fills the rest. With `steps`, annealings of that length follow each other. The
        best state of all counts. The time is checked between calls to the engine, about ten times
        per second on CPU cores, and may be exceeded by that much. If none is left for sampling, a
        warning says so (in advance, if the problem is much too large for the limit), and one short
        annealing is run all the same. On cliques, and on sets and covers without weights, `auto`
        begins with a greedy answer; it also tries a local search, see
        `sl_discs.solving.rounds.Rounds.share`. Without a limit and without `steps` it begins with a
        short one.
      target: a value: the run ends as soon as a value this good is found, which is checked between
        calls to the engine.
      chains: number of parallel chains; None: 32, but fewer on the CPU engine under a time limit in
        which 32 chains of a sampler that tries one site a step would cool too fast.
      annealing: the initial and the final temperature, in units of the problem's value; None:
        temperatures chosen from the problem's gains (`temperature_range` of
        `sl_discs.chains.annealing`). The temperature decays exponentially between them. In Python
        also a dict of t_schedule, init_temperature, final_temperature, decay_rate, anneal_every,
        where t_schedule may be a sequence of temperatures, each for an equal part of the steps.
      initial_states: initial states of every round: one sample as a dict or [N] for all chains, or
        a list or array [R, N] of up to `chains` samples, which are repeated in turn; None: random.
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
    """Returns the answer of chains, or one that is known without them where the options ask for
    that.

    InputError where the problem's coefficients are out of range, or it does not fit into memory.
    """
    check_threads()
    clock = Budget(options.time_limit, options.interrupt)
    limit = math.inf if options.time_limit is None else options.time_limit
    problem = normal_form(problem)
    engine, _ = options.choose_engine(problem.num_variables)
    check_fit(
        problem, options, options.first_round(problem.num_variables, engine.on_host)[0], engine
    )
    states = as_states(problem, options.initial_states, options.num_chains)
    presolved = presolve(problem, _PRESOLVE * limit) if options.presolve else unreduced(problem)
    reduced = presolved.problem
    if reduced is None:
        return _by_reductions(presolved, options, clock)
    seconds = reduced.num_terms / TERMS_PER_S
    too_large = seconds > limit
    if too_large:
        warnings.warn(
            f"{problem.name}: building the arrays of the problem will take about {seconds:.1f} "
            f"s, more than the time limit of {limit:g} s; one short annealing will be played",
            stacklevel=4,
        )
    provers = workers_of(problem).provers if options.proofs else ()
    with contextlib.closing(Proofs(presolved, provers)) as proofs:
        board = proofs.board
        if states is not None:
            board.take(problem.evaluate(states), INITIAL_STATES)
        greedy = workers_of(problem).greedy
        if greedy is not None and options.beside == Beside.SEARCHES and limit < math.inf:
            # It costs less than the shortest annealing, for which a limit may be too short.
            state = greedy(reduced)
            if state is not None:
                board.take(problem.evaluate(presolved.lift(state)), "a greedy answer")
        if not too_large:
            # Without a good answer, provers cannot tell how long they will take.
            short = options.bound_seconds
            if limit == math.inf and options.beside >= Beside.PROOFS:
                short = _BEFORE_S
            proofs.advance(
                short, math.inf, lambda: clock() >= _FIRST_TURNS * limit or clock.is_interrupted()
            )
            if limit == math.inf and not board.closed:
                search = local_search(reduced, options)
                if search is not None:
                    search.play(int(_SEARCH_S / search.step_s))
                    board.take(problem.evaluate(presolved.lift(search.state[None])), search.name)
            if options.beside >= Beside.PROOFS and board.closed:
                return _without_chains(presolved, proofs, proofs.bound_by, options.seed, clock)
        return _searched(presolved, options, proofs, clock, states, too_large=too_large)


def local_search(problem: Problem, options: SolveOptions) -> LocalSearch | None:
    """Returns the local search that `auto` uses beside its sampler."""
    search = workers_of(problem).search
    if search is None or options.beside < Beside.SEARCHES:
        return None
    # Without a time limit, results do not depend on the number of cores.
    if options.time_limit is None:
        return search(problem, options.seed, _SEARCH_S, 1)
    return search(problem, options.seed, TRIAL * options.time_limit, num_cores())


def _searched(
    presolved: Presolved,
    options: SolveOptions,
    proofs: Proofs,
    clock: Budget,
    states: Int8[np.ndarray, "R N"] | None,
    *,
    too_large: bool,
) -> Result:
    """Anneals from these states, and verifies the answers; InputError where the chains do not fit
    into memory.

    Where the problem is too large for the time limit, which the user knows, there is one short
    annealing.
    """
    limit = options.time_limit
    annealer = Annealer(presolved, options)
    search = None
    if options.fills_time and not too_large:
        search = local_search(presolved.left, options)
    # What is found beside the chains counts, unless the values asked for are those that chains
    # visit.
    counted = proofs if options.beside >= Beside.PROOFS else None
    rounds = Rounds(presolved, options, counted, clock, annealer, states)
    total = None if limit is not None else annealer.first * annealer.num_chains
    with progress_bar(total, shown=options.progress) as rounds.bar:
        assert annealer.chains
        build_s = clock()
        if limit is not None and build_s >= limit and not too_large:
            warnings.warn(
                f"{annealer.problem.name}: building the arrays of the problem took {build_s:.1f} "
                f"s, more than the time limit of {limit:g} s; one short annealing is played",
                stacklevel=5,
            )
        if options.fills_time:
            rounds.share(search)
        else:
            visited = rounds.play(annealer.first)
            while limit is not None and not rounds.reason:
                rounds.play(annealer.first)
    run_s = clock() - build_s
    if limit is None and counted is not None and not rounds.reason and not proofs.over:
        rounds.take(rounds.verify(visited), ANNEALING)
        # Without a time limit, results do not depend on the time that provers take.
        proofs.advance(_AFTER_S, 0.0, clock.is_over)
    notes = [annealer.note] if annealer.note else []
    values = rounds.board.values
    if search is not None and values[search.name] > values[ANNEALING]:
        notes.append(f"the best answer is by {search.name}")
    return rounds.collector.result(
        incumbent=rounds.board.incumbent,
        stopped=rounds.reason or ("steps" if limit is None else "time"),
        bound=proofs.board.bound,
        bound_by=proofs.bound_by,
        timing={"build_s": build_s, "compile_s": clock.compiling(), "run_s": run_s},
        engine=annealer.engine.name,
        engine_note="; ".join(notes),
        sampler=options.sampler,
        annealing=annealer.reported(),
        seed=options.seed,
    )


# Answers that need no chains.


def _by_reductions(presolved: Presolved, options: SolveOptions, clock: Budget) -> Result:
    """Returns the result where reductions leave nothing to search.

    Reductions round real coefficients, so that the best answer is theirs only up to a rounding
    error. Enumeration and elimination of the whole problem compare exactly, where they can.
    """
    problem = presolved.original
    states = np.concatenate([presolved.lift(np.zeros((1, 0), np.int8)), presolved.found])
    exact = not problem.integer_values
    provers = [one for one in workers_of(problem).provers if exact and one in EXACT]
    proofs = Proofs(dataclasses.replace(unreduced(problem), found=states), provers)
    board = proofs.board
    board.take_bound(presolved.lifted_bound(board.value - presolved.constant), REDUCTIONS)
    proofs.advance(options.bound_seconds)
    return _without_chains(
        presolved, proofs, "reductions left nothing to search", options.seed, clock
    )


def _without_chains(
    presolved: Presolved, proofs: Proofs, note: str, seed: int, clock: Budget
) -> Result:
    """Returns the result of the best answer known, which no chain is to improve."""
    incumbent = proofs.board.incumbent
    assert incumbent is not None
    collector = Collector(presolved)
    collector.visit(incumbent.answer)
    return collector.result(
        incumbent=incumbent,
        stopped="bound" if proofs.board.closed else "steps",
        bound=proofs.board.bound,
        bound_by=proofs.bound_by,
        timing={"build_s": clock(), "compile_s": clock.compiling(), "run_s": 0.0},
        engine="none",
        engine_note=note,
        sampler="none",
        annealing={},
        seed=seed,
    )
