"""Samplers that try one site per step, or two: gibbs, metropolis and exchange."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int8

from sl_discs.models import keys
from sl_discs.models.keys import Key
from sl_discs.models.model import Target, apply_flips
from sl_discs.samplers.draws import draw_site
from sl_discs.samplers.sampler import Chain, Counters, Info, Sampler, accept_or_keep
from sl_discs.support.checks import one_of
from sl_discs.support.errors import InputError

# The order in which sites are tried.
RANDOM, SEQUENTIAL = SCANS = ("random", "sequential")


@dataclasses.dataclass(frozen=True)
class SingleSiteSampler(Sampler):
    """Tries one site per step; a subclass draws an alternative of it and gives the acceptance
    probability.

    Each step of a sequential scan leaves the target invariant, but a sweep is not reversible.

    Attributes:
      scan: `random`, a uniformly drawn site at each step, or `sequential`, repeated sweeps over the
        sites of the mask in order.
    """

    counts_sweeps: ClassVar[bool] = True
    several_values: ClassVar[bool] = True
    examples: ClassVar = [{}, {"scan": SEQUENTIAL}]

    scan: str = RANDOM

    def __post_init__(self):
        one_of("sampler_config.scan", self.scan, SCANS)

    @property
    def reversible(self):
        return self.scan == RANDOM

    @abc.abstractmethod
    def logits(self, gains: Float[Array, "N *q"]) -> Float[Array, "N *q"]:
        """Log-weights by which one of several alternatives of a site is drawn."""

    @abc.abstractmethod
    def acceptance(
        self, change: Float[Array, ""], log_chance: Float[Array, ""] | float
    ) -> Float[Array, ""]:
        """Returns the probability of accepting an alternative.

        Args:
          change: of the log-density.
          log_chance: log-probability that this alternative was drawn.
        """

    def init_state(self, key, shape):
        return Counters()

    def site(self, key: Key, state: Counters, mask: Bool[Array, "N"]) -> Int[Array, ""]:
        """Returns the site that a step tries."""
        if self.scan == RANDOM:
            return draw_site(key, mask.astype(jnp.float32))
        rank = state.steps % jnp.sum(mask, dtype=jnp.int32)
        return jnp.argmax(jnp.cumsum(mask) > rank)

    def kernel(self, key, target, chain):
        x, field, state = chain
        sites = target.sites
        site = self.site(keys.fold(key, 0), state, target.mask)
        # A single alternative needs no weights, and gains may be unknown or cost more than one
        # change.
        logits = self.logits(target.gains(x, field)) if sites.several else None
        y = sites.choose(keys.fold(key, 2), x, logits, jnp.arange(x.shape[0]) == site)
        field_y = target.update(x, field, y)
        change = target.change(x, field, y, field_y)
        acceptance = self.acceptance(change, sites.log_chance(x, y, logits))
        accepted = keys.uniforms(keys.fold(key, 1)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        return Chain(x, field, Counters(state.steps + 1)), Info(
            acceptance, accepted.astype(jnp.float32)
        )


# Gibbs sampling (Glauber dynamics).


@dataclasses.dataclass(frozen=True)
class Gibbs(SingleSiteSampler):
    """Resamples the site from its conditional distribution: it flips with probability
    sigmoid(change).

    Of several alternatives v with gains g_v it draws one by exp(g_v), and accepts it with
    probability sigmoid(log sum_v exp(g_v)): together these are the conditional probabilities of all
    values.
    """

    def logits(self, gains):
        return gains

    def acceptance(self, change, log_chance):
        """Returns sigmoid(change - log_chance): exp(change) is the chance times the weight of all
        alternatives.
        """
        return jax.nn.sigmoid(change - log_chance)


# Single-site Metropolis.

# A sequential scan takes a change of 0 for this one, which is accepted with probability 0.9.
TIE = math.log(0.9)


@dataclasses.dataclass(frozen=True)
class Metropolis(SingleSiteSampler):
    """Flips, or takes one of several alternatives drawn uniformly, with probability min(1,
    exp(change)).

    A sequential scan accepts a change of 0 with probability 0.9, which keeps the target invariant
    too. At 1 it would move everything that costs nothing in every sweep and always in the same
    direction, such as the two boundaries of a domain on a ring of spins, which then never meet; at
    1/2 it would need more sweeps where much costs nothing.
    """

    def logits(self, gains):
        return jnp.zeros_like(gains)

    def acceptance(self, change, log_chance):
        """Returns min(1, exp(change)), and 0.9 at 0 in a sequential scan."""
        if self.scan == SEQUENTIAL:
            change = jnp.where(change == 0, TIE, change)
        return jnp.exp(jnp.minimum(change, 0.0))


# Exchange of two coupled sites with different values, in turn with flips of one site.
#
# It keeps the number of ones: where sites exclude each other, as the nodes of a clique in MIS, one
# replaces another without the penalty that flips one by one would meet. On a lattice of spins it is
# Kawasaki's dynamics.


def partners(target: Target, x: Int8[Array, "N"], site: Int[Array, ""]) -> Bool[Array, "N"]:
    """Returns the sites of the mask that are coupled to this one and have the other value."""
    return target.coupled(site) & target.mask & (x != x[site])


def chance_of_pair(
    target: Target, x: Int8[Array, "N"], first: Int[Array, ""], second: Int[Array, ""]
) -> Float[Array, ""]:
    """Returns 1/n_i + 1/n_j for two sites that are partners: in proportion to the probability of
    drawing both.
    """
    one, other = (jnp.sum(partners(target, x, site)) for site in (first, second))
    return 1 / one + 1 / other


@dataclasses.dataclass(frozen=True)
class Exchange(Sampler):
    """Tries to flip one site, or two that are coupled and differ.

    With probability `single` it draws a site uniformly and flips it by Metropolis's rule. Otherwise
    it draws a site i uniformly, then a site j uniformly of its n_i partners, and flips both
    (nothing where n_i = 0). As either may be drawn first, Metropolis and Hastings' ratio has q(x ->
    y) = (1/n_i + 1/n_j)/N, with numbers of partners at x, and q(y -> x) likewise with those at y.

    Attributes:
      single: probability of trying one site, in (0, 1]; at 1 it is `metropolis`.
    """

    counts_sweeps: ClassVar[bool] = True

    single: float = 0.5

    def __post_init__(self):
        if not 0 < self.single <= 1:
            raise InputError(
                f"sampler_config.single is {self.single}; expected a number in (0, 1], as "
                "exchanges alone never change the number of ones"
            )

    def init_state(self, key, shape):
        return Counters()

    def kernel(self, key, target, chain):
        x, field, state = chain
        alone = keys.uniforms(keys.fold(key, 0)) < self.single
        first = draw_site(keys.fold(key, 1), target.mask.astype(jnp.float32))
        of_first = partners(target, x, first)
        second = draw_site(keys.fold(key, 2), of_first.astype(jnp.float32))
        possible = alone | jnp.any(of_first)
        sites = jnp.arange(x.shape[0])
        flips = possible & ((sites == first) | (~alone & (sites == second)))
        y = apply_flips(x, flips)
        field_y = target.update(x, field, y)

        forward, back = (chance_of_pair(target, where, first, second) for where in (x, y))
        ratio = jnp.where(alone, 1.0, back / forward)
        change = target.change(x, field, y, field_y)
        acceptance = jnp.where(
            possible, jnp.minimum(jnp.exp(jnp.minimum(change, 80.0)) * ratio, 1.0), 0.0
        )
        accepted = keys.uniforms(keys.fold(key, 3)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0)
        return Chain(x, field, Counters(state.steps + 1)), Info(acceptance, hops)
