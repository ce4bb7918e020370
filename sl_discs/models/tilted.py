"""Any model at a temperature, with the linear tilt of stochastic localization."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from sl_discs.models.base import Model, Params
from sl_discs.models.sites import Sites


class TiltedParams(NamedTuple):
    """Parameters of exp(f(x)/temperature + <spins, tilt>); a tilt of None means zero."""

    base: Params
    temperature: Float[Array, ""]
    tilt: Float[Array, "N *q"] | None = None


@dataclasses.dataclass(frozen=True)
class Tilted(Model):
    """q(x) proportional to exp(f(x)/tau + <s, h>), s the spins: with s = 2x - 1 a flip gains d_i/tau - 2 s_i h_i.

    The tilt is linear whatever f is, so every model can be localized. The field is the base model's.
    """

    base: Model

    @property
    def num_sites(self) -> int:  # type: ignore[override]  # a field of other models
        """N of the base model."""
        return self.base.num_sites

    @property
    def sites(self) -> Sites:  # type: ignore[override]  # a field of other models
        """Those of the base model."""
        return self.base.sites

    def init(self, params, x):
        """The base model's field."""
        return self.base.init(params.base, x)

    def value(self, params, x, field):
        """f(x)/tau + <s, h>."""
        value = self.base.value(params.base, x, field) / params.temperature
        if params.tilt is None:
            return value
        return value + jnp.sum(self.sites.spins(x) * params.tilt)

    def gains(self, params, x, field):
        """Gains of f over tau, plus those of the tilt."""
        gains = self.base.gains(params.base, x, field) / params.temperature
        return gains if params.tilt is None else gains + self.sites.tilt_gains(x, params.tilt)

    def flip(self, params, x, field, flips):
        """The base model's flip."""
        return self.base.flip(params.base, x, field, flips)

    def change(self, params, x, before, flips, after):
        """Change of f/tau plus the tilt's change."""
        change = self.base.change(params.base, x, before, flips, after) / params.temperature
        if params.tilt is None:
            return change
        return change + self.sites.tilt_change(x, params.tilt, flips)

    def coupled(self, params, site):
        """Those of the base model, as a tilt is linear."""
        return self.base.coupled(params.base, site)

    def largest_neighbour(self, params, values):
        """That of the base model."""
        return self.base.largest_neighbour(params.base, values)

    def draw_coupled(self, params, key):
        """Of the base model, with variances over the temperature."""
        drawn, variances = self.base.draw_coupled(params.base, key)
        return drawn / jnp.sqrt(params.temperature), variances / params.temperature
