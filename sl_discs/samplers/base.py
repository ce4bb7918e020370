"""The sampler interface: a pure kernel for one chain, and DISCS's batched calling convention on top of it."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int8, PRNGKeyArray

from sl_discs import keys
from sl_discs.batching import over_chains
from sl_discs.keys import Key
from sl_discs.models.base import Field, Model, Params

SamplerState = Any


class Info(NamedTuple):
    """The statistics of one step.

    Attributes:
      acceptance: the acceptance probability of the proposal (1 for rejection-free samplers).
      hops: number of sites that changed.
    """

    acceptance: Float[Array, ""]
    hops: Float[Array, ""]


class Sampler(abc.ABC):
    """A Markov kernel that accesses its target only through a `Model`."""

    num_chains: int
    # The adapted field of the state, if any, and the number of log-likelihood calls per step, as DISCS counts.
    adapts: ClassVar[str | None] = None
    calls_a_step: ClassVar[int] = 0
    # Whether it tries one site or two a step, so that steps are counted in sweeps over all sites.
    counts_sweeps: ClassVar[bool] = False
    # Whether it leaves the new values to `Model.sites`, and so can run where sites have more than two.
    several_values: ClassVar[bool] = False

    @property
    def couples_chains(self) -> bool:
        """Whether a chain's step depends on the other chains of its instance."""
        return False

    @property
    def reversible(self) -> bool:
        """Whether any number of steps satisfies detailed balance, if the sampler is exact."""
        return True

    @abc.abstractmethod
    def init_state(self, num_sites: int) -> SamplerState:
        """The state of one chain before its first step, with fixed dtypes."""

    @abc.abstractmethod
    def kernel(
        self,
        key: Key,
        model: Model,
        params: Params,
        x: Int8[Array, "N"],
        field: Field,
        state: SamplerState,
        mask: Bool[Array, "N"],
    ) -> tuple[Int8[Array, "N"], Field, SamplerState, Info]:
        """One step of one chain; sites outside `mask` never flip."""

    def make_init_state(self, rng: PRNGKeyArray, num_sites: int = 1) -> SamplerState:
        """States of `num_chains` chains (DISCS's name; they are not random).

        DISCS does not give the number of sites, which only samplers with a momentum need: elsewhere it limits an
        adaptive radius, which every step clips to its own N.
        """
        del rng
        state = self.init_state(num_sites)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.num_chains, *leaf.shape)), state)

    def step(
        self,
        model: Model,
        rng: PRNGKeyArray,
        x: Int[Array, "B N"],
        model_param: Params,
        state: SamplerState,
        x_mask: Bool[Array, "N"] | None = None,
    ) -> tuple[Int[Array, "B N"], SamplerState, Float[Array, ""]]:
        """One step of each chain of a batch, in DISCS's calling convention.

        It computes the local field anew in every call; a run uses `kernel`, which updates it.

        Returns:
          the new states in x's dtype, the new sampler states, and the mean acceptance of the batch.
        """
        root = keys.from_rng(rng)
        mask = jnp.ones(x.shape[-1], bool) if x_mask is None else x_mask.astype(bool)

        def one(chain, x, state):
            x = x.astype(jnp.int8)
            field = model.init(model_param, x)
            key = keys.fold(root, chain)
            x, _, state, info = self.kernel(key, model, model_param, x, field, state, mask)
            return x, state, info.acceptance

        new_x, new_state, acceptance = over_chains(one)(jnp.arange(x.shape[0]), x, state)
        return new_x.astype(x.dtype), new_state, jnp.mean(acceptance)


def accept_or_keep(
    accepted: Bool[Array, ""],
    proposed: tuple[Int8[Array, "N"], Field],
    current: tuple[Int8[Array, "N"], Field],
) -> tuple[Int8[Array, "N"], Field]:
    """The proposed state and field if accepted, otherwise the current ones."""
    return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposed, current)
