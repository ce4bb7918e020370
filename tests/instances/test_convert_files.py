"""The command that turns one file into another: the same graph, one line of summary, one line of
error.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.commands import convert
from sl_discs.instances.archive import write_archive
from sl_discs.instances.form import FormValues
from sl_discs.instances.formats import read_instances
from sl_discs.instances.graph import Graph, complement


def run(*arguments):
    return convert.main(["convert", *map(str, arguments)])


def edges_of(path):
    (instance,) = read_instances(path, format=None if path.suffix in (".npz", ".rudy") else "rudy")
    graph = instance.content
    weights = [None] * graph.num_edges if graph.weights is None else graph.weights.tolist()
    return graph.num_nodes, {
        (u, v): w for (u, v), w in zip(graph.edges.tolist(), weights, strict=True)
    }


@pytest.mark.parametrize("name", ["out.rudy", "out.npz", "out.TXT"])
def test_weights_survive(tmp_path, capsys, name):
    (tmp_path / "in.txt").write_text("2 1 0.1\n3 2 -2\n")
    assert run(tmp_path / "in.txt", tmp_path / name, "--from=edge_list") == 0
    out, err = capsys.readouterr()
    assert edges_of(tmp_path / name) == (3, {(0, 1): 0.1, (1, 2): -2.0})
    assert not err
    assert out == (
        f"{tmp_path / 'in.txt'} (edge_list): 3 nodes, 2 edges, weights; saved in "
        f"{tmp_path / name} "
        f"({'npz); labels 1 to 3 became 0 to 2' if name == 'out.npz' else 'rudy)'}\n"
    )


def test_new_numbers_of_nodes_are_told(tmp_path, capsys):
    target = tmp_path / "out.clq"
    (tmp_path / "in.edges").write_text("10 20\n20 30\n30 5\n")
    assert run(tmp_path / "in.edges", target) == 0
    assert capsys.readouterr().out.endswith(
        f"(dimacs); {target}.labels has the label of each number\n"
    )
    assert (tmp_path / "out.clq.labels").read_text() == "1 5\n2 10\n3 20\n4 30\n"
    (tmp_path / "in.edges").write_text("0 1\n1 2\n")
    assert run(tmp_path / "in.edges", target) == 0
    assert capsys.readouterr().out.endswith("; labels 0 to 2 became 1 to 3\n")
    assert run(tmp_path / "in.edges", tmp_path / "out.npz") == 0
    assert capsys.readouterr().out.endswith("(npz)\n")
    (tmp_path / "in.json").write_text('{"nodes": [{"id": "a\\nb"}, {"id": [1, "c"]}], "edges": []}')
    assert run(tmp_path / "in.json", target) == 0
    assert (tmp_path / "out.clq.labels").read_text() == '1 "a\\nb"\n2 [1, "c"]\n'


def test_from_to_and_complement(tmp_path, capsys):
    # Weights of 1 are none, so that the graph has a complement, and DIMACS can hold it.
    (tmp_path / "in.rudy").write_text("4 4\n1 2 1\n2 3 1\n3 4 1\n1 4 1\n")
    target = tmp_path / "sub" / "out.clq"
    assert run(tmp_path / "in.rudy", target, "--from=edge_list") == 2
    assert ":2: '1 2 1' where every line should be" in capsys.readouterr().err
    assert run(tmp_path / "in.rudy", target, "--complement") == 0
    assert "(rudy, complemented): 4 nodes, 2 edges; saved in" in capsys.readouterr().out
    assert target.read_text() == "p edge 4 2\ne 1 3\ne 2 4\n"


def test_archives_of_several_graphs(tmp_path, capsys):
    write_archive(tmp_path / "two.npz", [Graph.from_arrays(str(n), n, [(0, 1)]) for n in (3, 4)])
    assert run(tmp_path / "two.npz", tmp_path / "out.npz", "--complement") == 0
    assert "2 graphs, 3 to 4 nodes, 2 to 5 edges; saved" in capsys.readouterr().out
    edges = [instance.content.num_edges for instance in read_instances(tmp_path / "out.npz")]
    assert edges == [2, 5]
    assert run(tmp_path / "two.npz", tmp_path / "out.clq") == 2
    assert "2 graphs, but a dimacs file holds one; write an .npz" in capsys.readouterr().err


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 7), data=st.data())
def test_complement_has_the_other_edges(n, data):
    pairs = list(itertools.combinations(range(n), 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    other = complement(Graph.from_arrays("g", n, np.array(edges, int).reshape(-1, 2)))
    assert [tuple(pair) for pair in other.edges.tolist()] == [
        pair for pair in pairs if pair not in edges
    ]


def test_numbers_that_are_not_written_are_told(tmp_path, capsys):
    graph = (
        '{"nodes": [{"id": 0}, {"id": 1, "x": 0.5}], "edges": [{"source": 0, "target": 1, '
        '"cost": 2.5}]}'
    )
    (tmp_path / "in.json").write_text(graph)
    assert run(tmp_path / "in.json", tmp_path / "out.npz") == 0
    err = capsys.readouterr().err
    assert "edges have numbers under 'cost' that do not count; weight=cost uses them" in err
    assert "under 'x'" in err
    assert run(tmp_path / "in.json", tmp_path / "out.npz", "--weight=cost") == 0
    assert "under 'x'" in capsys.readouterr().err
    assert edges_of(tmp_path / "out.npz") == (2, {(0, 1): 2.5})


def test_models_go_to_archives(tmp_path, capsys):
    (tmp_path / "m").write_text(
        "%%MatrixMarket matrix coordinate integer symmetric\n2 2 1\n2 1 3\n"
    )
    assert run(tmp_path / "m", tmp_path / "out.npz", "--problem=ising") == 0
    assert "2 variables, 1 quadratic terms, couplings" in capsys.readouterr().out
    assert run(tmp_path / "out.npz", tmp_path / "again.npz") == 0
    [model] = read_instances(tmp_path / "again.npz", problem="ising")
    assert FormValues(model.content)(np.array([[1, 1], [0, 1]])).tolist() == [6, -6]
