"""The locally balanced sampler must run on the models that have the ratios it needs."""

import jax
import jax.numpy as jnp
import ml_collections
from discs.models import bernoulli
from discs.samplers import locallybalanced


def test_a_step_runs():
    model_config = {"shape": (5,), "num_categories": 2, "init_sigma": 1.0}
    fields = {"balancing_fn_type": "SQRT"}
    config = ml_collections.ConfigDict({"model": model_config, "sampler": fields})
    model, sampler = bernoulli.build_model(config), locallybalanced.build_sampler(config)
    state = sampler.make_init_state(jax.random.key(0))
    params = {"params": jnp.zeros(5)}
    x = jnp.zeros((3, 5), jnp.int32)
    y = sampler.step(model, jax.random.key(1), x, params, state)[0]
    assert y.shape == x.shape
