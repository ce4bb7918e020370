"""The experiment's configuration: DISCS's fields and this project's, checked."""

from __future__ import annotations

import dataclasses
import numbers
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32, Int, Int64
from ml_collections import config_dict

from sl_discs.engines.registry import ENGINES
from sl_discs.errors import InputError


def _check(holds: bool, field: str, value: Any, expected: str) -> None:
    if not holds:
        raise InputError(f"config.experiment.{field} is {value}; expected {expected}")


# DISCS's temperature schedules, optionally with reheating: tau at steps 1..chain_length.

SCHEDULES = ("constant", "linear", "exp_decay")
# Steps whose temperatures are computed at a time, so that intermediate float64 arrays stay small.
_BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class Annealing:
    """How the temperature falls along a chain, whatever its length; field names are those of DISCS.

    Attributes:
      t_schedule: `constant`, `linear` or `exp_decay`; or, in a config file, a tuple of temperatures, each for an
        equal part of the chain.
      init_temperature: temperature at step 0.
      final_temperature: last temperature, or floor of `exp_decay`; with `constant` it is set to init_temperature,
        so that records are correct.
      decay_rate: of `exp_decay`, over the whole chain.
      anneal_every: number of consecutive steps with the same temperature; 1 is DISCS's schedule.
      reheats: how often `linear` or `exp_decay` goes back to its middle and cools again, all within chain_length; 0:
        DISCS's.
    """

    t_schedule: str | tuple = "exp_decay"
    init_temperature: float = 1.0
    final_temperature: float = 1e-4
    decay_rate: float = 0.05
    anneal_every: int = 1
    reheats: int = 0

    def __post_init__(self):
        if isinstance(self.t_schedule, tuple):
            table = [isinstance(one, numbers.Real) and 0 < one < np.inf for one in self.t_schedule]
            _check(bool(table) and all(table), "t_schedule", self.t_schedule, "temperatures above 0, one or more")
        elif self.t_schedule not in SCHEDULES:
            raise InputError(f"config.experiment.t_schedule is {self.t_schedule!r}; known: {', '.join(SCHEDULES)}")
        for name in ("init_temperature", "final_temperature"):
            # Energies are divided by it, in single precision.
            _check(1e-30 <= getattr(self, name) <= 1e30, name, getattr(self, name), "a number from 1e-30 to 1e30")
        _check(0 < self.decay_rate <= 1, "decay_rate", self.decay_rate, "a number in (0, 1]")
        if self.reheats and self.t_schedule not in ("linear", "exp_decay"):
            raise InputError("config.experiment.reheats is only for t_schedule linear and exp_decay; set it to 0")
        if self.t_schedule == "constant":
            object.__setattr__(self, "final_temperature", self.init_temperature)


