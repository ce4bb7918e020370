"""Independent sites; gives values and ratios, three results instead of four, and no gradient."""

import jax
import jax.numpy as jnp

from discs.models import abstractmodel


class Ratios(abstractmodel.AbstractModel):
    def forward(self, params, x):
        return x @ params["bias"]

    def logratio_in_neighborhood(self, params, x):
        return (1 - 2 * x) * params["bias"], 1, self.neighbor

    def neighbor(self, x, site):
        return x.at[jnp.arange(x.shape[0]), site].add(1) % 2

    def get_init_samples(self, rng, count):
        return jax.random.bernoulli(rng, 0.5, (count, 4)).astype(jnp.int32)


def build_model(config):
    return Ratios()
