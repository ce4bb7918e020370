"""Solves the problem in a file.

sl-discs solve FILE [--problem=PROBLEM] [--sampler=auto] [--time_limit=10]
    [--target=VALUE] [--annealing=INITIAL,FINAL] [--print] [--save=ANSWERS.json] [--plot=RUN.png]

PROBLEM: one that --help lists, or one of your own, which --import=FILE.py registers.
FILE: in one of the formats that --help lists, plain or compressed (gzip, bzip2, xz), known by its
first lines or its suffix. Problems in one file are solved one after the other, and their figures
numbered: RUN-1.png, RUN-2.png. The value of every answer is recomputed in exact arithmetic from the
file; `sl-discs check` does the same for the answers that --save=ANSWERS.json wrote. As .csv or
.txt, and with --print, an answer has a line for each variable: label and value.

The exit code is 0 for success, 1 if an answer does not have the value that it claims, and 2 after a
one-line message about bad input. Ctrl-C, SIGTERM and SIGUSR1 end the sampling: the best answer so
far is printed and saved, marked as interrupted, and the exit code is 128 plus the signal number, so
130 after Ctrl-C.
"""

import dataclasses
import functools
import hashlib
import signal
from pathlib import Path

from sl_discs.commands import problem_file
from sl_discs.commands.command import Command, Given, define_arguments, own_flags
from sl_discs.commands.problem_file import numbered, read_problems
from sl_discs.engines.choice import leave_cards_alone
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS
from sl_discs.samplers import known_samplers
from sl_discs.solving.answers import Answer, Answers, read_answers
from sl_discs.solving.options import SolveOptions
from sl_discs.solving.result import Result
from sl_discs.solving.solver import annealed, solve
from sl_discs.support.errors import InputError
from sl_discs.support.figures import or_warn
from sl_discs.support.files import open_regular
from sl_discs.support.signals import notice_of_end
from sl_discs.support.terminal import printable, say

FLAGS, define = own_flags()

_STOPPING = (
    "\nstopping with the best answer so far; a second signal ends at once and saves nothing\n"
)

ARGUMENTS = define_arguments(FLAGS, solve, {"sampler": known_samplers()})
problem_file.define_flags(define)
define.boolean(
    "print", False, "Print the answer: a line with the label and the value of each variable."
)
define.string("save", None, "File to write the answers to: .json, which check reads, .csv or .txt.")
define.string(
    "plot",
    None,
    "Figure to write, .png: values and temperature against steps, or the answer's graph.",
)


def _solve(given: Given) -> int:
    path = Path(given.arguments[0])
    options, problems, read_s = problem_file.opened(
        FLAGS, path, SolveOptions, ARGUMENTS, [".json", ".csv", ".txt"]
    )
    leave_cards_alone([options.choose_engine()[0]])
    done: list[tuple[Problem, Result]] = []
    good = True
    with notice_of_end(signal.SIGINT, said=_STOPPING) as notice:
        options = dataclasses.replace(options, interrupt=lambda: notice.given)
        for number, (problem, line) in enumerate(problems, start=1):
            say(line)
            result = annealed(problem, options)
            correct, how = verification(problem, result)
            good &= correct
            unproved = f"; no bound, since {problem.left_out}" if problem.left_out else ""
            say(_summary(result, read_s, how + unproved))
            if FLAGS.print:
                say("\n".join(result.answer_lines()))
            done.append((problem, result))
            plot = numbered(FLAGS.plot, number, len(problems))
            if plot and or_warn(functools.partial(result.plot, plot)):
                say(f"plot: {plot}")
            if notice.given:
                break
        interrupted = len(done) < len(problems) or done[-1][1].stopped == "interrupt"
        if len(done) < len(problems):
            say(f"Interrupted: {len(done)} of {len(problems)} problems have an answer.")
        if FLAGS.save and not FLAGS.save.endswith(".json"):
            for number, (_, result) in enumerate(done, start=1):
                target = numbered(FLAGS.save, number, len(problems)) or FLAGS.save
                say(f"saved: {result.save(target)}")
        elif FLAGS.save:
            answers = Answers(
                problem=problems[0][0].kind,
                answers=[result.answer for _, result in done],
                file=path.name,
                sha256=_digest_of(path),
                command=given.typed,
                interrupted=interrupted,
                weights=FLAGS.weights,
                weight=FLAGS.weight,
            )
            say(f"saved: {answers.save(FLAGS.save)}")
    if interrupted:
        return 128 + notice.signal
    return 0 if good else 1


def verification(problem: Problem, result: Result) -> tuple[bool, str]:
    """Returns whether the best answer has the claimed value in the problem as given, and how this
    was verified.
    """
    value = problem.value(result.best_sample)
    if value != result.best_value:
        return False, f"not verified: recomputed, the value of the answer is {value:.17g}"
    if not result.feasible:
        return False, "not verified: the answer violates constraints"
    return True, f"verified: {KINDS[problem.kind].recounted_of(problem.source)}"


