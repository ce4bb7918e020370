"""Effective sample sizes of chains on a lattice, measured while they are played."""

import dataclasses

import numpy as np
import pytest

from sl_discs.errors import InputError
from sl_discs.experiment import ess
from sl_discs.experiment.ess import ess_settings, lattice_from, run_ess
from sl_discs.experiment.settings import Settings
from sl_discs.instances.generators import IsingLattice
from sl_discs.localization.method import build_method

SETTINGS = Settings(batch_size=64, chain_length=2_000, t_schedule="constant", log_every_steps=1)


def measured(settings, lattice, *names):
    methods = [build_method({"name": name}, settings.batch_size) for name in names]
    config = {"samplers": {name: {} for name in names}}
    return run_ess(lattice, methods, ess_settings(settings, methods), config).samplers


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_chains_whose_autocorrelation_is_known(engine):
    """Gibbs on N free spins renews each with probability 1/N a step: the distance has correlations (1 - 1/N)^k."""
    lattice = IsingLattice((2, 3), lambdaa=0.0)
    found = measured(dataclasses.replace(SETTINGS, engine=engine), lattice, "gibbs")["gibbs"]
    expected = 1_000 / (2 * 6 - 1)
    # The sum of correlations ends at the first negative one, in chains of so few independent states.
    assert 0.85 < found.ess.ess / expected < 1.2
    assert found.ess.per_step == pytest.approx(found.ess.ess / 1_000)
    assert found.ess.per_evaluation == pytest.approx(found.ess.ess / 2_000)  # two a step
    assert found.ess.per_second == pytest.approx(found.ess.ess / found.seconds)
    assert 0 < found.seconds < found.run_s and found.engine.startswith(engine)


def test_the_field_moves_the_distance(monkeypatch):
    """In a strong field all chains are at the state that the field favours, so its distance is known."""
    traces = []
    real = ess.discs_ess
    monkeypatch.setattr(
        ess, "discs_ess", lambda trace, *rest, **more: traces.append(trace) or real(trace, *rest, **more)
    )
    lattice, seed = IsingLattice((3, 4), lambdaa=0.0, mu=0.0, init_sigma=1e4), 5
    measured(dataclasses.replace(SETTINGS, seed=seed, batch_size=3, chain_length=500), lattice, "gibbs")
    favoured = lattice.draw(0, 0).linear > 0
    assert (traces[0][-1] == np.count_nonzero(favoured != ess._reference(seed, 12))).all()


def test_calls_of_any_size_find_the_same(monkeypatch):
    """What a call may hold limits how many states there are at a time, and changes no figure."""
    settings = dataclasses.replace(SETTINGS, batch_size=4, chain_length=60, engine="cpu")
    seen = []
    add = ess._Distances.__call__

    def spied(self, every, trace, *rest):
        seen.append(trace.states.nbytes)
        add(self, every, trace, *rest)

    monkeypatch.setattr(ess._Distances, "__call__", spied)
    at_once = measured(settings, IsingLattice((3, 3)), "gwg")["gwg"]
    limit = 20 * 4 * 9
    assert len(seen) == 1 and seen.pop() > limit
    monkeypatch.setattr(ess, "_MOST_STATES", limit)
    in_parts = measured(settings, IsingLattice((3, 3)), "gwg")["gwg"]
    assert seen == [limit] * 3
    assert at_once.ess._replace(per_second=0) == in_parts.ess._replace(per_second=0)
    assert (at_once.acceptance, at_once.hops) == (in_parts.acceptance, in_parts.hops)


@pytest.mark.parametrize(
    ("fields", "sampler", "message"),
    [
        ({"t_schedule": "exp_decay"}, "gwg", "t_schedule is 'exp_decay'; .* needs 'constant'"),
        ({"t_schedule": (1.0, 0.5)}, "gwg", "t_schedule is"),
        ({"resample_every": 100}, "gwg", "resample_every is 100"),
        ({"num_instances": 2}, "gwg", "num_instances is 2; one lattice"),
        ({"chain_length": 2}, "gwg", "chain_length is 2, of which"),
        ({}, "sl_gwg", "'sl_gwg' has no effective sample size"),
    ],
)
def test_what_has_no_stationary_chains_is_refused(fields, sampler, message):
    settings = dataclasses.replace(SETTINGS, **fields)
    with pytest.raises(InputError, match=message) as refused:
        ess_settings(settings, [build_method({"name": sampler}, 64)])
    assert "\n" not in str(refused.value)


def test_the_fields_of_a_lattice():
    """DISCS's model config is taken as it is; fields of graphs and other numbers of categories are refused."""
    discs = {"shape": (5, 4), "num_categories": 2, "lambdaa": 1, "external_field_type": 1, "mu": 0.5, "name": "ising"}
    assert lattice_from(discs) == IsingLattice((5, 4), 1, 0.5)
    with pytest.raises(InputError, match="'ising' has no field 'graph_type'; known: name"):
        lattice_from(discs | {"graph_type": "ba"})
    with pytest.raises(InputError, match="num_categories is 3"):
        lattice_from(discs | {"num_categories": 3})
