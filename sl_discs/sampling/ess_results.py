"""Effective sample sizes of an experiment: a table, and files.

| file | content |
|---|---|
| `results.csv` | what DISCS saves, one file a sampler; of several samplers in `<sampler>/results.csv` |
| `config.yaml` | the configuration |
| `results.json` | numbers for programs, strict JSON; written last, so its presence means a complete folder |
"""

from __future__ import annotations

import csv
import io
import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sl_discs.atomic import write_atomically
from sl_discs.experiment.output import WIDTH, aligned, plain, saved, wrapped
from sl_discs.finished_work import write_json
from sl_discs.sampling.ess_chains import EssRecord
from sl_discs.sampling.ess_discs import DiscsEss
from sl_discs.sampling.ess_experiment import EssExperiment

# DISCS's names of the figures.
_COLUMNS = {"ESS": "ess", "ESS_M-H": "per_step", "ESS_T": "per_second", "ESS_EE": "per_evaluation"}
_TITLE = (
    "Effective sample size as DISCS takes it: of the distance to a random state, after burn-in, mean over chains +- "
    "standard error. ESS_M-H: a step. ESS_T: a second. ESS_EE: a call of the log-likelihood, as DISCS counts calls."
)


def write_ess(experiment: EssExperiment, folder: Path) -> dict[str, Path]:
    """Writes every file, each atomically, and returns file name -> path; InputError if that fails."""
    paths = {}
    for name, record in experiment.samplers.items():
        relative = "results.csv" if len(experiment.samplers) == 1 else f"{name}/results.csv"
        paths[relative] = _write_text(folder / relative, _csv_of(experiment, name, record))
    config = yaml.safe_dump(plain(experiment.config), sort_keys=False)
    paths["config.yaml"] = _write_text(folder / "config.yaml", config)
    paths["results.json"] = write_json(folder / "results.json", ess_dict(experiment), indent=2, allow_nan=False)
    return paths


def _write_text(path: Path, text: str) -> Path:
    return write_atomically(path, lambda file: file.write(text.encode()))


def ess_dict(experiment: EssExperiment) -> dict[str, Any]:
    """The content of `results.json`: builtin types only, None for what is not finite."""
    samplers = {
        name: {column: getattr(record.ess, field) for column, field in _COLUMNS.items()}
        | {"deviation": record.ess.deviation}
        | {field: getattr(record, field) for field in vars(record) if field != "ess"}
        for name, record in experiment.samplers.items()
    }
    return plain(
        {
            "dataset": experiment.lattice.name,
            "config": experiment.config,
            "versions": experiment.versions,
            "device": experiment.device,
            "samplers": samplers,
        }
    )


def format_ess(experiment: EssExperiment, paths: dict[str, Path]) -> str:
    """The run, one row per sampler, and the paths of the files."""
    settings = experiment.settings
    chains = (
        f"{settings.batch_size:,} of {settings.chain_length:,} steps each at temperature "
        f"{settings.init_temperature:g}, seed {settings.seed}; the first {settings.ess_ratio:.0%} are left out"
    )
    lattice = experiment.lattice
    drawn = (
        f"open, lambdaa {lattice.lambdaa:g}, mu {lattice.mu:g}, init_sigma {lattice.init_sigma:g}; number "
        f"{settings.first_instance} of data_seed {settings.data_seed}"
    )
    engines = "; ".join(dict.fromkeys(record.engine for record in experiment.samplers.values()))
    header = [
        f"{lattice.name}: Ising model",
        *wrapped("lattice", drawn),
        *wrapped("chains", chains),
        *wrapped("ran on", f"{experiment.device}, engine {engines}"),
    ]
    rows = [["sampler", *_COLUMNS, "acceptance", "hops a step", "seconds"]]
    rows += [_row(name, record, settings.batch_size) for name, record in experiment.samplers.items()]
    blocks = [header, [*textwrap.wrap(_TITLE, WIDTH), *aligned(rows)], saved(paths)]
    return "\n\n".join("\n".join(block) for block in blocks)


def _row(name: str, record: EssRecord, num_chains: int) -> list[str]:
    error = f" +- {record.ess.deviation / math.sqrt(num_chains - 1):.3g}" if num_chains > 1 else ""
    figures = [_figure(getattr(record.ess, field)) for field in _COLUMNS.values()]
    figures[0] += error
    return [name, *figures, f"{record.acceptance:.3f}", f"{record.hops:.2f}", f"{record.seconds:.2f}"]


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _csv_of(experiment: EssExperiment, name: str, record: EssRecord) -> str:
    """DISCS's header and row, where each figure is given with its deviation over chains: `[21.9 10.5]`."""
    settings = experiment.settings
    row = {
        "sampler": _discs_name(name, experiment.config["samplers"][name]),
        "model": "ising",
        "num_categories": 2,
        "shape": experiment.lattice.shape,
        "batch_size": settings.batch_size,
        "chain_length": settings.chain_length,
        "ess_ratio": settings.ess_ratio,
        "Time": record.seconds,
    } | {column: _with_deviation(record.ess, field) for column, field in _COLUMNS.items()}
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(row))
    writer.writeheader()
    writer.writerow(row)
    return file.getvalue()


def _with_deviation(ess: DiscsEss, field: str) -> str:
    scale = getattr(ess, field) / ess.ess
    return str(np.array([ess.ess, ess.deviation], np.float32) * np.float32(scale))


def _discs_name(name: str, fields: dict[str, Any]) -> str:
    """DISCS's name for a sampler in its files, such as `a_gwg(sqrt)`, which its plotting scripts look for."""
    adaptive = "a_" if "adaptive" in fields else ""
    balancing = fields.get("balancing_fn_type")
    return f"{adaptive}{name}" + (f"({balancing.lower()})" if balancing else "")
