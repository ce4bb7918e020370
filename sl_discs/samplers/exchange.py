"""Exchange of two coupled sites with different values, in turn with flips of one site.

An exchange goes through states of the same number of ones: where sites exclude each other, as the nodes of a clique
in MIS or the values of one variable, it replaces one by another without the penalty that flips one by one would meet.
On a lattice of spins it is Kawasaki's dynamics.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int8

from sl_discs import keys
from sl_discs.errors import InputError
from sl_discs.models.base import Target
from sl_discs.models.sites import apply_flips
from sl_discs.samplers.base import Chain, Counters, Info, Sampler, accept_or_keep
from sl_discs.samplers.draws import draw_site


def partners(target: Target, x: Int8[Array, "N"], site: Int[Array, ""]) -> Bool[Array, "N"]:
    """Returns the sites of the mask that are coupled to this one and have the other value."""
    return target.coupled(site) & target.mask & (x != x[site])


def chance_of_pair(
    target: Target, x: Int8[Array, "N"], first: Int[Array, ""], second: Int[Array, ""]
) -> Float[Array, ""]:
    """Returns 1/n_i + 1/n_j for two sites that are partners: in proportion to the probability of drawing both."""
    one, other = (jnp.sum(partners(target, x, site)) for site in (first, second))
    return 1 / one + 1 / other


@dataclasses.dataclass(frozen=True)
class Exchange(Sampler):
    """Tries to flip one site, or two that are coupled and differ.

    With probability `single` it draws a site uniformly and flips it by Metropolis's rule. Otherwise it draws a site i
    uniformly, then a site j uniformly of its n_i partners, and flips both (nothing where n_i = 0). As either may be
    drawn first, Metropolis and Hastings' ratio has q(x -> y) = (1/n_i + 1/n_j)/N, with numbers of partners at x, and
    q(y -> x) likewise with those at y.

    Attributes:
      num_chains: chains a batch in DISCS's calling convention.
      single: probability of trying one site, in (0, 1]; at 1 it is `metropolis`.
    """

    calls_a_step: ClassVar[int] = 2
    counts_sweeps: ClassVar[bool] = True

    num_chains: int = 1
    single: float = 0.5

    def __post_init__(self):
        if not 0 < self.single <= 1:
            raise InputError(
                f"sampler_config.single is {self.single}; expected a number in (0, 1], as exchanges alone never "
                "change the number of ones"
            )

    def init_state(self, num_sites):
        return Counters.zero()

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
        acceptance = jnp.where(possible, jnp.minimum(jnp.exp(jnp.minimum(change, 80.0)) * ratio, 1.0), 0.0)
        accepted = keys.uniforms(keys.fold(key, 3)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0)
        return Chain(x, field, state.next(self.calls_a_step)), Info(acceptance, hops)
