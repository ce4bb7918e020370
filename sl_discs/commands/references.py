r"""Command: searches reference cuts of the generated MaxCut sets, which percentages of a reproduction refer to.

sl-discs references --datasets=maxcut/ba/r-ba-4-n-512-600 --instances=128 --threads=1

Each graph is annealed from several starts with different seeds. Cuts and partitions are saved after each graph, in
one file per set, and a stopped command continues where it left off. A command with other steps, chains or seeds, such
as --first_seed=100, adds its starts and keeps the larger cut. Bad input ends the command with exit code 2 and a
one-line message.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Sequence

from absl import flags

from sl_discs.command import as_typed, run_command, say
from sl_discs.errors import InputError
from sl_discs.experiment.progress import progress_bar
from sl_discs.experiment.settings import ENGINES
from sl_discs.files import check_writable
from sl_discs.instances.dataset import load_dataset
from sl_discs.reproduction.best_known import DATA_SEED, FOLDER, PLANS, Search, Tally, path_of, search_set
from sl_discs.reproduction.cells import chosen_sets

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_DATASETS = flags.DEFINE_list(
    "datasets", list(PLANS), "Generated MaxCut sets, as the published tables name them.", flag_values=FLAGS
)
_INSTANCES = flags.DEFINE_integer(
    "instances", 128, "Number of graphs of each set, from the first on.", 1, flag_values=FLAGS
)
_DATA_SEED = flags.DEFINE_integer("data_seed", DATA_SEED, "Seed of the generated graphs.", 0, flag_values=FLAGS)
_STEPS = flags.DEFINE_integer(
    "steps", None, "Steps per chain, each a proposal of one node; default: the set's.", 10, flag_values=FLAGS
)
_CHAINS = flags.DEFINE_integer("chains", None, "Chains per start; default: the set's.", 1, flag_values=FLAGS)
_STARTS = flags.DEFINE_integer("starts", None, "Starts per graph; default: the set's.", 1, flag_values=FLAGS)
_FIRST_SEED = flags.DEFINE_integer(
    "first_seed", 0, "Seed of the first start; the others follow it.", 0, flag_values=FLAGS
)
_ENGINE = flags.DEFINE_enum("engine", "auto", ENGINES, "Engine that runs the chains.", flag_values=FLAGS)
_THREADS = flags.DEFINE_integer("threads", 0, "Threads of the CPU engine; 0: as many as cores.", 0, flag_values=FLAGS)
_FOLDER = flags.DEFINE_string(
    "folder", str(FOLDER), "Folder of the files; default: the package's own.", flag_values=FLAGS
)


def _search(name: str) -> Search:
    """The set's plan with the changes of the command line."""
    given = {"steps": _STEPS.value, "chains": _CHAINS.value, "starts": _STARTS.value, "first_seed": _FIRST_SEED.value}
    return dataclasses.replace(PLANS[name], **{key: value for key, value in given.items() if value is not None})


def summary(name: str, indices: Sequence[int], tally: Tally) -> str:
    """A line on what is known of these graphs of a set."""
    known = [tally.references.graphs[index] for index in indices]
    agreed = sum(one.agrees() for one in known)
    return (
        f"{name}: {len(known)} graphs, {tally.played} of them run now, {tally.improved} improved; mean cut "
        f"{sum(one.cut for one in known) / len(known):.3f}; at least two starts at the best known on {agreed} "
        f"({100 * agreed / len(known):.0f}%)"
    )


def run(command: str) -> int:
    """Searches the sets of the flags and prints a line for each."""
    if not _DATASETS.value:
        raise InputError("--datasets names no dataset; give --datasets=NAME,NAME")
    sets = chosen_sets(_DATASETS.value)
    for one in sets:
        if one.name not in PLANS:
            raise InputError(f"--datasets: {one.name} is not searched for references; known: {', '.join(PLANS)}")
    folder = check_writable(_FOLDER.value)
    for one in sets:
        begin = time.perf_counter()
        search = _search(one.name)
        dataset = load_dataset(*one.flags, num_instances=_INSTANCES.value, data_seed=_DATA_SEED.value)
        total = search.steps * search.chains * search.starts * len(dataset.graphs)
        with progress_bar(total) as progress:
            tally = search_set(
                dataset,
                _DATA_SEED.value,
                search.settings(_ENGINE.value, _THREADS.value),
                command,
                folder,
                functools.partial(progress, one.name),
            )
        say(f"{summary(one.name, dataset.index, tally)}; {time.perf_counter() - begin:.0f} s")
        say(f"  {path_of(one.name, _DATA_SEED.value, folder)}")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    return run_command(argv, "", __doc__, FLAGS, lambda _: run(as_typed(argv)))
