"""Samplers on sites of several values: single steps are the oracle's, and whole runs leave the target invariant.

Seeds are fixed; a correct sampler fails a single test with probability 1e-6.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from several_values import categorical_cases, kernel_of, moved, potts_case
from single_steps import Disagreement, check_steps, play_from_every_state

from sl_discs.engines.registry import get_engine
from sl_discs.errors import InputError
from sl_discs.models.sites import Categories, TwoValues
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis
from sl_discs.testing import ConformanceError, check_case, enumerate_law, oracle

FALSE_ALARM = 1e-6
CASES = {case.name: case for case in categorical_cases()}
SAMPLERS = {
    "gibbs": Gibbs(),
    "metropolis": Metropolis(),
    "gwg": GWG(),
    "gwg, 2 flips": GWG(num_flips=2),
    "path_auxiliary, 2 flips": PathAuxiliary(num_flips=2),
    "path_auxiliary, RATIO": PathAuxiliary(num_flips=2, balancing_fn_type="RATIO"),
    "path_auxiliary, MAX": PathAuxiliary(num_flips=2, balancing_fn_type="MAX"),
    "dmala": DMALA(expected_flips=1.7),
    "dmala, fixed": DMALA(scaling="fixed", step_size=0.5),
    "dmala, unadjusted": DMALA(adjusted=False),
}
INVARIANT = {
    "gibbs, sequential": (Gibbs(scan="sequential"), {}),
    "metropolis, sequential": (Metropolis(scan="sequential"), {}),
    "gwg, adapted": (GWG(adaptive=True, adapt_until=30), {"warm_up": 30}),
    "path_auxiliary, adapted": (PathAuxiliary(adaptive=True, adapt_until=30), {"warm_up": 30}),
    "dmala, adapted": (DMALA(adaptive=True, adapt_until=30), {"warm_up": 30}),
}


def check_step(sampler, case, kernel=kernel_of, copies=1024):
    """One step from every state; the tilt is the observation of a level with factor 1."""
    params = jax.tree.map(lambda leaf: leaf[None], case.target.params)
    tilt = case.target.tilt
    tilts = None if tilt is None else np.asarray(tilt)[None]
    temperature = float(case.target.temperature)
    [steps] = play_from_every_state(
        get_engine("reference"), sampler, case.model, params, case.mask[None], tilts, temperature, copies=copies
    )
    # With every site free, the law is the target at each state that the mask allows chains to start in.
    law = enumerate_law(case.target.masked(np.ones_like(case.mask)), case.start)
    expected = kernel(sampler, np.log(law.probabilities), case.model.sites.values, case.mask)
    check_steps(steps, [expected], FALSE_ALARM)


FAST = {
    ("path_auxiliary, 2 flips", "potts, real couplings, cold, tilted, masked"),
    ("dmala", "potts, tilted, different values"),
}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, marks=[] if (name, case) in FAST else pytest.mark.slow)
        for name in SAMPLERS
        for case in CASES
    ],
)
def test_a_single_step_is_that_of_the_oracle(name, case):
    check_step(SAMPLERS[name], CASES[case])


def test_the_oracle_of_another_sampler_is_told_apart():
    def barker(sampler, *target):
        return kernel_of(Metropolis(), *target)

    with pytest.raises(Disagreement):
        check_step(Gibbs(), CASES["potts"], barker)


@pytest.mark.parametrize("name", SAMPLERS)
def test_for_two_values_the_oracles_agree(name):
    """Two routes: pairs of sites and values, and flips."""
    sampler, mask = SAMPLERS[name], np.array([True, True, False, True])
    log_density = np.random.default_rng(1).normal(size=16)
    one = kernel_of(sampler, log_density, (2, 2, 2, 2), mask)
    other = oracle.kernel_of(sampler, log_density, mask)
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*INVARIANT, *SAMPLERS])
@pytest.mark.parametrize("case", CASES)
def test_the_target_is_invariant(name, case):
    sampler, options = INVARIANT.get(name) or (SAMPLERS[name], {})
    if not getattr(sampler, "adjusted", True):
        pytest.skip("it leaves another law invariant")
    check_case(sampler, CASES[case], batches=2**14, **options)


@pytest.mark.parametrize("name", ["gibbs, sequential"])
def test_an_example_of_the_slow_tests(name):
    sampler, options = INVARIANT[name]
    check_case(sampler, CASES["potts, real couplings, cold, tilted, masked"], batches=2**13, **options)


@dataclasses.dataclass(frozen=True)
class Careless(Categories):
    """Forgets how probable the alternatives that it draws are."""

    def log_chance(self, x, y, logits):
        return 0.0


def test_forgotten_chances_of_alternatives_are_found():
    case = CASES["potts, tilted, different values"]
    model = dataclasses.replace(case.model, sites=Careless(case.model.sites.values))
    case = case._replace(target=dataclasses.replace(case.target, model=model))
    with pytest.raises(ConformanceError, match="not invariant"):
        check_case(PathAuxiliary(num_flips=2), case, batches=2**13)


@pytest.mark.parametrize("values", [(3, 1), (2, 128), ()])
def test_a_site_needs_two_values_and_at_most_what_a_byte_holds(values):
    with pytest.raises(InputError, match="expected 2 to 127 values for each site"):
        Categories(values)


def test_spins_of_two_values_are_those_of_binary_sites_up_to_a_rotation():
    """The distance of the values, and the norm, on which the laws of localization depend."""
    one, other = Categories((2, 2)), TwoValues()
    zero, three = jnp.zeros(2, jnp.int8), jnp.array([1, 0], jnp.int8)
    for sites in (one, other):
        first, second = sites.spins(zero), sites.spins(three)
        assert float(jnp.sum((first - second) ** 2)) == pytest.approx(4, rel=1e-6)
        assert float(jnp.sum(first**2)) == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_field_gains_and_change_are_differences_of_values(case):
    model, params = case.model, case.target.params
    law = enumerate_law(case.target.masked(np.ones_like(case.mask)), case.start)
    counts = model.sites.values

    @jax.jit
    def everything(x, y):
        field = model.init(params, x)
        after = model.update(params, x, field, y)
        value = model.value(params, x, field)
        return (
            value,
            model.gains(params, x, field),
            after,
            model.init(params, y),
            model.change(params, x, field, y, after),
        )

    rng = np.random.default_rng(0)
    values = [float(everything(x, x)[0]) for x in law.states]
    for first, second in rng.integers(len(law.states), size=(20, 2)):
        x, y = law.states[first], law.states[second]
        _, gains, carried, fresh, change = everything(x, y)
        np.testing.assert_allclose(carried.neighbours, fresh.neighbours, atol=1e-5)
        assert float(change) == pytest.approx(values[second] - values[first], abs=1e-5)
        for site in range(len(counts)):
            for value in range(counts[site]):
                z = moved(x, {site: value}, counts)
                assert float(gains[site, value]) == pytest.approx(values[z] - values[first], abs=1e-5)


def test_the_value_of_a_potts_model_is_its_definition():
    case = potts_case("triangle", (3, 3, 3), (1.0, -2.0, 1.0))
    linear = np.asarray(case.target.params.linear, np.float64)
    for x in enumerate_law(case.target, case.start).states:
        pairs = (x[0] == x[1]) * 1.0 + (x[1] == x[2]) * -2.0 + (x[0] == x[2]) * 1.0
        expected = 0.8 * pairs + linear[np.arange(3), x].sum()
        field = case.model.init(case.target.params, jnp.asarray(x))
        assert float(case.model.value(case.target.params, jnp.asarray(x), field)) == pytest.approx(expected, abs=1e-5)
