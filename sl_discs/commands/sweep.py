r"""Performs the runs of a sweep file in DISCS's format (`run_configs`).

sl-discs sweep run     --sweep=FILE       performs the missing runs, here in turn or on a Slurm cluster
sl-discs sweep status  --sweep=FILE       prints which runs are done, running, failed and missing
sl-discs sweep collect --sweep=FILE       writes a table of the results, collect.csv and collect.json

Each run is a separate `sl-discs run` with its own folder in --save_root. `run` skips what is done
or performed by somebody else, and continues interrupted runs from their checkpoints, so the same
command may be started several times, here or on other machines, to share the runs. With
--executor=slurm it submits an array of --parallel jobs that do so. With --dry_run it prints the
script of the array or, without Slurm, the `sl-discs run` of each run; --sweep_index chooses one, for
other tools. Arguments after `--`, such as
`-- --engine=cpu`, are passed to every run; all commands of a sweep must be given the same.

The exit code of `run` is 0 for success, 1 if runs have failed, 2 after a one-line message about bad
input, and 75 if SIGTERM, SIGINT or SIGUSR1 interrupted it and it should be started again.
"""  # noqa: E501

import itertools
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sl_discs.commands import launch
from sl_discs.commands.command import Command, Given, own_flags, refuse_flags
from sl_discs.commands.run import check_flags
from sl_discs.experiment import sweep_file, sweep_runs
from sl_discs.experiment.sweep_file import Sweep
from sl_discs.experiment.sweep_runs import DONE, FAILED, INTERRUPTED, MISSING, Run, state_of
from sl_discs.support.errors import RESUME_ME, InputError, errors_of
from sl_discs.support.files import check_writable
from sl_discs.support.terminal import say, tell

# With -P, files of the working directory do not take the place of modules.
PROGRAM = "-P", "-m", "sl_discs"
# Flags that other commands are given as this one was.
_PASSED_ON = ("import", "sweep", "save_root", "data_root", "samplers", "sweep_index")

FLAGS, define = own_flags()
define.string(
    "sweep", None, "Sweep file, such as configs/sweep/seeds_and_samplers.py.", required=True
)
define.string(
    "save_root",
    None,
    "Folder of the runs' folders; default: results/<the file's folder>-<the file>.",
)
define.integer(
    "sweep_index",
    None,
    "Number of the only run to perform or show, from 1; default: all.",
    lower_bound=1,
)
help_text = (
    "Folder searched for DISCS's files, then for an archive; default: that of the model config."
)
define.string("data_root", None, help_text)
help_text = (
    "Only these of the sweep's samplers; sl_gwg takes the settings of gwg. Renumbers the runs."
)
define.list("samplers", None, help_text)
define.enum("executor", "local", ("local", "slurm"), "With run: who performs the runs.")
help_text = (
    "With --executor=slurm: number of jobs, each of which performs one run after the other; "
    "default: as many as runs are missing."
)
define.integer("parallel", None, help_text, lower_bound=1)
help_text = (
    "With --executor=slurm: options of sbatch, in quotes, such as "
    "'--partition=gpu --gpus-per-node=1 --time=4:00:00'."
)
define.string("slurm", "", help_text)
define.boolean("dry_run", False, "With run: print the commands, or the script for Slurm, instead.")
define.boolean("retry", False, "With run: repeat failed runs.")


