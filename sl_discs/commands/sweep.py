r"""Command: performs the runs of a sweep file in DISCS's format (`run_configs`) with any number of workers.

sl-discs sweep list    --sweep=FILE       prints the command of each run
sl-discs sweep run     --sweep=FILE       starts a worker, which performs the missing runs
sl-discs sweep status  --sweep=FILE       prints which runs are done, running, failed and missing
sl-discs sweep collect --sweep=FILE       writes a table of the results, collect.csv and collect.json

Each run is a separate `sl-discs run` with its own folder in --save_root. Start any number of workers, on any number
of machines that share this folder: each run is performed by one worker, and that of a killed worker is taken over by
another. Arguments after `--`, such as `-- --engine=cpu`, are passed to every run; all commands of a sweep must be
given the same.

The exit code of `run` is 0 for success, 1 if runs have failed, 2 after a one-line message about bad input, and 75 if
SIGTERM, SIGINT or SIGUSR1 interrupted it and it should be started again.
"""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from sl_discs.command import choice_before_flags, refuse_flags, run_command, say
from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError
from sl_discs.files import check_writable
from sl_discs.sweeps import tables
from sl_discs.sweeps.arguments import check_runnable, command_line, left_out, parse_extra, run_arguments
from sl_discs.sweeps.claims import LEAST_STALE_S
from sl_discs.sweeps.run_folder import Run, state_of
from sl_discs.sweeps.sweep_file import Sweep, read_sweep
from sl_discs.sweeps.worker import Worker

_COMMANDS = ("list", "run", "status", "collect")

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_SWEEP = flags.DEFINE_string(
    "sweep", None, "Sweep file, such as configs/sweep/seeds_and_samplers.py.", flag_values=FLAGS
)
_SAVE_ROOT = flags.DEFINE_string(
    "save_root",
    None,
    "Folder of the runs' folders; default: results/<the file's folder>-<the file>.",
    flag_values=FLAGS,
)
_INDEX = flags.DEFINE_integer(
    "sweep_index",
    None,
    "Number of the only run to perform or show, from 1 as in DISCS; default: all.",
    lower_bound=1,
    flag_values=FLAGS,
)
_DATA_ROOT = flags.DEFINE_string(
    "data_root",
    None,
    "Folder searched for DISCS's files, then for an archive; default: that of the model config.",
    flag_values=FLAGS,
)
_SAMPLERS = flags.DEFINE_list(
    "samplers",
    None,
    "Only these of the sweep's samplers; sl_gwg takes the settings of gwg. Renumbers the runs.",
    flag_values=FLAGS,
)
_STALE = flags.DEFINE_float(
    "stale_after",
    300.0,
    "Seconds without a sign of life after which the run of a killed worker is taken over. On the worker's own "
    "machine this happens at once.",
    lower_bound=LEAST_STALE_S,
    flag_values=FLAGS,
)
_RETRY = flags.DEFINE_boolean("retry", False, "With run: repeat failed runs.", flag_values=FLAGS)


def _chosen(sweep: Sweep) -> list[int]:
    count = len(sweep.runs)
    if _INDEX.value is not None and _INDEX.value > count:
        raise InputError(f"--sweep_index={_INDEX.value}: the sweep has runs 1 to {count}")
    return list(range(1, count + 1)) if _INDEX.value is None else [_INDEX.value]


def run(arguments: Sequence[str], more: Sequence[str]) -> int:
    """Lists, performs or shows the runs."""
    what = choice_before_flags(arguments, _COMMANDS)
    if what != "run":
        refuse_flags(FLAGS, ["retry"], f"in `sweep {what}`")
    if what == "list":
        refuse_flags(FLAGS, ["stale_after"], "in `sweep list`")
    if not _SWEEP.value:
        raise InputError("no sweep is given; pass --sweep=FILE, such as configs/sweep/seeds_and_samplers.py")
    path = launch.find_file(_SWEEP.value)
    if path is None:
        raise InputError(f"--sweep: there is no file {_SWEEP.value}, here or next to a package discs on PYTHONPATH")
    sweep = read_sweep(path, _SAMPLERS.value)
    root = Path(_SAVE_ROOT.value or Path("results") / sweep.name)
    extra = parse_extra(more)
    runs = [
        Run(k, sweep.label(k), root / sweep.folder(k), run_arguments(sweep, k, _DATA_ROOT.value, extra))
        for k in _chosen(sweep)
    ]
    if what == "status":
        lines = tables.status_lines(sweep, runs, [state_of(one, _STALE.value) for one in runs])
    elif what == "collect":
        lines = tables.collect(sweep, runs, root)
    else:
        check_runnable(sweep, [one.number for one in runs], [one.arguments for one in runs])
        if left_out(sweep):
            sys.stderr.write(f"ignored fields, which only DISCS uses: {', '.join(left_out(sweep))}\n")
        if what == "run":
            return _worker(runs, root)
        lines = [f"[{one.number}/{len(sweep.runs)}] {shlex.join(_program(one))}" for one in runs]
    say("\n".join(lines))
    return 0


def _program(one: Run, start: Sequence[str] = ("sl-discs",)) -> list[str]:
    """The command of a run; `start` starts `sl-discs`."""
    return [*start, "run", *command_line(one.arguments, one.folder)]


def _worker(runs: Sequence[Run], root: Path) -> int:
    check_writable(root)
    start = functools.partial(_program, start=(sys.executable, "-m", "sl_discs"))
    worker = Worker(runs, start, say, _STALE.value, retry=_RETRY.value)
    code = worker.work()
    states = [state_of(one, _STALE.value).name for one in runs]
    say(f"{states.count('done')} of {len(runs)} runs are done, in {root}")
    return code


def main(argv: Sequence[str]) -> int:
    """Exit codes as above."""
    launch.add_working_directory()
    own, runs = launch.split_arguments(list(argv))
    return run_command(own, "|".join(_COMMANDS), __doc__, FLAGS, lambda arguments: run(arguments, runs))
