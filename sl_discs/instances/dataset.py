"""Finds and loads a dataset: from DISCS's own files, else from an archive, else drawn again from
its distribution.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from sl_discs.instances import discs_files, generators
from sl_discs.instances.archive import count_graphs, read_archive, write_archive
from sl_discs.instances.discs_files import DiscsFiles
from sl_discs.instances.generators import GENERATOR_VERSION, Generator
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.support.cache import cache_folder, or_no_cache
from sl_discs.support.checks import integer
from sl_discs.support.errors import InputError
from sl_discs.support.memory import check_memory

# The datasets by name: `problem`, `graph_type` and `cfg_str`, spelled as in DISCS's flags.


@dataclasses.dataclass(frozen=True)
class Family:
    """One dataset, before the source of its graphs is decided.

    Attributes:
      name: `<problem>/<graph_type>`, with `/r-<r>` if there are several.
      stem: beginning of its archives' names.
      files: DISCS's own files; None if DISCS has no such dataset.
      generator: draws the dataset again; None if it is not random.
      scored: whether the references in the files belong to this problem.
    """

    name: str
    stem: str
    files: DiscsFiles | None
    generator: Generator | None
    scored: bool = True

    @property
    def problem(self) -> str:
        """Name of the problem, such as `mis`."""
        return self.name.partition("/")[0]

    def find_archives(self, data_root: Path) -> list[Path]:
        """Finds files `<stem>.npz` and `<stem>_<anything>.npz` of a folder, sorted by name."""
        return sorted([*data_root.glob(f"{self.stem}.npz"), *data_root.glob(f"{self.stem}_*.npz")])

    def find_files(self, data_root: Path) -> list[Path]:
        """Finds DISCS's own files below a folder, sorted by name."""
        return self.files.find(data_root) if self.files else []

    def where(self) -> str:
        """Returns which files of a data root hold this dataset, in words."""
        own = f"DISCS's {self.files.folder}/{self.files.pattern} or " if self.files else ""
        return f"{own}an archive {self.stem}*.npz"


class _Type(NamedTuple):
    """A graph type of a problem.

    Attributes:
      known: values of `cfg_str`, in words; None: there is one dataset.
      files: DISCS's own, with `{r}` in folder and pattern where there are several datasets.
      generator: of the dataset with some r.
    """

    known: str | None
    files: DiscsFiles | None = None
    generator: Callable[[str], Generator] | None = None


_MIS = {
    "er_density": _Type(
        "r-0.05, r-0.10, r-0.20, r-0.25 (or another density)",
        DiscsFiles("er_700_800", "ER-700-800-{r}.pkl", discs_files.LISTED),
        generators.mis_er_density,
    ),
    "ertest": _Type(
        "r-800, r-10k",
        DiscsFiles("er_{r}_test", "ER*", discs_files.SINGLE, per_file=1),
        generators.mis_ertest,
    ),
    "rb": _Type("r-200, r-800", None, generators.mis_rb),
    "satlib": _Type(None, DiscsFiles("satlib_test", "*.cnf")),
}
_CUTS = functools.partial(DiscsFiles, layout=discs_files.CUTS, weighted=True)
_TYPES = {
    "mis": _MIS,
    "maxcut": {
        "er": _Type(
            "r-er-0.15-n-256-300, r-er-0.15-n-512-600, r-er-0.15-n-1024-1100 (or other sizes)",
            _CUTS("maxcut-er/maxcut-{r}", "test-*"),
            generators.maxcut_er,
        ),
        "ba": _Type(
            "r-ba-4-n-256-300, r-ba-4-n-512-600, r-ba-4-n-1024-1100 (or other sizes)",
            _CUTS("maxcut-ba/maxcut-{r}", "test-*"),
            generators.maxcut_ba,
        ),
        "optsicom": _Type(None, _CUTS("optsicom", "b.pkl"), lambda _: generators.TORUS),
    },
    "maxclique": {
        "rb": _Type(
            None,
            DiscsFiles("RB_test", "RB*", discs_files.SCORED, per_file=100),
            lambda _: generators.CLIQUES,
        ),
        "twitter": _Type(None, DiscsFiles("twitter", "twitter*", discs_files.COLUMNS)),
    },
    "vertex_cover": _MIS,  # whose references are sizes of independent sets
}


# The problems of DISCS on graphs.
PROBLEMS = tuple(_TYPES)


