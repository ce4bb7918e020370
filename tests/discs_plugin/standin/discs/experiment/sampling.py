"""The loop: one jitted step over all models, a temperature at each step, one results file."""

import functools
import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np


class Experiment:
    def __init__(self, config):
        self.config = config

    def get_results(self, model, sampler):
        settings = self.config.experiment
        rng = jax.random.PRNGKey(0)
        params = model.make_init_params(jax.random.split(rng, 1))
        if params is None:
            return
        models, chains = settings.num_models, settings.batch_size
        state = jax.vmap(sampler.make_init_state)(jax.random.split(rng, models))
        x = model.get_init_samples(rng, models * chains).reshape(models, chains, *self.config.model.shape)
        step = jax.jit(jax.vmap(functools.partial(sampler.step, model=model)))
        best = jnp.full(models, -jnp.inf)
        for number in range(1, settings.chain_length + 1):
            params["temperature"] = jnp.full(models, 0.1 ** (number / settings.chain_length))
            keys = jax.random.split(jax.random.fold_in(rng, number), models)
            x, state, _ = step(rng=keys, x=x, model_param=params, state=state, x_mask=None)
            values = jax.vmap(model.forward)(params, x) * params["temperature"][:, None]
            best = jnp.maximum(best, values.max(axis=1))
        assert (state["steps"] == settings.chain_length).all()
        best = np.array(best)
        path = Path(settings.save_root) / "results.pkl"
        path.write_bytes(pickle.dumps({"best_ratio": best, "best_ratio_mean": best.mean()}))
