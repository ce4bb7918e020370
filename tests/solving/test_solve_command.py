"""The command, as a newcomer runs it: what it prints, saves and checks, and how it refuses."""

import dataclasses
import json
import os
import signal
import sys
from pathlib import Path

import networkx as nx
import pytest

import sl_discs
from sl_discs import read_answers
from sl_discs.commands import solve
from sl_discs.commands.solve import verification
from sl_discs.instances.archive import write_forms
from sl_discs.instances.form import QuadraticForm

ROOT = Path(__file__).parents[2]


def run(capsys, *arguments):
    code = solve.main(["solve", *map(str, arguments)])
    return code, *capsys.readouterr()


def recount(capsys, *arguments):
    code = solve.check(["check", *map(str, arguments)])
    return code, *capsys.readouterr()


def write_rudy(path, graph):
    lines = [f"{len(graph)} {graph.number_of_edges()}"]
    lines += [f"{u + 1} {v + 1} {data.get('weight', 1)}" for u, v, data in graph.edges(data=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def cycle(tmp_path):
    """Of five nodes: the largest cut has four edges, independent set and clique two nodes, the
    smallest cover 3.
    """
    return write_rudy(tmp_path / "cycle.rudy", nx.cycle_graph(5))


@pytest.mark.parametrize(
    ("kind", "value"), [("maxcut", 4), ("mis", 2), ("maxclique", 2), ("vertex_cover", 3)]
)
def test_graph(cycle, tmp_path, capsys, kind, value):
    saved = tmp_path / "answer.json"
    code, out, err = run(
        capsys,
        cycle,
        f"--problem={kind}",
        "--steps=300",
        "--chains=4",
        "--nopresolve",
        f"--save={saved}",
        "--print",
    )
    assert code == 0, err
    assert f"best {value}, reached by" in out and "verified: " in out and str(saved) in out
    answers = read_answers(saved)
    [answer] = answers.answers
    assert (answers.problem, answers.file, answer.value) == (kind, "cycle.rudy", value)
    printed = [
        f"{label} {value}" for label, value in zip(answer.labels, answer.values, strict=True)
    ]
    assert list(answer.labels) == [1, 2, 3, 4, 5] and set(printed) <= set(out.splitlines())
    code, out, err = recount(capsys, cycle, saved)
    assert code == 0 and f"{value} claimed, {value} counted: good" in out and not err
    assert (answer.bound, answer.optimal) == (value, True)


def test_answers_from_python_are_checked_and_those_of_the_command_read(tmp_path, capsys):
    path = tmp_path / "g.clq"
    path.write_text("p edge 4 3\nn 2 7\nn 3 2.5\ne 1 2\ne 2 3\ne 3 4\n")
    solved = {
        given: sl_discs.solve(sl_discs.read(path, "mis", weights=given)) for given in (False, True)
    }
    for weights, result in solved.items():
        saved = result.save(tmp_path / "a.json")
        code, out, err = recount(capsys, path, saved, f"--weights={str(weights).lower()}")
        assert code == 0 and not err and f"{result.best_value:g} counted: good" in out
    assert recount(capsys, path, saved)[0] == 1


def test_problems_that_need_no_chains(tmp_path, capsys):
    saved, figure, ring = tmp_path / "answer.json", tmp_path / "a.png", tmp_path / "ring.rudy"
    ring.write_text("25 25\n" + "".join(f"{k + 1} {(k + 1) % 25 + 1} 1\n" for k in range(25)))
    code, out, err = run(
        capsys, ring, "--problem=mis", "--time_limit=5", f"--save={saved}", f"--plot={figure}"
    )
    assert code == 0 and not err
    assert "best 12; verified: " in out and "optimal, proved by reductions" in out
    assert (
        f"plot: {figure}" in out
        and figure.exists()
        and "reductions: 0 of 25 variables left: " in out
    )
    assert " chains" not in out and recount(capsys, ring, saved)[0] == 0


def test_weights_of_nodes_count_where_they_are_asked_for(tmp_path, capsys):
    path, saved = (tmp_path / name for name in ("g.clq", "a.json"))
    path.write_text("p edge 4 3\nn 2 7\nn 3 2.5\ne 1 2\ne 2 3\ne 3 4\n")
    code, out, err = run(capsys, path, "--problem=mis", "--weights", f"--save={saved}")
    assert code == 0, err
    assert (
        "4 nodes with weights" in out
        and "best 8; verified" in out
        and "weights of nodes as given" in out
    )
    code, out, _ = recount(capsys, path, saved)
    assert code == 0 and "8 claimed, 8 counted: good" in out
    code, out, _ = run(capsys, path, "--problem=mis")
    assert (
        code == 0
        and "best 2; verified" in out
        and "(their weights do not count without --weights)" in out
    )
    path.write_text("p edge 2 1\ne 1 2\n")
    for kind, message in (
        ("maxcut", "weights of nodes do not count"),
        ("mis", "not all nodes have a number"),
    ):
        code, _, err = run(capsys, path, f"--problem={kind}", "--weights")
        assert code == 2 and message in err


def test_weights_under_another_name_are_told_used_and_checked(tmp_path, capsys):
    path, saved = (tmp_path / name for name in ("g.json", "a.json"))
    path.write_text(
        '{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2, "value": 7}]}'
    )
    code, out, err = run(capsys, path, "--problem=maxcut", "--time_limit=1")
    assert (
        code == 0
        and "best 1;" in out
        and "optimal" not in out
        and "no bound, since 1 edges have numbers" in out
    )
    assert (
        err.startswith("warning: ")
        and "under 'value' that do not count; weight=value uses them" in err
    )
    code, out, _ = run(capsys, path, "--problem=maxcut", "--weight=value", f"--save={saved}")
    assert code == 0 and "best 7;" in out and "weighted" in out
    code, out, _ = recount(capsys, path, saved)
    assert code == 0 and "7 claimed, 7 counted: good" in out
    code, out, err = run(capsys, path, "--problem=mis")
    assert code == 0 and "optimal" in out and "value" not in out + err


def test_check_finds_wrong_answers(cycle, tmp_path, capsys):
    saved = tmp_path / "answer.json"
    assert (
        run(capsys, cycle, "--problem=mis", "--steps=300", "--chains=4", f"--save={saved}")[0] == 0
    )
    content = json.loads(saved.read_text())
    for change, words in (
        ({"value": 2**53 + 1}, ", not the claimed value: WRONG"),
        ({"value": 3.0}, "3 claimed, 2 counted, not the claimed value: WRONG"),
        ({"values": [1, 1, 0, 0, 0]}, "violates constraints: WRONG"),
    ):
        answer = content["answers"][0] | change
        saved.write_text(json.dumps(content | {"answers": [answer]}))
        code, out, _ = recount(capsys, cycle, saved)
        assert code == 1 and words in out
    values = content["answers"][0]["values"]
    for value in 0.9, "1", True:
        rounded = [value if one else 0 for one in values]
        saved.write_text(
            json.dumps(content | {"answers": [content["answers"][0] | {"values": rounded}]})
        )
        code, out, err = recount(capsys, cycle, saved)
        assert code == 2 and "not a file of answers" in err and not out
    other = write_rudy(tmp_path / "other.rudy", nx.path_graph(5))
    saved.write_text(json.dumps(content))
    assert "differs from the file that was solved" in recount(capsys, other, saved)[1]


@pytest.mark.usefixtures("in_foreground")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_the_best_so_far(tmp_path, capsys, monkeypatch, sent):
    """The problem at work ends with what it has; those after it have no answer."""
    path, real = tmp_path / "models.npz", solve.annealed
    # x1 + x2 - 2*3 x1 x2 and 5 x1, maximised.
    forms = [([1, 1], [(0, 1)], [-6]), ([5], [], [])]
    write_forms(path, [QuadraticForm.from_arrays("m", *arrays, maximise=True) for arrays in forms])

    def interrupted(*arguments, **more):
        os.kill(os.getpid(), sent)
        return real(*arguments, **more)

    monkeypatch.setattr(solve, "annealed", interrupted)
    before = signal.getsignal(sent)
    files = tmp_path / "a.json", tmp_path / "a.png"
    code, out, err = run(
        capsys, path, "--time_limit=60", "--nopresolve", f"--save={files[0]}", f"--plot={files[1]}"
    )
    assert code == 128 + sent, err
    assert signal.getsignal(sent) is before
    assert (
        "best so far 1" in out and "interrupted before its end" in out and "1 of 2 problems" in out
    )
    answers = read_answers(files[0])
    assert answers.interrupted and [one.value for one in answers.answers] == [1]
    assert (tmp_path / "a-1.png").exists()
    code, out, _ = recount(capsys, path, files[0])
    assert code == 0 and "1 of 2 problems have an answer" in out and "1 counted: good" in out


def test_an_answer_that_does_not_hold_is_called_so():
    problem = sl_discs.mis(nx.cycle_graph(5))
    result = sl_discs.solve(problem)
    assert verification(problem, result)[0]
    good, words = verification(problem, dataclasses.replace(result, values=result.values + 1))
    assert not good and "recomputed" in words


def test_a_figure_is_refused_before_the_run_or_costs_nothing_but_itself(
    cycle, tmp_path, capsys, monkeypatch
):
    figure, saved = tmp_path / "run.png", tmp_path / "a.json"
    asked = (
        cycle,
        "--problem=mis",
        "--steps=100",
        "--chains=2",
        "--nopresolve",
        f"--plot={figure}",
        f"--save={saved}",
    )

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(solve.Result, "plot", fail)
    code, out, err = run(capsys, *asked)
    assert code == 0 and "best 2" in out and saved.exists() and "warning: disk full" in err
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = run(capsys, *asked)
    assert code == 2 and not out and "matplotlib cannot be imported" in err


def test_warnings_are_a_line(cycle, capsys):
    """A limit that reading the file alone exceeds, and laying it out."""
    code, out, err = run(
        capsys, cycle, "--problem=mis", "--time_limit=1e-6", "--chains=2", "--nopresolve"
    )
    assert code == 0 and "recounting" in out
    reading, layout = err.splitlines()
    assert reading.startswith("warning: reading took ") and reading.endswith(
        "--time_limit=1e-06 does not count"
    )
    assert layout.startswith("warning: cycle: chains would take about ")


def test_one_edge_is_no_plural(tmp_path, capsys):
    (tmp_path / "pair.rudy").write_text("2 1\n1 2 1\n")
    code, out, _ = run(capsys, tmp_path / "pair.rudy", "--problem=mis")
    assert code == 0 and "2 nodes, 1 edge\n" in out
