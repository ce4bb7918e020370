"""What is written in DISCS's formats is what is read from them; nothing is replaced or mixed up silently."""

import pickle

import networkx as nx
import numpy as np
import pytest

from sl_discs.commands import discs_data
from sl_discs.errors import InputError
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import load_dataset, write_discs
from sl_discs.instances.graph import Dataset, Graph

R_BA = "r-ba-4-n-16-20"
# Problem, graph_type, cfg_str, and the files that two graphs take.
WRITABLE = [
    ("mis", "er_density", "r-0.10", ["er_700_800/ER-700-800-0.10.pkl"]),
    ("mis", "ertest", "r-800", ["er_800_test/ER00000.pkl", "er_800_test/ER00001.pkl"]),
    ("maxcut", "er", "r-er-0.15-n-40-50", ["maxcut-er/maxcut-er-0.15-n-40-50/test-00000.pkl"]),
    ("maxcut", "ba", R_BA, ["maxcut-ba/maxcut-ba-4-n-16-20/test-00000.pkl"]),
    ("maxcut", "optsicom", "r-b", ["optsicom/b.pkl"]),
    ("maxclique", "rb", "_", ["RB_test/RB00000.pkl"]),
    ("maxclique", "twitter", "_", ["twitter/twitter00000.pkl"]),
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "cache"))


def given(problem, graph_type, cfg_str, graphs):
    """A dataset of graphs that come from elsewhere."""
    name = "/".join([problem, graph_type, *([cfg_str] if cfg_str != "_" else [])])
    return Dataset(name, problem, "archive", "here", graphs, list(range(len(graphs))), len(graphs))


def assert_equal(read, written, reference):
    """The same graph, edges being read in the order of (u, v)."""
    order = np.lexsort((written.edges[:, 1], written.edges[:, 0]))
    assert read.num_nodes == written.num_nodes
    assert np.array_equal(read.edges, written.edges[order])
    if read.weights is not None:
        weights = np.ones(written.num_edges) if written.weights is None else written.weights
        assert np.array_equal(read.weights, weights[order])
    assert read.reference == reference


def files_below(root):
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize(("problem", "graph_type", "cfg_str", "names"), WRITABLE)
def test_odd_graphs_come_back(tmp_path, problem, graph_type, cfg_str, names):
    # Isolated nodes first, last and alone; edges out of order; weights and a reference that are no whole numbers.
    graphs = [
        Graph.from_arrays("a", 6, [(4, 2), (1, 3), (1, 2)], [0.1, -2.5, 3.0], 2.25),
        Graph.from_arrays("b", 3, np.zeros((0, 2), int)),
    ]
    written = given(problem, graph_type, cfg_str, graphs)
    assert write_discs(written, tmp_path) == [tmp_path / name for name in names]
    assert files_below(tmp_path) == names
    again = load_dataset(problem, graph_type, cfg_str, tmp_path)
    assert (again.source, again.name, again.total) == ("discs files", written.name, 2)
    none = None if problem == "mis" else 1.0
    references = [None if graph_type == "er_density" else 2.25, none]
    for a, b, reference in zip(again.graphs, graphs, references, strict=True):
        assert (a.weights is None) == (problem != "maxcut")
        assert_equal(a, b, reference)


def test_structure_is_that_of_networkx(tmp_path):
    """Real networkx graphs with plain Python values, as DISCS's own unpickling gives them."""
    graphs = [Graph.from_arrays("a", 4, [(0, 2), (2, 3)], None, 2.0)] * 2
    (cut,) = write_discs(given("maxcut", "ba", R_BA, graphs), tmp_path)
    with cut.open("rb") as file:
        pairs = [pickle.load(file), pickle.load(file)]
        assert not file.read(1)
    for graph, (value,) in pairs:
        assert type(graph) is nx.Graph and list(graph) == [0, 1, 2, 3]
        assert list(graph.edges(data=True)) == [(0, 2, {"weight": 1.0}), (2, 3, {"weight": 1.0})]
        assert value == 2.0
    (mis, _) = write_discs(given("mis", "ertest", "r-800", graphs), tmp_path)
    graph = pickle.loads(mis.read_bytes())
    assert [label for _, label in graph.nodes(data="label", default=0)] == [2.0, 0, 0, 0]
    (clique,) = write_discs(given("maxclique", "rb", "_", graphs), tmp_path)
    assert [(value, list(graph.edges)) for value, graph in pickle.loads(clique.read_bytes())] == [
        (2.0, [(0, 2), (2, 3)])
    ] * 2
    (twitter,) = write_discs(given("maxclique", "twitter", "_", graphs), tmp_path)
    assert [len(part) for part in pickle.loads(twitter.read_bytes())] == [2, 2]
    assert b"numpy" not in b"".join(path.read_bytes() for path in (cut, mis, clique, twitter))


