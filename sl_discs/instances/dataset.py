"""Finds and loads a dataset: from DISCS's own files, else from an archive, else drawn again from its distribution."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sl_discs.cache import Cache
from sl_discs.errors import InputError, check_memory
from sl_discs.instances import discs_files, generators
from sl_discs.instances.archive import count_graphs, read_archive, save_graphs
from sl_discs.instances.discs_files import DiscsFiles
from sl_discs.instances.generators import GENERATOR_VERSION, Generator
from sl_discs.instances.graph import Graph

# The datasets by name: `problem`, `graph_type` and `cfg_str`, spelled as in DISCS's flags.


@dataclasses.dataclass(frozen=True)
class Family:
    """One dataset, before the source of its graphs is decided.

    Attributes:
      name: `<problem>/<graph_type>`, with `/r-<r>` if there are several.
      problem: name of the problem, such as `mis`.
      stems: possible beginnings of its archives' names.
      discs: DISCS's own files, one entry for each way to write r.
      generator: draws the dataset again; None if it is not random.
      scored: whether the references in the files belong to this problem.
    """

    name: str
    problem: str
    stems: tuple[str, ...]
    discs: tuple[DiscsFiles, ...]
    generator: Generator | None
    scored: bool = True

    def find_archives(self, data_root: Path) -> list[Path]:
        """Files `<stem>.npz` and `<stem>_<anything>.npz` of a folder, sorted by name."""
        begins = "|".join(map(re.escape, self.stems))
        pattern = re.compile(rf"({begins})(_.*)?\.npz")
        return sorted(path for path in data_root.glob("*.npz") if pattern.fullmatch(path.name))

    def where(self) -> str:
        """Which files of a data root hold this dataset, in words."""
        own = self.discs[0]
        return f"DISCS's {own.folder}/{own.pattern} or an archive {self.stems[0]}*.npz"


def find_family(problem: str, graph_type: str, cfg_str: str = "") -> Family:
    """The dataset that DISCS's flags name.

    Raises:
      InputError: an unknown problem or graph type, or a `cfg_str` that the graph type does not have.
    """
    known = sorted({key[0] for key in _FAMILIES})
    if problem not in known:
        raise InputError(f"unknown problem {problem!r}; choose one of {', '.join(known)}")
    known = sorted(key[1] for key in _FAMILIES if key[0] == problem)
    if graph_type not in known:
        raise InputError(f"unknown graph_type {graph_type!r} of {problem}; choose one of {', '.join(known)}")
    return _FAMILIES[problem, graph_type](_parse_r(cfg_str))


def _parse_r(cfg_str: str | None) -> str | None:
    """The value r of DISCS's `cfg_str`, which is `r-<value>`; None for `_` and the empty string."""
    if cfg_str in (None, "", "_"):
        return None
    if not re.fullmatch(r"r-[A-Za-z0-9.-]+", cfg_str):
        raise InputError(f"cfg_str {cfg_str!r} is not understood; write r-<value>, or _ for none")
    return cfg_str.removeprefix("r-")


def _need(r: str | None, dataset: str, known: str) -> str:
    """r, which this dataset requires."""
    if r is None:
        raise InputError(f"{dataset} needs a cfg_str; known: {known}")
    return r


def _refuse(r: str | None, dataset: str) -> None:
    """Checks that no r is given."""
    if r is not None:
        raise InputError(f"{dataset} has one dataset only, so no cfg_str r-{r}; write _")


def _er_density(r: str | None) -> Family:
    r = _need(r, "mis/er_density", "r-0.05, r-0.10, r-0.20, r-0.25 (or another density)")
    # 0.1 and 0.10 are the same density, however flag and file spell it; the published tables write two digits.
    value = generators.parse_probability(r)
    r = f"{value:.2f}" if round(value, 2) == value else repr(value)
    spellings = list(dict.fromkeys([r, repr(value)]))
    own = tuple(
        DiscsFiles("er_700_800", f"ER-700-800-{text}.pkl", discs_files.read_graph_list, discs_files.plain_graphs)
        for text in spellings
    )
    stems = tuple(f"mis_er_density_{text}" for text in spellings)
    return Family(f"mis/er_density/r-{r}", "mis", stems, own, generators.mis_er_density(r))


