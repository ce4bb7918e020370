"""How often is the verdict of `sample` wrong, on targets that are built to mislead it?

    python studies/verdicts.py [--output=results/verdicts] [--seeds=25] [--targets=needle,pieces]
    [--methods=auto]
    python studies/verdicts.py --pilot --seeds=12

Each target's distribution is known. A run is *wrong* if some mean is too far from the truth: a
marginal, the weight of a mode, the mean value or log Z deviates by more than `LIMIT` times both its
stated error, where that is known, and the error of as many independent draws as the run claims to
be worth. The verdict counts as it is before the mode, which a user does not know, is asked for. What
counts is how many wrong runs are called reliable; on easy targets also how many right ones are not.
With `--pilot` the study counts instead on how many seeds the pilot of `auto` asks for a ladder.
Finished runs are kept in OUTPUT/cells, so that a stopped command continues where it left off; 25
seeds of all targets take four minutes of one core.
"""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from finished import finished
from laws_targets import TARGETS as LAWS
from laws_targets import by_tree
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import measured_by
from sl_discs.models.terms import Coefficients
from sl_discs.problems.density import LogDensity, from_log_density
from sl_discs.problems.problem import Problem
from sl_discs.reproduction.report import table
from sl_discs.sampling.draw_samples import sample
from sl_discs.sampling.drawn import Request
from sl_discs.sampling.plain_chains import ordered_method
from sl_discs.sampling.samples import Samples
from sl_discs.sampling.tempering import needs_no_ladder
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import say
from truths import (
    CRITICAL,
    boltzmann_machine,
    complete_bipartite,
    curie_weiss,
    ising_torus,
    random_field_grid,
    spin_problem,
    two_sides,
)

# In standard errors: by chance a mean of 100 is beyond it in 6 of 100,000 runs.
LIMIT = 5.0
DRAWS = 2_000
METHODS = "tempering", "chain", "auto"
GROUPS = 8  # that a run asks for; the pilot has a number of ladders of its own
# Kinds of targets: a verdict must be right on all but the last, of which nothing can be known, and
# content with the first.
EASY, MODES = "easy", "many modes"
CROSSED, BARRIER = "first order, crossed by ladders", "first order, hardly crossed by ladders"
HIDDEN = "hidden"
KINDS = EASY, MODES, CROSSED, BARRIER, HIDDEN


class Known(NamedTuple):
    """A target with known quantities; its marginals [K, N] are of the values `of`, and its mode is
    an event.
    """

    problem: Problem | LogDensity
    temperature: float
    log_z: float | None
    mean_value: float | None
    marginals: np.ndarray
    of: tuple[int, ...] = (1,)
    mode: Callable[[np.ndarray], np.ndarray] | None = None
    mode_weight: float = 0.0


class Target(NamedTuple):
    make: Callable[[], Known]
    kind: str
    methods: tuple[str, ...] = (
        "tempering",
        "chain",
    )  # and `auto` where it is another one, but not exact


def _of(truth, mode: Callable[[np.ndarray], np.ndarray] | None = None) -> Known:
    """Of a problem with a `Truth`; by default its mode is that of the magnetisation, in the
    problem's own values.
    """
    if mode is None and truth.mode_weight is not None:
        direction = np.ones(len(truth.marginals)) if truth.direction is None else truth.direction
        mode = lambda states: np.where(states > 0, 1, -1) @ direction > 0  # noqa: E731
    found = truth.problem, truth.temperature, truth.log_z, truth.mean_value, truth.marginals[None]
    return Known(*found, mode=mode, mode_weight=truth.mode_weight or 0.0)


def bipartite(left: int, right: int, temperature: float, penalty: float) -> Known:
    """Independent sets of a complete bipartite graph; the mode is the left side."""
    truth = complete_bipartite(left, right, temperature, penalty=penalty)
    return _of(truth, lambda states: states[:, :left].sum(axis=1) > states[:, left:].sum(axis=1))


