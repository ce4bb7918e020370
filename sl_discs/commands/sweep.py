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

import itertools
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sl_discs.command import Command, Given, own_flags, refuse_flags, say
from sl_discs.discs_plugin import launch
from sl_discs.errors import RESUME_ME, InputError
from sl_discs.files import check_writable
from sl_discs.sweeps import sweep_file, sweep_runs
from sl_discs.sweeps.sweep_file import Sweep
from sl_discs.sweeps.sweep_runs import DONE, FAILED, INTERRUPTED, MISSING, Run, state_of
from sl_discs.terminal import tell

# Flags that a job of Slurm is given as the command was.
_PASSED_ON = ("import", "sweep", "save_root", "data_root", "samplers", "retry")

FLAGS, define = own_flags()
define.string("sweep", None, "Sweep file, such as configs/sweep/seeds_and_samplers.py.", required=True)
define.string("save_root", None, "Folder of the runs' folders; default: results/<the file's folder>-<the file>.")
define.integer("sweep_index", None, "Number of the only run to perform or show, from 1; default: all.", lower_bound=1)
words = "Folder searched for DISCS's files, then for an archive; default: that of the model config."
define.string("data_root", None, words)
words = "Only these of the sweep's samplers; sl_gwg takes the settings of gwg. Renumbers the runs."
define.list("samplers", None, words)
define.enum("executor", "local", ("local", "slurm"), "With run: who performs the runs.")
words = "With run: how many at a time, which share this machine's cores; default: 1, or all that Slurm allows."
define.integer("parallel", None, words, lower_bound=1)
words = "With --executor=slurm: options of sbatch, such as partition=gpu,gpus_per_node=1,time=4:00:00."
define.list("slurm", [], words)
define.boolean("dry_run", False, "With --executor=slurm: print the script instead of submitting it.")
define.boolean("retry", False, "With run: repeat failed runs.")


def _sweep(given: Given) -> int:
    [what] = given.arguments
    if what != "run":
        refuse_flags(FLAGS, ["retry", "executor", "parallel", "slurm", "dry_run"], f"in `sweep {what}`")
    elif FLAGS.executor != "slurm":
        refuse_flags(FLAGS, ["slurm", "dry_run"], "without --executor=slurm")
    sweep = chosen_sweep(FLAGS.sweep, FLAGS.samplers)
    count, only = len(sweep.runs), FLAGS.sweep_index
    if only is not None and only > count:
        raise InputError(f"--sweep_index={only}: the sweep has runs 1 to {count}")
    root, extra = Path(FLAGS.save_root or Path("results") / sweep.name), sweep_file.parse_extra(given.more)
    runs = [_run_of(sweep, k, root, extra) for k in (range(1, count + 1) if only is None else [only])]
    if what == "status":
        lines = sweep_runs.status_lines(sweep, runs)
    elif what == "collect":
        lines = sweep_runs.collect(sweep, runs, root)
    else:
        sweep_file.check_runnable(sweep, [one.number for one in runs], [one.arguments for one in runs])
        if ignored := sweep_file.left_out(sweep):
            tell(f"ignored fields, which only DISCS uses: {', '.join(ignored)}")
        if what == "run":
            sweep_runs.check_folders(runs)
            if FLAGS.executor == "slurm":
                return _submit(sweep, runs, root, given.more)
            return _perform(runs, root)
        lines = [f"[{one.number}/{count}] {shlex.join(['sl-discs', *one.command[3:]])}" for one in runs]
    say("\n".join(lines))
    return 0


def chosen_sweep(name: str, samplers: Sequence[str] | None) -> Sweep:
    """Returns the sweep of a file, of which only these samplers are run; None: all."""
    path = launch.find_file(name)
    if path is None:
        raise InputError(f"--sweep: there is no file {name}, here or next to a package discs on PYTHONPATH")
    return sweep_file.read_sweep(path, samplers)


def _run_of(sweep: Sweep, number: int, root: Path, extra: Mapping[str, str]) -> Run:
    folder, arguments = root / sweep.folder(number), sweep_file.run_arguments(sweep, number, FLAGS.data_root, extra)
    command = (sys.executable, "-m", "sl_discs", "run", *sweep_file.command_line(arguments, folder))
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


main = Command(
    "list|run|status|collect", __doc__, FLAGS, _sweep, passes_on=True, prepare=launch.add_working_directory
)