def _proof(result: Result) -> str:
    """Returns in words how good the best answer is at least, or why that is not known; perhaps
    empty.
    """
    if result.optimal:
        return f"optimal, proved by {result.bound_by}"
    if result.bound is None:
        return f"no bound: {result.bound_by}" if result.bound_by else ""
    gap = result.gap_in_words and f", {result.gap_in_words}"
    return f"no answer is better than {result.bound:,.12g}{gap}, by {result.bound_by}"


def _summary(result: Result, read_s: float, verified: str) -> str:
    chains = len(result.values)
    so_far = " so far" if result.stopped == "interrupt" else ""
    reached = (
        f", reached by {int((result.values == result.best_value).sum())} of {chains} chains"
        if chains > 1
        else ""
    )
    proved = f"; {_proof(result)}" if result.bound is not None else ""
    lines = [f"best{so_far} {result.best_value:,.12g}{reached}; {verified}{proved}"]
    if result.presolved:
        lines.append(f"reductions: {result.presolved}")
    if result.rounds:
        note = f" ({result.engine_note})" if result.engine_note else ""
        rounds = f" in {result.rounds} annealings" if result.rounds > 1 else ""
        initial, final = (result.annealing[f"{end}_temperature"] for end in ("init", "final"))
        lines.append(
            f"{result.sampler} on {result.engine}{note}: {chains} chains x {result.steps:,} "
            f"steps{rounds}, temperature {initial:.3g} to {final:.3g}, {result.ending}"
        )
    parts = {
        "build_s": "reductions and bounds",
        "compile_s": "compiling",
        "run_s": "sampling",
        "verify_s": "recounting",
    }
    lines.append(problem_file.seconds(read_s, result.timing, parts))
    return "\n".join(f"  {line}" for line in lines)


main = Command("FILE", __doc__, FLAGS, _solve)


def _digest_of(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recount(problem: Problem, answer: Answer) -> tuple[float, bool]:
    """Returns the exact value of an answer in the problem of the file, and whether it satisfies the
    constraints.

    A set or clique with conflicts is not repaired here, because it is not an answer. InputError
    where labels are missing or unknown, or a value is not one of the two.
    """
    state = problem.as_state(answer.sample)
    evaluated = problem.evaluate(state[None])
    return float(evaluated.values[0]), bool(
        (evaluated.states[0] == state).all() and evaluated.feasible[0]
    )


CHECK_FLAGS, define = own_flags()
problem_file.define_format(define)
problem_file.define_weight(define)
define.boolean("weights", None, "Whether weights of nodes count; default: as the answers say.")


def _check(given: Given) -> int:
    """Recomputes in exact arithmetic, from a problem's file, the values of answers that `sl-discs
    solve` saved.

    sl-discs check FILE ANSWERS.json

    The kind of problem, and whether weights of nodes count, is read from the answers; those of
    `Result.save` need --weights where these count. The exit code is 0 if every answer is feasible
    and has the value that it claims, 1 if one does not, and 2 after a one-line message about bad
    input.
    """
    path, saved = map(Path, given.arguments)
    content = read_answers(saved)
    answers = content.answers
    if content.sha256 not in (None, _digest_of(path)):
        say(
            f"{path} differs from the file that was solved ({content.file}); answers are checked "
            "all the same"
        )
    problems_read, _ = read_problems(
        path,
        content.problem,
        CHECK_FLAGS.format,
        weights=bool(content.weights if CHECK_FLAGS.weights is None else CHECK_FLAGS.weights),
        weight=CHECK_FLAGS.weight or content.weight,
    )
    problems = [problem for problem, _ in problems_read]
    if content.interrupted and len(answers) < len(problems):
        say(f"the run was interrupted: {len(answers)} of {len(problems)} problems have an answer")
        problems = problems[: len(answers)]
    if len(problems) != len(answers):
        raise InputError(f"{saved}: {len(answers)} answers for {len(problems)} problems in {path}")
    good = True
    for problem, answer in zip(problems, answers, strict=True):
        value, feasible = recount(problem, answer)
        correct = feasible and value == answer.value
        why = ""
        if not feasible:
            why = ", which violates constraints"
        elif not correct:
            why = ", not the claimed value"
        verdict = "good" if correct else "WRONG"
        counted = f"{answer.value:.12g} claimed, {value:.12g} counted{why}: {verdict}"
        say(f"{printable(problem.name)}: {counted}")
        good &= correct
    return 0 if good else 1


check = Command("FILE ANSWERS", _check.__doc__, CHECK_FLAGS, _check)
