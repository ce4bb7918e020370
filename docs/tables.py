"""Writes the tables of the pages from the numbers that benchmarks and studies saved in
docs/measured.

    python docs/tables.py
    python docs/tables.py --check[=NAME]

A page marks the place of a table by `<!-- table: NAME -->`, and the numbers are in
docs/measured/NAME.json, the `--output` of the command that the page names. `benchmarks/measure.sh`
measures them anew.

With `--check`, it writes nothing, and lists when the numbers of each table were measured and how
many commits have since changed the code that they measure; the exit code is 1 if there are some, or
the commit is not recorded.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.reproduction.report import FAR, level_rows, table

DOCS = Path(__file__).parent
MEASURED = DOCS / "measured"
PAGES = [
    *sorted(DOCS.glob("*.md")),
    *(
        DOCS.parent / page
        for page in (
            "benchmarks/README.md",
            "studies/claim/README.md",
            "studies/laws.md",
            "studies/reproduction/README.md",
        )
    ),
]
_MARK = re.compile(r"(<!-- table: ([\w-]+) -->\n\n)(?:\|.*\n)*\n*")
_NAMES = {"path_auxiliary": "PAS", "gwg": "GWG", "dmala": "DMALA", "gwg_one_flip": "GWG, one flip"}
_PAPER = ("path_auxiliary", "gwg", "dmala")
_SETS = {
    "mis/er_density/r-0.10": "ER-0.10", "mis/er_density/r-0.20": "ER-0.20",
    "maxcut/er/r-er-0.15-n-256-300": "ER-256 cuts, %", "maxcut/optsicom/r-b": "Optsicom", "maxclique/rb": "RB, %",
}  # fmt: skip


def digits(number: float, count: int = 2) -> str:
    """With so many significant digits, or as a whole number, and without an exponent."""
    if not np.isfinite(number) or number == 0:
        return f"{number:g}"
    return f"{number:,.{max(0, count - 1 - int(np.floor(np.log10(abs(number)))))}f}"


def interval(found: list[float] | None) -> str:
    """An estimate with its interval; `-` for none."""
    return "-" if found is None else "{} ({} to {})".format(*map(digits, found))


def rates(found: Mapping[str, Any]) -> str:
    """Thousands of chain-steps a second of the base samplers, and the ratio to DISCS."""
    engines, rows = {"reference": "reference", "cpu": "cpu", "discs": "DISCS"}, []
    for case, samplers in found["cases"].items():
        for engine, name in engines.items():
            row = [case, name]
            for one in (one for sampler, one in samplers.items() if not sampler.startswith("sl_")):
                rate = one[engine]["chain_steps_per_s"]
                ratio = (
                    ""
                    if engine == "discs"
                    else f" ({rate / one['discs']['chain_steps_per_s']:,.0f})"
                )
                row.append(
                    (f"{rate / 1e3:,.1f}" if engine == "discs" else f"{rate / 1e3:,.0f}") + ratio
                )
            rows.append(row)
    samplers = next(iter(found["cases"].values()))
    return table(
        ["case", "engine", *(f"`{one}`" for one in samplers if not one.startswith("sl_"))], rows
    )


def gpu(found: Mapping[str, Any]) -> str:
    """Millions of chain-steps a second on a GPU, by engine, and the ratio of `cuda` to DISCS."""
    engines, rows = {"cuda": "`cuda`", "reference": "`reference`", "discs": "DISCS"}, []
    for case, samplers in found["cases"].items():
        for sampler, one in samplers.items():
            rate = {
                engine: one[engine]["chain_steps_per_s"] / 1e6
                for engine in engines
                if engine in one
            }
            ratio = (
                f"{rate['cuda'] / rate['discs']:,.0f}" if {"cuda", "discs"} <= set(rate) else "-"
            )
            cells = (digits(rate[engine], 3) if engine in rate else "-" for engine in engines)
            rows.append([case, f"`{sampler}`", *cells, ratio])
    return table(["case", "sampler", *engines.values(), "`cuda` over DISCS"], rows)


def localization(found: Mapping[str, Any]) -> str:
    """Microseconds of a step, and the percentage that localization adds, with its error."""
    samplers = next(iter(found["cases"].values()))
    rows = [
        [
            case,
            *(
                f"{one['cpu']['base_us']:.2f} + {100 * one['cpu']['added']:.1f} "
                f"({100 * one['cpu']['error']:.1f})"
                for one in by_sampler.values()
            ),
        ]
        for case, by_sampler in found["cases"].items()
    ]
    return table(["case", *(f"`{one}`" for one in samplers)], rows)


def _lead(lead: list[float]) -> str:
    if not any(lead):
        return "0"
    places = 2 if max(map(abs, lead)) < 10 else 1 if max(map(abs, lead)) < 100 else 0
    return "{} ({} to {})".format(*(f"{one:,.{places}f}" for one in lead))


def solve(found: Mapping[str, Any]) -> str:
    """The mean best value of `solve`, and how much larger it is than that of its peers."""
    peers = {"dwave-samplers": "SA", "kamis": "KaMIS"}
    rows = []
    for case, samplers in found["cases"].items():
        one = samplers["default"]
        cells = []
        for peer in peers:
            lead = one.get(peer, {}).get("lead_of_first")
            words = "-" if lead is None else _lead(lead)
            cells.append(
                f"**{words}**" if lead is not None and (lead[1] > 0 or lead[2] < 0) else words
            )
        rows.append([case, f"{one['cpu']['mean_best']:,.2f}", *cells])
    return table(["case", "`solve`", *(f"over {name}" for name in peers.values())], rows)


def updates(found: Mapping[str, Any]) -> str:
    """Millions of site updates a CPU second."""
    names = {
        "torus": "64 x 64 torus, critical", "torus-hot": "64 x 64 torus, T = 3",
        "3-regular": "3-regular graph of 10,000 nodes, T = 0.5", "ba": "BA-512, T = 1.5",
        "er": "ER-0.05 of 800 nodes, T = 1", "er-hot": "ER-0.05 of 800 nodes, T = 4",
        "sk": "Sherrington-Kirkpatrick, 200 spins, T = 0.7",
    }  # fmt: skip
    columns = {
        "ours": "this package",
        "numba": "numba",
        "numpy": "NumPy",
        "dwave": "dwave-samplers",
    }
    rows = [
        [
            names[case],
            *(f"{one[name]:,.0f}" if name in one else "" for name in columns),
            f"**{one['ours'] / max(rate for name, rate in one.items() if name != 'ours'):.1f}**",
        ]
        for case, one in found["rates"].items()
    ]
    return table(["target", *columns.values(), "over the best peer"], rows)


def sampling(found: Mapping[str, Any]) -> str:
    """Millions of site updates a CPU second, and effective draws of value, magnetisation and
    overlap.
    """
    by_name: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in found["draws"]:
        by_name.setdefault(row["contender"], {})[row["target"]] = row["repetitions"]
    targets = list(dict.fromkeys(row["target"] for row in found["draws"]))
    words = {
        "sweeps/cpu": "sweeps, cpu",
        "chain/cpu": "chain, cpu",
        "numpy": "NumPy",
        "dwave": "dwave-samplers",
    }

    def cell(runs: list[dict[str, Any]] | None) -> str:
        if not runs:
            return ""
        effective = [run["effective"] for run in runs]
        draws = ""
        if all(effective):
            each = np.mean(
                [
                    np.divide(one, run["cpu_seconds"])
                    for one, run in zip(effective, runs, strict=True)
                ],
                axis=0,
            )
            draws = ": " + ", ".join(digits(one, 3) for one in each)
        return f"{np.mean([run['steps'] / run['cpu_seconds'] for run in runs]) / 1e6:,.0f}" + draws

    return table(
        ["", *targets],
        [
            [words.get(name, name), *(cell(one.get(target)) for target in targets)]
            for name, one in by_name.items()
        ],
    )


def networkx(found: Mapping[str, Any]) -> str:
    """The mean answer and the CPU seconds of a call, by networkx and with our backend."""
    names = {
        "maximum_independent_set": ("`maximum_independent_set`", "200, 0.1"),
        "max_clique": ("`max_clique`", "200, 0.5"),
        "max_weight_clique": ("`max_weight_clique`", "200, 0.5"),
        "min_weighted_vertex_cover": ("`min_weighted_vertex_cover`", "200, 0.1"),
        "one_exchange": ("`one_exchange`", "300, 0.1"),
    }
    rows = [
        [*names[case], *(f"{value:,.1f}, {seconds:.2f} s" for value, seconds in ways.values())]
        for case, ways in found["means"].items()
    ]
    return table(["function", "graph", *next(iter(found["means"].values()))], rows)


def proofs(found: Mapping[str, Any]) -> str:
    """Of each kind of problem, how many default calls prove their answer, in how much time, and by
    what.
    """
    rows = []
    for kind, calls in found["proofs"].items():
        proved, used = (
            [one for one in calls if one["optimal"]],
            [one["cpu_seconds"] for one in calls],
        )
        by = ", or ".join(dict.fromkeys(one["by"] for one in proved))
        rows.append(
            [
                kind,
                f"{len(proved)} of {len(calls)}",
                f"{digits(min(used))} to {digits(max(used))}",
                by,
            ]
        )
    return table(["problem", "proved", "CPU-seconds", "by"], rows)


def gaps(found: Mapping[str, Any]) -> str:
    """Of each kind of problem, the gap between answer and bound within the time limit."""
    rows = [
        [kind, str(len(gaps)), f"{min(gaps):.1f} to {max(gaps):.1f} %"]
        for kind, gaps in found["gaps"].items()
    ]
    return table(["problem", "instances", "gap"], rows)


def first(found: Mapping[str, Any]) -> str:
    """CPU seconds of a command without compiled code, and with it."""
    rows = [
        [name, *(f"{min(times[run]):.1f} to {max(times[run]):.1f}" for run in ("first", "later"))]
        for name, times in found["first"].items()
    ]
    return table(["engine and sampler", "first run", "later runs"], rows)


def covers(found: Mapping[str, Any]) -> str:
    """Mean answers without the local search and with it."""
    rows = []
    for case, limits in found["values"].items():
        for seconds, pairs in limits.items():
            rows.append(
                [case, seconds, *(f"{value:,.2f}" for value in np.abs(np.mean(pairs, axis=0)))]
            )
    return table(["case", "seconds", "without", "with the local search"], rows)


def overhead(found: Mapping[str, Any]) -> str:
    """Milliseconds of a step in DISCS's loop, and the ratio with localization: median, and range of
    repetitions.
    """
    rows = []
    for name, one in found["milliseconds"].items():
        ratio = np.divide(one["localized"], one["base"])
        cell = f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"
        rows.append([f"`{name}`", digits(np.median(one["base"]), 3), cell])
    return table(["sampler", "ms a step", "localized over base"], rows)


def sets(found: Mapping[str, Any]) -> str:
    """The paper's sets: how to name them, and seconds of PAS on two cores for all graphs, where its
    rate is known.
    """
    rows = []
    for words, flags, graphs, chains, cases in _PAPER_SETS:
        seconds = [
            digits(
                graphs
                * chains
                * 10_000
                / found["cases"][case]["path_auxiliary"]["cpu"]["chain_steps_per_s"]
            )
            for case in cases
        ]
        rows.append([words, flags, f"{graphs:,} x {chains}", ", ".join(seconds)])
    return table(
        ["set", "problem, `graph_type`, `cfg_str`", "graphs x chains", "seconds, two CPU cores"],
        rows,
    )


_PAPER_SETS: list[tuple[str, str, int, int, list[str]]] = [
    ("ER-0.05, 0.10, 0.20, 0.25", "`mis`, `er_density`, `r-0.05` ... `r-0.25`", 32, 32,
     [f"mis-er-{density}" for density in ("0.05", "0.10", "0.20", "0.25")]),
    ("SATLIB", "`mis`, `satlib`, `_`", 500, 32, ["mis-satlib-like"]),
    ("RB", "`maxclique`, `rb`, `_`", 500, 16, ["maxclique-rb"]),
    ("Twitter", "`maxclique`, `twitter`, `_`", 196, 16, []),
    ("ER cuts, 256 nodes", "`maxcut`, `er`, `r-er-0.15-n-256-300`", 1_000, 16, ["maxcut-er-256"]),
    ("ER cuts, 512 and 1,024", "`maxcut`, `er`, `r-er-0.15-n-512-600`, "
        "`-1024-1100`", 1_000, 16, []),
    ("BA cuts, 256 nodes", "`maxcut`, `ba`, `r-ba-4-n-256-300`", 1_000, 32, []),
    ("BA cuts, 512 and 1,024", "`maxcut`, `ba`, `r-ba-4-n-512-600`, `-1024-1100`", 1_000, 32,
     ["maxcut-ba-512", "maxcut-ba-1024"]),
    ("Optsicom", "`maxcut`, `optsicom`, `r-b`", 10, 32, []),
]  # fmt: skip


def _best(found: Mapping[str, Any], budget: str) -> str:
    """The mean best value of each sampler, and its distance from the largest one, bold where that
    may be 0.
    """
    columns = found["best"][budget]

    def cell(mean: float, behind: float, half_width: float) -> str:
        words = f"**{mean:,.1f}**" if behind + half_width >= 0 else f"{mean:,.1f}"
        return words if behind == half_width == 0 else f"{words} ({behind:.1f} ± {half_width:.1f})"

    rows = [
        [f"`{name}`", *(cell(*column[name]) for column in columns.values())]
        for name in found["drawn"]
    ]
    return table(["sampler", *columns], rows)


def samplers_steps(found: Mapping[str, Any]) -> str:
    """At equal steps."""
    return _best(found, "steps")


def samplers_seconds(found: Mapping[str, Any]) -> str:
    """At equal CPU time."""
    return _best(found, "seconds")


def samplers_draws(found: Mapping[str, Any]) -> str:
    """Effective draws of the base samplers on a lattice, with 95 % intervals."""

    def cell(mean: float, half_width: float) -> str:
        return f"{digits(mean, 3)} ± {digits(half_width)}"

    rows = [
        [
            f"`{name}`",
            cell(*np.multiply(1e6, one["per_steps"])),
            cell(*one["per_cpu_s"]),
            f"{one['r_hat']:.2f}",
        ]
        for name, one in found["drawn"].items()
    ]
    return table(["sampler", "effective draws per million steps", "per CPU-second", "R-hat"], rows)


def bounds(found: Mapping[str, Any]) -> str:
    """How many models disprove each bound, and for how many it says nothing."""
    rows = [
        [
            f"`{one['kernel']}`",
            one["reading"],
            str(one["models"]),
            f"**{one['failed']}**",
            str(one["vacuous"]),
        ]
        for one in found["verdicts"]
        if "absolute" not in one["reading"]
    ]
    return table(["kernel", "gap of", "models", "that disprove it", "bound at most 0"], rows)


def convergence(found: Mapping[str, Any]) -> str:
    """Errors on the glass against levels, sweeps a level, and the split of 128 sweeps in levels."""
    parts = {
        ("levels", "exact"): ("levels", "levels: {}"),
        ("sweeps", "mean"): ("sweeps", "sweeps a level, K = 16: {}"),
        ("sweeps", "last state"): ("sweeps", "sweeps a level, K = 16: {}"),
        ("sweeps", "chain"): ("sweeps", "as many in all, without localization"),
        ("split", "mean"): ("levels", "levels at 128 sweeps in all: {}"),
        ("split", "last state"): ("levels", "levels at 128 sweeps in all: {}"),
    }
    rows = []
    for (part, way), (across, words) in parts.items():
        cells = [
            one
            for one in found[part]
            if (one["target"], one["way"], one["grid"]) == ("glass", way, "log_snr")
            and one[across] in (1, 2, 4, 8, 16, 32)
        ]
        over = words.format(", ".join(str(one[across]) for one in cells))
        rows.append([over, way, ", ".join(digits(one["error"]) for one in cells)])
    return table(["varied", "posterior mean", "error on the glass"], rows)


_FIELD_SETS = {
    "mis/ertest/r-800": "independent sets, ER-[700-800]", "mis/satlib": "independent sets, SATLIB",
    "mis/rb/r-200": "independent sets, RB-200", "mis/rb/r-800": "independent sets, RB-800",
    "maxcut/ba/r-ba-4-n-200-300": "cuts, BA-200", "maxcut/ba/r-ba-4-n-800-1200": "cuts, BA-800",
}  # fmt: skip
# Sets whose graphs are the published ones, and methods that are trained.
_GIVEN = ("mis/ertest/r-800", "mis/satlib")
_LEARNED = (
    "FLD-EG",
    "RLNN",
    "PACE",
    "COExpander",
    "DIMES",
    "Fast T2T",
    "DIFUSCO",
    "GFlowNets",
    "SDDS",
    "DiffUCO",
)


def field(found: Mapping[str, Any]) -> str:
    """Means of `solve` beside the best published ones."""
    published = json.loads((DOCS.parent / "studies/field/field.json").read_text())["sets"]
    rows = []
    for name, words in _FIELD_SETS.items():
        ours = [one for one in found["field"] if one["dataset"] == name]
        is_given = name in _GIVEN
        cells = []
        for one in ours:
            mean = f"{one['mean']:,.2f}" + ("" if is_given else f" ± {one['half_width']:.2f}")
            proved = f", {one['optimal']} proved" if one["optimal"] else ""
            cells.append(f"{mean}{proved} ({one['cpu_s']:.2f} s used)")
        best = []
        for methods in (
            published[name],
            [one for one in published[name] if one["method"].startswith(_LEARNED)],
        ):
            first = max(methods, key=lambda one: one["mean"])
            seconds = f" ({digits(first['seconds'])} s)" if first.get("seconds") else ""
            best.append(f"{first['method'].partition(',')[0]} {first['mean']:,.2f}{seconds}")
        rows.append(
            [words, f"{ours[0]['n']} {'published' if is_given else 'drawn anew'}", *cells, *best]
        )
    titles = [
        "set",
        "graphs",
        *(f"`solve`, {one['seconds']:g} CPU s" for one in found["field"][:2]),
    ]
    return table([*titles, "best published that was found", "best learned"], rows)


def laws(found: Mapping[str, Any]) -> str:
    """Of each target outside the plane: tempering's error, and the gain of `low_rank`."""
    rows = []
    for target in sorted(found["targets"], key=lambda one: one["width"]):
        if not target["target"].startswith("strip"):
            tempering, low_rank = target["methods"]["tempering"], target["methods"]["low-rank"]
            cells = (
                f"{interval(one[what])}, {one['reliable']:.0%}"
                for one, what in ((tempering, "error"), (low_rank, "gain"))
            )
            null = "-" if target["null"] is None else digits(target["null"])
            rows.append([target["target"], f"{target['width']:.2f}", null, *cells])
    return table(
        ["target", "width", "equal weights", "error of tempering", "gain of `low_rank`"], rows
    )


