"""Measures how many CPU seconds the nominal seconds of provers and local searches take.

    taskset -c 0 python benchmarks/nominal_seconds.py --problems=mis-er-200,cut-torus-50 --seconds=1.5

Work in `solve` is counted in nominal seconds, from numbers of operations and constants beside the
code, so that a run without a time limit is the same on every machine. Each worker on each problem
of `time_limits.py` works alone, on the whole problem, until it ends or has used `--seconds` of CPU
time. A row has its nominal and CPU seconds, without compilation, their ratio, and the part of its
work that was farthest off. The constants of a worker whose ratios are all below a third, or all
above three, are wrong for this machine. Integer programming, which waits for another process, is
left out.
"""

from __future__ import annotations

import math
import sys
import time
from typing import NamedTuple

from sl_discs.commands.command import Command, own_flags
from sl_discs.problems.problem import normal_form
from sl_discs.solving.presolved import Presolved, unreduced
from sl_discs.solving.proofs import Worker
from sl_discs.solving.provers.integer import IntegerProgram
from sl_discs.solving.workers import workers_of
from sl_discs.support.terminal import say
from time_limits import PROBLEMS

FLAGS, define = own_flags()
define.list("problems", list(PROBLEMS), "Problems of time_limits.py.")
define.float("seconds", 1.5, "CPU seconds of a worker on a problem.", lower_bound=0.01)


class Work(NamedTuple):
    """What a worker did.

    Attributes:
      nominal: seconds by its own account.
      spent: CPU seconds.
      worst: nominal and CPU seconds of the part whose difference is largest.
      ended: whether nothing was left to do.
    """

    nominal: float
    spent: float
    worst: tuple[float, float]
    ended: bool


def workers_on(presolved: Presolved) -> list[Worker]:
    """Returns new provers and the local search of what reductions left of a problem."""
    workers = workers_of(presolved.original)
    made = [make(presolved) for make in workers.provers]
    if workers.search is not None:
        made.append(workers.search(presolved, 0, math.inf, 1))
    return [
        worker
        for worker in made
        if isinstance(worker, Worker) and not isinstance(worker, IntegerProgram)
    ]


def measured(worker: Worker, best: float, seconds: float) -> Work:
    """Lets a worker that knows the value `best` do one part after another for `seconds`."""
    parts = []
    spent = 0.0
    more = True
    while more and spent < seconds:
        part = worker.part
        begin = time.process_time()
        more = worker.advance(part, best)
        took = time.process_time() - begin
        spent += took
        parts.append((part, took))
    worst = max(parts, key=lambda part: abs(part[0] - part[1]))
    return Work(sum(nominal for nominal, _ in parts), spent, worst, not more)


def run(_) -> int:
    say(f"{'problem':<20} {'worker':<46} nominal  CPU s  ratio  worst part")
    for name in FLAGS.problems:
        problem = normal_form(PROBLEMS[name]())
        best = -math.inf if problem.maximise else math.inf
        for worker in workers_on(unreduced(problem)):
            measured(worker, best, 0.1)  # compiles
        for worker in workers_on(unreduced(problem)):
            work = measured(worker, best, FLAGS.seconds)
            nominal, spent = work.worst
            say(
                f"{name:<20} {worker.by:<46} {work.nominal:7.3f} {work.spent:6.3f} "
                f"{work.nominal / work.spent:6.2f}  {nominal:.4f} in {spent:.4f}"
                f"{'' if work.ended else ', not ended'}"
            )
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
