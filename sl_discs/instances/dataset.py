"""Finds and loads a dataset: from DISCS's own files, else from an archive, else drawn again from its distribution."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from sl_discs.cache import Cache
from sl_discs.capacity import check_memory
from sl_discs.errors import InputError
from sl_discs.instances.archive import count_graphs, read_archive, save_graphs
from sl_discs.instances.families import Family, find_family
from sl_discs.instances.generators import GENERATOR_VERSION, Generator
from sl_discs.instances.graph import Graph

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
