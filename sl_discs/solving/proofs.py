"""Provers, which work on bounds and proofs in slices, and `Proofs`, which lets those of a problem
take turns.

The kind of a problem names its provers. Work is counted in nominal seconds, roughly those of one
core, from numbers of operations: what a prover finds with so much work is the same on every
machine.
"""

from __future__ import annotations

import abc
import collections
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Int, Int8

from sl_discs.instances.form import exact_sum
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import KINDS
from sl_discs.solving.board import REDUCTIONS, Board
from sl_discs.solving.presolved import ROUNDED, Presolved

# Nominal seconds of a turn, after which another prover, the chains or Ctrl-C have theirs.
TURN = 0.05
# The factor by which provers may overestimate what they need: the last parts of a search are the
# smallest.
_PESSIMISTIC = 20


class Prover(abc.ABC):
    """An attempt to bound the answers to a problem, or to find the best one, by what reductions
    left of it.

    Attributes:
      by: what it proves something by, in words.
      bound: a value that no answer to the original problem is better than, in its sense; None: none
        so far.
      states: [K, N] answers to the original problem that it has found.
      expected: nominal seconds that it will still need for a proof, as far as it can tell; None: it
        cannot yet, or it only bounds.
      best: the best value known.
    """

    by: str

    def __init__(self, presolved: Presolved):
        self.presolved = presolved
        self.bound: Fraction | float | None = None
        self.states: Int8[np.ndarray, "K N"] = presolved.found[:0]
        self.expected: float | None = None
        self._parts = self._run()
        self._work = 0.0
        self._next = 0.0

    @abc.abstractmethod
    def _run(self) -> Iterator[float]:
        """Yields the nominal seconds of each part of the work before it does that."""

    def advance(self, work: float, best: float) -> bool:
        """Works for about `work` nominal seconds, given the best value so far; returns whether more
        is to do.
        """
        self.best = best
        self._work += work
        while self._next <= self._work:
            self._work -= self._next
            following = next(self._parts, None)
            if following is None:
                return False
            self._next = following
        return True

    def close(self) -> None:  # noqa: B027  # most have nothing to end
        """Ends what it has running; nothing follows."""


class SetProver(Prover):
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
        graph = self.problem.source
        self.weights = (
            np.ones(graph.num_nodes) if graph.node_weights is None else graph.node_weights
        )
        self.total = exact_sum(self.weights)

    def _value(self, weight: float) -> float:
        """Returns the value of the reduced problem for a set or clique of this weight."""
        return float(weight if self.problem.maximise else self.total - weight)

    def weight_of(self, value: float) -> float:
        """Returns the weight of the set or clique of an answer to the original problem of this
        value.
        """
        return abs(value - self.presolved.constant - self._value(0))

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
Factory = Callable[[Presolved], Prover | str | None]


class Proofs:
    """The provers of a problem, in turns, each with as much work as the others.

    Attributes:
      board: what they and others found so far.
    """

    def __init__(self, presolved: Presolved, provers: Sequence[Factory] = ()):
        """Bounds the problem by its kind; the provers begin with `advance`."""
        problem = presolved.original
        reduced = presolved.left
        self._problem = problem
        self.board = Board(problem)
        made = [make(presolved) for make in provers]
        self._waiting = collections.deque(one for one in made if isinstance(one, Prover))
        self.board.refused += [one for one in made if isinstance(one, str)]
        self._take(presolved.found, REDUCTIONS)
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
        words = [self.board.bound_by] if self.board.bound_by else []
        if not self.board.closed:
            at_work = [f"{one.by} needs more time" for one in self._waiting]
            if without := "; ".join([*self.board.refused, *at_work]):
                words.append(f"({without})" if words else without)
        return " ".join(words)

    @property
    def hopeful(self) -> bool:
        """Whether a prover expects to end with a proof."""
        return any(one.expected is not None for one in self._waiting)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to prove, or no prover has anything left to do."""
        return self.board.closed or not self._waiting

    def advance(
        self, work: float, later: float = 0.0, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Lets provers work for `work` nominal seconds, until there is nothing left to prove, or it
        is over.

        Those that will need more than what there is now, and `later`, as far as they can tell, are
        given up.
        """
        refused = self.board.refused
        later += work
        while work > 0 and not self.over and not is_over():
            prover = self._waiting.popleft()
            turn = min(work, TURN)
            work -= turn
            later -= turn
            try:
                more = prover.advance(turn, self.board.value)
            except OSError as error:
                refused.append(f"{prover.by} could not be used: {error.strerror or error}")
                more = False
            if more and prover.expected is not None and prover.expected > _PESSIMISTIC * later:
                refused.append(f"{prover.by} was given up: it needs more time than is left")
                more = False
            if more:
                self._waiting.append(prover)
            else:
                prover.close()
            self._take(prover.states, prover.by)
            self.board.take_bound(prover.bound, prover.by)

    def close(self) -> None:
        """Ends the provers."""
        for one in self._waiting:
            one.close()

    def _take(self, states: Int8[np.ndarray, "K N"], by: str) -> None:
        if len(states):
            self.board.take(self._problem.evaluate(states), by)