def machine() -> Known:
    """A restricted Boltzmann machine of 16 visible and 10 hidden units, of which 4 have no weights
    and no bias.
    """
    rng = np.random.default_rng(0)
    weights, hidden = rng.normal(size=(16, 10)), rng.normal(size=10)
    weights[:, :4], hidden[:4] = 0.0, 0.0
    return _of(boltzmann_machine(weights, rng.normal(size=16), hidden))


def glass(side: int, temperature: float) -> Known:
    """Couplings 1 and -1 on a square lattice with open boundary, with a weak field."""
    rng = np.random.default_rng(side)
    site = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate([
        np.stack([site[:, :-1], site[:, 1:]], axis=-1).reshape(-1, 2),
        np.stack([site[:-1], site[1:]], axis=-1).reshape(-1, 2),
    ])  # fmt: skip
    return _of(
        by_tree(
            spin_problem(
                "glass", np.full(side**2, 0.05), pairs, rng.choice((-1.0, 1.0), len(pairs))
            ),
            temperature,
        )
    )


def pieces() -> Known:
    """Four rings of ten strong couplings, of which one is frustrated, a free spin and a pair,
    without fields.
    """
    pairs = np.concatenate(
        [10 * k + np.stack([np.arange(10), (np.arange(10) + 1) % 10], axis=1) for k in range(4)]
    )
    couplings = np.ones(40)
    couplings[0] = -1.0
    pairs, couplings = np.vstack([pairs, [[41, 42]]]), np.append(couplings, 2.0)
    return _of(by_tree(spin_problem("pieces", np.zeros(43), pairs, couplings), 0.5))


def needle(size: int, weight: float) -> Known:
    """All states have equal weights but one, which has this probability."""
    import jax.numpy as jnp

    state = np.random.default_rng(0).integers(0, 2, size)
    height = size * math.log(2) + math.log(weight / (1 - weight))

    def f(params, x):
        return params[1] * jnp.all(x == params[0])

    problem = from_log_density(
        f, (state.astype(np.float32), np.float32(height)), size, name="needle"
    )
    log_z, marginals = size * math.log(2) - math.log1p(-weight), weight * state + (1 - weight) / 2
    mode = lambda states: (states == state).all(axis=1)  # noqa: E731
    return Known(
        problem, 1.0, log_z, weight * height, marginals[None], mode=mode, mode_weight=weight
    )


def _sides(
    kind: str, left: int, right: int, temperature: float, gain: float, penalty: float
) -> dict[str, Target]:
    """Two sides, of which the left one, which fewer states lead to, has weight .1 or .9."""

    def target(weight: float) -> Target:
        return Target(
            lambda: _of(
                two_sides(left, right, temperature, gain=gain, penalty=penalty, weight=weight)
            ),
            kind,
        )

    name = f"{'plateau' if gain == 0 else 'sides'} {left}/{right} penalty {penalty:g}"
    return {f"{name} weight {weight:g}": target(weight) for weight in (0.1, 0.9)}


