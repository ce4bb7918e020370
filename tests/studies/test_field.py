"""The field's table: its sets, budgets that are kept and continued, and the command as a whole."""

import dataclasses
import json

import networkx as nx
import numpy as np
import pytest

import field
from sl_discs.engines.registry import num_cores
from sl_discs.errors import InputError
from sl_discs.files import read_json
from sl_discs.instances.dataset import Dataset, find_family, load_dataset
from sl_discs.instances.graph import Graph


def test_published_results_have_sources_and_sets():
    published = read_json(field.PUBLISHED)
    assert set(published["sets"]) == set(field.SETS)
    for rows in published["sets"].values():
        assert rows and {row["source"] for row in rows} <= set(published["sources"])
        assert all(row["mean"] > 0 and row.get("seconds", 1) > 0 for row in rows)
    for name, (count, same) in field.SETS.items():
        family = find_family(*field.PublishedSet(name, count).flags)
        assert family.generator is not None or same


@pytest.mark.parametrize(
    ("r", "groups", "sizes", "nodes"),
    [("r-200", range(20, 25), range(5, 12), (200, 300)), ("r-800", range(40, 55), range(20, 25), (800, 1200))],
)
def test_rb_graphs_are_cliques_joined_by_constraints(r, groups, sizes, nodes):
    for graph in load_dataset("mis", "rb", r, num_instances=4).graphs:
        count = graph.num_nodes
        assert nodes[0] <= count <= nodes[1]
        adjacent = np.eye(count, dtype=bool)
        adjacent[tuple(graph.edges.T)] = adjacent[tuple(graph.edges.T[::-1])] = True
        assert any(
            count == size * number and all(adjacent[k : k + size, k : k + size].all() for k in range(0, count, size))
            for size in sizes
            for number in groups
        )


def test_rows_are_kept_and_continued(tmp_path, monkeypatch):
    graphs = [Graph.from_arrays(f"g{k}", 12, np.array(nx.gnp_random_graph(12, 0.3, seed=k).edges)) for k in range(3)]
    dataset = Dataset("mis/made-up", "mis", "generated", "small", graphs, [0, 1, 2], 3)
    cell, heard = field.Cell("mis/made-up", 0.2), []
    first = field.play(cell, Dataset(*[*dataset.__dict__.values()][:4], graphs[:1], [0], 3), tmp_path, lambda: None)
    monkeypatch.setattr(
        field, "solve", lambda *args, real=field.solve, **how: heard.append(how) or real(*args, **how)
    )
    rows = field.play(cell, dataset, tmp_path, lambda: None)
    assert rows[:1] == first and [how["seed"] for how in heard] == [1, 2]
    assert all(how["time_limit"] == 0.2 / num_cores() for how in heard)
    for row, graph in zip(rows, graphs, strict=True):
        found = nx.Graph(graph.edges.tolist())
        found.add_nodes_from(range(12))
        assert row["optimal"] and row["value"] == len(nx.max_weight_clique(nx.complement(found), None)[0])
    assert field.play(cell, dataset, tmp_path, lambda: None) == rows and len(heard) == 2
    summary = field.summary(cell, rows)
    assert summary["n"] == summary["optimal"] == 3 and summary["mean"] == np.mean([row["value"] for row in rows])
    path = cell.path(tmp_path)
    saved = json.loads(path.read_text())
    path.write_text(json.dumps(saved | {"identity": saved["identity"] | {"cores": 99}}))
    with pytest.raises(InputError, match=r"'cores': 99.*choose another --output"):
        cell.read(tmp_path)


@pytest.mark.parametrize(("source", "kind"), [("generated", "drawn anew"), ("discs files", "the published ones")])
def test_only_given_graphs_are_the_published_ones(tmp_path, source, kind):
    graphs = [Graph.from_arrays(f"g{k}", 5, np.array([[0, 1], [1, 2], [2, 3]])) for k in range(2)]
    dataset = Dataset("mis/ertest/r-800", "mis", source, "small", graphs, [0, 1], 2)
    cell = field.Cell(dataset.name, 0.1)
    rows = field.play(cell, dataset, tmp_path, lambda: None)
    assert f"2 of 128 graphs, {kind}." in field.report([(cell, rows)])[0]
    other = dataclasses.replace(dataset, graphs=[dataclasses.replace(graphs[0], name="other")], index=[0])
    with pytest.raises(InputError, match=r"has other graphs than small; choose another --output"):
        field.play(cell, other, tmp_path, lambda: None)


def test_the_script(tmp_path, capsys):
    arguments = "studies/field/field.py", f"--output={tmp_path}"
    assert field.main([*arguments, "--datasets=mis/rb/r-200,mis/satlib", "--instances=1"]) == 0
    assert "mis/satlib: left out: it is not random" in capsys.readouterr().out
    report = json.loads((tmp_path / "report.json").read_text())
    assert [row["dataset"] for row in report["field"]] == ["mis/rb/r-200"] and report["field"][0]["n"] == 1
    text = (tmp_path / "report.md").read_text()
    assert "1 of 500 graphs, drawn anew" in text and "| KaMIS | 20.10 |" in text and "**`solve`, 0.5 s**" in text
    assert field.main([*arguments, "--datasets=mis/none"]) == 2
    assert "'mis/none' is not available; there are mis/ertest/r-800" in capsys.readouterr().err
