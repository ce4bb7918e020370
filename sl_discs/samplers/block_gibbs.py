"""Gibbs sampling of one colour after the other: sites that are not coupled change together."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from sl_discs.models import keys
from sl_discs.models.batching import batch_max, cond_for_batch
from sl_discs.models.model import Target, apply_flips
from sl_discs.models.quadratic import QuadraticModel
from sl_discs.samplers.sampler import Counters, Info, Sampler
from sl_discs.samplers.single_site import SEQUENTIAL, Gibbs


def greedy_colours(colours: Int[Array, "N"], target: Target) -> Int[Array, "N"]:
    """Returns for each site, in their order, the first colour that none of the sites of the mask
    before it has that are coupled to it. The given colours are not used.
    """
    size = target.num_sites

    def colour(site, colours):
        near = jnp.where(target.coupled(site) & target.mask, colours, size)
        taken = jnp.zeros(size + 1, bool).at[near].set(True)
        return colours.at[site].set(jnp.argmin(taken))

    return lax.fori_loop(0, size, colour, jnp.full_like(colours, size))


@dataclasses.dataclass(frozen=True)
class BlockGibbs(Sampler):
    """Resamples all sites in a step, colour by colour, from their conditional distributions.

    The step has the law of a sweep of `gibbs` over the sites in the order of their colours, and
    computes the fields of all sites by one product for each colour. Where a model does not tell its
    couplings, a step is a sweep over the sites, one after the other.
    """

    calls_a_step = 2
    is_sweep = True

    @property
    def reversible(self):
        return False

    def init_state(self, key, shape):
        """Returns counters, and the colours, which the first step finds."""
        return Counters.zero(), jnp.zeros(shape[0], jnp.int32)

    def kernel(self, key, target, chain):
        counters, colours = chain.state
        if isinstance(target.model, QuadraticModel):
            is_first = counters.steps == 0
            colours = cond_for_batch(is_first, greedy_colours, colours, target.tilted(None))
            uniforms = keys.uniforms(key, chain.x.shape)

            def resample(colour, now):
                flips = uniforms < jax.nn.sigmoid(target.gains(now.x, now.field))
                x = apply_flips(now.x, flips & (colours == colour) & target.mask)
                return now._replace(x=x, field=target.init(x))

            number = batch_max(jnp.max(colours)) + 1
        else:

            def resample(site, now):
                return Gibbs(SEQUENTIAL).kernel(keys.fold(key, site), target, now)[0]

            number = jnp.sum(target.mask, dtype=jnp.int32)
        after = lax.fori_loop(0, number, resample, chain._replace(state=Counters.zero()))
        hops = jnp.sum(after.x != chain.x, dtype=jnp.float32)
        after = after._replace(state=(counters.next(self.calls_a_step), colours))
        return after, Info(jnp.float32(1), hops)
