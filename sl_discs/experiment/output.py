"""Tables, figures and files of a finished experiment.

Files in its folder:

| file | content |
|---|---|
| `results.pkl` | what DISCS saves, one file a sampler (see `discs_results`) |
| `trajectory.npz` | `logged_steps`, `temperature`, and `<sampler>/trajectory`, `/acceptance`, `/hops` |
| `solutions.npz` | `names`, `ptr`, and `<sampler>/solutions`: instance g is the slice `ptr[g]:ptr[g+1]` |
| `config.yaml` | the configuration |
| `results.json` | numbers for programs, strict JSON; written last, so its presence means a complete folder |

A run of one sampler has its `results.pkl` in the folder itself, like a run of DISCS. A run of several samplers is a
folder of such runs, `<sampler>/results.pkl`, as DISCS's plotting scripts expect.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import math
import os
import pickle
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jaxtyping import Float64
from scipy import special

from sl_discs.errors import InputError
from sl_discs.experiment.figures import COLOURS, save_figure
from sl_discs.experiment.published import CHAIN_LENGTH, published_row
from sl_discs.experiment.record import ExperimentRecord, InstanceRecord, SamplerRecord
from sl_discs.files import write_atomically
from sl_discs.localization.method import NOT_LOCALIZED, not_localized_note
from sl_discs.problems.graph_kind import graph_kind

# The records of a part of the instances: packed into bytes, and joined with those of other parts.

_ARRAYS = ("trajectory", "acceptance", "hops")
_PLAIN = ("chain_steps_per_s", "compile_s", "run_s", "engine", "final_is")


def pack_records(samplers: dict[str, SamplerRecord]) -> bytes:
    """All records in one compressed file, which preserves every number exactly."""
    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for number, (name, sampler) in enumerate(samplers.items()):
        arrays |= {f"{number}/{field}": getattr(sampler, field) for field in _ARRAYS}
        arrays[f"{number}/solutions"] = np.concatenate([instance.solution for instance in sampler.instances])
        plain[name] = {field: getattr(sampler, field) for field in _PLAIN}
        plain[name]["instances"] = [
            {
                field.name: getattr(instance, field.name)
                for field in dataclasses.fields(InstanceRecord)
                if field.name != "solution"
            }
            | {"size": len(instance.solution)}
            for instance in sampler.instances
        ]
    file = io.BytesIO()
    text = json.dumps(plain, default=lambda value: value.item())
    np.savez_compressed(file, plain=np.frombuffer(text.encode(), np.uint8), **arrays)
    return file.getvalue()


def unpack_records(content: bytes) -> dict[str, SamplerRecord]:
    """The records of `pack_records`."""
    samplers = {}
    with np.load(io.BytesIO(content), allow_pickle=False) as saved:
        for number, (name, plain) in enumerate(json.loads(saved["plain"].tobytes()).items()):
            instances = plain.pop("instances")
            ends = np.cumsum([instance.pop("size") for instance in instances])
            solutions = np.split(saved[f"{number}/solutions"], ends[:-1])
            samplers[name] = SamplerRecord(
                instances=[InstanceRecord(**one, solution=x) for one, x in zip(instances, solutions, strict=True)],
                **{field: saved[f"{number}/{field}"] for field in _ARRAYS},
                **plain,
            )
    return samplers


def join_records(parts: Sequence[dict[str, SamplerRecord]]) -> dict[str, SamplerRecord]:
    """One record per sampler, with instances in the order of the parts.

    Parts may run in parallel: `run_s` and `compile_s` are those of the slowest part, and the rate counts all
    chain-steps in that time.
    """
    if len(parts) == 1:
        return parts[0]
    return {name: _join([part[name] for part in parts]) for name in parts[0]}


def _join(parts: list[SamplerRecord]) -> SamplerRecord:
    run_s = max(part.run_s for part in parts)
    engines = list(dict.fromkeys(part.engine for part in parts))
    return SamplerRecord(
        instances=[instance for part in parts for instance in part.instances],
        **{field: np.concatenate([getattr(part, field) for part in parts], axis=1) for field in _ARRAYS},
        chain_steps_per_s=sum(part.chain_steps_per_s * part.run_s for part in parts) / run_s,
        compile_s=max(part.compile_s for part in parts),
        run_s=run_s,
        engine="; ".join(engines),
        final_is=parts[0].final_is,
    )


# A summary of one sampler's results over its instances.


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean over n instances, and their spread.

    Attributes:
      mean: the mean.
      std: standard deviation over the instances with divisor n, as in DISCS and in the paper's +-.
      se: standard error of the mean, sample standard deviation (divisor n - 1) over sqrt(n); None for n = 1.
      n: number of instances.
    """

    mean: float
    std: float
    se: float | None
    n: int

    @classmethod
    def of(cls, values: Float64[np.ndarray, "n"]) -> Spread:
        """Summarizes at least one value."""
        n = len(values)
        se = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else None
        return cls(float(np.mean(values)), float(np.std(values)), se, n)


