r"""Command: performs the runs of a sweep file of DISCS (`run_configs`) in turn, each with `sl-discs discs main`.

sl-discs discs sweep --sweep=discs/run_configs/co/mis/er_density_sampler_sweep.py --list
sl-discs discs sweep --sweep=discs/run_configs/co/mis/er_density_sampler_sweep.py --data_root=./sco \
    --samplers=gwg,sl_gwg -- --config.experiment.chain_length=1000

Arguments after `--` are passed to every run. Each run saves into a folder of its own, named as by DISCS's launcher,
which DISCS's plotting scripts read (`sl-discs discs plot`). The exit code is 1 if a run failed.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from sl_discs.command import run_command
from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError
from sl_discs.instances.dataset import check_data_root
from sl_discs.own_code import imported
from sl_discs.sweeps.sweep_file import Sweep, discs_arguments, read_sweep

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
launch.define_flags(FLAGS)
_SWEEP = flags.DEFINE_string(
    "sweep", None, "Sweep file; DISCS's own are also found next to its package.", flag_values=FLAGS
)
_DATA_ROOT = flags.DEFINE_string(
    "data_root", "./sco", "Folder of DISCS's graphs, for combinatorial problems.", flag_values=FLAGS
)
_SAVE_ROOT = flags.DEFINE_string(
    "save_root", None, "Folder of the runs' folders; default: ./discs-MODEL-NAME.", flag_values=FLAGS
)
_SAMPLERS = flags.DEFINE_list(
    "samplers", None, "Only these of the sweep's samplers; sl_gwg takes the settings of gwg.", flag_values=FLAGS
)
_ONLY = flags.DEFINE_list(
    "only", None, "Numbers of the runs to perform, as --list shows them; default: all.", flag_values=FLAGS
)
_LIST = flags.DEFINE_boolean("list", False, "Print the commands of the runs without running them.", flag_values=FLAGS)


def _chosen(sweep: Sweep) -> list[int]:
    numbers = range(1, len(sweep.runs) + 1)
    if _ONLY.value is None:
        return list(numbers)
    wrong = [text for text in _ONLY.value if not text.isdecimal() or int(text) not in numbers]
    if wrong:
        raise InputError(f"--only: there is no run {wrong[0]!r}; the sweep has 1 to {len(sweep.runs)}")
    return [int(text) for text in _ONLY.value]


def run(more: Sequence[str]) -> int:
    """Performs or lists the runs."""
    launch.register_from_flags(FLAGS)
    if not _SWEEP.value:
        raise InputError("no sweep is given; pass --sweep=FILE, such as discs/run_configs/co/mis/...")
    path = launch.find_file(_SWEEP.value)
    if path is None:
        raise InputError(f"--sweep: there is no file {_SWEEP.value}, here or in {launch.checkout()}")
    sweep = read_sweep(path, _SAMPLERS.value)
    if sweep.graph_type and _DATA_ROOT.present and not _LIST.value:
        check_data_root(_DATA_ROOT.value)
    root = Path(_SAVE_ROOT.value or f"discs-{sweep.name}")
    shared = ["--nocompat"] if not FLAGS.compat else []
    shared += [f"--import={code}" for code in imported()]
    shared += [f"--fixes={','.join(FLAGS.fixes)}"] if FLAGS.fixes else []
    failed = []
    for number in _chosen(sweep):
        folder = root / sweep.folder(number)
        arguments = discs_arguments(sweep, number, _DATA_ROOT.value, folder)
        command = [sys.executable, "-m", "sl_discs.discs_main", *arguments, *shared, *more]
        sys.stdout.write(f"[{number}/{len(sweep.runs)}] {shlex.join(command)}\n")
        sys.stdout.flush()
        if not _LIST.value and subprocess.run(command, check=False).returncode:
            failed.append(number)
    if failed:
        sys.stderr.write(
            f"error: {len(failed)} of the runs failed; --only={','.join(map(str, failed))} repeats them\n"
        )
        return 1
    if not _LIST.value:
        sys.stdout.write(f"saved in {root}\n")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit codes as above."""
    launch.add_working_directory()
    own, runs = launch.split_arguments(list(argv))
    return run_command(own, "", __doc__, FLAGS, lambda _: run(runs))
