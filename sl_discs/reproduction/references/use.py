"""Adds the kept references to the graphs of a generated MaxCut set, and describes them in words."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from sl_discs.instances.dataset import Dataset
from sl_discs.models.kinds import graph_kind
from sl_discs.reproduction.references.store import FOLDER, load_references

# The data seed of the reproduction's graphs.
DATA_SEED = 0


def takes_references(dataset: Dataset) -> bool:
    """Whether a dataset uses this project's references, as generated MaxCut graphs have none of their own."""
    return graph_kind(dataset.problem).searched_references and dataset.source == "generated"


def with_references(dataset: Dataset, folder: Path = FOLDER) -> Dataset:
    """The dataset with kept references on its graphs; other kinds of datasets are returned unchanged.

    A graph gets no reference if the kept one was found on another graph, which `describe` reports.

    Raises:
      InputError: the file cannot be read, or claims a cut that its partition does not have.
    """
    if not takes_references(dataset):
        return dataset
    kept = load_references(dataset.name, DATA_SEED, folder)
    graphs = []
    for index, graph in zip(dataset.index, dataset.graphs, strict=True):
        known = kept.find(index, graph)
        graphs.append(graph if known is None else dataclasses.replace(graph, reference=known.cut))
    return dataclasses.replace(dataset, graphs=graphs)


def describe(dataset: Dataset, folder: Path = FOLDER) -> str | None:
    """How strong the references of a set are, or why it has no percentages; None for another kind of dataset.

    Args:
      dataset: as `with_references` returns it.
      folder: of the files.
    """
    if not takes_references(dataset):
        return None
    kept = load_references(dataset.name, DATA_SEED, folder)
    places = [index for index, graph in zip(dataset.index, dataset.graphs, strict=True) if graph.reference is None]
    if not places:
        agreed = sum(kept.graphs[index].agrees() for index in dataset.index)
        return (
            "references of this project; at least two independent starts ended at the best known cut on "
            f"{agreed} of {len(dataset.index)} graphs"
        )
    stale = [index for index in places if index in kept.graphs]
    reason = (
        f"those kept for {len(stale)} of them are of other graphs, as that of graph {stale[0]}, and so not used"
        if stale
        else f"{len(kept.graphs)} are kept"
    )
    return (
        f"no percentages: {len(places)} of {len(dataset.index)} graphs have no reference ({reason}); "
        f"sl-discs references --datasets={dataset.name} --instances={max(dataset.index) + 1} finds them"
    )
