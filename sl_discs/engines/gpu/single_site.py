"""One step of gibbs or metropolis: the mathematics of `sl_discs.samplers.single_site`."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from sl_discs.engines.gpu.steps import Adapting, decide
from sl_discs.engines.gpu.target import State, Target, add_row, gains
from sl_discs.engines.gpu.vectors import Words, draw_site, pick, uniform
from sl_discs.samplers.base import Info
from sl_discs.samplers.single_site import SingleSiteSampler


def step(
    sampler: SingleSiteSampler, key: Words, target: Target, state: State, adapting: Adapting
) -> tuple[State, Float[Array, ""], Info]:
    """Tries to flip one uniformly drawn site; arguments and results as in `path.step`.

    A row of K is read only for an accepted flip.
    """
    equal = target.mask.astype(jnp.float32)
    site = draw_site(uniform(key, 0), equal, jnp.cumsum(equal), jnp.sum(equal))
    here = target.sites() == site
    acceptance = sampler.acceptance(pick(gains(target, state.spins, state.coupled), here), 0.0)
    delta = jnp.where(here, -state.spins, 0.0)
    proposed = State(
        state.spins + 2 * delta,
        state.coupled,
        state.linear + jnp.sum(delta * target.linear),
        state.pairs + jnp.sum(delta * state.coupled),
    )
    before = state.spins
    state, info = decide(key, acceptance, proposed, state, jnp.float32(1))
    coupled = lax.cond(
        info.hops > 0,
        lambda coupled: add_row(target, before, coupled, site, here),
        lambda coupled: coupled,
        state.coupled,
    )
    return state._replace(coupled=coupled), adapting.scale, info
