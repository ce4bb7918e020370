"""Metropolis at one site of each chain, by gains; its scale begins as an integer and ends as a float."""

import clu.metric_writers  # noqa: F401 (as DISCS imports it)
import jax
import jax.numpy as jnp

from discs.samplers import abstractsampler


class OneSite(abstractsampler.AbstractSampler):
    def make_init_state(self, rng):
        return super().make_init_state(rng) | {"scale": jnp.zeros((), jnp.int32)}

    def step(self, model, rng, x, model_param, state, x_mask=None):
        choose, accept = jax.random.split(rng)
        flat = x.reshape(x.shape[0], -1)
        site = jax.random.randint(choose, (x.shape[0],), 0, flat.shape[1])
        rows = jnp.arange(x.shape[0])
        _, grad = model.get_value_and_grad(model_param, x)
        gain = ((1 - 2 * x) * grad).reshape(flat.shape)[rows, site]
        log_acceptance = jnp.clip(gain, a_max=0.0)
        accepted = jnp.log(jax.random.uniform(accept, (x.shape[0],))) < log_acceptance
        y = flat.at[rows, site].add(jnp.where(accepted, 1, 0)) % 2
        state = jax.tree_map(jnp.array, state)
        state["steps"] += 1
        state["num_ll_calls"] += 2
        state["scale"] = state["scale"] + 0.5
        return y.reshape(x.shape), state, jnp.mean(jnp.exp(log_acceptance))


def build_sampler(config):
    return OneSite(config)
