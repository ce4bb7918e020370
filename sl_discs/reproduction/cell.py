"""A cell of a table: one method on one dataset with everything fixed, and the command that runs it alone."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

from sl_discs.errors import InputError
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.instances.dataset import Dataset
from sl_discs.localization.method import Method, build_method, method_fields
from sl_discs.models.kind import PENALTY
from sl_discs.models.kinds import graph_kind
from sl_discs.own_code import imported
from sl_discs.reproduction.datasets import PublishedSet
from sl_discs.samplers.registry import BUILT_IN, known_samplers
from sl_discs.sweeps.arguments import sampler_config
from sl_discs.tuning.points import Candidate

DEFAULTS = "defaults"
HELD_OUT = "held out"
AS_PUBLISHED = "as published"
NULL = "null"


@dataclasses.dataclass(frozen=True)
class Cell:
    """The definition of a cell.

    Attributes:
      dataset: the dataset.
      method: `gwg`, `sl_gwg` and so on.
      protocol: `defaults`, `held out`, or that of a trial: `as published` or, with the tilt off, `null`.
      setting: the varied setting in a table of settings, such as `sigma=5`, or the trial; empty otherwise.
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
        """Builds the method; InputError as `build_method`."""
        return build_method(self.sampler, self.settings.batch_size)

    def label(self) -> str:
        """The name of the cell in lists."""
        words = ", ".join(filter(None, (self.protocol, self.setting)))
        return f"{self.dataset.name} {self.method} ({words})"

    def command(self, data_root: str | None, dataset: Dataset) -> str:
        """A line that runs this cell alone, with its first seed, in the folder that holds `configs`.

        Args:
          data_root: data root of given graphs.
          dataset: the graphs, evenly spaced in the whole set from its first one on.
        """
        config = self.dataset.experiment()
        index = dataset.index
        graphs = {"num_instances": len(index), "instance_stride": index[1] - index[0] if len(index) > 1 else 1}
        wanted = dataclasses.asdict(self.settings) | graphs
        default = method_fields(self.method)
        flags = [
            *(("import", code) for code in imported()),
            ("config", self.dataset.config_file),
            *((f"config.experiment.{name}", value) for name, value in wanted.items() if value != config[name]),
            ("model_config", f"configs/model/{self.dataset.problem}_config.py"),
            ("model_config.graph_type", self.dataset.graph_type),
            ("model_config.cfg_str", self.dataset.cfg_str),
            ("model_config.data_root", data_root or ""),
            ("sampler_config", sampler_config(self.method)),
            *((f"sampler_config.{name}", value) for name, value in self.sampler.items() if value != default[name]),
        ]
        if graph_kind(self.dataset.problem).penalty is not None:
            flags.append(("model_config.penalty", PENALTY))
        arguments = [shlex.quote(f"--{name}={value}") for name, value in flags]
        return " ".join(["sl-discs run", *arguments])


@dataclasses.dataclass(frozen=True)
class Choice:
    """The options of the command line for all cells; None: as in the dataset's config.

    Attributes:
      chain_length: steps per chain.
      batch_size: chains per graph.
      engine: the engine used.
      seeds: seeds of the chains.
    """

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
        """The cell of a method on a dataset.

        Args:
          dataset: the dataset.
          method: name of the method.
          changes: sampler fields that differ from the defaults; they are not adjusted to the chain length.
          setting: name of these changes in tables.
          protocol: protocol under which the cell is reported.
          tuned: settings found by a search, including annealing.

        Raises:
          InputError: a field is unknown or out of range, or the levels do not fit into the chain.
        """
        given = {"chain_length": self.chain_length, "batch_size": self.batch_size, "seed": self.seeds[0]}
        experiment = dataset.experiment() | (tuned.experiment if tuned else {})
        experiment |= {name: value for name, value in given.items() if value is not None}
        # The graphs are chosen by the caller and are not part of the cell.
        experiment |= {"engine": self.engine, "num_instances": None}
        if experiment["log_every_steps"] > experiment["chain_length"]:
            # A chain that is only logged at its end cannot be resampled.
            experiment |= {"log_every_steps": experiment["chain_length"], "resample_every": 0}
        settings = settings_from(experiment)
        changes = changes or {}
        fields = method_fields(method) | (tuned.sampler if tuned else {}) | changes
        if "K" in fields and "K" not in changes:
            # As many levels as fit into a short chain.
            fields["K"] = max(1, min(fields["K"], settings.chain_length // fields["n_min"]))
        cell = Cell(dataset, method, protocol, setting, settings, fields, self.seeds)
        built = cell.build()
        if built.localization is not None:
            built.localization.levels(settings.chain_length)
        return cell


def check_methods(names: list[str], known: tuple[str, ...]) -> None:
    """InputError if a method is named twice, or is neither one of `known` nor the user's own."""
    own = set(known_samplers()) - BUILT_IN
    for name in names:
        if name not in known and name not in own:
            raise InputError(f"--methods: {name!r} is not in the paper's tables; known: {', '.join(known)}")
        if names.count(name) > 1:
            raise InputError(f"--methods: {name!r} is named twice; name each once")
