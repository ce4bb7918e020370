"""The runs of a sweep file as DISCS's main program takes them."""

from __future__ import annotations

from pathlib import Path

from sl_discs.sweeps.sweep_file import Sweep


def discs_arguments(sweep: Sweep, number: int, data_root: str, save_root: Path) -> list[str]:
    """Flags of DISCS's main program for a run, counted from 1."""
    experiment = f"experiment/configs/{sweep.model}/{sweep.graph_type}" if sweep.graph_type else "common/configs"
    arguments = [
        f"--config=discs/{experiment}.py",
        f"--model_config=discs/models/configs/{sweep.model}_config.py",
        f"--sampler_config=discs/samplers/configs/{sweep.sampler_of(number)}_config.py",
    ]
    if sweep.graph_type:
        arguments += [f"--model_config.graph_type={sweep.graph_type}", f"--model_config.data_root={data_root}"]
    arguments += [f"--{flag}={value}" for flag, value in sweep.runs[number - 1].items()]
    return [*arguments, f"--config.experiment.save_root={save_root}"]
