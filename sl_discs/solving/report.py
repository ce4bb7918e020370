"""A report on a run: a self-contained HTML page with the problem, the verified answer, plots and the command."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import html
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sl_discs.errors import InputError
from sl_discs.experiment.figures import COLOURS, side_by_side, table, write_page
from sl_discs.files import parse_json, write_text
from sl_discs.instances.graph import Graph
from sl_discs.problems import Problem
from sl_discs.problems.kind import KINDS
from sl_discs.problems.problem import label_of
from sl_discs.solving.result import Result
from sl_discs.version import __version__

# The plots of a report, each on a figure of its own.


def _objective(result: Result, figure) -> None:
    """Values against steps: the best so far, the mean of the chains, and the central 80 % of them."""
    axes, found = figure.subplots(), result.trajectory
    band = {"color": COLOURS[5], "alpha": 0.35, "linewidth": 0, "label": "80 % of chains"}
    axes.fill_between(found.step, found.low, found.high, **band)
    axes.plot(found.step, found.mean, color=COLOURS[0], linewidth=1, label="mean of chains")
    axes.plot(found.step, found.best, color=COLOURS[6], label="best so far")
    axes.set(xlabel="step", ylabel="value")
    axes.legend(loc="best", frameon=False)


def _temperature(result: Result, figure) -> None:
    axes, found = figure.subplots(), result.trajectory
    axes.plot(found.step, found.temperature, color=COLOURS[1])
    axes.set(xlabel="step", yscale="log")
    axes.set_ylabel("temperature", color=COLOURS[1])
    other = axes.twinx()
    other.plot(found.step, found.acceptance, color=COLOURS[2], linewidth=1)
    other.set_ylim(0, 1.02)
    other.set_ylabel("acceptance", color=COLOURS[2])
    other.spines["right"].set_visible(True)


def _contraction(result: Result, figure) -> None:
    axes, found = figure.subplots(), result.contraction
    known = np.isfinite(found.mean)
    axes.plot(found.time[known], found.mean[known], color=COLOURS[3], marker=".", label="|posterior mean|")
    axes.plot(found.time, found.field, color=COLOURS[0], linewidth=1, label="|tanh| of the observation's field")
    axes.set(xlabel="time t of localization", ylim=(0, 1.04))
    axes.legend(loc="best", frameon=False)


def _histogram(result: Result, figure) -> None:
    axes, values = figure.subplots(), result.values
    whole = np.array_equal(values, np.round(values)) and np.ptp(values) <= 40
    bins = np.arange(values.min() - 0.5, values.max() + 1) if whole else min(20, len(np.unique(values)))
    axes.hist(values, bins=bins, color=COLOURS[0], rwidth=0.9)
    axes.axvline(result.best_value, color=COLOURS[1], linestyle="--", label="best")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="best value of a chain", ylabel="chains")
    axes.legend(loc="best", frameon=False)


def _seconds(parts: dict[str, float], figure) -> None:
    axes = figure.subplots()
    bars = axes.barh(list(parts), list(parts.values()), color=[COLOURS[k % len(COLOURS)] for k in range(len(parts))])
    axes.bar_label(bars, [f"{value:.2f} s" for value in parts.values()], padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.25)
    axes.set(xlabel="seconds")


def _graph(run: Run, figure) -> None:
    """The graph, its nodes coloured by the answer; edges of a cut, or of a clique, are dark."""
    import networkx

    axes, graph = figure.subplots(), run.problem.source
    axes.set_axis_off()
    whole = networkx.empty_graph(graph.num_nodes)
    whole.add_edges_from(graph.edges.tolist())
    layout = networkx.spring_layout(whole, seed=0)
    places = np.array([layout[node] for node in range(graph.num_nodes)])
    places = places.clip(*np.quantile(places, (0.02, 0.98), axis=0))  # isolated nodes are far out
    values = np.array([run.result.best_sample[label] for label in run.problem.labels])
    first, second = values[graph.edges].T
    dark = {"maxcut": first != second, "maxclique": (first == 1) & (second == 1)}.get(run.problem.kind, first < 0)
    for which, style in ((~dark, {"color": "0.85", "linewidth": 0.5}), (dark, {"color": "0.35", "linewidth": 0.8})):
        ends = np.insert(places[graph.edges[which]], 2, np.nan, axis=1).reshape(-1, 2)  # NaN parts the edges
        axes.plot(*ends.T, zorder=1, **style)
    axes.scatter(*places.T, s=np.clip(2_000 / len(places), 10, 50), zorder=2,
                 color=[COLOURS[value % len(COLOURS)] for value in values.tolist()])  # fmt: skip


_MOST_LABELS = 2_000
# Graphs with more nodes are not drawn.
_MOST_DRAWN = 200


class Run(NamedTuple):
    """One problem and its result; `given` is information about its source, as (title, text)."""

    problem: Problem
    result: Result
    given: tuple[tuple[str, str], ...] = ()
    read_s: float = 0.0


def write_report(path: Path, runs: Iterable[Run], command: str, note: str = "") -> Path:
    """Writes a page with a section for each run, atomically; InputError without matplotlib or where it cannot."""
    runs = list(runs)
    title = runs[0].problem.name if len(runs) == 1 else f"{len(runs)} problems"
    sections = (_section(number, run) for number, run in enumerate(runs))
    return write_page(path, title, sections, command, note)


# A bound that is farther off says nothing.
_FAR = 0.5


def verification(problem: Problem, result: Result) -> tuple[bool, str]:
    """Whether the best answer has the claimed value in the problem as given, and how this was verified."""
    value = problem.value(result.best_sample)
    if value != result.best_value:
        return False, f"not verified: recomputed, the value of the answer is {value:.17g}"
    violated = problem.violated(result.best_sample)
    if violated:
        return False, KINDS[problem.kind].violation(violated)
    if not result.feasible:
        return False, "not verified: the answer violates constraints"
    return True, f"verified: {KINDS[problem.kind].recounted_of(problem.source)}"


def proof(result: Result) -> str:
    """How good the best answer is at least, or why that is not known, in words; perhaps empty."""
    if result.optimal:
        return f"optimal, proved by {result.bound_by}"
    if result.bound is None:
        return f"no bound: {result.bound_by}" if result.bound_by else ""
    if result.gap is not None and result.gap > _FAR:
        return f"no useful bound ({100 * result.gap:,.0f} % off)"
    gap = "" if result.gap is None else f", a gap of {100 * result.gap:.3g} %"
    return f"no answer is better than {result.bound:,.12g}{gap}, by {result.bound_by}"


def seconds(read_s: float, result: Result) -> dict[str, float]:
    """Of wall time, from reading the source to the verified answer."""
    parts = {"layout": "build_s", "compiling": "compile_s", "sampling": "run_s", "recounting": "verify_s"}
    return {"reading": read_s} | {words: result.timing[name] for words, name in parts.items()}


def _section(number: int, run: Run) -> str:
    problem, result = run.problem, run.result
    good, words = verification(problem, result)
    variables = "variables", f"{problem.num_variables:,}, each {'-1 and 1' if problem.spins else '0 and 1'}"
    sense = "sense", "maximise" if problem.maximise else "minimise"
    reached = int(((result.values == result.best_value) & (result.feasible_chains == result.feasible)).sum())
    said = "Best value until the run was interrupted" if result.stopped == "interrupt" else "Best value"
    several = f" ({reached} of {len(result.values)} chains reached it)" if len(result.values) > 1 else ""
    return f"""<section>