def find_family(problem: str, graph_type: str, cfg_str: str | None = "") -> Family:
    """Returns the dataset that DISCS's flags name.

    Raises:
      InputError: an unknown problem or graph type, or a `cfg_str` that the graph type does not
        have.
    """
    if problem not in _TYPES:
        raise InputError(f"unknown problem {problem!r}; choose one of {', '.join(sorted(_TYPES))}")
    types = _TYPES[problem]
    if graph_type not in types:
        raise InputError(
            f"unknown graph_type {graph_type!r} of {problem}; choose one of "
            f"{', '.join(sorted(types))}"
        )
    known, files, generator = types[graph_type]
    name = f"{problem}/{graph_type}"
    cfg_str = cfg_str or "_"
    own = "r-b" if name == "maxcut/optsicom" else "_"
    if cfg_str != "_" and not re.fullmatch(r"r-[A-Za-z0-9.-]+", cfg_str):
        raise InputError(f"cfg_str {cfg_str!r} is not understood; write r-<value>, or _ for none")
    if known and cfg_str == "_":
        raise InputError(f"{name} needs a cfg_str; known: {known}")
    if not known and cfg_str not in ("_", own):
        raise InputError(f"{name} has one dataset only, so no cfg_str {cfg_str}; write _")
    r = (cfg_str if known else own).removeprefix("r-")
    if graph_type == "er_density":
        # 0.1 and 0.10 are the same density; DISCS's files and the published tables write two
        # digits.
        value = generators.parse_probability(r)
        r = f"{value:.2f}" if round(value, 2) == value else repr(value)
    if files:
        files = dataclasses.replace(
            files, folder=files.folder.format(r=r), pattern=files.pattern.format(r=r)
        )
    # Covers have the graphs of independent sets.
    stem = "_".join(
        ["mis" if problem == "vertex_cover" else problem, graph_type, *([r] if known else [])]
    )
    name += "" if r == "_" else f"/r-{r}"
    return Family(name, stem, files, generator and generator(r), problem != "vertex_cover")


def graph_types(problem: str) -> Mapping[str, object]:
    """Returns the graph types of a problem by name, equal for problems on the same graphs; empty
    for others.
    """
    return _TYPES.get(problem, {})


# Random keys are folded from a graph's position, a signed 32-bit integer.
_LAST = 2**31 - 1


def default_data_root() -> str:
    """Returns the folder that is searched if the user names none: DISCS's `./sco`, or none if that
    does not exist.
    """
    return "./sco" if Path("sco").is_dir() else ""


def check_data_root(data_root: str | os.PathLike | None) -> None:
    """Raises InputError if a given data root is not a folder; otherwise generated graphs would be
    used unnoticed.
    """
    if data_root not in (None, "") and not Path(data_root).is_dir():
        raise InputError(
            f"the data root {data_root!s} is not a folder; correct the path, or leave it empty to "
            "generate graphs"
        )


def load_dataset(
    problem: str,
    graph_type: str,
    cfg_str: str = "",
    data_root: str | os.PathLike | None = None,
    *,
    num_instances: int | None = None,
    first: int = 0,
    stride: int = 1,
    data_seed: int = 0,
    cache_dir: str | os.PathLike | None = None,
) -> Dataset:
    """Loads `num_instances` graphs of a dataset, every `stride`-th from `first` on; by default all
    from `first` on.

    `data_root` is searched for DISCS's own files, then for an archive. If it has neither, or is
    None or empty, a random family is drawn from `data_seed`; `satlib` and `twitter` are not random,
    so that is an error for them. A drawn dataset has a default size, but any number of graphs can
    be requested. Drawn graphs are cached as an archive in `cache_dir` (by default $SL_DISCS_CACHE,
    else ~/.cache/sl_discs) if that folder is writable.

    Raises:
      InputError: the names are unknown, `data_root` is not a folder, the data is missing, ambiguous
        or damaged, or the range exceeds the dataset.
    """
    family = find_family(problem, graph_type, cfg_str)
    check_data_root(data_root)
    for name, value, least in (
        ("first", first, 0),
        ("stride", stride, 1),
        ("data_seed", data_seed, 0),
    ):
        integer(f"{family.name}: {name}", value, least)
    stop = None
    if num_instances is not None:
        stop = first + (integer(f"{family.name}: num_instances", num_instances, 1) - 1) * stride + 1
    if (last := first if stop is None else stop - 1) > _LAST:
        raise InputError(f"{family.name}: graph {last} was asked for; positions go up to {_LAST}")
    root = Path(data_root) if data_root not in (None, "") else None
    generator = family.generator
    stored = _load_stored(family, root, first, stop) if root else None
    if stored is not None:
        source, detail, graphs, total = stored
        graphs = graphs[::stride]
    elif generator is not None:
        source = "generated"
        total = max(generator.count, stop or 0)
        detail = (
            f"{generator.description}; data_seed {data_seed}, generator version {GENERATOR_VERSION}"
        )
        _check_range(family.name, first, stop, total)
        drawn = _draw_cached(
            generator,
            range(first, stop or total, stride),
            data_seed,
            cache_folder(cache_dir, setting="cache_dir"),
        )
        graphs = [dataclasses.replace(graph, generated=True) for graph in drawn]
    else:
        folder = root or "a data_root"
        raise InputError(
            f"{family.name} is not random, so it must be given: put {family.where()} into {folder}"
        )
    if not family.scored:
        graphs = [dataclasses.replace(graph, reference=None) for graph in graphs]
    index = list(range(first, stop or total, stride))
    return Dataset(family.name, family.problem, source, detail, graphs, index, total)


