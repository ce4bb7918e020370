"""A sampler of one's own that flips one or two sites."""

import dataclasses

import jax.numpy as jnp

from sl_discs.models import apply_flips, keys
from sl_discs.samplers import Info, Sampler, accept_or_keep, draw_site, register_sampler
from sl_discs.testing import check_sampler


@dataclasses.dataclass(frozen=True)
class OneOrTwo(Sampler):
    """Flips one or two uniformly drawn sites, by Metropolis's rule."""

    two: float = 0.5  # a field with a default is a setting: sampler_config.two

    def init_state(self, key, shape):
        return ()  # nothing adapts

    def kernel(self, key, target, chain):
        x, field, _ = chain
        sites = jnp.arange(target.num_sites)
        # Sites outside the mask are padding: they have weight 0 and never flip.
        first, second = (
            draw_site(keys.fold(key, i), target.mask.astype(jnp.float32)) for i in (0, 1)
        )
        pair = keys.uniforms(keys.fold(key, 2)) < self.two
        flips = (sites == first) | (pair & (sites == second))
        y = apply_flips(x, flips)
        field_y = target.update(x, field, y)
        # The proposal is symmetric, so the change of log-density decides alone.
        acceptance = jnp.exp(jnp.minimum(target.change(x, field, y, field_y), 0.0))
        accepted = keys.uniforms(keys.fold(key, 3)) < acceptance
        x, field = accept_or_keep(accepted, (y, field_y), (x, field))
        hops = jnp.where(accepted, jnp.sum(flips, dtype=jnp.float32), 0.0)
        return chain._replace(x=x, field=field), Info(acceptance, hops)


register_sampler("one_or_two", OneOrTwo)

if __name__ == "__main__":
    # A quarter of a minute; not where a command imports the file.
    print(check_sampler(OneOrTwo()))
