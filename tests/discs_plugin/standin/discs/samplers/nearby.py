"""Draws a neighbour by its ratio, for flat states alone, and accepts or rejects it; returns whatever `x` became."""

import jax
import jax.numpy as jnp

from discs.samplers import abstractsampler


class Nearby(abstractsampler.AbstractSampler):
    def step(self, model, rng, x, model_param, state, x_mask=None):
        choose, accept = jax.random.split(rng)
        value, ratios, calls, neighbor = model.logratio_in_neighborhood(model_param, x)
        site = jax.random.categorical(choose, ratios / 2)
        y = neighbor(model_param, x, site)
        new_value, new_ratios, _, _ = model.logratio_in_neighborhood(model_param, y)
        rows = jnp.arange(x.shape[0])
        there = jax.nn.log_softmax(ratios / 2)[rows, site]
        back = jax.nn.log_softmax(new_ratios / 2)[rows, site]
        log_acceptance = jnp.clip(new_value - value + back - there, a_max=0.0)
        accepted = jnp.log(jax.random.uniform(accept, (x.shape[0],))) < log_acceptance
        new_state = {"num_ll_calls": state["num_ll_calls"] + 2 * calls, "steps": state["steps"] + 1}
        return jnp.where(accepted[:, None], y, x), new_state, jnp.mean(jnp.exp(log_acceptance))


def build_sampler(config):
    return Nearby(config)
