"""What makes the figures of the studies of optimisation trustworthy: statistics, unseen graphs, and
controls.

`test_studies.py` runs the commands.
"""

import dataclasses
import itertools
import json
import math
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import claim_plan as planned
import headline
import tilt
from best_known import ReferenceSet, Search, load_references, save_references, search_set
from claim_plan import BOTH, DEFAULTS, NULL, SEARCHED, SIZES, Item, Pair, Study
from claim_report import Found
from claim_statistics import expected_best, holm, random_effects
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import settings_from
from sl_discs.instances.archive import write_archive
from sl_discs.instances.dataset import load_dataset
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.localization.method import method_fields
from sl_discs.reproduction.cells import PUBLISHED, Choice
from sl_discs.support.errors import InputError

DENSITY = PUBLISHED["mis/er_density/r-0.10"]
SATLIB = PUBLISHED["mis/satlib"]
SMOKE = SIZES["smoke"]
CHOICE = Choice(SMOKE.steps, SMOKE.chains, "cpu", (0,))


def test_holm_against_a_worked_example():
    # 4 x .005; 3 x .01; 2 x .03; .04, raised to the one before it
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_the_expected_best_of_n_is_the_mean_over_all_choices():
    values = [0.3, -1.0, 2.5, 0.3, 0.0]
    for n in range(1, 6):
        assert expected_best(values, n) == pytest.approx(
            np.mean([*map(max, itertools.combinations(values, n))])
        )


def test_the_headline_is_of_all_graphs_with_equal_weights_of_sets():
    rng = np.random.default_rng(0)
    parts, other = [rng.normal(size=n) for n in (20, 31)], rng.normal(1.0, size=40)
    samples = [
        headline.Sample(one.mean(), one.std(ddof=1) / math.sqrt(len(one)), len(one))
        for one in (*parts, other)
    ]
    whole = np.concatenate(parts)
    both = headline.joined(samples[:2])
    assert both == pytest.approx((whole.mean(), whole.std(ddof=1) / math.sqrt(51), 51))
    found = headline.over_sets([both, samples[2]], [0.2, 0.4], [32, 16])
    assert found["mean"] == pytest.approx((whole.mean() + other.mean()) / 2)
    assert found["published"] == pytest.approx(0.3)
    assert found["se"] == pytest.approx(math.hypot(both.se, samples[2].se) / 2)
    spread = whole.var(ddof=1) / 32 + other.var(ddof=1) / 16
    assert found["published_se"] == pytest.approx(math.sqrt(spread) / 2)
    z = (found["mean"] - 0.3) / math.hypot(found["se"], found["published_se"])
    assert found["p_published"] == pytest.approx(2 * stats.norm.sf(abs(z)))


def test_the_headline_file_is_what_its_script_writes():
    kept = json.loads((headline.FOLDER / "headline.json").read_text())
    claim = json.loads((headline.FOLDER / "report.json").read_text())["claim"]
    readings = json.loads((headline.FOLDER / "readings.json").read_text())["rows"]
    rows = headline.headline(claim["gains"], readings)
    assert kept["rows"] == rows, "run: python studies/claim/headline.py"
    assert kept["shares"] == claim["pooled"]


def test_random_effects_against_a_sum_by_hand():
    """Effects 0, 1, 4 with variances 1, 1, 2.

    Weights 1, 1, 1/2: fixed mean 3/2.5 = 1.2; Q = 1.44 + .04 + 3.92 = 5.4; C = 2.5 - 2.25/2.5 =
    1.6; tau2 = (5.4 - 2)/1.6 = 2.125. Weights 1/3.125, 1/3.125, 1/4.125.
    """
    found = random_effects([0.0, 1.0, 4.0], [1.0, 1.0, math.sqrt(2.0)])
    a, b = 1 / 3.125, 1 / 4.125
    mean = (a + 4 * b) / (2 * a + b)
    scale = (a * mean**2 + a * (1 - mean) ** 2 + b * (4 - mean) ** 2) / 2
    half = 4.302652729911275 * math.sqrt(max(1.0, scale) / (2 * a + b))
    assert found.tau2 == pytest.approx(2.125) and found.mean == pytest.approx(mean)
    assert [found.low, found.high] == pytest.approx([mean - half, mean + half])
    equal = random_effects([2.0, 2.0], [1.0, 1.0])
    assert equal.tau2 == 0 and equal.mean == 2.0
    assert equal.high - 2.0 == pytest.approx(
        12.706204736 / math.sqrt(2)
    )  # the scale is not below 1


