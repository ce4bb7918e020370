"""The speed of drawing at a temperature: contenders sample a target in turn, with the same diagnostics for all."""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

import numpy as np

from sl_discs.benchmark.contenders import NotPlayed, timed
from sl_discs.benchmark.draw_peers import PEERS, RATE_ONLY, Draw
from sl_discs.benchmark.targets import TARGETS, Target
from sl_discs.engines.compiled import compile_cpu_seconds, compile_seconds
from sl_discs.models.coefficients import Coefficients
from sl_discs.sampling.arena import Arena
from sl_discs.sampling.diagnostics import LEAST_DRAWS, MOST_R_HAT, diagnose
from sl_discs.sampling.drawn import Budget, Drawn
from sl_discs.sampling.options import Options
from sl_discs.sampling.packed import overlaps, packed
from sl_discs.sampling.sample import METHODS
from sl_discs.sampling.values import observed

# The name of the plain loop with the peers' schedule, rather than one that a method chooses.
SWEEPS = "sweeps"
SWEEPING = {"scan": "sequential"}
OWN = (SWEEPS, "chain", "tempering", "population", "localization")
OBSERVABLES = ("value", "magnetisation", "overlap")
# The reference engine runs methods on targets up to this size; on larger ones it runs this many steps for its rate.
_REFERENCE_SIZE, _REFERENCE_STEPS = 300, 20_000
# A localized draw costs thousands of sweeps, so there is one for this many draws of a chain.
_LOCALIZED = 8


class Played(NamedTuple):
    """One repetition.

    Attributes:
      steps: site updates of all chains, including those of warm-ups and searches.
      seconds: wall time without compilation.
      cpu_seconds: CPU time of this process without compilation.
      effective: effective sample sizes of the observables, or families of populations; None if only the rate counts.
      r_hat: the largest R-hat of the observables; None likewise, and for independent draws and populations.
    """

    steps: int
    seconds: float
    cpu_seconds: float
    effective: tuple[float, ...] | None
    r_hat: float | None

    @property
    def rate(self) -> float:
        """Site updates per CPU-second."""
        return self.steps / self.cpu_seconds


class Row(NamedTuple):
    """All repetitions of a contender on a target."""

    target: str
    contender: str
    played: list[Played]


def play(draw: Draw, seed: int, terms: Coefficients) -> Played:
    """One repetition; diagnostics are computed after the clock has stopped."""
    wall, cpu = compile_seconds(), compile_cpu_seconds()
    cpu_seconds, seconds, drawn = timed(draw, seed)
    wall, cpu = compile_seconds() - wall, compile_cpu_seconds() - cpu
    return Played(drawn.how["steps"], seconds - wall, cpu_seconds - cpu, *_judged(drawn, terms))


def _judged(drawn: Drawn, terms: Coefficients) -> tuple[tuple[float, ...] | None, float | None]:
    if drawn.dependence == RATE_ONLY or drawn.bits.shape[1] < LEAST_DRAWS:
        return None, None
    if drawn.dependence != "serial":
        count = drawn.how.get("effective families", drawn.bits.shape[0] * drawn.bits.shape[1])
        return (float(count),) * len(OBSERVABLES), None
    columns = *observed(terms, drawn.bits), overlaps(drawn.bits, len(terms.linear))
    found = [diagnose(name, column) for name, column in zip(OBSERVABLES, columns, strict=True)]
    return tuple(one.ess_bulk for one in found), max(one.r_hat for one in found)