def verdicts(found: Mapping[str, Any]) -> str:
    """Runs that are called reliable, and the wrong ones among them, of all runs."""
    titles = {
        "easy": "easy: two tori, random fields, weak fields, two modes of weight 0.9 and 0.1",
        "many modes": "many modes: ordered torus, spin glass, Hopfield, independent sets of "
        "complete bipartite "
        "graphs, disconnected pieces, a machine with dead units",
        "first order, crossed by ladders": "transitions of first order that ladders cross",
        "first order, hardly crossed by ladders": "transitions of first order with a barrier that "
        "they hardly cross",
        "golf hole": "golf hole: 20 variables against 200",
        "needle": "needle: one of 2^24 states has probability 1/2",
    }
    methods = ["tempering", "chain"]
    rows = []
    for kind, words in titles.items():
        row = [words]
        for method in methods:
            chosen = [
                one
                for one in found["cells"]
                if one["method"] == method
                and kind == (one["target"] if one["kind"] == "hidden" else one["kind"])
            ]
            runs, reliable, wrong = (
                sum(one[what] for one in chosen) for what in ("runs", "reliable", "wrong")
            )
            row.append(
                f"{reliable:,} ({f'**{wrong:,}**' if wrong else 0}) of {runs:,}" if chosen else ""
            )
        rows.append(row)
    return table(["targets", *(f"`{one}`" for one in methods)], rows)


