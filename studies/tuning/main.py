r"""Tunes the annealing and the sampler's settings for the best solutions on training instances.

python studies/tuning/main.py --dataset=mis/er_density/r-0.10 --sampler=sl_path_auxiliary
    --trials=100 \ --storage=tuning.journal

Any number of workers, on any number of machines, may run the same command at once; run again, it
continues where it stopped. A trial counts once it has ended, so that several workers may run a few
more than asked for. SIGTERM and SIGUSR1 stop it with exit code 75, losing only the current trial. A
trial first runs on a quarter of the training instances, and on the others unless it is among the
worse half of the trials so far. When all trials are done, each worker compares the best settings so
far with the base sampler at its defaults on the test instances, and saves them in
OUTPUT/<dataset>/<sampler>.json.
"""

import dataclasses
import functools
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import evaluation
import space
from evaluation import Tuning, format_difference, words_of
from sl_discs import __version__
from sl_discs.commands.command import Command, Given, own_flags
from sl_discs.engines.choice import ENGINES, choose_engine, leave_cards_alone
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.devices import one_device_per_core
from sl_discs.experiment.run_sampler import plans_in_memory
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import check_data_root, default_data_root
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import build_method, code_of, method_fields
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import PENALTY
from sl_discs.reproduction.tuned import Candidate, parse_dataset, read_tuned
from sl_discs.samplers.registry import is_localized, own_name, registered
from sl_discs.support.errors import InputError, Interrupted, MissingExtra
from sl_discs.support.files import check_writable
from sl_discs.support.signals import Notice, notice_of_end
from sl_discs.support.terminal import Advance, progress_bar, say
from space import annealing_of, point_of

FLAGS, define = own_flags()
define.string(
    "dataset", None, "Dataset, such as mis/er_density/r-0.10 or maxclique/rb.", required=True
)
words = "Sampler, such as sl_path_auxiliary."
define.string("sampler", None, words, required=True)
words = (
    "Settings to tune: annealing (with the base sampler's own fields), sl (localization), or "
    "all of these."
)
define.enum("search", "all", space.SEARCHES, words)
define.integer(
    "trials", 100, "Total number of trials of the study, over all calls and workers.", lower_bound=1
)
define.string(
    "storage", "tuning.journal", "File of the shared trials, on a file system that all workers see."
)
define.string(
    "study", None, "Name of the study in the storage; by default made from dataset and search."
)
words = (
    "File of tuned settings that replace the defaults: tried first, and kept where they are "
    "not tuned."
)
define.string("start", None, words)
define.integer(
    "train_instances",
    8,
    "Number of training instances: generated, or the last ones of a dataset.",
    1,
)
define.integer(
    "train_seed", 1, "Data seed of generated training instances; that of test instances is 0."
)
define.integer(
    "test_instances", None, "Number of test instances; by default that of the experiment config.", 1
)
define.integer(
    "test_seeds",
    1,
    "Runs of each test instance, with seeds 0, 1, ..., which are averaged.",
    1,
    1_000,
)
define.integer(
    "chains", None, "Number of chains; by default that of the experiment config.", lower_bound=1
)
define.integer(
    "chain_length",
    None,
    "Steps of a chain; by default those of the experiment config.",
    lower_bound=1,
)
define.string(
    "config", None, "Experiment config; by default configs/experiment/<problem>/<graph_type>.py."
)
words = "Folder searched for DISCS's files, then for an archive; default: ./sco, if it exists."
define.string("data_root", None, words)
define.float("penalty", PENALTY, "Penalty of a conflict in mis and maxclique, at least 1.")
define.enum("engine", "auto", ENGINES, "Engine that runs the chains.")
define.integer("seed", 0, "Seed of the choices; trial k has the run seed 1000 + k.", lower_bound=0)
define.string("output", "configs/sampler/tuned", "Root of the folders for tuned settings.")


def _start(sampler: str, default: Candidate, settings: Settings | None) -> Candidate:
    """Settings of everything that is not tuned; they have to fit `settings`, if given."""
    if FLAGS.start is None:
        return default
    found = read_tuned(FLAGS.start, settings)
    if registered(found.sampler["name"]).name != registered(sampler).name:
        raise InputError(
            f"--start={FLAGS.start} has settings of {found.sampler['name']}, not of {sampler}"
        )
    shared = {
        name: value
        for name, value in found.sampler.items()
        if name in default.sampler and name != "name"
    }
    return Candidate(default.sampler | shared, found.experiment)


def _tuned_base(sampler: str, path: Path, settings: Settings) -> Candidate | None:
    """Returns the tuned settings of a localized sampler's base, if any; InputError if they do not
    fit `settings`.
    """
    return read_tuned(path, settings) if is_localized(sampler) and path.is_file() else None


def _kind(tuning: Tuning, sampler: str, search: str) -> dict[str, Any]:
    settings = tuning.settings
    return {
        "dataset": tuning.train.name,
        "sampler": sampler,
        "search": search,
        "space": [dataclasses.asdict(one) for one in tuning.space],
        "start": dataclasses.asdict(tuning.start),
        "train": words_of(tuning.train),
        "graphs_sha256": tuning.train.digest(),
        "rungs": tuning.rungs,
        "chains": settings.batch_size,
        **{name: getattr(settings, name) for name in ("chain_length", "anneal_every")},
        "penalty": tuning.penalty,
        "version": __version__,
        **code_of(sampler),
    }


def _until(notice: Notice, progress: Advance) -> Advance:
    """Returns a progress function that raises Interrupted once the command is told to stop."""

    def advance(name: str, done: int, description: str = "") -> None:
        if notice.given:
            raise Interrupted(FLAGS.storage)
        progress(name, done, description)

    return advance


