"""A sampler of one's own that uses gains and adapts."""

import dataclasses
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from sl_discs.models import apply_flips, keys
from sl_discs.samplers import Info, Sampler, accept_or_keep, draw_site, register_sampler
from sl_discs.testing import check_sampler


class Tuned(NamedTuple):
    """Fixed dtypes, and nothing of x."""

    steps: jax.Array
    strength: jax.Array


@dataclasses.dataclass(frozen=True)
class Informed(Sampler):
    """Draws a site from softmax(strength * gains); the strength adapts to the acceptance."""

    adapts: ClassVar[str] = "strength"

    target_acceptance: float = 0.8
    adapt_until: int = 200

    def init_state(self, key, shape):
        return Tuned(jnp.int32(0), jnp.float32(0.5))

    def kernel(self, key, target, chain):
        x, field, (steps, strength) = chain

        def log_weights(x, field):
            return jax.nn.log_softmax(
                jnp.where(target.mask, strength * target.gains(x, field), -jnp.inf)
            )

        there = log_weights(x, field)
        site = draw_site(keys.fold(key, 0), jnp.exp(there))
        y = apply_flips(x, jnp.arange(target.num_sites) == site)
        field_y = target.update(x, field, y)
        back = log_weights(y, field_y)
        change = target.change(x, field, y, field_y)
        acceptance = jnp.exp(jnp.minimum(change + back[site] - there[site], 0.0))
        accepted = keys.uniforms(keys.fold(key, 1)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        # At 0.5 the proposal is balanced; above it is greedier, and more is refused.
        moved = jnp.clip(strength + 0.05 * (acceptance - self.target_acceptance), 0.5, 1.0)
        strength = jnp.where(steps < self.adapt_until, moved, strength)
        chain = chain._replace(x=x, field=field, state=Tuned(steps + 1, strength))
        return chain, Info(acceptance, jnp.float32(accepted))


register_sampler("informed", Informed)

if __name__ == "__main__":
    print(check_sampler(Informed(), warm_up=200))  # first lets the adaptation end
