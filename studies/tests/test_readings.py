"""The readings of the paper: their programs, their laws on 4 spins, and what is kept of a run."""

import dataclasses
import json
import types

import numpy as np
import pytest

import readings
import readings_plan
import readings_table
from readings import Block, Setup
from readings_plan import BASE, READINGS, SETS
from sl_discs.chains.batches import Layout, Shape
from sl_discs.chains.chains import Chains
from sl_discs.engines.cpu.cpu_engine import Cpu
from sl_discs.experiment.settings import Settings
from sl_discs.localization.schedule import Localization
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.path import GWG

SETTINGS = Settings(
    batch_size=4, chain_length=10_000, init_temperature=1.0, decay_rate=0.05, final_temperature=1e-4
)


def program(name, settings=SETTINGS, constant=0.2):
    return readings_plan.program_of(READINGS[name], settings, constant)


def temperature_of(played):
    return played.temperature.whole()


# Programs.


def test_annealing_starts_again_in_each_level():
    for levels in (256, 512, 1024):
        played = program(f"annealing inside each level, K {levels}")
        lengths = np.diff(played.levels.last, prepend=-1)
        assert len(lengths) == levels and len(temperature_of(played)) == 10_000
        ends = temperature_of(played)[played.levels.last]
        np.testing.assert_allclose(ends, 0.05, rtol=1e-6)
        first = temperature_of(played)[played.levels.last - lengths + 1]
        np.testing.assert_allclose(first, 0.05 ** (1 / lengths), rtol=1e-6)


def test_every_tilt_stands_beside_the_same_run_without():
    for name, reading in READINGS.items():
        with_tilt, without = program(name), program(reading.control)
        assert not without.levels.tilt_scale.any()
        np.testing.assert_array_equal(temperature_of(with_tilt), temperature_of(without))
        assert bool(with_tilt.levels.tilt_scale.any()) == (reading.tilt is not None)


def test_tilts_of_half_a_run():
    whole = program("annealing over the run").levels
    first, last = (
        program(f"tilt in the {half}").levels.tilt_scale
        for half in (readings_plan.FIRST, readings_plan.LAST)
    )
    np.testing.assert_array_equal(first + last, whole.tilt_scale)
    assert whole.last[np.flatnonzero(first)[-1]] < 5_000 <= whole.last[np.flatnonzero(last)[0]]


def test_temperatures_of_levels():
    held, by_level = program("tilt inside the temperature"), program("temperature by level")
    run = program(BASE)
    starts = np.append(0, held.levels.last[:-1] + 1)
    for played in (held, by_level):
        np.testing.assert_array_equal(
            temperature_of(played),
            np.repeat(temperature_of(played)[starts], np.diff(starts, append=10_000)),
        )
    assert np.abs(np.log(temperature_of(held) / temperature_of(run))).max() < 0.05
    np.testing.assert_allclose(temperature_of(by_level)[-1], 0.05, rtol=1e-6)
    assert (
        temperature_of(by_level)[5_000] > 1.5 * temperature_of(run)[5_000]
    )  # levels become shorter


def test_coding_by_zero_and_one_is_twice_the_noise():
    """Given y = alpha x + sigma B, x in {0, 1} has the law of spins under the tilt of 2 y - alpha
    and 2 sigma.
    """
    rng, sigma, t, alpha = np.random.default_rng(0), 1.3, 0.4, 0.7
    x = (np.arange(16)[:, None] >> np.arange(4)) & 1
    log_law, y = rng.normal(size=16), rng.normal(size=4)
    direct = log_law - ((y - alpha * x) ** 2).sum(axis=1) / (2 * sigma**2 * t)
    tilted = log_law + (2 * x - 1) @ (alpha * (2 * y - alpha) / ((2 * sigma) ** 2 * t))
    np.testing.assert_allclose(direct - direct[0], tilted - tilted[0])
    ours, theirs = program("0/1 coding").levels, program("annealing over the run").levels
    np.testing.assert_allclose(ours.tilt_scale, theirs.tilt_scale / 4, rtol=1e-6)


# Laws on 4 spins.

