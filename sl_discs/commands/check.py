"""Command: recomputes in exact arithmetic, from a problem's file, the values of answers that `sl-discs solve` saved.

sl-discs check FILE ANSWERS.json

The kind of problem is read from the answers; a colouring also needs --colors, as it was given to solve. The exit code
is 0 if every answer is feasible and has the value that it claims, 1 if one does not, and 2 after a one-line message
about bad input.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from absl import flags

from sl_discs.command import run_command, say
from sl_discs.commands.problem_file import define_format, read_problems
from sl_discs.errors import InputError
from sl_discs.solving.report import digest_of, read_answers, recount

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
define_format(FLAGS)


def main(argv: Sequence[str]) -> int:
    """Exit codes as above."""
    return run_command(argv, "FILE ANSWERS", __doc__, FLAGS, _check)


def _check(paths: list[str]) -> int:
    if len(paths) != 2:
        raise InputError(f"{len(paths)} files were given; give a FILE and its ANSWERS, see --help")
    path, saved = map(Path, paths)
    answers = read_answers(saved)
    if digest_of(path) != answers.sha256:
        say(f"{path} differs from the file that was solved ({answers.source}); answers are checked all the same")
    problems = [one.problem for one in read_problems(path, answers.kind, FLAGS.format, colors=FLAGS.colors)[0]]
    if answers.interrupted and len(answers.answers) < len(problems):
        say(f"the run was interrupted: {len(answers.answers)} of {len(problems)} problems have an answer")
        problems = problems[: len(answers.answers)]
    if len(problems) != len(answers.answers):
        raise InputError(f"{saved}: {len(answers.answers)} answers for {len(problems)} problems in {path}")
    good = True
    for problem, answer in zip(problems, answers.answers, strict=True):
        value, feasible = recount(problem, answer)
        held = feasible and value == answer.value
        why = "" if held else ", which violates constraints" if not feasible else ", not the claimed value"
        say(f"{problem.name}: {answer.value:.12g} claimed, {value:.12g} counted{why}: {'good' if held else 'WRONG'}")
        good &= held
    return 0 if good else 1
