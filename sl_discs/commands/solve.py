"""Command: solves the problem in a file.

sl-discs solve FILE [--problem=PROBLEM] [--sampler=auto] [--time_limit=10]
    [--target=VALUE] [--save=ANSWERS.json] [--report=RUN.html]
sl-discs solve FILE --check=ANSWERS.json

PROBLEM: mis, maxcut, maxclique, vertex_cover, qubo or ising.
FILE: rudy (Gset), DIMACS (.clq, .col), METIS, an edge list, MatrixMarket, OR-Library's bqp, qbsolv, COO, a SAT
formula (its conflict graph) or an .npz archive, plain or compressed (gzip, bzip2, xz); its content says what it is.
A file of several problems is solved one by one. Every answer is recounted in exact arithmetic from the file's terms.

Exit code 0; 1 where an answer does not hold what it claims; 2 after one line about bad input. Ctrl-C, SIGTERM and
SIGUSR1 end the sampling: the best answer so far is printed, saved and reported, marked as interrupted, and the exit
code is 128 and the signal's number, 130 after Ctrl-C.
"""

from __future__ import annotations

import shlex
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from absl import flags

from sl_discs.atomic import check_file
from sl_discs.checks import real
from sl_discs.command import asks_for_help, help_page
from sl_discs.commands.reading import read_with_progress
from sl_discs.engines.devices import one_device_per_core
from sl_discs.errors import InputError
from sl_discs.experiment.interruption import notice_of_end
from sl_discs.experiment.settings import ENGINES
from sl_discs.instances.formats import READERS, Instance
from sl_discs.instances.graph import Graph
from sl_discs.models.kind import PENALTY
from sl_discs.problem_names import FORM_PROBLEMS, GRAPH_PROBLEMS, form_problem, in_words
from sl_discs.problems import Problem
from sl_discs.problems.problem import in_order
from sl_discs.results.canvas import check_matplotlib, or_warn
from sl_discs.solving.answers import Answer, Answers, digest_of, read_answers, recount, write_answers
from sl_discs.solving.arguments import check_arguments
from sl_discs.solving.report import Run, seconds, verification, write_report
from sl_discs.solving.result import Result
from sl_discs.solving.solve import solve

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()

# Bytes of a file that are read in a second, at most: plain lists of edges are read fastest.
_READ_BYTES_PER_S = 4e7
_STOPPING = "\nstopping with the best answer so far; a second signal ends at once and saves nothing\n"


def _define(define, name: str, default: Any, words: str, **more: Any) -> None:
    define(name, default, words, flag_values=FLAGS, **more)


flags.DEFINE_enum(
    "problem",
    None,
    [*GRAPH_PROBLEMS, *FORM_PROBLEMS],
    "What is asked. A graph needs it; a model's file says itself, and a SAT formula is mis.",
    flag_values=FLAGS,
)
flags.DEFINE_enum("format", None, list(READERS), "Of FILE; default: what its content says.", flag_values=FLAGS)
_define(
    flags.DEFINE_string, "sampler", "auto", "gwg, path_auxiliary, dmala, gibbs, metropolis, sl_ of each, or auto."
)
_define(flags.DEFINE_multi_string, "field", [], "NAME=VALUE of the sampler's config, such as --field=sigma=4.0.")
_define(flags.DEFINE_integer, "steps", None, "Of each chain; default: by the sampler and the problem's size.")
_define(flags.DEFINE_float, "time_limit", None, "Seconds of layout and sampling; annealings grow to fill them.")
_define(flags.DEFINE_float, "target", None, "Stop at a value as good as this.")
_define(flags.DEFINE_integer, "chains", 32, "That run side by side.")
_define(
    flags.DEFINE_list,
    "annealing",
    None,
    "INITIAL,FINAL temperatures, in units of the value; default: from the problem's own gains.",
)
_define(flags.DEFINE_float, "penalty", PENALTY, "Of a conflict in mis, maxclique and the like, at least 1.")
flags.DEFINE_enum("engine", "auto", ENGINES, "What plays the chains.", flag_values=FLAGS)
_define(flags.DEFINE_integer, "seed", 0, "Of the chains.")
_define(flags.DEFINE_string, "save", None, "File of answers to write, .json.")
_define(flags.DEFINE_string, "report", None, "Page to write, .html: one file, to be opened in a browser.")
_define(flags.DEFINE_string, "check", None, "File of answers to recount instead of solving.")


