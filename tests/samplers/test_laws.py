"""Every sampler through the conformance suite, and broken samplers that must not pass it.

Their single steps are compared with the oracle in tests/testing.
Seeds are fixed; a correct sampler fails a single test with probability 1e-6.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chains import quadratic_case
from single_steps import SAMPLERS

from sl_discs.localization.method import build_method
from sl_discs.models import keys
from sl_discs.models.model import TargetModel
from sl_discs.samplers.block_gibbs import greedy_colours
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import PathAuxiliary
from sl_discs.samplers.registry import known_samplers, register_sampler, registered
from sl_discs.samplers.sampler import Chain, Sampler
from sl_discs.samplers.single_site import Gibbs, Metropolis
from sl_discs.testing import ConformanceError, check_case, check_sampler, standard_cases
from sl_discs.testing.oracle import KERNELS

pytestmark = pytest.mark.usefixtures("quickly_compiled")
CHAINS = 4
QUICK = {"batches": 2**14}
TILTED, MASKED = standard_cases()[1:3]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, sampler in SAMPLERS.items() if sampler.exact])
def test_whole_conformance_suite(name):
    """Those that adapt have stopped by then."""
    check_sampler(SAMPLERS[name], batches=2**15, warm_up=50)


def test_a_correct_sampler_has_a_report():
    report = check_sampler(Gibbs(), [TILTED, MASKED], batches=2**10)
    names = [TILTED.name, MASKED.name]
    assert (
        list(report.p_values) == names
        and min(report.p_values.values()) > 1e-6
        and report.distance < 0.03
    )
    lines = str(report).splitlines()
    assert (
        lines[0] == "Gibbs leaves 2 targets invariant, keeps to the mask, and moves:"
        and len(lines) == 4
    )


def test_every_sampler_of_the_package_has_a_kernel_of_the_oracle():
    assert {type(sampler) for sampler in SAMPLERS.values()} == set(KERNELS)


@dataclasses.dataclass(frozen=True)
class WrongSign(Metropolis):
    """Metropolis on the target with a tilt of the wrong sign."""

    def kernel(self, key, target, chain):
        return super().kernel(key, target.tilted(-target.tilt), chain)


@dataclasses.dataclass(frozen=True)
class IgnoresMask(Metropolis):
    """Flips sites that do not exist."""

    def kernel(self, key, target, chain):
        return super().kernel(key, target.masked(jnp.ones_like(target.mask)), chain)


@dataclasses.dataclass(frozen=True)
class NeverMoves(Metropolis):
    """Leaves every law invariant, and samples none."""

    def acceptance(self, change, log_chance):
        return jnp.zeros_like(change)


@dataclasses.dataclass(frozen=True)
class ReturnsTheChainAlone(Metropolis):
    """Without the statistics of the step."""

    def kernel(self, key, target, chain):
        return super().kernel(key, target, chain)[0]


@dataclasses.dataclass(frozen=True)
class CountsInHalves(Metropolis):
    """Its state has another dtype after a step."""

    def kernel(self, key, target, chain):
        chain, info = super().kernel(key, target, chain)
        return chain._replace(state=chain.state._replace(steps=chain.state.steps + 0.5)), info


@dataclasses.dataclass(frozen=True)
class ForgetsTheField(Metropolis):
    """Returns the field that it was given, which DISCS's calling convention computes anew."""

    def kernel(self, key, target, chain):
        after, info = super().kernel(key, target, chain)
        return after._replace(field=chain.field), info


@dataclasses.dataclass
class Thawed(Sampler):
    """It cannot be hashed, so no run can compile it."""

    init_state, kernel = Metropolis.init_state, Metropolis.kernel


