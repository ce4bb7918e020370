"""The model interface: a log-density with gains of all alternatives, and cheap updates after moves.

All methods are written for one state; callers map them over chains and instances.
"""

from __future__ import annotations

import abc
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int8, Num

from sl_discs.errors import InputError
from sl_discs.keys import Key
from sl_discs.models.sites import Sites, TwoValues

Params = Any
Field = Any


class Model(abc.ABC):
    """A target log f(x), up to a constant, on x in {0,1}^N, or on sites of several values.

    `init` computes a field: any data that the model keeps with x to make the other methods cheap.

    Attributes:
      num_sites: N.
      sites: their values. Where they have more than two, gains are [N, q], and a move is not the sites that flip but
        the state after it.
    """

    num_sites: int
    sites: Sites = TwoValues()

    @abc.abstractmethod
    def init(self, params: Params, x: Int8[Array, "N"]) -> Field:
        """The field at x, computed from scratch."""

    @abc.abstractmethod
    def value(self, params: Params, x: Int8[Array, "N"], field: Field) -> Float[Array, ""]:
        """f(x)."""

    @abc.abstractmethod
    def gains(self, params: Params, x: Int8[Array, "N"], field: Field) -> Float[Array, "N *q"]:
        """f(x with site i flipped) - f(x) for every i, exact for multilinear f, otherwise to first order.

        With several values: of site i set to v, for every i and v. `gibbs` then relies on them to be exact.
        """

    @abc.abstractmethod
    def flip(
        self, params: Params, x: Int8[Array, "N"], field: Field, flips: Num[Array, "N"]
    ) -> tuple[Int8[Array, "N"], Field]:
        """The state after a move, flipping the sites at which `flips` is True, and its field."""

    @abc.abstractmethod
    def change(
        self, params: Params, x: Int8[Array, "N"], before: Field, flips: Num[Array, "N"], after: Field
    ) -> Float[Array, ""]:
        """f after the move minus f before, without the cancellation of subtracting two values."""

    def coupled(self, params: Params, site: Int[Array, ""]) -> Bool[Array, "N"]:
        """The other sites whose gains may depend on this one, which may then depend on theirs; all, unless known."""
        return jnp.arange(self.num_sites) != site

    def largest_neighbour(self, params: Params, values: Float[Array, "N"]) -> Float[Array, "N"]:
        """The largest of the non-negative values at the sites coupled to each site; 0 if there are none."""
        is_top = jnp.arange(self.num_sites) == jnp.argmax(values)
        return jnp.where(is_top, jnp.max(jnp.where(is_top, 0.0, values)), jnp.max(values))

    def draw_coupled(self, params: Params, key: Key) -> tuple[Float[Array, "N"], Float[Array, "N"]]:
        """A draw of N(0, J + D) with the couplings J, and the diagonal D_ii = sum_j |J_ij|; quadratic models only."""
        raise InputError("pdhams needs a quadratic model, whose couplings are known; use dhams")

    # DISCS's calling convention, for samplers written for it: a batch of states at once.

    def forward(self, params: Params, x: Num[Array, "B N"]) -> Float[Array, "B"]:
        """f of each state of a batch."""
        return jax.vmap(lambda x: self.value(params, x, self.init(params, x)))(x.astype(jnp.int8))

    def get_value_and_grad(
        self, params: Params, x: Num[Array, "B N"]
    ) -> tuple[Float[Array, "B"], Float[Array, "B N *q"]]:
        """f of each state, and a vector with its gains as `Sites.gradient`."""

        def one(x):
            field = self.init(params, x)
            return self.value(params, x, field), self.sites.gradient(x, self.gains(params, x, field))

        return jax.vmap(one)(x.astype(jnp.int8))


def apply_flips(x: Int8[Array, "N"], flips: Bool[Array, "N"]) -> Int8[Array, "N"]:
    """x with the sites flipped at which `flips` is True."""
    return x ^ flips.astype(x.dtype)
