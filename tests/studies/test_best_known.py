"""References of generated MaxCut sets: never stale, never smaller than before, never believed without a partition."""

import dataclasses
import itertools
import json
import re
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import best_known
from best_known import (
    PLANS,
    ReferenceSet,
    Search,
    cut_of,
    digest,
    load_references,
    path_of,
    save_references,
    search_set,
)
from sl_discs.errors import InputError
from sl_discs.experiment.record import InstanceRecord
from sl_discs.files import only_run_in
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.instances.graph import Graph

NAME = "maxcut/er/r-er-0.15-n-256-300"
RUN = {"sampler": {"name": "metropolis"}, "annealing": {}, "chain_length": 1, "batch_size": 1, "seeds": [0]}
RUN |= {"engine": "reference", "command": "c"}


def small_graph(seed, num_nodes=9, weights=None):
    edges = np.array(nx.gnp_random_graph(num_nodes, 0.5, seed=seed).edges)
    return Graph.from_arrays(f"g{seed}", num_nodes, edges, weights and np.array(weights[: len(edges)]))


def small_dataset(graphs):
    return Dataset(NAME, "maxcut", "generated", "small", graphs, list(range(len(graphs))), len(graphs))


def all_cuts(graph):
    """Every partition with its cut, without the project's own counting."""
    for sides in itertools.product((0, 1), repeat=graph.num_nodes):
        yield sum(sides[u] != sides[v] for u, v in graph.edges.tolist()), np.array(sides, dtype=np.int8)


def partition_with(graph, cut):
    return next(sides for value, sides in all_cuts(graph) if value == cut)


def with_cut(references, index, graph, run, cut):
    return references.with_starts(index, graph, run, [cut], partition_with(graph, cut))


@pytest.fixture
def graph():
    return small_graph(0)


@pytest.fixture
def empty():
    return ReferenceSet(NAME, 0).with_run(RUN)[0]


def test_references_of_small_graphs_are_the_enumerated_optima(tmp_path):
    graphs = [small_graph(seed) for seed in range(6)]
    settings = Search(400, 4, 2, initial=2.0, final=0.3).settings("reference", 1)
    tally = search_set(small_dataset(graphs), 0, settings, "c", tmp_path, lambda steps: None)
    optima = [max(value for value, _ in all_cuts(graph)) for graph in graphs]
    assert [tally.references.graphs[k].cut for k in range(6)] == optima
    assert all(len(one.starts[0]) == 2 for one in tally.references.graphs.values()) and tally.played == 6


def test_a_reference_only_improves(graph, empty):
    references = with_cut(empty, 0, graph, 0, 9)
    references, second = references.with_run(RUN | {"seeds": [1]})
    lower = with_cut(references, 0, graph, second, 7)
    higher = with_cut(references, 0, graph, second, 10)
    assert (lower.graphs[0].cut, higher.graphs[0].cut) == (9, 10)
    for one in (lower.graphs[0], higher.graphs[0]):
        assert set(one.starts) == {0, 1} and cut_of(graph, one.solution) == one.cut
    assert not lower.graphs[0].agrees() and with_cut(references, 0, graph, second, 9).graphs[0].agrees()


def test_a_cut_without_its_partition_is_refused(graph, empty):
    with pytest.raises(InputError, match=r"the cut 7, not 9 as claimed"):
        empty.with_starts(0, graph, 0, [9.0], partition_with(graph, 7))


def test_the_file_holds_all_and_a_false_cut_is_refused(tmp_path, graph, empty):
    references = with_cut(empty, 3, graph, 0, 9)
    path = save_references(references, tmp_path)
    kept = load_references(NAME, 0, tmp_path)
    found = kept.find(3, graph)
    np.testing.assert_array_equal(found.solution, references.graphs[3].solution)
    assert dataclasses.replace(found, solution=None) == dataclasses.replace(references.graphs[3], solution=None)
    assert kept.runs == references.runs and kept.find(0, graph) is None
    assert load_references(NAME, 1, tmp_path).graphs == {}
    content = json.loads(path.read_text())
    content["graphs"]["3"]["cut"] = 11.0
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="graph 3: the partition does not have the cut 11 that is claimed"):
        load_references(NAME, 0, tmp_path).find(3, graph)
    for damaged in (
        "{",
        "[]",
        "[" * 10**5,
        json.dumps(content | {"data_seed": 5}),
        json.dumps(content | {"runs": []}),
    ):
        path.write_text(damaged)
        with pytest.raises(InputError, match=r"not a file of references of .* best_known.py writes them"):
            load_references(NAME, 0, tmp_path)


def test_a_digest_is_of_the_graph_and_of_nothing_else(graph):
    def changed(edges=graph.edges, num_nodes=graph.num_nodes, weights=None, name="g"):
        return digest(Graph.from_arrays(name, num_nodes, edges, weights))

    ones, other = np.ones(graph.num_edges), np.ones(graph.num_edges)
    other[3] = 2
    same = [digest(graph), changed(name="h"), changed(graph.edges[::-1, ::-1]), changed(weights=ones)]
    assert len(set(same)) == 1
    others = [changed(graph.edges[1:]), changed(num_nodes=10), changed(weights=other)]
    assert len({same[0], *others}) == 4