def tilt(found: Mapping[str, Any]) -> str:
    """The first base sampler with tilts, and with fewer steps."""
    titles, *rows = found["cases"][0]["rows"]
    return table(titles, rows)


def _columns(found: Mapping[str, Any], cell: Callable[[dict[str, str]], str]) -> str:
    """A column for each base sampler and set, a row for each tilt and smaller number of steps."""
    cases = found["cases"]
    titles = [f"{_NAMES[case['sampler']]}, {_SETS[case['dataset']]}" for case in cases]
    rows = [[row[0]] for row in cases[0]["rows"][2:]]
    for case in cases:
        names = case["rows"][0]
        for line, row in zip(rows, case["rows"][2:], strict=True):
            line.append(cell(dict(zip(names, row, strict=True))))
    return table(["", *titles], rows)


def tilts(found: Mapping[str, Any]) -> str:
    """The gain of the best chain and, of tilts, the steps of the base with the same mean."""

    def cell(row: dict[str, str]) -> str:
        worth = row["mean as of the base with"]
        return row["gain, best chain"] + (f" ({worth})" if worth else "")

    return _columns(found, cell)


def tilts_steps(found: Mapping[str, Any]) -> str:
    """Steps until the first chain is at the optimum."""
    return _columns(found, lambda row: row["steps to the optimum, of the base's"])


