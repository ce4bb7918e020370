"""`sl_discs.solve`: from a problem to its answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sl_discs.engines.registry import check_threads
from sl_discs.errors import InputError, fields_are_keywords
from sl_discs.problem_names import FORM_PROBLEMS, GRAPH_PROBLEMS, in_words
from sl_discs.problems import Problem
from sl_discs.solving.options import AUTO, SolveOptions
from sl_discs.solving.result import Result
from sl_discs.solving.search import annealed

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
      sampler: `gwg`, `path_auxiliary`, `dmala`, `gibbs`, `metropolis`, `exchange`, any of these localized (`sl_gwg`),
        or `auto`: `metropolis` with scan="sequential" on the CPU engine, else `path_auxiliary`.
      steps: of each chain; None: 1,000 per variable, but at most 10 million, for `metropolis`, `gibbs` and
        `exchange`, which try one or two variables per step; ten per variable, but 2,000 to 20,000, for the others.
      time_limit: seconds of wall time for building the arrays and sampling; compilation, loading of compiled code,
        and the exact verification of the answers are not included. A short annealing measures the rate, another takes
        a twentieth of the time, and one whose temperature follows the clock fills the rest. With `steps`, annealings
        of that length follow each other. The best state of all counts. The time is checked between calls to the
        engine, about ten times per second on CPU cores, and may be exceeded by that much. If none is left for
        sampling, a warning says so (in advance, if the problem is much too large for the limit), and one short
        annealing is run all the same. On sets, cliques and covers `auto` also tries `exchange` and a local search on
        vertex covers, see `sl_discs.solving.search`.
      target: a value: the run ends as soon as a value this good is found, which is checked between calls to the
        engine.
      chains: number of parallel chains; None: 32, but fewer on the CPU engine under a time limit in which 32 chains
        of `metropolis` or `gibbs` would have less than about 20,000 sweeps each.
      annealing: None: exponential decay between temperatures chosen from the problem's gains
        (`sl_discs.solving.annealing`); (initial, final) for other temperatures; or a dict of t_schedule,
        init_temperature, final_temperature, decay_rate, anneal_every, where t_schedule may be a sequence of
        temperatures, each for an equal part of the steps. Temperatures are in units of the problem's value.
      initial_states: initial states of every round: one sample as a dict or [N] for all chains, or a list or array
        [R, N] of up to `chains` samples, which are repeated in turn; None: random. They count as visited.
      presolve: whether a problem of up to 2^20 states is enumerated instead, exact reductions remove variables of
        larger ones first (`sl_discs.reductions`), and the run ends as soon as an answer is proved to be optimal;
        None: for the sampler `auto`, without initial states.
      proofs: whether provers bound the answers beside the search, and end it with a proof where `presolve` is on.
        False saves their time, and leaves the bound to what is known without any work.
      engine: `cpu`, `reference`, or `auto`: `cpu` where it can run the sampler, otherwise `reference`.
      seed: at least 0, less than 2^64.
      callback: called between calls to the engine with the steps done and the exact best value so far; a true result
        ends the run.
      interrupt: called without arguments between calls to the engine; a true result ends the run. It is cheaper
        than `callback`, since nothing is evaluated for it.
      progress: whether to show a progress bar, with tqdm.
      **sampler_fields: of the sampler's config, such as `K=128, sigma=4.0` of localized ones. The default number of
        levels K is the largest for which the steps suffice, but at most 256; a given K is only lowered in the short
        rounds of a time limit.

    Raises:
      InputError: an argument is wrong (the message names it), the problem or run does not fit into memory, or the
        process was forked from one that was using JAX, where chains would wait for threads for ever: use
        multiprocessing's start method `spawn`.
      KeyboardInterrupt: Ctrl-C, which discards the results. To keep them, end the run with `interrupt` or `callback`.
    """
    check_threads()
    if not isinstance(problem, Problem):
        raise InputError(
            f"the problem is a {type(problem).__name__}; make one with "
            f"sl_discs.{in_words([*GRAPH_PROBLEMS, *FORM_PROBLEMS, 'from_bqm'])}"
        )
    options = SolveOptions(
        sampler, sampler_fields, steps, time_limit, target, chains, annealing, initial_states, presolve, proofs,
        engine, seed, callback, interrupt, progress,
    )  # fmt: skip
    return annealed(problem, options)