TERMS = Coefficients(
    np.array([0.5, 1.0, -0.3, 0.2]),
    np.array([(0, 1), (1, 2), (2, 3)]),
    np.array([-2.0, 1.0, 1.0]),
    1.0,
)
STATES = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(np.int8)
CHAINS = 4_000
# A sample of so many states is .016 from its law on average, and further than .04 once in 10,000
# times.
BOUND = 0.04


def four_spins():
    shape = Shape(4, 1, CHAINS, None, Layout(1, 1))
    return Chains([TERMS], [0], shape, GWG(adaptive=False), Cpu(), 1)


def law(temperature, tilt=0.0):
    first, second = TERMS.edges.T
    value = STATES @ TERMS.linear + (TERMS.weights * STATES[:, first] * STATES[:, second]).sum(
        axis=1
    )
    weights = np.exp(value / temperature + (2.0 * STATES - 1) @ np.broadcast_to(tilt, 4))
    return weights / weights.sum()


def distance(states, wanted):
    counts = np.bincount(np.asarray(states)[0] @ (1 << np.arange(4)), minlength=16)
    return np.abs(counts / counts.sum() - wanted).sum() / 2


def few_levels(reading, **fields):
    """The reading with a signal that decides, in few levels of 20 steps, at a constant
    temperature.
    """
    few = {"K": 1_000, "sigma": 2.0, "grid": "log_snr", "budget": "identical", "mc_ratio": 0.75}
    return reading._replace(
        annealing=readings_plan.CONSTANT, localization=reading.localization | few | fields
    )


@pytest.mark.parametrize(
    "name",
    ["constant temperature", "constant temperature, no tilt", "SLIPS's Geom(2,1)", "0/1 coding"],
)
def test_readings_at_a_constant_temperature_have_the_law(name):
    """The last states do, and the signs of Y where there is a tilt."""
    settings, reading = (
        dataclasses.replace(SETTINGS, chain_length=1_000),
        few_levels(READINGS[name]),
    )
    if name == "0/1 coding":
        reading = few_levels(READINGS[name], sigma=READINGS[name].localization["sigma"] / 10)
    played = readings_plan.program_of(reading, settings, 0.8)
    chains = four_spins()
    chains.start(played)
    chains.advance(1, 1_000)
    wanted = law(0.8)
    if reading.tilt is None:
        assert distance(chains.states.chain.x, wanted) < BOUND
    else:
        assert distance(np.asarray(chains.states.chain.state.y) > 0, wanted) < BOUND
    assert distance(chains.states.chain.x, law(0.4)) > 3 * BOUND


def test_signs_of_one_observation_a_graph_have_the_law():
    """Of many graphs, one draw each; all chains of a graph have the same observation."""
    settings = dataclasses.replace(SETTINGS, chain_length=1_000, batch_size=2)
    played = readings_plan.program_of(
        few_levels(READINGS["one observation a graph"]), settings, 0.8
    )
    graphs = 1_000
    shape = Shape(4, graphs, 2, None, Layout(1, 1))
    chains = Chains([TERMS] * graphs, list(range(graphs)), shape, GWG(adaptive=False), Cpu(), 1)
    chains.start(played)
    readings.play_shared(chains)
    y = np.mean(chains.states.chain.state.y, axis=1)
    assert distance((y > 0)[None], law(0.8)) < 2 * BOUND
    assert distance((y > 0)[None], law(0.4)) > 4 * BOUND


def test_inside_the_temperature_the_tilt_is_divided_by_it():
    """Each chain has the law exp((f + <s, h>)/tau) where it is told the same observation."""
    settings = dataclasses.replace(SETTINGS, chain_length=400, decay_rate=0.5)
    reading = READINGS["tilt inside the temperature"]
    reading = reading._replace(localization={"K": 50, "sigma": 2.0, "budget": "identical"})
    played = readings_plan.program_of(reading, settings, 0.8)
    y = np.array([3.0, -2.0, 4.0, -1.0], np.float32)
    h = y * Localization(**reading.localization | {"K": 2}).levels(400).tilt_scale[0]
    temperature = temperature_of(played)[0]
    assert temperature_of(played)[199] == temperature < 0.9
    chains = four_spins()
    chains.start(played)
    chain = chains.states.chain
    state = chain.state._replace(y=np.broadcast_to(y, (1, CHAINS, 4)))
    chains.states = chains.states._replace(chain=chain._replace(state=state))
    chains.advance(1, 150)
    assert distance(chains.states.chain.x, law(temperature, h / temperature)) < BOUND
    assert distance(chains.states.chain.x, law(temperature, h)) > BOUND


