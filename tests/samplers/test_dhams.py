"""The samplers with a momentum: rejections, the law over several steps, the noise, and adaptation.

Their first step is compared with the oracle in tests/testing. Seeds are fixed; a correct sampler fails a statistical
test with probability 1e-6.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_except

from sl_discs import keys
from sl_discs.errors import InputError
from sl_discs.models.base import Target
from sl_discs.models.quadratic import (
    IsingParams,
    QuadraticModel,
    QuadraticParams,
    dense_coupling,
    ising_lattice,
    sparse_coupling,
)
from sl_discs.samplers.base import Chain
from sl_discs.samplers.hams import DHAMS, PDHAMS
from sl_discs.testing import ConformanceError, check_case, standard_cases

N = 6
EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (1, 4)])
WEIGHTS = np.array([1.0, -2.0, 0.5, 1.5, -1.0, 2.0])
TILTED = standard_cases()[1]
QUICK = {"batches": 2**13}


def target(sparse=False, scale=-0.8, temperature=0.5):
    """Site 5 is not coupled, site 3 is masked."""
    coupling = sparse_coupling(EDGES, WEIGHTS, N, 4) if sparse else dense_coupling(EDGES, WEIGHTS, N)
    linear = np.linspace(-1, 1, N, dtype=np.float32)
    params = QuadraticParams(linear, coupling, np.float32(scale))
    params, mask, tilt = jax.tree.map(jnp.asarray, params), jnp.arange(N) != 3, jnp.linspace(0.5, -0.5, N)
    return Target(QuadraticModel(N), params, jnp.float32(temperature), mask, tilt)


def play(sampler, target, steps=200):
    """Acceptance and hops of each step of one chain."""

    def step(chain, key):
        return sampler.kernel(key, target, chain)

    x = jnp.zeros(N, jnp.int8)
    start = Chain(x, target.init(x), sampler.init_state(N))
    each = jax.vmap(keys.fold, (None, 0))(keys.from_seed(0), jnp.arange(steps))
    return jax.jit(lambda start: jax.lax.scan(step, start, each))(start)


@pytest.mark.parametrize("sparse", slow_except([False, True], [True]))
def test_pdhams_rejects_nothing_on_a_quadratic_model(sparse):
    _, (acceptance, hops) = play(PDHAMS(), target(sparse))
    np.testing.assert_allclose(acceptance, 1, atol=1e-4)
    assert 0.3 < hops.mean() < N


@pytest.mark.parametrize("correction", slow_except([0.0, 0.7], [0.7]))
def test_dhams_rejects_nothing_without_couplings(correction):
    sampler = DHAMS(adaptive=False, correction=correction)
    _, (acceptance, hops) = play(sampler, target(scale=0.0))
    np.testing.assert_allclose(acceptance, 1, atol=1e-4)
    assert hops.mean() > 0.3
    _, (acceptance, _) = play(sampler, target())
    assert acceptance.mean() < 0.95


@pytest.mark.parametrize("sparse", slow_except([False, True], [True]))
def test_the_noise_of_a_model_has_its_couplings_as_covariance(sparse):
    its = target(sparse)
    size = 2**16
    each = jax.vmap(keys.fold, (None, 0))(keys.from_seed(1), jnp.arange(size))
    drawn, variances = jax.jit(jax.vmap(its.draw_coupled))(each)
    couplings = np.zeros((N, N))
    couplings[tuple(EDGES.T)] = -0.8 * WEIGHTS / 0.5
    couplings += couplings.T
    covariance = couplings + np.diag(np.abs(couplings).sum(axis=1))
    np.testing.assert_allclose(variances[0], np.diag(covariance), rtol=1e-6)
    diagonal = np.diag(covariance)
    error = np.sqrt((np.outer(diagonal, diagonal) + covariance**2) / size)
    found = np.asarray(drawn).T @ np.asarray(drawn) / size
    assert (np.abs(found - covariance) <= 5.6 * error + 1e-9).all()


def test_only_a_quadratic_model_has_a_pdhams():
    lattice = ising_lattice(2, 3).target(IsingParams(jnp.float32(0.3), jnp.zeros(6)), jnp.ones(6, bool))
    with pytest.raises(InputError, match="use dhams"):
        play(PDHAMS(), lattice)


@pytest.mark.parametrize(
    "sampler",
    [
        DHAMS(step_size=0.7, persistence=0.9, correction=0.3, adaptive=False),
        pytest.param(PDHAMS(persistence=0.9), marks=pytest.mark.slow),
    ],
)
def test_a_momentum_that_persists_leaves_the_law_invariant(sampler):
    check_case(sampler, TILTED, **QUICK)


class NeverReversed(DHAMS):
    """Keeps the momentum after a rejection."""

    def kernel(self, key, target, chain):
        after, info = super().kernel(key, target, chain)
        momentum = jnp.where(info.hops == 0, -1, 1) * after.state.momentum
        return after._replace(state=after.state._replace(momentum=momentum)), info


class WrongEnergy(DHAMS):
    """The kinetic energy counts double."""

    def kinetic_change(self, *given):
        return 2 * super().kinetic_change(*given)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [NeverReversed, WrongEnergy])
def test_broken_momenta_are_found(kind):
    sampler = kind(step_size=1.0, persistence=0.9, adaptive=False)
    with pytest.raises(ConformanceError, match="not invariant"):
        check_case(sampler, TILTED, **QUICK)


def test_the_step_size_adapts_to_the_acceptance_and_stops():
    sampler = DHAMS(step_size=5.0, adapt_until=150)
    (_, _, state), (acceptance, _) = play(sampler, target(scale=-3.0))
    assert acceptance[:10].mean() < 0.3 < acceptance[150:].mean()
    later = sampler.next_step_size(state, jnp.float32(1))
    np.testing.assert_allclose(later, state.step_size, rtol=1e-5)
    assert sampler.next_step_size(state._replace(steps=jnp.int32(0)), jnp.float32(1)) > later


@pytest.mark.parametrize(
    "fields",
    [{"persistence": 1.0}, {"step_size": 0.0}, {"correction": 2.0}, {"target_acceptance_rate": 1.0}],
    ids=lambda fields: next(iter(fields)),
)
def test_bad_fields_are_named(fields):
    with pytest.raises(InputError, match=next(iter(fields))):
        DHAMS(**fields)
