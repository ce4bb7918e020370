"""The verdict of a check of the engine `gpu`: whether it is correct, and faster than the reference."""

from __future__ import annotations

import collections
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sl_discs.benchmark.cases import chosen_cases
from sl_discs.benchmark.gpu_check import CASES, ENGINES, METHODS, ON_GPU, REQUIRED, Result, plan_tasks
from sl_discs.benchmark.report import Row


class Verdict(NamedTuple):
    """Of a report.

    Attributes:
      word: `passed` or `failed`; without a GPU, that there is none.
      reasons: what it rests on, or why it failed.
    """

    word: str
    reasons: list[str]


def rows_of(results: Sequence[Result], part: str) -> dict[tuple[str, str], dict[str, Row]]:
    """(case, method) -> engine -> the rate that a part found."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for task, outcome in results:
        if task.part == part and outcome is not None and outcome.error is None:
            row = outcome.value
            found.setdefault((row.case, row.sampler), {})[row.contender] = row
    return found


def speedup(rows: Mapping[str, Row]) -> float | None:
    """The rate of `gpu` over that of the reference, medians; None unless both were measured."""
    if set(ENGINES) - set(rows):
        return None
    return float(np.median(rows["gpu"].rates()) / np.median(rows["reference"].rates()))


def judge(results: Sequence[Result], on_gpu: bool) -> Verdict:
    """Passed if no task failed, all of the required parts were called, and `gpu` is faster in each of their pairs.

    Args:
      results: so far.
      on_gpu: whether the run was on a GPU, not in an interpreter.
    """
    reasons = [
        f"{task.label()}: {in_a_line(outcome.error, 300)}"
        for task, outcome in results
        if outcome is not None and outcome.error is not None
    ]
    missing = _required() - collections.Counter(task.part for task, outcome in results if outcome is not None)
    if missing:
        words = ", ".join(f"{count} of {part}" for part, count in missing.items())
        reasons.append(f"not checked: {words}; give it all parts and samplers, and more --minutes")
    if not on_gpu:
        return Verdict("not a GPU: no verdict", reasons)
    ratios = {key: speedup(rows) for key, rows in rows_of(results, "bench").items()}
    known = {key: ratio for key, ratio in ratios.items() if ratio is not None}
    slower = [f"{method} on {case} ({ratio:.2f}x)" for (case, method), ratio in known.items() if ratio <= 1]
    if slower:
        reasons.append("not faster than the reference: " + ", ".join(slower))
    if reasons:
        return Verdict("failed", reasons)
    middle = math.exp(np.mean([math.log(ratio) for ratio in known.values()]))
    checks = sum(count for part, count in _required().items() if part != "bench")
    return Verdict(
        "passed",
        [
            f"the law of the gpu engine holds in all {checks} checks",
            f"it is {middle:.1f} times as fast as the reference (geometric mean of {len(known)} pairs, "
            f"{min(known.values()):.1f} to {max(known.values()):.1f})",
        ],
    )


def _required() -> collections.Counter[str]:
    """How many tasks a verdict needs of each part."""
    tasks = plan_tasks(ON_GPU, chosen_cases(list(CASES)), (), METHODS, REQUIRED)
    return collections.Counter(task.part for task in tasks)


def in_a_line(words: str, most: int) -> str:
    """The beginning of a message."""
    return " ".join(words.split())[:most]