TARGETS: dict[str, Target] = {
    "nearly free spins": Target(lambda: _of(random_field_grid(8, 20.0)), EASY),
    "hot torus": Target(lambda: _of(ising_torus(8, 4.0)), EASY),
    "critical torus": Target(lambda: _of(ising_torus(10, CRITICAL)), EASY, ("tempering",)),
    "random field": Target(lambda: _of(random_field_grid(8, 1.5)), EASY, ("tempering",)),
    "two modes .9/.1": Target(
        lambda: _of(curie_weiss(60, 0.7, field=0.015)), EASY, ("tempering", "auto")
    ),
    "two modes .97/.03": Target(lambda: _of(curie_weiss(60, 0.5, field=0.015)), MODES, METHODS),
    "ordered torus": Target(lambda: _of(ising_torus(8, 1.6)), MODES),
    "spin glass": Target(lambda: glass(8, 0.5), MODES),
    "pieces": Target(pieces, MODES),
    "machine with dead units": Target(machine, MODES),
    "8 Hopfield patterns": Target(lambda: _of(LAWS["hopfield-8"].make(1)), MODES),
    "planted strip": Target(lambda: _of(LAWS["strip-2.4-0.4"].make(1)), MODES, ("tempering",)),
    "independent sets 30/31": Target(lambda: bipartite(30, 31, 0.5, 3.0), MODES),
    "independent sets 12/14": Target(lambda: bipartite(12, 14, 0.5, 1.2), MODES),
    **_sides(CROSSED, 20, 26, 0.3, 1.0, 2.0),
    **_sides(CROSSED, 12, 16, 0.3, 1.0, 1.2),
    **_sides(BARRIER, 10, 30, 0.5, 1.0, 1.2),
    **_sides(CROSSED, 10, 40, 1.0, 0.0, 0.3),
    **_sides(BARRIER, 10, 40, 1.0, 0.0, 0.6),
    **_sides(BARRIER, 10, 40, 1.0, 0.0, 2.0),
    "golf hole": Target(
        lambda: _of(two_sides(20, 200, 1.0, gain=0.0, penalty=0.5, weight=0.9)), HIDDEN
    ),
    "needle": Target(lambda: needle(24, 0.5), HIDDEN, ("tempering",)),
}


def judged(known: Known, samples: Samples) -> dict[str, Any]:
    """What a run claimed, and its worst deviation in units of the larger of its two errors."""
    worth = max(1.0, min(one.ess_bulk for one in samples.diagnostics[:3]))

    reliable = bool(samples.reliable)  # before the mode, which a user does not know, is asked for

    def apart(found, truth: float, error: float = 0.0) -> float:
        own = max(found.error, error) if math.isfinite(found.error) else error
        return abs(found.mean - truth) / max(own, 1e-9)

    def share(found, p: float) -> float:
        return apart(found, p, math.sqrt(max(p * (1 - p), 1e-300) / worth))

    deviations = {"marginals": 0.0}
    for place, label in enumerate(samples.labels):
        ours = samples.marginals[label]
        ours = ours if isinstance(ours, tuple) and known.of != (1,) else (ours,)
        found = max(share(one, p) for one, p in zip(ours, known.marginals[:, place], strict=True))
        deviations["marginals"] = max(deviations["marginals"], found)
    if known.mode is not None:
        deviations["mode"] = share(samples.expectation(known.mode), known.mode_weight)
    if known.mean_value is not None and not math.isnan(samples.mean().error):
        deviations["value"] = apart(samples.mean(), known.mean_value)
    if known.log_z is not None and samples.log_z is not None and samples.method != "exact":
        deviations["log Z"] = apart(samples.log_z, known.log_z)
    worst = max(deviations, key=lambda name: deviations[name])
    return {
        "reliable": reliable, "found out": not samples.reliable, "method": samples.method, "worst": worst,
        "deviation": float(min(deviations[worst], 1e9)), "reasons": list(samples.verdict.reasons), "worth": worth,
    }  # fmt: skip


def _cell(folder: Path, name: str, method: str, seed: int) -> dict[str, Any]:
    def compute() -> dict[str, Any]:
        known, begin = _known(name), time.process_time()
        samples = sample(known.problem, known.temperature, DRAWS, method, seed=seed)
        return judged(known, samples) | {"cpu_s": time.process_time() - begin}

    identity = {"kind": "verdict", "target": name, "method": method, "seed": seed, "draws": DRAWS}
    return finished(folder, identity, compute)


@functools.cache
def _known(name: str) -> Known:
    return TARGETS[name].make()


def run(folder: Path, seeds: int, targets: list[str], methods: list[str]) -> str:
    """Plays what is not finished, and writes verdicts.md and verdicts.json into the folder; returns
    the page.
    """
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name in targets:
        for method in (one for one in TARGETS[name].methods if one in methods):
            cells[name, method] = runs = [
                _cell(folder / "cells", name, method, seed) for seed in range(seeds)
            ]
            say(
                f"{name}, {method}: {_words(runs)}, {sum(one['cpu_s'] for one in runs):.0f} "
                "CPU-seconds"
            )
    rows = [
        {"target": name, "kind": TARGETS[name].kind, "method": method} | count(runs)._asdict()
        for (name, method), runs in cells.items()
    ]
    write_json(
        folder / "verdicts.json",
        {"measured": measured_by(), "draws": DRAWS, "limit": LIMIT, "cells": rows},
    )
    text = page(cells)
    write_text(folder / "verdicts.md", text)
    return text