# What is kept of a run.


def setup(**fields):
    return Setup(
        **{"steps": 300, "chains": 2, "engine": "cpu", "data_root": None, "until": np.inf} | fields
    )


def test_cells_do_not_depend_on_their_company():
    """A cell is the same alone, after others of its block, and for other graphs of the block."""
    arms = tuple((sampler, name) for sampler in ("gwg", "dmala") for name in list(READINGS)[:4])
    together = dict(readings.play(Block(SETS[6], 3, 3, (*arms, arms[0])), setup()))
    assert len(together) == 8
    for arm in (arms[0], arms[2], arms[-1]):
        [(_, alone)] = readings.play(Block(SETS[6], 4, 1, (arm,)), setup())
        assert alone[0] == together[arm][1]
    assert len({tuple(values) for values in together.values()}) > 2


def test_searched_annealing_is_that_of_the_set():
    """Without it, or with the base's temperatures, the run would be the base's, with the same
    random numbers.
    """
    name = "searched annealing, no localization"
    found = dict(
        readings.play(Block(SETS[6], 0, 3, (("gwg", BASE), ("gwg", name))), setup(steps=100))
    )
    assert (found["gwg", name] != found["gwg", BASE]).any()
    assert readings_plan.searched(SETS[7]) is None


def test_references_are_kept_with_the_cells_of_cliques():
    found = dict(readings.play(Block("maxclique/rb", 0, 2, (("gwg", BASE),)), setup(steps=100)))
    assert (found[readings_table.REFERENCES] >= found["gwg", BASE]).all()


def test_given_graphs_come_from_the_whole_set(monkeypatch):
    """Whose files may be sorted by size; but for those that a search has seen."""

    def load(*flags, first=0, num_instances):
        return types.SimpleNamespace(total=500, graphs=[first])

    monkeypatch.setattr(readings, "load_dataset", load)
    satlib = readings.PUBLISHED["mis/satlib"]
    found = readings.draw(satlib, 0, 32, "folder") + readings.draw(satlib, 32, 468, "folder")
    assert sorted(found) == [k for k in range(500) if k % 5 != 4]
    assert min(found[:32]) < 50 < 450 < max(found[:32])


def test_time_ends_a_block():
    assert not list(readings.play(Block(SETS[6], 0, 1, (("gwg", BASE),)), setup(until=0)))


def test_a_stopped_command_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    flags = ["--output=found", "--samplers=gwg_one_flip", "--engine=cpu", f"--datasets={SETS[7]}"]
    play, calls = readings.play_all, []

    def once(block, setup):
        if len(calls) == 1:
            raise KeyboardInterrupt
        calls.append(block)
        return play(block, setup)

    monkeypatch.setattr(readings, "play_all", once)
    assert readings.main(["readings", *flags]) == 130
    monkeypatch.setattr(
        readings, "play_all", lambda block, setup: calls.append(block) or play(block, setup)
    )
    assert readings.main(["readings", *flags]) == 0
    assert [(block.first, block.count) for block in calls] == [(0, 2), (2, 1)]
    found = json.loads((tmp_path / "found" / "readings.json").read_text())
    rows = found["rows"]
    # There was no search for this set.
    played = [
        one for one in readings_plan.PRIMARY if READINGS[one].annealing != readings_plan.SEARCHED
    ]
    assert [row["reading"] for row in rows] == played[1:]
    assert all(row["graphs"] == 3 and row["primary"] for row in rows)
    page = (tmp_path / "found" / "readings.md").read_text()
    assert (
        page.count("| 3 |") == len(rows) + len(found["averages"])
        and "no tilt: gain above zero in" in page
    )
    assert readings.main(["readings", *flags]) == 0 and len(calls) == 2
    capsys.readouterr()


# Statistics.