def headline(found: Mapping[str, Any]) -> str:
    """Gains in nodes over the four ER sets, both sides at their defaults."""
    rows = [
        [
            _NAMES[row["sampler"]],
            f"{min(row['graphs'])} to {max(row['graphs'])}"
            if len({*row["graphs"]}) > 1
            else str(row["graphs"][0]),
            *(
                f"{row[one]:+.3f} ({row[error]:.3f})"
                for one, error in (("mean", "se"), ("published", "published_se"))
            ),
            *(f"{row[one]:.1g}" for one in ("p_zero", "p_published")),
        ]
        for row in found["rows"]
        if row["arm"] == "defaults"
    ]
    return table(
        ["sampler", "graphs of a set", "gain", "published", "p, no gain", "p, gain as published"],
        rows,
    )


def joined(found: Mapping[str, Any]) -> str:
    """Gains in nodes on each ER set, from all graphs, both sides at their defaults."""
    by_set: dict[str, list[str]] = {}
    for row in found["by_set"]:
        cell = f"{row['mean']:+.3f} ({row['se']:.3f})"
        if row["p_holm"] < 0.05:
            cell = f"**{cell}**"
        by_set.setdefault(row["dataset"].replace("mis/er_density/r-", "ER-"), []).append(cell)
    samplers = dict.fromkeys(row["sampler"] for row in found["by_set"])
    return table(
        ["set", *(_NAMES[name] for name in samplers)],
        [[name, *cells] for name, cells in by_set.items()],
    )


