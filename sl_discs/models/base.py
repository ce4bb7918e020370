"""The model interface: a log-density with gains of all alternatives, and cheap updates after moves; and the target of
a kernel: a model with its parameters, temperature, tilt and mask.

All methods are written for one state; callers map them over chains and instances.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, Num

from sl_discs.batching import AnyArray
from sl_discs.models.sites import Sites

Params = Any
Field = Any


class Model(abc.ABC):
    """A target log f(x), up to a constant, on x in {0,1}^N, or on sites of several values.

    `init` computes a field: any data that the model keeps with x to make the other methods cheap.

    Attributes:
      num_sites: N.
      sites: their values. Where they have more than two, gains are [N, q].
    """

    num_sites: int
    sites: Sites = Sites()

    @abc.abstractmethod
    def init(self, params: Params, x: Int8[Array, "N"]) -> Field:
        """Returns the field at x, computed from scratch."""

    def fields_on_host(self, params: Params, x: Int8[np.ndarray, "G B N"]) -> Field | None:
        """Returns the fields of many chains of G instances by NumPy; None where the model only computes with JAX."""
        return None

    @abc.abstractmethod
    def value(self, params: Params, x: Int8[Array, "N"], field: Field) -> Float[Array, ""]:
        """Returns f(x)."""

    @abc.abstractmethod
    def gains(self, params: Params, x: Int8[Array, "N"], field: Field) -> Float[Array, "N *q"]:
        """Returns f(x with site i flipped) - f(x) for every i, exact for multilinear f, otherwise to first order.

        With several values: of site i set to v, for every i and v. `gibbs` then relies on them to be exact.
        """

    def update(self, params: Params, x: Int8[Array, "N"], field: Field, y: Int8[Array, "N"]) -> Field:
        """Returns the field at y, given that at x: computed from scratch, unless a model knows better."""
        return self.init(params, y)

    def change(
        self, params: Params, x: Int8[Array, "N"], before: Field, y: Int8[Array, "N"], after: Field
    ) -> Float[Array, ""]:
        """Returns f(y) - f(x), where a model can without the cancellation of subtracting two values."""
        return self.value(params, y, after) - self.value(params, x, before)

    def coupled(self, params: Params, site: Int[Array, ""]) -> Bool[Array, "N"]:
        """Returns the other sites whose gains may depend on this one, and this one's on theirs; all, unless known."""
        return jnp.arange(self.num_sites) != site

    def target(self, params: Params, mask: Bool[AnyArray, "N"]) -> Target:
        """Returns the distribution exp(f) over the sites of the mask."""
        return Target(self, params, jnp.float32(1), mask)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Target:
    """The distribution q(x) ~ exp(f(x)/temperature + <s, tilt>) that a kernel samples from, s the spins of x.

    With s = 2x - 1 a flip gains d_i/temperature - 2 s_i tilt_i. The tilt is linear whatever f is, so every model can
    be localized. The field is the model's.

    Attributes:
      model: of f; static.
      params: of the model.
      temperature: above 0, or infinite.
      mask: [N] sites that may change; the others exist for padding, or are held.
      tilt: of the spins, [N] or [N, q]; None for zero.
    """

    model: Model = dataclasses.field(metadata={"static": True})
    params: Params
    temperature: Any
    mask: Any
    tilt: Any = None

    def tilted(self, tilt: Float[Array, "N *q"] | None) -> Target:
        """This target with another tilt."""
        return dataclasses.replace(self, tilt=tilt)

    def masked(self, mask: Bool[AnyArray, "N"]) -> Target:
        """This target with another mask."""
        return dataclasses.replace(self, mask=mask)

    @property
    def sites(self) -> Sites:
        """Their values."""
        return self.model.sites

    @property
    def num_sites(self) -> int:
        """N."""
        return self.model.num_sites

    def init(self, x: Int8[Array, "N"]) -> Field:
        """Returns the field at x, computed from scratch."""
        return self.model.init(self.params, x)

    def value(self, x: Int8[Array, "N"], field: Field) -> Float[Array, ""]:
        """Returns log q(x), up to a constant."""
        value = self.model.value(self.params, x, field) / self.temperature
        return value if self.tilt is None else value + jnp.sum(self.sites.spins(x) * self.tilt)

    def gains(self, x: Int8[Array, "N"], field: Field) -> Float[Array, "N *q"]:
        """Returns the change of log q by each alternative, as `Model.gains`."""
        gains = self.model.gains(self.params, x, field) / self.temperature
        return gains if self.tilt is None else gains + self.sites.tilt_gains(x, self.tilt)

    def update(self, x: Int8[Array, "N"], field: Field, y: Int8[Array, "N"]) -> Field:
        """Returns the field at y, given that at x."""
        return self.model.update(self.params, x, field, y)

    def change(self, x: Int8[Array, "N"], before: Field, y: Int8[Array, "N"], after: Field) -> Float[Array, ""]:
        """Returns log q(y) - log q(x); at infinite temperature f does not count, even if it is -inf."""
        change = self.model.change(self.params, x, before, y, after) / self.temperature
        change = jnp.where(jnp.isinf(self.temperature), 0.0, change)
        return change if self.tilt is None else change + self.sites.tilt_change(x, self.tilt, y)

    def coupled(self, site: Int[Array, ""]) -> Bool[Array, "N"]:
        """Returns the sites whose gains depend on a site, see `Model.coupled`."""
        return self.model.coupled(self.params, site)


class TargetModel:
    """Targets in DISCS's calling convention: a model of batches of states, whose parameters are a `Target`."""

    def target(self, params: Target, mask: Bool[AnyArray, "N"]) -> Target:
        """Returns the target itself, with this mask."""
        return params.masked(mask)

    def forward(self, params: Target, x: Num[Array, "B N"]) -> Float[Array, "B"]:
        """Returns log q of each state of a batch, up to a constant."""
        return jax.vmap(lambda x: params.value(x, params.init(x)))(x.astype(jnp.int8))

    def get_value_and_grad(
        self, params: Target, x: Num[Array, "B N"]
    ) -> tuple[Float[Array, "B"], Float[Array, "B N *q"]]:
        """Returns `forward`, and a vector with the gains of each state as `Sites.gradient`."""

        def one(x):
            field = params.init(x)
            return params.value(x, field), params.sites.gradient(x, params.gains(x, field))

        return jax.vmap(one)(x.astype(jnp.int8))
