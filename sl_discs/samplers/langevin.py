"""Samplers that flip every site independently: discrete Langevin proposals (`dmala`), and `dlmc`.

Discrete Langevin proposals (Zhang, Liu and Liu 2022): site i flips with probability sigmoid(a_i),
a_i = log_tau + g_i with the balanced gain g_i. Two step sizes exist:

- `fixed`: log_tau = -1/(2 step_size).
- `normalized` (DISCS's choice for combinatorial problems): log_tau = log n - log sum_i exp(g_i),
  recomputed at the proposal for the reverse, so that about n sites flip.

A site of several values stays where it is with weight 1 and takes alternative v with weight
exp(log_tau + g_iv): it changes with probability sigmoid(a_i), where exp(g_i) is the sum of
exp(g_iv), to an alternative drawn by exp(g_iv).
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs.models import keys
from sl_discs.models.batching import chain_max, chain_mean
from sl_discs.samplers.draws import LOWEST_LOGIT, floored_logits
from sl_discs.samplers.sampler import ADAPTIVE, BalancedSampler, Chain, Info, accept_or_keep
from sl_discs.support.checks import one_of
from sl_discs.support.errors import InputError


def log_probability(logits: Float[Array, "N"], flips: Bool[Array, "N"]) -> Float[Array, ""]:
    """Returns the log-probability of flipping exactly these sites, each with probability
    sigmoid(logit).
    """
    return -jnp.sum(jnp.log(1 + jnp.exp(jnp.where(flips, -logits, logits))))


def bounded(logits: Float[Array, "N"], mask: Bool[Array, "N"]) -> Float[Array, "N"]:
    """Returns logits between -80 and 80, whose probabilities are normal numbers in float32; -inf
    outside the mask.
    """
    return jnp.where(mask, jnp.clip(logits, LOWEST_LOGIT, -LOWEST_LOGIT), -jnp.inf)


class DMALAState(NamedTuple):
    """Steps done, and the expected number of flips n."""

    steps: Int[Array, ""]
    expected_flips: Float[Array, ""]


def _log_chain_mean(value: Float[Array, ""]) -> Float[Array, ""]:
    top = chain_max(value)
    return top + jnp.log(chain_mean(jnp.exp(value - top)))


FIXED = {"scaling": "fixed", "step_size": 0.5}


@dataclasses.dataclass(frozen=True)
class DMALA(BalancedSampler):
    """Discrete Metropolis-adjusted Langevin; `adjusted=False` is DULA.

    Attributes:
      scaling: `normalized` or `fixed`, see the module.
      expected_flips: n of the normalized form, or its initial value with adaptation, by which n +=
        3 gain (acceptance - target), at least 1.
      step_size: of the fixed form.
      shared_scale: DISCS's form of the normalized step, from the mean over the chains of an
        instance. It breaks detailed balance (total variation 0.01 to 0.03 on small cases) and
        serves to match published runs.
      adjusted: whether to apply the Metropolis-Hastings test.
    """

    adapts: ClassVar[str | None] = "expected_flips"
    examples: ClassVar = [
        ADAPTIVE,
        {"expected_flips": 1.7},
        FIXED,
        {"adjusted": False},
        FIXED | {"adjusted": False},
    ]

    scaling: str = "normalized"
    expected_flips: float = 3.0
    step_size: float = 0.2
    shared_scale: bool = False
    adjusted: bool = True

    def __post_init__(self):
        one_of("sampler_config.scaling", self.scaling, ("normalized", "fixed"))
        for name in ("expected_flips", "step_size"):
            if not 0 < getattr(self, name) <= 1e30:
                raise InputError(
                    f"sampler_config.{name} is {getattr(self, name)}; expected a number in (0, "
                    "1e30]"
                )
        super().__post_init__()

    @property
    def couples_chains(self):
        return self.shared_scale

    @property
    def exact(self):
        return self.adjusted and not self.couples_chains

    def init_state(self, key, shape):
        return DMALAState(jnp.int32(0), jnp.float32(self.expected_flips))

    def logits(
        self, balanced: Float[Array, "N"], state: DMALAState, mask: Bool[Array, "N"]
    ) -> Float[Array, "N"]:
        """Returns the logits of the sites from the log of the total weight of alternatives; -inf
        outside the mask.
        """
        if self.scaling == "fixed":
            return bounded(balanced - 1 / (2 * self.step_size), mask)
        shape = floored_logits(balanced, mask)
        log_sum = jnp.log(jnp.sum(jnp.exp(shape)))
        if self.shared_scale:
            top = jnp.max(jnp.where(mask, balanced, -jnp.inf))
            log_sum = _log_chain_mean(top + log_sum) - top
        return shape + (jnp.log(state.expected_flips) - log_sum)

    def kernel(self, key, target, chain):
        """Flips each site independently, and applies the Metropolis-Hastings test with the reverse
        flips from y.
        """
        x, field, state = chain
        sites = target.sites
        mask = target.mask
        weights = self.balanced(target.gains(x, field))
        logits = self.logits(sites.total(x, weights), state, mask)
        flips = keys.uniforms(keys.fold(key, 0), x.shape) < jax.nn.sigmoid(logits)
        y = sites.choose(keys.fold(key, 2), x, weights, flips)
        field_y = target.update(x, field, y)
        if self.adjusted:
            weights_y = self.balanced(target.gains(y, field_y))
            logits_y = self.logits(sites.total(y, weights_y), state, mask)
            log_back = log_probability(logits_y, flips) + sites.log_chance(y, x, weights_y)
            log_there = log_probability(logits, flips) + sites.log_chance(x, y, weights)
            log_ratio = target.change(x, field, y, field_y) + log_back - log_there
            acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))
        else:
            acceptance = jnp.float32(1)
        accepted = keys.uniforms(keys.fold(key, 1)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0)
        state = DMALAState(state.steps + 1, self._next_expected_flips(state, acceptance, mask))
        return Chain(x, field, state), Info(acceptance, hops)

    def _next_expected_flips(self, state, acceptance, mask):
        if not self.adaptive:
            return state.expected_flips
        scale = self.adapted(
            state.expected_flips / 3, acceptance, state.steps, shared=self.shared_scale
        )
        return jnp.clip(3 * scale, 1.0, jnp.sum(mask, dtype=jnp.float32))


# Discrete Langevin Monte Carlo (Sun, Dai, Dai, Zhou and Schuurmans, Discrete Langevin samplers via
# Wasserstein gradient flow, AISTATS 2023), with the two solvers of DISCS.
#
# The flow lets site i jump at the rate g(exp(d_i)) for a balancing function g. With the others held
# fixed the site is a Markov chain of two states, whose stationary probability of the other value is
# nu_i = sigmoid(d_i). After the time tau it has flipped with probability
#
#     p_i = nu_i (1 - exp(-r_i/nu_i)),    r_i = tau g(exp(d_i)),
#
# exactly (`interpolate`), or min(r_i, nu_i) to first order in tau (`euler_forward`). All sites flip
# at once with these probabilities, and a Metropolis-Hastings test follows. Unlike those of dmala,
# the p_i never exceed nu_i: for large tau each site is resampled from its conditional distribution.

INTERPOLATE, EULER = SOLVERS = ("interpolate", "euler_forward")


def jump_logits(
    log_rates: Float[Array, "N"], gains: Float[Array, "N"], solver: str
) -> Float[Array, "N"]:
    """Returns log p/(1 - p) of the jump probabilities p, without underflow or cancellation.

    Args:
      log_rates: log r.
      gains: d.
      solver: one of `SOLVERS`.
    """
    log_other = jax.nn.log_sigmoid(gains)
    log_same = jax.nn.log_sigmoid(-gains)
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
    """Discrete Langevin Monte Carlo; log tau is chosen and adapted as log_tau of `DMALA`, whose
    fields it has.

    Attributes:
      solver: `interpolate` or `euler_forward`, see the module.
    """

    several_values: ClassVar[bool] = False
    examples: ClassVar = [ADAPTIVE, {"expected_flips": 1.7, "solver": EULER}, FIXED]

    solver: str = INTERPOLATE

    def __post_init__(self):
        super().__post_init__()
        one_of("sampler_config.solver", self.solver, SOLVERS)

    def balanced(self, gains):
        """Returns the gains, which the jump probabilities need besides the balanced ones."""
        return gains

    def logits(self, balanced, state, mask):
        log_rates = super().logits(super().balanced(balanced), state, mask)
        return bounded(jump_logits(log_rates, balanced, self.solver), mask)
