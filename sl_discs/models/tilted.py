"""Any model at a temperature, with the linear tilt of stochastic localization."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int8

from sl_discs.models.base import Model, Params


class TiltedParams(NamedTuple):
    """Parameters of exp(f(x)/temperature + <2x - 1, tilt>); a tilt of None means zero."""

    base: Params
    temperature: Float[Array, ""]
    tilt: Float[Array, "N"] | None = None


@dataclasses.dataclass(frozen=True)
class Tilted(Model):
    """q(x) proportional to exp(f(x)/tau + <s, h>) with s = 2x - 1: the gain of a flip is d_i/tau - 2 s_i h_i.

    The tilt is linear whatever f is, so every model can be localized. The field is the base model's.
    """

    base: Model

    @property
    def num_sites(self) -> int:  # type: ignore[override]  # a field of other models
        """N of the base model."""
        return self.base.num_sites

    def init(self, params, x):
        """The base model's field."""
        return self.base.init(params.base, x)

    def value(self, params, x, field):
        """f(x)/tau + <2x - 1, h>."""
        value = self.base.value(params.base, x, field) / params.temperature
        if params.tilt is None:
            return value
        return value + jnp.sum(jnp.where(x > 0, params.tilt, -params.tilt))

    def gains(self, params, x, field):
        """d/tau - 2 s h."""
        gains = self.base.gains(params.base, x, field) / params.temperature
        return gains if params.tilt is None else gains + _tilt_gains(x, params.tilt)

    def flip(self, params, x, field, flips):
        """The base model's flip."""
        return self.base.flip(params.base, x, field, flips)

    def change(self, params, x, before, flips, after):
        """Change of f/tau plus the tilt's change at the flipped sites."""
        change = self.base.change(params.base, x, before, flips, after) / params.temperature
        if params.tilt is None:
            return change
        return change + jnp.sum(jnp.where(flips, _tilt_gains(x, params.tilt), 0.0))

    def coupled(self, params, site):
        """Those of the base model, as a tilt is linear."""
        return self.base.coupled(params.base, site)

    def largest_neighbour(self, params, values):
        """That of the base model."""
        return self.base.largest_neighbour(params.base, values)


def _tilt_gains(x: Int8[Array, "N"], tilt: Float[Array, "N"]) -> Float[Array, "N"]:
    """-2 s h, the change of <s, h> by each flip."""
    return 2 * jnp.where(x > 0, -tilt, tilt)
