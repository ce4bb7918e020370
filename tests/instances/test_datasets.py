"""Datasets: DISCS's files before archives before drawing; selections keep their index; what is
written in DISCS's formats is what is read from them, and nothing is replaced or mixed up silently.
"""

import pickle
import shutil

import networkx as nx
import numpy as np
import pytest
from ml_collections import ConfigDict

from sl_discs.commands import discs
from sl_discs.instances import dataset as dataset_module
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import default_data_root, load_dataset, write_discs
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.reproduction.cells import PUBLISHED
from sl_discs.support.errors import InputError

R_BA = "r-ba-4-n-16-20"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("SL_DISCS_CACHE", str(folder))
    return folder


def dump(path, *objects):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(pickle.dumps(item, protocol=2) for item in objects))


def path_graph(n, **node):
    graph = nx.path_graph(n)
    nx.set_edge_attributes(graph, 2.0, "weight")
    if node:
        nx.set_node_attributes(graph, node["label"], "label")
    return graph


@pytest.fixture
def root(tmp_path):
    """A data root with three graphs of every dataset in DISCS's own form."""
    root = tmp_path / "sco"
    graphs = [path_graph(n) for n in (3, 4, 5)]
    cuts = [(graph, (2.0 * (len(graph) - 1), [0, 1])) for graph in graphs]
    dump(root / "er_700_800/ER-700-800-0.10.pkl", graphs)
    for k, graph in enumerate(graphs):
        dump(
            root / f"er_800_test/ER_{k}.gpickle",
            path_graph(len(graph), label=dict.fromkeys((0, 2), 1)),
        )
        (root / "satlib_test").mkdir(exist_ok=True)
        (root / f"satlib_test/f{k}.cnf").write_text(f"p cnf 3 {k + 1}\n" + "1 -2 3 0\n" * (k + 1))
    dump(root / "maxcut-ba/maxcut-ba-4-n-16-20/test-b", *cuts[1:])
    dump(root / "maxcut-ba/maxcut-ba-4-n-16-20/test-a", cuts[0])
    dump(root / "maxcut-er/maxcut-er-0.15-n-256-300/test-0", *cuts)
    dump(root / "optsicom/b.pkl", *cuts)
    dump(root / "RB_test/RB-0", [(2, graph) for graph in graphs])
    dump(root / "twitter/twitter-0.pkl", (graphs, [2, 2, 2]))
    return root


DISCS = [
    ("mis", "er_density", "r-0.10", "mis/er_density/r-0.10", [None] * 3),
    ("mis", "ertest", "r-800", "mis/ertest/r-800", [2, 2, 2]),
    ("mis", "satlib", "_", "mis/satlib", [1, 2, 3]),
    ("maxcut", "ba", R_BA, f"maxcut/ba/{R_BA}", [4, 6, 8]),
    ("maxcut", "er", "r-er-0.15-n-256-300", "maxcut/er/r-er-0.15-n-256-300", [4, 6, 8]),
    ("maxcut", "optsicom", "r-b", "maxcut/optsicom/r-b", [4, 6, 8]),
    ("maxclique", "rb", "_", "maxclique/rb", [2, 2, 2]),
    ("maxclique", "twitter", "", "maxclique/twitter", [2, 2, 2]),
]


@pytest.mark.parametrize(("problem", "graph_type", "cfg_str", "name", "references"), DISCS)
def test_discs_files(root, problem, graph_type, cfg_str, name, references):
    whole = load_dataset(problem, graph_type, cfg_str, root)
    assert (whole.name, whole.source, whole.total, whole.index) == (
        name,
        "discs files",
        3,
        [0, 1, 2],
    )
    assert [graph.reference for graph in whole.graphs] == references
    if graph_type != "satlib":
        assert [graph.num_nodes for graph in whole.graphs] == [3, 4, 5]
    assert all((graph.weights is None) == (problem != "maxcut") for graph in whole.graphs)
    part = load_dataset(problem, graph_type, cfg_str, root, first=1, num_instances=1)
    assert (part.index, part.total, part.graphs[0].name) == ([1], 3, whole.graphs[1].name)
    for first, count in ((3, None), (0, 4), (2, 2)):
        with pytest.raises(InputError):
            load_dataset(problem, graph_type, cfg_str, root, first=first, num_instances=count)


