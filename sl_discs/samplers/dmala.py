"""Discrete Langevin proposals (Zhang, Liu and Liu 2022): every site flips independently.

Site i flips with probability sigmoid(a_i), a_i = log_tau + g_i with the balanced gain g_i. Two step sizes exist:

- `fixed`: log_tau = -1/(2 step_size); N uniform numbers a step.
- `normalized` (DISCS's choice for combinatorial problems): log_tau = log n - log sum_i exp(g_i), recomputed at the
  proposal for the reverse, so that about n sites flip. Such sparse flips are drawn by weight, about n draws instead
  of N (see `poisson.flips_of_odds`).

A set S of flips has log-probability sum_{S} a_i - sum_i log(1 + e^{a_i}); the second sum is formed as the logarithm
of products, for a logarithm of every site would cost as much as all else.
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
from sl_discs.models.base import Flips, SiteTerm, sum_over_flips
from sl_discs.reductions import max_sites, sum_log1p_sites, sum_sites
from sl_discs.samplers.adaptation import adapted, check_adaptation
from sl_discs.samplers.balancing import BALANCING, check_balancing
from sl_discs.samplers.base import Info, Sampler, accept_or_keep
from sl_discs.samplers.draws import LOWEST_LOGIT, floored_weights, in_blocks, sites_of_mask
from sl_discs.samplers.poisson import flips_of_odds, poisson_limit


class DMALAState(NamedTuple):
    """Steps done, log-likelihood calls (DISCS counts 4 a step), expected number of flips n."""

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]
    expected_flips: Float[Array, ""]


class FlipOdds(NamedTuple):
    """The odds w_i e^c of flipping each site, exp(a_i).

    Attributes:
      weights: w_i; 0 outside the mask.
      log_scale: c.
      log_norm: the sum over sites of log(1 + w_i e^c).
    """

    weights: Float[Array, "N"]
    log_scale: Float[Array, ""]
    log_norm: Float[Array, ""]


def fixed_odds(gains: Float[Array, "N"], mask: Bool[Array, "N"], step_size: float) -> FlipOdds:
    """a_i = g_i - 1/(2 step_size) for balanced gains g, cut off where odds would leave float32."""
    logits = jnp.clip(gains - 1 / (2 * step_size), LOWEST_LOGIT, -LOWEST_LOGIT)
    log_norm = sum_sites(jnp.where(mask, jax.nn.softplus(logits), 0.0))
    return FlipOdds(jnp.where(mask, jnp.exp(logits), 0.0), jnp.float32(0), log_norm)


def normalized_odds(
    gains: Float[Array, "N"], mask: Bool[Array, "N"], expected_flips: Float[Array, ""], most_flips: float
) -> FlipOdds:
    """a_i = log n - log sum_j exp(g_j) + g_i for balanced gains g; n is at most `most_flips`."""
    weights = floored_weights(gains, mask)
    scale = expected_flips / sum_sites(weights)
    return FlipOdds(weights, jnp.log(scale), sum_log1p_sites(weights, scale, most_flips))


def shared_odds(
    gains: Float[Array, "N"], mask: Bool[Array, "N"], expected_flips: Float[Array, ""], most_flips: float
) -> FlipOdds:
    """DISCS's form of `normalized_odds`: the mean of the sum over the chains of an instance, not the chain's own.

    A chain's own odds then sum to n times the number of chains at most, which `most_flips` has to allow for.
    """
    top = max_sites(jnp.where(mask, gains, -jnp.inf))
    weights = floored_weights(gains, mask)
    level = top + jnp.log(sum_sites(weights))
    log_scale = top + jnp.log(expected_flips) - _log_chain_mean(level)
    return FlipOdds(weights, log_scale, sum_log1p_sites(weights, jnp.exp(log_scale), most_flips))


def _log_chain_mean(value: Float[Array, ""]) -> Float[Array, ""]:
    """log of the mean of exp(value) over the chains of an instance."""
    top = chain_max(value)
    return top + jnp.log(chain_mean(jnp.exp(value - top)))


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

    adapts: ClassVar[str | None] = "expected_flips"
    calls_a_step: ClassVar[int] = 4

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
        """Where they share the step size."""
        return self.shared_scale

    def init_state(self, num_sites):
        """n at `expected_flips`."""
        return DMALAState(jnp.int32(0), jnp.int32(0), jnp.float32(self.expected_flips))

    def kernel(self, key, model, params, x, field, state, mask):
        """Flip each site independently, and the Metropolis-Hastings test with the flips back from y."""
        odds = self._odds(model.gains(params, x, field), state, mask)
        flips = self._propose(keys.fold(key, 0), odds)
        y, field_y = model.flip(params, x, field, flips)
        if self.adjusted:
            odds_y = self._odds(model.gains(params, y, field_y), state, mask)
            change = model.change_in_parts(params, x, field, flips, field_y)
            log_ratio = change.common + _log_ratio(odds, odds_y, flips, change.of_sites)
            acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))
        else:
            acceptance = jnp.float32(1)
        uniform = keys.uniforms(keys.fold(key, 1))
        accepted = uniform < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, flips.count.astype(jnp.float32), 0.0)
        state = DMALAState(
            state.steps + 1,
            state.num_ll_calls + self.calls_a_step,
            self._next_expected_flips(state, acceptance, mask),
        )
        return x, field, state, Info(acceptance, hops)

    def _odds(self, gains, state, mask) -> FlipOdds:
        balanced = BALANCING[self.balancing_fn_type](gains)
        if self.scaling == "fixed":
            return fixed_odds(balanced, mask, self.step_size)
        odds = shared_odds if self.shared_scale else normalized_odds
        return odds(balanced, mask, state.expected_flips, self._most_flips(mask.shape[0]))

    def _propose(self, key, odds: FlipOdds) -> Flips:
        num_sites = odds.weights.shape[0]
        if self.scaling == "fixed":
            uniforms = keys.uniforms(key, (num_sites,))
            return sites_of_mask(uniforms * (1 + odds.weights) < odds.weights)
        most = num_sites if self.adaptive else self._most_flips(num_sites)
        weights, scale = in_blocks(odds.weights), jnp.exp(odds.log_scale)
        return flips_of_odds(key, weights, scale, num_sites, max_points=poisson_limit(most))

    def _most_flips(self, num_sites: int) -> float:
        """A bound on the sum of a chain's odds."""
        most = num_sites if self.adaptive else self.expected_flips
        return most * self.num_chains if self.shared_scale else most

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


def _log_ratio(forward: FlipOdds, backward: FlipOdds, flips: Flips, beside: SiteTerm | None) -> Float[Array, ""]:
    """Log-probability of flipping exactly these sites with the odds backward, less that with the odds forward.

    `beside` is what else each site adds to it.

    Goes through the list of sites: logarithms of all weights would cost more than all else.
    """
    rescaled = backward.log_scale - forward.log_scale

    def ratio(sites):
        return jnp.log(backward.weights[sites]) - jnp.log(forward.weights[sites]) + rescaled

    terms = (ratio,) if beside is None else (ratio, beside)
    return forward.log_norm - backward.log_norm + sum_over_flips(flips, *terms)
