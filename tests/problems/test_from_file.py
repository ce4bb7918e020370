"""`read` poses the same problem as the constructor from the same graph, and says what does
not fit.
"""

import warnings

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs import InputError
from sl_discs.instances.archive import write_archive
from sl_discs.instances.graph import Graph


@pytest.fixture
def graph_file(tmp_path):
    path = tmp_path / "graph.col"
    edges = "\n".join(f"e {u + 1} {v + 1}" for u, v in nx.petersen_graph().edges)
    path.write_text(f"p edge 10 15\nn 1 3\n{edges}\n")
    return path


@pytest.mark.parametrize("kind", ["mis", "maxcut", "maxclique", "vertex_cover"])
def test_graphs_keep_the_labels_of_the_file(graph_file, kind):
    graph = nx.relabel_nodes(nx.petersen_graph(), lambda node: node + 1)
    found, given = sl_discs.read(graph_file, kind, weights=False), getattr(sl_discs, kind)(graph)
    assert set(found.labels) == set(range(1, 11)) and found.kind == kind
    assert sl_discs.solve(found).best_value == sl_discs.solve(given).best_value


def test_weights_and_penalties_are_passed_on(graph_file):
    weighted = sl_discs.read(graph_file, "mis", weights=True, penalty=2.0)
    assert weighted.penalty == 2.0 and weighted.source.node_weights.tolist() == [3.0] + [1.0] * 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sl_discs.read(graph_file, "mis", weights=False).source.node_weights is None
        assert sl_discs.read(graph_file, "maxcut").source.node_weights is None
    with pytest.raises(InputError, match="penalty has no effect in maxcut"):
        sl_discs.read(graph_file, "maxcut", penalty=2.0)
    with pytest.warns(
        UserWarning, match=r"the weights of its nodes do not count without weights=True"
    ) as told:
        assert sl_discs.read(graph_file, "mis").source.node_weights is None
    assert told[0].filename == __file__


@pytest.mark.parametrize("kind", ["qubo", "ising"])
def test_a_kind_takes_what_it_is_posed_on(graph_file, tmp_path, kind):
    with pytest.raises(InputError) as caught:
        sl_discs.read(graph_file, kind)
    assert str(caught.value).startswith(f"{graph_file}: dimacs: {kind} is not posed on a Graph; ")
    model = tmp_path / "model.qubo"
    model.write_text("p qubo 0 2 0 1\n0 1 3\n")
    assert sl_discs.read(model).kind == sl_discs.read(model, "qubo").kind == "qubo"
    for other in "ising", "mis":
        with pytest.raises(InputError, match=f"{other} is not posed on a QuadraticForm; .* qubo$"):
            sl_discs.read(model, other)


def test_one_of_several_is_chosen(tmp_path):
    graphs = [Graph.from_arrays(f"g{k}", k + 2, np.array([[0, 1]])) for k in range(3)]
    path = tmp_path / "graphs.npz"
    write_archive(path, graphs)
    with pytest.raises(InputError, match=r"3 graphs or models; choose one: number=0 to 2"):
        sl_discs.read(path, "mis")
    assert [sl_discs.read(path, "mis", number=k).num_variables for k in range(3)] == [2, 3, 4]
    with pytest.raises(InputError, match=r"number is 3; expected 0 to 2"):
        sl_discs.read(path, "mis", number=3)
