"""Discrete samplers with a Gaussian momentum (Zhou and Tan, Discrete Hamiltonian-assisted Metropolis sampling,
arXiv:2507.09807, and Preconditioned Discrete-HAMS, arXiv:2507.21982).

The augmented target is p(x) N(v; 0, C), with C = D + W for a diagonal D and a matrix W that approximates the Hessian
of log p: W = 0 (`dhams`), or the couplings (`pdhams`). A step first refreshes the momentum in part,
v <- persistence v + sqrt(1 - persistence^2) N(0, C). Given x and v, the auxiliary variable h = C x + v makes sites
independent in

    exp(<grad log p(x) - W x, y> + <h, y> - <y, D y>/2),

where y is drawn: site i flips with probability sigmoid(d_i + e_i v_i - D_ii/2), with its gain d_i and its direction
e_i = 1 - 2 x_i. The momentum becomes

    v' = -v + C (y - x) + correction (grad log p(y) - grad log p(x) - W (y - x)).

From (y, -v') the same construction returns to (x, -v), hence the Metropolis-Hastings test with that reverse step
satisfies generalized detailed balance; a rejection keeps x and reverses v. Its ratio is 1 if log p is linear with
W = 0, or if it is quadratic with the Hessian W.

This is the construction that the abstracts of the two papers name (auxiliary variable, negation and gradient
correction of the momentum, Gaussian integral trick), derived here for bits and without their over-relaxation of the
state; it has not been compared with their numbered equations.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sl_discs import keys
from sl_discs.errors import InputError
from sl_discs.keys import Key
from sl_discs.models.base import Target
from sl_discs.models.sites import apply_flips
from sl_discs.samplers.base import Chain, Info, Sampler, accept_or_keep, adapted, check_adaptation
from sl_discs.samplers.langevin import bounded, log_probability


class MomentumState(NamedTuple):
    """Steps done, log-likelihood calls (4 per step), v over its standard deviations, step size of `DHAMS`.

    In these units the law of the momentum depends neither on the temperature nor on the step size.
    """

    steps: Int[Array, ""]
    num_ll_calls: Int[Array, ""]
    momentum: Float[Array, "N"]
    step_size: Float[Array, ""]


class MomentumSampler(Sampler):
    """The common kernel; a subclass gives the momentum's law, its kinetic energy, and the correction."""

    persistence: float
    calls_a_step: ClassVar[int] = 4

    @property
    @abc.abstractmethod
    def gradient_share(self) -> float:
        """The factor of grad log p(y) - grad log p(x) in v', once D (y - x) is taken out."""

    @abc.abstractmethod
    def draw(self, key: Key, target: Target, state: MomentumState) -> tuple[Float[Array, "N"], Float[Array, "N"]]:
        """A draw of N(0, C), and the diagonal D."""

    @abc.abstractmethod
    def kinetic_change(
        self,
        before: Float[Array, "N"],
        after: Float[Array, "N"],
        variances: Float[Array, "N"],
        delta: Float[Array, "N"],
        mask: Bool[Array, "N"],
    ) -> Float[Array, ""]:
        """log N(after; 0, C) - log N(before; 0, C), given D and delta = y - x."""

    def init_state(self, num_sites):
        return MomentumState(jnp.int32(0), jnp.int32(0), jnp.zeros(num_sites, jnp.float32), jnp.float32(1))

    def next_step_size(self, state: MomentumState, acceptance: Float[Array, ""]) -> Float[Array, ""]:
        """The step size after a step."""
        return state.step_size

    def kernel(self, key, target, chain):
        (x, field, state), mask = chain, target.mask

        def at(x, field):
            return target.gains(x, field), (1 - 2 * x).astype(jnp.float32)

        drawn, variances = self.draw(keys.fold(key, 2), target, state)
        deviations = jnp.sqrt(variances)
        kept = jnp.where(state.steps == 0, 0.0, self.persistence)
        v = kept * deviations * state.momentum + jnp.sqrt(1 - kept**2) * drawn

        gains, directions = at(x, field)
        logits = bounded(gains + directions * v - variances / 2, mask)
        flips = keys.uniforms(keys.fold(key, 0), x.shape) < jax.nn.sigmoid(logits)
        y = apply_flips(x, flips)
        field_y = target.update(x, field, y)
        gains_y, directions_y = at(y, field_y)
        delta = jnp.where(flips, directions, 0.0)
        bend = self.gradient_share * (directions_y * gains_y - directions * gains)
        after = jnp.where(mask, -v + variances * delta + bend, 0.0)
        logits_y = bounded(gains_y - directions_y * after - variances / 2, mask)
        log_ratio = (
            target.change(x, field, y, field_y)
            + self.kinetic_change(v, after, variances, delta, mask)
            + log_probability(logits_y, flips)
            - log_probability(logits, flips)
        )
        acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))
        accepted = keys.uniforms(keys.fold(key, 1)) < acceptance
        momentum = jnp.where(accepted, after, -v) / jnp.where(variances > 0, deviations, 1.0)
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        state = MomentumState(
            state.steps + 1, state.num_ll_calls + self.calls_a_step, momentum, self.next_step_size(state, acceptance)
        )
        return Chain(x, field, state), Info(acceptance, jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0))