def best_values(sampler: SamplerRecord) -> Float64[np.ndarray, "G"]:
    """The verified objective of each instance."""
    return np.array([instance.best for instance in sampler.instances], dtype=np.float64)


def references(sampler: SamplerRecord) -> Float64[np.ndarray, "G"] | None:
    """The reference of each instance, or None unless every instance has one other than zero."""
    values = [instance.reference for instance in sampler.instances]
    return np.array(values, dtype=np.float64) if all(values) else None


def percent_of_reference(sampler: SamplerRecord) -> Float64[np.ndarray, "G"] | None:
    """100 best / reference of each instance, or None unless every instance has a non-zero reference."""
    divisors = references(sampler)
    return None if divisors is None else 100.0 * best_values(sampler) / divisors


# The figure of a run: how the best state improves as the temperature falls, and where each sampler ends.

# The first logged values can lie thousands below; the panel shows at most this part of the final value.
_SHOWN_BELOW_END = 0.15


def draw_trajectories(record: ExperimentRecord, path: str | Path) -> Path:
    """Draws each sampler's running best, the temperature, and the final values beside the published ones.

    Problems that are compared in per cent of the reference are drawn in per cent if every instance has a reference.

    Args:
      record: the finished experiment.
      path: the PNG file to write, atomically.

    Raises:
      InputError: matplotlib is not installed, or the file cannot be written.
    """

    def paint(figure):
        grid = figure.add_gridspec(2, 2, width_ratios=(3, 2), height_ratios=(4, 1))
        best = figure.add_subplot(grid[0, 0])
        temperature = figure.add_subplot(grid[1, 0], sharex=best)
        final = figure.add_subplot(grid[:, 1])
        count = len(next(iter(record.samplers.values())).instances)
        title = f"{record.dataset}: mean ± standard error over {count} instance{'s' if count > 1 else ''}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        _draw_best(best, record)
        _draw_temperature(temperature, record)
        _draw_final(final, record)

    return save_figure(path, (7.2, 3.4 if len(record.samplers) <= 8 else 4.6), paint)


def _draw_best(axes, record: ExperimentRecord) -> None:
    kind = graph_kind(record.problem)
    means, top = [], -np.inf  # times the sign, so that the best is at the top
    for name, sampler in record.samplers.items():
        values = _in_drawn_unit(record, sampler)
        count = values.shape[1]
        mean = values.mean(axis=1)
        means.append(kind.sign * mean)
        error = values.std(axis=1, ddof=min(1, count - 1)) / np.sqrt(count)
        style = _line(record, name)
        axes.plot(record.logged_steps, mean, label=name, **style)
        axes.fill_between(
            record.logged_steps, mean - error, mean + error, color=style["color"], alpha=0.2, linewidth=0
        )
        top = max(top, np.max(kind.sign * mean + error))
    lowest_end = min(mean[-1] for mean in means)
    bottom = max(lowest_end - _SHOWN_BELOW_END * abs(lowest_end), np.min(means))
    margin = 0.08 * (top - bottom) or 1.0
    axes.set_ylim(sorted((kind.sign * (bottom - margin), kind.sign * (top + margin))))
    axes.set_ylabel(f"running best ({_drawn_unit(record)})")
    axes.tick_params(labelbottom=False)
    axes.legend(
        loc="lower right" if kind.maximise else "upper right", framealpha=0.8, edgecolor="none", handlelength=1.8
    )


