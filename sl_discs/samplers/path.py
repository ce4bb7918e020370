"""Samplers that flip a path of sites drawn from the balanced softmax at x: the base of gwg and
path_auxiliary.

A site of several values is drawn by the total weight of its alternatives, then an alternative by
its own; the reverse draws the same sites at y, and their old values. One draw is then a draw of a
pair of site and value.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sl_discs.models import keys
from sl_discs.samplers.draws import draw_sites, log_probability, softmax_weights
from sl_discs.samplers.sampler import ADAPTIVE, BalancedSampler, Chain, Info, accept_or_keep
from sl_discs.support.errors import InputError


class PathState(NamedTuple):
    """Steps done, and the number of flips as a real number."""

    steps: Int[Array, ""]
    radius: Float[Array, ""]


@dataclasses.dataclass(frozen=True)
class PathSampler(BalancedSampler):
    """Draws sites in turn from softmax(balanced gains at x), flips them, and accepts or rejects the
    whole path.

    Attributes:
      num_flips: number of draws; with adaptation, which draws round(radius) sites, the initial
        radius.
      shared_adaptation: whether all chains of an instance adapt to their mean acceptance, as in
        DISCS.
      replacement: whether a site can be drawn again.
    """

    replacement: ClassVar[bool]
    adapts: ClassVar[str | None] = "radius"
    examples: ClassVar = [ADAPTIVE, {"num_flips": 3}]

    num_flips: int = 1
    shared_adaptation: bool = False

    def __post_init__(self):
        if not 1 <= self.num_flips < 2**31:
            raise InputError(
                f"sampler_config.num_flips is {self.num_flips}; expected at least 1, and less than "
                "2^31"
            )
        super().__post_init__()

    @property
    def couples_chains(self):
        return self.adaptive and self.shared_adaptation

    def is_ergodic(self, num_sites):
        """Distinct sites, if their number is fixed and even, keep the parity of the number of ones;
        all sites keep a state up to its complement.
        """
        length = min(self.num_flips, num_sites)
        is_odd = length == 1 or (length % 2 == 1 and length < num_sites)
        return self.adaptive or self.replacement or is_odd

    def init_state(self, key, shape):
        return PathState(jnp.int32(0), jnp.float32(self.num_flips))

    def _rounded(self, key, state: PathState) -> Int[Array, ""]:
        """Returns round(radius) while it adapts; afterwards one of the two neighbouring integers at
        random.

        Always flipping exactly R sites preserves the parity of |x| if R is even: such a chain is
        not ergodic.
        """
        nearest = jnp.round(state.radius)
        if self.adapt_until is not None:
            either = jnp.floor(state.radius - 0.5 + keys.uniforms(key))
            nearest = jnp.where(state.steps < self.adapt_until, nearest, either)
        return nearest.astype(jnp.int32)

    def kernel(self, key, target, chain):
        """Draws and flips, and applies the Metropolis-Hastings test with the reverse path's
        probability.
        """
        x, field, state = chain
        available = jnp.sum(target.mask, dtype=jnp.int32)
        wanted = self._rounded(keys.fold(key, 2), state) if self.adaptive else self.num_flips
        most = x.shape[0] if self.adaptive else min(self.num_flips, x.shape[0])
        length = jnp.clip(wanted, 1, most if self.replacement else available)

        sites = target.sites
        logits = self.balanced(target.gains(x, field))
        forward = softmax_weights(sites.total(x, logits), target.mask)
        drawn = draw_sites(keys.fold(key, 0), forward, length, most, replacement=self.replacement)
        y = sites.choose(keys.fold(key, 3), x, logits, drawn.flips)
        field_y = target.update(x, field, y)
        logits_y = self.balanced(target.gains(y, field_y))
        backward = softmax_weights(sites.total(y, logits_y), target.mask)
        log_there = log_probability(forward, drawn, replacement=self.replacement)
        log_back = log_probability(backward, drawn, replacement=self.replacement, backwards=True)
        log_there += sites.log_chance(x, y, logits)
        log_back += sites.log_chance(y, x, logits_y)
        change = target.change(x, field, y, field_y)
        acceptance = jnp.exp(jnp.minimum(change + log_back - log_there, 0.0))

        accepted = keys.uniforms(keys.fold(key, 1)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(drawn.flips, dtype=jnp.float32), 0.0)
        radius = state.radius
        if self.adaptive:
            radius = self.adapted(radius, acceptance, state.steps, shared=self.shared_adaptation)
            radius = jnp.clip(radius, 1.0, available.astype(jnp.float32))
        return Chain(x, field, PathState(state.steps + 1, radius)), Info(acceptance, hops)


# Gibbs with gradients (Grathwohl et al. 2021): sites drawn with replacement from the balanced
# softmax.


@dataclasses.dataclass(frozen=True)
class GWG(PathSampler):
    """With one flip, acceptance is min(1, Z(x)/Z(y)); with several, a site drawn more than once
    flips once.
    """

    replacement: ClassVar[bool] = True


# Path auxiliary sampler (Sun et al. 2022): distinct sites drawn in turn, and the reverse path from
# the end point.


@dataclasses.dataclass(frozen=True)
class PathAuxiliary(PathSampler):
    """Sites drawn without replacement at x; the reverse draws the same sites at y in
    reverse order.
    """

    replacement: ClassVar[bool] = False
