"""The study of base samplers: what is measured on which graphs, and what the page says of it."""

import dataclasses

import numpy as np

import samplers
from cases import CASES
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.graph import Graph


def cell(best):
    return samplers.Cell({}, {}, {}, {"steps": best, "seconds": best})


def test_the_page_marks_samplers_that_are_level_with_the_best():
    """The interval of the difference from the best decides: -1 always, and differences with mean -.25."""
    column = {"first": [10.0, 12, 14, 16], "behind": [9.0, 11, 13, 15], "level": [10.0, 12, 14, 15]}
    runs = [{"steps": 10**6, "cpu_s": 2.0, "effective": [40.0, 20 + seed, 90], "r_hat": 1.0} for seed in (0, 2)]
    text = samplers.page(
        {"case": {name: cell(best) for name, best in column.items()}}, {"first": runs}, samplers.FULL
    )
    for line in ("| `first` | **13.0** |", "| `behind` | 12.0 (-1.0 ± 0.0) |", "| `level` | **12.8** (-0.2 ± 0.8) |"):
        assert text.count(line) == 2, text
    # 20 and 22 effective draws of the worst observable; t.ppf(.975, 1) * std / sqrt(2) = 12.7.
    assert "| `first` | 21 ± 13 | 10.5 ± 6.4 | 1.00 |" in text


def paths(count):
    """Paths of 3, 5, 7 ... nodes; the largest independent sets have 2, 3, 4 ... nodes."""
    sizes = [2 * number + 3 for number in range(count)]
    return [Graph.from_arrays(f"p{n}", n, np.array([[i, i + 1] for i in range(n - 1)])) for n in sizes]


def test_temperatures_are_chosen_on_other_graphs_than_those_that_are_measured(tmp_path, monkeypatch):
    monkeypatch.setitem(CASES, "mis-paths", dataclasses.replace(CASES["mis-er-0.05"], name="mis-paths", graphs=paths))
    played = []
    run = samplers.run_sampler

    def spy(dataset: Dataset, *rest):
        played.append([graph.num_nodes for graph in dataset.graphs])
        return run(dataset, *rest)

    monkeypatch.setattr(samplers, "run_sampler", spy)
    size = samplers.Size(("mis-paths",), 400, 0.001, 4, tuning=1, graphs=2, draws=8, seeds=2)
    text = samplers.run(tmp_path, ["metropolis"], size)
    assert played == 2 * (6 * [[7]] + [[3, 5]])
    assert text.count("| `metropolis` | **2.5** |") == 2 and (tmp_path / "samplers.md").read_text() == text
    assert samplers.run(tmp_path, ["metropolis"], size) == text and len(played) == 14