def _draw_temperature(axes, record: ExperimentRecord) -> None:
    axes.plot(record.logged_steps, record.temperature, color="0.35", linewidth=1.1)
    axes.set_xlabel("MCMC step")
    axes.set_ylabel("temp.")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, record.logged_steps[-1])


def _draw_final(axes, record: ExperimentRecord) -> None:
    comparable = _drawn_unit(record) == graph_kind(record.problem).compared_unit
    for row, (name, sampler) in enumerate(record.samplers.items()):
        spread = _final(record, sampler)
        colour = _line(record, name)["color"]
        axes.errorbar(spread.mean, row, xerr=spread.se, fmt="o", color=colour, markersize=4.5, linewidth=1.2)
        published = published_row(record.dataset, name) if comparable else None
        if published is not None:
            axes.plot(published.mean, row, "|", color="black", markersize=13, markeredgewidth=1.3)
    axes.plot([], [], "o", color="0.35", markersize=4.5, label="this run")
    if comparable and any(published_row(record.dataset, name) for name in record.samplers):
        label = "published, other graphs" if record.source == "generated" else "published"
        axes.plot([], [], "|", color="black", markersize=10, markeredgewidth=1.3, label=label)
    axes.set_yticks(range(len(record.samplers)), list(record.samplers))
    axes.set_ylim(len(record.samplers) - 0.5, -0.5)
    axes.margins(x=0.1)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"final, verified ({_drawn_unit(record)})")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0)


def _line(record: ExperimentRecord, name: str) -> dict:
    """A base sampler and its SL variant share a colour; the base is dashed."""
    bases = list(dict.fromkeys(key.removeprefix("sl_") for key in record.samplers))
    index = bases.index(name.removeprefix("sl_"))
    dashes = "-" if name.startswith("sl_") else (0, (4, 2))
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": dashes}


def _in_drawn_unit(record: ExperimentRecord, sampler: SamplerRecord) -> Float64[np.ndarray, "L G"]:
    divisors = references(sampler)
    if divisors is not None and _in_percent(record):
        return 100.0 * sampler.trajectory / divisors
    return sampler.trajectory


def _final(record: ExperimentRecord, sampler: SamplerRecord) -> Spread:
    percent = percent_of_reference(sampler)
    return Spread.of(percent if percent is not None and _in_percent(record) else best_values(sampler))


def _in_percent(record: ExperimentRecord) -> bool:
    complete = all(references(sampler) is not None for sampler in record.samplers.values())
    return graph_kind(record.problem).in_percent and complete


def _drawn_unit(record: ExperimentRecord) -> str:
    kind = graph_kind(record.problem)
    return kind.compared_unit if _in_percent(record) else kind.unit


# Differences between a sampler's SL variant and the sampler itself, taken instance by instance.
#
# Instances differ from each other far more than samplers do, so only the paired difference has a standard error that
# is informative about the samplers.


def sl_pairs(record: ExperimentRecord) -> list[tuple[str, str]]:
    """(`sl_x`, `x`) for each sampler x whose SL variant is in the record too, in the record's order.

    Raises:
      InputError: the two samplers of a pair did not run on the same instances in the same order.
    """
    pairs = [(f"sl_{name}", name) for name in record.samplers if f"sl_{name}" in record.samplers]
    for sl_name, name in pairs:
        ours, theirs = ([i.name for i in record.samplers[key].instances] for key in (sl_name, name))
        if ours != theirs:
            raise InputError(
                f"{record.dataset}: {sl_name} and {name} have different instances; "
                "run both on the same ones, in the same order"
            )
    return pairs


def paired_differences(record: ExperimentRecord) -> dict[str, Spread]:
    """Spread over instances of best(sl_x) - best(x) in units of the objective, keyed `sl_x - x`.

    Raises:
      InputError: as `sl_pairs`.
    """
    differences = {}
    for sl_name, name in sl_pairs(record):
        ours, theirs = (best_values(record.samplers[key]) for key in (sl_name, name))
        differences[f"{sl_name} - {name}"] = Spread.of(ours - theirs)
    return differences