def pooled(found: Mapping[str, Any]) -> str:
    """Gains over sets: in nodes, and as a share of the published ones."""
    arms = {
        "defaults": "(a)",
        "searched": "(b)",
        "null": "(c)",
        "both": "(d)",
        "annealing of the base": "(f)",
    }
    rows, nodes = [], {(row["arm"], row["sampler"]): row for row in found["rows"]}
    for share in found["shares"]:
        row = nodes[share["arm"], share["sampler"]]
        rows.append([
            arms[share["arm"]], _NAMES[share["sampler"]], f"{row['mean']:+.3f} ({row['se']:.3f})",
            f"{row['published']:+.3f}", f"{share['mean']:+.2f} [{share['low']:+.2f}, "
                f"{share['high']:+.2f}]",
            str(share["k"]),
        ])  # fmt: skip
    return table(
        ["arm", "sampler", "nodes, ER sets", "published", "share of the published gain", "sets"],
        rows,
    )


def choice(found: Mapping[str, Any]) -> str:
    """The best of n trials that are chosen on test graphs, over the mean of those with the tilt
    off.
    """
    rows, counts = [], ("2", "5", "10", "100")
    for row in found["claim"]["chosen"]:
        base = np.mean(row["gains"]["null"])
        for arm, what in ("null", "tilt off"), ("searched", "localized"):
            best = (f"{row['expected_best'][arm][n] - base:+.3f}" for n in counts)
            pair = [_SETS[row["dataset"]], _NAMES[row["sampler"]], f"{row['published']:+.3f}"]
            rows.append([*(pair if arm == "null" else [""] * 3), what, *best])
    return table(["set", "sampler", "published", "trials", *(f"best of {n}" for n in counts)], rows)


