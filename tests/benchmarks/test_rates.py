"""The benchmark measures what it says: cases, report, peers, and the command as a whole. Times are not tested."""

import json

import networkx as nx
import numpy as np
import pytest

import contenders
import sl_discs
from cases import CASES, chosen_cases
from contenders import Default, Measurement, NotPlayed, Own, available_peers, best_of_reads, how_to_get
from rates import Row, as_json, format_case, lead
from sl_discs.command import check_choice
from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset
from sl_discs.instances.discs_files import networkx_graph
from sl_discs.instances.graph import Graph
from sl_discs.samplers.single_site import Metropolis


def small_dataset(problem="mis"):
    graphs = []
    for seed in range(2):
        graph = nx.gnp_random_graph(14, 0.3, seed=seed)
        graphs.append(Graph.from_arrays(f"g{seed}", 14, np.array(graph.edges)))
    return Dataset(f"{problem}/small", problem, "generated", "small", graphs, [0, 1], 2)


def largest_sets(dataset):
    return [max(map(len, nx.find_cliques(nx.complement(networkx_graph(graph))))) for graph in dataset.graphs]


def test_cases_are_the_same_each_time():
    for name in ("mis-satlib-like", "maxcut-er-256"):
        first, second = (CASES[name].dataset(2).graphs for _ in range(2))
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one.edges, other.edges)
    assert CASES["mis-satlib-like"].dataset(1).graphs[0].num_nodes == 1_209
    with pytest.raises(InputError, match=r"--cases: 'mis' is not available; there are mis-er-0\.05"):
        chosen_cases(["mis"])


def test_what_is_absent_says_what_it_needs():
    assert set(available_peers()).isdisjoint(how_to_get())
    assert set(available_peers()) | set(how_to_get()) == {
        "discs", "dwave-samplers", "tabu", "openjij", "kamis", "bifurcation"
    }  # fmt: skip
    with pytest.raises(InputError, match=r"'openjij' is not available; it needs pip install x; there are reference"):
        check_choice("engines", ["openjij"], ["reference"], {"openjij": "pip install x"})


def test_an_engine_is_measured_and_verified():
    dataset = small_dataset()
    own = Own("reference", "sl_gwg", dataset, Settings(batch_size=8, chain_length=400))
    first, again = own.play(1), own.play(1)
    np.testing.assert_array_equal(first.best, again.best)
    assert first.chain_steps == 2 * 8 * 400 and 0 < first.flips < first.chain_steps
    np.testing.assert_array_equal(first.best, largest_sets(dataset))


@pytest.mark.parametrize(
    ("name", "unit"),
    [("dwave-samplers", 28 * 8), ("tabu", 2 * 8), ("openjij", 28 * 8), ("kamis", 2), ("bifurcation", 8)],
)
def test_peers_solve_the_same_problem(name, unit):
    if name in how_to_get():
        pytest.skip(f"{name} is not installed: {how_to_get()[name]}")
    dataset = small_dataset()
    peer = available_peers()[name]("gwg", dataset, Settings(batch_size=8, chain_length=400))
    measured = peer.play(3, seconds=0.5)
    np.testing.assert_array_equal(measured.best, largest_sets(dataset))
    assert measured.chain_steps and measured.chain_steps % unit == 0


def test_kamis_solves_cliques_by_the_complement():
    if "kamis" in how_to_get():
        pytest.skip(f"kamis is not installed: {how_to_get()['kamis']}")
    dataset = small_dataset("maxclique")
    largest = [max(map(len, nx.find_cliques(networkx_graph(graph)))) for graph in dataset.graphs]
    np.testing.assert_array_equal(available_peers()["kamis"]("gwg", dataset, Settings()).play(1).best, largest)
    with pytest.raises(NotPlayed, match="it solves mis and maxclique"):
        available_peers()["kamis"]("gwg", small_dataset("maxcut"), Settings())