def test_differences_of_the_same_graphs():
    values = {BASE: [60, 61, 60, 59], "annealing over the run": [61, 61, 61, 60]}
    cells = {}
    for name, best in values.items():
        cells[SETS[0], "gwg", name, 0] = np.array(best[:3], np.int32)
        cells[SETS[0], "gwg", name, 3] = np.array(best[3:], np.int32)
    [row] = readings_table.rows(cells)
    assert row.graphs == 4 and row.base == 60
    assert row.gain == row.tilt == pytest.approx((0.75, 0.25))
    assert row.published == pytest.approx((0.188, 0.25 * np.sqrt(4 / 32)), abs=1e-3)
    apart = (0.75 - row.published[0]) / np.hypot(0.25, row.published[1])
    assert row.p_published == pytest.approx(2 * readings_table.ndtr(-apart))
    level = (60.75 - 61.938) / np.hypot(0.25, 0.93 / np.sqrt(32))
    assert row.level == pytest.approx((61.938, level), abs=1e-3)


def test_averages_are_of_the_graphs_that_all_samplers_played():
    """Over samplers, and for the reading None over those with a control of their own."""
    levels = "annealing inside each level, K "
    cells = {
        (SETS[0], sampler, reading, 0): np.array(best, np.int32)
        for sampler, reading, best in [
            ("gwg", BASE, [60, 60, 60]), ("gwg", "annealing over the run", [10, 10, 10]),
            ("gwg", f"{levels}512", [61, 60, 99]), ("gwg", f"{levels}512, no tilt", [60, 60, 60]),
            ("gwg", f"{levels}256", [58, 57, 99]), ("gwg", f"{levels}256, no tilt", [60, 60, 60]),
            ("dmala", BASE, [61, 61]), ("dmala", f"{levels}512", [61, 65]),
            ("dmala", f"{levels}512, no tilt", [64, 61]),
        ]
    }  # fmt: skip
    found = {one["reading"]: one for one in readings_table.averages(cells)}
    without = [f"{levels}{k}, no tilt" for k in (512, 256)]
    assert found.keys() == {
        f"{levels}512",
        f"{levels}256",
        *without,
        "annealing over the run",
        None,
    }

    def about(mean, error):
        return [pytest.approx(mean), pytest.approx(error)]

    # By graph (1 + 0)/2 and (0 + 4)/2; without the same run's tilt (1 - 3)/2 and (0 + 4)/2.
    assert found[f"{levels}512"] == {
        "dataset": SETS[0], "reading": f"{levels}512", "graphs": 2, "published": pytest.approx(0.229, abs=1e-3),
        "gain": about(1.25, 0.75), "tilt": about(0.5, 1.5),
    }  # fmt: skip
    assert found[without[0]]["gain"] == about(0.75, 0.75) and found[without[0]]["tilt"] is None
    # (1 - 2 - 3)/3 and (0 - 3 + 4)/3.
    assert found[None]["graphs"] == 2 and found[None]["tilt"] == about(-0.5, 5 / 6)


def test_cuts_are_per_cent_of_the_base():
    cells = {
        (SETS[6], "gwg", name, 0): np.array(best, np.int32)
        for name, best in {BASE: [1000, 500], "annealing over the run": [1010, 495]}.items()
    }
    [row] = readings_table.rows(cells)
    assert row.gain[0] == pytest.approx(0.0, abs=1e-12) and row.gain[1] == pytest.approx(1.0)


def test_every_set_gets_its_first_graphs_before_any_gets_more():
    size = readings.SIZES["full"]
    found = readings.blocks(size, None, None, {})
    sets = [block.dataset for block in found]
    assert "mis/satlib" not in sets and len(set(sets)) == 11
    first = [block for block in found if block.first < 256]
    assert found[: len(first)] == first and sum(block.count for block in first) == 11 * 256
    assert set(sets[:11]) == set(sets)
    name = found[0].dataset, *found[0].arms[0]
    done = {(*name, 0): np.zeros(20), (*name, 16): np.zeros(24)}  # of blocks of other sizes
    left = readings.blocks(size, None, None, done)
    assert len(left[0].arms) == len(found[0].arms) - 1 and left[1:] == found[1:]
    assert {arm[0] for arm in found[0].arms} == set(readings.SAMPLERS)
    assert found[0].arms[0][0] != found[1].arms[0][0]
