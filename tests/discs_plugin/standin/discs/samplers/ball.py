"""Gibbs at one site of two or more values, evaluating states of one chain after the other; forgets its counters."""

import jax
import jax.numpy as jnp

from discs.samplers import abstractsampler


class Ball(abstractsampler.AbstractSampler):
    def __init__(self, config):
        super().__init__(config)
        self.num_categories = config.model.num_categories

    def step(self, model, rng, x, model_param, state, x_mask=None):
        choose, select = jax.random.split(rng)
        site = jax.random.randint(choose, (), 0, x.shape[1])

        def body(i, carry):
            x, params = carry
            others = [(x[i, site] + k) % self.num_categories for k in range(1, self.num_categories)]
            ball = jnp.stack([x[i], *(x[i].at[site].set(value) for value in others)])
            values = model.forward(params, ball)
            pick = jax.random.categorical(jax.random.fold_in(select, i), values)
            return x.at[i].set(ball[pick]), params

        x, _ = jax.lax.fori_loop(0, x.shape[0], body, (x, model_param))
        return x, {"num_ll_calls": state["num_ll_calls"] + 2}


def build_sampler(config):
    return Ball(config)
