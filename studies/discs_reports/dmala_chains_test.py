"""The step of a chain must not depend on the other chains of its batch."""

import jax
import jax.numpy as jnp
import ml_collections
from discs.models import bernoulli
from discs.samplers import dmala


def test_a_chain_does_not_depend_on_its_neighbour():
    fields = {"adaptive": True, "target_acceptance_rate": 0.574, "balancing_fn_type": "SQRT"}
    model_config = {"shape": (8,), "num_categories": 2, "init_sigma": 1.0}
    config = ml_collections.ConfigDict(
        {"model": model_config, "sampler": fields, "experiment": {"co_opt_prob": True}}
    )
    model, sampler = bernoulli.build_model(config), dmala.build_sampler(config)
    params = {"params": jnp.full(8, 4.0)}
    state = sampler.make_init_state(jax.random.key(0))

    def first_chain(key, neighbour):
        x = jnp.stack([jnp.zeros(8, jnp.int32), jnp.full(8, neighbour)])
        return sampler.step(model, key, x, params, state)[0][0]

    keys = jax.random.split(jax.random.key(1), 200)
    beside = [jax.vmap(lambda key, v=v: first_chain(key, v))(keys) for v in (0, 1)]
    assert (beside[0] == beside[1]).all()
