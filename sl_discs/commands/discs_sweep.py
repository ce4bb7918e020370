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

from sl_discs.command import own_flags, run_command
from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError
from sl_discs.instances.dataset import check_data_root
from sl_discs.own_code import imported
from sl_discs.sweeps.sweep_file import Sweep, discs_arguments, read_sweep

FLAGS, define = own_flags()
launch.define_flags(FLAGS)
define.string("sweep", None, "Sweep file; DISCS's own are also found next to its package.")
define.string("data_root", "./sco", "Folder of DISCS's graphs, for combinatorial problems.")
define.string("save_root", None, "Folder of the runs' folders; default: ./discs-MODEL-NAME.")
define.list("samplers", None, "Only these of the sweep's samplers; sl_gwg takes the settings of gwg.")
define.list("only", None, "Numbers of the runs to perform, as --list shows them; default: all.")
define.boolean("list", False, "Print the commands of the runs without running them.")


def _chosen(sweep: Sweep) -> list[int]:
    numbers = range(1, len(sweep.runs) + 1)
    if FLAGS.only is None:
        return list(numbers)
    wrong = [text for text in FLAGS.only if not text.isdecimal() or int(text) not in numbers]
    if wrong:
        raise InputError(f"--only: there is no run {wrong[0]!r}; the sweep has 1 to {len(sweep.runs)}")
    return [int(text) for text in FLAGS.only]


def run(more: Sequence[str]) -> int:
    """Performs or lists the runs."""
    launch.register_from_flags(FLAGS)
    if not FLAGS.sweep:
        raise InputError("no sweep is given; pass --sweep=FILE, such as discs/run_configs/co/mis/...")
    path = launch.find_file(FLAGS.sweep)
    if path is None:
        raise InputError(f"--sweep: there is no file {FLAGS.sweep}, here or in {launch.checkout()}")
    sweep = read_sweep(path, FLAGS.samplers)
    if sweep.graph_type and FLAGS["data_root"].present and not FLAGS.list:
        check_data_root(FLAGS.data_root)
    root = Path(FLAGS.save_root or f"discs-{sweep.name}")
    shared = ["--nocompat"] if not FLAGS.compat else []
    shared += [f"--import={code}" for code in imported()]
    shared += [f"--fixes={','.join(FLAGS.fixes)}"] if FLAGS.fixes else []
    failed = []
    for number in _chosen(sweep):
        folder = root / sweep.folder(number)
        arguments = discs_arguments(sweep, number, FLAGS.data_root, folder)
        command = [sys.executable, "-m", "sl_discs.discs_main", *arguments, *shared, *more]
        sys.stdout.write(f"[{number}/{len(sweep.runs)}] {shlex.join(command)}\n")
        sys.stdout.flush()
        if not FLAGS.list and subprocess.run(command, check=False).returncode:
            failed.append(number)
    if failed:
        sys.stderr.write(
            f"error: {len(failed)} of the runs failed; --only={','.join(map(str, failed))} repeats them\n"
        )
        return 1
    if not FLAGS.list:
        sys.stdout.write(f"saved in {root}\n")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit codes as above."""
    launch.add_working_directory()
    own, runs = launch.split_arguments(list(argv))
    return run_command(own, "", __doc__, FLAGS, lambda _: run(runs))