def paired_percent_differences(record: ExperimentRecord) -> dict[str, Spread]:
    """`paired_differences` in percentage points of the reference; empty unless every instance has a reference.

    Raises:
      InputError: as `sl_pairs`.
    """
    differences = {}
    for sl_name, name in sl_pairs(record):
        ours, theirs = (percent_of_reference(record.samplers[key]) for key in (sl_name, name))
        if ours is not None and theirs is not None:
            differences[f"{sl_name} - {name}"] = Spread.of(ours - theirs)
    return differences


def write_results(record: ExperimentRecord, folder: str | os.PathLike) -> dict[str, Path]:
    """Writes every file of the experiment, each atomically, and returns file name -> path.

    Raises:
      InputError: the folder cannot be written, or paired samplers have different instances.
    """
    folder = Path(folder)
    summary = results_dict(record)
    paths = {}
    for name, sampler in record.samplers.items():
        relative = "results.pkl" if len(record.samplers) == 1 else f"{name}/results.pkl"
        content = discs_results(record.problem, sampler)
        paths[relative] = write_atomically(folder / relative, functools.partial(pickle.dump, content, protocol=4))
    trajectories, solutions = _trajectories(record), _solutions(record)
    paths["trajectory.npz"] = write_atomically(
        folder / "trajectory.npz", lambda file: np.savez_compressed(file, **trajectories)
    )
    paths["solutions.npz"] = write_atomically(
        folder / "solutions.npz", lambda file: np.savez_compressed(file, **solutions)
    )
    config = yaml.safe_dump(plain(record.config), sort_keys=False).encode()
    paths["config.yaml"] = write_atomically(folder / "config.yaml", lambda file: file.write(config))
    text = json.dumps(summary, indent=2, allow_nan=False).encode()
    paths["results.json"] = write_atomically(folder / "results.json", lambda file: file.write(text + b"\n"))
    return paths


def results_dict(record: ExperimentRecord) -> dict:
    """The content of `results.json`: builtin types only, None for missing or non-finite values.

    `mean` and `std` (divisor n) are of `best` over instances; `acceptance` and `hops` are means over steps
    and instances; a pair's `se` is None for a single instance.

    Raises:
      InputError: paired samplers have different instances.
    """
    content = {
        "dataset": record.dataset,
        "source": record.source,
        "source_detail": record.source_detail,
        "config": record.config,
        "seed": record.seed,
        "versions": record.versions,
        "device": record.device,
        "engine": record.engine,
        "num_chains": record.num_chains,
        "samplers": {name: _sampler_dict(sampler) for name, sampler in record.samplers.items()},
        "paired": {
            pair: {"mean": spread.mean, "se": spread.se, "n": spread.n}
            for pair, spread in paired_differences(record).items()
        },
    }
    return plain(content)


def discs_results(problem: str, sampler: SamplerRecord) -> dict:
    """The content of `results.pkl`: DISCS's keys, numpy arrays and builtin types only.

    `trajectory` [L, G] and its last row `best_ratio` are objective minus penalty over the reference; the
    divisor is 1 for MIS, as in DISCS, and for every instance when some have no reference. `running_time` is
    half of the run: DISCS times only the second half of a chain and its plotting scripts double the value.
    `best_samples` [G, N] are the verified solutions, zero-padded to the largest instance.
    """
    divisors = references(sampler) if graph_kind(problem).in_percent else None
    trajectory = np.asarray(sampler.trajectory, dtype=np.float64) / (1.0 if divisors is None else divisors)
    width = max(len(instance.solution) for instance in sampler.instances)
    samples = np.zeros((len(sampler.instances), width), dtype=np.int8)
    for row, instance in zip(samples, sampler.instances, strict=True):
        row[: len(instance.solution)] = instance.solution
    return {
        "trajectory": trajectory,
        "best_ratio": trajectory[-1].copy(),
        "running_time": float(sampler.run_s) / 2,
        "best_ratio_mean": float(np.mean(trajectory[-1])),
        "best_samples": samples,
    }


def _sampler_dict(sampler: SamplerRecord) -> dict:
    spread = Spread.of(best_values(sampler))
    return {
        "instances": [
            {
                "name": instance.name,
                "best": instance.best,
                "best_logged": instance.best_logged,
                "final": instance.final,
                "feasible": instance.feasible,
                "reference": instance.reference,
            }
            for instance in sampler.instances
        ],
        "final_is": sampler.final_is,
        "mean": spread.mean,
        "std": spread.std,
        "acceptance": np.mean(sampler.acceptance),
        "hops": np.mean(sampler.hops),
        "chain_steps_per_s": sampler.chain_steps_per_s,
        "compile_s": sampler.compile_s,
        "run_s": sampler.run_s,
    }


