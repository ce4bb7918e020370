"""Sites outside of x_mask must not change."""

import jax
import jax.numpy as jnp
import ml_collections
import pytest
from discs.models import bernoulli
from discs.samplers import blockgibbs, dlmc, dmala, gibbs, hammingball, randomwalk

SAMPLERS = {
    "blockgibbs": (blockgibbs, {"block_size": 2}),
    "dlmc": (dlmc, {"adaptive": False, "balancing_fn_type": "SQRT"}),
    "dmala": (dmala, {"adaptive": False, "balancing_fn_type": "SQRT"}),
    "gibbs": (gibbs, {}),
    "hammingball": (hammingball, {"block_size": 3}),
    "randomwalk": (randomwalk, {"adaptive": False, "target_acceptance_rate": 0.574}),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_masked_sites_stay(name):
    module, fields = SAMPLERS[name]
    model_config = {"shape": (6,), "num_categories": 2, "init_sigma": 1.0}
    config = ml_collections.ConfigDict(
        {"model": model_config, "sampler": fields, "experiment": {"co_opt_prob": True}}
    )
    model, sampler = bernoulli.build_model(config), module.build_sampler(config)
    params = {"params": jnp.zeros(6)}
    mask = jnp.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    x, state = jnp.zeros((4, 6), jnp.int32), sampler.make_init_state(jax.random.key(0))
    for key in jax.random.split(jax.random.key(1), 60):
        x, state, _ = sampler.step(model, key, x, params, state, mask)
        assert not x[:, 3:].any()
