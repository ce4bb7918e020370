r"""Performs the runs of a sweep file in DISCS's format (`run_configs`).

sl-discs sweep list    --sweep=FILE       prints the command of each run
sl-discs sweep run     --sweep=FILE       performs the missing runs, here or on a Slurm cluster
sl-discs sweep status  --sweep=FILE       prints which runs are done, running, failed and missing
sl-discs sweep collect --sweep=FILE       writes a table of the results, collect.csv and collect.json

Each run is a separate `sl-discs run` with its own folder in --save_root. `run` skips what is done or performed by
somebody else, and continues interrupted runs from their checkpoints. With --executor=slurm it submits a job array
with a job for each run, or prints its script with --dry_run. Arguments after `--`, such as `-- --engine=cpu`, are
passed to every run; all commands of a sweep must be given the same.

The exit code of `run` is 0 for success, 1 if runs have failed, 2 after a one-line message about bad input, and 75 if
SIGTERM, SIGINT or SIGUSR1 interrupted it and it should be started again.
"""

from __future__ import annotations

import itertools
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sl_discs.command import Command, Given, choice_before_flags, own_flags, refuse_flags, say
from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError
from sl_discs.experiment.checkpoint import RESUME_ME
from sl_discs.files import check_writable
from sl_discs.sweeps import sweep_runs
from sl_discs.sweeps.sweep_file import (
    Sweep,
    check_runnable,
    command_line,
    left_out,
    parse_extra,
    read_sweep,
    run_arguments,
)
from sl_discs.sweeps.sweep_runs import DONE, FAILED, INTERRUPTED, MISSING, Run, state_of
from sl_discs.terminal import tell

_COMMANDS = ("list", "run", "status", "collect")
# Flags that a job of Slurm is given as the command was.
_PASSED_ON = ("import", "sweep", "save_root", "data_root", "samplers", "retry")

FLAGS, define = own_flags()
define.string("sweep", None, "Sweep file, such as configs/sweep/seeds_and_samplers.py.")
define.string("save_root", None, "Folder of the runs' folders; default: results/<the file's folder>-<the file>.")
define.integer(
    "sweep_index", None, "Number of the only run to perform or show, from 1 as in DISCS; default: all.", lower_bound=1
)
define.string(
    "data_root", None, "Folder searched for DISCS's files, then for an archive; default: that of the model config."
)
define.list(
    "samplers", None, "Only these of the sweep's samplers; sl_gwg takes the settings of gwg. Renumbers the runs."
)
define.enum("executor", "local", ("local", "slurm"), "With run: who performs the runs.")
define.integer(
    "parallel",
    None,
    "With run: how many runs to perform at a time; default: 1, with Slurm as many as it allows. On this machine each "
    "gets an equal part of the cores.",
    lower_bound=1,
)
define.list(
    "slurm",
    [],
    "With --executor=slurm: options of sbatch, such as partition=gpu,gpus_per_node=1,time=4:00:00.",
)
define.boolean("dry_run", False, "With --executor=slurm: print the script instead of submitting it.")
define.boolean("retry", False, "With run: repeat failed runs.")


def _sweep(given: Given) -> int:
    what = choice_before_flags(given.arguments, _COMMANDS)
    if what != "run":
        refuse_flags(FLAGS, ["retry", "executor", "parallel", "slurm", "dry_run"], f"in `sweep {what}`")
    elif FLAGS.executor != "slurm":
        refuse_flags(FLAGS, ["slurm", "dry_run"], "without --executor=slurm")
    if not FLAGS.sweep:
        raise InputError("no sweep is given; pass --sweep=FILE, such as configs/sweep/seeds_and_samplers.py")
    path = launch.find_file(FLAGS.sweep)
    if path is None:
        raise InputError(f"--sweep: there is no file {FLAGS.sweep}, here or next to a package discs on PYTHONPATH")
    sweep = read_sweep(path, FLAGS.samplers)
    count, only = len(sweep.runs), FLAGS.sweep_index
    if only is not None and only > count:
        raise InputError(f"--sweep_index={only}: the sweep has runs 1 to {count}")
    root, extra = Path(FLAGS.save_root or Path("results") / sweep.name), parse_extra(given.more)
    runs = [_run_of(sweep, k, root, extra) for k in (range(1, count + 1) if only is None else [only])]
    if what == "status":
        lines = sweep_runs.status_lines(sweep, runs)
    elif what == "collect":
        lines = sweep_runs.collect(sweep, runs, root)
    else:
        check_runnable(sweep, [one.number for one in runs], [one.arguments for one in runs])
        if left_out(sweep):
            tell(f"ignored fields, which only DISCS uses: {', '.join(left_out(sweep))}")
        if what == "run":
            sweep_runs.check_folders(runs)
            if FLAGS.executor == "slurm":
                return _submit(sweep, runs, root, given.more)
            return _perform(runs, root)
        lines = [f"[{one.number}/{count}] {shlex.join(['sl-discs', *one.command[3:]])}" for one in runs]
    say("\n".join(lines))
    return 0


def _run_of(sweep: Sweep, number: int, root: Path, extra: Mapping[str, str]) -> Run:
    folder, arguments = root / sweep.folder(number), run_arguments(sweep, number, FLAGS.data_root, extra)
    command = (sys.executable, "-m", "sl_discs", "run", *command_line(arguments, folder))
    return Run(number, sweep.label(number), folder, arguments, command)


def _submit(sweep: Sweep, runs: Sequence[Run], root: Path, more: Sequence[str]) -> int:
    """Submits the missing runs to Slurm, or prints the script that would do it."""
    todo = {MISSING, FAILED} if FLAGS.retry else {MISSING}
    numbers = [one.number for one in runs if state_of(one).name in todo]
    if not numbers:
        say("nothing to submit: all runs are done, running or failed (--retry repeats failed ones)")
        return 0
    flags = [FLAGS[name].serialize().splitlines() for name in _PASSED_ON if FLAGS[name].present]
    words = [sys.executable, "-m", "sl_discs", "sweep", "run", *itertools.chain(*flags)]
    passed_on = shlex.join(["--", *more]) if more else ""
    command = f'{shlex.join(words)} --sweep_index="$SLURM_ARRAY_TASK_ID" {passed_on}'.strip()
    script = sweep_runs.job_script(sweep.name, numbers, command, root / "slurm", FLAGS.slurm, FLAGS.parallel)
    if FLAGS.dry_run:
        say(script.rstrip())
        return 0
    check_writable(root / "slurm")
    say(f"{len(numbers)} of {len(runs)} runs: {sweep_runs.submit(script)}")
    return 0


def _perform(runs: Sequence[Run], root: Path) -> int:
    check_writable(root)
    ended = sweep_runs.perform_here(runs, FLAGS.retry, FLAGS.parallel or 1)
    states = [(one, state_of(one)) for one in runs]
    failed = [f"[{one.number}] failed: {state.detail}" for one, state in states if state.name == FAILED]
    counts = f"{sum(state.name == DONE for _, state in states)} of {len(runs)} runs are done, in {root}"
    say("\n".join([*failed, *(["--retry repeats failed runs"] if failed else []), counts]))
    return RESUME_ME if INTERRUPTED in ended else 1 if failed else 0


main = Command("|".join(_COMMANDS), __doc__, FLAGS, _sweep, passes_on=True, prepare=launch.add_working_directory)
