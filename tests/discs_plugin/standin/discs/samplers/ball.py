"""Gibbs at one site, evaluating the two states of one chain after the other; forgets its counters."""

import jax
import jax.numpy as jnp

from discs.samplers import abstractsampler


class Ball(abstractsampler.AbstractSampler):
    def step(self, model, rng, x, model_param, state, x_mask=None):
        choose, select = jax.random.split(rng)
        site = jax.random.randint(choose, (), 0, x.shape[1])

        def body(i, carry):
            x, params = carry
            both = jnp.stack([x[i], x[i].at[site].set((x[i, site] + 1) % 2)])
            values = model.forward(params, both)
            pick = jax.random.categorical(jax.random.fold_in(select, i), values)
            return x.at[i].set(both[pick]), params

        x, _ = jax.lax.fori_loop(0, x.shape[0], body, (x, model_param))
        return x, {"num_ll_calls": state["num_ll_calls"] + 2}


def build_sampler(config):
    return Ball(config)
