"""The sampler interface: a pure kernel for one chain, and DISCS's batched calling convention on top
of it.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, PRNGKeyArray

from sl_discs.models import keys
from sl_discs.models.batching import chain_mean, over_chains
from sl_discs.models.functions import ValueModel
from sl_discs.models.keys import Key
from sl_discs.models.model import Field, Params, Target, TargetModel
from sl_discs.support.checks import integer, one_of
from sl_discs.support.errors import InputError

SamplerState = Any


class Info(NamedTuple):
    """The statistics of one step of one chain; a batch has them with leading axes.

    A run records the means of both over chains and steps.

    Attributes:
      acceptance: the acceptance probability of the proposal (1 for rejection-free samplers).
      hops: number of sites that changed.
    """

    acceptance: Float[Array, ""]
    hops: Float[Array, ""]


class Counters(NamedTuple):
    """The state of a sampler that only counts the steps done."""

    steps: Int[Array, ""] = np.int32(0)  # type: ignore[assignment]


class Chain(NamedTuple):
    """The state of a chain, of which a batch has an array with leading axes.

    Example:
        >>> target = standard_cases()[0].target  # independent sets on five nodes
        >>> x = jnp.zeros(5, jnp.int8)
        >>> state = Gibbs().init_state(fold(jnp.zeros(2, jnp.uint32), 1), x.shape)
        >>> chain = Chain(x, target.init(x), state)
        >>> target.gains(chain.x, chain.field).tolist(), int(chain.state.steps)
        ([1.0, 1.0, 1.0, 1.0, 1.0], 0)

    Attributes:
      x: [N] the values of the sites.
      field: what the target's model keeps at x, so that gains and changes are cheap: the local
        field of a quadratic model, for instance. A kernel returns that of the x that it returns.
      state: the sampler's own state, such as counters or an adapted radius, which does not depend
        on x: tempering moves it to another x.
    """

    x: Int8[Array, "*G N"]
    field: Field
    state: SamplerState


class Sampler(abc.ABC):
    """A Markov kernel that leaves a `Target` invariant, which it accesses only through its
    methods.

    A subclass is a frozen dataclass: its fields are the sampler's settings, and programs are
    compiled for each. It defines `init_state` and `kernel`, both for one chain, from which `step`
    makes a batch in DISCS's convention. Engines, localization and adapters call `kernel`.

    Example:
        >>> case = standard_cases()[0]  # independent sets on five nodes
        >>> x = jnp.asarray(case.start)
        >>> key = fold(jnp.zeros(2, jnp.uint32), 1)
        >>> sampler = Gibbs()
        >>> chain = Chain(x, case.target.init(x), sampler.init_state(key, x.shape))
        >>> chain, info = jax.jit(sampler.kernel)(key, case.target, chain)
        >>> chain.x.tolist(), float(info.hops)
        ([0, 0, 1, 0, 0], 1.0)

    The interface follows those of DISCS (Goshvadi et al., NeurIPS 2023) and of blackjax.
    """

    # The adapted field of the state, if any, and the number of log-likelihood calls per step, as
    # DISCS counts.
    adapts: ClassVar[str | None] = None
    calls_a_step: ClassVar[int] = 2
    # Whether it tries one site or two a step, so that steps are counted in sweeps over all sites.
    counts_sweeps: ClassVar[bool] = False
    # Whether a step tries every site.
    is_sweep: ClassVar[bool] = False
    # Whether it leaves the new values to `Model.sites`, and so can run where sites have more than
    # two.
    several_values: ClassVar[bool] = False
    # Fields of samplers of the class that together cover its rules: tests compare the steps of
    # each, on every engine that can run it, with the matrix of `sl_discs.testing.oracle`.
    examples: ClassVar[list[dict[str, Any]]] = [{}]

    @property
    def couples_chains(self) -> bool:
        """Whether a chain's step depends on the other chains of its instance."""
        return False

    @property
    def exact(self) -> bool:
        """Whether it leaves the target invariant, apart from its adaptation."""
        return not self.couples_chains

    @property
    def reversible(self) -> bool:
        """Whether any number of steps satisfies detailed balance, if the sampler is exact."""
        return True

    def is_ergodic(self, num_sites: int) -> bool:
        """Returns whether a chain on this number of sites of two values can reach every state from
        any other.
        """
        return True

    def check_terms(self, terms: Any) -> None:  # noqa: B027 - most run on all
        """Raises InputError for terms of a model on which it cannot run."""

    @abc.abstractmethod
    def init_state(self, key: Key, shape: tuple[int, ...]) -> SamplerState:
        """Returns the state of one chain before its first step, with fixed dtypes.

        Args:
          key: for a state that is drawn, as the observation of localization is. In a run, all
            chains of a sampler that is not localized begin with the state of one key.
          shape: of the spins of a state: [N], or [N, q] for q > 2 values at a site.
        """

    @abc.abstractmethod
    def kernel(self, key: Key, target: Target, chain: Chain) -> tuple[Chain, Info]:
        """Makes one step of one chain; sites outside `target.mask` never change."""

    def step_key(self, root: Key, number: Int[Array, ""]) -> Any:
        """Returns the key of a chain's kernel in `step`, folded from the batch's."""
        return keys.fold(root, number)

    def make_init_state(
        self, rng: PRNGKeyArray, num_chains: int, shape: tuple[int, ...]
    ) -> SamplerState:
        """Returns the states of `num_chains` chains before their first step, see `init_state`;
        DISCS's name.
        """
        root = keys.from_rng(rng)
        return jax.vmap(lambda number: self.init_state(keys.fold(root, number), shape))(
            jnp.arange(num_chains)
        )

    def step(
        self,
        model: Any,
        rng: PRNGKeyArray,
        x: Int[Array, "B N"],
        model_param: Params,
        state: SamplerState,
        x_mask: Bool[Array, "N"] | None = None,
    ) -> tuple[Int[Array, "B N"], SamplerState, Float[Array, ""]]:
        """Makes one step of each chain of a batch, in DISCS's calling convention.

        It computes the local field anew in every call; a run uses `kernel`, which updates it.

        Args:
          model: a `Model`, or a `TargetModel`.
          rng: a new key for each call.
          x: states.
          model_param: the model's parameters.
          state: of each chain, see `make_init_state`.
          x_mask: sites that may change; None: all.

        Returns:
          the new states in x's dtype, the new sampler states, and the mean acceptance of the batch.
        """
        root = keys.from_rng(rng)
        mask = jnp.ones(x.shape[-1], bool) if x_mask is None else x_mask.astype(bool)
        target = model.target(model_param, mask)

        def one(number, x, state):
            x = x.astype(jnp.int8)
            chain, info = self.kernel(
                self.step_key(root, number), target, Chain(x, target.init(x), state)
            )
            return chain.x, chain.state, info.acceptance

        new_x, new_state, acceptance = over_chains(one)(jnp.arange(x.shape[0]), x, state)
        return new_x.astype(x.dtype), new_state, jnp.mean(acceptance)