@dataclasses.dataclass(frozen=True)
class Temperatures:
    """Temperature of each step of a run, a sequence of float32 [T] that is indexed like an array.

    Temperatures are computed on request, so chains of any length take no memory for them. Those of `exp_decay` are
    init_temperature decay_rate^(step/T), but never below final_temperature, which is thus only a floor.

    Reheating (Li and Zhang, Reheated gradient-based discrete sampling for combinatorial optimization, TMLR 2025) goes
    back to the middle of the schedule when it has come to its end, and cools again at the same rate per step. The
    paper goes back when the objective stalls; here the positions are fixed, as a schedule is known before the run.

    Attributes:
      annealing: how the temperature falls.
      steps: T.
      last: number of the last step, counted from 0, of each of A annealings, which all go from the first temperature
        to the last one; None: there is one, over the run.
    """

    annealing: Annealing
    steps: int
    last: Int[np.ndarray, "A"] | None = None

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, places) -> Float32[np.ndarray, "*S"]:
        """Temperatures at positions from 0 on: a number, an array of them, or a slice."""
        if not isinstance(places, slice):
            return self._at(np.asarray(range(len(self))[places] if np.ndim(places) == 0 else places))
        steps = range(len(self))[places]
        every = self.annealing.anneal_every
        if every > 1 and steps.step == 1 and self.last is None:
            # Each temperature is computed once.
            first = steps.start // every * every
            return np.repeat(self._at(np.arange(first, steps.stop, every)), every)[steps.start - first :][
                : len(steps)
            ]
        found = np.empty(len(steps), np.float32)
        for begin in range(0, len(steps), _BLOCK):
            block = steps[begin : begin + _BLOCK]
            found[begin : begin + len(block)] = self._at(np.arange(block.start, block.stop, block.step))
        return found

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self[:].astype(dtype or np.float32, copy=False)

    def position(self, part: np.ndarray | np.floating) -> np.ndarray | np.floating:
        """Returns the position in the schedule after this part of an annealing, both from 0 to 1."""
        reheats = self.annealing.reheats
        if not reheats:
            return part
        later = part * (1 + reheats / 2) - 1
        # Rounding must not add a reheating at the end.
        done = np.maximum(np.ceil(2 * later - 1e-9), 1) - 1
        return np.where(later <= 0, 1 + later, (1 - done) / 2 + later)

    def _at(self, places: np.ndarray) -> Float32[np.ndarray, "*S"]:
        given, (begin, length) = self.annealing, self._annealing_at(places)
        schedule, initial, final = given.t_schedule, given.init_temperature, given.final_temperature
        part = self.position(((places - begin) // given.anneal_every * given.anneal_every + 1) / length)
        if isinstance(schedule, tuple):
            steps = np.rint(part * length).astype(np.int64) - 1
            values = np.asarray(schedule)[np.maximum(steps, 0) * len(schedule) // length]
        elif schedule == "constant":
            values = np.full(part.shape, initial)
        elif schedule == "linear":
            values = initial + (final - initial) * part
        else:
            values = np.maximum(initial * given.decay_rate**part, final)
        return np.asarray(values, np.float32)

    def _annealing_at(self, places: np.ndarray) -> tuple[int, int] | tuple[np.ndarray, np.ndarray]:
        """Returns the first position of the annealing that each position belongs to, and its number of steps."""
        if self.last is None:
            return 0, len(self)
        number = np.searchsorted(self.last, places)
        begin = np.concatenate([[0], self.last + 1])[number]
        return begin, self.last[number] + 1 - begin


# Fields of DISCS's experiment configs that have no meaning here, accepted so that its files can be used.
DISCS_ONLY = {
    "name", "evaluator", "run_parallel", "get_additional_metrics", "shuffle_buffer_size",
    "plot_every_steps", "fig_folder", "save_every_steps", "save_samples", "get_estimation_error", "use_tqdm",
    "co_opt_prob", "window_size", "window_stride", "num_models", "ess_ratio",
}  # fmt: skip


# Fields of numbers that may be 0, and those of whole numbers that may not.
_FROM_ZERO = (
    "seed", "data_seed", "first_instance", "instances_per_batch", "use_devices", "threads", "checkpoint_every_s",
    "memory_gib", "reheats",
)  # fmt: skip
_FROM_ONE = "batch_size", "chain_length", "log_every_steps", "anneal_every", "instance_stride", "num_instances"


@dataclasses.dataclass(frozen=True)
class Settings(Annealing):
    """The settings of a run, beside its annealing; field names are those of DISCS where it has them.

    Attributes:
      batch_size: chains per instance.
      chain_length: MCMC steps of each chain.
      log_every_steps: steps between logged ones.
      save_root: folder of the results; empty: results/<dataset>/<samplers>-seed<seed>.
      seed: of the chains.
      data_seed: of generated instances.
      num_instances: number of instances of the dataset to run; None, which only a config file can hold: all of them.
      instance_stride: distance in the dataset between instances to run; 1: consecutive ones.
      first_instance: position of the first instance to run in the dataset.
      instances_per_batch: largest number of instances that run in parallel; 0: 8, or as many as keep a GPU busy. Only
        affects speed and memory.
      use_devices: number of devices for instances and chains, divided as evenly as each batch allows; 0: all.
      checkpoint_every_s: seconds between checkpoints, from which an interrupted command continues.
      memory_gib: GiB that batches may take on each device; 0: four fifths of the memory of the device or, for CPUs,
        of the machine or its job. Batches that do not fit are divided, which does not change results.
      threads: of the CPU engine; 0: the number of cores that this process may use. Only affects speed.
      engine: `reference` (or `xla`, its earlier name), plain JAX; `cpu`, compiled loops on CPU cores for the samplers
        that they support; `auto`, `cpu` if possible, otherwise `reference`. An engine given by name is refused where
        it cannot run the sampler.
    """

    batch_size: int = 32
    chain_length: int = 10_000
    log_every_steps: int = 100
    save_root: str = ""
    seed: int = 0
    data_seed: int = 0
    num_instances: int | None = None
    instance_stride: int = 1
    first_instance: int = 0
    instances_per_batch: int = 0
    use_devices: int = 0
    threads: int = 0
    checkpoint_every_s: float = 300.0
    memory_gib: float = 0.0
    engine: str = "auto"

    def __post_init__(self):
        for name in (*_FROM_ZERO, *_FROM_ONE):
            value, least = getattr(self, name), int(name in _FROM_ONE)
            # Seeds are unsigned 64-bit integers; all other counts are signed 32-bit integers.
            most = 2**64 - 1 if name.endswith("seed") else 2**31 - 1
            _check(value is None or value >= least, name, value, f"at least {least}")
            _check(not isinstance(value, int) or value <= most, name, value, f"at most {most}")
        if self.log_every_steps > self.chain_length:
            raise InputError(
                f"config.experiment.log_every_steps is {self.log_every_steps}, more than "
                f"config.experiment.chain_length = {self.chain_length}; log more often or run longer"
            )
        if self.engine not in ENGINES:
            raise InputError(f"config.experiment.engine is {self.engine!r}; known: {', '.join(ENGINES)}")
        super().__post_init__()
        _check(self.reheats < self.chain_length, "reheats", self.reheats, "0 to below chain_length")

    def logged_steps(self) -> Int64[np.ndarray, "L"]:
        """Returns the numbers of the logged steps, from 1 on."""
        return np.arange(self.log_every_steps, self.chain_length + 1, self.log_every_steps)

    def temperatures(self, last: Int[np.ndarray, "A"] | None = None) -> Temperatures:
        """Returns the temperatures of steps 1..T; `last` as in `Temperatures`."""
        return Temperatures(self, self.chain_length, last)


def experiment_config(dataset: str = "", /, **fields: Any) -> config_dict.ConfigDict:
    """Returns a config with all fields of `Settings` under `experiment`, each of which the command line can
    override.

    With a `dataset`, `problem/graph_type/cfg_str`, it is for graphs of this problem and type: a model config may
    leave these and cfg_str out, and one of another type is refused.
    """
    defaults = {
        field.name: config_dict.placeholder(int) if field.default is None else field.default
        for field in dataclasses.fields(Settings)
    }
    named = dict(zip(("name", "graph_type", "cfg_str"), dataset.split("/"), strict=True)) if dataset else {}
    return config_dict.ConfigDict({"model": named, "experiment": defaults | fields})


def settings_from(fields: Mapping[str, Any]) -> Settings:
    """Settings from config fields; those left out take their defaults.

    Raises:
      InputError: an unknown field, or a value of the wrong type or out of range.
    """
    hints = typing.get_type_hints(Settings)
    unknown = sorted(set(fields) - set(hints) - DISCS_ONLY)
    if unknown:
        raise InputError(f"config.experiment has no field {unknown[0]!r}; known: {', '.join(hints)}")
    values = {}
    for name, value in fields.items():
        if name in DISCS_ONLY:
            continue
        kind = hints[name]
        if kind is float and type(value) is int:
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InputError(f"config.experiment.{name} is {value!r}; expected {getattr(kind, '__name__', kind)}")
        values[name] = value
    return Settings(**values)
