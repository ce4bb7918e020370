"""Gibbs sampling of one colour after the other: sites that are not coupled change together."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from sl_discs.models import keys
from sl_discs.models.batching import batch_max, cond_for_batch
from sl_discs.models.model import Target, apply_flips
from sl_discs.models.quadratic import QuadraticModel
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.sampler import Counters, Info, Sampler
from sl_discs.samplers.single_site import SEQUENTIAL, Gibbs
from sl_discs.support.errors import InputError


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

    Attributes:
      colours: a number for each site, another one where two are coupled; empty: those of
        `greedy_colours`.
    """

    is_sweep = True

    colours: tuple = ()

    @property
    def reversible(self):
        return False

    def check_terms(self, terms):
        """Raises InputError unless there is a colour for each site of quadratic terms, which no two
        coupled ones share, or none at all.
        """
        colours = np.array(self.colours)
        if self.colours and (
            not isinstance(terms, Coefficients)
            or colours.dtype != int
            or colours.shape != terms.linear.shape
            or 0 in np.diff(colours[terms.listed().edges])
        ):
            raise InputError(
                "sampler_config.colours are not a whole number for each variable of a quadratic "
                "model, which no two that are coupled share; correct them, or leave them out",
                "colours",
            )

    def init_state(self, key, shape):
        """Returns counters, and the colours, which the first step finds unless they are given."""
        given = np.unique_inverse(self.colours).inverse_indices
        return Counters(), jnp.zeros(shape[0], jnp.int32).at[: len(given)].set(given)

    def kernel(self, key, target, chain):
        counters, colours = chain.state
        if isinstance(target.model, QuadraticModel):
            if not self.colours:
                colours = cond_for_batch(
                    counters.steps == 0, greedy_colours, colours, target.tilted(None)
                )
            uniforms = keys.uniforms(key, chain.x.shape)

            def resample(colour, now):
                flips = uniforms < jax.nn.sigmoid(target.gains(now.x, now.field))
                x = apply_flips(now.x, flips & (colours == colour) & target.mask)
                return now._replace(x=x, field=target.init(x))

            number = batch_max(colours.max()) + 1
        else:

            def resample(site, now):
                return Gibbs(SEQUENTIAL).kernel(keys.fold(key, site), target, now)[0]

            number = target.mask.sum(dtype=jnp.int32)
        after = lax.fori_loop(0, number, resample, chain._replace(state=Counters()))
        hops = (after.x != chain.x).sum(dtype=jnp.float32)
        state = Counters(counters.steps + 1), colours
        return after._replace(state=state), Info(jnp.float32(1), hops)
