"""With two values, the target must stay invariant."""

import itertools

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import pytest
from discs.models import bernoulli
from discs.samplers import hammingball, path_auxiliary

SAMPLERS = {
    "hammingball": (hammingball, {"block_size": 3}),
    "path_auxiliary, adaptive": (
        path_auxiliary,
        {
            "balancing_fn_type": "SQRT",
            "use_fast_path": True,
            "adaptive": True,
            "target_acceptance_rate": 0.574,
        },
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_stay_draws(name):
    module, fields = SAMPLERS[name]
    model_config = {"shape": (3,), "num_categories": 2, "init_sigma": 1.0}
    config = ml_collections.ConfigDict(
        {"model": model_config, "sampler": fields, "experiment": {"co_opt_prob": True}}
    )
    model, sampler = bernoulli.build_model(config), module.build_sampler(config)
    params = {"params": jnp.array([0.4, 1.2, -2.0])}
    states = np.array(list(itertools.product(range(2), repeat=3)))
    law = np.exp(np.asarray(model.forward(params, jnp.array(states))))
    law /= law.sum()
    # 8,000 batches of two chains, all started from the target; the noise is 0.007.
    start = states[np.random.default_rng(0).choice(8, size=(8000, 2), p=law)]

    def run(key, x):
        state = sampler.make_init_state(key)
        for one in jax.random.split(key, 20):
            x, state, _ = sampler.step(model, one, x, params, state)
        return x

    x = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(1), 8000), jnp.array(start))
    drawn = np.bincount((np.asarray(x).reshape(-1, 3) @ [4, 2, 1]).astype(int), minlength=8)
    assert 0.5 * np.abs(drawn / drawn.sum() - law).sum() < 0.015