def levels(found: Mapping[str, Any]) -> str:
    """How far each method at its defaults is from the published means, pooled over sets."""
    rows = []
    for row in level_rows(found["claim"]["levels"]):
        base = row["method"].removeprefix("sl_")
        far = ", ".join(f"{name} ({z:+.1f})" for name, z in row["far"].items())
        far = far.replace("mis/er_density/r-", "ER-").replace("mis/satlib", "SATLIB")
        name = ("" if base == row["method"] else "SL-") + _NAMES[base]
        rows.append(
            [name, f"{row['within']} of {row['sets']}", f"{row['pooled_z']:+.1f}", far or "-"]
        )
    return table(["method", f"sets within {FAR} standard errors", "pooled z", "not within"], rows)


def table1(found: Mapping[str, Any]) -> str:
    """Of each set and method: the published mean, and ours with its standard error."""
    methods = {
        prefix + base: name + _NAMES[base]
        for base in _PAPER
        for prefix, name in (("", ""), ("sl_", "SL-"))
    }
    by_set: dict[str, dict[str, str]] = {}
    for row in found["claim"]["levels"]:
        if row["method"] in methods and row["z"] is not None:
            cell = f"{row['published']:.2f}: {row['mean']:.2f} ({row['se']:.2f})"
            by_set.setdefault(row["dataset"], {})[row["method"]] = cell
    return table(
        ["set", *methods.values()],
        [[f"`{name}`", *map(row.get, methods)] for name, row in by_set.items()],
    )


def ablation(found: Mapping[str, Any]) -> str:
    """Of each setting, its mean over methods and sets minus that of the defaults in per cent:
    published, and ours.
    """
    groups = {
        "ER, MIS": "mis/er_density", "SATLIB": "mis/satlib", "RB": "maxclique/rb", "cuts, "
            "ER": "maxcut/er",
        "cuts, BA": "maxcut/ba",
    }  # fmt: skip
    by_setting: dict[str, list[dict[str, Any]]] = {}
    for row in found["cells"]:
        by_setting.setdefault(row["setting"], []).append(row)

    def cell(changes: list[dict[str, Any]]) -> str:
        published, ours, errors = (
            [one[key] for one in changes] for key in ("published", "mean", "se")
        )
        known = "-" if None in published else number(np.mean(published))
        error = np.sqrt(np.sum(np.square(errors))) / len(changes)
        return f"{known}: {number(np.mean(ours))}" + f" ({error:.2f})" * bool(error)

    def number(change: float) -> str:
        return f"{change:+.2f}" if round(change, 2) else "0"

    rows = [
        [
            setting,
            *(
                cell([row["change"] for row in rows if row["dataset"].startswith(of)])
                for of in groups.values()
            ),
        ]
        for setting, rows in by_setting.items()
    ]
    return table(["setting", *groups], rows)


def readings(found: Mapping[str, Any]) -> str:
    """Of each set, means over samplers: gains without localization, by other temperatures, and the
    tilt's part.
    """
    columns = {
        "localized, over the run": ("annealing over the run", "gain"),
        "512 annealings": ("annealing inside each level, K 512, no tilt", "gain"),
        "1,024 annealings": ("annealing inside each level, K 1024, no tilt", "gain"),
        "constant": ("constant temperature, no tilt", "gain"),
        "searched": ("searched annealing, no localization", "gain"),
        "tilt's part": (None, "tilt"),
    }
    sets: dict[str, dict[str | None, Any]] = {}
    for row in found["averages"]:
        sets.setdefault(row["dataset"], {})[row["reading"]] = row
    rows = []
    for name, of in sorted(sets.items()):
        places = 2 if name.startswith("mis") else 3
        pairs = [of[reading][part] if reading in of else None for reading, part in columns.values()]
        cells = [
            "-" if one is None else f"{one[0]:+.{places}f} ({one[1]:.{places}f})" for one in pairs
        ]
        rows.append(
            [f"`{name}`", str(of[None]["graphs"]), f"{of[None]['published']:+.{places}f}", *cells]
        )
    return table(["set", "graphs", "published", *columns], rows)


