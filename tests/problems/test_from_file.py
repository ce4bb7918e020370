"""`read` poses the same problem as the constructor from the same graph, and says what does not fit."""

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs import InputError
from sl_discs.commands.main import main
from sl_discs.commands.problem_file import read_problems
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
    found, given = sl_discs.read(graph_file, kind), getattr(sl_discs, kind)(graph)
    assert set(found.labels) == set(range(1, 11)) and found.kind == kind and found.construct_s > 0
    assert sl_discs.solve(found).best_value == sl_discs.solve(given).best_value


def test_weights_penalties_and_colors_are_passed_on(graph_file):
    weighted = sl_discs.read(graph_file, "mis", weights=True, penalty=2.0)
    assert weighted.penalty == 2.0 and weighted.source.node_weights.tolist() == [3.0] + [1.0] * 9
    colored = sl_discs.solve(sl_discs.read(graph_file, "coloring", colors=3))
    assert colored.best_value == 0 and set(colored.coloring) == set(range(1, 11))


def test_models_are_recognised(tmp_path):
    (tmp_path / "model.qubo").write_text("p qubo 0 2 2 1\n0 0 -1\n1 1 -1\n0 1 3\n")
    problem = sl_discs.read(tmp_path / "model.qubo")
    assert problem.kind == "qubo" and sl_discs.solve(problem).best_value == -1


def test_one_of_several_is_chosen(tmp_path):
    graphs = [Graph.from_arrays(f"g{k}", k + 2, np.array([[0, 1]])) for k in range(3)]
    path = tmp_path / "graphs.npz"
    write_archive(path, graphs)
    with pytest.raises(InputError, match=r"3 graphs or models; choose one: number=0 to 2"):
        sl_discs.read(path, "mis")
    assert [sl_discs.read(path, "mis", number=k).num_variables for k in range(3)] == [2, 3, 4]
    with pytest.raises(InputError, match=r"number is 3; expected 0 to 2"):
        sl_discs.read(path, "mis", number=3)


LP = """Maximize
 obj: 3 x + 2 y + 4 z + [ 2 x * y ] / 2
Subject To
 c1: x + y + z <= 2
 c2: x - z >= 0
Binary
 x y z
End
"""


def test_models_with_constraints(tmp_path, capsys):
    """x = z = 1 is worth 7, more than x = y = 1 with 6; a saved CQM is the same, and commands take both."""
    dimod = pytest.importorskip("dimod")
    paths = tmp_path / "model.lp", tmp_path / "model.cqm"
    paths[0].write_text(LP)
    with dimod.lp.loads(LP).to_file() as file:
        paths[1].write_bytes(file.read())
    for path, best in zip(paths, (7, -7), strict=True):  # in a CQM dimod has changed the sign
        problem = sl_discs.read(path)
        result = sl_discs.solve(problem)
        assert problem.maximise == (best > 0)
        assert problem.name == "model" and result.best_value == best and result.optimal
        assert result.best_sample == {"x": 1, "y": 0, "z": 1}
        answer = tmp_path / "answer.json"
        assert (
            main(["", "solve", str(path), f"--save={answer}"]) == 0
            and main(["", "check", str(path), str(answer)]) == 0
        )
        assert "3 variables, 2 constraints" in capsys.readouterr().out


def test_a_single_constraint_is_counted_as_one(tmp_path):
    pytest.importorskip("dimod")
    (tmp_path / "m.lp").write_text(LP.replace(" c2: x - z >= 0\n", ""))
    ([one], _) = read_problems(tmp_path / "m.lp", None, None)
    assert str(one) == "m: constrained of m.lp, 3 variables, 1 constraint"


@pytest.mark.parametrize("word", ["Minimize", "MIN", "minimum", "Maximize", "max", "Maximum"])
def test_the_sense_and_values_of_an_lp_file_are_its_own(tmp_path, word):
    """3 x + 2 y + 4 z + x y, also where a byte order mark and comments come first."""
    pytest.importorskip("dimod")
    (tmp_path / "m.lp").write_text(f"\ufeff\\ Maximize\n\n \\ min x\n{LP.replace('Maximize', f'{word} ', 1)}")
    problem = sl_discs.read(tmp_path / "m.lp")
    assert problem.maximise == word.lower().startswith("max")
    assert [problem.value({"x": 1, "y": y, "z": z}) for y, z in ((0, 0), (1, 0), (0, 1), (1, 1))] == [3, 6, 7, 10]


@pytest.mark.parametrize(("bounds", "best"), [("x = 0", 2), ("y >= 0.5", 6), ("x <= 0.5\n y <= 0", 0)])
def test_bounds_of_binary_variables_count(tmp_path, bounds, best):
    pytest.importorskip("dimod")
    (tmp_path / "m.lp").write_text(LP.replace("Binary", f"Bounds\n {bounds}\nBinary"))
    result = sl_discs.solve(sl_discs.read(tmp_path / "m.lp"))
    assert result.best_value == best and result.feasible and result.optimal


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("m.lp", LP, {"problem": "mis"}, "a model with constraints; leave out problem"),
        ("m.lp", LP, {"number": 1}, "number is 1, but the file has a single model"),
        ("m.lp", LP.replace("Binary", "General"), {}, "the variable 'x' is INTEGER"),
        ("m.lp", LP.replace("End", "SOS\n s: S1:: x:1 y:2\nEnd"), {}, "special ordered sets"),
        ("m.lp", "Minimize\n obj: x +\nSubject To\n c: x >=\nEnd\n", {}, "m.lp: dimod cannot read it"),
        (
            "m.lp",
            "Minimise stuff\nx y\n",
            {},
            "m.lp: not an LP file .* first word is 'Minimise'; begin it with",
        ),
        ("m.lp", "\\ nothing else", {}, "m.lp: not an LP file .*: its first word is ''"),
        ("m.cqm", "nothing", {}, "m.cqm: dimod cannot read it"),
        ("missing/m.lp", None, {}, "cannot be read"),
    ],
)
def test_what_is_no_model_with_constraints_is_refused(tmp_path, name, content, arguments, message):
    pytest.importorskip("dimod")
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        sl_discs.read(tmp_path / name, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a graph; choose a problem: mis, maxcut"),
        ({"problem": "coloring"}, "a number of colors and the problem coloring go together"),
        ({"problem": "maxcut", "penalty": 2.0}, "penalty has no effect in maxcut"),
        ({"problem": "maxcut", "weights": True}, "weights has no effect in maxcut"),
        ({"problem": "cut"}, "unknown problem 'cut'"),
    ],
)
def test_what_does_not_fit_is_refused(graph_file, arguments, message):
    with pytest.raises(InputError, match=message):
        sl_discs.read(graph_file, **arguments)
