"""How settings are evaluated: training and test instances, runs on them, comparisons, and files of
tuned settings.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.experiment.record import best_values, paired
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.experiment.sweep_file import find_config
from sl_discs.instances.dataset import find_family, load_dataset
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import build_method
from sl_discs.reproduction.tuned import Candidate, Names, experiment_fields
from sl_discs.support.documents import write_json
from sl_discs.support.errors import InputError
from sl_discs.support.terminal import Advance
from space import Dimension, Point, candidate_of

# Run seed of trial 0; later trials count up from it. Test runs use smaller seeds.
FIRST_TRIAL_SEED = 1_000


@dataclasses.dataclass(frozen=True)
class Tuning:
    """A search: what it may choose, and how that is evaluated.

    Attributes:
      space: the dimensions of its points.
      start: settings for everything that the space omits.
      train: the training instances.
      settings: chains, steps and engine, to which candidates bring their own annealing.
      penalty: of a conflict.
      seed: of the choices.
    """

    space: tuple[Dimension, ...]
    start: Candidate
    train: Dataset
    settings: Settings
    penalty: float
    seed: int

    @property
    def rungs(self) -> tuple[int, ...]:
        """Numbers of training instances after which a trial may be pruned: a quarter, a
        half, all.
        """
        count = len(self.train.graphs)
        return tuple(sorted({max(1, count // 4), max(1, count // 2), count}))

    def candidate(self, point: Point) -> Candidate:
        """Returns the settings that a point represents."""
        return candidate_of(point, self.start)

    def chain_steps(self, dataset: Dataset) -> int:
        """Returns the number of chain-steps of one sampler."""
        return self.settings.chain_length * self.settings.batch_size * len(dataset.graphs)

    def evaluate(
        self,
        candidate: Candidate,
        dataset: Dataset,
        seed: int,
        progress: Callable[[int, str], None],
    ) -> Float64[np.ndarray, "G"]:
        """Returns the verified best objective of each instance; `progress` is that of
        `run_sampler`.
        """
        settings = dataclasses.replace(candidate.settings(self.settings), seed=seed)
        method = build_method(candidate.sampler)
        plan = plan_of(dataset, self.penalty, method, settings)
        return best_values(run_sampler(plan, progress))


# Compares the best settings of a search with the base sampler's defaults on the test instances.


def held_out(
    tuning: Tuning,
    test: Dataset,
    seeds: int,
    tuned: Candidate,
    default: Candidate,
    tuned_base: Candidate | None,
    progress: Advance,
) -> dict[str, Any]:
    """Test means and paired differences; the value of an instance is its mean over run seeds
    0..seeds-1.

    Compared are the best settings of a search, the base sampler's defaults with the dataset's usual
    annealing, and the base sampler's tuned settings, if there are any. `progress` shows each of
    them under its name.
    """

    def values(name: str, candidate: Candidate) -> Float64[np.ndarray, "G"]:
        advance = functools.partial(progress, name)
        return np.mean(
            [tuning.evaluate(candidate, test, seed, advance) for seed in range(seeds)], axis=0
        )

    ours, theirs = values("tuned", tuned), values("default", default)
    found = {"test_mean": ours.mean().item(), "default_test_mean": theirs.mean().item()}
    found["paired"] = paired(ours, theirs).interval()
    if tuned_base is not None:
        base = values("tuned base", tuned_base)
        found["tuned_base"] = {
            "test_mean": base.mean().item(),
            "paired": paired(ours, base).interval(),
        }
    return found


def format_difference(difference: dict[str, Any]) -> str:
    """`+0.25, 95% interval 0.05 to 0.45, 32 instances`."""
    interval = difference["ci95"]
    words = "" if interval is None else f", 95% interval {interval[0]:+.3f} to {interval[1]:+.3f}"
    return f"{difference['mean']:+.3f}{words}, {difference['n']} instances"


# Training and test instances of a dataset, and the settings in its experiment config.


def experiment_settings(names: Names, file: str | None) -> Settings:
    """Returns the settings of an experiment config: the given file, or the one of the dataset."""
    path = Path(file or find_config(f"configs/experiment/{names[0]}/{names[1]}.py"))
    if not path.is_file():
        raise InputError(f"there is no experiment config {path}; give --config=FILE")
    return settings_from(experiment_fields(path))


def words_of(dataset: Dataset) -> str:
    """Returns the instances in words."""
    # The path of given files is omitted, as other workers may have them elsewhere.
    origin = (
        dataset.detail
        if dataset.source == "generated"
        else f"{dataset.total} given ({dataset.source})"
    )
    return f"{dataset.index[0]} to {dataset.index[-1]} of {dataset.name}: {origin}"


def split_instances(
    names: Names,
    data_root: str | os.PathLike | None,
    num_train: int,
    num_test: int | None,
    train_seed: int,
) -> tuple[Dataset, Dataset]:
    """Returns disjoint training and test instances, of which `num_test` is None for all.

    For a random family, the training graphs are drawn from another data seed, `train_seed`, whether
    the test instances are given or drawn. For a dataset that is not random, the last instances are
    for training and the first ones for testing.
    """
    if train_seed < 1:
        raise InputError(
            f"--train_seed is {train_seed}, but 0 draws the test instances; give another, from 1 on"
        )
    if find_family(*names).generator is None:
        total = load_dataset(*names, data_root, num_instances=1).total
        if num_train >= total or num_train + (num_test or 1) > total:
            raise InputError(
                f"{names[0]}/{names[1]} has {total} instances: too few to train on {num_train} and "
                "to "
                f"test on {num_test or 'others'}"
            )
        train = load_dataset(*names, data_root, first=total - num_train)
        test = load_dataset(*names, data_root, num_instances=num_test or total - num_train)
    else:
        train = load_dataset(*names, None, num_instances=num_train, data_seed=train_seed)
        test = load_dataset(*names, data_root, num_instances=num_test)
    return train, test


def folder_of(root: str | os.PathLike, dataset: Dataset) -> Path:
    """Returns the folder of a dataset's tuned settings."""
    return Path(
        root, *(re.sub(r"[^A-Za-z0-9._+-]+", "-", part) for part in dataset.name.split("/"))
    )


# Tuned settings as files: `configs/sampler/tuned/<dataset>/<method>.json`.


def write_tuned(path: str | os.PathLike, candidate: Candidate, search: dict[str, Any]) -> Path:
    """Writes settings with the record of their search."""
    record = {"sampler": candidate.sampler, "experiment": candidate.experiment, "search": search}
    return write_json(Path(path), record)