def _sweep(given: Given) -> int:
    [what] = given.arguments
    if what != "run":
        only_run = ["executor", "parallel", "slurm", "dry_run", "retry"]
        refuse_flags(FLAGS, only_run, f"in `sweep {what}`")
    elif FLAGS.executor != "slurm":
        refuse_flags(FLAGS, ["parallel", "slurm"], "without --executor=slurm")
    sweep = chosen_sweep(FLAGS.sweep, FLAGS.samplers)
    count = len(sweep.runs)
    only = FLAGS.sweep_index
    if only is not None and only > count:
        raise InputError(f"--sweep_index={only}: the sweep has runs 1 to {count}")
    root = Path(FLAGS.save_root or Path("results") / sweep.name)
    extra = sweep_file.parse_extra(given.more)
    sweep = sweep_file.with_overrides(sweep, extra)
    runs = [
        _run_of(sweep, k, root, extra) for k in (range(1, count + 1) if only is None else [only])
    ]
    if what == "status":
        lines = sweep_runs.status_lines(sweep, runs)
    elif what == "collect":
        lines = sweep_runs.collect(sweep, runs, root)
    else:
        sweep_file.check_runnable(
            sweep, [run.number for run in runs], [run.arguments for run in runs]
        )
        for run in runs:
            with errors_of(f"run {run.number}"):
                check_flags(run.command[len(PROGRAM) + 2 :])
        if ignored := sweep_file.left_out(sweep):
            tell(f"ignored fields, which only DISCS uses: {', '.join(ignored)}")
        sweep_runs.check_folders(runs)
        return _perform(sweep, runs, root, given.more)
    say("\n".join(lines))
    return 0


def chosen_sweep(name: str, samplers: Sequence[str] | None) -> Sweep:
    """Returns the sweep of a file, of which only these samplers are run; None: all."""
    path = launch.find_file(name)
    if path is None:
        raise InputError(
            f"--sweep: there is no file {name}, here or next to a package discs on PYTHONPATH"
        )
    return sweep_file.read_sweep(path, samplers)


def _run_of(sweep: Sweep, number: int, root: Path, extra: Mapping[str, str]) -> Run:
    folder = root / sweep.folder(number)
    arguments = sweep_file.run_arguments(sweep, number, FLAGS.data_root, extra)
    command = (sys.executable, *PROGRAM, "run", *sweep_file.command_line(arguments, folder, extra))
    return Run(number, sweep.label(number), folder, arguments, command)


def _command(more: Sequence[str]) -> str:
    """Returns the line of a shell that performs the same runs."""
    same = [FLAGS[name].serialize().splitlines() for name in _PASSED_ON if FLAGS[name].present]
    command = [sys.executable, *PROGRAM, "sweep", "run", *itertools.chain(*same)]
    return shlex.join([*command, "--", *more] if more else command)


def _perform(sweep: Sweep, runs: Sequence[Run], root: Path, more: Sequence[str]) -> int:
    """Performs the missing runs here, submits jobs that do, or prints what would be done."""
    in_slurm = FLAGS.executor == "slurm"
    wanted = (MISSING, FAILED) if FLAGS.retry else (MISSING,)
    todo = [run for run in runs if state_of(run).name in wanted]
    if not todo and (in_slurm or FLAGS.dry_run):
        say("nothing to do: all runs are done, running or failed (--retry repeats failed ones)")
        return 0
    script = ""
    if in_slurm:
        jobs = min(FLAGS.parallel or len(todo), len(todo))
        folder = root / "slurm"
        script = sweep_runs.job_script(sweep.name, jobs, _command(more), folder, FLAGS.slurm)
    if FLAGS.dry_run:
        commands = [shlex.join(["sl-discs", *run.command[len(PROGRAM) + 1 :]]) for run in todo]
        say(script.rstrip() or "\n".join(commands))
        return 0
    check_writable(root / "slurm" if in_slurm else root)
    if FLAGS.retry:
        sweep_runs.forget_failures(runs)
    if in_slurm:
        say(f"{len(todo)} of {len(runs)} runs: {sweep_runs.submit(script)}")
        return 0
    ended = sweep_runs.perform_here(runs)
    states = [state_of(run).name for run in runs]
    failed = states.count(FAILED)
    hint = f", {failed} failed; --retry repeats these" if failed else ""
    say(f"{states.count(DONE)} of {len(runs)} runs are done, in {root}{hint}")
    return RESUME_ME if INTERRUPTED in ended else int(failed > 0)


main = Command(
    "run|status|collect",
    __doc__,
    FLAGS,
    _sweep,
    passes_on=True,
)
