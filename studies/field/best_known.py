"""Searches the best known cuts of the generated MaxCut sets of the paper.

    python studies/field/best_known.py --datasets=maxcut/ba/r-ba-4-n-512-600 --instances=128
    --threads=1

Each graph is annealed from several starts with different seeds. Cuts and partitions are saved after
each graph, one file a set, and a stopped command continues where it left off. A command with other
steps, chains or seeds, such as --first_seed=100, adds its starts and keeps the larger cut.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int8

from sl_discs import __version__
from sl_discs.commands.command import Command, Given, own_flags
from sl_discs.engines.choice import ENGINES, choose_engine
from sl_discs.experiment.record import commit
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.localization.method import build_method, method_fields
from sl_discs.problems.graphs import MAXCUT
from sl_discs.reproduction.tuned import parse_dataset
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import parse_json
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.locks import only_run_in
from sl_discs.support.terminal import progress_bar, say

# The file of a set's references: its content, how it is extended, and when a reference is valid.
#
# A reference is only valid for the graph on which it was found, identified by a digest of its
# content. It comes with a partition that has this cut, so that it can be verified.

FOLDER = Path(__file__).parent / "references"
# Fields that identify a run: a graph that has had a run with equal fields is not run again.
_IDENTITY = ("sampler", "annealing", "chain_length", "batch_size", "seeds", "engine")


@dataclasses.dataclass(frozen=True)
class Reference:
    """The best known cut of a graph.

    Attributes:
      sha256: `digest` of the graph.
      cut: the largest of `starts`.
      solution: [N] zeros and ones, the side of each node; its cut is `cut`.
      starts: the best cut of each start, keyed by the position of its run in the file.
    """

    sha256: str
    cut: float
    solution: Int8[np.ndarray, "N"]
    starts: dict[int, tuple[float, ...]]

    def agrees(self) -> bool:
        """Whether at least two starts, each with its own seed, ended at this cut."""
        return [*itertools.chain.from_iterable(self.starts.values())].count(self.cut) > 1


@dataclasses.dataclass(frozen=True)
class ReferenceSet:
    """References of one generated set.

    Attributes:
      dataset: its name, such as `maxcut/er/r-er-0.15-n-256-300`.
      data_seed: data seed of its graphs.
      runs: how references were found: command, sampler, annealing, steps, chains, seeds, engine,
        version, commit.
      graphs: by the graph's position in the set.
    """

    dataset: str
    data_seed: int
    runs: tuple[dict[str, Any], ...] = ()
    graphs: dict[int, Reference] = dataclasses.field(default_factory=dict)

    def with_run(self, run: dict[str, Any]) -> tuple[ReferenceSet, int]:
        """The set with this run added, unless it has an equal run, and the position of the run."""
        for place, known in enumerate(self.runs):
            if all(known[key] == run[key] for key in _IDENTITY):
                return self, place
        return dataclasses.replace(self, runs=(*self.runs, run)), len(self.runs)

    def find(self, index: int, graph: Graph) -> Reference | None:
        """The reference of the graph at a position; None if there is none, or only one of another
        graph.
        """
        known = self.graphs.get(index)
        if known is None or known.sha256 != digest(graph):
            return None
        if (
            known.solution.size < graph.num_nodes
            or cut_of(graph, known.solution[: graph.num_nodes]) != known.cut
        ):
            raise InputError(
                f"references of {self.dataset}: graph {index}: the partition does not have the cut "
                f"{known.cut:g} "
                "that is claimed; get the file anew, or remove it and run best_known.py"
            )
        return dataclasses.replace(known, solution=known.solution[: graph.num_nodes])

    def with_starts(
        self, index: int, graph: Graph, run: int, cuts: list[float], solution: Int8[np.ndarray, "N"]
    ) -> ReferenceSet:
        """The set after starts of the run at a position in `runs`; the larger of the old and the
        new cut is kept.

        A reference of another graph at this position is dropped. `solution` is the partition of the
        largest of the cuts, one of each start.
        """
        cut = cut_of(graph, solution)
        if cut != max(cuts):
            raise InputError(
                f"{graph.name}: the partition has the cut {cut:g}, not {max(cuts):g} as claimed"
            )
        new = Reference(digest(graph), cut, solution, {run: tuple(cuts)})
        old = self.find(index, graph)
        if old is not None:
            better = max(old, new, key=lambda one: one.cut)  # the old one if they are equal
            new = dataclasses.replace(better, starts=old.starts | new.starts)
        return dataclasses.replace(self, graphs=self.graphs | {index: new})


def digest(graph: Graph) -> str:
    """64 bits, in hexadecimal, of SHA-256 over nodes, edges and weights; an unweighted graph has
    weights 1.
    """
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    order = np.lexsort((graph.edges[:, 1], graph.edges[:, 0]))
    content = hashlib.sha256(np.array([graph.num_nodes, graph.num_edges], dtype="<i8").tobytes())
    content.update(graph.edges[order].astype("<i4").tobytes())
    content.update(weights[order].astype("<f8").tobytes())
    return content.hexdigest()[:16]


def cut_of(graph: Graph, solution: Int8[np.ndarray, "N"]) -> float:
    """The exact cut of a partition."""
    return float(MAXCUT.evaluator(graph)(solution[None]).values[0])


def path_of(dataset: str, data_seed: int, folder: Path = FOLDER) -> Path:
    """The file of a set's references."""
    return folder / f"{dataset.replace('/', '_')}_seed{data_seed}.json"


