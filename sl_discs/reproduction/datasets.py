"""The datasets of the paper's tables: their names in DISCS's flags, their annealing, and their numbers of graphs."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from pathlib import Path
from typing import Any

from sl_discs.errors import InputError
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.instances.families import find_family
from sl_discs.tuning.instances import part_of

CONFIGS = Path(__file__).parents[2] / "configs"
# Number of graphs at the end of a non-random set that are reserved for training.
LEFT_TO_TRAINING = 16


@dataclasses.dataclass(frozen=True)
class PublishedSet:
    """One dataset.

    Attributes:
      name: its key in the published tables.
      problem: name of the problem, such as `mis`.
      graph_type: DISCS's flag of this name.
      cfg_str: DISCS's flag of this name.
      published_n: the assumed number of graphs behind the published mean; the paper does not give it, and this is the
        number in DISCS's own configs.
    """

    name: str
    problem: str
    graph_type: str
    cfg_str: str
    published_n: int

    @property
    def config_file(self) -> str:
        """Path of the experiment config, relative to the folder that holds `configs`."""
        return f"configs/experiment/{self.problem}/{self.graph_type}.py"

    def experiment(self) -> dict[str, Any]:
        """Fields of the experiment config: DISCS's annealing of the family."""
        return _read_config(self.config_file)["experiment"]

    def absent(self, data_root: str | None) -> str | None:
        """Why there are no instances, if the set is not random and was not given; None if there are instances."""
        if self.is_random():
            return None
        family = find_family(self.problem, self.graph_type, self.cfg_str)
        if data_root is None:
            return f"it is not random, so it must be given: --data_root=FOLDER with {family.where()}"
        root = Path(data_root)
        if family.find_archives(root) or any(own.find(root) for own in family.discs):
            return None
        return f"{data_root} does not have it; put {family.where()} there"

    def load(self, data_root: str | None, num_instances: int | None) -> Dataset:
        """Loads `num_instances` graphs; None: as many as DISCS has, or all given graphs of a random family.

        For a random family these are the first graphs. For a set that is not random they are spread over the whole
        set,
        since files are often sorted: the first graphs of satlib are its smallest.

        Raises:
          InputError: as `load_dataset`.
        """
        load = functools.partial(load_dataset, self.problem, self.graph_type, self.cfg_str, data_root)
        if self.is_random():
            if num_instances is None and load(num_instances=1).source == "generated":
                num_instances = self.published_n
            return load(num_instances=num_instances)
        total = load(num_instances=1).total
        count = num_instances or min(self.published_n, total)
        return load(num_instances=count, stride=max(1, total // count))

    def is_random(self) -> bool:
        """Whether the set is drawn from a distribution, so that training graphs can be drawn separately."""
        return find_family(self.problem, self.graph_type, self.cfg_str).generator is not None

    def held_out(self, dataset: Dataset) -> Dataset:
        """The graphs on which `sl-discs tune` does not train: for a non-random set, all but its last ones.

        Args:
          dataset: a result of `load`.
        """
        if self.is_random() or dataset.total <= LEFT_TO_TRAINING:
            return dataset
        seen = dataset.total - LEFT_TO_TRAINING
        return part_of(dataset, 0, sum(index < seen for index in dataset.index))


def _density(p: str) -> PublishedSet:
    return PublishedSet(f"mis/er_density/r-{p}", "mis", "er_density", f"r-{p}", 32)


def _cut(graph_type: str, r: str, published_n: int) -> PublishedSet:
    return PublishedSet(f"maxcut/{graph_type}/r-{r}", "maxcut", graph_type, f"r-{r}", published_n)


PUBLISHED = {
    one.name: one
    for one in (
        *(_density(p) for p in ("0.05", "0.10", "0.20", "0.25")),
        PublishedSet("mis/satlib", "mis", "satlib", "_", 500),
        PublishedSet("maxclique/rb", "maxclique", "rb", "_", 500),
        PublishedSet("maxclique/twitter", "maxclique", "twitter", "_", 196),
        *(_cut("er", f"er-0.15-n-{n}", 1000) for n in ("256-300", "512-600", "1024-1100")),
        *(_cut("ba", f"ba-4-n-{n}", 1000) for n in ("256-300", "512-600", "1024-1100")),
        _cut("optsicom", "b", 10),
    )
}
# Datasets that can be named, but are not in the paper's tables.
OTHERS = {"mis/ertest/r-800": PublishedSet("mis/ertest/r-800", "mis", "ertest", "r-800", 128)}


def chosen_sets(names: list[str]) -> list[PublishedSet]:
    """Datasets by name.

    Raises:
      InputError: an unknown name, or a name twice.
    """
    known = PUBLISHED | OTHERS
    for name in names:
        if name not in known:
            raise InputError(f"--datasets: unknown dataset {name!r}; known: {', '.join(known)}")
        if names.count(name) > 1:
            raise InputError(f"--datasets: {name!r} is named twice; name each once")
    return [known[name] for name in names]


@functools.cache
def _read_config(path: str) -> dict[str, Any]:
    file = CONFIGS.parent / path
    if not file.is_file():
        raise InputError(f"{file}: no such config; run this command in a checkout of the project, which has configs/")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config().to_dict()
