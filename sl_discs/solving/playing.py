"""The chains of a search, from their first step to a result."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int8

from sl_discs.engines.compiled import compile_seconds
from sl_discs.experiment.progress import progress_bar
from sl_discs.problems import Evaluated
from sl_discs.reductions.presolved import Presolved
from sl_discs.solving.collecting import Collector
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock, Watcher
from sl_discs.solving.search import Member, Search


def play_members(
    presolved: Presolved,
    members: Sequence[Member],
    states: Int8[np.ndarray, "R N"] | None,
    clock: Clock,
    *,
    growing: bool,
    time_limit: float | None,
    target: float | None,
    bound: float | None,
    ends_at_bound: bool,
    callback: Callable[[int, float], object] | None,
    interrupt: Callable[[], object] | None,
    progress: bool,
    warned: bool,
    compiled_before: float,
) -> Result:
    """Plays the chains of one or more samplers, and verifies their answers.

    Args:
      presolved: the problem, and what is left of it to be sampled.
      members: the samplers.
      states: that chains begin at; None: random ones.
      clock: started with the search.
      growing: whether rounds grow to fill the time limit.
      time_limit: of `sl_discs.solve`, as are target, callback, interrupt and progress.
      target: likewise.
      bound: a value that no answer is better than; None: not known.
      ends_at_bound: whether an answer of that value ends the run.
      callback: see above.
      interrupt: see above.
      progress: see above.
      warned: whether the user knows already that the time limit is too short.
      compiled_before: seconds that this thread had spent compiling.

    Raises:
      InputError: the chains do not fit into memory.
    """
    problem, recipe = presolved.original, members[0].recipe
    chains, size = recipe.chains, members[0].problem.num_variables

    def exactly(states: np.ndarray) -> Evaluated:
        """Of states of the chains, which may be padded."""
        return problem.evaluate(presolved.lift(states[:, :size]))

    def left() -> float:
        return math.inf if time_limit is None else time_limit - clock()

    collector = Collector(presolved)
    watcher = Watcher(
        exactly, chains, problem.maximise,
        target=target, bound=bound if ends_at_bound else None, callback=callback, interrupt=interrupt,
        is_over=lambda: left() <= 0,
    )  # fmt: skip
    visited = presolved.found if states is None else states
    if len(visited):
        watcher.reached(collector.begin(np.resize(visited, (chains, problem.num_variables))))
    total = None if time_limit is not None else members[0].first * chains
    with progress_bar(total) if progress else contextlib.nullcontext(lambda name, steps: None) as bar:
        search = Search(states, growing, exactly, watcher, collector, clock, bar)
        search.prepare(members[0])
        build_s = clock()
        if time_limit is not None and build_s >= time_limit and not warned:
            warnings.warn(
                f"{problem.name}: building the arrays of the problem took {build_s:.1f} s, more than the time limit "
                f"of {time_limit:g} s; one short annealing is played",
                stacklevel=3,
            )
        winner = members[0]
        if growing:
            winner = search.share(members, left)
        else:
            search.repeat(winner, 1 if time_limit is None else None)
    run_s = clock() - build_s
    return collector.result(
        contraction=search.contraction(),
        stopped=watcher.reason or ("steps" if time_limit is None else "time"),
        bound=bound,
        timing={
            "construct_s": problem.construct_s,
            "build_s": build_s,
            "compile_s": compile_seconds() - compiled_before,
            "run_s": run_s,
        },
        engine=winner.engine.name,
        engine_note=winner.note,
        sampler=winner.recipe.sampler,
        annealing={field: getattr(search.settings, field) for field in winner.recipe.annealing},
        seed=recipe.seed,
    )