@pytest.mark.parametrize(
    ("file", "content", "arguments"),
    [
        ("er_700_800/ER-700-800-0.10.pkl", [3], ("mis", "er_density", "r-0.10")),
        ("optsicom/b.pkl", (nx.path_graph(2), ("x",)), ("maxcut", "optsicom", "r-b")),
        ("twitter/twitter-0.pkl", ([nx.path_graph(2)], []), ("maxclique", "twitter", "_")),
    ],
)
def test_discs_files_of_another_form(root, file, content, arguments):
    dump(root / file, content)
    with pytest.raises(InputError) as caught:
        load_dataset(*arguments, root)
    assert str(root / file) in str(caught.value)


def test_order_of_sources(root, tmp_path):
    own = root / "maxcut-ba"
    write_archive(
        root / "maxcut_ba_ba-4-n-16-20_1.npz", [Graph.from_arrays("archived", 2, [(0, 1)], [1.0])]
    )
    assert load_dataset("maxcut", "ba", R_BA, root).source == "discs files"
    own.rename(tmp_path / "elsewhere")
    archived = load_dataset("maxcut", "ba", R_BA, root)
    assert (archived.source, archived.graphs[0].name, archived.total) == ("archive", "archived", 1)
    (root / "maxcut_ba_ba-4-n-16-20_1.npz").unlink()
    assert load_dataset("maxcut", "ba", R_BA, root).source == "generated"


def test_archive_names(tmp_path):
    for r in ("0.10", "0.15"):
        write_archive(tmp_path / f"mis_er_density_{r}.npz", [Graph.from_arrays(r, 2, [(0, 1)])])
    assert load_dataset("mis", "er_density", "r-0.15", tmp_path).graphs[0].name == "0.15"


def test_generated_prefix_and_selection():
    whole = load_dataset("maxcut", "ba", R_BA)
    assert (len(whole.graphs), whole.total, whole.source) == (32, 32, "generated")
    more = load_dataset("maxcut", "ba", R_BA, "", num_instances=40)
    part = load_dataset("maxcut", "ba", R_BA, first=30, num_instances=2)
    assert part.index == [30, 31]
    for k in (30, 31):
        assert np.array_equal(whole.graphs[k].edges, more.graphs[k].edges)
        assert np.array_equal(whole.graphs[k].edges, part.graphs[k - 30].edges)
    other = load_dataset("maxcut", "ba", R_BA, data_seed=1)
    assert not np.array_equal(whole.graphs[0].edges, other.graphs[0].edges)


def test_cache_is_used_and_repaired(cache, monkeypatch):
    fresh = load_dataset("maxcut", "optsicom", "_")
    (file,) = cache.iterdir()
    drawn, draw = [], dataset_module.Generator.draw
    with monkeypatch.context() as patch:
        patch.setattr(
            dataset_module.Generator, "draw", lambda *given: drawn.append(given) or draw(*given)
        )
        assert load_dataset("maxcut", "optsicom", "r-b").digest() == fresh.digest()
    assert len(drawn) == 1  # with which the file is compared
    write_archive(file, fresh.graphs[::-1])  # other graphs than those that are drawn
    assert load_dataset("maxcut", "optsicom", "r-b").digest() == fresh.digest()


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    assert (
        len(load_dataset("maxcut", "optsicom", cache_dir=tmp_path / "file" / "below").graphs) == 10
    )


def test_the_default_folder_need_not_exist(root, tmp_path, monkeypatch):
    for folder, source in ((tmp_path, "discs files"), (root, "generated")):
        monkeypatch.chdir(folder)
        assert load_dataset("maxcut", "ba", R_BA, default_data_root()).source == source


