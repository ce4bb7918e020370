"""What a model is: a log-density on {0,1}^N with flip gains, and a cheap way to follow flips.

All methods are written for one state; callers map them over chains and instances.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Int8

from sl_discs.batching import batch_max

Params = Any
Field = Any

# Lists of sites are worked off in groups of this many.
GROUP = 16


def list_length(capacity: int) -> int:
    """The length of a list of up to `capacity` sites: 1, or whole groups."""
    return 1 if capacity == 1 else -(-capacity // GROUP) * GROUP


class Flips(NamedTuple):
    """A set of sites to flip, in the two forms that models need.

    Attributes:
      mask: [N] True at the sites that flip.
      sites: [R] each flipping site once, in any order; the value N marks an unused place. R is a `list_length`.
      length: sites[length:] are all unused.
      count: how many sites flip.
    """

    mask: Bool[Array, "N"]
    sites: Int[Array, "R"]
    length: Int[Array, ""]
    count: Int[Array, ""]


SiteTerm = Callable[[Int[Array, "P"]], Float[Array, "P"]]


class Change(NamedTuple):
    """A change of f in two parts, for samplers that go through the flipped sites in any case.

    Attributes:
      common: a number for all flips together.
      of_sites: what each of P flipped sites adds to it; None: nothing.
    """

    common: Float[Array, ""]
    of_sites: SiteTerm | None = None


class Model(abc.ABC):
    """A target log f(x), up to a constant, on x in {0,1}^N.

    `init` builds a field, whatever the model wants to carry along with x so that the other methods are cheap.
    """

    num_sites: int

    @abc.abstractmethod
    def init(self, params: Params, x: Int8[Array, "N"]) -> Field:
        """The field at x, from nothing."""

    @abc.abstractmethod
    def value(self, params: Params, x: Int8[Array, "N"], field: Field) -> Float[Array, ""]:
        """f(x)."""

    @abc.abstractmethod
    def gains(self, params: Params, x: Int8[Array, "N"], field: Field) -> Float[Array, "N"]:
        """f(x with site i flipped) - f(x) for every i, exact for multilinear f, else to first order."""

    @abc.abstractmethod
    def flip(self, params: Params, x: Int8[Array, "N"], field: Field, flips: Flips) -> tuple[Int8[Array, "N"], Field]:
        """The state after the flips and its field."""

    @abc.abstractmethod
    def change(
        self, params: Params, x: Int8[Array, "N"], before: Field, flips: Flips, after: Field
    ) -> Float[Array, ""]:
        """f after the flips minus f before, without the cancellation of subtracting two values."""

    def change_in_parts(
        self, params: Params, x: Int8[Array, "N"], before: Field, flips: Flips, after: Field
    ) -> Change:
        """`change`, with what is a sum over the flipped sites left to the caller."""
        return Change(self.change(params, x, before, flips, after))

    # DISCS's calling convention, for samplers that are written against it: a batch of states at once.

    def forward(self, params: Params, x: Int[Array, "B N"]) -> Float[Array, "B"]:
        """f of each state of a batch."""
        return jax.vmap(lambda x: self.value(params, x, self.init(params, x)))(x.astype(jnp.int8))

    def get_value_and_grad(
        self, params: Params, x: Int[Array, "B N"]
    ) -> tuple[Float[Array, "B"], Float[Array, "B N"]]:
        """f of each state and a vector g with gains (1 - 2x) g."""

        def one(x):
            field = self.init(params, x)
            return self.value(params, x, field), (1 - 2 * x) * self.gains(params, x, field)

        return jax.vmap(one)(x.astype(jnp.int8))


def apply_flips(x: Int8[Array, "N"], flips: Flips) -> Int8[Array, "N"]:
    """x with the masked sites flipped."""
    return x ^ flips.mask.astype(x.dtype)


def sums_over_flips(flips: Flips, *terms: SiteTerm) -> tuple[Float[Array, ""], ...]:
    """The sum of each term over the sites that flip, by their list: few are looked at, not all.

    Args:
      flips: of a state of N sites.
      terms: what each of P sites below N adds; called for unused places with site 0, to no effect.
    """
    group = min(GROUP // 2, flips.sites.shape[0])
    num_sites = flips.mask.shape[0]

    def add_group(turn, totals):
        sites = lax.dynamic_slice(flips.sites, (turn * group,), (group,))
        exists = sites < num_sites
        some = jnp.where(exists, sites, 0)
        return tuple(
            total + jnp.sum(jnp.where(exists, term(some), 0.0)) for total, term in zip(totals, terms, strict=True)
        )

    start = (jnp.float32(0),) * len(terms)
    if group == 1:
        return add_group(0, start)
    turns = (batch_max(flips.length) + group - 1) // group
    return lax.fori_loop(0, turns, add_group, start)


def sum_over_flips(flips: Flips, *terms: SiteTerm) -> Float[Array, ""]:
    """The sum of `sums_over_flips`.

    Terms are added at the end: formed as one, their last bits were others with eight instances than with one, for XLA
    then makes other kernels.
    """
    return sum(sums_over_flips(flips, *terms))
