"""Results survive a file, and say what they hold."""

import csv
import dataclasses

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs import InputError, Result


@pytest.fixture(scope="module")
def cut():
    graph = nx.relabel_nodes(
        nx.cycle_graph(6), {0: "zero", 1: (1, ("a", None)), 2: 2.5, 3: -3, 4: 4, 5: 5}
    )
    graph.graph["name"] = "ring"
    return graph, sl_discs.solve(
        sl_discs.maxcut(graph), steps=600, chains=3, seed=4, presolve=False
    )


def test_the_answer_in_words(cut):
    graph, result = cut
    assert result.best_value == 6 == nx.cut_size(graph, result.best_set)
    left, right = result.partition
    assert left == result.best_set and left | right == set(graph) and not left & right
    assert set(result.best_sample) == set(graph)
    text = repr(result)
    assert (
        "maxcut 'ring': best_value=6, optimal, metropolis on cpu, 3 chains x 600 steps" in text
        and len(text) < 140
    )
    proved = repr(sl_discs.solve(sl_discs.maxcut(graph)))
    assert "ended at the bound" in proved and "chains" not in proved


def assert_same(one, other):
    """All fields are equal, and of one type; arrays also of one type of elements."""
    for field in dataclasses.fields(Result):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        assert type(ours) is type(theirs), field.name
        for a, b in (
            zip(ours, theirs, strict=True) if field.name == "trajectory" else [(ours, theirs)]
        ):
            assert (
                (a.dtype == b.dtype and np.array_equal(a, b))
                if isinstance(a, np.ndarray)
                else a == b
            ), field.name


def test_a_file_holds_all_of_it(cut, tmp_path):
    _, result = cut
    path = result.save(tmp_path / "folder" / "cut.npz")
    assert_same(result, Result.load(path))
    assert [file.name for file in path.parent.iterdir()] == ["cut.npz"]
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype.kind != "O" for name in file)
    spins = sl_discs.solve(sl_discs.ising([1.0, -1.0], {}), steps=20, chains=2)
    assert_same(spins, Result.load(spins.save(tmp_path / "spins.npz")))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_values_have_an_offset_beyond_single_precision():
    entries = np.triu(np.random.default_rng(0).normal(size=(9, 9)))
    problem = sl_discs.qubo(entries, offset=2.0**130)
    result = sl_discs.solve(problem, steps=50, presolve=False)
    assert (result.values == 2.0**130).all() and np.isfinite(result.trajectory.best).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"states": lambda states: states * 77},
        {"spins": True},
        {"labels": lambda labels: [labels[1], *labels[1:]]},
        {"trajectory_best": lambda best: best[1:]},
        {"timing": {}},
        {"format": "another"},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_fields_that_contradict_each_other_are_refused(cut, changes, tmp_path, edited):
    path = cut[1].save(tmp_path / "cut.npz")
    Result.load(edited(path, {}))
    with pytest.raises(InputError, match=r"not a file that Result\.save wrote") as error:
        Result.load(edited(path, changes))
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_each_answer_once():
    """The best first, with what belongs to it; a bound that is far off is no gap."""
    result = sl_discs.solve(sl_discs.mis(nx.path_graph(4)), steps=40, presolve=False)
    worst = np.where(np.arange(len(result.values)) % 3 == 0, 0, 1).astype(np.int8)
    result = dataclasses.replace(
        result, states=result.states * worst[:, None], values=result.values * worst
    )
    distinct = result.distinct()
    assert {*map(tuple, distinct.states.tolist())} == {*map(tuple, result.states.tolist())}
    assert (
        2
        <= len(distinct.states)
        == len(np.unique(distinct.states, axis=0))
        == len(distinct.feasible_chains)
    )
    assert (distinct.values == distinct.states.sum(axis=1)).all() and (
        np.diff(distinct.values) <= 0
    ).all()
    assert distinct.best_sample == result.best_sample
    assert len(result.distinct(1).states) == 1
    with pytest.raises(InputError, match="most is 0"):
        result.distinct(0)
    assert "no useful bound by" in repr(dataclasses.replace(result, bound=1e9))
    assert "a gap of 50 % by" in repr(dataclasses.replace(result, bound=3.0))


def test_labels_that_cannot_be_written(tmp_path):
    result = sl_discs.solve(sl_discs.qubo({(frozenset("ab"), "c"): 1.0}), steps=20, chains=1)
    with pytest.raises(InputError, match="frozenset; relabel"):
        result.save(tmp_path / "result.npz")
    assert not list(tmp_path.iterdir())


