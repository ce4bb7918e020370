"""Training and test instances of a dataset, and the settings in its experiment config."""

from __future__ import annotations

import dataclasses
import os
import re
import runpy
from pathlib import Path
from typing import NamedTuple

from sl_discs.command import error_of_file
from sl_discs.errors import InputError
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.instances.families import find_family


class Names(NamedTuple):
    """The name of a dataset, as in DISCS's flags."""

    problem: str
    graph_type: str
    cfg_str: str


def parse_dataset(text: str) -> Names:
    """The names in `mis/er_density/r-0.10` or `maxclique/rb`; InputError if there is no such dataset."""
    parts = text.split("/")
    if len(parts) not in (2, 3):
        raise InputError(f"--dataset={text} is not understood; write problem/graph_type/cfg_str, or the first two")
    names = Names(*parts, *["_"] * (3 - len(parts)))
    find_family(*names)
    return names


def experiment_settings(names: Names, file: str | None) -> Settings:
    """The settings of an experiment config: the given file, or the one of the dataset.

    Raises:
      InputError: there is no such file, or it is not a config.
    """
    usual = Path("configs") / "experiment" / names.problem / f"{names.graph_type}.py"
    path = Path(file) if file else next(
        (folder / usual for folder in (Path(), Path(__file__).parents[2]) if (folder / usual).is_file()), usual
    )  # fmt: skip
    if not path.is_file():
        raise InputError(f"there is no experiment config {path}; give --config=FILE")
    try:
        fields = dict(runpy.run_path(str(path))["get_config"]().to_dict()["experiment"])
    except Exception as error:  # of the file, which is a program
        raise InputError(f"{path}: no experiment config ({error_of_file(error)})") from error
    return settings_from(fields)


@dataclasses.dataclass(frozen=True)
class Split:
    """Training and test instances.

    Attributes:
      train: instances on which settings are chosen.
      test: instances on which results are reported.
      train_words: a description of the training instances.
      test_words: a description of the test instances.
    """

    train: Dataset
    test: Dataset
    train_words: str
    test_words: str


def _words(dataset: Dataset) -> str:
    # The path of given files is omitted, as other workers may have them elsewhere.
    origin = dataset.detail if dataset.source == "generated" else f"{dataset.total} given ({dataset.source})"
    return f"{dataset.index[0]} to {dataset.index[-1]} of {dataset.name}: {origin}"


def split_instances(
    names: Names, data_root: str | os.PathLike | None, num_train: int, num_test: int | None, train_seed: int
) -> Split:
    """Disjoint training and test instances.

    For a random family, the training graphs are drawn from another data seed, whether the test instances are given or
    drawn. For a dataset that is not random, the last instances are for training and the first ones for testing.

    Args:
      names: of the dataset.
      data_root: as in `load_dataset`, for the test instances and for datasets that are not random.
      num_train: number of training instances.
      num_test: number of test instances; None: all.
      train_seed: data seed of drawn training instances.

    Raises:
      InputError: as `load_dataset`; a seed that would draw the test instances; or too few instances.
    """
    if train_seed < 1:
        raise InputError(f"--train_seed is {train_seed}, but 0 draws the test instances; give another, from 1 on")
    if find_family(*names).generator is None:
        total = load_dataset(*names, data_root, num_instances=1).total
        if num_train >= total or num_train + (num_test or 1) > total:
            raise InputError(
                f"{names.problem}/{names.graph_type} has {total} instances: too few to train on {num_train} and to "
                f"test on {num_test or 'others'}"
            )
        train = load_dataset(*names, data_root, first=total - num_train)
        test = load_dataset(*names, data_root, num_instances=num_test or total - num_train)
    else:
        train = load_dataset(*names, None, num_instances=num_train, data_seed=train_seed)
        test = load_dataset(*names, data_root, num_instances=num_test)
    return Split(train, test, _words(train), _words(test))


def part_of(dataset: Dataset, first: int, stop: int) -> Dataset:
    """Graphs first..stop-1 of those that were loaded."""
    return dataclasses.replace(dataset, graphs=dataset.graphs[first:stop], index=dataset.index[first:stop])


def folder_of(root: str | os.PathLike, dataset: Dataset) -> Path:
    """The folder of a dataset's tuned settings."""
    return Path(root, *(re.sub(r"[^A-Za-z0-9._+-]+", "-", part) for part in dataset.name.split("/")))
