"""The study of the theory in small: what it writes, that it goes on where it was, what it sees on real instances."""

import dataclasses
import json

import numpy as np
import pytest

import gaps
import theory
from sl_discs.experiment.settings import Settings
from sl_discs.files import finished
from sl_discs.localization.method import build_method
from sl_discs.models.quadratic import to_spin
from sl_discs.models.terms import Coefficients
from theory import Fields, watch

SMALL = theory.Size(
    sites=(1, 2), fields=4, random=3, targets=(3, 2, 2), levels=3, replicas=2, chains=50, most_steps=6, looks=3,
    steps=40, methods=(),
)  # fmt: skip
PATH = Coefficients(np.array([1.0, 1, 1, 0]), np.array([(0, 1), (1, 2)]), np.array([1.0, 1.0]), -1.5)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theory")
    return folder, theory.run(folder, SMALL)


def test_page_and_figures(small):
    folder, found = small
    text = (folder / "theory.md").read_text()
    for name in ("gaps", "runs"):
        assert f"({name}.png)" in text and (folder / f"{name}.png").stat().st_size > 10_000
    assert json.loads((folder / "theory.json").read_text()) == json.loads(json.dumps(found))
    assert len(found["runs"]) == 3 * SMALL.levels * SMALL.replicas


def test_a_stopped_run_goes_on_and_gives_the_same_table(small, monkeypatch):
    """Half of the cells are there: the others give what they gave before."""
    folder, found = small
    before = (folder / "theory.md").read_bytes(), (folder / "theory.json").read_bytes()
    kept = sorted((folder / "cells").iterdir())
    for path in kept[::2]:
        path.unlink()
    looks = []
    look = theory.look
    monkeypatch.setattr(theory, "look", lambda *arguments: looks.append(0) or look(*arguments))
    theory.run(folder, SMALL)
    assert ((folder / "theory.md").read_bytes(), (folder / "theory.json").read_bytes()) == before
    assert 0 < len(looks) < len(found["runs"]) and sorted((folder / "cells").iterdir()) == kept


def test_a_cell_of_other_numbers_is_another_cell(tmp_path):
    made = []

    def compute():
        made.append(0)
        return {"x": len(made)}

    assert [finished(tmp_path, {"kind": "a", "n": n}, compute)["x"] for n in (1, 2, 1)] == [1, 2, 1]
    [path, _] = sorted(tmp_path.iterdir())
    path.write_text("not what was written")
    assert sum(finished(tmp_path, {"kind": "a", "n": n}, compute)["x"] for n in (1, 2)) > 3


def test_a_sites_condition_is_that_of_the_spin_form():
    """`Fields` at a temperature against W and h of the form on spins."""
    temperature, tilt = 0.7, np.array([[0.3, -2.0, 0.1, 0.4]])
    J = np.zeros((4, 4))
    J[PATH.edges[:, 0], PATH.edges[:, 1]] = PATH.scale * PATH.weights
    form = to_spin(PATH.linear / temperature, (J + J.T) / temperature)
    h, rows = np.abs(form.b + tilt[0]), 2 * np.abs(form.W).sum(axis=1)
    assert rows.max() == pytest.approx(gaps.needed_field(form))
    assert Fields.of(PATH).met(tilt, temperature) == ((h >= rows).mean(), (h >= rows.max()).mean())


@pytest.mark.slow
def test_without_the_tilt_nothing_meets_the_condition():
    """The null control on a real instance: no node of this graph is isolated."""
    found = {
        run: theory.real_run("MaxCut, BA-512", run, "sl_gibbs", SMALL)["looks"] for run in ("tilt off", "localizes")
    }
    assert {(row["tilt"], row["own_row"]) for row in found["tilt off"]} == {(0.0, 0.0)}
    assert found["localizes"][-1]["tilt"] > 0.1


@pytest.mark.slow
def test_looks_add_up_to_the_run():
    """Where Y is an observation of the state, the tilt grows to SNR times the spins."""
    method = build_method({"name": "sl_gibbs", "sigma": 1.0, "eps_end": 1e-3, "K": 32, "grid": "log_snr"}, 4)
    settings = Settings(batch_size=4, chain_length=320, log_every_steps=320, t_schedule="constant", threads=1)
    rows = watch(PATH, method, settings, 8)
    assert [row["level"] for row in rows] == sorted({row["level"] for row in rows}) and rows[-1]["level"] == 31
    assert rows[-1]["tilt"] == pytest.approx(rows[-1]["snr"], rel=0.1) and rows[-1]["snr"] > 100
    assert rows[-1]["all_rows"] == 1 > rows[0]["all_rows"]
    again = watch(PATH, method, dataclasses.replace(settings, seed=0), 8)
    assert again == rows
