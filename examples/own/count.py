"""A model of one's own: the law of 12 coins, weighted by their number of ones."""

import jax
import jax.numpy as jnp
import numpy as np

from sl_discs.models import Model
from sl_discs.models.keys import Stream, chain_keys
from sl_discs.samplers import Chain
from sl_discs.samplers.single_site import Gibbs


class Count(Model):
    """f(x) = params[number of ones]; the field is that number."""

    def __init__(self, num_sites):
        self.num_sites = num_sites

    def init(self, params, x):
        return x.sum(dtype=jnp.int32)

    def value(self, params, x, field):
        return params[field]

    def gains(self, params, x, field):
        return params[field + 1 - 2 * x.astype(jnp.int32)] - params[field]


params = -0.5 * (jnp.arange(13.0) - 6) ** 2
target, sampler = Count(12).target(params, jnp.ones(12, bool)), Gibbs()


@jax.jit
def one_chain(root):
    """Returns the number of ones after each step."""
    x = jnp.zeros(12, jnp.int8)
    chain = Chain(x, target.init(x), sampler.init_state(root, x.shape))

    def step(chain, number):
        chain, _ = sampler.kernel(sampler.step_key(root, number), target, chain)
        return chain, chain.field

    return jax.lax.scan(step, chain, jnp.arange(2_000))[1]


[roots] = chain_keys(0, Stream.MCMC, np.arange(1), 100)
ones = jax.vmap(one_chain)(roots)[:, 200:]
print(ones.mean(), ones.var())
