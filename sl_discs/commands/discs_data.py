r"""Writes a dataset, generated or read, in DISCS's own file formats, and prints how to run DISCS on
it; or, with --archive, as one archive that this project reads.

sl-discs discs data --model=mis --graph_type=er_density --cfg_str=r-0.10 --num_instances=8
--data_root=./sco

Without --source, graphs of random families are generated from --data_seed.
"""

import shlex
import shutil
import tempfile
import zipfile
from pathlib import Path

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
from sl_discs.reproduction.cells import PUBLISHED
from sl_discs.support.errors import InputError
from sl_discs.support.terminal import say

FLAGS, define = own_flags()
define.string("model", None, "mis, maxcut or maxclique.", required=True)
define.string("graph_type", None, "Dataset, as DISCS names it.", required=True)
define.string("cfg_str", "_", "Configuration of the dataset, such as r-0.10; _ for none.")
define.integer("num_instances", None, "Number of graphs; by default all from the first on.")
define.integer("data_seed", 0, "Seed of generated graphs.")
define.string("data_root", "./sco", "Folder to write to; DISCS's own default.")
define.string(
    "source", None, "Folder of archives or DISCS's files to read instead of generating graphs."
)
define.integer("first_instance", 0, "Index of the first graph in the whole dataset.")
define.boolean("overwrite", False, "Replace files of the same names.")
define.string("archive", None, "Archive to write instead of DISCS's files, such as mis_satlib.npz.")


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


def _data(_) -> int:
    names = FLAGS.model, FLAGS.graph_type, FLAGS.cfg_str
    family = find_family(*names) if FLAGS.archive else writable_family(*names)[0]
    if family.generator is None and not FLAGS.source:
        raise InputError(
            f"{family.name} cannot be generated; give --source=FOLDER with {family.where()}"
        )
    if FLAGS.source:
        refuse_flags(FLAGS, ["data_seed"], "with --source, from which graphs are read")
    if not (FLAGS.archive or ".npz").endswith(".npz"):
        raise InputError("--archive: the name of an archive ends in .npz")
    dataset = load_dataset(
        *names,
        FLAGS.source,
        num_instances=FLAGS.num_instances,
        first=FLAGS.first_instance,
        data_seed=FLAGS.data_seed,
    )
    if FLAGS.source and dataset.source == "generated":
        raise InputError(
            f"{FLAGS.source}: neither {family.where()}; leave out --source to generate graphs"
        )
    nodes = [graph.num_nodes for graph in dataset.graphs]
    sizes = f"{_graphs(len(nodes))} of {min(nodes)}-{max(nodes)} nodes"
    summary = f"{dataset.name}: {sizes} ({dataset.source}: {dataset.detail})"
    if FLAGS.archive:
        write_archive(FLAGS.archive, dataset.graphs)
        say(f"{summary}\nfile: {FLAGS.archive}")
        return 0
    data_root = Path(FLAGS.data_root)
    first, *others = write_discs(dataset, data_root, FLAGS.overwrite)
    more = f" to {others[-1].name} ({_graphs(len(others) + 1)})" if others else ""
    arguments = shlex.join(discs_flags(dataset, data_root))
    say(f"{summary}\nfiles: {first}{more}\nflags of DISCS: {arguments}")
    return 0


data = Command("", __doc__, FLAGS, _data)

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
