"""Any model at a temperature, with the linear tilt of stochastic localization."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from sl_discs.models.base import Change, Model, Params, sum_over_flips


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
    def num_sites(self) -> int:
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
        gains = self.base.gains(params.base, x, field)
        if params.tilt is not None:
            # Divided last: XLA repeats what follows a division in every kernel that reads the gains.
            gains = gains + 2 * params.temperature * jnp.where(x > 0, -1.0, 1.0) * params.tilt
        return gains / params.temperature

    def flip(self, params, x, field, flips):
        """The base model's flip."""
        return self.base.flip(params.base, x, field, flips)

    def change(self, params, x, before, flips, after):
        """Change of f/tau plus the tilt's change at the flipped sites."""
        change = self.change_in_parts(params, x, before, flips, after)
        return change.common if change.of_sites is None else change.common + sum_over_flips(flips, change.of_sites)

    def change_in_parts(self, params, x, before, flips, after):
        """Change of f/tau; apart from it that of the tilt, site by site."""
        change = self.base.change(params.base, x, before, flips, after) / params.temperature
        if params.tilt is None:
            return Change(change)
        return Change(change, lambda sites: 2 * jnp.where(x[sites] > 0, -params.tilt[sites], params.tilt[sites]))
