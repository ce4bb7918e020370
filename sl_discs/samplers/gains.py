"""Whether a sampler asks for flip gains: for a log-density given as a function, a gradient in each step."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from sl_discs.models.general import ValueModel
from sl_discs.samplers.base import Sampler


def asks_for_gains(sampler: Sampler) -> bool:
    """Found out by tracing a step on two sites with a model that has values alone."""
    model = ValueModel(_constant, 2)
    x, mask = jnp.zeros(2, jnp.int8), jnp.ones(2, bool)
    step = functools.partial(sampler.kernel, model=model, params=(), x=x, state=sampler.init_state(2), mask=mask)
    try:
        jax.eval_shape(lambda key: step(key, field=model.init((), x)), jnp.zeros(2, jnp.uint32))
    except NotImplementedError:
        return True
    return False


def _constant(params, x):
    return jnp.float32(0)
