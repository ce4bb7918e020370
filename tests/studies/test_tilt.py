"""The study of tilts in small: when optima are reached, and how many steps a loss is worth."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import tilt
from claim_statistics import interval
from sl_discs.experiment.settings import settings_from
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import method_fields
from sl_discs.reproduction.cells import PUBLISHED

SET = PUBLISHED["maxcut/optsicom/r-b"]
SETTINGS = settings_from(
    SET.experiment() | {"engine": "cpu", "chain_length": 400, "log_every_steps": 20, "batch_size": 8}
)


def played(references, fields):
    graphs = load_dataset(*SET.flags, None, num_instances=2)
    known = [
        dataclasses.replace(graph, reference=value) for graph, value in zip(graphs.graphs, references, strict=True)
    ]
    return tilt.play(dataclasses.replace(graphs, graphs=known), SETTINGS, fields, 2)


@pytest.fixture(scope="module")
def base():
    return played((None, None), method_fields("gwg"))


def test_a_reference_is_reached_when_the_best_chain_has_it(base):
    assert base.best.shape == (4, SETTINGS.batch_size) and np.isinf(base.reached).all()
    best = base.best.max(axis=1)
    assert (base.best[0] != base.best[2]).any(), "seeds have chains of their own"
    one, above = (played((best[0], best[1] + more), method_fields("gwg")) for more in (0, 1))
    np.testing.assert_array_equal(one.best, base.best)
    assert np.all(one.reached[:2] % 20 == 0) and np.all((one.reached[:2] > 0) & (one.reached[:2] <= 400))
    assert above.reached[0] == one.reached[0] and np.isinf(above.reached[1])


def test_a_row_is_beside_the_base(base):
    there = base._replace(reached=np.array([100.0, 200.0, 100.0, 40.0]))
    slow = there._replace(best=base.best - 3, reached=2 * there.reached, hops=base.hops / 2)
    row = tilt.row("2", slow, there)
    assert row.gain.mean == row.mean_gain == -3 and row.spread == pytest.approx(base.best.std(axis=1, ddof=1).mean())
    assert row.moves == [0.5, 0.5] and row.decided == []
    assert np.exp(row.slower.mean) == pytest.approx(2) and row.slower.half == pytest.approx(0, abs=1e-12)
    assert tilt.row("2", slow, base).slower is None


def test_localization_is_seen_in_its_tilt():
    localized = played((None, None), method_fields("sl_gwg") | {"sigma": 2.0, "K": 50})
    assert localized.decided.shape == localized.hops.shape == (20,)
    assert localized.decided[-1] > localized.decided[4] > 0


def test_a_loss_is_worth_the_steps_between():
    shorter = [SimpleNamespace(mean_gain=-(2.0**k)) for k in range(4)]
    assert tilt.steps_worth(-0.2, shorter, 1_600) == "all"
    assert tilt.steps_worth(-2.0, shorter, 1_600) == "400"
    assert tilt.steps_worth(-9.0, shorter, 1_600) == "below 100"


def test_variants_of_samplers_are_those_of_the_comparison(monkeypatch):
    """The base, the tilts and the shorter runs all have what differs from the sampler's defaults."""
    seen = []

    def spied(graphs, settings, fields, seeds):
        seen.append(fields)
        best = np.zeros((2, 3))
        return tilt.Played(best, np.ones(8), np.ones(8), np.full(2, np.inf))

    monkeypatch.setattr(tilt, "play", spied)
    tilt.compare(None, SETTINGS, "gwg_one_flip", 1)
    assert len(seen) == 1 + len(tilt.SIGMAS) + len(tilt.PARTS) and not any(fields["adaptive"] for fields in seen)
    assert {fields["name"] for fields in seen} == {"gwg", "sl_gwg"}


@pytest.mark.parametrize(("spread", "shown"), [(1.0, "+1.00 ± 1.24"), (0.05, "+1.000 ± 0.062")])
def test_small_gains_have_a_third_decimal(spread, shown):
    gains = 1 + spread * np.array([-1.0, 1.0, -1.0, 1.0, 0.0])
    assert tilt.gain(tilt.Row("2", interval(gains), 0.0, 0.0, [], [], None)) == shown
