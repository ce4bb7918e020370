"""Discrete Langevin proposals (Zhang, Liu and Liu 2022): every site flips independently.

Site i flips with probability sigmoid(a_i), a_i = log_tau + g_i with the balanced gain g_i. Two step sizes exist:

- `fixed`: log_tau = -1/(2 step_size); N uniform numbers a step.
- `normalized` (DISCS's choice for combinatorial problems): log_tau = log n - log sum_i exp(g_i), recomputed at the
  proposal for the reverse, so that about n sites flip. Such sparse flips are drawn as a Poisson process: with
  rates lambda_i = log(1 + e^{a_i}), a site is hit at least once with probability sigmoid(a_i), and the whole set S
  has log-probability sum_{S} a_i - sum_i lambda_i. That takes about n draws instead of N.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.batching import chain_max, chain_mean
from sl_discs.errors import InputError
from sl_discs.keys import Key
from sl_discs.models.base import Flips
from sl_discs.reductions import sum_sites
from sl_discs.samplers.adaptation import adapted, check_adaptation
from sl_discs.samplers.balancing import BALANCING, check_balancing
from sl_discs.samplers.base import Info, Sampler, accept_or_keep
from sl_discs.samplers.draws import draw_sites, floored_logits, in_blocks, sites_of_mask


class DMALAState(NamedTuple):
    """Steps done, log-likelihood calls (DISCS counts 4 a step), expected number of flips n."""

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]
    expected_flips: Float[Array, ""]


class FlipRates(NamedTuple):
    """a_i, and lambda_i = log(1 + exp(a_i)); -inf and 0 outside the mask."""

    logits: Float[Array, "N"]
    rates: Float[Array, "N"]


def fixed_rates(gains: Float[Array, "N"], mask: Bool[Array, "N"], step_size: float) -> FlipRates:
    """a_i = g_i - 1/(2 step_size) for balanced gains g."""
    logits = jnp.where(mask, gains - 1 / (2 * step_size), -jnp.inf)
    return FlipRates(logits, jax.nn.softplus(logits))


def normalized_rates(gains: Float[Array, "N"], mask: Bool[Array, "N"], expected_flips: Float[Array, ""]) -> FlipRates:
    """a_i = log n - log sum_j exp(g_j) + g_i for balanced gains g, in log space."""
    floored = floored_logits(gains, mask)
    weights = jnp.where(mask, jnp.exp(floored), 0.0)
    scale = expected_flips / sum_sites(weights)
    return FlipRates(jnp.where(mask, floored + jnp.log(scale), -jnp.inf), jnp.log1p(weights * scale))


def shared_rates(gains: Float[Array, "N"], mask: Bool[Array, "N"], expected_flips: Float[Array, ""]) -> FlipRates:
    """DISCS's form of `normalized_rates`: the mean of the sum over the chains of an instance, not the chain's own."""
    level = jax.nn.logsumexp(jnp.where(mask, gains, -jnp.inf))
    logits = jnp.where(mask, gains + jnp.log(expected_flips) - _log_chain_mean(level), -jnp.inf)
    return FlipRates(logits, jax.nn.softplus(logits))


def _log_chain_mean(value: Float[Array, ""]) -> Float[Array, ""]:
    """log of the mean of exp(value) over the chains of an instance."""
    top = chain_max(value)
    return top + jnp.log(chain_mean(jnp.exp(value - top)))


def poisson_count(key: Key, rate: Float[Array, ""], limit: int) -> Int[Array, ""]:
    """A Poisson number by counting exponential waiting times within `rate`; at most `limit`."""

    def waiting(carry):
        elapsed, count = carry
        return (elapsed <= rate) & (count < limit)

    def wait(carry):
        elapsed, count = carry
        uniform = keys.uniforms(keys.fold(key, count))
        return elapsed - jnp.log1p(-uniform), count + 1

    elapsed, count = jax.lax.while_loop(waiting, wait, wait((jnp.float32(0), jnp.int32(0))))
    return jnp.where(elapsed > rate, count - 1, count)


def poisson_limit(mean: float) -> int:
    """A number that a Poisson variable of this mean exceeds with probability below 1e-15."""
    return math.ceil(mean + 10 * math.sqrt(mean) + 20)


@dataclasses.dataclass(frozen=True)
class DMALA(Sampler):
    """Discrete Metropolis-adjusted Langevin; `adjusted=False` is DULA.

    Attributes:
      scaling: `normalized` or `fixed`, see the module.
      expected_flips: n of the normalized form, or where its adaptation starts.
      step_size: of the fixed form.
      adaptive: whether n follows the acceptance (n += 3 gain (acceptance - target), at least 1).
      target_acceptance_rate: what n aims at.
      adapt_until: step at which adaptation has died away; None: never.
      shared_scale: DISCS's form of the normalized step, from the mean over the chains of an instance. It breaks
        detailed balance (total variation 0.01 to 0.03 on small cases) and is there to match published runs.
      adjusted: whether the Metropolis-Hastings test is made.
      balancing_fn_type: SQRT, RATIO, MAX or MIN.
      num_chains: chains a batch in DISCS's calling convention.
    """

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
            raise InputError(f"sampler.scaling is {self.scaling!r}; known: normalized, fixed")
        for name in ("expected_flips", "step_size"):
            if not getattr(self, name) > 0:
                raise InputError(f"sampler.{name} is {getattr(self, name)}; expected a positive number")
        check_adaptation(self.target_acceptance_rate, self.adapt_until)
        check_balancing(self.balancing_fn_type)

    @property
    def couples_chains(self):
        """Where they share the step size."""
        return self.shared_scale

    def init_state(self, num_sites):
        """n at `expected_flips`."""
        return DMALAState(jnp.int32(0), jnp.int32(0), jnp.float32(self.expected_flips))

    def kernel(self, key, model, params, x, field, state, mask):
        """Flip each site independently, and the Metropolis-Hastings test with the flips back from y."""
        rates = self._rates(model.gains(params, x, field), state, mask)
        flips = self._propose(keys.fold(key, 0), rates)
        y, field_y = model.flip(params, x, field, flips)
        if self.adjusted:
            rates_y = self._rates(model.gains(params, y, field_y), state, mask)
            change = model.change(params, x, field, flips, field_y)
            log_ratio = change + _log_prob(rates_y, flips) - _log_prob(rates, flips)
            acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))
        else:
            acceptance = jnp.float32(1)
        uniform = keys.uniforms(keys.fold(key, 1))
        accepted = uniform < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(flips.mask, dtype=jnp.float32), 0.0)
        state = DMALAState(
            state.steps + 1, state.num_ll_calls + 4, self._next_expected_flips(state, acceptance, mask)
        )
        return x, field, state, Info(acceptance, hops)

    def _rates(self, gains, state, mask) -> FlipRates:
        balanced = BALANCING[self.balancing_fn_type](gains)
        if self.scaling == "fixed":
            return fixed_rates(balanced, mask, self.step_size)
        rates = shared_rates if self.shared_scale else normalized_rates
        return rates(balanced, mask, state.expected_flips)

    def _propose(self, key, rates: FlipRates) -> Flips:
        num_sites = rates.logits.shape[0]
        if self.scaling == "fixed":
            uniforms = keys.uniforms(key, (num_sites,))
            return sites_of_mask(uniforms < jax.nn.sigmoid(rates.logits))
        weights = in_blocks(rates.rates)
        most = num_sites if self.adaptive else self.expected_flips * (self.num_chains if self.shared_scale else 1)
        limit = poisson_limit(most)
        count = poisson_count(keys.fold(key, 0), weights.total(), limit)
        key_draws = keys.fold(key, 1)
        return draw_sites(key_draws, weights, num_sites, count, replacement=True, max_length=limit).flips

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


def _log_prob(rates: FlipRates, flips: Flips) -> Float[Array, ""]:
    """Log-probability of flipping exactly these sites: sum over them of a_i minus sum over all of log(1 + e^a)."""
    return sum_sites(jnp.where(flips.mask, rates.logits, 0.0) - rates.rates)
