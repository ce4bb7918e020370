"""A cell of a table: one method on one dataset with everything fixed, and the command that runs it
alone.
"""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sl_discs.chains.chains import program_of
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.experiment.sweep_file import find_config, sampler_config
from sl_discs.instances.dataset import find_family, load_dataset
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import Method, build_method, method_fields
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import PENALTY
from sl_discs.reproduction.tuned import (
    Candidate,
    Names,
    experiment_fields,
    parse_dataset,
    part_of,
    read_tuned,
)
from sl_discs.samplers.registry import BUILT_IN, known_samplers, own_name
from sl_discs.support.checks import check_choice
from sl_discs.support.errors import InputError
from sl_discs.support.own_code import imported

# The datasets of the paper's tables: their names in DISCS's flags, their annealing, and their
# numbers of graphs.

CONFIGS = Path(__file__).parents[2] / "configs"
# Number of graphs at the end of a non-random set that are reserved for training.
LEFT_TO_TRAINING = 16


@dataclasses.dataclass(frozen=True)
class PublishedSet:
    """One dataset.

    Attributes:
      name: its key in the published tables, of the values of DISCS's flags.
      published_n: the assumed number of graphs behind the published mean; the paper does not give
        it, and this is the number in DISCS's own configs.
    """

    name: str
    published_n: int

    @property
    def flags(self) -> Names:
        """The values of DISCS's flags."""
        return parse_dataset(self.name)

    @property
    def problem(self) -> str:
        """Name of the problem, such as `mis`."""
        return self.flags[0]

    @property
    def config_file(self) -> str:
        """Path of the experiment config, relative to the folder that holds `configs`."""
        return f"configs/experiment/{'/'.join(self.flags[:2])}.py"

    @functools.cache  # noqa: B019 (sets live as long as the process)
    def experiment(self) -> dict[str, Any]:
        """Fields of the experiment config: DISCS's annealing of the family."""
        return experiment_fields(Path(find_config(self.config_file)))

    def absent(self, data_root: str | None) -> str | None:
        """Returns why there are no instances, if the set is not random and was not given; None if
        there are instances.
        """
        family = find_family(*self.flags)
        if family.generator is not None:
            return None
        if data_root is None:
            return (
                f"it is not random, so it must be given: --data_root=FOLDER with {family.where()}"
            )
        root = Path(data_root)
        if family.find_archives(root) or family.find_files(root):
            return None
        return f"{data_root} does not have it; put {family.where()} there"

    def load(self, data_root: str | None, num_instances: int | None) -> Dataset:
        """Loads `num_instances` graphs; None: as many as DISCS has, or all given graphs of a random
        family.

        For a random family these are the first graphs. For a set that is not random they are spread
        over the whole set, since files are often sorted: the first graphs of satlib are its
        smallest.
        """
        load = functools.partial(load_dataset, *self.flags, data_root)
        if self.is_random():
            if num_instances is None and load(num_instances=1).source == "generated":
                num_instances = self.published_n
            return load(num_instances=num_instances)
        total = load(num_instances=1).total
        count = num_instances or min(self.published_n, total)
        return load(num_instances=count, stride=max(1, total // count))

    def is_random(self) -> bool:
        """Returns whether the set is drawn from a distribution, so that training graphs can be
        drawn separately.
        """
        return find_family(*self.flags).generator is not None

    def held_out(self, dataset: Dataset) -> Dataset:
        """Returns the graphs that no search for settings trains on: for a non-random set, all but
        its last ones.
        """
        if self.is_random() or dataset.total <= LEFT_TO_TRAINING:
            return dataset
        seen = dataset.total - LEFT_TO_TRAINING
        return part_of(dataset, 0, sum(index < seen for index in dataset.index))


_PUBLISHED_N = {
    **{f"mis/er_density/r-{p}": 32 for p in ("0.05", "0.10", "0.20", "0.25")},
    "mis/satlib": 500,
    "maxclique/rb": 500,
    "maxclique/twitter": 196,
    **{f"maxcut/er/r-er-0.15-n-{n}": 1000 for n in ("256-300", "512-600", "1024-1100")},
    **{f"maxcut/ba/r-ba-4-n-{n}": 1000 for n in ("256-300", "512-600", "1024-1100")},
    "maxcut/optsicom/r-b": 10,
}
PUBLISHED = {name: PublishedSet(name, n) for name, n in _PUBLISHED_N.items()}
# Datasets that can be named, but are not in the paper's tables.
OTHERS = {"mis/ertest/r-800": PublishedSet("mis/ertest/r-800", 128)}


def chosen_sets(names: Iterable[str]) -> list[PublishedSet]:
    """Datasets by name, each once; InputError for an unknown one."""
    known = PUBLISHED | OTHERS
    check_choice("datasets", names, known)
    return [known[name] for name in dict.fromkeys(names)]


DEFAULTS = "defaults"
HELD_OUT = "held out"
# The reading of the paper in which the annealing begins anew in each level, and its control; K and
# sigma are among the values that the paper searched.
LEVEL, NO_TILT = "level", "level, no tilt"
_READINGS: dict[str, dict[str, Any]] = {LEVEL: {"anneal": "level", "sigma": 15.0, "K": 512}}
_READINGS[NO_TILT] = _READINGS[LEVEL] | {"tilt": False}


@dataclasses.dataclass(frozen=True)
class Cell:
    """The definition of a cell.

    Attributes:
      protocol: `defaults`, `held out`, a reading of the paper or its control, or one of a study.
      setting: the varied setting in a table of settings, such as `sigma=5`; empty otherwise.
      settings: chains, steps and annealing; the seed is that of the first run.
      sampler: all fields of the sampler config, including `name`.
      seeds: seeds of the chains, one per run.
    """

    dataset: PublishedSet
    method: str
    protocol: str
    setting: str
    settings: Settings
    sampler: dict[str, Any]
    seeds: tuple[int, ...]

    def build(self) -> Method:
        """Builds the method."""
        return build_method(self.sampler)

    def label(self) -> str:
        """Returns the name of the cell in lists."""
        text = ", ".join(filter(None, (self.protocol, self.setting)))
        return f"{self.dataset.name} {self.method} ({text})"

    def command(self, data_root: str | None, dataset: Dataset) -> str:
        """Returns a line that runs this cell alone, with its first seed, in the folder that holds
        `configs`.

        The graphs are evenly spaced in the whole set from its first one on.
        """
        config = self.dataset.experiment()
        (problem, graph_type, cfg_str) = self.dataset.flags
        graphs = {"num_instances": len(dataset.index), "instance_stride": stride_of(dataset)}
        wanted = dataclasses.asdict(self.settings) | graphs
        default = method_fields(self.method)
        flags = [
            *(("import", code) for code in imported()),
            ("config", self.dataset.config_file),
            *(
                (f"config.experiment.{name}", value)
                for name, value in wanted.items()
                if value != config[name]
            ),
            ("model_config", f"configs/model/{problem}_config.py"),
            ("model_config.graph_type", graph_type),
            ("model_config.cfg_str", cfg_str),
            ("model_config.data_root", data_root or ""),
            ("sampler_config", sampler_config(self.method)),
            *(
                (f"sampler_config.{name}", value)
                for name, value in self.sampler.items()
                if value != default[name]
            ),
        ]
        if graph_kind(problem).penalty is not None:
            flags.append(("model_config.penalty", PENALTY))
        arguments = [shlex.quote(f"--{name}={value}") for name, value in flags]
        return " ".join(["sl-discs run", *arguments])


def stride_of(dataset: Dataset) -> int:
    """Returns the distance of graphs that are evenly spaced in the whole set."""
    return dataset.index[1] - dataset.index[0] if len(dataset.index) > 1 else 1


@dataclasses.dataclass(frozen=True)
class Choice:
    """The options of the command line for all cells; None: as in the dataset's config."""

    chain_length: int | None
    batch_size: int | None
    engine: str
    seeds: tuple[int, ...]

    def steps(self, dataset: PublishedSet) -> int:
        """Steps per chain on a dataset."""
        return self.chain_length or dataset.experiment()["chain_length"]

    def cell(
        self,
        dataset: PublishedSet,
        method: str,
        *,
        changes: dict[str, Any] | None = None,
        setting: str = "",
        protocol: str = DEFAULTS,
        tuned: Candidate | None = None,
    ) -> Cell:
        """Returns the cell of a method on a dataset; InputError if the levels do not fit into the
        chain.

        Args:
          dataset: the dataset.
          method: name of the method.
          changes: sampler fields that differ from the defaults; they are not adjusted to the chain
            length.
          setting: name of these changes in tables.
          protocol: protocol under which the cell is reported.
          tuned: other settings, of a search or a reading; K is lowered to what fits.
        """
        usual = dataset.experiment()
        steps = self.steps(dataset)
        # The graphs are chosen by the caller and are not part of the cell.
        own_fields = {
            "chain_length": steps,
            "log_every_steps": min(steps, usual["log_every_steps"]),
            "batch_size": self.batch_size or usual["batch_size"],
            "seed": self.seeds[0],
            "engine": self.engine,
            "num_instances": None,
        }
        settings = settings_from(usual | (tuned.experiment if tuned else {}) | own_fields)
        fields = method_fields(method) | (tuned.sampler if tuned else {}) | (changes or {})
        if "K" in fields and "K" not in (changes or {}):
            # As many levels as fit into a short chain.
            fields["K"] = max(1, min(fields["K"], steps // fields["n_min"]))
        cell = Cell(dataset, method, protocol, setting, settings, fields, self.seeds)
        program_of(cell.build(), settings)
        return cell


METHODS = ("gwg", "sl_gwg", "path_auxiliary", "sl_path_auxiliary", "dmala", "sl_dmala")


def chosen_methods(names: Iterable[str]) -> list[str]:
    """Methods of the paper's tables, or the user's own, each once; InputError for another."""
    names = dict.fromkeys(map(own_name, names))
    check_choice("methods", names, [*METHODS, *sorted(set(known_samplers()) - BUILT_IN)])
    return [*names]


# Sizes of the reproduction: a few graphs for a test, an hour or two on two cores, or everything on
# a GPU.


@dataclasses.dataclass(frozen=True)
class Profile:
    """A size by its name in `--profile`.

    Attributes:
      instances: number of graphs of each dataset that it runs by default; None: all of them.
      chain_length, batch_size: steps per chain and chains per graph; None: as in the dataset's
        config, as published.
      table_instances: largest number of graphs in `ablation`, which has many cells per dataset.
    """

    instances: Mapping[str, int | None]
    chain_length: int | None = None
    batch_size: int | None = None
    table_instances: int | None = None

    def count(self, dataset: str, many_cells: bool) -> int | None:
        """Returns the number of graphs of a dataset; datasets outside the profile get its smallest
        number.
        """
        count = self.instances.get(
            dataset, min(filter(None, self.instances.values()), default=None)
        )
        return min(
            filter(None, (count, self.table_instances if many_cells else None)), default=None
        )


# Less than an hour on two cores, half of it for cells at defaults, and as much for tuned ones.
_CPU = dict.fromkeys(PUBLISHED, 32) | {
    "mis/satlib": 125,
    "maxclique/rb": 256,
    "maxclique/twitter": 196,
    "maxcut/optsicom/r-b": 10,
}

PROFILES = {
    "smoke": Profile(
        {
            "mis/er_density/r-0.10": 4,
            "maxclique/rb": 2,
            "maxcut/ba/r-ba-4-n-256-300": 4,
            "maxcut/optsicom/r-b": 4,
        },
        chain_length=1_100,
        batch_size=8,
        table_instances=2,
    ),
    "cpu": Profile(_CPU, table_instances=8),
    "full": Profile(dict.fromkeys(PUBLISHED)),
}


# The cells that each table needs.

# The paper's names of the settings that its ablation varies one at a time, the others at their
# defaults; and the allocation of steps to levels and of levels to time, of which it gives figures
# alone.
ABLATION: dict[str, dict[str, Any]] = {
    **{alpha.upper(): {"alpha": alpha} for alpha in ("classic", "geom(1,1)", "geom(2,1)")},
    **{f"K={K}": {"K": K} for K in (256, 512, 1024)},
    **{f"sigma={sigma:g}": {"sigma": sigma} for sigma in (1.0, 5.0, 10.0)},
    **{
        f"{budget}, {grid}": {"budget": budget, "grid": grid}
        for budget in ("exp_decay", "identical")
        for grid in ("uniform", "log_snr")
    },
}
# One of those that are the defaults.
UNCHANGED = "GEOM(2,1)"


def main_cells(
    choice: Choice, dataset: PublishedSet, methods: list[str], held_out: bool
) -> list[Cell]:
    """Every method with its default settings and, if `held_out`, with tuned ones where a search has
    found them.
    """
    cells = [choice.cell(dataset, method) for method in methods]
    for method in methods if held_out else ():
        path = CONFIGS / "sampler" / "tuned" / dataset.name / f"{method}.json"
        if path.exists():
            cells.append(choice.cell(dataset, method, protocol=HELD_OUT, tuned=read_tuned(path)))
    return cells


def reading_cells(choice: Choice, dataset: PublishedSet, methods: list[str]) -> list[Cell]:
    """Base methods at their defaults, and localized ones with the annealing in each level, with
    tilt and without.
    """
    cells = []
    for method in methods:
        readings = _READINGS if method.startswith("sl_") else {DEFAULTS: {}}
        for protocol, fields in readings.items():
            reading = Candidate(fields, {})
            cells.append(choice.cell(dataset, method, protocol=protocol, tuned=reading))
    return cells


def ablation_cells(
    choice: Choice, dataset: PublishedSet, methods: list[str]
) -> tuple[list[Cell], list[str]]:
    """Returns the `sl_` methods under each setting of the ablation, and why some of them cannot be
    run.
    """
    cells = []
    left_out = []
    localized = [method for method in methods if method.startswith("sl_")]
    for setting, changes in ABLATION.items():
        try:
            cells += [
                choice.cell(dataset, method, changes=changes, setting=setting)
                for method in localized
            ]
        except InputError as error:
            left_out.append(f"{dataset.name} {setting}: {error}")
    return cells, left_out
