"""Sweeps over several models, and names of samplers in files for both projects' programs."""

import os
from pathlib import Path

import pytest

from sl_discs.commands.run import check_flags
from sl_discs.experiment.parts import Part
from sl_discs.experiment.sweep_file import command_line, discs_arguments, read_sweep, run_arguments
from sl_discs.support.errors import InputError

PAPER = Path(__file__).parents[2] / "configs" / "sweep" / "paper.py"


def test_the_tables_of_the_paper_are_one_sweep():
    """Its 84 runs are 14 sets and six samplers, each with the config of its own set."""
    sweep = read_sweep(PAPER)
    assert len({sweep.folder(number) for number in range(1, 85)}) == len(sweep.runs) == 84
    configs = set()
    for number in range(1, 85):
        arguments = run_arguments(sweep, number, None, {})
        model, graph_type = sweep.set_of(number)
        assert arguments["config"] == f"configs/experiment/{model}/{graph_type}.py"
        configs.add((arguments["config"], arguments["model_config.cfg_str"]))
        if number % 6 == 1:
            check_flags(command_line(arguments, Path("out")))
    assert len(configs) == 14
    assert f"--model_config=discs/models/configs/{model}_config.py" in discs_arguments(
        sweep, 84, "sco", Path("out")
    )


@pytest.mark.parametrize(
    ("variables", "part"),
    [
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, Part(1, 4)),
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "3"}, Part(4, 4)),
        (
            {
                "SLURM_ARRAY_TASK_ID": "7",
                "SLURM_ARRAY_TASK_MIN": "3",
                "SLURM_ARRAY_TASK_COUNT": "4",
                "SLURM_ARRAY_TASK_STEP": "2",
            },
            Part(3, 4),
        ),
        (
            {
                "SLURM_NTASKS": "2",
                "SLURM_PROCID": "1",
                "SLURM_ARRAY_TASK_ID": "1",
                "SLURM_ARRAY_TASK_MIN": "1",
                "SLURM_ARRAY_TASK_COUNT": "3",
            },
            Part(2, 6),
        ),
        ({}, None),
        ({"SLURM_NTASKS": "1", "SLURM_PROCID": "0"}, None),
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "x"}, None),
        ({"SLURM_NTASKS": "2", "SLURM_PROCID": "2"}, None),
        # --array=1,2,7: the first of its tasks must not begin either.
        (
            {
                "SLURM_ARRAY_TASK_ID": "1",
                "SLURM_ARRAY_TASK_MIN": "1",
                "SLURM_ARRAY_TASK_MAX": "7",
                "SLURM_ARRAY_TASK_COUNT": "3",
            },
            None,
        ),
    ],
)
def test_the_part_of_a_task_of_slurm(monkeypatch, variables, part):
    for name in list(os.environ):
        if name.startswith("SLURM_"):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if part is None:
        with pytest.raises(InputError):
            Part.parse("auto")
    else:
        assert Part.parse("auto") == part
