"""The report's text: tables in markdown, with notes on how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sl_discs.experiment.published import CHAIN_LENGTH, published_cells
from sl_discs.reproduction.cells import DEFAULTS
from sl_discs.reproduction.rows import FAR, is_level, level_rows

COMMANDS_TITLE = "## Commands"


def main_text(cells: list[dict], pairs: list[dict], left_out: list[str]) -> str:
    """The tables of cells with the published numbers, and of pairs."""
    blocks = ["## Published numbers and ours", _CELL_NOTE]
    for name in dict.fromkeys(row["dataset"] for row in cells):
        rows = [row for row in cells if row["dataset"] == name]
        first = rows[0]
        blocks.append(f"### {name}\n\n{_size(first)}: {first['machine']['source']}. Unit: {first['unit']}.")
        blocks.append(
            table(["method", "protocol", "published", "ours", "n", "se", "z", "absolute"], map(_cell, rows))
        )
    if left_out:
        blocks.append("Left out:\n\n" + "\n".join(f"- {reason}" for reason in left_out))
    if pairs:
        blocks += ["## Stochastic localization minus its base", _PAIR_NOTE]
        titles = ["dataset", "base", "protocol", "against", "ours", "95% interval", "n", "published", "unit"]
        blocks.append(table(titles, map(_pair, pairs)))
    return "\n\n".join(blocks)


def in_short(cells: list[dict], pairs: list[dict]) -> str:
    """The levels beside the paper's, method by method, and the pairs whose intervals exclude zero."""
    blocks = [_levels([row for row in cells if row["protocol"] == DEFAULTS])]
    lines = []
    # Only equal protocols: if annealing was tuned for only one of the two, the difference is not due to localization.
    alike = bounded([row for row in pairs if row["protocol"] == row["against"]])
    for words, chosen in (
        ("above", [row for row in alike if row["ci95"][0] > 0]),
        ("below", [row for row in alike if row["ci95"][1] < 0]),
    ):
        names = [f"{row['dataset']} {row['base']} ({row['protocol']})" for row in chosen]
        lines.append(
            f"- Localization's 95% interval lies {words} zero in {len(chosen)} of {len(alike)} pairs"
            f"{listed(names, ': ')} (one in forty is by chance)."
        )
    return "\n\n".join([*blocks, "\n".join(lines)])


def _levels(cells: list[dict]) -> str:
    """How many of the paper's cells are compared, on which graphs, and how far off they are, pooled by method."""
    levels = level_rows(cells)
    sets = {row["dataset"]: row["machine"]["source"] for row in cells if is_level(row)}
    others = [name for name in dict.fromkeys(row["dataset"] for row in cells) if name not in sets]
    drawn = [name for name, source in sets.items() if source.startswith("generated")]
    text = (
        f"{sum(row['sets'] for row in levels)} of the {published_cells()} published cells are compared here: this "
        f"project's defaults with DISCS's annealing, on {len(sets)} of the paper's sets"
        f"{listed(others, '; there is no z for ')}. "
        f"{len(drawn)} of these sets are drawn anew from the paper's distribution{listed(drawn, ': ')}. Pooled z is "
        "the sum of z over the root of the number of sets, without those where both means are equal without spread."
    )
    return "\n\n".join(filter(None, [text, levels_table(cells)]))


def levels_table(rows: list[dict]) -> str:
    """`level_rows`, method by method; empty if no row can be compared."""
    lines = [
        [row["method"], f"{row['within']} of {row['sets']}", number(row["pooled_z"], 1, "+"),
         ", ".join(f"{name} ({z:+.1f})" for name, z in row["far"].items()) or "-"]
        for row in level_rows(rows)
    ]  # fmt: skip
    titles = ["method", f"sets within {FAR} standard errors", "pooled z", "not within"]
    return table(titles, lines) if lines else ""


def commands_text(cells: list[dict]) -> str:
    """The command of each cell."""
    lines = [
        f"# {row['method']} on {row['dataset']} ({', '.join(filter(None, (row['protocol'], row['setting'])))})\n"
        f"{row['command']}"
        for row in cells
    ]
    seeds = len(cells[0]["seeds"]) if cells else 1
    more = f" These are of the first seed of {seeds}; `--config.experiment.seed` is the others'." if seeds > 1 else ""
    note = f"Each runs one cell alone, in the folder of a checkout that holds `configs`.{more}"
    return "\n\n".join([COMMANDS_TITLE, note, "```\n" + "\n".join(lines) + "\n```"])


def runtime_text(rows: list[dict]) -> str:
    """The table of run times and the paper's."""
    titles = ["dataset", "method", "n", "run s", "chain-steps/s", "SL/base", "paper's s", "paper's SL/base"]
    cells = (
        [
            row["dataset"], row["method"], str(row["n"]), f"{row['run_s']:.2f}", f"{row['chain_steps_per_s']:,.0f}",
            number(row["sl_over_base"]), number(row["published_s"]), number(row["published_sl_over_base"]),
        ]
        for row in rows
    )  # fmt: skip
    return "\n\n".join(["## Run time", _TIME_NOTE, table(titles, cells)])


