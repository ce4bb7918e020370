"""The interface of samplers."""

import abc

import jax.numpy as jnp


class AbstractSampler(abc.ABC):
    def __init__(self, config):
        self.shape = config.model.shape
        self.fields = config.sampler

    def make_init_state(self, rng):
        return {"num_ll_calls": jnp.zeros((), jnp.int32), "steps": jnp.zeros((), jnp.int32)}

    @abc.abstractmethod
    def step(self, model, rng, x, model_param, state, x_mask=None):
        """New states, new state, acceptance."""
