"""Settings at defaults and settings that were tuned on training graphs: pairs, and what they are tested on."""

import networkx as nx
import numpy as np
import pytest
from made_up import MIS, made_up
from scipy import stats

from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.graph import Graph
from sl_discs.reproduction.cells import DEFAULTS, HELD_OUT, LEFT_TO_TRAINING, PUBLISHED
from sl_discs.reproduction.rows import pair_rows

METHODS = ["gwg", "sl_gwg"]
LONG = {"chain_length": 600}


def graphs(count):
    drawn = [nx.gnp_random_graph(40, 0.2, seed=seed) for seed in range(count)]
    made = [Graph.from_arrays(f"g{seed}", 40, np.array(graph.edges)) for seed, graph in enumerate(drawn)]
    return Dataset(MIS.name, "mis", "generated", "small", made, list(range(count)), count)


def test_pairs_are_paired_by_graph():
    base, localized = made_up("gwg", [10, 11, 12, 13], **LONG), made_up("sl_gwg", [14, 12], **LONG)
    (row,) = pair_rows([base, localized])
    expected = stats.t.interval(0.95, 1, 2.5, stats.sem([4, 1]))
    assert row["mean"] == 2.5 and row["n"] == 2 and row["ci95"] == pytest.approx(list(expected))
    assert row["published"] == pytest.approx(61.938 - 61.75)


def test_tuned_settings_are_set_against_a_tuned_base_too():
    best = {"gwg": [10, 11, 12], "sl_gwg": [13, 13, 14]}
    done = [made_up(method, best[method], **LONG) for method in METHODS]
    done += [made_up(method, np.add(best[method], 1), protocol=HELD_OUT, **LONG) for method in METHODS]
    means = {(row["protocol"], row["against"]): row["mean"] for row in pair_rows(done)}
    assert means == pytest.approx(
        {(DEFAULTS, DEFAULTS): 7 / 3, (HELD_OUT, DEFAULTS): 10 / 3, (HELD_OUT, HELD_OUT): 7 / 3}
    )


def test_graphs_that_settings_are_trained_on_are_not_tested_on(tmp_path):
    twenty = graphs(20)
    write_archive(tmp_path / "mis_satlib.npz", twenty.graphs)
    satlib = PUBLISHED["mis/satlib"]
    whole = satlib.load(str(tmp_path), None)
    assert whole.index == list(range(20))
    assert satlib.held_out(whole).index == list(range(20 - LEFT_TO_TRAINING))
    assert satlib.load(str(tmp_path), 5).index == [0, 4, 8, 12, 16]  # spread over the set
    assert satlib.held_out(satlib.load(str(tmp_path), 5)).index == [0]
    assert MIS.held_out(twenty) is twenty  # trained on draws of another seed
