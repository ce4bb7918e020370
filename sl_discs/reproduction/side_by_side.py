"""Comparison of the protocols: how much of the published gain comes from choosing the best of many trials."""

from __future__ import annotations

from sl_discs.reproduction.cell import AS_PUBLISHED, DEFAULTS, HELD_OUT, NULL
from sl_discs.reproduction.markdown import bounded, listed, number, table

_COLUMNS = {
    "defaults": (DEFAULTS, DEFAULTS),
    "as published": (AS_PUBLISHED, DEFAULTS),
    "null": (NULL, DEFAULTS),
    "as published - null": (AS_PUBLISHED, NULL),
    "held out": (HELD_OUT, DEFAULTS),
    "held out, both tuned": (HELD_OUT, HELD_OUT),
}


def side_by_side_text(pairs: list[dict], search: list[dict]) -> str:
    """A row for each dataset and base: the published difference and ours under each protocol; empty without a search.

    Args:
      pairs: as `pair_rows` makes them.
      search: as `search_rows` makes them.
    """
    if not search:
        return ""
    lines = []
    graphs = {(row["dataset"], row["method"]): row["n"] for row in search}
    for name, base in dict.fromkeys((row["dataset"], row["base"]) for row in pairs):
        chosen = {
            (row["protocol"], row["against"]): row for row in pairs if (row["dataset"], row["base"]) == (name, base)
        }
        first = next(iter(chosen.values()))
        figures = [_figure(chosen.get(key)) for key in _COLUMNS.values()]
        n = graphs.get((name, f"sl_{base}"))
        lines.append([name, base, number(first["published"], 3, "+"), *figures, str(n or "-"), first["unit"]])
    titles = ["dataset", "base", "published", *_COLUMNS, "searched graphs", "unit"]
    trials = sorted({row["num_trials"] for row in search})
    note = _NOTE.format(trials=" or ".join(map(str, trials)))
    return "\n\n".join(["## Protocols side by side", note, table(titles, lines)])


def search_in_short(pairs: list[dict]) -> str:
    """Compares the search with its null control, and the null control with the base; empty without a search."""
    lines = []
    for words, key in (
        ("`as published` exceeds its null control", _COLUMNS["as published - null"]),
        ("The null control, choosing among runs that differ in their seed alone, exceeds the base", _COLUMNS["null"]),
    ):
        chosen = [row for row in pairs if (row["protocol"], row["against"]) == key]
        above = [row for row in chosen if row["mean"] > 0]
        clear = [f"{row['dataset']} {row['base']}" for row in bounded(above) if row["ci95"][0] > 0]
        if chosen:
            lines.append(
                f"- {words} in {len(above)} of {len(chosen)} pairs, with the whole 95% interval in {len(clear)}"
                f"{listed(clear, ': ')}."
            )
    return "\n".join(lines)


def _figure(row: dict | None) -> str:
    if row is None:
        return "-"
    interval = row["ci95"]
    return f"{row['mean']:+.3f}" + ("" if interval is None else f" [{interval[0]:+.3f}, {interval[1]:+.3f}]")


_NOTE = """\
Localization minus its base, each with a 95% interval. Unless stated otherwise the base has its defaults and the same
graphs. `as published` follows the paper: {trials} trials with settings from its search space, run and judged on the
test graphs themselves, of which the best trial counts. `null` is the same search with the tilt switched off, where
trials only differ in their seed: it shows the gain from choosing the best trial alone, and the column after it is the
remaining gain of `as published`. `held out` was chosen on training graphs; its annealing is tuned as well, so its
second column subtracts a base tuned in the same way, if there is one.

Trial 0 has the default settings, and trial k runs with seed k. Annealing in `as published` is DISCS's, as in the
paper's base rows, so there is nothing to search for a base, which has its defaults. Searches use the first graphs of
the cells; the table gives their number. The intervals of the best trials do not account for their selection; that of
the difference from the null control compares two trials that were selected in the same way."""
