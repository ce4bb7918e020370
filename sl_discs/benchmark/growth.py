"""Measures how the cost of a step grows with the number of sites and with their degree."""

from __future__ import annotations

import dataclasses
import resource
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sl_discs.benchmark.contenders import Own
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.graph import Graph
from sl_discs.results.canvas import save_figure
from sl_discs.samplers.registry import counts_sweeps

DEGREE = 8
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
NUM_SITES = 1_000
DEGREES = (2, 4, 8, 16, 32, 64, 128, 256)
# Site-steps of the reference engine, and steps of the other, that take about a second, which suffices for a point.
_XLA_SITE_STEPS = 3e6
_CPU_STEPS, _CPU_STEPS_IN_SWEEPS = 5_000, 200_000


class Point(NamedTuple):
    """One measurement.

    Attributes:
      sampler: of this project.
      engine: the engine used.
      num_sites: N.
      degree: mean degree.
      chain_steps_per_s: of all chains together.
      flips_per_s: sites that changed, likewise.
      peak_gib: largest memory that the process has had so far.
    """

    sampler: str
    engine: str
    num_sites: int
    degree: int
    chain_steps_per_s: float
    flips_per_s: float
    peak_gib: float


def random_graph(num_nodes: int, degree: int) -> Graph:
    """A random graph of this mean degree, drawn in time proportional to its edges; the same on every machine.

    Raises:
      ValueError: a degree of more than half the nodes, for which this method is unsuitable.
    """
    if 2 * degree > num_nodes:
        raise ValueError(f"a mean degree of {degree} on {num_nodes} nodes is too dense to be drawn edge by edge")
    rng = np.random.default_rng([8, num_nodes, degree])
    wanted = num_nodes * degree // 2
    keys = np.empty(0, np.int64)
    while len(keys) < wanted:
        pairs = np.sort(rng.integers(0, num_nodes, (wanted, 2)), axis=1)
        pairs = pairs[pairs[:, 0] < pairs[:, 1]]
        keys = np.unique(np.concatenate([keys, pairs[:, 0] * num_nodes + pairs[:, 1]]))
    keys = np.sort(rng.permutation(keys)[:wanted])
    return Graph.from_arrays(f"random-{num_nodes}-{degree}", num_nodes, np.stack(np.divmod(keys, num_nodes), axis=1))


def measure(sampler: str, engine: str, num_sites: int, degree: int, chains: int) -> Point:
    """MIS on one random graph at temperature 0.3, after a repetition that compiles and warms up."""
    graph = random_graph(num_sites, degree)
    dataset = Dataset("mis/growth", "mis", "generated", "growth", [graph], [0], 1)
    if engine == "reference":
        steps = int(np.clip(_XLA_SITE_STEPS / num_sites, 20, 1_000))
    else:
        steps = _CPU_STEPS_IN_SWEEPS if counts_sweeps(sampler) else _CPU_STEPS
    settings = Settings(
        batch_size=chains,
        chain_length=steps,
        log_every_steps=steps // 10,
        t_schedule="constant",
        init_temperature=0.3,
    )
    own = Own(engine, sampler, dataset, settings)
    own.play(0)
    done = own.play(1)
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Point(
        sampler,
        engine,
        num_sites,
        degree,
        done.chain_steps / done.seconds,
        done.flips / done.seconds,  # type: ignore[operator]  # our engines count flips
        kib / 2**20,
    )


def as_json(points: list[Point]) -> list[dict]:
    """One dictionary a point."""
    return [dict(zip(Point._fields, point, strict=True)) for point in points]


def format_points(points: list[Point]) -> str:
    """A table, one line a point."""
    lines = [
        f"{'sampler':<16} {'engine':<6} {'sites':>8} {'degree':>6} {'chain-steps/s':>14} {'flips/s':>12} {'GiB':>5}"
    ]
    for p in points:
        lines.append(
            f"{p.sampler:<16} {p.engine:<6} {p.num_sites:>8,} {p.degree:>6} {p.chain_steps_per_s:>14,.0f} "
            f"{p.flips_per_s:>12,.0f} {p.peak_gib:>5.2f}"
        )
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class _Panel:
    """One half of the figure: which points it shows, and against what."""

    title: str
    field: str
    label: str


def draw(by_size: list[Point], by_degree: list[Point], path: str | Path) -> Path:
    """The figure: chain-steps per second against sites (left) and degree (right), both logarithmic.

    Raises:
      InputError: matplotlib is not installed, or the file cannot be written.
    """
    panels = (
        (_Panel(f"mean degree {DEGREE}", "num_sites", "number of sites N"), by_size),
        (_Panel(f"{NUM_SITES:,} sites", "degree", "mean degree"), by_degree),
    )

    def paint(figure) -> None:
        for axes, (panel, points) in zip(figure.subplots(1, 2, sharey=True), panels, strict=True):
            for sampler, engine in dict.fromkeys((p.sampler, p.engine) for p in points):
                chosen = [p for p in points if (p.sampler, p.engine) == (sampler, engine)]
                style = "-" if engine == "cpu" else "--"
                colour = f"C{sorted({p.sampler for p in points}).index(sampler)}"
                axes.loglog(
                    [getattr(p, panel.field) for p in chosen],
                    [p.chain_steps_per_s for p in chosen],
                    style,
                    marker="o",
                    markersize=3,
                    color=colour,
                    label=f"{sampler}, {engine}",
                )
            axes.set_title(panel.title)
            axes.set_xlabel(panel.label)
            axes.grid(True, which="major", linewidth=0.3)
        first = figure.axes[0]
        first.set_ylabel("chain-steps per second")
        figure.legend(*first.get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=6)

    return save_figure(path, (9, 3.8), paint)