<h1>{KINDS[problem.kind].title_of(problem.source)}: {html.escape(problem.name)}</h1>
<p class="answer">{said} <strong>{KINDS[problem.kind].value_in_words(result.best_value)}</strong>{several}<br>
<span class="{"good" if good else "bad"}">{"✓" if good else "✗"} {html.escape(words)}</span><br>
{html.escape(proof(result))}</p>
{_plots(number, run)}
<h2>The problem</h2>
{table([*run.given, variables, sense])}
<h2>How it was sampled</h2>
{table(_settings(result))}
<h2>The answer</h2>
{_answer(problem, result)}
</section>"""


def _plots(number: int, run: Run) -> str:
    result = run.result
    shown: list[tuple[Callable, Any, str]] = []
    if isinstance(run.problem.source, Graph) and run.problem.source.num_nodes <= _MOST_DRAWN:
        shown.append((_graph, run, "The answer: nodes by value; edges of a cut or a clique are dark."))
    if result.rounds:
        shown += [
            (_objective, result, "Values at logged steps."),
            (_temperature, result, "Temperature, and mean acceptance of the chains."),
            (_histogram, result, "Best values of the chains."),
            (_seconds, seconds(run.read_s, result), "How the time was spent."),
        ]
    if len(result.contraction.step):
        words = "How the observation localizes the state: from 0 (nothing is known) to 1 (every variable is decided)."
        shown.append((_contraction, result, words))
    if not shown:
        return ""
    return side_by_side(
        number, [(paint.__name__[1:], functools.partial(paint, what), words) for paint, what, words in shown]
    )


def _settings(result: Result) -> list[tuple[str, str]]:
    rows = [("reductions", result.presolved)] if result.presolved else []
    if not result.rounds:
        return [*rows, ("proof", result.engine_note), ("end", result.ending)]
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
    rows += [
        ("sampler", result.sampler),
        ("engine", engine),
        ("chains", f"{len(result.values)}, {result.steps:,} steps each{rounds}"),
        ("annealing", annealing),
    ]
    if raised := int(np.count_nonzero(result.improved)):
        best = result.improved[result.best_chain]
        rows.append(("local search", f"bettered the answers of {raised} chains, the best of all by {best:g}"))
    return [
        *rows,
        ("end", result.ending),
        ("seed", str(result.seed)),
        ("acceptance", f"{result.acceptance:.3f}; {result.hops:.2f} variables change per step"),
    ]


def _answer(problem: Problem, result: Result) -> str:
    chosen = result.best_set
    ordered = [label for label in problem.labels if label in chosen]
    ones, size = len(ordered), problem.num_variables
    words = KINDS[problem.kind].answer.format(ones=ones, zeros=size - ones, size=size)
    shown = " ".join(html.escape(str(label)) for label in ordered[:_MOST_LABELS])
    more = f" and {len(ordered) - _MOST_LABELS:,} more" if len(ordered) > _MOST_LABELS else ""
    which = f"<details><summary>Which</summary><p class='labels'>{shown}{more}</p></details>" if ordered else ""
    return f"<p>{words}.</p>{which}"


# Files of answers by label, whose values anybody can recompute from the problem's own file.

_FORMAT = "sl_discs answers 1"


@dataclasses.dataclass(frozen=True)
class Answer:
    """One problem's answer: the claimed value, and the [N] labels and values, which are 0 and 1, or -1 and 1."""

    name: str
    value: float
    labels: Sequence[Any]
    values: Sequence[int]


