"""Discrete Langevin Monte Carlo (Sun, Dai, Dai, Zhou and Schuurmans, Discrete Langevin samplers via Wasserstein
gradient flow, AISTATS 2023), with the two solvers of DISCS.

The flow lets site i jump at the rate g(exp(d_i)) for a balancing function g. With the others held fixed the site is a
Markov chain of two states, whose stationary probability of the other value is nu_i = sigmoid(d_i). After the time
tau it has flipped with probability

    p_i = nu_i (1 - exp(-r_i/nu_i)),    r_i = tau g(exp(d_i)),

exactly (`interpolate`), or min(r_i, nu_i) to first order in tau (`euler_forward`). All sites flip at once with these
probabilities, and a Metropolis-Hastings test follows. Unlike those of dmala, the p_i never exceed nu_i: for large
tau each site is resampled from its conditional distribution.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sl_discs.errors import InputError
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.independent import bounded

INTERPOLATE, EULER = SOLVERS = ("interpolate", "euler_forward")


def jump_logits(log_rates: Float[Array, "N"], gains: Float[Array, "N"], solver: str) -> Float[Array, "N"]:
    """log p/(1 - p) of the jump probabilities p, without underflow or cancellation.

    Args:
      log_rates: log r.
      gains: d.
      solver: one of `SOLVERS`.
    """
    log_other, log_same = jax.nn.log_sigmoid(gains), jax.nn.log_sigmoid(-gains)
    if solver == EULER:
        log_jump = jnp.minimum(log_rates, log_other)
        below = jnp.minimum(log_jump, -1e-6)
        return log_jump - jnp.where(log_rates < log_other, jnp.log1p(-jnp.exp(below)), log_same)
    log_exponent = jnp.minimum(log_rates - log_other, 80.0)
    exponent = jnp.exp(log_exponent)
    log_relaxed = jnp.where(log_exponent < -15, log_exponent, jnp.log(-jnp.expm1(-exponent)))
    return log_other + log_relaxed - jnp.logaddexp(log_same, log_other - exponent)


@dataclasses.dataclass(frozen=True)
class DLMC(DMALA):
    """Discrete Langevin Monte Carlo; log tau is chosen and adapted as log_tau of `DMALA`, whose fields it has.

    Attributes:
      solver: `interpolate` or `euler_forward`, see the module.
    """

    several_values: ClassVar[bool] = False

    solver: str = INTERPOLATE

    def __post_init__(self):
        super().__post_init__()
        if self.solver not in SOLVERS:
            raise InputError(f"sampler_config.solver is {self.solver!r}; known: {', '.join(SOLVERS)}")

    def balanced(self, gains):
        """The gains, which the jump probabilities need besides the balanced ones."""
        return gains

    def logits(self, balanced, state, mask):
        """The logits of the jump probabilities."""
        log_rates = super().logits(super().balanced(balanced), state, mask)
        return bounded(jump_logits(log_rates, balanced, self.solver), mask)