def _trajectories(record: ExperimentRecord) -> dict[str, Any]:
    arrays = {"logged_steps": np.asarray(record.logged_steps), "temperature": np.asarray(record.temperature)}
    for name, sampler in record.samplers.items():
        for field in ("trajectory", "acceptance", "hops"):
            arrays[f"{name}/{field}"] = np.asarray(getattr(sampler, field))
    return arrays


def _solutions(record: ExperimentRecord) -> dict[str, Any]:
    instances = next(iter(record.samplers.values())).instances
    lengths = [len(instance.solution) for instance in instances]
    arrays = {
        "names": np.array([instance.name for instance in instances], dtype=np.str_),
        "ptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    }
    for name, sampler in record.samplers.items():
        flat = np.concatenate([instance.solution for instance in sampler.instances])
        arrays[f"{name}/solutions"] = flat.astype(np.int8)
    return arrays


def plain(value):
    """Converts to builtin types that JSON and YAML support: arrays and tuples to lists, NaN and infinity to None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


# The summary that a run prints at its end: plain text of at most 100 columns, except for file paths.

WIDTH = 100

_NAME_WIDTH = 22


def format_summary(record: ExperimentRecord, paths: Mapping[str, Path] | None = None, resumed: str = "") -> str:
    """The run, one row per sampler, SL minus base in pairs, the published numbers, and the paths of the files.

    Args:
      record: the finished experiment.
      paths: saved files, name to path, as `write_results` returns them.
      resumed: what the run has taken from checkpoints, in words; empty: nothing.

    Raises:
      InputError: paired samplers have different instances.
    """
    continued = textwrap.wrap(resumed, WIDTH)
    blocks = [_header(record) + continued, _quality(record), _cost(record), _pairs(record), _notes(record)]
    blocks.append(saved(paths or {}))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _header(record: ExperimentRecord) -> list[str]:
    count = len(next(iter(record.samplers.values())).instances)
    problem = graph_kind(record.problem).problem
    chains = f"{record.num_chains:,} an instance, {_chain_length(record):,} steps each, seed {record.seed}"
    return [
        f"{record.dataset}: {problem}, {count} instance{'s' if count > 1 else ''}",
        *wrapped("instances", f"{record.source} ({record.source_detail})"),
        *wrapped("chains", chains),
        *wrapped("ran on", f"{record.device}, engine {record.engine}"),
    ]


def _quality(record: ExperimentRecord) -> list[str]:
    rows = [["sampler", "mean +- std", "se", "at log steps", "% of reference", "published"]]
    rows += [_quality_row(record, name, sampler) for name, sampler in record.samplers.items()]
    title = (
        f"Best {graph_kind(record.problem).unit} of each instance, verified: mean +- standard deviation over "
        "instances (divisor n), se the mean's standard error. 'at log steps': only states at logged steps "
        "count, as in DISCS."
    )
    return [*textwrap.wrap(title, WIDTH), *aligned(_without_empty_columns(rows))]


def _quality_row(record: ExperimentRecord, name: str, sampler: SamplerRecord) -> list[str]:
    spread = Spread.of(best_values(sampler))
    percent = percent_of_reference(sampler)
    published = published_row(record.dataset, name)
    return [
        _short(name),
        _plus_minus(spread.mean, spread.std),
        "-" if spread.se is None else _number(spread.se),
        _number(float(np.mean([instance.best_logged for instance in sampler.instances]))),
        "" if percent is None else _plus_minus(float(percent.mean()), float(percent.std())),
        "" if published is None else _plus_minus(published.mean, published.std),
    ]


def _cost(record: ExperimentRecord) -> list[str]:
    rows = [["sampler", "feasible", "acceptance", "hops a step", "chain-steps/s", "compile s", "run s"]]
    for name, sampler in record.samplers.items():
        feasible = sum(instance.feasible for instance in sampler.instances)
        rows.append(
            [
                _short(name),
                f"{feasible}/{len(sampler.instances)}",
                f"{np.mean(sampler.acceptance):.3f}",
                f"{np.mean(sampler.hops):.2f}",
                f"{sampler.chain_steps_per_s:,.0f}",
                f"{sampler.compile_s:.1f}",
                f"{sampler.run_s:.1f}",
            ]
        )
    return aligned(rows)


def _pairs(record: ExperimentRecord) -> list[str]:
    differences, points = paired_differences(record), paired_percent_differences(record)
    if not differences:
        return []
    rows = [["pair", f"{graph_kind(record.problem).unit} +- se", "n", "% points +- se", "published"]]
    for (sl_name, name), (pair, spread) in zip(sl_pairs(record), differences.items(), strict=True):
        localized, base = (published_row(record.dataset, key) for key in (sl_name, name))
        rows.append(
            [
                f"{_short(sl_name)} - {_short(name)}",
                _signed(spread),
                str(spread.n),
                _signed(points[pair]) if pair in points else "",
                "" if localized is None or base is None else f"{localized.mean - base.mean:+.3f}",
            ]
        )
    title = "SL minus its base, instance by instance: mean +- standard error over n instances."
    return [title, *aligned(_without_empty_columns(rows))]


def _notes(record: ExperimentRecord) -> list[str]:
    names = [name for name, sampler in record.samplers.items() if sampler.final_is == NOT_LOCALIZED]
    notes = [*map(not_localized_note, names), *_published_notes(record)]
    return [line for note in notes for line in textwrap.wrap(note, WIDTH)]


def _published_notes(record: ExperimentRecord) -> list[str]:
    if not any(published_row(record.dataset, name) for name in record.samplers):
        return []
    notes = [
        f"published: ICML 2025 paper, {graph_kind(record.problem).compared_unit}, mean +- standard deviation over "
        "instances; a published difference is that of the means, the paper gives no error for it."
    ]
    if record.source == "generated":
        notes.append(
            "These instances were generated; the published numbers were measured on other graphs of the same family."
        )
    in_percent = graph_kind(record.problem).in_percent
    if in_percent and any(percent_of_reference(one) is None for one in record.samplers.values()):
        notes.append("Not every instance has a reference: the published percentages have no counterpart.")
    if _chain_length(record) != CHAIN_LENGTH:
        notes.append(
            f"This run took {_chain_length(record):,} steps a chain, the published ones {CHAIN_LENGTH:,}: "
            "the two are not the same experiment."
        )
    return notes


def saved(paths: Mapping[str, Path]) -> list[str]:
    """The block with the paths of saved files; empty if there are none."""
    if not paths:
        return []
    folder = os.path.commonpath([Path(path).parent for path in paths.values()])
    names = [str(Path(path).relative_to(folder)) for path in paths.values()]
    lines = textwrap.wrap(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")
    return [f"saved in {folder}:", *lines]


def _chain_length(record: ExperimentRecord) -> int:
    configured = record.config.get("experiment", {}).get("chain_length")
    return int(record.logged_steps[-1]) if configured is None else int(configured)


def wrapped(label: str, text: str) -> list[str]:
    """The lines of a labelled entry of a header."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=" " * 12)


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    kept = [any(column[1:]) for column in zip(*rows, strict=True)]
    return [[cell or "-" for cell, keep in zip(row, kept, strict=True) if keep] for row in rows]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of one table as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{row[0]:<{widths[0]}}"] + [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells))
    return lines


def _short(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "~"


def _number(value: float) -> str:
    if abs(value) < 1e4:
        return f"{value:.3f}"
    return f"{value:,.1f}" if abs(value) < 1e8 else f"{value:.6g}"


def _plus_minus(mean: float, deviation: float) -> str:
    return f"{_number(mean)} +- " + (f"{deviation:.2f}" if deviation < 1e4 else _number(deviation))


def _signed(spread: Spread) -> str:
    sign = "+" if spread.mean >= 0 else ""
    return f"{sign}{_number(spread.mean)} +- {'?' if spread.se is None else _number(spread.se)}"


def half_width(values: Float64[np.ndarray, "N"]) -> float:
    """Half of the 95 % interval of the mean of N > 1 independent values, by Student's t."""
    return float(special.stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values)))
