"""Discrete Langevin proposals (Zhang, Liu and Liu 2022): every site flips independently.

Site i flips with probability sigmoid(a_i), a_i = log_tau + g_i with the balanced gain g_i. Two step sizes exist:

- `fixed`: log_tau = -1/(2 step_size).
- `normalized` (DISCS's choice for combinatorial problems): log_tau = log n - log sum_i exp(g_i), recomputed at the
  proposal for the reverse, so that about n sites flip.

A site of several values stays where it is with weight 1 and takes alternative v with weight exp(log_tau + g_iv): it
changes with probability sigmoid(a_i), where exp(g_i) is the sum of exp(g_iv), to an alternative drawn by exp(g_iv).
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sl_discs.batching import chain_max, chain_mean
from sl_discs.errors import InputError
from sl_discs.samplers.adaptation import adapted, check_adaptation
from sl_discs.samplers.balancing import BALANCING, check_balancing
from sl_discs.samplers.draws import floored_logits
from sl_discs.samplers.independent import IndependentFlips


class DMALAState(NamedTuple):
    """Steps done, log-likelihood calls (4 per step, as in DISCS), expected number of flips n."""

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]
    expected_flips: Float[Array, ""]


def _log_chain_mean(value: Float[Array, ""]) -> Float[Array, ""]:
    """log of the mean of exp(value) over the chains of an instance."""
    top = chain_max(value)
    return top + jnp.log(chain_mean(jnp.exp(value - top)))


@dataclasses.dataclass(frozen=True)
class DMALA(IndependentFlips):
    """Discrete Metropolis-adjusted Langevin; `adjusted=False` is DULA.

    Attributes:
      scaling: `normalized` or `fixed`, see the module.
      expected_flips: n of the normalized form, or its initial value with adaptation.
      step_size: of the fixed form.
      adaptive: whether n adapts to the acceptance (n += 3 gain (acceptance - target), at least 1).
      target_acceptance_rate: target of the adaptation of n.
      adapt_until: step at which adaptation ends; None: never.
      shared_scale: DISCS's form of the normalized step, from the mean over the chains of an instance. It breaks
        detailed balance (total variation 0.01 to 0.03 on small cases) and serves to match published runs.
      adjusted: whether to apply the Metropolis-Hastings test.
      balancing_fn_type: SQRT, RATIO, MAX or MIN.
      num_chains: chains per batch in DISCS's calling convention.
    """

    adapts: ClassVar[str | None] = "expected_flips"
    calls_a_step: ClassVar[int] = 4
    several_values: ClassVar[bool] = True

    scaling: str = "normalized"
    expected_flips: float = 3.0
    step_size: float = 0.2
    adaptive: bool = False
    target_acceptance_rate: float = 0.574
    adapt_until: int | None = None
    shared_scale: bool = False
    adjusted: bool = True
    balancing_fn_type: str = "SQRT"
    num_chains: int = 1

    def __post_init__(self):
        if self.scaling not in ("normalized", "fixed"):
            raise InputError(f"sampler_config.scaling is {self.scaling!r}; known: normalized, fixed")
        for name in ("expected_flips", "step_size"):
            if not 0 < getattr(self, name) <= 1e30:
                raise InputError(f"sampler_config.{name} is {getattr(self, name)}; expected a number in (0, 1e30]")
        check_adaptation(self.target_acceptance_rate, self.adapt_until)
        check_balancing(self.balancing_fn_type)

    @property
    def couples_chains(self):
        """Whether they share the step size."""
        return self.shared_scale

    def init_state(self, num_sites):
        """The initial state, with n = `expected_flips`."""
        return DMALAState(jnp.int32(0), jnp.int32(0), jnp.float32(self.expected_flips))

    def balanced(self, gains):
        """g_i, or g_iv of each alternative."""
        return BALANCING[self.balancing_fn_type](gains)

    def next_state(self, state, acceptance, mask):
        """Counts the step, and adapts n."""
        return DMALAState(
            state.steps + 1,
            state.num_ll_calls + self.calls_a_step,
            self._next_expected_flips(state, acceptance, mask),
        )

    def logits(self, balanced, state, mask):
        """a_i; -inf outside the mask."""
        if self.scaling == "fixed":
            return jnp.where(mask, balanced - 1 / (2 * self.step_size), -jnp.inf)
        shape = floored_logits(balanced, mask)
        log_sum = jnp.log(jnp.sum(jnp.exp(shape)))
        if self.shared_scale:
            top = jnp.max(jnp.where(mask, balanced, -jnp.inf))
            log_sum = _log_chain_mean(top + log_sum) - top
        return shape + (jnp.log(state.expected_flips) - log_sum)

    def _next_expected_flips(self, state, acceptance, mask):
        if not self.adaptive:
            return state.expected_flips
        scale = adapted(
            state.expected_flips / 3,
            acceptance,
            target=self.target_acceptance_rate,
            steps=state.steps,
            adapt_until=self.adapt_until,
            shared=self.shared_scale,
        )
        return jnp.clip(3 * scale, 1.0, jnp.sum(mask, dtype=jnp.float32))
