"""Compares the paper's theory with actual runs: gaps and bounds, the mean's error, Condition 4.1 on
real instances.

    python studies/theory.py [--output=results/theory]

The paper (Wang et al., ICML 2025) shows that once the external field of a localized run is large,
|h| >= 2 beta max_i sum_k |W_ik|, its base samplers mix fast, with a bound for each. See `gaps.py`
for how these are interpreted. The tables go to OUTPUT/theory.md, the numbers to theory.json, with
three figures. Finished cells are kept in OUTPUT/cells, so that a stopped command continues where it
left off.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

import gaps
import small_runs
from finished import finished
from sl_discs.chains.batches import shape_of_one
from sl_discs.chains.chains import Chains, program_of
from sl_discs.commands.command import Command, own_flags
from sl_discs.engines.choice import choose_engine
from sl_discs.experiment.record import measured_by
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import Method, build_method
from sl_discs.localization.schedule import Localization, log_snr, parse_alpha, time_grid
from sl_discs.models.terms import Coefficients
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import PENALTY
from sl_discs.support.documents import write_json
from sl_discs.support.figures import or_warn
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import say
from theory_report import draw_gaps, draw_real, draw_runs, page, summary


class Fields(NamedTuple):
    """The quantities that are constant along a localized run on a real instance, at temperature 1.

    At temperature tau the posterior is that of `gaps` with beta W = -J/(4 tau) and h = (c/2 +
    J1/4)/tau + tilt, so site i meets the condition of its own row where |h_i| >= sum_k |J_ik|/(2
    tau). Condition 4.1 as printed asks for the largest of the rows' right-hand sides at every site.
    """

    own: Float64[np.ndarray, "N"]  # [N] c/2 + J1/4, the target's own field
    needed: Float64[np.ndarray, "N"]  # [N] sum_k |J_ik|/2

    @classmethod
    def of(cls, terms: Coefficients) -> Fields:
        listed = terms.listed()
        couplings = listed.scale * listed.weights
        ends, size = listed.edges.ravel(), len(listed.linear)
        sums, sizes = (
            np.bincount(ends, np.repeat(values, 2), minlength=size)
            for values in (couplings, np.abs(couplings))
        )
        return cls(listed.linear / 2 + sums / 4, sizes / 2)

    def met(self, tilt: Float64[np.ndarray, "B N"], temperature: float) -> tuple[float, float]:
        """The share of sites that meet the condition of their own row, and of those that meet that
        of all rows.
        """
        h = np.abs(self.own / temperature + tilt)
        return float((h >= self.needed / temperature).mean()), float(
            (h >= self.needed.max() / temperature).mean()
        )


def watch(
    terms: Coefficients, method: Method, settings: Settings, looks: int
) -> list[dict[str, Any]]:
    """Observations at `looks` approximately evenly spaced levels, just before each level's first
    step.

    The level's number, the step, alpha^2/(sigma^2 t), the temperature, the root mean square of the
    tilt, `own_row` and `all_rows` of `Fields.met`, and mean acceptance and hops of the steps since
    the look before.
    """
    localization, program = method.localization, program_of(method, settings)
    levels = program.levels
    assert localization is not None and levels is not None
    engine, _ = choose_engine(settings.engine, method.sampler)
    shape = shape_of_one(terms, settings.batch_size)
    chains = Chains.of_one(terms, 0, shape, method.sampler, engine, settings.seed)
    chains.start(program)
    fields, rows = Fields.of(terms), []
    times, alpha = (
        localization.times(settings.chain_length),
        parse_alpha(localization.alpha, localization.horizon),
    )
    count = min(looks, localization.K - 1)
    for level in np.unique(np.linspace(1, localization.K - 1, count).round().astype(int)):
        first = int(levels.last[level - 1]) + 1
        trace = chains.advance(1, first - chains.done)
        tilt = (
            np.asarray(levels.tilt_scale)[level]
            * np.asarray(chains.states.chain.state.y, np.float64)[0, :, : len(fields.own)]
        )
        temperature, t = (
            float(program.temperature.rows(first, first + 1)[0, 0]),
            np.asarray(times[first]),
        )
        own_row, all_rows = fields.met(tilt, temperature)
        rows.append(
            {
                "level": int(level),
                "step": first,
                "snr": float(alpha.value(t) ** 2 / (localization.sigma**2 * t)),
            }
            | {"temperature": temperature, "tilt": float(np.sqrt((tilt**2).mean()))}
            | {"own_row": own_row, "all_rows": all_rows}
            | {"acceptance": float(np.mean(trace.acceptance)), "hops": float(np.mean(trace.hops))}
        )
    return rows


# The schedule begins with a tilt that is a fiftieth of its noise and ends where sign(Y) is a draw.
SCHEDULE = Localization(sigma=2.0, eps=1e-3, eps_end=1e-2, grid="log_snr")
# A site's mean counts as missed if it is off by this much.
MISSED = 0.25

# DISCS's annealing of both families; fields of the `sl_` methods at their defaults are the
# published settings.
_INSTANCES = {
    "MIS, ER-0.05": (
        "mis",
        "er_density",
        "r-0.05",
        {"decay_rate": 0.05, "final_temperature": 1e-4},
    ),
    "MaxCut, BA-512": (
        "maxcut",
        "ba",
        "r-ba-4-n-512-600",
        {"decay_rate": 0.1, "final_temperature": 1e-6},
    ),
}
# Sampler fields and annealing of each: what was published; its null control; a run that localizes,
# at temperature 1.
_RUNS: dict[str, list[dict[str, Any]]] = {
    "as published": [{}, {}],
    "tilt off": [{"tilt": False}, {}],
    "localizes": [{"sigma": 2.0, "eps": 1e-3}, {"t_schedule": "constant", "init_temperature": 1.0}],
}
_METHODS = ("sl_gwg", "sl_path_auxiliary", "sl_dmala")


@dataclasses.dataclass(frozen=True)
class Size:
    sites: tuple[int, ...] = (1, 2, 3, 4, 6)  # values of N in the scan of bounds
    fields: int = 25  # values of |h| in the scan, from 0.05 to 30
    random: int = 300  # random models in the scan
    targets: tuple[int, int, int] = (
        8,
        8,
        10,
    )  # N of the glass, the ferromagnet and the larger glass of small runs
    levels: int = 16  # levels of the small runs
    replicas: int = 4  # runs of each target
    chains: int = 2_000  # chains that estimate a mean
    most_steps: int = 13  # largest number of steps of the estimate, as a power of 2
    looks: int = 32  # levels of a real run that are observed
    steps: int = 10_000  # of a real run
    methods: tuple[str, ...] = _METHODS  # of the real runs; empty for no real runs


FULL = Size()


def small_targets(size: Size) -> dict[str, gaps.SpinModel]:
    """The targets of the small runs; both glasses and the ferromagnet have several modes."""
    first, second, third = size.targets
    return {
        f"glass, N = {first}": small_runs.glass(first, 2.0, 0.3, seed=1),
        f"Curie-Weiss, N = {second}": small_runs.curie_weiss(second, 1.8, 0.05),
        f"glass, N = {third}": small_runs.glass(third, 1.0, 0.3, seed=2),
    }


def tilts_of(form: gaps.SpinModel, levels: int, replicas: int) -> np.ndarray:
    """[K, R, N] the tilts along runs of Algorithm 1 with the exact posterior mean."""
    seen: list[np.ndarray] = []
    plan = dataclasses.replace(SCHEDULE, K=levels)
    mean = small_runs.exact_mean(form)
    small_runs.localize(form, plan, mean, replicas, watch=lambda _, tilt: seen.append(tilt))
    return np.array(seen)


def snr_of(levels: int) -> list[float]:
    alpha = parse_alpha(SCHEDULE.alpha)
    times = time_grid(alpha, SCHEDULE.grid, levels, SCHEDULE.eps, SCHEDULE.eps_end)[:-1]
    return (np.exp(log_snr(alpha, times)) / SCHEDULE.sigma**2).tolist()


def look(form: gaps.SpinModel, tilt: np.ndarray) -> dict[str, Any]:
    """Gaps and bounds under one tilt; those of single-site kernels in units of N steps."""
    density, size = gaps.log_density(form, tilt), len(form.b)
    field, needed = gaps.smallest_field(form, tilt), gaps.needed_field(form)
    rows = 2 * form.beta * np.abs(form.W).sum(axis=1)
    return {
        "field": field,
        "needed": needed,
        "met": bool(field >= needed),
        "own_row": float((np.abs(form.b + tilt) >= rows).mean()),
        "gaps": {
            name: gaps.gap_of(gaps.transitions(name, density)).one_sided for name in gaps.KERNELS
        },
        "bounds": {name: gaps.bound(name, field, size) for name in gaps.KERNELS},
    }


def real_run(name: str, run: str, method: str, size: Size) -> dict[str, Any]:
    problem, graph_type, cfg_str, annealing = _INSTANCES[name]
    sampler, schedule = _RUNS[run]
    fields = {"name": method, "K": max(2, min(256, size.steps // 8))} | sampler
    [graph] = load_dataset(problem, graph_type, cfg_str, num_instances=1).graphs
    settings = Settings(
        batch_size=8, chain_length=size.steps, log_every_steps=size.steps, threads=1,
        **(annealing | schedule),
    )  # fmt: skip
    looks = watch(
        graph_kind(problem).model(graph, PENALTY), build_method(fields), settings, size.looks
    )
    return {"looks": looks}


def run(folder: Path, size: Size = FULL) -> dict[str, Any]:
    """Runs everything that is not finished, and writes `theory.md`, `theory.json` and three
    figures.

    Random numbers depend only on the replica and on the level or step. Returns the numbers of the
    page.
    """
    cells = folder / "cells"
    fields = np.geomspace(0.05, 30, size.fields).tolist()
    given = {"kind": "scan", "sites": list(size.sites), "fields": fields, "random": size.random}
    scan = finished(
        cells, given, lambda: {"rows": gaps.scan(size.sites, tuple(fields), size.random)}
    )["rows"]
    say(f"bounds: {len(scan)} gaps")
    runs, means = [], []
    for name, form in small_targets(size).items():
        tilts = tilts_of(form, size.levels, size.replicas)
        for level, snr in enumerate(snr_of(size.levels)):
            for replica in range(size.replicas):
                place = {"target": name, "level": level, "replica": replica}
                given = place | {"kind": "look", "levels": size.levels, "seed": 0} | _inputs(form)
                found = finished(cells, given, functools.partial(look, form, tilts[level, replica]))
                runs.append(place | {"snr": snr} | found)
        say(f"runs: {name}")
        # In the first run: at its start, in the middle, and at the end.
        for level in (0, size.levels // 2, size.levels - 1):
            means.append(_mean_of(cells, name, form, tilts[level, 0], level, size))
        say(f"means: {name}")
    real = []
    for name in _INSTANCES:
        for setting in _RUNS:
            for method in size.methods:
                place = {"instance": name, "setting": setting, "method": method}
                given = place | {
                    "kind": "real",
                    "looks": size.looks,
                    "steps": size.steps,
                    "seed": 0,
                }
                given |= {"fields": _RUNS[setting], "annealing": _INSTANCES[name][-1]}
                seen = finished(
                    cells, given, functools.partial(real_run, name, setting, method, size)
                )
                real += [place | row for row in seen["looks"]]
        say(f"real runs: {name}")
    found = summary({"verdicts": gaps.verdicts(scan), "runs": runs, "means": means, "real": real})
    write_json(folder / "theory.json", {"measured": measured_by(), **found}, allow_nan=False)
    write_text(folder / "theory.md", page(found))
    or_warn(lambda: draw_gaps(scan, folder / "gaps.png"))
    or_warn(lambda: draw_runs(runs, means, folder / "runs.png"))
    if real:
        or_warn(lambda: draw_real(real, folder / "real.png"))
    say(f"saved {folder}/theory.md")
    return found


def _inputs(form: gaps.SpinModel) -> dict[str, Any]:
    """Everything that the runs of a target depend on besides their size."""
    return {"form": small_runs.name_of(form), "schedule": vars(SCHEDULE)}


def _mean_of(
    cells: Path, name: str, form: gaps.SpinModel, tilt, level: int, size: Size
) -> dict[str, Any]:
    """The error of the mean under one tilt, and Chernoff's rate with the paper's bound where the
    condition is met.
    """
    steps = [2**k for k in range(4, size.most_steps + 1)]
    place = {"target": name, "level": level}
    given = place | {
        "kind": "mean",
        "levels": size.levels,
        "chains": size.chains,
        "steps": steps,
        "seed": 0,
    }
    given |= _inputs(form) | {"missed": MISSED}

    def compute():
        density, sites = gaps.log_density(form, tilt), len(form.b)
        gap = gaps.gap_of(gaps.transitions("glauber", density)).one_sided
        field, met = (
            gaps.smallest_field(form, tilt),
            gaps.smallest_field(form, tilt) >= gaps.needed_field(form),
        )
        promised = gaps.bound("glauber", field, sites) / sites
        papers = gaps.chernoff(promised, np.array(steps), MISSED, sites).tolist() if met else None
        return {"gap": gap, "papers": papers} | gaps.mean_errors(
            density, gap, steps, size.chains, MISSED
        )

    return place | {"snr": snr_of(size.levels)[level]} | finished(cells, given, compute)


FLAGS, define = own_flags()
define.string("output", "results/theory", "Folder of the page, the figures and the cells.")


def _main(_) -> int:
    run(check_writable(FLAGS.output))
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
