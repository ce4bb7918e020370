"""Small Potts models: targets on sites of several values."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sl_discs.models.functions import GradientModel, ValueAndGrad
from sl_discs.models.model import Categories, Target
from sl_discs.testing.conformance import Case


class PottsParams(NamedTuple):
    """h and K, which is symmetric with zero diagonal."""

    linear: Any  # [N, q]
    couplings: Any  # [N, N]


@dataclasses.dataclass(frozen=True)
class PottsModel(GradientModel):
    """f(x) = sum_{i<j} K_ij [x_i = x_j] + sum_i h_i(x_i), whose gradient by one-hot vectors gives
    exact gains.
    """

    num_sites: int
    sites: Categories

    def init(self, params, x):
        def value(z):
            return jnp.sum(params.linear * z) + jnp.sum(params.couplings * (z @ z.T)) / 2

        return ValueAndGrad(*jax.value_and_grad(value)(jax.nn.one_hot(x, self.sites.num_values)))


_EDGES = np.array([(0, 1), (1, 2), (0, 2), (2, 3)])


def potts_case(
    name: str,
    num_values: int,
    num_sites: int,
    weights: tuple[float, ...] = (),
    *,
    temperature: float = 1.0,
    tilted: bool = False,
    mask: tuple[bool, ...] | None = None,
) -> Case:
    """Returns a Potts model on some of the edges of a triangle with a tail, with a field of fixed
    numbers.

    Args:
      name: of the case.
      num_values: of each site.
      num_sites: up to four.
      weights: couplings of the first edges.
      temperature: of the target.
      tilted: whether it has a tilt.
      mask: sites that may change; None: all.
    """
    couplings = np.zeros((num_sites, num_sites), np.float32)
    for (i, j), weight in zip(_EDGES, weights, strict=False):
        couplings[i, j] = couplings[j, i] = weight
    field = (
        np.random.default_rng(0).normal(size=(2, num_sites, num_values)).astype(np.float32) * 0.7
    )
    params = PottsParams(*map(jnp.asarray, (field[0], couplings)))
    where = np.ones(num_sites, bool) if mask is None else np.array(mask)
    tilt = jnp.asarray(field[1]) if tilted else None
    target = Target(
        PottsModel(num_sites, Categories(num_values)), params, jnp.float32(temperature), where, tilt
    )
    return Case(name, target, np.where(where, 0, num_values - 1).astype(np.int8))
