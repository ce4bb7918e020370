"""The real benchmark archives, where they are at hand."""

from pathlib import Path

import numpy as np
import pytest

from sl_discs.instances.archive import read_archive
from sl_discs.instances.dataset import load_dataset

DATA = Path(__file__).parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark archives are not beside the repository")


@pytest.mark.parametrize(
    ("arguments", "total", "referenced"),
    [
        (("mis", "satlib", "_"), 500, True),
        (("mis", "ertest", "r-800"), 128, False),
        (("maxclique", "twitter", "_"), 973, True),
        (("maxcut", "optsicom", "r-b"), 10, True),
    ],
)
def test_datasets_are_found(arguments, total, referenced):
    found = load_dataset(*arguments, DATA, first=2, num_instances=5)
    assert (found.source, found.index, found.total) == ("archive", [2, 3, 4, 5, 6], total)
    assert all((graph.reference is not None) == referenced for graph in found.graphs)
    assert all((graph.weights is not None) == (arguments[0] == "maxcut") for graph in found.graphs)


def test_satlib_references_and_clauses():
    graphs = read_archive(DATA / "mis_satlib_500.npz")
    assert np.mean([graph.reference for graph in graphs]) == pytest.approx(425.962)
    assert max(graph.num_nodes for graph in graphs) == 1347
    assert max(graph.num_edges for graph in graphs) == 5978
    for graph in graphs[:5]:  # three nodes a clause, clause by clause: the order that cnf.py gives
        edges = {tuple(edge) for edge in graph.edges.tolist()}
        assert all({(a, a + 1), (a, a + 2), (a + 1, a + 2)} <= edges for a in range(0, graph.num_nodes, 3))