def contender(name: str, terms: Coefficients, target: Target, chains: int, draws: int) -> Draw:
    """The function that draws for a contender.

    Args:
      name: name of a peer, or `METHOD/ENGINE`.
      terms: terms of the target's problem.
      target: the target, with its temperature.
      chains: number of chains, ladders or populations.
      draws: draws of each chain, or members of each population.

    Raises:
      NotPlayed: it cannot sample this target, or is not installed.
    """
    if name in PEERS:
        return PEERS[name](terms, target, chains, draws)
    method, _, engine = name.partition("/")
    slow = engine == "reference" and len(terms.linear) > _REFERENCE_SIZE
    if method == SWEEPS:
        return _sweeps(terms, target, chains, draws, engine, rate_only=slow)
    if slow:
        raise NotPlayed(f"more than {_REFERENCE_SIZE} variables would take hours; sweeps/{engine} has its rate")
    each = max(1, draws // _LOCALIZED) if method == "localization" else draws

    def draw(seed: int) -> Drawn:
        options = Options(each, chains, "gibbs", {}, engine, seed)
        return METHODS[method](terms, target.temperature, options, Budget(None, None, lambda name, count: None))

    return draw


def _sweeps(terms, target: Target, chains: int, draws: int, engine: str, *, rate_only: bool) -> Draw:
    warm_up, sweeps = target.warm_up, target.sweeps
    if rate_only:
        draws, warm_up, sweeps = 1, 1, -(-_REFERENCE_STEPS // len(terms.linear))

    def draw(seed: int) -> Drawn:
        arena = Arena(terms, "gibbs", SWEEPING, chains, engine=engine, seed=seed)
        arena.record(target.temperature, 1, warm_up)
        states = arena.record(target.temperature, draws, sweeps).states
        kind = RATE_ONLY if rate_only else "serial"
        return Drawn(packed(np.swapaxes(states, 0, 1)), kind, {"steps": arena.steps})

    return draw


def compare(target: str, names: list[str], chains: int, draws: int, repeats: int, say, progress) -> list[Row]:
    """Alternating repetitions of all contenders on a target, after a first one of each for compilation.

    Args:
      target: name of the target.
      names: names of contenders.
      chains: as in `contender`.
      draws: as in `contender`.
      repeats: number of repetitions.
      say: called with messages on contenders that are left out, and why.
      progress: called with a description and 1 after each repetition.
    """
    chosen = TARGETS[target]
    terms = chosen.problem().terms()
    rows, drawers = [], []
    for name in names:
        try:
            drawers.append(contender(name, terms, chosen, chains, draws))
            rows.append(Row(target, name, []))
        except NotPlayed as reason:
            say(f"{target}: {name} is left out: {reason}")
    for seed in range(repeats + 1):
        for row, draw in zip(rows, drawers, strict=True):
            found = play(draw, seed, terms)
            if seed:
                row.played.append(found)
            progress("benchmark", 1)
    return rows


def mean_and_error(values) -> tuple[float, float]:
    """The mean of repetitions and its standard error, nan for a single one."""
    values = list(values)
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return statistics.fmean(values), error


def effective_rates(row: Row) -> list[tuple[float, float]] | None:
    """Effective draws of each observable per CPU-second, with errors."""
    rates = [[one / p.cpu_seconds for one in p.effective] for p in row.played if p.effective is not None]
    return [mean_and_error(column) for column in zip(*rates, strict=True)] or None


def as_json(rows: list[Row]) -> list[dict[str, Any]]:
    """A dictionary for each row, with all its repetitions."""
    return [
        {"target": row.target, "contender": row.contender, "repetitions": [one._asdict() for one in row.played]}
        for row in rows
    ]


def format_rows(rows: list[Row]) -> str:
    """A table of millions of site updates and effective draws per CPU-second, with errors over repetitions."""
    first = rows[0]
    lines = [
        f"{first.target}",
        f"  {'':<22} {'M updates/CPU-s':>16} {'M/s of wall':>12} {f'{first.contender} is':>16}"
        + "".join(f"{name:>20}" for name in OBSERVABLES) + f"{'R-hat':>8}",
    ]  # fmt: skip
    for row in rows:
        rate, error = mean_and_error(one.rate / 1e6 for one in row.played)
        wall, _ = mean_and_error(one.steps / one.seconds / 1e6 for one in row.played)
        ratio, spread = mean_and_error(a.rate / b.rate for a, b in zip(first.played, row.played, strict=True))
        found = effective_rates(row)
        cells = [f"{one:.3g} ({bar:.2g})" for one, bar in found] if found else ["-"] * len(OBSERVABLES)
        worst = max((one.r_hat for one in row.played if one.r_hat is not None), default=None)
        mark = "-" if worst is None else f"{worst:.2f}" + "*" * (worst > MOST_R_HAT)
        lines.append(
            f"  {row.contender:<22} {f'{rate:.3g} ({error:.2g})':>16} {wall:>12.3g} "
            f"{f'{ratio:.2f}x ({spread:.2f})':>16}"
            + "".join(f"{cell:>20}" for cell in cells) + f"{mark:>8}"
        )  # fmt: skip
    return "\n".join(lines)