def test_every_third_graph(tmp_path):
    whole = load_dataset("maxcut", "ba", R_BA, num_instances=8, cache_dir=tmp_path / "cache")
    part = load_dataset(
        "maxcut", "ba", R_BA, first=1, num_instances=2, stride=3, cache_dir=tmp_path / "cache"
    )
    assert part.index == [1, 4]
    assert [graph.name for graph in part.graphs] == [whole.graphs[k].name for k in (1, 4)]
    write_archive(tmp_path / "maxcut_ba_ba-4-n-16-20.npz", whole.graphs)
    for given in ({"first": 1, "num_instances": 3}, {"first": 1}):
        stored = load_dataset("maxcut", "ba", R_BA, tmp_path, stride=3, **given)
        assert stored.index == [1, 4, 7]
        assert [graph.name for graph in stored.graphs] == [
            whole.graphs[k].name for k in stored.index
        ]
    with pytest.raises(InputError):
        load_dataset("maxcut", "ba", R_BA, tmp_path, stride=3, num_instances=4)


def test_the_digest_tells_weights_of_nodes_apart(tmp_path):
    """Checkpoints of one set of weights must not serve another one."""
    digests = set()
    for weights in (None, np.ones(3), np.array([1.0, 5.0, 1.0])):
        graph = Graph.from_arrays("path", 3, np.array([[0, 1], [1, 2]]), None, None, weights)
        write_archive(tmp_path / "mis_satlib.npz", [graph])
        digests.add(load_dataset("mis", "satlib", "_", tmp_path).digest())
    assert len(digests) == 3


# Datasets as DISCS's own files.

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
    # Isolated nodes first, last and alone; edges out of order; weights and a reference that are no
    # whole numbers.
    graphs = [
        Graph.from_arrays("a", 6, [(4, 2), (1, 3), (1, 2)], [0.1, -2.5, 3.0], 2.25),
        Graph.from_arrays("b", 3, np.zeros((0, 2), int)),
    ]
    written = given(problem, graph_type, cfg_str, graphs)
    assert write_discs(written, tmp_path) == [tmp_path / name for name in names]
    assert files_below(tmp_path) == names
    again = load_dataset(problem, graph_type, cfg_str, tmp_path)
    assert (again.source, again.name, again.total) == ("discs files", written.name, 2)
    assert not again.generated
    for a, b, reference in zip(again.graphs, graphs, (2.25, None), strict=True):
        assert (a.weights is None) == (problem != "maxcut")
        assert_equal(a, b, reference)


def test_files_of_generated_graphs_say_so_and_placeholders_are_no_references(tmp_path):
    """DISCS finds 1 where there is no reference, as it divides by it."""
    drawn = load_dataset("maxcut", "ba", R_BA, num_instances=2, cache_dir=tmp_path / "cache")
    assert drawn.generated
    assert load_dataset(
        "maxcut", "ba", R_BA, num_instances=2, cache_dir=tmp_path / "cache"
    ).generated
    (path,) = write_discs(drawn, tmp_path / "files")
    with path.open("rb") as file:
        graph, (reference,) = pickle.load(file)
    assert reference == 1.0 and type(graph) is nx.Graph
    (tmp_path / "archive").mkdir()
    write_archive(tmp_path / "archive" / "maxcut_ba_ba-4-n-16-20.npz", drawn.graphs)
    for folder, source in ("files", "discs files"), ("archive", "archive"):
        again = load_dataset("maxcut", "ba", R_BA, tmp_path / folder)
        assert again.source == source and again.generated
        assert [graph.reference for graph in again.graphs] == [None, None]
    (path,) = write_discs(
        given("maxcut", "ba", R_BA, [Graph.from_arrays("a", 2, [(0, 1)], None, 1.0)]), tmp_path
    )
    known = load_dataset("maxcut", "ba", R_BA, tmp_path)
    assert known.graphs[0].reference == 1.0 and not known.generated


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
    assert b"numpy" not in cut.read_bytes() + mis.read_bytes()


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
    with pytest.raises(InputError):
        write_discs(given(*ertest, large), tmp_path)
    assert load_dataset(*ertest, tmp_path).graphs[0].num_nodes == 3
    write_discs(given(*ertest, large), tmp_path, overwrite=True)
    assert [graph.num_nodes for graph in load_dataset(*ertest, tmp_path).graphs] == [5, 5]
    with pytest.raises(InputError):
        write_discs(given(*ertest, small[:1]), tmp_path, overwrite=True)
    assert len(files_below(tmp_path)) == 2