def page(cells: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    """A table for each kind of target: a row for each target, a column for each method."""
    parts = []
    for kind in KINDS:
        names = [
            name
            for name in TARGETS
            if TARGETS[name].kind == kind and any(name == one for one, _ in cells)
        ]
        if not names:
            continue
        methods = [one for one in METHODS if any(cells.get((name, one)) for name in names)]
        rows = [[name, *(_words(cells.get((name, one), [])) for one in methods)] for name in names]
        sums = [[run for name in names for run in cells.get((name, one), [])] for one in methods]
        parts.append(table([kind, *methods], [*rows, ["all", *map(_words, sums)]]))
    return "\n\n".join(parts) + "\n"


def pilots(folder: Path, seeds: int, targets: list[str]) -> str:
    """Returns a table of the seeds on which the pilot of `auto` asks for a ladder."""
    rows = []
    for name in targets:
        known = _known(name)
        terms = known.problem.terms()
        if not isinstance(terms, Coefficients):  # of a log-density `auto` has no pilot
            continue

        def compute(seed: int, terms=terms, temperature=known.temperature) -> dict[str, Any]:
            gibbs = ordered_method("gibbs", {})
            request = Request(terms, temperature, None, GROUPS, gibbs, "auto", seed)
            return {"ladder": not needs_no_ladder(request, lambda: False)}

        runs = [
            finished(
                folder / "cells",
                {"kind": "pilot", "target": name, "seed": seed},
                functools.partial(compute, seed),
            )
            for seed in range(seeds)
        ]
        asked = sum(one["ladder"] for one in runs)
        rows.append([TARGETS[name].kind, name, f"{asked} of {seeds}"])
        say(": ".join(rows[-1]))
    text = table(["kind", "target", "seeds with a ladder"], rows) + "\n"
    write_text(folder / "pilot.md", text)
    return text


class Count(NamedTuple):
    """How many runs, how many called reliable, how many of these wrong, and how many right ones not
    called so.
    """

    runs: int
    reliable: int
    wrong: int
    alarms: int


def count(runs: list[dict[str, Any]]) -> Count:
    reliable = [one for one in runs if one["reliable"]]
    return Count(
        len(runs), len(reliable), sum(one["deviation"] > LIMIT for one in reliable),
        sum(not one["reliable"] and one["deviation"] <= LIMIT for one in runs),
    )  # fmt: skip


def _words(runs: list[dict[str, Any]]) -> str:
    all_runs, reliable, wrong, alarms = count(runs)
    if not all_runs:
        return ""
    return (
        f"{reliable} of {all_runs}, "
        + (f"**{wrong} wrong**" if wrong else "0 wrong")
        + f", {alarms} alarms"
    )


FLAGS, define = own_flags()
define.string("output", "results/verdicts", "Folder of the page, the numbers and the runs.")
define.integer("seeds", 25, "Runs of each method on each target.", lower_bound=1)
define.list("targets", list(TARGETS), "Targets.")
define.list("methods", list(METHODS), "Methods.")
define.boolean("pilot", False, "Whether the pilot of `auto` is studied in place of verdicts.")


def _main(_) -> int:
    check_choice("targets", FLAGS.targets, TARGETS)
    check_choice("methods", FLAGS.methods, METHODS)
    folder = check_writable(FLAGS.output)
    if FLAGS.pilot:
        text = pilots(folder, FLAGS.seeds, FLAGS.targets)
    else:
        text = run(folder, FLAGS.seeds, FLAGS.targets, FLAGS.methods)
    say(f"\n{text}\nsaved in {folder}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
