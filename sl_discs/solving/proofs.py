"""The contract of what works on a problem in slices, and `Proofs`, which lets the provers of a
problem take turns.

The kind of a problem names its workers. Work is counted in nominal seconds, roughly those of one
core, from numbers of operations: what a worker finds with so much work is the same on every
machine.
"""

from __future__ import annotations

import abc
import collections
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Float64, Int, Int8

from sl_discs.engines.devices import in_threads
from sl_discs.instances.form import exact_sum
from sl_discs.problems.graph_kind import graph_kind, weights_of_nodes
from sl_discs.problems.kind import KINDS
from sl_discs.solving.board import REDUCTIONS, Board
from sl_discs.solving.presolved import ROUNDED, Presolved

# Nominal seconds of a turn, after which another prover, the chains or Ctrl-C have theirs.
TURN = 0.05
# The factor by which provers may overestimate what they need: the last parts of a search are the
# smallest.
_PESSIMISTIC = 20


class Worker(abc.ABC):
    """An attempt to find good answers to a problem, to bound them, or to prove one to be optimal,
    by what reductions left of it.

    Attributes:
      by: what it works by, in words.
      bound: a value that no answer to the original problem is better than, in its sense; None: none
        so far.
      states: [K, N] answers to the original problem that it has found since its last turn.
      expected: nominal seconds that it will still need for a proof, as far as it can tell; None: it
        cannot yet, or it only bounds.
      best: the best value known.
      part: nominal seconds of the part of the work that comes next, which is not interrupted.
    """

    by: str

    def __init__(self, presolved: Presolved):
        self.presolved = presolved
        self.bound: Fraction | float | None = None
        self.states: Int8[np.ndarray, "K N"] = presolved.found[:0]
        self.expected: float | None = None
        self._parts = self._run()
        self._work = 0.0
        self.part = 0.0

    @abc.abstractmethod
    def _run(self) -> Iterator[float]:
        """Yields the nominal seconds of each part of the work before it does that."""

    def advance(
        self, work: float, best: float, is_late: Callable[[], bool] = lambda: False
    ) -> bool:
        """Works for about `work` nominal seconds, or until it is late, given the best value so far;
        returns whether more is to do.
        """
        self.best = best
        self._work += work
        while self.part <= self._work and not is_late():
            self._work -= self.part
            following = next(self._parts, None)
            if following is None:
                return False
            self.part = following
        return True

    def close(self) -> None:  # noqa: B027  # most have nothing to end
        """Ends what it has running; nothing follows."""


# Nominal seconds between two looks at what was found.
_SLICE_S = 0.005


class LocalSearch(Worker):
    """Walks on what reductions left of a problem, each on a core with its own random numbers.

    Where they are depends on the seed, the number of walks and the number of steps alone.

    Attributes:
      step_s: nominal seconds of a step.
    """

    step_s: float

    def __init__(self, presolved: Presolved, seed: int, walks: int):
        super().__init__(presolved)
        self._draws = [np.random.default_rng([seed, k]) for k in range(walks)]

    @property
    @abc.abstractmethod
    def state(self) -> Int8[np.ndarray, "n"]:
        """The best state found, as zeros and ones."""

    @abc.abstractmethod
    def walk(self, index: int, draws: Float64[np.ndarray, "S"]) -> int:
        """Makes a step of a walk for each number from [0, 1); returns how many it made, fewer at
        its end.
        """

    def play(self, steps: int) -> bool:
        """Makes `steps` steps of each walk; returns whether more is to do."""
        draws = [generator.random(steps) for generator in self._draws]
        made = list[int]()
        in_threads(lambda k: made.append(self.walk(k, draws[k])), range(len(draws)), len(draws))
        return min(made) == steps

    def _run(self) -> Iterator[float]:
        # Compiles here: in other threads that would not count as compilation.
        self.walk(0, np.zeros(0))
        steps = max(int(_SLICE_S / self.step_s), 1)
        state = np.empty(0, np.int8)
        more = True
        while more:
            yield steps * self.step_s
            more = self.play(steps)
            before = state
            state = self.state.copy()
            if not np.array_equal(state, before):
                self.states = self.presolved.lift(state[None])