def fake(values, played):
    """A `play` that gives `values(cell, graph)` and remembers which graphs each protocol was played
    on.
    """

    def play(cell, graphs):
        played.append((cell.protocol, cell.seeds, graphs))
        return SimpleNamespace(
            best=np.array([[values(cell, graph) for graph in graphs.graphs]], np.float64)
        )

    return play


def content(graph):
    return graph.num_nodes, graph.edges.tobytes()


@pytest.fixture(scope="module")
def satlib(tmp_path_factory):
    """A folder with 30 graphs in the place of SATLIB's, each of another size."""
    root = tmp_path_factory.mktemp("data")
    edges = np.array([[0, 1], [1, 2]])
    graphs = [Graph.from_arrays(f"g{k}", 10 + k, edges) for k in range(30)]
    write_archive(root / "mis_satlib_30.npz", graphs)
    return str(root)


@pytest.mark.parametrize("name", [DENSITY.name, SATLIB.name])
@pytest.mark.parametrize("arm", [SEARCHED, NULL, BOTH])
def test_a_search_sees_no_test_graph(name, arm, satlib):
    played = []
    study = Study(SMOKE, CHOICE, satlib, fake(lambda cell, graph: graph.num_nodes, played))
    for number in range(3 if name == SATLIB.name else 2):
        study.round(Item(arm, PUBLISHED[name], "gwg", number))
    training = {
        content(graph) for words, _, part in played if "trial" in words for graph in part.graphs
    }
    tests = {
        content(graph) for words, _, part in played if "trial" not in words for graph in part.graphs
    }
    assert training and tests and not training & tests
    seeds = {seed for words, found, _ in played if "trial" in words for seed in found}
    assert seeds == {1_000 + trial for trial in range(SMOKE.trials)}


def test_a_graph_with_two_seeds_counts_once(satlib):
    found, study = (
        Found(),
        Study(SMOKE, CHOICE, satlib, fake(lambda cell, graph: float(cell.seeds[0]), [])),
    )
    for number in range(7):
        found.rounds[Item(DEFAULTS, SATLIB, "gwg", number)] = dict.fromkeys(
            planned.test_graphs(SATLIB, SMOKE, number, satlib)[0].index,
            Pair(3.0 + (number == 6), 3.0, 100.0),
        )
    values = found.differences(DEFAULTS, SATLIB.name, "gwg")
    assert len(values) == 24 and sorted(set(values)) == [0.0, 0.5]
    assert (
        study.round(Item(DEFAULTS, SATLIB, "gwg", 0)).keys()
        == found.rounds[Item(DEFAULTS, SATLIB, "gwg", 0)].keys()
    )


def small_graphs():
    drawn = [nx.gnp_random_graph(40, 0.2, seed=seed) for seed in range(2)]
    made = [
        Graph.from_arrays(f"g{seed}", 40, np.array(graph.edges)) for seed, graph in enumerate(drawn)
    ]
    return Dataset(DENSITY.name, "mis", "generated", "small", made, [0, 1], 2)


def test_without_its_tilt_a_localized_chain_is_that_of_its_base():
    choice, found = Choice(600, 4, "reference", (0,)), set()
    study = Study(SMOKE, choice, None, fake(lambda cell, graph: 0.0, []))
    for trial in range(3):
        null = study._trial(DENSITY, "gwg", NULL, trial, 7, localized=True)
        base = dataclasses.replace(choice, seeds=(7 + trial,)).cell(DENSITY, "gwg")
        assert null.seeds == base.seeds
        first, second = (
            run_sampler(
                plan_of(
                    small_graphs(),
                    1.0001,
                    cell.build(),
                    dataclasses.replace(cell.settings, seed=cell.seeds[0]),
                )
            )
            for cell in (null, base)
        )
        np.testing.assert_array_equal(first.trajectory, second.trajectory)
        found.add(np.asarray(first.trajectory).tobytes())
    assert len(found) == 3


