"""Regularized Langevin dynamics (Feng and Yang, Regularized Langevin dynamics for combinatorial optimization, ICML
2025).

Site i flips with probability sigmoid(g_i - g_(k)), where g_(k) is the k-th largest of the balanced gains g_i =
d_i/2: it takes the place of the Langevin proposal's step size, so that about k sites are likely to flip in every
state, also in a local optimum. This is the form of the k-th value in the authors' code. They apply no test; with the
Metropolis-Hastings test, which is the default here, the sampler is exact.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from sl_discs.checks import whole
from sl_discs.samplers.balancing import BALANCING, check_balancing
from sl_discs.samplers.independent import IndependentFlips, bounded


@dataclasses.dataclass(frozen=True)
class RLSA(IndependentFlips):
    """Langevin proposals that are regularized to about k flips.

    Attributes:
      num_chains: chains per batch in DISCS's calling convention.
      num_flips: k; if there are fewer sites, their number.
      adjusted: whether to apply the Metropolis-Hastings test; without it, this is the paper's optimiser.
      balancing_fn_type: SQRT, RATIO, MAX or MIN.
    """

    calls_a_step: ClassVar[int] = 4

    num_chains: int = 1
    num_flips: int = 3
    adjusted: bool = True
    balancing_fn_type: str = "SQRT"

    def __post_init__(self):
        whole("sampler_config.num_flips", self.num_flips, 1, bits=31)
        check_balancing(self.balancing_fn_type)

    def balanced(self, gains):
        """g_i."""
        return BALANCING[self.balancing_fn_type](gains)

    def logits(self, balanced, state, mask):
        """g_i - g_(k)."""
        most = min(self.num_flips, balanced.shape[0])
        largest, _ = jax.lax.top_k(jnp.where(mask, balanced, -jnp.inf), most)
        threshold = largest[jnp.minimum(most, jnp.sum(mask)) - 1]
        return bounded(balanced - threshold, mask)