class SetProver(Worker):
    """A prover of heaviest independent sets, lightest covers, or heaviest cliques, of which `by`
    says what it does.

    Attributes:
      problem: what reductions left.
      cliques: whether cliques are looked for, and not sets; a cover leaves out a set.
      weights: [n] of its nodes, 1 where there are none.
      total: their sum.
    """

    def __init__(self, presolved: Presolved):
        super().__init__(presolved)
        self.problem = presolved.left
        self.cliques = graph_kind(self.problem.kind).joined
        self.weights = weights_of_nodes(self.problem.source)
        self.total = exact_sum(self.weights)

    def _value(self, weight: float) -> float:
        """Returns the value of the reduced problem for a set or clique of this weight."""
        return float(weight if self.problem.maximise else self.total - weight)

    def weight_of(self, value: float) -> float:
        """Returns the weight of the set or clique of an answer to the original problem of this
        value; negative where that is worse than what reductions took.
        """
        sign = 1 if self.problem.maximise else -1
        return sign * (value - self.presolved.constant - self._value(0))

    def take_bound(self, weight: float) -> None:
        """Takes that no set or clique weighs more, but for errors of rounding where weights are not
        whole.
        """
        error = 0.0 if self.problem.integer_values else ROUNDED * self.total
        self.bound = self.presolved.lifted_bound(self._value(weight + error))

    def take_nodes(self, nodes: Sequence[int] | Int[np.ndarray, "k"]) -> None:
        """Takes a set or clique that was found."""
        chosen = np.full((1, self.problem.num_variables), not self.problem.maximise, np.int8)
        chosen[0, nodes] = self.problem.maximise
        self.states = self.presolved.lift(chosen)


# Makes a prover of what reductions left of a problem, or says in words why there is none; None: it
# is for problems of another kind or size, which need not be said.
Factory = Callable[[Presolved], Worker | str | None]


class Proofs:
    """The provers of a problem, in turns, each with as much work as the others.

    Attributes:
      board: what they and others found so far.
    """

    def __init__(
        self,
        presolved: Presolved,
        provers: Sequence[Factory] = (),
        is_late: Callable[[], bool] = lambda: False,
    ):
        """Bounds the problem by its kind; the provers begin with `advance`."""
        self._is_late = is_late
        problem = presolved.original
        reduced = presolved.left
        self._problem = problem
        self.board = Board(problem)
        made = [make(presolved) for make in provers]
        self._waiting = collections.deque(prover for prover in made if isinstance(prover, Worker))
        self.board.refused += [prover for prover in made if isinstance(prover, str)]
        self.board.take(problem.evaluate(presolved.found), REDUCTIONS)
        by = KINDS[problem.kind].bounded_by
        self.board.take_bound(problem.bound(), by)
        of_reduced = None if reduced is problem else reduced.bound()
        if of_reduced is not None:
            self.board.take_bound(presolved.lifted_bound(of_reduced), by)

    @property
    def bound_by(self) -> str:
        """What the bound is from, in words; where it proves nothing, also which provers did not end
        with a proof.
        """
        parts = [self.board.bound_by] if self.board.bound_by else []
        if not self.board.closed:
            at_work = [f"{prover.by} needs more time" for prover in self._waiting]
            if without := "; ".join([*self.board.refused, *at_work]):
                parts.append(f"({without})" if parts else without)
        return " ".join(parts)

    @property
    def hopeful(self) -> bool:
        """Whether a prover expects to end with a proof."""
        return any(prover.expected is not None for prover in self._waiting)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to prove, or no prover has anything left to do."""
        return self.board.closed or not self._waiting

    def turn(self, worker: Worker, work: float) -> bool:
        """Lets a worker work for about `work` nominal seconds, and takes what it has found into
        account; returns whether more is to do.
        """
        try:
            more = worker.advance(work, self.board.value, self._is_late)
        except OSError as error:
            self.board.refused.append(f"{worker.by} could not be used: {error.strerror or error}")
            more = False
        self.board.take(self._problem.evaluate(worker.states), worker.by)
        worker.states = worker.states[:0]
        self.board.take_bound(worker.bound, worker.by)
        return more

    def advance(
        self, work: float, later: float = 0.0, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Lets provers work for `work` nominal seconds, until there is nothing left to prove, or it
        is over.

        Those that will need more than what there is now, and `later`, for a proof or the next
        part of their work, as far as they can tell, are given up.
        """
        later += work
        slice_s = min(TURN, work / max(len(self._waiting), 1))
        while work > 0 and not self.over and not is_over():
            prover = self._waiting.popleft()
            turn = min(work, slice_s)
            work -= turn
            later -= turn
            more = self.turn(prover, turn)
            needed = max(prover.part, (prover.expected or 0.0) / _PESSIMISTIC)
            if more and needed > later:
                self.board.refused.append(
                    f"{prover.by} was given up: it needs more time than is left"
                )
                more = False
            if more:
                self._waiting.append(prover)
            else:
                prover.close()

    def close(self) -> None:
        """Ends the provers."""
        for prover in self._waiting:
            prover.close()