def load_references(dataset: str, data_seed: int, folder: Path = FOLDER) -> ReferenceSet:
    """The references of a set, which are empty if there is no file."""
    path = path_of(dataset, data_seed, folder)
    try:
        return _parse(path, path.read_text(encoding="utf-8"), dataset, data_seed)
    except FileNotFoundError:
        return ReferenceSet(dataset, data_seed)
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from None


def _parse(path: Path, text: str, dataset: str, data_seed: int) -> ReferenceSet:
    try:
        content = parse_json(text)
        runs = tuple(dict(run) for run in content["runs"])
        graphs = {int(index): _reference(fields) for index, fields in content["graphs"].items()}
        known = all(key in run for run in runs for key in _IDENTITY)
        known &= all(run in range(len(runs)) for one in graphs.values() for run in one.starts)
        if not known or (content["dataset"], content["data_seed"]) != (dataset, data_seed):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            f"{path}: not a file of references of {dataset}; best_known.py writes them"
        ) from None
    return ReferenceSet(dataset, data_seed, runs, graphs)


def save_references(references: ReferenceSet, folder: Path = FOLDER) -> Path:
    """Writes a set of references atomically, with one line per graph."""
    lines = [
        f' "{index}": {json.dumps(_fields(one))}'
        for index, one in sorted(references.graphs.items())
    ]
    head = {
        "dataset": references.dataset,
        "data_seed": references.data_seed,
        "runs": list(references.runs),
    }
    text = (
        json.dumps(head, indent=1).removesuffix("\n}")
        + ',\n "graphs": {\n'
        + ",\n".join(lines)
        + "\n }\n}\n"
    )
    path = path_of(references.dataset, references.data_seed, folder)
    return write_text(path, text)


def _fields(one: Reference) -> dict[str, Any]:
    return {
        "sha256": one.sha256,
        "cut": one.cut,
        "starts": {str(run): list(cuts) for run, cuts in sorted(one.starts.items())},
        "solution": base64.b64encode(np.packbits(one.solution.astype(np.uint8)).tobytes()).decode(),
    }


def _reference(fields: dict[str, Any]) -> Reference:
    starts = {int(run): tuple(map(float, cuts)) for run, cuts in fields["starts"].items()}
    # Padded to whole bytes; `find` removes the bits beyond the graph's nodes.
    packed = np.frombuffer(base64.b64decode(fields["solution"], validate=True), dtype=np.uint8)
    return Reference(
        str(fields["sha256"]), float(fields["cut"]), np.unpackbits(packed).astype(np.int8), starts
    )


# The search for strong cuts: a long annealing from several starts on each graph that has not been
# searched yet.
#
# Only metropolis is used: in one and in three seconds of one core per graph, on four graphs of each
# of the largest sets, it found larger cuts on average than path_auxiliary and gwg; see README.md.


