"""With three values, a fixed number of flips must leave the target invariant."""

import itertools

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import pytest
from discs.models import categorical
from discs.samplers import gwg, path_auxiliary

SAMPLERS = {
    "gwg": (gwg, {"balancing_fn_type": "SQRT"}),
    "path_auxiliary": (
        path_auxiliary,
        {"balancing_fn_type": "SQRT", "num_flips": 1, "use_fast_path": True},
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_stay_draws(name):
    module, fields = SAMPLERS[name]
    model_config = {"shape": (2,), "num_categories": 3, "init_sigma": 1.0}
    config = ml_collections.ConfigDict(
        {"model": model_config, "sampler": fields, "experiment": {"co_opt_prob": True}}
    )
    model, sampler = categorical.build_model(config), module.build_sampler(config)
    params = {"params": jnp.array([[0.0, 1.0, 2.0], [1.5, 0.0, -1.0]])}
    states = np.array(list(itertools.product(range(3), repeat=2)))
    law = np.exp(np.asarray(model.forward(params, jnp.array(states))))
    law /= law.sum()
    # 4,000 batches of four chains, all started from the target.
    start = states[np.random.default_rng(0).choice(9, size=(4000, 4), p=law)]

    def run(key, x):
        state = sampler.make_init_state(key)
        for one in jax.random.split(key, 8):
            x, state, _ = sampler.step(model, one, x, params, state)
        return x

    x = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(1), 4000), jnp.array(start))
    drawn = np.bincount((np.asarray(x).reshape(-1, 2) @ [3, 1]).astype(int), minlength=9)
    assert 0.5 * np.abs(drawn / drawn.sum() - law).sum() < 0.02