def settings_text(title: str, note: str, rows: list[dict], left_out: list[str]) -> str:
    """A table of settings by methods for each dataset: ours, with the published value below where there is one."""
    blocks = [f"## {title}", note]
    for name in dict.fromkeys(row["dataset"] for row in rows):
        chosen = {(row["setting"], row["method"]): row for row in rows if row["dataset"] == name}
        methods = list(dict.fromkeys(method for _, method in chosen))
        settings = list(dict.fromkeys(setting for setting, _ in chosen))
        first = next(iter(chosen.values()))
        with_published = any(row["published"]["mean"] is not None for row in chosen.values())
        titles = ["setting"]
        for method in methods:
            titles += [method, "published", "z"] if with_published else [method]
        lines = []
        for setting in settings:
            line = [setting]
            for method in methods:
                line += _setting(chosen.get((setting, method)), with_published)
            lines.append(line)
        known = first["ours"]["mean"] is not None
        unit = first["unit"] if known else first["ours_absolute"]["unit"]
        blocks += [f"### {name}\n\n{_size(first)}: {unit}.", table(titles, lines)]
    if left_out:
        blocks.append("\n".join(f"- {reason}" for reason in left_out))
    return "\n\n".join(blocks)


def table(titles: Sequence[str], rows) -> str:
    """A markdown table."""
    lines = [list(titles), ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float | None, digits: int = 3, sign: str = "") -> str:
    """A number in a table, or `-` for None."""
    return "-" if value is None else f"{value:{sign},.{digits}f}"


def plus_minus(values: dict[str, Any]) -> str:
    """Mean +- standard deviation, or `-` if there is none."""
    return "-" if values["mean"] is None else f"{number(values['mean'])} ± {number(values['std'], 2)}"


def bounds(row: dict[str, Any], digits: int) -> str:
    """The interval of a row, or `-` if it has none."""
    return "-" if row["ci95"] is None else f"[{', '.join(number(end, digits, '+') for end in row['ci95'])}]"


def listed(names: list[str], before: str) -> str:
    """The names, preceded by `before`; empty if there are none."""
    return before + ", ".join(names) if names else ""


def bounded(pairs: list[dict]) -> list[dict]:
    """The pairs with a meaningful interval; equal differences have one of width zero, which is not."""
    return [row for row in pairs if row["ci95"] is not None and row["ci95"][0] < row["ci95"][1]]


def _size(row: dict) -> str:
    """The size of the runs on a dataset, with a remark if it is not the paper's."""
    steps, seeds = row["chain_length"], len(row["seeds"])
    other = "" if steps == CHAIN_LENGTH else f" (published: {CHAIN_LENGTH:,}; z compares runs of unequal length)"
    return (
        f"{row['ours']['n']} graphs, {seeds} seed{'s' if seeds > 1 else ''}, "
        f"{row['num_chains']} chains of {steps:,} steps{other}"
    )


def _cell(row: dict) -> list[str]:
    ours = row["ours"]
    return [
        row["method"], row["protocol"], plus_minus(row["published"]), plus_minus(ours), str(ours["n"]),
        number(ours["se"]), number(row["z"], 2, "+"), plus_minus(row["ours_absolute"]),
    ]  # fmt: skip


def _pair(row: dict) -> list[str]:
    return [
        row["dataset"], row["base"], row["protocol"], row["against"], number(row["mean"], 3, "+"), bounds(row, 3),
        str(row["n"]), number(row["published"], 3, "+"), row["unit"],
    ]  # fmt: skip


def _setting(row: dict | None, with_published: bool) -> list[str]:
    if row is None:
        return ["-"] * (3 if with_published else 1)
    known = row["ours"]["mean"] is not None
    values = row["ours"] if known else row["ours_absolute"]
    ours = f"{number(values['mean'])} ± {number(values['se'])}"
    return [ours, plus_minus(row["published"]), number(row["z"], 2, "+")] if with_published else [ours]


_CELL_NOTE = """\
Published and ours are mean ± standard deviation over graphs (divisor n); se is the standard error of our mean.
z is (ours - published) over the combined standard error. The paper's standard error is its deviation over the root of
the number of its graphs, which it does not state and which is taken from DISCS's configs: 32 for er_density, 500 for
satlib and rb, 196 for twitter, 1,000 for each MaxCut er and ba set, 10 for optsicom. On the paper's own graphs z is
too small. Generated graphs belong to the same family as the paper's, but are not the same graphs. A subset of a given
set is spread over the whole set; otherwise there is no z. Per cent is relative to each graph's reference; if a graph
has none, only the absolute mean is given. The reference of a generated rb graph is the number of its parts, as in the
published percentages. A generated MaxCut graph has none.
Protocol `defaults`: this project's default settings with DISCS's annealing, chosen without a search; `held out`:
settings that were tuned on training graphs."""

_PAIR_NOTE = """\
The difference is taken on each graph, with the same seeds, and the interval is Student's over graphs. `against` is
the protocol of the base: defaults, or the same as the localized method's. The difference is in set size for MIS and
otherwise in per cent of the reference or, if there is none, of the best value that any method in this report found on
the graph. The published difference is that of the means; the paper gives no error for it."""

_TIME_NOTE = """\
Seconds are for all graphs of the cell, without compilation; SL/base compares seconds per chain-step. The paper's
seconds are for its whole sets on its GPU."""