def test_the_interval_of_a_lead_covers():
    """Of 2,000 pairs of contenders on 8 graphs, 5 % miss the true lead of 1; five standard errors are 2.4 %."""
    rng = np.random.default_rng(0)

    def row(best):
        return Row("c", "s", "e", "u", [Measurement(1, None, 1.0, 1.0, one) for one in best])

    leads = []
    for _ in range(2_000):
        of_graphs = rng.normal(0, 10, 8)
        ours, theirs = (of_graphs + mean + rng.normal(0, 2, (3, 8)) for mean in (1.0, 0.0))
        leads.append(lead(row(ours), row(theirs)))
    missed = np.mean([one.low > 1 or one.high < 1 for one in leads])
    assert abs(missed - 0.05) < 0.024
    assert {one.verdict for one in leads} == {"ahead", "level"}
    assert lead(row(np.zeros((1, 8))), row(np.ones((1, 8)))).verdict == "behind"


def test_the_default_choice_is_measured_and_verified(monkeypatch):
    """It is given the time limit, and counts what was played: how long that took is up to the machine."""
    dataset, results = small_dataset(), []

    def solve(problem, **options):
        assert options["time_limit"] == 0.2
        results.append(sl_discs.solve(problem, presolve=False, **options))
        return results[-1]

    monkeypatch.setattr(contenders, "solve", solve)
    engine = choose_engine("auto", Metropolis())[0].name
    measured = Default(engine, dataset, seconds=0.2).play(1)
    np.testing.assert_array_equal(measured.best, largest_sets(dataset))
    assert [result.stopped for result in results] == ["time", "time"]
    assert measured.seconds >= sum(result.timing["run_s"] for result in results) > 0
    assert measured.chain_steps == sum(len(result.values) * result.steps for result in results)
    with pytest.raises(NotPlayed, match="another engine"):
        Default("gpu", dataset, seconds=0.2)


def test_reads_are_verified():
    dataset = small_dataset()
    everything = [np.ones((3, 14)), np.zeros((3, 14))]
    found = best_of_reads(dataset, everything)
    assert 0 < found[0] <= largest_sets(dataset)[0] and found[1] >= 0


def test_report():
    def row(contender, rates, best, unit="chain-steps"):
        measurements = [Measurement(100, 50.0, 100 / rate, 200 / rate, best) for rate in rates]
        return Row("case", "gwg", contender, unit, measurements)

    rows = [
        row("reference", [200, 400, 300], np.array([5.0, 7.0])),
        row("discs", [2, 2, 3], None),
        row("annealer", [1e6, 1e6, 1e6], np.array([6.0, 7.0]), "updates of a site"),
    ]
    text = format_case(rows, num_graphs=2)
    assert "reference is 100.00x (100.00 - 200.00)" in text and text.count("x (") == 1
    assert "reference is level: mean best larger by -0.50 (-6.85 to 5.85 over graphs)" in text
    found = as_json(rows, {"steps": 10})["cases"]["case"]["gwg"]
    assert (
        found["reference"]["chain_steps_per_s"] == 300
        and found["reference"]["min"] == 200
        and found["reference"]["max"] == 400
    )
    assert found["reference"]["per_cpu_second"] == 150
    assert found["reference"]["error_of_mean"] == 0 and found["discs"]["error_of_mean"] is None
    assert found["reference"]["mean_best"] == 6.0 and found["discs"]["mean_best"] is None
    assert found["annealer"]["unit"] == "updates of a site"


def test_the_script(tmp_path, script):
    small = ("--cases=maxcut-er-256", "--graphs=1", "--chains=4", "--steps=50", "--repeats=2")
    said = script("benchmarks/rates.py", *small, "--samplers=gwg,sl_gwg", "--engines=cpu")
    assert "saved bench.json" in said and "maxcut-er-256" in said
    found = json.loads((tmp_path / "bench.json").read_text())["cases"]["maxcut-er-256"]
    assert set(found) == {"gwg", "sl_gwg"} and found["sl_gwg"]["cpu"]["mean_best"] > 2_000
