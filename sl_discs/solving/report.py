"""A report on a run: a self-contained HTML page with the problem, the verified answer, plots and the command."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sl_discs.experiment.figures import side_by_side, table, write_page
from sl_discs.models.kinds import KINDS
from sl_discs.problems import Problem
from sl_discs.solving import plots
from sl_discs.solving.result import Result

_MOST_LABELS = 2_000


class Run(NamedTuple):
    """One problem and its result.

    Attributes:
      problem: as it was given.
      result: of `sl_discs.solve`.
      given: information about the source, as (title, text).
      read_s: seconds that reading it took.
    """

    problem: Problem
    result: Result
    given: tuple[tuple[str, str], ...] = ()
    read_s: float = 0.0


def write_report(path: Path, runs: Iterable[Run], command: str, note: str = "") -> Path:
    """Writes the page atomically.

    Args:
      path: of the .html file.
      runs: one section for each.
      command: the command that repeats the run.
      note: a remark on the whole run.

    Raises:
      InputError: matplotlib is not installed, or the file cannot be written.
    """
    runs = list(runs)
    title = runs[0].problem.name if len(runs) == 1 else f"{len(runs)} problems"
    sections = (_section(number, run) for number, run in enumerate(runs))
    return write_page(path, title, sections, command, note)


def verification(problem: Problem, result: Result) -> tuple[bool, str]:
    """Whether the best answer has the claimed value in the problem as given, and how this was verified."""
    value = problem.value(result.best_sample)
    if value != result.best_value:
        return False, f"not verified: recomputed, the value of the answer is {value:.17g}"
    violated = problem.violated(result.best_sample)
    if violated:
        more = f" and {len(violated) - 1} more constraints" if len(violated) > 1 else ""
        return False, f"not verified: the answer violates {violated[0]}{more}"
    if not result.feasible:
        return False, "not verified: the answer violates constraints"
    return True, f"verified: {KINDS[problem.kind].recounted}"


def proof(result: Result) -> str:
    """How good the best answer is at least, in words; empty where no bound is known."""
    if result.optimal:
        return "optimal, as a bound proves" if result.rounds else f"optimal: {result.engine_note}"
    if result.bound is None:
        return ""
    gap = "" if result.gap is None else f", a gap of {100 * result.gap:.3g} %"
    return f"no answer is better than {result.bound:,.12g}{gap}"


def seconds(read_s: float, result: Result) -> dict[str, float]:
    """How the time was spent, from reading the source to the verified answer."""
    parts = {"layout": "build_s", "compiling": "compile_s", "sampling": "run_s", "recounting": "verify_s"}
    return {"reading": read_s} | {words: result.timing[name] for words, name in parts.items()}


def _section(number: int, run: Run) -> str:
    problem, result = run.problem, run.result
    good, words = verification(problem, result)
    reached = int(((result.values == result.best_value) & (result.feasible_chains == result.feasible)).sum())
    said = "Best value until the run was interrupted" if result.stopped == "interrupt" else "Best value"
    several = f" ({reached} of {len(result.values)} chains reached it)" if len(result.values) > 1 else ""
    return f"""<section>
<h1>{KINDS[problem.kind].title}: {html.escape(problem.name)}</h1>
<p class="answer">{said} <strong>{result.best_value:,.12g}</strong>{several}<br>
<span class="{"good" if good else "bad"}">{"✓" if good else "✗"} {words}</span><br>
{proof(result)}</p>
{_plots(number, run)}
<h2>The problem</h2>
{table([*run.given, *_question(problem)])}
<h2>How it was sampled</h2>
{table(_settings(result))}
<h2>The answer</h2>
{_answer(problem, result)}
</section>"""


def _plots(number: int, run: Run) -> str:
    result = run.result
    if not result.rounds:
        return ""
    shown = [
        ("objective", plots.objective(result), "Values at logged steps."),
        ("temperature", plots.temperature(result), "Temperature, and mean acceptance of the chains."),
    ]
    if len(result.contraction.step):
        words = "How the observation localizes the state: from 0 (nothing is known) to 1 (every variable is decided)."
        shown.append(("contraction", plots.contraction(result), words))
    shown.append(("histogram", plots.histogram(result), "Best values of the chains."))
    shown.append(("seconds", plots.seconds(seconds(run.read_s, result)), "How the time was spent."))
    return side_by_side(number, shown)


def _question(problem: Problem) -> list[tuple[str, str]]:
    values = "-1 and 1" if problem.spins else "0 and 1"
    return [
        ("variables", f"{problem.num_variables:,}, each {values}"),
        ("sense", "maximise" if problem.maximise else "minimise"),
    ]


def _settings(result: Result) -> list[tuple[str, str]]:
    engine = result.engine + (f" ({result.engine_note})" if result.engine_note else "")
    rounds = f" in {result.rounds} annealings" if result.rounds > 1 else ""
    annealing = ", ".join(
        f"{name.replace('_', ' ')} {value:.4g}"
        if isinstance(value, float)
        else f"{len(value):,} temperatures"
        if isinstance(value, list | tuple)
        else str(value)
        for name, value in result.annealing.items()
    )
    if not result.rounds:
        reductions = [("reductions", result.presolved)] if result.presolved else []
        return [*reductions, ("proof", result.engine_note), ("end", result.ending)]
    return [
        *([("reductions", result.presolved)] if result.presolved else []),
        ("sampler", result.sampler),
        ("engine", engine),
        ("chains", f"{len(result.values)}, {result.steps:,} steps each{rounds}"),
        ("annealing", annealing),
        *_improvement(result),
        ("end", result.ending),
        ("seed", str(result.seed)),
        ("acceptance", f"{result.acceptance:.3f}; {result.hops:.2f} variables change per step"),
    ]


def _improvement(result: Result) -> list[tuple[str, str]]:
    """What the local search after the chains has done, if anything."""
    raised = int(np.count_nonzero(result.improved))
    if not raised:
        return []
    best = result.improved[result.best_chain]
    return [("local search", f"bettered the answers of {raised} chains, the best of all by {best:g}")]


def _answer(problem: Problem, result: Result) -> str:
    chosen = result.best_set
    ordered = [label for label in problem.labels if label in chosen]
    ones, size = len(ordered), problem.num_variables
    words = KINDS[problem.kind].answer.format(ones=ones, zeros=size - ones, size=size)
    shown = " ".join(html.escape(str(label)) for label in ordered[:_MOST_LABELS])
    more = f" and {len(ordered) - _MOST_LABELS:,} more" if len(ordered) > _MOST_LABELS else ""
    return (
        f"<p>{words}.</p><details><summary>Which</summary><p class='labels'>{shown}{more}</p></details>"
        if ordered
        else f"<p>{words}.</p>"
    )
