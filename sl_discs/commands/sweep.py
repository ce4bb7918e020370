r"""Performs the runs of a sweep file in DISCS's format (`run_configs`).

sl-discs sweep list    --sweep=FILE       prints a command for each run, one a line
sl-discs sweep run     --sweep=FILE       performs the missing runs, here in turn or on a Slurm cluster
sl-discs sweep status  --sweep=FILE       prints which runs are done, running, failed and missing
sl-discs sweep collect --sweep=FILE       writes a table of the results, collect.csv and collect.json

Each run is a separate `sl-discs run` with its own folder in --save_root. `run` skips what is done
or performed by somebody else, and continues interrupted runs from their checkpoints. With
--executor=slurm it submits job arrays with a job for each missing run. With --dry_run it prints
their scripts or, without Slurm, the `sl-discs run` of each run. Other tools may perform the
commands of `list`, in any order and in parallel. Arguments after `--`, such as `-- --engine=cpu`,
are passed to every run; all commands of a sweep must be given the same.

The exit code of `run` is 0 for success, 1 if runs have failed, 2 after a one-line message about bad
input, and 75 if SIGTERM, SIGINT or SIGUSR1 interrupted it and it should be started again.
"""  # noqa: E501

import contextlib
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
from sl_discs.support.locks import only_run_in
from sl_discs.support.terminal import say, tell

_NOTHING = "all runs are done, running, waiting or failed (--retry repeats failed ones)"
# With -P, files of the working directory do not take the place of modules.
_PROGRAM = "-P", "-m", "sl_discs"
# Flags that the command of a run is given as this one was.
_PASSED_ON = ("import", "sweep", "save_root", "data_root", "samplers", "retry")

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
words = "Folder searched for DISCS's files, then for an archive; default: that of the model config."
define.string("data_root", None, words)
words = "Only these of the sweep's samplers; sl_gwg takes the settings of gwg. Renumbers the runs."
define.list("samplers", None, words)
define.enum("executor", "local", ("local", "slurm"), "With run: who performs the runs.")
words = (
    "With --executor=slurm: how many jobs of an array run at a time; default: all that Slurm "
    "allows."
)
define.integer("parallel", None, words, lower_bound=1)
words = (
    "With --executor=slurm: options of sbatch, such as "
    "partition=gpu,gpus_per_node=1,time=4:00:00; one that has no value comes first, as in "
    "exclusive,partition=gpu. May be repeated."
)
define.multi_string("slurm", [], words)
define.boolean("dry_run", False, "With run: print the commands, or the script for Slurm, instead.")
define.boolean("retry", False, "With run and list: repeat failed runs.")


def _sweep(given: Given) -> int:
    [what] = given.arguments
    if what != "run":
        refuse_flags(FLAGS, ["executor", "parallel", "slurm", "dry_run"], f"in `sweep {what}`")
        if what != "list":
            refuse_flags(FLAGS, ["retry"], f"in `sweep {what}`")
    elif FLAGS.executor != "slurm":
        refuse_flags(
            FLAGS,
            ["parallel", "slurm"],
            "without --executor=slurm; `sweep list` prints commands for others",
        )
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
        jobs = {}
        try:
            jobs = sweep_runs.jobs_in_queue(root / "slurm")
        except InputError as error:
            tell(f"note: runs that wait for Slurm are shown as missing: {error}")
        lines = sweep_runs.status_lines(sweep, runs, jobs)
    elif what == "collect":
        lines = sweep_runs.collect(sweep, runs, root)
    else:
        sweep_file.check_runnable(
            sweep, [one.number for one in runs], [one.arguments for one in runs]
        )
        for one in runs:
            with errors_of(f"run {one.number}"):
                check_flags(one.command[len(_PROGRAM) + 2 :])
        if ignored := sweep_file.left_out(sweep):
            tell(f"ignored fields, which only DISCS uses: {', '.join(ignored)}")
        if what == "run":
            sweep_runs.check_folders(runs)
            if FLAGS.executor == "slurm":
                return _submit(sweep, runs, root, given.more)
            if not FLAGS.dry_run:
                return _perform(runs, root)
            lines = [
                shlex.join(["sl-discs", *one.command[len(_PROGRAM) + 1 :]])
                for one in _todo(runs, {})
            ]
            say("\n".join(lines or [f"nothing to do: {_NOTHING}"]))
            return 0
        lines = [_command(["sl-discs"], str(one.number), given.more) for one in runs]
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
    command = (sys.executable, *_PROGRAM, "run", *sweep_file.command_line(arguments, folder, extra))
    return Run(number, sweep.label(number), folder, arguments, command)


def _command(program: Sequence[str], index: str, more: Sequence[str]) -> str:
    """Returns the line of a shell that performs a run of the same sweep; `index` is its number, as
    shells read it.
    """
    flags = [FLAGS[name].serialize().splitlines() for name in _PASSED_ON if FLAGS[name].present]
    words = [
        shlex.join([*program, "sweep", "run", *itertools.chain(*flags)]),
        f"--sweep_index={index}",
    ]
    if more:
        words.append(shlex.join(["--", *more]))
    return " ".join(words)


def _submit(sweep: Sweep, runs: Sequence[Run], root: Path, more: Sequence[str]) -> int:
    """Submits the missing runs to Slurm, or prints the script that would do it."""
    folder = root / "slurm"
    with contextlib.ExitStack() as stack:
        if not FLAGS.dry_run:
            stack.enter_context(only_run_in(check_writable(folder)))  # until the jobs are noted
        todo = _todo(runs, sweep_runs.jobs_in_queue(folder))
        for before, jobs in sweep_runs.arrays_of(todo).items():
            command = _command(
                [sys.executable, *_PROGRAM], f'"$((SLURM_ARRAY_TASK_ID + {before}))"', more
            )
            script = sweep_runs.job_script(
                sweep.name, jobs, command, folder, FLAGS.slurm, FLAGS.parallel
            )
            if FLAGS.dry_run:
                say(script.rstrip())
            else:
                say(f"{len(jobs)} of {len(runs)} runs: {sweep_runs.submit(script, jobs, folder)}")
        if not todo:
            say(f"nothing to submit: {_NOTHING}")
    return 0


def _todo(runs: Sequence[Run], jobs: Mapping[str, str]) -> list[Run]:
    wanted = (MISSING, FAILED) if FLAGS.retry else (MISSING,)
    return [one for one in runs if state_of(one, jobs).name in wanted]


def _perform(runs: Sequence[Run], root: Path) -> int:
    check_writable(root)
    ended = sweep_runs.perform_here(runs, FLAGS.retry)
    states = [(one, state_of(one)) for one in runs]
    failed = [
        f"[{one.number}] failed: {state.detail}" for one, state in states if state.name == FAILED
    ]
    counts = (
        f"{sum(state.name == DONE for _, state in states)} of {len(runs)} runs are done, in {root}"
    )
    say("\n".join([*failed, *(["--retry repeats failed runs"] if failed else []), counts]))
    return RESUME_ME if INTERRUPTED in ended else 1 if failed else 0


main = Command(
    "list|run|status|collect",
    __doc__,
    FLAGS,
    _sweep,
    passes_on=True,
    prepare=launch.add_working_directory,
)