def accept_or_keep(
    accepted: Bool[Array, ""],
    proposed: tuple[Int8[Array, "N"], Field],
    current: tuple[Int8[Array, "N"], Field],
) -> tuple[Int8[Array, "N"], Field]:
    """Returns the proposed state and field if accepted, otherwise the current ones.

    Both are chosen by the same test, so that the field stays that of the state.

    Example:
        >>> proposed = jnp.int8([1, 0]), jnp.float32(2)
        >>> x, field = accept_or_keep(jnp.bool_(True), proposed, (jnp.int8([0, 0]), jnp.float32(0)))
        >>> x.tolist(), float(field)
        ([1, 0], 2.0)

    Args:
      accepted: the outcome of the test, of one chain.
      proposed: x [N] and the target's field at it.
      current: likewise before the step.
    """
    return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposed, current)


# Locally balanced weight functions g with g(t) = t g(1/t), as functions of log t (Zanella 2020;
# DISCS's names).

BALANCING = {
    "SQRT": lambda log_t: log_t / 2,
    "RATIO": jax.nn.log_sigmoid,
    "MAX": lambda log_t: jnp.maximum(log_t, 0.0),
    "MIN": lambda log_t: jnp.minimum(log_t, 0.0),
}


ADAPTIVE = {"adaptive": True, "adapt_until": 50}


