r"""Command: the runs of a sweep file of DISCS's form (`run_configs`), shared by any number of workers.

sl-discs sweep list    --sweep=FILE       the command of each run, a line each
sl-discs sweep run     --sweep=FILE       a worker: does the runs that are missing
sl-discs sweep status  --sweep=FILE       what is done, running, failed and missing
sl-discs sweep collect --sweep=FILE       one table of the results, also as collect.csv and collect.json

Each run is a `sl-discs run` of its own with a folder of its own in --save_root. Start `run` as often as you
like, on any number of machines that share this folder: every run is done by one worker, one that was killed loses its
run to another. What follows `--` goes to every run, as in `-- --engine=cpu`; all commands of a sweep need the same.

Exit code of `run`: 0, 1 if runs have failed, 2 and one line on bad input, 75 if it was interrupted, by SIGTERM,
SIGINT or SIGUSR1, and should be started again.
"""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from sl_discs.atomic import check_writable
from sl_discs.command import choice_before_flags, refuse_flags, run_command, say
from sl_discs.discs_plugin import launch
from sl_discs.errors import InputError
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
    "sweep", None, "The sweep file, such as configs/sweep/seeds_and_samplers.py.", flag_values=FLAGS
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
    "The one run to do or show, counted from 1 as DISCS counts; default: all.",
    lower_bound=1,
    flag_values=FLAGS,
)
_DATA_ROOT = flags.DEFINE_string(
    "data_root",
    None,
    "Searched for DISCS's files, then for an archive; default: that of the model config.",
    flag_values=FLAGS,
)
_SAMPLERS = flags.DEFINE_list(
    "samplers",
    None,
    "Of the sweep's samplers take these; sl_gwg takes gwg's settings. Changes the runs' numbers.",
    flag_values=FLAGS,
)
_STALE = flags.DEFINE_float(
    "stale_after",
    300.0,
    "Seconds without a sign of life after which a run of a worker that was killed is taken over. On the worker's own "
    "machine it is taken over at once.",
    lower_bound=LEAST_STALE_S,
    flag_values=FLAGS,
)
_RETRY = flags.DEFINE_boolean("retry", False, "In run: do failed runs again.", flag_values=FLAGS)


def _chosen(sweep: Sweep) -> list[int]:
    count = len(sweep.runs)
    if _INDEX.value is not None and _INDEX.value > count:
        raise InputError(f"--sweep_index={_INDEX.value}: the sweep has runs 1 to {count}")
    return list(range(1, count + 1)) if _INDEX.value is None else [_INDEX.value]


def run(arguments: Sequence[str], more: Sequence[str]) -> int:
    """Lists, does or shows the runs."""
    what = choice_before_flags(arguments, _COMMANDS)
    if what != "run":
        refuse_flags(FLAGS, ["retry"], f"in `sweep {what}`")
    if what == "list":
        refuse_flags(FLAGS, ["stale_after"], "in `sweep list`")
    if not _SWEEP.value:
        raise InputError("no sweep is given; pass --sweep=FILE, such as configs/sweep/seeds_and_samplers.py")
    path = launch.find_file(_SWEEP.value)
    if path is None:
        raise InputError(f"--sweep: there is no file {_SWEEP.value}, here or beside a package discs on PYTHONPATH")
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
            sys.stderr.write(
                f"fields that mean something to DISCS alone are left out: {', '.join(left_out(sweep))}\n"
            )
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