def main(argv: Sequence[str]) -> int:
    """Exit codes as above."""
    if asks_for_help(argv):
        sys.stdout.write(help_page("sl-discs solve", "FILE", __doc__, FLAGS.get_help()))
        return 0
    try:
        paths = FLAGS(list(argv))[1:]
        if len(paths) != 1:
            raise InputError(f"{len(paths)} files were named; name one FILE, and see --help")
        one_device_per_core()
        arguments = _checked_arguments()
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            return _check(Path(paths[0])) if FLAGS.check else _solve(Path(paths[0]), arguments, argv)
    except (InputError, flags.Error) as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; nothing more was saved\n")
        return 128 + signal.SIGINT
    finally:
        FLAGS.unparse_flags()


def _checked_arguments() -> dict[str, Any]:
    """The arguments of `solve`, after whatever can be wrong with any flag, before a file is read."""
    for name, suffix in ("save", ".json"), ("report", ".html"):
        target = FLAGS[name].value
        if target is not None and Path(target).suffix != suffix:
            raise InputError(f"--{name}={target}: the name of that file ends in {suffix}")
        if target is not None:
            check_file(target)
    if FLAGS.report is not None:
        check_matplotlib()
    real("penalty", FLAGS.penalty, least=1)
    fields = _fields()
    names = "sampler", "steps", "time_limit", "target", "chains", "engine", "seed"
    arguments: dict[str, Any] = {name: FLAGS[name].value for name in names} | {"annealing": _annealing()}
    twice = sorted(set(arguments) & set(fields))
    if twice:
        raise InputError(f"--field={twice[0]}=...: this is a flag of its own, --{twice[0]}")
    check_arguments(**arguments, **fields)
    return arguments | fields


def _solve(path: Path, arguments: dict[str, Any], argv: Sequence[str]) -> int:
    begin = time.perf_counter()
    expected_s = path.stat().st_size / _READ_BYTES_PER_S if path.is_file() else 0.0
    limited = FLAGS.time_limit is not None
    if limited and expected_s > FLAGS.time_limit:
        _warn(f"reading will take about {expected_s:.0f} s, which --time_limit={FLAGS.time_limit:g} does not count")
    instances = read_with_progress(path, FLAGS.problem, FLAGS.format)
    read_s = time.perf_counter() - begin
    if limited and read_s > FLAGS.time_limit >= expected_s:
        _warn(f"reading took {read_s:.1f} s, which --time_limit={FLAGS.time_limit:g} does not count")
    problems = [problem_of(instance, FLAGS.problem, FLAGS.penalty) for instance in instances]
    command = shlex.join(["sl-discs", "solve", *argv[1:]])
    runs, good = [], True
    with notice_of_end(signal.SIGINT, said=_STOPPING) as notice:
        for instance, problem in zip(instances, problems, strict=True):
            given = _given(instance)
            _say(f"{problem.name}: {problem.kind} of {', '.join(words for _, words in given)}")
            result = solve(problem, **arguments, interrupt=lambda: notice.given, progress=True)
            held, words = verification(problem, result)
            good &= held
            _say(_summary(result, read_s, words))
            runs.append(Run(problem, result, given, read_s))
            if notice.given:
                break
        interrupted = len(runs) < len(problems) or runs[-1].result.stopped == "interrupt"
        note = ""
        if len(runs) < len(problems):
            note = f"Interrupted: {len(runs)} of {len(problems)} problems have an answer."
            _say(note)
        if FLAGS.save:
            _say(f"saved: {write_answers(Path(FLAGS.save), _answers(path, runs, command, interrupted))}")
        if FLAGS.report:
            page = or_warn(lambda: write_report(Path(FLAGS.report), runs, command, note))
            if page is not None:
                _say(f"report: {page}")
    if interrupted:
        return 128 + notice.signal
    return 0 if good else 1