@dataclasses.dataclass(frozen=True)
class BalancedSampler(Sampler):
    """Proposes by balanced weights, with a scale that may adapt to a target acceptance, per chain.

    Attributes:
      adaptive: whether the scale adapts.
      target_acceptance_rate: target of the adaptation.
      adapt_until: step at which adaptation ends; None: never. A sampler whose scale never stops
        depending on the past is slightly inexact.
      balancing_fn_type: SQRT, RATIO, MAX or MIN.
    """

    calls_a_step: ClassVar[int] = 4
    several_values: ClassVar[bool] = True

    adaptive: bool = False
    target_acceptance_rate: float = 0.574
    adapt_until: int | None = None
    balancing_fn_type: str = "SQRT"

    def __post_init__(self):
        if not 0 < self.target_acceptance_rate < 1:
            raise InputError(
                f"sampler_config.target_acceptance_rate is {self.target_acceptance_rate}; expected "
                "a number in (0, 1)"
            )
        if self.adapt_until is not None:
            integer("sampler_config.adapt_until", self.adapt_until, 1, bits=31)
        one_of("sampler_config.balancing_fn_type", self.balancing_fn_type, BALANCING)

    def balanced(self, gains: Float[Array, "N *q"]) -> Float[Array, "N *q"]:
        """Returns the log-weights of the alternatives."""
        return BALANCING[self.balancing_fn_type](gains)

    def adapted(
        self,
        scale: Float[Array, ""],
        acceptance: Float[Array, ""],
        steps: Int[Array, ""],
        *,
        shared: bool,
    ) -> Float[Array, ""]:
        """Returns scale + gain (acceptance - target); DISCS's form, `shared`, uses the mean
        acceptance of the chains.

        The gain is always 1, or falls linearly from 1 to 0 at step `adapt_until`, and is 0 from
        then on.
        """
        gain = jnp.float32(1)
        if self.adapt_until is not None:
            gain = jnp.clip(1.0 - steps.astype(jnp.float32) / self.adapt_until, 0.0, 1.0)
        if shared:
            acceptance = chain_mean(acceptance)
        return scale + gain * (acceptance - self.target_acceptance_rate)


# Lets a sampler that only has DISCS's batched `step` be run chain by chain.


@dataclasses.dataclass(frozen=True, eq=False)
class StepSampler(Sampler):
    """A batch of one chain for `inner.step(model, rng, x, model_param, state, x_mask)`.

    `inner` sees a `TargetModel`, with x [1, N] int32; anything that it shares between the chains of
    a batch belongs to a single chain here. The field is recomputed after each step.
    """

    inner: Any

    def init_state(self, key, shape):
        return self.inner.make_init_state(jax.random.wrap_key_data(key))

    def kernel(self, key, target, chain):
        rng = jax.random.wrap_key_data(keys.fold(key, 0))
        x = chain.x[None].astype(jnp.int32)
        y, state, acceptance = self.inner.step(
            TargetModel(), rng, x, target, chain.state, target.mask
        )
        y = y[0].astype(chain.x.dtype)
        hops = jnp.sum(y != chain.x, dtype=jnp.float32)
        return Chain(y, target.init(y), state), Info(jnp.mean(jnp.float32(acceptance)), hops)


# Whether a sampler asks for flip gains: for a log-density given as a function, a gradient in each
# step.


def asks_for_gains(sampler: Sampler) -> bool:
    """Returns whether a step needs gains, by tracing one with a model that has values alone."""
    target = ValueModel(lambda params, x: jnp.float32(0), 2).target((), jnp.ones(2, bool))
    x = jnp.zeros(2, jnp.int8)
    try:
        jax.eval_shape(
            lambda key: sampler.kernel(
                key, target, Chain(x, target.init(x), sampler.init_state(key, x.shape))
            ),
            jnp.zeros(2, jnp.uint32),
        )
    except NotImplementedError:
        return True
    return False
