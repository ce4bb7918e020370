"""An adaptive step size must stay finite when nothing is accepted."""

import jax
import jax.numpy as jnp
import ml_collections
from discs.models import bernoulli
from discs.samplers import dmala


def test_the_scale_is_finite():
    fields = {
        "adaptive": True,
        "target_acceptance_rate": 0.574,
        "balancing_fn_type": "SQRT",
        "schedule_step": 100,
        "reset_z_est": 20,
    }
    model_config = {"shape": (6,), "num_categories": 2, "init_sigma": 1.0}
    config = ml_collections.ConfigDict(
        {"model": model_config, "sampler": fields, "experiment": {"co_opt_prob": False}}
    )
    model, sampler = bernoulli.build_model(config), dmala.build_sampler(config)
    # At the mode of a narrow target, nearly every proposal is refused.
    params = {"params": jnp.full(6, 8.0)}
    x, state = jnp.ones((4, 6), jnp.int32), sampler.make_init_state(jax.random.key(0))
    for key in jax.random.split(jax.random.key(1), 50):
        x, state, _ = sampler.step(model, key, x, params, state)
        assert jnp.isfinite(state["log_tau"])