def test_many_rb_graphs_take_several_files_in_order(tmp_path):
    graphs = [Graph.from_arrays(str(n), n, [(0, 1)], None, n) for n in range(2, 207)]
    paths = write_discs(given("maxclique", "rb", "_", graphs), tmp_path)
    assert [path.name for path in paths] == ["RB00000.pkl", "RB00100.pkl", "RB00200.pkl"]
    read = load_dataset("maxclique", "rb", "_", tmp_path).graphs
    assert [graph.reference for graph in read] == list(range(2, 207))


def test_files_are_replaced_on_demand_and_never_mixed(tmp_path):
    ertest = "mis", "ertest", "r-800"
    small, large = ([Graph.from_arrays("g", n, [(0, 1)])] * 2 for n in (3, 5))
    write_discs(given(*ertest, small), tmp_path)
    with pytest.raises(InputError, match=r"already there.*--overwrite"):
        write_discs(given(*ertest, large), tmp_path)
    assert load_dataset(*ertest, tmp_path).graphs[0].num_nodes == 3
    write_discs(given(*ertest, large), tmp_path, overwrite=True)
    assert [graph.num_nodes for graph in load_dataset(*ertest, tmp_path).graphs] == [5, 5]
    with pytest.raises(InputError, match=r"ER00001.pkl belongs to the same dataset"):
        write_discs(given(*ertest, small[:1]), tmp_path, overwrite=True)
    assert len(files_below(tmp_path)) == 2


def test_command_reads_archives(tmp_path, capsys):
    graphs = [Graph.from_arrays("g", n, [(0, 1)], None, 2) for n in (3, 4, 5)]
    write_archive(tmp_path / "maxclique_twitter.npz", graphs)
    command = ["discs data", "--model=maxclique", "--graph_type=twitter", f"--data_root={tmp_path / 'a b'}"]
    assert discs_data.data([*command, f"--source={tmp_path}", "--first_instance=1", "--num_instances=2"]) == 0
    out = capsys.readouterr().out
    assert "maxclique/twitter: 2 graphs of 4-5 nodes (archive: " in out and "twitter00001.pkl" in out
    assert "known for every graph" in out and "warning" not in out
    assert f"'--model_config.data_root={tmp_path / 'a b'}'" in out and "--model_config.cfg_str=_ " in out
    read = load_dataset("maxclique", "twitter", "_", tmp_path / "a b").graphs
    assert [graph.num_nodes for graph in read] == [4, 5]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--model=mis", "--graph_type=satlib"], "mis/satlib cannot be written"),
        (["--model=mis", "--graph_type=rb", "--cfg_str=r-200"], "mis/rb/r-200 cannot be written"),
        (["--model=maxclique", "--graph_type=twitter"], "cannot be generated; give --source"),
        (["--model=maxcut", "--graph_type=optsicom", "--source=no/such/folder"], "no/such/folder is not a folder"),
        (["--model=maxcut", "--graph_type=er_density"], "graph_type 'er_density' of maxcut; choose one of ba"),
        (["--model=maxcut", "--graph_type=optsicom", "extra"], "unexpected argument 'extra'"),
    ],
)
def test_command_on_bad_input(tmp_path, capsys, arguments, says):
    assert discs_data.data(["discs data", f"--data_root={tmp_path / 'sco'}", *arguments]) == 2
    out, err = capsys.readouterr()
    assert says in err and err.startswith("error: ") and len(err.splitlines()) == 1 and not out
    assert not (tmp_path / "sco").exists()


def test_warnings_of_what_discs_fixes():
    small, large = (Graph.from_arrays("g", n, [(0, 1)]) for n in (300, 301))
    cut = ("maxcut", "er", "r-er-0.15-n-256-300")
    assert discs_data.warnings(given("maxcut", "er", "r-er-0.15-n-40-50", [large])) == []
    assert discs_data.warnings(given(*cut, [small] * 1000)) == []
    (size, remedy) = discs_data.warnings(given(*cut, [large, *[small] * 999]))
    assert "1 graphs (first g)" in size and "max_num_nodes=0" in remedy
    assert "7 batches of padding" in discs_data.warnings(given(*cut, [small] * 2))[0]
    assert "leave out the last 2" in discs_data.warnings(given("mis", "ertest", "r-800", [small] * 130))[0]


def test_command_draws_graphs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["discs data", "--model=maxcut", "--graph_type=optsicom", "--data_root=sco"]
    assert discs_data.data([*command, "--num_instances=2", "--data_seed=3"]) == 0
    out = capsys.readouterr().out
    assert "2 graphs of 125-125 nodes (generated: " in out and "sco/optsicom/b.pkl" in out
    assert "unknown for 2 graphs" in out
    assert f"--model_config.cfg_str=r-b --model_config.data_root={tmp_path / 'sco'}" in out
    drawn = load_dataset("maxcut", "optsicom", "_", num_instances=2, data_seed=3)
    for a, b in zip(load_dataset("maxcut", "optsicom", "_", tmp_path / "sco").graphs, drawn.graphs, strict=True):
        assert_equal(a, b, 1.0)
