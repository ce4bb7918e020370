"""Small Potts models, with several values for each site, that a sampler must leave invariant."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sl_discs.models.coupling import dense_coupling, sparse_coupling
from sl_discs.models.potts import PottsModel, PottsParams
from sl_discs.models.sites import Categories
from sl_discs.models.tilted import TiltedParams
from sl_discs.testing.cases import Case

_EDGES = np.array([(0, 1), (1, 2), (0, 2), (2, 3)])


def potts_case(
    name: str,
    values: tuple[int, ...],
    weights: tuple[float, ...],
    *,
    temperature: float = 1.0,
    tilted: bool = False,
    mask: tuple[bool, ...] | None = None,
    sparse: bool = False,
) -> Case:
    """A Potts model on some of the edges of a triangle with a tail, with a field of fixed numbers.

    Args:
      name: of the case.
      values: number of values of each of up to four sites.
      weights: couplings of the first edges.
      temperature: of the target.
      tilted: whether it has a tilt.
      mask: sites that may change; None: all.
      sparse: whether couplings are stored as lists.
    """
    size, q = len(values), max(values)
    edges, weight = _EDGES[: len(weights)], np.array(weights)
    coupling = sparse_coupling(edges, weight, size, 3) if sparse else dense_coupling(edges, weight, size)
    field = np.random.default_rng(0).normal(size=(2, size, q)).astype(np.float32) * 0.7
    params = jax.tree.map(jnp.asarray, PottsParams(field[0], coupling, np.float32(0.8)))
    target = TiltedParams(params, jnp.float32(temperature), jnp.asarray(field[1]) if tilted else None)
    where = np.ones(size, bool) if mask is None else np.array(mask)
    start = np.where(where, 0, np.array(values) - 1).astype(np.int8)
    return Case(name, PottsModel(Categories(values)), target, where, start)


def categorical_cases() -> list[Case]:
    """Four targets: of equal and different numbers of values, dense and sparse, with and without tilt and mask."""
    return [
        potts_case("potts", (3, 3, 3), (1.0, -2.0, 1.0)),
        potts_case("potts, tilted, different values", (2, 4, 3), (-1.0, 1.0), temperature=0.7, tilted=True),
        potts_case(
            "potts, real couplings, cold, tilted, masked", (3, 2, 3, 2), (0.7, -0.4, 1.3, 0.6), temperature=0.5,
            tilted=True, mask=(True, True, False, True), sparse=True,
        ),
        potts_case("product of categoricals", (4, 2, 3), (), temperature=2.0),
    ]  # fmt: skip