# Largest known cuts, and when a tilted chain reaches them.

NAME = "maxcut/er/r-er-0.15-n-256-300"
RUN = {
    "sampler": {"name": "metropolis"},
    "annealing": {},
    "chain_length": 1,
    "batch_size": 1,
    "seeds": [0],
}
RUN |= {"engine": "reference", "command": "c"}


def small_graph(seed):
    edges = np.array(nx.gnp_random_graph(9, 0.5, seed=seed).edges)
    return Graph.from_arrays(f"g{seed}", 9, edges)


def small_dataset(graphs):
    return Dataset(
        NAME, "maxcut", "generated", "small", graphs, list(range(len(graphs))), len(graphs)
    )


def all_cuts(graph):
    """Every partition with its cut, without the project's own counting."""
    for sides in itertools.product((0, 1), repeat=graph.num_nodes):
        yield (
            sum(sides[u] != sides[v] for u, v in graph.edges.tolist()),
            np.array(sides, dtype=np.int8),
        )


def test_references_of_small_graphs_are_the_enumerated_optima(tmp_path):
    graphs = [small_graph(seed) for seed in range(6)]
    settings = Search(400, 4, 2, initial=2.0, final=0.3).settings("reference", 1)
    tally = search_set(small_dataset(graphs), 0, settings, "c", tmp_path, lambda steps, words: None)
    optima = [max(value for value, _ in all_cuts(graph)) for graph in graphs]
    assert [tally.references.graphs[k].cut for k in range(6)] == optima
    assert (
        all(len(one.starts[0]) == 2 for one in tally.references.graphs.values())
        and tally.played == 6
    )


def test_the_file_holds_all_and_a_false_cut_is_refused(tmp_path):
    graph, empty = small_graph(0), ReferenceSet(NAME, 0).with_run(RUN)[0]
    sides = next(sides for cut, sides in all_cuts(graph) if cut == 9)
    references = empty.with_starts(3, graph, 0, [9], sides)
    path = save_references(references, tmp_path)
    kept = load_references(NAME, 0, tmp_path)
    found = kept.find(3, graph)
    np.testing.assert_array_equal(found.solution, references.graphs[3].solution)
    assert dataclasses.replace(found, solution=None) == dataclasses.replace(
        references.graphs[3], solution=None
    )
    assert kept.runs == references.runs and kept.find(0, graph) is None
    assert load_references(NAME, 1, tmp_path).graphs == {}
    content = json.loads(path.read_text())
    content["graphs"]["3"]["cut"] = 11.0
    path.write_text(json.dumps(content))
    with pytest.raises(
        InputError, match="graph 3: the partition does not have the cut 11 that is claimed"
    ):
        load_references(NAME, 0, tmp_path).find(3, graph)
    for damaged in ("{", json.dumps(content | {"data_seed": 5})):
        path.write_text(damaged)
        with pytest.raises(
            InputError, match=r"not a file of references of .* best_known.py writes them"
        ):
            load_references(NAME, 0, tmp_path)


@pytest.mark.parametrize("more", [0, 1])
def test_a_reference_is_reached_when_the_best_chain_has_it(more):
    """Within the run where its best cut is the reference, and never where the reference is larger
    by 1.
    """
    dataset = PUBLISHED["maxcut/optsicom/r-b"]
    settings = settings_from(
        dataset.experiment()
        | {"engine": "cpu", "chain_length": 400, "log_every_steps": 20, "batch_size": 8}
    )
    graphs = load_dataset(*dataset.flags, None, num_instances=1)
    first = tilt.play(graphs, settings, method_fields("gwg"), 1)
    known = [dataclasses.replace(graphs.graphs[0], reference=first.best.max() + more)]
    again = tilt.play(dataclasses.replace(graphs, graphs=known), settings, method_fields("gwg"), 1)
    np.testing.assert_array_equal(again.best, first.best)
    assert np.isinf(again.reached[0]) if more else 0 < again.reached[0] <= 400
