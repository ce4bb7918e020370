"""Cells that were not run."""

import dataclasses

import numpy as np

from sl_discs.instances.graph import Dataset, Graph
from sl_discs.reproduction.cells import DEFAULTS, PUBLISHED, Choice
from sl_discs.reproduction.runs import CellResult, Done

MIS = PUBLISHED["mis/er_density/r-0.10"]


def made_up(method, best, references=None, *, published=MIS, source="generated", seed=0, chain_length=60, rate=1e6,
            protocol=DEFAULTS, setting=""):  # fmt: skip
    """The cell of a method on paths of three nodes; `best` has a value for each graph, or for each seed and graph."""
    best = np.atleast_2d(np.array(best, np.float64))
    known = references or [None] * best.shape[1]
    graphs = [Graph.from_arrays(f"g{k}", 3, [[0, 1], [1, 2]], reference=known[k]) for k in range(best.shape[1])]
    dataset = Dataset(published.name, published.problem, source, "small", graphs, list(range(len(graphs))), 4)
    result = CellResult(best, 2.0, rate, {"source": "made up"}, {})
    choice = Choice(chain_length, 4, "cpu", tuple(range(seed, seed + len(best))))
    cell = dataclasses.replace(choice.cell(published, method, setting=setting), protocol=protocol)
    return Done(cell, dataset, result)