def by_hand(found: Mapping[str, Any]) -> str:
    """Effective draws of value and magnetisation a CPU second, by errors over repetitions."""
    targets = {
        "machine": "Boltzmann machine, 150 and 30 units",
        "cubic-glass": "±J glass, 3-regular, 200 spins, T = 0.7",
        "triangular": "triangular antiferromagnet, 24 x 24, T = 0.8",
        "cubic-lattice": "Ising, 8 x 8 x 8, T = 4.6",
        "mean-field": "Curie-Weiss, 600 spins, T = 0.97",
    }
    columns = {
        "auto/cpu": "`auto`",
        "chain/cpu": "`chain`",
        "numpy": "NumPy, blocks",
        "numba-gibbs": "Gibbs",
        "numba-tempering": "tempering",
        "numba-wolff": "Wolff",
        "auxiliary-field": "auxiliary field",
    }
    cells: dict[tuple[str, str], str] = {}
    for row in found["draws"]:
        runs = row["repetitions"]
        seconds = np.mean([run["cpu_seconds"] for run in runs])
        cells[row["target"], row["contender"]] = ", ".join(
            digits(one / seconds, 2) for one in runs[0]["effective"]
        )
    rows = [
        [words, *(cells.get((target, name), "") for name in columns)]
        for target, words in targets.items()
    ]
    return table(["target", *columns.values()], rows)


def _effective(run: Mapping[str, Any]) -> str:
    """Effective draws of 1,000 steps in DISCS's definition."""
    mean, error = (1_000 * run[name] / run["steps"] for name in ("discs_ess", "discs_ess_se"))
    return f"{digits(mean, 3)} ± {digits(error)}"


def discs_sampling(found: Mapping[str, Any]) -> str:
    """Effective draws of DISCS's experiments, in 1,000 steps of a chain and in a CPU second."""
    rows = []
    for one in found["runs"]:
        rows.append(
            [
                one["model"],
                f"{one['loop']}, `{one['sampler']}`",
                _effective(one),
                digits(1_000 * one["ess_a_step"], 3),
                digits(1e6 * one["cpu_s"] / one["steps"] / one["chains"]),
                digits(one["ess_a_second"], 3),
            ]
        )
    titles = ["model", "sampler", "ESS, DISCS", "ESS of f", "µs a step", "draws a CPU-second"]
    return table(titles, rows)


def discs_ess(found: Mapping[str, Any]) -> str:
    """The same number of `gwg` in DISCS and by `run`, its difference, and the ratio of times."""
    runs = {(one["model"], one["loop"], one["sampler"]): one for one in found["runs"]}
    rows = []
    for model in dict.fromkeys(one["model"] for one in found["runs"]):
        theirs, ours = (runs[model, loop, "gwg"] for loop in ("DISCS", "sl_discs"))
        error = np.hypot(theirs["discs_ess_se"], ours["discs_ess_se"])
        deviation = (ours["discs_ess"] - theirs["discs_ess"]) / error
        ratio = theirs["cpu_s"] / ours["cpu_s"]
        rows.append(
            [model, _effective(theirs), _effective(ours), f"{deviation:+.1f}", digits(ratio)]
        )
    titles = ["model", "DISCS", "`run`", "difference", "times the steps"]
    return table(titles, rows)


TABLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "rates": rates, "gpu": gpu, "localization": localization, "solve": solve, "solve-10": solve, "updates": updates,
    "sampling": sampling, "networkx": networkx, "laws": laws, "verdicts": verdicts, "tilt": tilt, "tilt-rb": tilt,
    "tilts": tilts, "tilt-steps": tilts_steps, "pooled": pooled, "choice": choice,
    "levels": levels, "table1": table1, "readings": readings, "headline": headline, "joined": joined,
    "ablation": ablation, "proofs": proofs, "gaps": gaps, "first": first, "covers": covers, "overhead": overhead,
    "sets": sets, "critical": sampling,
    "samplers-steps": samplers_steps, "samplers-seconds": samplers_seconds, "samplers-draws": samplers_draws,
    "bounds": bounds, "convergence": convergence, "field": field,
    "by-hand": by_hand, "discs-sampling": discs_sampling, "discs-ess": discs_ess,
}  # fmt: skip