def _tune(given: Given) -> int:
    with notice_of_end() as notice:
        return _run(given.typed, notice)


def _run(command: str, notice: Notice) -> int:
    """Runs trials, and reports on the test instances when all are done."""
    one_device_per_core()
    keep_programs()
    if importlib.util.find_spec("optuna") is None:
        raise MissingExtra(
            "the search needs Optuna, which is not installed: pip install -e '.[tune]' in the clone"
        )
    import search

    sampler, wanted = own_name(FLAGS.sampler), FLAGS.search
    tuning, test, usual = _tuning(sampler, wanted)
    folder = check_writable(evaluation.folder_of(FLAGS.output, tuning.train))
    beside = folder / f"{registered(sampler).name}.json"
    _tuned_base(sampler, beside, tuning.settings)  # if it does not fit, no trial is run
    study = search.open_study(
        FLAGS.storage,
        FLAGS.study or f"{tuning.train.name} {sampler} {wanted}",
        _kind(tuning, sampler, wanted),
        space.restricted(tuning.space, point_of(tuning.start)),
        maximise=graph_kind(tuning.train.problem).maximise,
    )
    say(
        f"study {study.study_name!r} in {FLAGS.storage}: trained on graphs {words_of(tuning.train)}"
    )
    with progress_bar(tuning.chain_steps(tuning.train) * FLAGS.trials) as progress:

        def ended(trial) -> None:
            best = search.best_of_curve(study)
            so_far = (
                f"best {best[-1][1]:.4f} (trial {best[-1][0]})" if best else "none complete yet"
            )
            say(
                f"trial {trial.number}: {trial.value:.4f} on {trial.last_step} graphs"
                f"{', pruned' if trial.state.name == 'PRUNED' else ''}; {so_far}; "
                f"{trial.duration.total_seconds():.1f} s"
            )

        advance = functools.partial(_until(notice, progress), "trials")
        search.run_trials(study, tuning, FLAGS.trials, advance, ended)
    best, tuned_base = (
        tuning.candidate(study.best_trial.params),
        _tuned_base(sampler, beside, tuning.settings),
    )
    with progress_bar(tuning.chain_steps(test) * FLAGS.test_seeds) as progress:
        advance = _until(notice, progress)
        found = evaluation.held_out(
            tuning, test, FLAGS.test_seeds, best, usual, tuned_base, advance
        )
    counted, curve = search.counted_trials(study), search.best_of_curve(study)
    complete = sum(one.state.name == "COMPLETE" for one in counted)
    record = {
        "trials": len(counted),
        "complete": complete,
        "chain_length": tuning.settings.chain_length,
        "chains": tuning.settings.batch_size,
        "train": f"graphs {words_of(tuning.train)}; run seeds {evaluation.FIRST_TRIAL_SEED} + "
        "trial",
        "test": f"graphs {words_of(test)}; run seeds 0 to {FLAGS.test_seeds - 1}",
        "best_of_curve": curve,
        **found,
        "command": command,
        "version": __version__,
    }
    saved = evaluation.write_tuned(folder / f"{sampler}.json", best, record)
    say(
        f"best of {len(counted)} trials ({complete} complete): trial {curve[-1][0]}, "
        f"{curve[-1][1]:.4f} in training"
    )
    say(f"tested on graphs {words_of(test)}")
    _say_differences(sampler, usual, beside, found)
    say(f"saved {saved}")
    return 0


def _tuning(sampler: str, wanted: str) -> tuple[Tuning, Dataset, Candidate]:
    """Returns the search that the flags ask for, the test instances, and the base sampler's usual
    settings.
    """
    data_root = default_data_root() if FLAGS.data_root is None else FLAGS.data_root
    check_data_root(data_root)
    names = parse_dataset(FLAGS.dataset)
    given: dict[str, Any] = {
        "batch_size": FLAGS.chains,
        "chain_length": FLAGS.chain_length,
        "engine": FLAGS.engine,
    }
    given = {name: value for name, value in given.items() if value is not None}
    settings = dataclasses.replace(evaluation.experiment_settings(names, FLAGS.config), **given)
    dimensions = space.space_of(sampler, wanted, settings.chain_length)
    default = Candidate(method_fields(sampler), annealing_of(settings))
    start = _start(sampler, default, settings if wanted == "sl" else None)
    num_test = FLAGS.test_instances or settings.num_instances
    train, test = evaluation.split_instances(
        names, data_root, FLAGS.train_instances, num_test, FLAGS.train_seed
    )
    base = build_method(method_fields(registered(sampler).name))
    leave_cards_alone([choose_engine(settings.engine, base.sampler)[0]])
    for dataset in train, test:
        [plan], _ = plans_in_memory(dataset, FLAGS.penalty, [base], settings)
        settings = plan.settings
    usual = Candidate(method_fields(registered(sampler).name), default.experiment)
    return Tuning(dimensions, start, train, settings, FLAGS.penalty, FLAGS.seed), test, usual


def _say_differences(
    sampler: str, usual: Candidate, beside: Path, found: Mapping[str, Any]
) -> None:
    """Prints what `held_out` has found; `beside` is the file of the tuned base, if it took part."""
    name = usual.sampler["name"]
    say(
        f"{sampler} as found: {found['test_mean']:.4f}; {name} with its defaults: "
        f"{found['default_test_mean']:.4f}; difference {format_difference(found['paired'])}"
    )
    if other := found.get("tuned_base"):
        said = f"{name} as found ({beside}): {other['test_mean']:.4f}"
        say(f"{said}; difference {format_difference(other['paired'])}")


main = Command("", __doc__, FLAGS, _tune, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
