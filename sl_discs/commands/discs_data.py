r"""Writes a dataset, generated or read, in DISCS's own file formats, and prints how to run DISCS on
it.

sl-discs discs data --model=mis --graph_type=er_density --cfg_str=r-0.10 --num_instances=8
--data_root=./sco

Without --source, graphs of random families are generated from --data_seed.
"""

import shlex
import shutil
import tempfile
import types
import zipfile
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from sl_discs.commands.command import Command, own_flags, refuse_flags
from sl_discs.experiment.summary import published_tables
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import (
    check_data_root,
    find_family,
    load_dataset,
    writable_family,
    write_discs,
)
from sl_discs.instances.graph import Dataset
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.reproduction.cells import PUBLISHED
from sl_discs.support.errors import InputError
from sl_discs.support.terminal import say


def _dataset_flags(problem: str) -> tuple[flags.FlagValues, types.SimpleNamespace]:
    """Returns `own_flags` with those that choose instances of a dataset; `problem` is the name of
    the first one.
    """
    own, define = own_flags()
    define.string(problem, None, "mis, maxcut or maxclique.", required=True)
    define.string("graph_type", None, "Dataset, as DISCS names it.", required=True)
    define.string("cfg_str", "_", "Configuration of the dataset, such as r-0.10; _ for none.")
    define.integer("num_instances", None, "Number of graphs; by default all from the first on.")
    define.integer("data_seed", 0, "Seed of generated graphs.")
    return own, define


FLAGS, define = _dataset_flags("model")
define.string("data_root", "./sco", "Folder to write to; DISCS's own default.")
define.string(
    "source", None, "Folder of archives or DISCS's files to read instead of generating graphs."
)
define.integer("first_instance", 0, "Index of the first graph in the whole dataset.")
define.boolean("overwrite", False, "Replace files of the same names.")


def discs_flags(dataset: Dataset, data_root: Path) -> list[str]:
    """Returns the flags, besides the sampler's, with which DISCS reads the dataset below
    `data_root`.
    """
    problem, graph_type, *cfg_str = dataset.name.split("/")
    return [
        f"--config=discs/experiment/configs/{problem}/{graph_type}.py",
        f"--model_config=discs/models/configs/{problem}_config.py",
        f"--model_config.graph_type={graph_type}",
        f"--model_config.cfg_str={cfg_str[0] if cfg_str else '_'}",
        f"--model_config.data_root={data_root.resolve()}",
    ]


def _graphs(count: int) -> str:
    return "1 graph" if count == 1 else f"{count} graphs"


def summarize(dataset: Dataset, paths: Sequence[Path], data_root: Path) -> str:
    """Several lines on the written files, their references, and the flags for DISCS."""
    nodes = [graph.num_nodes for graph in dataset.graphs]
    origin = f"{dataset.source}: {dataset.detail}"
    unknown = sum(not graph.reference for graph in dataset.graphs)
    if not graph_kind(dataset.problem).in_percent:
        reference = "DISCS uses 1 for every MIS graph, so its ratios are set sizes"
    elif unknown:
        reference = (
            f"unknown for {_graphs(unknown)}, with 1 as a placeholder, so their ratios are "
            "absolute values"
        )
    else:
        reference = "known for every graph"
    lines = [
        f"{dataset.name}: {_graphs(len(nodes))} of {min(nodes)}-{max(nodes)} nodes ({origin})",
        f"files: {paths[0]}"
        + (f" to {paths[-1].name} ({len(paths)} files)" if len(paths) > 1 else ""),
        f"reference objective: {reference}",
        f"flags of DISCS: {shlex.join(discs_flags(dataset, data_root))}",
    ]
    return "\n".join(lines)


def _load(own: flags.FlagValues, problem: str, source: str | None, first: int = 0) -> Dataset:
    family = (problem, own.graph_type, own.cfg_str, source)
    count = own.num_instances
    return load_dataset(*family, num_instances=count, first=first, data_seed=own.data_seed)


