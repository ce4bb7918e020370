"""Samplers on sites of several values leave their targets invariant, a Potts model and a product of
categoricals.

Seeds are fixed; a correct sampler fails a single test with probability 1e-6.
"""

import dataclasses

import jax.numpy as jnp
import pytest
from marks import slow_except
from several_values import potts_case
from single_steps import SAMPLERS, USUAL

from sl_discs.models.model import Categories, Sites
from sl_discs.samplers.path import PathAuxiliary
from sl_discs.testing import ConformanceError, check_case

POTTS = potts_case(
    "potts",
    3,
    4,
    (0.7, -0.4, 1.3, 0.6),
    temperature=0.5,
    tilted=True,
    mask=(True, True, False, True),
)
PRODUCT = potts_case("product of categoricals", 4, 3, temperature=2.0)
TAKING_SEVERAL = [
    label for label, sampler in SAMPLERS.items() if sampler.several_values and sampler.exact
]


@pytest.mark.parametrize(
    "case", [POTTS, pytest.param(PRODUCT, marks=pytest.mark.slow)], ids=["potts", "product"]
)
@pytest.mark.parametrize("name", slow_except(TAKING_SEVERAL, set(USUAL.values()) - {USUAL["gwg"]}))
def test_the_target_is_invariant(name, case):
    """Those that adapt have stopped by then."""
    check_case(SAMPLERS[name], case, batches=2**12, warm_up=50)


@dataclasses.dataclass(frozen=True)
class Careless(Categories):
    """Forgets how probable the alternatives that it draws are."""

    def log_chance(self, x, y, logits):
        return 0.0


def test_forgotten_chances_of_alternatives_are_found():
    model = dataclasses.replace(POTTS.model, sites=Careless(3))
    case = POTTS._replace(target=dataclasses.replace(POTTS.target, model=model))
    with pytest.raises(ConformanceError, match="not invariant"):
        check_case(PathAuxiliary(num_flips=2), case, batches=2**13)


def test_spins_of_two_values_are_those_of_binary_sites_up_to_a_rotation():
    """The distance of the values, and the norm, on which the laws of localization depend."""
    zero, one = jnp.zeros(2, jnp.int8), jnp.array([1, 0], jnp.int8)
    for sites in (Categories(2), Sites()):
        first, second = sites.spins(zero), sites.spins(one)
        assert float(jnp.sum((first - second) ** 2)) == pytest.approx(4, rel=1e-6)
        assert float(jnp.sum(first**2)) == pytest.approx(2, rel=1e-6)
