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

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.batching import chain_max, chain_mean
from sl_discs.errors import InputError
from sl_discs.samplers.adaptation import adapted, check_adaptation
from sl_discs.samplers.balancing import BALANCING, check_balancing
from sl_discs.samplers.base import Info, Sampler, accept_or_keep
from sl_discs.samplers.draws import floored_logits


class DMALAState(NamedTuple):
    """Steps done, log-likelihood calls (4 per step, as in DISCS), expected number of flips n."""

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]
    expected_flips: Float[Array, ""]


def log_probability(logits: Float[Array, "N"], flips: Bool[Array, "N"]) -> Float[Array, ""]:
    """Log-probability of flipping exactly these sites, each with probability sigmoid(logit)."""
    return -jnp.sum(jnp.log(1 + jnp.exp(jnp.where(flips, -logits, logits))))


def _log_chain_mean(value: Float[Array, ""]) -> Float[Array, ""]:
    """log of the mean of exp(value) over the chains of an instance."""
    top = chain_max(value)
    return top + jnp.log(chain_mean(jnp.exp(value - top)))


@dataclasses.dataclass(frozen=True)
class DMALA(Sampler):
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

    def kernel(self, key, model, params, x, field, state, mask):
        """Flips each site independently, and applies the Metropolis-Hastings test with the reverse flips from y."""
        sites, balance = model.sites, BALANCING[self.balancing_fn_type]
        balanced = balance(model.gains(params, x, field))
        logits = self._logits(sites.total(x, balanced), state, mask)
        flips = keys.uniforms(keys.fold(key, 0), x.shape) < jax.nn.sigmoid(logits)
        move = sites.choose(keys.fold(key, 2), x, balanced, flips)
        y, field_y = model.flip(params, x, field, move)
        if self.adjusted:
            balanced_y = balance(model.gains(params, y, field_y))
            logits_y = self._logits(sites.total(y, balanced_y), state, mask)
            log_back = log_probability(logits_y, flips) + sites.log_chance(y, x, balanced_y)
            log_there = log_probability(logits, flips) + sites.log_chance(x, y, balanced)
            log_ratio = model.change(params, x, field, move, field_y) + log_back - log_there
            acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))
        else:
            acceptance = jnp.float32(1)
        uniform = keys.uniforms(keys.fold(key, 1))
        accepted = uniform < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0)
        state = DMALAState(
            state.steps + 1,
            state.num_ll_calls + self.calls_a_step,
            self._next_expected_flips(state, acceptance, mask),
        )
        return x, field, state, Info(acceptance, hops)

    def _logits(self, balanced, state, mask) -> Float[Array, "N"]:
        """a_i from g_i; -inf outside the mask."""
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