def _check(path: Path) -> int:
    """Recounts the answers of a file in the problems of another."""
    answers = read_answers(Path(FLAGS.check))
    if FLAGS.problem not in (None, answers.kind):
        raise InputError(f"{FLAGS.check}: answers to {answers.kind}, not to --problem={FLAGS.problem}")
    FLAGS.problem = answers.kind  # type: ignore[assignment]  # absl gives all flags one type
    if digest_of(path) != answers.sha256:
        _say(f"{path} is not byte for byte the file that was solved ({answers.source}); it is recounted all the same")
    instances = read_with_progress(path, FLAGS.problem, FLAGS.format)
    problems = [problem_of(instance, answers.kind, FLAGS.penalty) for instance in instances]
    if answers.interrupted and len(answers.answers) < len(problems):
        _say(f"the run was interrupted: {len(answers.answers)} of {len(problems)} problems have an answer")
        problems = problems[: len(answers.answers)]
    if len(problems) != len(answers.answers):
        raise InputError(f"{FLAGS.check}: {len(answers.answers)} answers for {len(problems)} problems in {path}")
    good = True
    for problem, answer in zip(problems, answers.answers, strict=True):
        value, feasible = recount(problem, answer)
        held = feasible and value == answer.value
        why = "" if held else " - violates constraints" if not feasible else " - not what is claimed"
        _say(f"{problem.name}: {answer.value:.12g} claimed, {value:.12g} counted{why}: {'good' if held else 'WRONG'}")
        good &= held
    return 0 if good else 1


def problem_of(instance: Instance, kind: str | None, penalty: float = PENALTY) -> Problem:
    """The problem that a file's content is.

    Args:
      instance: from the file.
      kind: what is asked; None where the content says it.
      penalty: of conflicts.

    Raises:
      InputError: a graph of which nothing is asked.
    """
    content = instance.content
    if isinstance(content, Graph):
        kind = kind or ("mis" if instance.format == "cnf" else None)
        if kind is None:
            raise InputError(f"{instance.path}: a graph; say what is asked: --problem={in_words(GRAPH_PROBLEMS)}")
        return Problem(kind, content.name, in_order(instance.labels), content, penalty)
    return Problem(form_problem(content.spins), content.name, in_order(instance.labels), content)


def _fields() -> dict[str, Any]:
    fields = {}
    for given in FLAGS.field:
        name, equals, value = given.partition("=")
        if not (name and equals):
            raise InputError(f"--field={given}: expected NAME=VALUE, such as --field=sigma=4.0")
        try:
            fields[name] = yaml.safe_load(value)
        except (yaml.YAMLError, RecursionError):
            raise InputError(f"--field={given}: {value!r} is no number, word or list") from None
    return fields


def _annealing() -> tuple[float, float] | None:
    if FLAGS.annealing is None:
        return None
    try:
        initial, final = map(float, FLAGS.annealing)
    except ValueError:
        raise InputError(f"--annealing={','.join(FLAGS.annealing)}: expected two numbers, INITIAL,FINAL") from None
    return initial, final


def _given(instance: Instance) -> tuple[tuple[str, str], ...]:
    content = instance.content
    if isinstance(content, Graph):
        weights = "" if content.weights is None or (content.weights == 1).all() else ", weighted"
        size = f"{content.num_nodes:,} nodes, {content.num_edges:,} edges{weights}"
    else:
        size = f"{content.num_variables:,} variables, {len(content.couplings):,} quadratic terms"
    return ("file", f"{instance.path.name} ({instance.format})"), ("size", size)


def _summary(result: Result, read_s: float, verified: str) -> str:
    chains, annealing = len(result.values), result.annealing
    reached = int((result.values == result.best_value).sum())
    note = f" ({result.engine_note})" if result.engine_note else ""
    rounds = f" in {result.rounds} annealings" if result.rounds > 1 else ""
    so_far = " so far" if result.stopped == "interrupt" else ""
    temperatures = f"{annealing['init_temperature']:.3g} to {annealing['final_temperature']:.3g}"
    return "\n".join(
        [
            f"  best{so_far} {result.best_value:,.12g}, reached by {reached} of {chains} chains; {verified}",
            f"  {result.sampler} on {result.engine}{note}: {chains} chains x {result.steps:,} steps{rounds}, "
            f"temperature {temperatures}, {result.ending}",
            f"  seconds: {', '.join(f'{value:.2f} {words}' for words, value in seconds(read_s, result).items())}",
        ]
    )


def _answers(path: Path, runs: list[Run], command: str, interrupted: bool) -> Answers:
    found = tuple(
        Answer(run.problem.name, run.result.best_value, list(best), list(best.values()))
        for run in runs
        for best in [run.result.best_sample]
    )
    return Answers(runs[0].problem.kind, path.name, digest_of(path), command, found, interrupted)


def _warn(message: Any, *_: Any, **__: Any) -> None:
    """In the place of `warnings.showwarning`: a line without its place in the code."""
    sys.stderr.write(f"warning: {message}\n")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