def _data(_) -> int:
    family, _ = writable_family(FLAGS.model, FLAGS.graph_type, FLAGS.cfg_str)
    if family.generator is None and not FLAGS.source:
        raise InputError(
            f"{family.name} cannot be generated; give --source=FOLDER with {family.where()}"
        )
    if FLAGS.source:
        refuse_flags(FLAGS, ["data_seed"], "with --source, from which graphs are read")
    dataset = _load(FLAGS, FLAGS.model, FLAGS.source, FLAGS.first_instance)
    if FLAGS.source and dataset.source == "generated":
        raise InputError(
            f"{FLAGS.source}: neither {family.where()}; leave out --source to generate graphs"
        )
    data_root = Path(FLAGS.data_root)
    say(summarize(dataset, write_discs(dataset, data_root, FLAGS.overwrite), data_root))
    return 0


data = Command("", __doc__, FLAGS, _data)

ARCHIVE_FLAGS, define = _dataset_flags("problem")
define.string("data_root", None, "Folder of DISCS's data; without it, graphs are generated.")
define.string("output", None, "Archive to write.", required=True)


def _archive(_) -> int:
    """Writes a dataset, read from DISCS's own files or generated, as one portable archive.

    sl-discs discs archive --problem=mis --graph_type=satlib --data_root=DIR --output=FILE.npz
    """
    if not ARCHIVE_FLAGS.output.endswith(".npz"):
        raise InputError(
            f"--output={ARCHIVE_FLAGS.output}: the name of an archive must end in .npz"
        )
    dataset = _load(ARCHIVE_FLAGS, ARCHIVE_FLAGS.problem, ARCHIVE_FLAGS.data_root)
    write_archive(ARCHIVE_FLAGS.output, dataset.graphs)
    count = len(dataset.graphs)
    origin = f"{dataset.source}: {dataset.detail}"
    say(f"{ARCHIVE_FLAGS.output}: {count} graphs of {dataset.name} ({origin})")
    return 0


archive = Command("", _archive.__doc__, ARCHIVE_FLAGS, _archive)

FILES_FLAGS, define = own_flags()
words = "Folder that holds DISCS's data, or its .zip, which is unpacked into a folder beside it."
define.string("data_root", "./sco", words)


def _files(_) -> int:
    """Says which of the paper's sets DISCS's data has, and what is missing for which table.

    sl-discs discs files --data_root=DISCS-DATA.zip

    All graphs are read. DISCS publishes no checksums, so each set is shown with the first digits of
    a SHA-256 of its graphs, by which two people can compare theirs. The exit code is 1 if a set is
    missing, damaged or of another size.
    """
    folder = _unpacked(Path(FILES_FLAGS.data_root))
    families = {name: find_family(*one.flags) for name, one in PUBLISHED.items()}

    def present(root: Path) -> list[str]:
        return [
            name
            for name, family in families.items()
            if family.find_files(root) or family.find_archives(root)
        ]

    root = max([folder, *filter(Path.is_dir, folder.rglob("*"))], key=lambda one: len(present(one)))
    there = present(root)
    lines = [f"data root: {root}"]
    complete = True
    for name, one in PUBLISHED.items():
        table = "Table 3" if one.problem == "maxcut" else "Tables 1 and 2"
        if name in published_tables()["ablation"]:
            table += ", ablation"
        try:
            if name not in there:
                raise InputError(f"missing: {families[name].where()}")
            dataset = load_dataset(*one.flags, root)
            state = f"{len(dataset.graphs)} of {_graphs(one.published_n)}, {dataset.digest()[:12]}"
            complete &= len(dataset.graphs) == one.published_n
        except InputError as error:
            state = str(error)
            complete = False
        lines.append(f"  {name} ({table}): {state}")
    if any(families[name].generator for name in families.keys() - there):
        lines.append("Random sets that are missing are drawn anew from their distributions.")
    say("\n".join(lines))
    return 0 if complete else 1


def _unpacked(path: Path) -> Path:
    """Returns the folder itself, or that of a .zip, which is unpacked there once."""
    if not path.is_file():
        check_data_root(path)
        return path
    folder = path.with_suffix("")
    if not folder.exists():
        try:
            with tempfile.TemporaryDirectory(dir=path.parent) as temporary:
                shutil.unpack_archive(path, Path(temporary) / "all", "zip")
                (Path(temporary) / "all").rename(folder)
        except (OSError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{path}: cannot be unpacked ({error}); unpack it yourself, and give the folder"
            ) from error
    return folder


files = Command("", _files.__doc__, FILES_FLAGS, _files)