def test_a_reference_of_another_graph_is_dropped(graph, empty):
    references = with_cut(empty, 1, small_graph(1), 0, 9)
    assert references.find(1, small_graph(2)) is None
    again = with_cut(references, 1, small_graph(2), 0, 6)
    assert again.graphs[1].cut == 6 and again.find(1, small_graph(1)) is None


def play_at_random(dataset, penalty, method, settings, progress):
    """In the place of `run_sampler`: a partition that depends on the seed and the graph."""
    (graph,), (index,) = dataset.graphs, dataset.index
    solution = np.random.default_rng([settings.seed, index]).integers(2, size=graph.num_nodes, dtype=np.int8)
    cut = cut_of(graph, solution)
    progress(settings.chain_length * settings.batch_size)
    return SimpleNamespace(instances=[InstanceRecord(graph.name, cut, cut, cut, True, None, solution)])


def test_a_search_goes_on_where_it_was_and_another_one_adds_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(best_known, "run_sampler", play_at_random)
    graphs = [small_graph(seed) for seed in range(5)]
    search = Search(40, 2, 2, initial=2.0, final=0.3)

    def play(graphs, search):
        steps = []
        tally = search_set(small_dataset(graphs), 0, search.settings("reference", 1), "c", tmp_path, steps.append)
        assert sum(steps) == len(graphs) * search.starts * search.chains * search.steps
        return tally

    def stop_at_the_fifth(steps):
        if steps and path_of(NAME, 0, tmp_path).exists() and len(load_references(NAME, 0, tmp_path).graphs) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_set(small_dataset(graphs), 0, search.settings("reference", 1), "c", tmp_path, stop_at_the_fifth)
    assert play(graphs, search).played == 1
    assert play(graphs, search).played == 0
    before = load_references(NAME, 0, tmp_path)
    tally = play(graphs, dataclasses.replace(search, first_seed=7))
    assert tally.played == 5 and [run["seeds"] for run in tally.references.runs] == [[0, 1], [7, 8]]
    assert 0 < tally.improved < 5
    assert tally.improved == sum(tally.references.graphs[k].cut > before.graphs[k].cut for k in range(5))
    assert all(tally.references.graphs[k].cut >= before.graphs[k].cut for k in range(5))


SCRIPT = "studies/field/best_known.py"


def test_a_second_search_of_a_set_is_refused_while_the_first_one_runs(tmp_path, capsys):
    """Each would overwrite what the other one has found since both began."""
    searched = ["--datasets=maxcut/ba/r-ba-4-n-256-300", "--instances=1", "--steps=10", "--chains=1", "--starts=1"]
    arguments = [SCRIPT, *searched, f"--folder={tmp_path}"]
    with only_run_in(tmp_path, ".maxcut_ba_r-ba-4-n-256-300_seed0.lock"):
        assert best_known.main(arguments) == 2
    assert "another run" in capsys.readouterr().err and not list(tmp_path.glob("*.json"))
    assert best_known.main(arguments) == 0 and list(tmp_path.glob("*.json"))


@pytest.mark.parametrize("name", list(PLANS))
def test_the_files_have_references_of_the_graphs_that_are_drawn(name):
    kept = load_references(name, 0)
    assert set(kept.graphs) >= set(range(32)) and kept.runs
    for index, graph in enumerate(load_dataset(*name.split("/"), num_instances=2).graphs):
        assert kept.find(index, graph).cut > graph.num_edges / 2
    text = path_of(name, 0).read_text()
    assert not re.search(r"/(home|tmp|root|work)/", text)  # of no one's machine


def test_the_script(tmp_path, capsys):
    size = "--instances=2", "--steps=200", "--chains=2"
    assert best_known.main([SCRIPT, f"--datasets={NAME}", *size, f"--folder={tmp_path}"]) == 0
    assert f"{NAME}: 2 graphs, 2 of them run now, 0 improved" in capsys.readouterr().out
    kept = load_references(NAME, 0, tmp_path)
    assert kept.runs[0]["chain_length"] == 200 and kept.runs[0]["seeds"] == [0, 1]
    assert kept.runs[0]["command"].startswith(f"python {SCRIPT} --datasets=")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets=mis/satlib"], "'mis/satlib' is not available; there are maxcut/er"),
        (["--datasets="], "--datasets names no dataset"),
        (["--starts=0"], "starts"),
        (["more"], "unexpected argument 'more'"),
    ],
)
def test_bad_flags_are_one_line_and_exit_code_2(tmp_path, capsys, arguments, message):
    assert best_known.main([SCRIPT, f"--folder={tmp_path}", *arguments]) == 2
    assert message in capsys.readouterr().err