# Where the numbers of a table are, if not in a file of its name.
_CLAIM = DOCS.parent / "studies/claim/report.json"
_ELSEWHERE = {
    "pooled": _CLAIM.with_name("headline.json"), "headline": _CLAIM.with_name("headline.json"),
    "joined": _CLAIM.with_name("headline.json"), "choice": _CLAIM,
    "levels": _CLAIM, "table1": _CLAIM, "tilts": MEASURED / "tilt.json",
    "readings": _CLAIM.with_name("readings.json"), "ablation": DOCS.parent / "studies/reproduction/ablation.json",
    "field": DOCS.parent / "studies/field/report.json",
    **dict.fromkeys(("samplers-steps", "samplers-seconds", "samplers-draws"), MEASURED / "samplers.json"),
    "bounds": MEASURED / "theory.json", "discs-ess": MEASURED / "discs-sampling.json",
    "proofs": MEASURED / "answers.json", "gaps": MEASURED / "answers.json", "first": MEASURED / "answers.json",
}  # fmt: skip


def path_of(name: str) -> Path:
    """The file of numbers that a command saved."""
    return _ELSEWHERE.get(name, MEASURED / f"{name}.json")


def numbers(name: str) -> Any:
    """What a command saved."""
    return json.loads(path_of(name).read_text())


def filled(text: str) -> str:
    """A page with its tables made anew, but for those whose numbers have not been measured."""

    def made(found: re.Match[str]) -> str:
        there = path_of(found[2]).is_file()
        return found[1] + (f"{TABLES[found[2]](numbers(found[2]))}\n\n" if there else "")

    return _MARK.sub(made, text)


# The code that the numbers of a table measure, in folders of the repository. Tables of one file
# have one entry, and `headline` is computed from other numbers.
_ENGINES = (
    "sl_discs/engines",
    "sl_discs/chains",
    "sl_discs/localization",
    "sl_discs/models",
    "sl_discs/samplers",
)
_SOLVE = (*_ENGINES, "sl_discs/problems", "sl_discs/solving")
_SAMPLE = (*_ENGINES, "sl_discs/problems", "sl_discs/solving", "sl_discs/sampling")
_RUN = (*_ENGINES, "sl_discs/experiment")
CODE = {
    "rates": _ENGINES, "gpu": _ENGINES, "localization": _ENGINES, "updates": _ENGINES, "sets": _ENGINES,
    "solve": _SOLVE, "solve-10": _SOLVE, "answers": _SOLVE, "covers": _SOLVE, "field": _SOLVE,
    "by-hand": _SAMPLE, "discs-sampling": (*_ENGINES, "sl_discs/discs_plugin", "sl_discs/experiment"),
    "networkx": (*_SOLVE, "sl_discs/networkx_backend.py"), "sampling": _SAMPLE, "critical": _SAMPLE, "laws": _SAMPLE,
    "verdicts": _SAMPLE, "tilt": _RUN, "tilt-rb": _RUN, "tilt-steps": _RUN, "levels": _RUN, "readings": _RUN,
    "ablation": _RUN,
    "samplers": (*_RUN, "sl_discs/sampling"), "theory": (*_RUN, "studies/gaps.py", "studies/small_runs.py"),
    "convergence": ("sl_discs/localization", "studies/small_runs.py"),
    "overhead": ("sl_discs/localization", "sl_discs/discs_plugin"),
}  # fmt: skip


def git(folder: Path, *arguments: str) -> str:
    """What a command of git prints about the repository of a folder."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def age(path: Path, code: Sequence[str]) -> tuple[str, bool]:
    """When a file of numbers was measured, in words, and whether the code has not changed since.

    Args:
      path: of the file, in a folder of a repository.
      code: what it measures, from the repository's root.
    """
    if not path.is_file():
        return "not measured yet", False
    root = Path(git(path.parent, "rev-parse", "--show-toplevel"))
    made = json.loads(path.read_text()).get("measured")
    if made is None:
        last = git(root, "log", "-1", "--format=%h of %as", "--", str(path))
        return f"no commit recorded; the file is from {last or 'no commit'}", False
    start, words = (
        made["commit"].removesuffix("+"),
        f"{made['commit']} of {made['date']}, {made['machine']}",
    )
    try:
        count = int(git(root, "rev-list", "--count", f"{start}..HEAD", "--", *code))
    except subprocess.CalledProcessError:
        return f"{words}; that commit is not here", False
    later = f"{count or 'no'} later commit{'s' * (count > 1)}"
    changed = ", with changes that were not committed" * made["commit"].endswith("+")
    return f"{words}; {later} changed its code{changed}", not count and not changed


def check(names: Iterable[str]) -> int:
    """Prints the age of each file of numbers; returns 1 if one is older than its code, and
    else 0.
    """
    found = {name: age(path_of(name), CODE[name]) for name in names}
    for name, (words, _) in found.items():
        print(f"{name:<12} {words}")
    return int(not all(is_new for _, is_new in found.values()))


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("--check"):
        _, _, only = sys.argv[1].partition("=")
        if only and only not in CODE:
            sys.exit(f"error: --check={only}: no numbers of this name; there are {', '.join(CODE)}")
        sys.exit(check([only] if only else CODE))
    for page in PAGES:
        text = page.read_text()
        if (new := filled(text)) != text:
            page.write_text(new)
            print(f"wrote the tables of {page}")