def _ertest(r: str | None) -> Family:
    r = _need(r, "mis/ertest", "r-800, r-10k")
    own = DiscsFiles(f"er_{r}_test", "ER*", discs_files.read_single_graph, discs_files.labelled_graphs, per_file=1)
    return Family(f"mis/ertest/r-{r}", "mis", (f"mis_ertest_{r}",), (own,), generators.mis_ertest(r))


def _satlib(r: str | None) -> Family:
    _refuse(r, "mis/satlib")
    own = DiscsFiles("satlib_test", "*.cnf", discs_files.read_formula)
    return Family("mis/satlib", "mis", ("mis_satlib",), (own,), None)


def _cut(graph_type: str, r: str, generator: Generator) -> Family:
    own = DiscsFiles(
        f"maxcut-{graph_type}/maxcut-{r}", "test-*", discs_files.read_cut_solutions, discs_files.cut_solutions
    )
    return Family(f"maxcut/{graph_type}/r-{r}", "maxcut", (f"maxcut_{graph_type}_{r}",), (own,), generator)


def _maxcut_er(r: str | None) -> Family:
    known = "r-er-0.15-n-256-300, r-er-0.15-n-512-600, r-er-0.15-n-1024-1100 (or other sizes)"
    r = _need(r, "maxcut/er", known)
    return _cut("er", r, generators.maxcut_er(r))


def _maxcut_ba(r: str | None) -> Family:
    r = _need(r, "maxcut/ba", "r-ba-4-n-256-300, r-ba-4-n-512-600, r-ba-4-n-1024-1100 (or other sizes)")
    return _cut("ba", r, generators.maxcut_ba(r))


def _optsicom(r: str | None) -> Family:
    if r not in (None, "b"):
        raise InputError(f"maxcut/optsicom has r-b only, not r-{r}")
    own = DiscsFiles("optsicom", "b.pkl", discs_files.read_cut_solutions, discs_files.cut_solutions)
    return Family("maxcut/optsicom/r-b", "maxcut", ("maxcut_optsicom",), (own,), generators.maxcut_torus())


def _rb(r: str | None) -> Family:
    _refuse(r, "maxclique/rb")
    own = DiscsFiles("RB_test", "RB*", discs_files.read_scored_graphs, discs_files.scored_graphs, per_file=100)
    return Family("maxclique/rb", "maxclique", ("maxclique_rb",), (own,), generators.maxclique_rb())


def _twitter(r: str | None) -> Family:
    _refuse(r, "maxclique/twitter")
    own = DiscsFiles("twitter", "twitter*", discs_files.read_graphs_and_scores, discs_files.graphs_and_scores)
    return Family("maxclique/twitter", "maxclique", ("maxclique_twitter",), (own,), None)


def _cover(of_sets: Callable[[str | None], Family]) -> Callable[[str | None], Family]:
    """Vertex covers of the graphs of a MIS dataset, whose references are sizes of independent sets."""

    def family(r: str | None) -> Family:
        graphs = of_sets(r)
        _, _, rest = graphs.name.partition("/")
        return dataclasses.replace(graphs, name=f"vertex_cover/{rest}", problem="vertex_cover", scored=False)

    return family


_FAMILIES: dict[tuple[str, str], Callable[[str | None], Family]] = {
    ("mis", "er_density"): _er_density,
    ("mis", "ertest"): _ertest,
    ("mis", "satlib"): _satlib,
    ("maxcut", "er"): _maxcut_er,
    ("maxcut", "ba"): _maxcut_ba,
    ("maxcut", "optsicom"): _optsicom,
    ("maxclique", "rb"): _rb,
    ("maxclique", "twitter"): _twitter,
    ("vertex_cover", "er_density"): _cover(_er_density),
    ("vertex_cover", "ertest"): _cover(_ertest),
    ("vertex_cover", "satlib"): _cover(_satlib),
}


# Random keys are folded from a graph's position, a signed 32-bit integer.
_LAST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Graphs of a dataset and their source.

    Attributes:
      name: `mis/er_density/r-0.10`, `maxclique/rb` and so on, as in the published tables.
      problem: name of the problem, such as `mis`.
      source: `discs files`, `archive` or `generated`.
      detail: the path, or the distribution and its seed.
      graphs: the requested graphs.
      index: position of each graph in the whole dataset; keys folded from it do not depend on the selection.
      total: number of graphs of the whole dataset.
    """

    name: str
    problem: str
    source: str
    detail: str
    graphs: list[Graph]
    index: list[int]
    total: int


def default_data_root() -> str:
    """The folder that is searched if the user names none: DISCS's `./sco`, or none if that does not exist."""
    return "./sco" if Path("sco").is_dir() else ""