def test_a_data_frame(cut):
    pytest.importorskip("pandas")
    graph, result = cut
    frame = result.to_dataframe()
    assert list(frame.columns) == [*graph, "value"] and len(frame) == 3
    assert frame["value"].tolist() == sorted(result.values, reverse=True)
    assert {column: int(frame[column].iloc[0]) for column in graph} == result.best_sample
    named = dataclasses.replace(result, labels=("value", *result.labels[1:]))
    with pytest.raises(InputError, match="'value' is also a label"):
        named.to_dataframe()
    assert list(named.to_dataframe(value="cut").columns) == [*named.labels, "cut"]


def test_the_suffix_says_how_a_result_is_saved(cut, tmp_path):
    _, result = cut
    read = sl_discs.read_answers(result.save(tmp_path / "r.json"))
    [answer] = read.answers
    assert (
        answer.sample == result.best_sample and answer.run["chain_values"] == result.values.tolist()
    )
    assert (answer.value, answer.bound, answer.gap) == (result.best_value, result.bound, result.gap)
    assert answer.optimal == result.optimal and answer.run["seed"] == 4 and read.problem == "maxcut"
    with result.save(tmp_path / "r.csv").open(newline="") as file:
        title, *rows = csv.reader(file)
    assert title == ["label", "value"] and rows == [
        [str(k), str(v)] for k, v in result.best_sample.items()
    ]
    lines = result.save(tmp_path / "r.txt").read_text().splitlines()
    assert (
        lines
        == [f"{label} {value}" for label, value in result.best_sample.items()]
        == result.answer_lines()
    )
    for name in "r.md", "r":
        with pytest.raises(
            InputError, match=rf"{name}: results are saved as \.npz, \.json, \.csv or \.txt"
        ):
            result.save(tmp_path / name)


def test_the_plot_of_an_answer_without_sampling_is_the_graph_with_it(tmp_path):
    pytest.importorskip("matplotlib")
    graph = nx.relabel_nodes(nx.cycle_graph(5), dict(enumerate("abcde")))
    found = sl_discs.solve(sl_discs.mis(graph))
    for result in found, sl_discs.Result.load(found.save(tmp_path / "r.npz")):
        [axes] = result.plot().axes
        assert [text.get_text() for text in axes.texts] == list("abcde")
        within, outside = axes.collections[0], axes.collections[1]
        assert (
            len(within.get_segments()) + len(outside.get_segments()) == 5
            and len(outside.get_segments()) == 4
        )
        counts = {one.get_label(): len(one.get_offsets()) for one in axes.collections[2:]}
        assert counts == {"chosen": 2, "not chosen": 3}
    [axes] = sl_discs.solve(sl_discs.qubo(np.ones((3, 3)))).plot().axes
    assert "nothing was sampled" in axes.texts[0].get_text() and not axes.collections
    assert len(sl_discs.solve(sl_discs.mis(nx.path_graph(201))).edges) == 0


def test_edges_within_a_clique_are_dark_and_others_of_a_dense_graph_left_out():
    pytest.importorskip("matplotlib")
    few = nx.compose(nx.complete_graph(4), nx.path_graph(range(3, 9)))
    [axes] = sl_discs.solve(sl_discs.maxclique(few)).plot().axes
    assert [len(axes.collections[k].get_segments()) for k in (0, 1)] == [5, 6]
    many = nx.compose(nx.complete_graph(4), nx.complete_bipartite_graph(25, 25))
    [axes] = sl_discs.solve(sl_discs.maxclique(many)).plot().axes
    dark, chosen, _ = axes.collections
    assert (
        len(many.edges) > 500 and len(dark.get_segments()) == 10 and len(chosen.get_offsets()) == 5
    )


def test_the_plot_of_a_run_shows_its_bound():
    pytest.importorskip("matplotlib")
    problem = sl_discs.mis(nx.gnp_random_graph(150, 0.1, seed=1))
    result = sl_discs.solve(problem, steps=64, chains=4, presolve=False)
    axes, _ = result.plot().axes
    assert result.best_value < result.bound <= 1.5 * result.best_value
    assert "bound" in [line.get_label() for line in axes.lines]
    assert not axes.yaxis.get_major_formatter().get_useOffset()