def _load_stored(
    family: Family, data_root: Path, first: int, stop: int | None
) -> tuple[str, str, list[Graph], int] | None:
    """Returns source, detail, graphs and total from the files of a data root; None if it has none
    of this dataset.
    """
    if family.files and (files := family.find_files(data_root)):
        graphs, total = family.files.load(files, first, stop)
        detail = str(files[0] if len(files) == 1 else files[0].parent)
        _check_range(detail, first, stop, total)
        return "discs files", detail, graphs, total
    archives = family.find_archives(data_root)
    if len(archives) > 1:
        names = ", ".join(path.name for path in archives)
        raise InputError(
            f"{data_root}: several archives serve {family.name} ({names}); leave one in this folder"
        )
    if not archives:
        return None
    _check_range(str(archives[0]), first, stop, total := count_graphs(archives[0]))
    return "archive", str(archives[0]), read_archive(archives[0], first, stop), total


def _check_range(where: str, first: int, stop: int | None, total: int) -> None:
    if first >= total or (stop is not None and stop > total):
        asked = f"graphs from {first} on" if stop is None else f"graphs {first} to {stop - 1}"
        raise InputError(
            f"{where}: {asked} were asked for, but there are {total} (0 to {total - 1})"
        )


def _draw_cached(
    generator: Generator, indices: range, data_seed: int, folder: Path | None
) -> list[Graph]:
    """Draws graphs, or reads those that an earlier call drew.

    A file whose first graph is not the one that is drawn is replaced, as a damaged one is.
    InputError if the graphs would not fit into memory.
    """
    span = f"{indices.start}-{indices.stop}" + (f"-{indices.step}" if indices.step > 1 else "")
    name = f"{generator.stream.replace('/', '_')}_seed{data_seed}_{span}_v{GENERATOR_VERSION}.npz"
    first = generator.draw(data_seed, indices[0])
    if folder is not None and (folder / name).exists():
        with contextlib.suppress(InputError):
            kept = read_archive(folder / name, 0, len(indices))
            if kept[0].content() == first.content():
                return kept
    # The object and its arrays, three times while an archive is being written.
    size = 500 + 3 * (first.edges.nbytes + (0 if first.weights is None else first.weights.nbytes))
    check_memory(
        f"{len(indices)} graphs of {generator.stream}",
        len(indices) * size,
        "ask for fewer instances",
    )
    graphs = [first] + [generator.draw(data_seed, k) for k in indices[1:]]
    if folder is not None:
        with or_no_cache(folder):
            write_archive(folder / name, graphs)
    return graphs


# Datasets as DISCS's own files: the folders, names and pickles that DISCS's loaders read.


def write_discs(
    dataset: Dataset, data_root: str | os.PathLike, overwrite: bool = False
) -> list[Path]:
    """Writes the graphs of a dataset below a data root; each file is complete or absent.

    DISCS reads every file of a dataset's folder, so other files of this dataset must not be there,
    with `overwrite` or without. Nodes are the integers 0..n-1, isolated ones included. MaxCut
    graphs have the edge attribute `weight`, 1.0 if the dataset has no weights; other problems do
    not use weights, so none are written. The reference objective is written as 1 if it is unknown
    (or 0, by which DISCS would divide), and `load_dataset` does not take it for one; MIS files omit
    it instead, and the format of `er_density` has no reference.

    Args:
      dataset: at least one graph, as `load_dataset` returns it.
      data_root: created if needed.
      overwrite: whether files with the same names are replaced.

    Returns:
      the files, sorted.

    Raises:
      InputError: DISCS has no such dataset or does not read it from graphs, conflicting files
        exist, or writing fails; files written before the error stay.
    """
    _, own = writable_family(*dataset.name.split("/"))
    count = len(dataset.graphs)
    per_file = own.per_file or count
    contents = {}
    for start in range(0, count, per_file):
        # Of a pattern, DISCS only checks the beginning of the name; it sorts names as text, hence
        # the leading zeros.
        name = own.pattern.replace("*", f"{dataset.index[start]:05d}.pkl")
        contents[Path(data_root) / own.folder / name] = dataset.graphs[start : start + per_file]
    present = own.find(Path(data_root))
    if present and not overwrite:
        raise InputError(
            f"{present[0]} is already there; choose another data_root, or overwrite it with "
            "--overwrite"
        )
    if extra := [path for path in present if path not in contents]:
        raise InputError(
            f"{extra[0]} belongs to the same dataset and would be read as well; move it away first"
        )
    return [own.write(path, graphs) for path, graphs in contents.items()]


def writable_family(problem: str, graph_type: str, cfg_str: str = "") -> tuple[Family, DiscsFiles]:
    """Returns the dataset that DISCS's flags name, and its files, if they can be written.

    Raises:
      InputError: there is no such dataset, or DISCS does not read it from graphs.
    """
    family = find_family(problem, graph_type, cfg_str)
    if family.files is None or not family.scored:
        raise InputError(f"{family.name} cannot be written: DISCS has no such dataset")
    if family.files.layout is None:
        raise InputError(
            f"{family.name} cannot be written: DISCS makes its graphs from formulas (.cnf), not "
            "the other way round"
        )
    return family, family.files
