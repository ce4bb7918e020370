"""The real benchmark archives, where they are at hand."""

from pathlib import Path

import numpy as np
import pytest

from sl_discs.instances.archive import count_graphs, read_archive
from sl_discs.instances.dataset import load_dataset

DATA = Path(__file__).parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark archives are not beside the repository")


@pytest.mark.parametrize(
    ("name", "count", "referenced"),
    [
        ("mis_satlib_500", 500, True),
        ("mis_ertest_800_128", 128, False),
        ("maxclique_twitter_973", 973, True),
        ("maxcut_optsicom_10", 10, True),
    ],
)
def test_first_graphs(name, count, referenced):
    path = DATA / f"{name}.npz"
    assert count_graphs(path) == count
    graphs = read_archive(path, 0, 5)
    assert len(graphs) == 5
    assert all((graph.reference is not None) == referenced for graph in graphs)
    assert all((graph.weights is not None) == ("maxcut" in name) for graph in graphs)


def test_datasets_are_found():
    for arguments, total in (
        (("mis", "satlib", "_"), 500),
        (("mis", "ertest", "r-800"), 128),
        (("maxclique", "twitter", "_"), 973),
        (("maxcut", "optsicom", "r-b"), 10),
    ):
        found = load_dataset(*arguments, DATA, first=2, num_instances=2)
        assert (found.source, found.index, found.total) == ("archive", [2, 3], total)


def test_satlib_references_and_clauses():
    graphs = read_archive(DATA / "mis_satlib_500.npz")
    assert np.mean([graph.reference for graph in graphs]) == pytest.approx(425.962)
    assert max(graph.num_nodes for graph in graphs) == 1347
    assert max(graph.num_edges for graph in graphs) == 5978
    for graph in graphs[:5]:  # three nodes a clause, clause by clause: the order that cnf.py gives
        edges = {tuple(edge) for edge in graph.edges.tolist()}
        assert all({(a, a + 1), (a, a + 2), (a + 1, a + 2)} <= edges for a in range(0, graph.num_nodes, 3))
