"""A chain of coupled sites, one graph or several, that gives values and gradients."""

import jax
import jax.numpy as jnp
import pickle5  # noqa: F401 (as DISCS imports it)

from discs.models import abstractmodel


class Pairs(abstractmodel.AbstractModel):
    def __init__(self, config):
        self.shape = config.model.shape
        self.batches = iter([config.experiment.num_models])

    def make_init_params(self, rng):
        count = next(self.batches, None)
        if count is None:
            return None
        bias = jax.random.normal(rng, self.shape)
        return {"bias": jnp.stack([bias] * count), "temperature": jnp.ones(count)}

    def get_init_samples(self, rng, count):
        return jax.random.bernoulli(rng, 0.5, (count, *self.shape)).astype(jnp.int32)

    def forward(self, params, x):
        flat, bias = x.reshape(x.shape[0], -1), params["bias"].reshape(-1)
        return (flat @ bias - jnp.sum(flat[:, 1:] * flat[:, :-1], axis=1)) / params["temperature"]

    def get_value_and_grad(self, params, x):
        x = x.astype(jnp.float32)
        return self.forward(params, x), jax.grad(lambda z: jnp.sum(self.forward(params, z)))(x)


def build_model(config):
    return Pairs(config)
