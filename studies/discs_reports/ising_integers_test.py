"""Integer states must have the log-likelihood of the same states as floats."""

import jax
import jax.numpy as jnp
import ml_collections
from discs.models import ising


def test_integers_are_as_good_as_floats():
    fields = {"shape": (4, 4), "num_categories": 2, "lambdaa": 0.5, "mu": 0.5, "init_sigma": 1.5}
    model = ising.build_model(ml_collections.ConfigDict({"model": fields}))
    params = model.make_init_params(jax.random.key(0))
    x = model.get_init_samples(jax.random.key(1), 8)
    floats = model.forward(params, x.astype(jnp.float32))
    assert jnp.allclose(model.forward(params, x), floats, atol=1e-4)
