"""The states of DISCS's models and samplers, and the spins of them that localization observes.

Sites of two values are zeros and ones. Sites of q > 2 values are integers 0 .. q - 1, which DISCS's informed samplers
turn into one-hot vectors before they call a model. `coordinates` are what models differentiate: zeros and ones, or
one-hot vectors.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

from sl_discs.models.sites import SPIN_LENGTH


@dataclasses.dataclass(frozen=True)
class States:
    """Batches of states with q values at each site.

    Spins are 2x - 1 for two values, and otherwise those of `models.sites.Categories`: centred one-hot vectors of
    length sqrt(2). Both are `scale` (z - 1/q) for coordinates z.

    Attributes:
      shape: of one state, in integers.
      num_values: q.
    """

    shape: tuple[int, ...]
    num_values: int = 2

    @property
    def several(self) -> bool:
        """Whether sites have more than two values."""
        return self.num_values > 2

    @property
    def scale(self) -> float:
        """The derivative of a spin with respect to its coordinate."""
        return SPIN_LENGTH if self.several else 2.0

    @property
    def spin_shape(self) -> tuple[int, ...]:
        """Shape of the spins and coordinates of one state."""
        return (*self.shape, self.num_values) if self.several else self.shape

    def coordinates(self, x: Num[Array, "M *any"]) -> Num[Array, "M *spin_shape"]:
        """Of states in integers; of coordinates, the same."""
        if not self.several or x.ndim > 1 + len(self.shape):
            return x
        return jax.nn.one_hot(x, self.num_values, dtype=jnp.float32)

    def integers(self, x: Num[Array, "M *any"]) -> Num[Array, "M *shape"]:
        """Of states in coordinates; of integers, the same."""
        if not self.several or x.ndim == 1 + len(self.shape):
            return x
        return jnp.argmax(x, axis=-1).astype(jnp.int32)

    def spins(self, x: Num[Array, "M *any"]) -> Float[Array, "M *spin_shape"]:
        """Of states in integers or coordinates."""
        return self.scale * (self.coordinates(x) - 1 / self.num_values)

    def decode(self, y: Float[Array, "M *spin_shape"]) -> Int[Array, "M *shape"]:
        """The states, in integers, whose spins are closest to an observation with alpha > 0."""
        return (jnp.argmax(y, axis=-1) if self.several else y > 0).astype(jnp.int32)

    def over_values(self, sites: Num[Array, "*shape"] | Bool[Array, "*shape"]) -> Array:
        """An array over sites, with the axes of coordinates."""
        return sites[..., None] if self.several else sites

    def gains(self, z: Num[Array, "M *spin_shape"], gradient: Float[Array, "M *spin_shape"]) -> Array:
        """What each alternative adds to a function that is linear in each site and has this gradient."""
        if self.several:
            return gradient - jnp.sum(gradient * z, axis=-1, keepdims=True)
        return (1 - 2 * z) * gradient

    def gradient(self, z: Num[Array, "M *spin_shape"], gains: Float[Array, "M *spin_shape"] | float) -> Array:
        """A gradient with these gains."""
        return (1 - (1 if self.several else 2) * z) * gains

    def neighbour(self, x: Num[Array, "M *shape"], place: Int[Array, "M"]) -> Num[Array, "M *shape"]:
        """x with one site changed, which is numbered as the entry of the flattened coordinates that is turned on.

        With two values, the entry is flipped.
        """
        flat = x.reshape(x.shape[0], -1)
        rows = jnp.arange(x.shape[0])
        site, value = jnp.divmod(place, self.num_values) if self.several else (place, 1 - flat[rows, place])
        return flat.at[rows, site].set(value).reshape(x.shape)

    # A state may carry the number of its chain in the upper digits of its sites. A sampler that changes sites by
    # arithmetic modulo q does not affect the tags of the other sites.

    def tag(self, x: Int[Array, "B *shape"]) -> Int[Array, "B *shape"]:
        """x with each chain's number added to its sites."""
        chains = jnp.arange(x.shape[0], dtype=x.dtype).reshape(-1, *(1,) * (x.ndim - 1))
        return x + self.num_values * chains

    def untag(self, x: Int[Array, "M *shape"]) -> Int[Array, "M *shape"]:
        """The values of tagged states."""
        return x % self.num_values

    def tagged_chain(self, x: Int[Array, "M *shape"]) -> Int[Array, "M"]:
        """The chains of tagged states."""
        return jnp.max((x // self.num_values).reshape(x.shape[0], -1), axis=1)
