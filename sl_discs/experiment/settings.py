"""The experiment's configuration: DISCS's fields and this project's, checked."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from ml_collections import config_dict

from sl_discs.chains.annealing import ChainSettings, check_field
from sl_discs.engines.choice import ENGINES
from sl_discs.support.errors import InputError

# Fields of DISCS's experiment configs that have no meaning here, accepted so that its files can be
# used.
IGNORED_SETTINGS = {
    "name",
    "evaluator",
    "run_parallel",
    "get_additional_metrics",
    "shuffle_buffer_size",
    "plot_every_steps",
    "fig_folder",
    "save_every_steps",
    "save_samples",
    "get_estimation_error",
    "use_tqdm",
    "co_opt_prob",
    "window_size",
    "window_stride",
    "num_models",
    "ess_ratio",
}


@dataclasses.dataclass(frozen=True)
class Settings(ChainSettings):
    """The settings of a run, beside its annealing; field names are those of DISCS where it has
    them.

    Attributes:
      save_root: folder of the results; empty: results/<dataset>/<samplers>-seed<seed>.
      seed: of the chains.
      data_seed: of generated instances.
      num_instances: number of instances of the dataset to run; None, which only a config file can
        hold: all of them.
      instance_stride: distance in the dataset between instances to run; 1: consecutive ones.
      first_instance: position of the first instance to run in the dataset.
      instances_per_batch: largest number of instances that run in parallel; 0: 8, or as many as
        keep a GPU busy. Only affects speed and memory.
      checkpoint_every_s: seconds between checkpoints, from which an interrupted command continues.
      memory_gib: GiB that batches may take on each device; 0: four fifths of the memory of the
        device or, for CPUs, of the machine or its job. Batches that do not fit are divided, which
        does not change results.
      threads: of the CPU engine; 0: the number of cores that this process may use. Only affects
        speed.
      engine: `reference`, plain JAX; `cpu`, compiled loops on CPU cores for the samplers that they
        support; `cuda`, kernels for an NVIDIA GPU; `auto`, `cuda` on a machine with a GPU if
        possible, else `cpu`, else `reference`. An engine given by name is refused where it cannot
        run the sampler.
    """

    save_root: str = ""
    seed: int = 0
    data_seed: int = 0
    num_instances: int | None = None
    instance_stride: int = 1
    first_instance: int = 0
    instances_per_batch: int = 0
    threads: int = 0
    checkpoint_every_s: float = 300.0
    memory_gib: float = 0.0
    engine: str = "auto"

    def __post_init__(self):
        for field in dataclasses.fields(self):
            name = field.name
            value = getattr(self, name)
            if not isinstance(value, int | float):
                continue
            # A whole number may be 0 where that is the default.
            least = 0 if isinstance(field.default, float) or field.default == 0 else 1
            # Seeds are unsigned 64-bit integers; all other counts are signed 32-bit integers.
            most = 2**64 - 1 if name.endswith("seed") else 2**31 - 1
            check_field(value >= least, name, value, f"at least {least}")
            check_field(isinstance(value, float) or value <= most, name, value, f"at most {most}")
        if self.engine not in ENGINES:
            raise InputError(
                f"config.experiment.engine is {self.engine!r}; known: {', '.join(ENGINES)}"
            )
        super().__post_init__()


def experiment_config(dataset: str = "", /, **fields: Any) -> config_dict.ConfigDict:
    """Returns a config with all fields of `Settings` under `experiment`, each of which the command
    line can override.

    With a `dataset`, `problem/graph_type/cfg_str`, it is for graphs of this problem and type: a
    model config may leave these and cfg_str out, and one of another type is refused.
    """
    defaults = {
        field.name: config_dict.placeholder(int) if field.default is None else field.default
        for field in dataclasses.fields(Settings)
    }
    named = (
        dict(zip(("name", "graph_type", "cfg_str"), dataset.split("/"), strict=True))
        if dataset
        else {}
    )
    return config_dict.ConfigDict({"model": named, "experiment": defaults | fields})


def settings_from(fields: Mapping[str, Any]) -> Settings:
    """Settings from config fields; those left out take their defaults.

    Raises:
      InputError: an unknown field, or a value of the wrong type or out of range.
    """
    hints = typing.get_type_hints(Settings)
    unknown = sorted(set(fields) - set(hints) - IGNORED_SETTINGS)
    if unknown:
        raise InputError(
            f"config.experiment has no field {unknown[0]!r}; known: {', '.join(hints)}"
        )
    values = {}
    for name, value in fields.items():
        if name in IGNORED_SETTINGS:
            continue
        kind = hints[name]
        if kind is float and type(value) is int:
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InputError(
                f"config.experiment.{name} is {value!r}; expected {getattr(kind, '__name__', kind)}"
            )
        values[name] = value
    return Settings(**values)