def test_the_command_writes_archives_as_files_of_discs(tmp_path, command):
    graphs = [Graph.from_arrays("g", n, [(0, 1)], None, 2) for n in (3, 4, 5)]
    write_archive(tmp_path / "maxclique_twitter.npz", graphs)
    target = tmp_path / "a b"
    chosen = "--first_instance=1", "--num_instances=2"
    set_of = "--model=maxclique", "--graph_type=twitter"
    code, out, _ = command(
        "discs", "data", *set_of, f"--data_root={target}", f"--source={tmp_path}", *chosen
    )
    assert code == 0 and "warning" not in out
    # The flags of DISCS's main program, which a shell reads as they are.
    assert f"'--model_config.data_root={target}'" in out and "--model_config.cfg_str=_ " in out
    read = load_dataset("maxclique", "twitter", "_", target).graphs
    assert [graph.num_nodes for graph in read] == [4, 5]


def test_the_command_writes_an_archive_that_load_reads(root, tmp_path, command):
    out = tmp_path / "data" / "mis_satlib_3.npz"
    flags = "--model=mis", "--graph_type=satlib", f"--source={root}"
    code, said, err = command("discs", "data", *flags, f"--archive={out}")
    assert code == 0, err
    assert said.startswith("mis/satlib: 3 graphs of ") and said.endswith(f"file: {out}\n")
    assert command("discs", "data", *flags, f"--archive={out}.zip")[0] == 2
    own = load_dataset("mis", "satlib", "_", root)
    archived = load_dataset("mis", "satlib", "_", out.parent)
    assert archived.source == "archive"
    for a, b in zip(own.graphs, archived.graphs, strict=True):
        assert (a.name, a.num_nodes, a.reference) == (b.name, b.num_nodes, b.reference)
        assert np.array_equal(a.edges, b.edges)


def test_the_command_says_what_is_missing_for_the_paper(root, tmp_path, command):
    """Of a .zip as well, which is unpacked once, and of files below its folders."""
    (root / "RB_test" / "RB-0").write_text("damaged")
    shutil.make_archive(tmp_path / "data", "zip", tmp_path, "sco")
    said = [
        command("discs", "files", f"--data_root={where}")
        for where in (tmp_path / "data.zip", tmp_path / "data.zip", root)
    ]
    assert [code for code, _, _ in said] == [1, 1, 1]
    out = said[0][1]
    assert out == said[1][1] and out.startswith(f"data root: {tmp_path / 'data' / 'sco'}\n")
    lines = {line.split()[0]: line for line in out.splitlines()[1:-1]}
    assert list(lines) == list(PUBLISHED)
    assert "3 of 500 graphs, " in lines["mis/satlib"]
    assert "missing: DISCS's er_700_800/" in lines["mis/er_density/r-0.05"]
    assert "RB-0" in lines["maxclique/rb"]
    digest = load_dataset("maxclique", "twitter", "_", root).digest()[:12]
    assert lines["maxclique/twitter"].endswith(digest)


@pytest.mark.parametrize("generated", [False, True])
def test_sizes_are_read_from_sets_that_were_drawn_anew(tmp_path, monkeypatch, generated):
    """DISCS's own have those of its config, if there are as many graphs as it says."""
    graph = Graph.from_arrays("g", 3, [(0, 1)], generated=generated)
    write_discs(given("mis", "ertest", "r-800", [graph] * 4), tmp_path)
    model = {"name": "mis", "graph_type": "ertest", "cfg_str": "r-800"}
    model |= {"data_root": str(tmp_path), "num_models": 4, "num_instances": 4}
    run = {"experiment": {"run_parallel": False}}
    values = ConfigDict({"config": run})
    monkeypatch.setattr(discs.flags, "FLAGS", values)
    monkeypatch.setattr(discs.config_flags, "get_override_values", lambda flag: {})
    note = discs._fit_batches(ConfigDict({"model": model} | run))
    assert bool(note) is ("model" in values.config) is generated
