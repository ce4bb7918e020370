"""DISCS's models of its sampling experiments, from which `sl_discs.run` draws.

A model has the parameters and the random state of DISCS's experiment with the same seed. Where its
log-density is quadratic in zeros and ones, engines get its coefficients, otherwise the function.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int8
from ml_collections import config_dict

from sl_discs.discs_plugin import register
from sl_discs.discs_plugin.modules import BatchModel
from sl_discs.discs_plugin.upstream import States
from sl_discs.models.functions import Density
from sl_discs.models.model import Params
from sl_discs.models.terms import Coefficients
from sl_discs.support.checks import integer
from sl_discs.support.errors import InputError

# Whole numbers, which DISCS's config of `rbm` leaves to its files.
_SIZES = ("shape", "num_visible", "num_hidden", "num_categories")
# Part of the largest gradient that single precision cannot tell from a coupling of 0.
_ROUNDING = 1e-6


class DiscsDensity(Density):
    """The log-density of a model of DISCS, whose `function` is a `BatchModel`."""

    def supported(self, states):
        """Returns states from which chains can start: all of them."""
        return states

    def arrays(self):
        """Returns the model's parameters on the host."""
        return jax.tree.map(np.asarray, self.params)

    def model(self, num_sites, asking):
        """Returns the model on a padded number of sites, which has gains for all samplers."""
        return dataclasses.replace(self.function, padding=num_sites - self.num_sites)

    def values(self, states):
        """Returns the log-density of each state."""
        init = self.function.init
        values = jax.jit(jax.vmap(lambda x: init(self.params, x).value))(states)
        return np.asarray(values, np.float64)


def coefficients_of(density: DiscsDensity) -> Coefficients:
    """Returns the coefficients of a log-density that is quadratic in zeros and ones.

    They are differences of its gradients, of which those along a site also count its square, that
    is, the site itself.
    """
    size = density.num_sites
    model: Any = density.function
    at_zero = model.init(density.params, jnp.zeros(size, jnp.int8))
    gradients = jax.lax.map(
        lambda site: model.init(density.params, jnp.zeros(size, jnp.int8).at[site].set(1)).grad,
        jnp.arange(size),
    )
    linear = np.asarray(at_zero.grad, np.float64)
    curvature = np.asarray(gradients - at_zero.grad)
    coupled = np.abs(curvature) > _ROUNDING * np.abs(gradients).max()
    edges = np.argwhere(np.triu(coupled, 1)).astype(np.int32)
    weights = curvature[tuple(edges.T)].astype(np.float64)
    return Coefficients(
        linear + np.diag(curvature) / 2, edges, weights, 1.0, constant=float(at_zero.value)
    )


class DiscsModel(NamedTuple):
    """A model of DISCS to draw from.

    Attributes:
      terms: of its log-density.
      states: that it has.
      params: DISCS's parameters.
      origin: the state from which DISCS's experiment counts distances.
    """

    terms: Coefficients | DiscsDensity
    states: States
    params: Params
    origin: Int8[np.ndarray, "N"]


def build_discs_model(fields: Mapping[str, Any], seed: int, quadratic: bool) -> DiscsModel:
    """Returns a model of DISCS.

    Args:
      fields: of its config, `name` among them; others are those of DISCS's config.
      seed: of DISCS's experiment, which is always 0 there.
      quadratic: whether the log-density is, in zeros and ones.

    Raises:
      InputError: there is no DISCS, or it cannot build the model.
    """
    for field in set(_SIZES).intersection(fields):
        sizes = fields[field]
        for size in sizes if isinstance(sizes, list | tuple) else [sizes]:
            integer(f"model_config.{field}", size, 1)
    register(compat=True)
    name = fields["name"]
    key = jax.random.PRNGKey(seed)
    try:
        config = importlib.import_module(f"discs.models.configs.{name}_config").get_config()
        if unknown := sorted(set(fields) - set(config) - set(_SIZES)):
            raise ValueError(f"it has no field {unknown[0]}")
        for field, value in fields.items():
            # DISCS's whole numbers, such as sigma of fhmm, may be real ones.
            if isinstance(value, float) and isinstance(config.get(field), int):
                config[field] = None
        config.update(fields)
        of_model = config_dict.ConfigDict({"model": config})
        inner = importlib.import_module(f"discs.models.{name}").build_model(of_model)
        params = inner.make_init_params(jax.random.split(jax.random.split(key, 3)[0], 1))
        origin = np.asarray(inner.get_init_samples(jax.random.split(key)[0], 1), np.int8).ravel()
        states = States(tuple(of_model.model.shape), of_model.model.num_categories)
        model: Any = BatchModel(inner, states)
        density = DiscsDensity(model, params, (states.num_sites,), origin[None])
        if not origin.size or not np.isfinite(density.values(origin[None])).all():
            raise ValueError("no finite log-density at a random state; check shape and numbers")
    except (
        ImportError,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        AttributeError,
    ) as error:
        raise InputError(f"model_config: DISCS cannot build its model {name}: {error}") from error
    terms = coefficients_of(density) if quadratic else density
    return DiscsModel(terms, states, params, origin)