@pytest.mark.parametrize(
    ("sampler", "case", "message"),
    [
        (WrongSign(), TILTED, "not invariant"),
        (IgnoresMask(), MASKED, "outside the mask"),
        (NeverMoves(), TILTED, "no chain ever moved"),
        (
            ForgetsTheField(),
            TILTED,
            "ForgetsTheField.kernel returns a field that is not that of the state",
        ),
        (DMALA(adjusted=False), TILTED, "not invariant"),
        pytest.param(PathAuxiliary(adaptive=True), TILTED, "not invariant", marks=pytest.mark.slow),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Sampler) else "",
)
def test_broken_samplers_fail(sampler, case, message):
    with pytest.raises(ConformanceError, match=message):
        check_case(sampler, case, **QUICK)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (ReturnsTheChainAlone(), r"kernel returns a Chain; return the pair \(Chain, Info\)"),
        (
            CountsInHalves(),
            r"whose state is Counters\(steps=float32\[\]\).* expected Counters\(steps=int32\[\]\)",
        ),
        (Thawed(), r"Thawed is not frozen; decorate it with @dataclasses.dataclass\(frozen=True\)"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_kernels_of_other_types_are_told_in_words(sampler, message):
    with pytest.raises(ConformanceError, match=message):
        check_sampler(sampler)


def test_a_sequential_scan_is_invariant_and_known_not_to_be_reversible():
    sampler = Metropolis(scan="sequential")
    check_case(sampler, TILTED, **QUICK)
    with pytest.raises(ConformanceError, match="detailed balance does not hold after 8 steps"):
        check_case(sampler, TILTED, reversible=True, **QUICK)


@pytest.mark.slow
def test_coupling_between_chains_is_found():
    """DISCS's step size from the mean over the batch; needs more chains than the quick
    tests use.
    """
    with pytest.raises(ConformanceError, match="not invariant"):
        check_case(DMALA(shared_scale=True), standard_cases()[0], batches=2**16)


def test_a_shared_radius_is_one_for_all_chains():
    """DISCS's form of adaptation follows the batch's mean acceptance; ours each chain's own, as the
    oracle's does.
    """
    sampler = PathAuxiliary(adaptive=True, shared_adaptation=True)
    state, x = (
        sampler.make_init_state(jax.random.key(0), CHAINS, (5,)),
        jnp.zeros((CHAINS, 5), jnp.int32),
    )
    step = jax.jit(
        lambda key, x, state: sampler.step(TargetModel(), key, x, TILTED.target, state)[:2]
    )
    for number in range(10):
        x, state = step(jax.random.key(number), x, state)
    radii = np.asarray(state.radius)
    assert (radii > 1).all() and np.ptp(radii) == 0


class StepOnly:
    """A third party's sampler: Metropolis written against DISCS's calling convention alone."""

    def make_init_state(self, rng):
        return {"steps": jnp.int32(0)}

    def step(self, model, rng, x, model_param, state, x_mask=None):
        site_key, accept_key = jax.random.split(rng)
        weights = (
            jnp.zeros(x.shape)
            if x_mask is None
            else jnp.where(x_mask, 0.0, -jnp.inf) * jnp.ones(x.shape)
        )
        site = jax.random.categorical(site_key, weights)
        y = x.at[jnp.arange(len(x)), site].set(1 - x[jnp.arange(len(x)), site])
        log_ratio = model.forward(model_param, y) - model.forward(model_param, x)
        accepted = jnp.log(jax.random.uniform(accept_key, (len(x),))) < log_ratio
        acceptance = jnp.exp(jnp.minimum(log_ratio, 0))
        return (
            jnp.where(accepted[:, None], y, x),
            {"steps": state["steps"] + 1},
            jnp.mean(acceptance),
        )


@pytest.mark.usefixtures("own_samplers")
def test_a_third_party_sampler_passes_and_can_be_registered():
    register_sampler("step_only", StepOnly)
    assert "sl_step_only" in known_samplers()
    check_case(registered("step_only").build({}), MASKED, **QUICK)


def test_carried_field_and_fresh_field_give_the_same_chain():
    """The run's route (kernel with a carried field) and DISCS's (step, field built anew) agree bit
    for bit.
    """
    case = standard_cases()[2]
    sampler, target, x = PathAuxiliary(adaptive=True), case.target, jnp.asarray(case.start)
    chain = Chain(x, target.init(x), sampler.init_state(jnp.zeros(2, jnp.uint32), x.shape))
    batch_x, batch_state = (
        x[None].astype(jnp.int32),
        sampler.make_init_state(jax.random.key(0), 1, x.shape),
    )
    kernel = jax.jit(sampler.kernel)
    step = jax.jit(
        lambda rng, x, state: sampler.step(
            TargetModel(), rng, x, target, state, jnp.asarray(target.mask)
        )
    )
    for number in range(50):
        rng = jax.random.key(number)
        chain, _ = kernel(keys.fold(keys.from_rng(rng), 0), target, chain)
        batch_x, batch_state, _ = step(rng, batch_x, batch_state)
        np.testing.assert_array_equal(chain.x, batch_x[0])
        np.testing.assert_allclose(chain.state.radius, batch_state.radius[0], rtol=1e-5)


def test_colours_are_shared_by_no_two_coupled_sites_and_few():
    """Of random graphs, and the two of a machine whose layers follow each other."""
    rng = np.random.default_rng(0)
    machine = [(i, 6 + j) for i in range(6) for j in range(3)]
    graphs = [rng.integers(0, 9, (12, 2)) for _ in range(5)]
    for edges in (machine, *(one[one[:, 0] < one[:, 1]] for one in graphs)):
        case = quadratic_case(np.zeros(9), edges, np.ones(len(edges)))
        colours = np.asarray(greedy_colours(jnp.zeros(9, jnp.int32), case.target))
        first, second = np.array(edges).T
        assert (colours[first] != colours[second]).all()
        degrees = np.bincount(np.ravel(edges), minlength=9)
        assert (colours <= degrees).all()
        assert edges is not machine or colours.max() == 1


def test_colours_that_are_given_are_used():
    """Two of a ring, which count by their order, not by their size."""
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    case = quadratic_case(rng.normal(size=4), edges, rng.normal(size=4))
    sampler = build_method({"name": "block_gibbs", "colours": [9, 4, 9, 4]}).sampler
    _, colours = sampler.init_state(None, (6,))
    assert colours.tolist() == [1, 0, 1, 0, 0, 0]
    check_case(sampler, case, **QUICK)