def _check_persistence(persistence: float) -> None:
    if not 0 <= persistence < 1:
        raise InputError(f"sampler_config.persistence is {persistence}; expected a number from 0 to below 1")


@dataclasses.dataclass(frozen=True)
class DHAMS(MomentumSampler):
    """W = 0 and D = 1/step_size^2. The acceptance is 1 on targets without couplings.

    Attributes:
      num_chains: chains per batch in DISCS's calling convention.
      step_size: delta, or its initial value with adaptation.
      persistence: share of the momentum that is kept from step to step, from 0 to below 1.
      correction: of the momentum by the change of the gradient.
      adaptive: whether log delta adapts to the acceptance (by a tenth of acceptance - target).
      target_acceptance_rate: target of the adaptation.
      adapt_until: step at which adaptation ends; None: never.
    """

    adapts: ClassVar[str | None] = "step_size"

    num_chains: int = 1
    step_size: float = 0.5
    persistence: float = 0.5
    correction: float = 0.0
    adaptive: bool = True
    target_acceptance_rate: float = 0.574
    adapt_until: int | None = None

    def __post_init__(self):
        if not 1e-3 <= self.step_size <= 1e3:
            raise InputError(f"sampler_config.step_size is {self.step_size}; expected a number from 0.001 to 1000")
        if not 0 <= self.correction <= 1:
            raise InputError(f"sampler_config.correction is {self.correction}; expected a number from 0 to 1")
        _check_persistence(self.persistence)
        check_adaptation(self.target_acceptance_rate, self.adapt_until)

    @property
    def gradient_share(self):
        return self.correction

    def init_state(self, num_sites):
        return super().init_state(num_sites)._replace(step_size=jnp.float32(self.step_size))

    def draw(self, key, target, state):
        """Independent components of variance 1/delta^2."""
        inverse = 1 / state.step_size
        drawn = inverse * keys.normals(key, (target.num_sites,))
        return drawn, jnp.full(drawn.shape, inverse**2)

    def kinetic_change(self, before, after, variances, delta, mask):
        """(before^2 - after^2)/(2 D) over the open sites."""
        return jnp.sum(jnp.where(mask, (before - after) * (before + after) / (2 * variances), 0.0))

    def next_step_size(self, state, acceptance):
        """delta, between 0.001 and 1000."""
        if not self.adaptive:
            return state.step_size
        tenths = adapted(
            10 * jnp.log(state.step_size),
            acceptance,
            target=self.target_acceptance_rate,
            steps=state.steps,
            adapt_until=self.adapt_until,
            shared=False,
        )
        return jnp.clip(jnp.exp(tenths / 10), 1e-3, 1e3)


@dataclasses.dataclass(frozen=True)
class PDHAMS(MomentumSampler):
    """W = J, the couplings of a quadratic model, and D_ii = sum_j |J_ij|. The acceptance is always 1.

    C is then positive semidefinite, and a draw of N(0, C) is a sum of one normal number for each coupling
    (`Model.draw_coupled`): no matrix is factorized.

    Attributes:
      num_chains: chains per batch in DISCS's calling convention.
      persistence: share of the momentum that is kept from step to step, from 0 to below 1.
    """

    num_chains: int = 1
    persistence: float = 0.5

    def __post_init__(self):
        _check_persistence(self.persistence)

    @property
    def gradient_share(self):
        """1: the change of the gradient is W (y - x)."""
        return 1.0

    def draw(self, key, target, state):
        return target.draw_coupled(key)

    def kinetic_change(self, before, after, variances, delta, mask):
        """<delta, before - after>/2, as before + after = C delta."""
        return jnp.sum(delta * (before - after)) / 2
