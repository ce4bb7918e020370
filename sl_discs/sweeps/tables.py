"""The state and the results of a sweep, as tables for the screen and for programs."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError
from sl_discs.experiment.output import aligned
from sl_discs.files import write_atomically, write_json
from sl_discs.sweeps.run_folder import DIFFERS, DONE, FAILED, MISSING, RUNNING, Run, State, outcome_of, read_results
from sl_discs.sweeps.sweep_file import SAMPLER, Sweep, short


def varied(sweep: Sweep) -> list[tuple[str, list[Any]]]:
    """The settings in which runs differ: the name of each, and its values for all runs, None where it has none."""
    values = [{SAMPLER: sweep.sampler} | settings for settings in sweep.runs]
    flags = dict.fromkeys(flag for settings in values for flag in settings)
    columns = {flag: [settings.get(flag) for settings in values] for flag in flags}
    columns = {flag: column for flag, column in columns.items() if any(value != column[0] for value in column)}
    names = {flag: "sampler" if flag == SAMPLER else short(flag) for flag in columns}
    twice = {name for name, count in Counter(names.values()).items() if count > 1}
    return [(flag if names[flag] in twice else names[flag], column) for flag, column in columns.items()]


def status_lines(sweep: Sweep, runs: Sequence[Run], states: Sequence[State]) -> list[str]:
    """A row for each run, details on runs that are not done, and the number of runs in each state."""
    columns = varied(sweep)
    rows = [["run", *(name for name, _ in columns), "state"]]
    pairs = [(run.number, state) for run, state in zip(runs, states, strict=True)]
    for number, state in pairs:
        rows.append([str(number), *(_word(column[number - 1]) for _, column in columns), state.name])
    details = [f"run {number} {state.name}: {state.detail}" for number, state in pairs if state.detail]
    counts = Counter(state.name for state in states)
    known = [f"{counts[name]} {name}" for name in (DONE, RUNNING, FAILED, MISSING, DIFFERS) if counts[name]]
    return [*aligned(rows), *details, f"{len(runs)} in total: {', '.join(known)}"]


def collect(sweep: Sweep, runs: Sequence[Run], folder: Path) -> list[str]:
    """Writes `collect.csv` and `collect.json` of the finished runs, and returns the table as lines.

    A row is a run, or each sampler of a run that had several: the settings in which runs differ, `mean` and `std` of
    the best objective over `n` instances (divisor n), chain-steps per second and the engine.

    Raises:
      InputError: no run is done, a folder holds results of other arguments, or results are damaged.
    """
    columns, rows, missing = varied(sweep), [], 0
    for run in runs:
        outcome = outcome_of(run)
        if outcome.name == DIFFERS:
            raise InputError(f"{run.folder}: holds another run: {outcome.detail}; choose another --save_root")
        missing += outcome.name != DONE
        if outcome.name == DONE:
            settings = {name: column[run.number - 1] for name, column in columns}
            rows += [{"run": run.number} | settings | row for row in _results(run, "sampler" not in settings)]
    if not rows:
        raise InputError(f"{folder}: no run of the sweep is done; `run` performs them, `status` shows their state")
    titles = list(dict.fromkeys(title for row in rows for title in row))
    paths = [
        write_atomically(folder / "collect.csv", lambda file: file.write(_csv(titles, rows))),
        write_json(folder / "collect.json", {"sweep": sweep.name, "rows": rows}, indent=2),
    ]
    table = aligned([titles, *([_word(row.get(title)) for title in titles] for row in rows)])
    note = [f"{missing} of {len(runs)} runs are not done and not included"] if missing else []
    return [*table, *note, f"saved {', '.join(map(str, paths))}"]


def _results(run: Run, with_name: bool) -> list[dict[str, Any]]:
    results = read_results(run)
    try:
        return [
            ({"sampler": name} if with_name or len(results["samplers"]) > 1 else {})
            | {
                "mean": sampler["mean"],
                "std": sampler["std"],
                "n": len(sampler["instances"]),
                "chain_steps_per_s": sampler["chain_steps_per_s"],
                "engine": results["engine"],
            }
            for name, sampler in results["samplers"].items()
        ]
    except (KeyError, TypeError):
        raise InputError(f"{run.results}: damaged; remove it and run again") from None


def _csv(titles: Sequence[str], rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, titles, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _word(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.4f}".rstrip("0").rstrip(".") if isinstance(value, float) and abs(value) >= 0.01 else str(value)