@dataclasses.dataclass(frozen=True)
class Answers:
    """The answers to all problems of a file, in its order.

    If the run was interrupted, the last answer is the best that was found, and later problems have none. `weights`
    says whether the weights of nodes in the file count.
    """

    kind: str
    source: str
    sha256: str
    command: str
    answers: tuple[Answer, ...]
    interrupted: bool = False
    weights: bool = False


def digest_of(path: Path) -> str:
    """SHA-256 digest of a file, in hexadecimal; InputError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give the problem's file") from error


def write_answers(path: Path, answers: Answers) -> Path:
    """Writes a JSON file atomically; InputError if it cannot be written."""
    content = {
        "format": _FORMAT,
        "version": __version__,
        "problem": answers.kind,
        "file": answers.source,
        "sha256": answers.sha256,
        "command": answers.command,
        "interrupted": answers.interrupted,
        "weights": answers.weights,
        "answers": [dataclasses.asdict(one) for one in answers.answers],
    }
    return write_text(path, json.dumps(content, allow_nan=False))


def read_answers(path: Path) -> Answers:
    """Reads a file of `write_answers`; InputError if it cannot be read, or is another kind of file."""
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT:
            raise ValueError
        found = tuple(
            Answer(
                str(one["name"]),
                _number(one["value"]),
                list(map(label_of, one["labels"])),
                list(map(int, one["values"])),
            )
            for one in content["answers"]
        )
        if any(not len(set(one.labels)) == len(one.labels) == len(one.values) for one in found):
            raise ValueError
        kind, file, sha256, command = (str(content[name]) for name in ("problem", "file", "sha256", "command"))
        interrupted, weights = (content.get(name) is True for name in ("interrupted", "weights"))
        return Answers(kind, file, sha256, command, found, interrupted, weights)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a file that solve --save wrote") from error
    except (ValueError, KeyError, TypeError, OverflowError):
        raise InputError(f"{path}: not a file of answers; sl-discs solve FILE --save=... writes one") from None


def _number(value: Any) -> float:
    """A claimed value as in the file: whole numbers are not rounded, so they do not equal neighbouring doubles."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return value


def recount(problem: Problem, answer: Answer) -> tuple[float, bool]:
    """The exact value of an answer in the problem of the file, and whether it satisfies the constraints.

    A set or clique with conflicts is not repaired here, because it is not an answer. InputError where labels are
    missing or unknown, or a value is not one of the two.
    """
    state = problem.as_state(dict(zip(answer.labels, answer.values, strict=True)))
    evaluated = problem.evaluate(state[None])
    return float(evaluated.values[0]), bool((evaluated.states[0] == state).all() and evaluated.feasible[0])