def check_data_root(data_root: str | os.PathLike | None) -> None:
    """Raises InputError if a given data root is not a folder; otherwise generated graphs would be used unnoticed."""
    if data_root not in (None, "") and not Path(data_root).is_dir():
        raise InputError(
            f"the data root {data_root!s} is not a folder; correct the path, or leave it empty to generate graphs"
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
    """Loads `num_instances` graphs of a dataset, every `stride`-th from `first` on; by default all from `first` on.

    `data_root` is searched for DISCS's own files, then for an archive. If it has neither, or is None or empty, a
    random family is drawn from `data_seed`; `satlib` and `twitter` are not random, so that is an error for them.
    A drawn dataset has a default size, but any number of graphs can be requested. Drawn graphs are cached as an
    archive in `cache_dir` (by default $SL_DISCS_CACHE, else ~/.cache/sl_discs) if that folder is writable.

    Raises:
      InputError: the names are unknown, `data_root` is not a folder, the data is missing, ambiguous or damaged, or
        the range exceeds the dataset.
    """
    family = find_family(problem, graph_type, cfg_str)
    check_data_root(data_root)
    if first < 0 or (num_instances is not None and num_instances < 1):
        raise InputError(
            f"{family.name}: first = {first}, num_instances = {num_instances}; request at least one graph"
        )
    if stride < 1:
        raise InputError(f"{family.name}: stride = {stride}; expected at least 1")
    if data_seed < 0:
        raise InputError(f"data_seed is {data_seed}; it cannot be negative")
    stop = None if num_instances is None else first + (num_instances - 1) * stride + 1
    if (last := first if stop is None else stop - 1) > _LAST:
        raise InputError(f"{family.name}: graph {last} was asked for; positions go up to {_LAST}")
    found = _load_stored(family, Path(data_root), first, stop) if data_root not in (None, "") else None
    generator = family.generator
    if found is not None:
        found = *found[:2], found[2][::stride], found[3]
    elif generator is None:
        place = f"{data_root!s}" if data_root not in (None, "") else "a data_root"
        raise InputError(f"{family.name} is not random, so it must be given: put {family.where()} into {place}")
    else:
        total = max(generator.count, stop or 0)
        _check_range(family.name, first, stop, total)
        wanted = range(first, stop or total, stride)
        graphs = _draw_cached(generator, wanted, data_seed, Cache(cache_dir))
        detail = f"{generator.description}; data_seed {data_seed}, generator version {GENERATOR_VERSION}"
        found = "generated", detail, graphs, total
    source, detail, graphs, total = found
    if not family.scored:
        graphs = [dataclasses.replace(graph, reference=None) for graph in graphs]
    index = list(range(first, stop or total, stride))
    return Dataset(family.name, family.problem, source, detail, graphs, index, total)


def _load_stored(
    family: Family, data_root: Path, first: int, stop: int | None
) -> tuple[str, str, list[Graph], int] | None:
    """Source, detail, graphs and total from the files of a data root; None if it has none for this dataset."""
    for own in family.discs:
        files = own.find(data_root)
        if files:
            graphs, total = own.load(files, first, stop)
            detail = str(files[0] if len(files) == 1 else data_root / own.folder)
            _check_range(detail, first, stop, total)
            return "discs files", detail, graphs, total
    archives = family.find_archives(data_root)
    if len(archives) > 1:
        names = ", ".join(path.name for path in archives)
        raise InputError(f"{data_root}: several archives serve {family.name} ({names}); leave one in this folder")
    if archives:
        total = count_graphs(archives[0])
        _check_range(str(archives[0]), first, stop, total)
        return "archive", str(archives[0]), read_archive(archives[0], first, stop), total
    return None


def _check_range(where: str, first: int, stop: int | None, total: int) -> None:
    """Checks that graphs first..stop-1 exist."""
    if first >= total or (stop is not None and stop > total):
        asked = f"graphs from {first} on" if stop is None else f"graphs {first} to {stop - 1}"
        raise InputError(f"{where}: {asked} were asked for, but there are {total} (0 to {total - 1})")


def _bytes_of(graph: Graph) -> int:
    """Approximate memory of a graph: the object and its arrays, tripled while an archive is being written."""
    weights = 0 if graph.weights is None else graph.weights.nbytes
    return 500 + 3 * (graph.edges.nbytes + weights)


def _draw_cached(generator: Generator, indices: range, data_seed: int, cache: Cache) -> list[Graph]:
    """Draws graphs, or reads those that an earlier call drew; InputError if they would not fit into memory."""
    stream = generator.stream.replace("/", "_")
    span = f"{indices.start}-{indices.stop}" + (f"-{indices.step}" if indices.step > 1 else "")
    name = f"{stream}_seed{data_seed}_{span}_v{GENERATOR_VERSION}.npz"
    if cache.folder is not None and cache.load(name) is not None:
        return read_archive(cache.folder / name)
    graphs = [generator.draw(data_seed, indices[0])]
    check_memory(
        f"{len(indices)} graphs of {generator.stream}", len(indices) * _bytes_of(graphs[0]), "ask for fewer instances"
    )
    graphs += [generator.draw(data_seed, k) for k in indices[1:]]
    cache.save(name, lambda file: save_graphs(file, graphs))
    return graphs


# Datasets as DISCS's own files: the folders, names and pickles that DISCS's loaders read.


def write_discs(dataset: Dataset, data_root: str | os.PathLike, overwrite: bool = False) -> list[Path]:
    """Writes the graphs of a dataset below a data root; each file is complete or absent.

    DISCS reads every file of a dataset's folder, so other files of this dataset must not be there, with `overwrite`
    or without. Nodes are the integers 0..n-1, isolated ones included. MaxCut graphs have the edge attribute `weight`,
    1.0 if the dataset has no weights; other problems do not use weights, so none are written. The reference objective
    is written as 1 if it is unknown (or 0, by which DISCS would divide); MIS files omit it instead, and the format of
    `er_density` has no reference.

    Args:
      dataset: at least one graph, as `load_dataset` returns it.
      data_root: created if needed.
      overwrite: whether files with the same names are replaced.

    Returns:
      the files, sorted.

    Raises:
      InputError: DISCS has no such dataset or does not read it from graphs, conflicting files exist, or writing
        fails; files written before the error stay.
    """
    family = writable_family(*dataset.name.split("/"))
    own, count = family.discs[0], len(dataset.graphs)
    per_file = own.per_file or count
    contents = {}
    for start in range(0, count, per_file):
        # Of a pattern, DISCS only checks the beginning of the name; it sorts names as text, hence the leading zeros.
        name = own.pattern.replace("*", f"{dataset.index[start]:05d}.pkl")
        contents[Path(data_root) / own.folder / name] = dataset.graphs[start : start + per_file]
    present = own.find(Path(data_root))
    if present and not overwrite:
        raise InputError(f"{present[0]} is already there; choose another data_root, or overwrite it with --overwrite")
    if others := [path for path in present if path not in contents]:
        raise InputError(f"{others[0]} belongs to the same dataset and would be read as well; move it away first")
    return [own.write(path, graphs) for path, graphs in contents.items()]


def writable_family(problem: str, graph_type: str, cfg_str: str = "") -> Family:
    """The dataset that DISCS's flags name, if it can be written.

    Raises:
      InputError: there is no such dataset, or DISCS does not read it from graphs.
    """
    family = find_family(problem, graph_type, cfg_str)
    if not family.scored:
        raise InputError(f"{family.name} cannot be written: DISCS does not pose {family.problem}")
    if family.discs[0].pickles is None:
        raise InputError(
            f"{family.name} cannot be written: DISCS makes its graphs from formulas (.cnf), not the other way round"
        )
    return family


# Content hashes of datasets.


def dataset_digest(dataset: Dataset) -> str:
    """SHA-256 of the sizes, edges and weights of all graphs, in hexadecimal."""
    digest = hashlib.sha256()
    for graph in dataset.graphs:
        digest.update(np.array([graph.num_nodes, len(graph.edges)], np.int64).tobytes())
        digest.update(np.ascontiguousarray(graph.edges).tobytes())
        digest.update(b"" if graph.weights is None else np.ascontiguousarray(graph.weights).tobytes())
    return digest.hexdigest()