@dataclasses.dataclass(frozen=True)
class Search:
    """The length and temperatures of a search.

    Attributes:
      steps: steps of a chain, each a proposal to flip one node.
      chains: chains per start; the best of them gives the start's cut.
      starts: number of independent runs, with consecutive seeds from `first_seed` on.
      initial, final: temperatures of an exponential decay.
    """

    steps: int
    chains: int
    starts: int
    initial: float
    final: float
    first_seed: int = 0

    def settings(self, engine: str, threads: int) -> list[Settings]:
        """The settings of each start."""
        first = Settings(
            batch_size=self.chains,
            chain_length=self.steps,
            t_schedule="exp_decay",
            init_temperature=self.initial,
            final_temperature=self.final,
            decay_rate=self.final / self.initial,
            log_every_steps=max(1, self.steps // 10),
            engine=engine,
            threads=threads,
        )
        return [
            dataclasses.replace(first, seed=self.first_seed + start) for start in range(self.starts)
        ]


class Tally(NamedTuple):
    """The references after a search, and how many graphs it `played` and of these `improved`."""

    references: ReferenceSet
    played: int
    improved: int


def search_set(
    dataset: Dataset,
    data_seed: int,
    settings: list[Settings],
    command: str,
    folder: Path,
    progress: Callable[[int, str], None],
) -> Tally:
    """Runs all starts on each graph that has not had them, and saves the file after each graph.

    `settings` of the starts only differ in the seed; `command` is kept in the record, and
    `progress` is called with the number of chain-steps done or skipped.
    """
    one = settings[0]
    method = build_method(method_fields("metropolis"))
    annealing = ("t_schedule", "init_temperature", "final_temperature", "decay_rate")
    references, run = load_references(dataset.name, data_seed, folder).with_run({
        "command": command,
        "sampler": method_fields("metropolis"),
        "annealing": {name: getattr(one, name) for name in annealing},
        "chain_length": one.chain_length,
        "batch_size": one.batch_size,
        "seeds": [start.seed for start in settings],
        "engine": choose_engine(one.engine, method.sampler)[0].name,
        "version": __version__,
        "commit": commit(),
    })  # fmt: skip
    played = improved = 0
    for index, graph in zip(dataset.index, dataset.graphs, strict=True):
        known = references.find(index, graph)
        if known is not None and run in known.starts:
            progress(sum(start.chain_length * start.batch_size for start in settings), "")
            continue
        alone = dataclasses.replace(dataset, graphs=[graph], index=[index])
        found = [
            run_sampler(plan_of(alone, 1.0, method, start), progress).instances[0]
            for start in settings
        ]
        best = max(found, key=lambda instance: instance.best)
        references = references.with_starts(
            index, graph, run, [instance.best for instance in found], best.solution
        )
        save_references(references, folder)
        played += 1
        improved += known is not None and best.best > known.cut
    return Tally(references, played, improved)


PLANS = {
    "maxcut/er/r-er-0.15-n-256-300": Search(1_000_000, 16, 2, initial=2.0, final=0.4),
    "maxcut/er/r-er-0.15-n-512-600": Search(2_000_000, 16, 2, initial=2.8, final=0.55),
    "maxcut/er/r-er-0.15-n-1024-1100": Search(8_000_000, 16, 2, initial=4.0, final=0.8),
    "maxcut/ba/r-ba-4-n-256-300": Search(1_000_000, 16, 2, initial=0.8, final=0.3),
    "maxcut/ba/r-ba-4-n-512-600": Search(2_000_000, 16, 2, initial=1.0, final=0.28),
    "maxcut/ba/r-ba-4-n-1024-1100": Search(8_000_000, 16, 2, initial=1.4, final=0.25),
}

DATA_SEED = 0  # of the files beside this script
FLAGS, define = own_flags()
define.list("datasets", list(PLANS), "Generated MaxCut sets, as the published tables name them.")
define.integer("instances", 128, "Number of graphs of each set, from the first on.", 1)
define.integer("data_seed", DATA_SEED, "Seed of the generated graphs.", 0)
define.integer(
    "steps", None, "Steps per chain, each a proposal of one node; default: the set's.", 10
)
define.integer("chains", None, "Chains per start; default: the set's.", 1)
define.integer("starts", None, "Starts per graph; default: the set's.", 1)
define.integer("first_seed", 0, "Seed of the first start; the others follow it.", 0)
define.enum("engine", "auto", ENGINES, "Engine that runs the chains.")
define.integer("threads", 0, "Threads of the CPU engine; 0: as many as cores.", 0)
define.string("folder", str(FOLDER), "Folder of the files; default: that beside this script.")


def _main(given: Given) -> int:
    if not FLAGS.datasets:
        raise InputError("--datasets names no dataset; give --datasets=NAME,NAME")
    check_choice("datasets", FLAGS.datasets, PLANS)
    folder = check_writable(FLAGS.folder)
    changed = {name: FLAGS[name].value for name in ("steps", "chains", "starts", "first_seed")}
    changed = {name: value for name, value in changed.items() if value is not None}
    for name in FLAGS.datasets:
        begin = time.perf_counter()
        search = dataclasses.replace(PLANS[name], **changed)
        graphs = load_dataset(
            *parse_dataset(name), num_instances=FLAGS.instances, data_seed=FLAGS.data_seed
        )
        settings = search.settings(FLAGS.engine, FLAGS.threads)
        total = search.steps * search.chains * search.starts * len(graphs.graphs)
        lock = f".{path_of(name, FLAGS.data_seed).stem}.lock"
        with only_run_in(folder, lock), progress_bar(total) as progress:
            advance = functools.partial(progress, name)
            tally = search_set(graphs, FLAGS.data_seed, settings, given.typed, folder, advance)
        known = [tally.references.graphs[index] for index in graphs.index]
        agreed = sum(graph.agrees() for graph in known)
        say(
            f"{name}: {len(known)} graphs, {tally.played} of them run now, {tally.improved} "
            "improved; "
            f"mean cut {sum(graph.cut for graph in known) / len(known):.3f}; at least two starts "
            "at the best known "
            f"on {agreed} ({100 * agreed / len(known):.0f}%); {time.perf_counter() - begin:.0f} s"
        )
        say(f"  {path_of(name, FLAGS.data_seed, folder)}")
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
