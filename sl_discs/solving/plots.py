"""The plots of a report: each function returns one that paints a figure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sl_discs.experiment.figures import COLOURS
from sl_discs.solving.result import Result


def objective(result: Result) -> Callable:
    """Values against steps: the best so far, the mean of the chains, and the central 80 % of them."""

    def paint(figure) -> None:
        axes, found = figure.subplots(), result.trajectory
        band = {"color": COLOURS[5], "alpha": 0.35, "linewidth": 0, "label": "80 % of chains"}
        axes.fill_between(found.step, found.low, found.high, **band)
        axes.plot(found.step, found.mean, color=COLOURS[0], linewidth=1, label="mean of chains")
        axes.plot(found.step, found.best, color=COLOURS[6], label="best so far")
        axes.set(xlabel="step", ylabel="value")
        axes.legend(loc="best", frameon=False)

    return paint


def temperature(result: Result) -> Callable:
    """Temperature and acceptance against steps."""

    def paint(figure) -> None:
        axes, found = figure.subplots(), result.trajectory
        axes.plot(found.step, found.temperature, color=COLOURS[1])
        axes.set(xlabel="step", yscale="log")
        axes.set_ylabel("temperature", color=COLOURS[1])
        other = axes.twinx()
        other.plot(found.step, found.acceptance, color=COLOURS[2], linewidth=1)
        other.set_ylim(0, 1.02)
        other.set_ylabel("acceptance", color=COLOURS[2])
        other.spines["right"].set_visible(True)

    return paint


def contraction(result: Result) -> Callable:
    """|posterior mean| against the time of localization."""

    def paint(figure) -> None:
        axes, found = figure.subplots(), result.contraction
        known = np.isfinite(found.mean)
        axes.plot(found.time[known], found.mean[known], color=COLOURS[3], marker=".", label="|posterior mean|")
        axes.plot(found.time, found.field, color=COLOURS[0], linewidth=1, label="|tanh| of the observation's field")
        axes.set(xlabel="time t of localization", ylim=(0, 1.04))
        axes.legend(loc="best", frameon=False)

    return paint


def histogram(result: Result) -> Callable:
    """The best value of each chain."""

    def paint(figure) -> None:
        axes, values = figure.subplots(), result.values
        whole = np.array_equal(values, np.round(values)) and np.ptp(values) <= 40
        bins = np.arange(values.min() - 0.5, values.max() + 1) if whole else min(20, len(np.unique(values)))
        axes.hist(values, bins=bins, color=COLOURS[0], rwidth=0.9)
        axes.axvline(result.best_value, color=COLOURS[1], linestyle="--", label="best")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel="best value of a chain", ylabel="chains")
        axes.legend(loc="best", frameon=False)

    return paint


def seconds(parts: dict[str, float]) -> Callable:
    """How the time was spent."""

    def paint(figure) -> None:
        axes = figure.subplots()
        names, values = list(parts), list(parts.values())
        bars = axes.barh(names, values, color=[COLOURS[k % len(COLOURS)] for k in range(len(names))])
        axes.bar_label(bars, [f"{value:.2f} s" for value in values], padding=3, fontsize=8)
        axes.invert_yaxis()
        axes.margins(x=0.25)
        axes.set(xlabel="seconds")

    return paint
