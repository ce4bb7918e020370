"""A small residual convolutional energy of binary images, in flax."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float

try:
    from flax import linen
except ImportError as error:
    raise ImportError("this energy needs flax; install it with: pip install -e '.[energy]' in the clone") from error


class ResidualEnergy(linen.Module):
    """A log-density up to a constant: a bias of each pixel, and a sum over pixels of features of residual blocks.

    The module is a frozen dataclass, so `module.apply` is a function of (params, x) for `sl_discs.from_log_density`.

    Attributes:
      channels: of each convolution, 3 x 3.
      blocks: number of residual blocks, of two convolutions each.
    """

    channels: int = 8
    blocks: int = 2

    @linen.compact
    def __call__(self, x: Float[Array, "height width"]) -> Float[Array, ""]:
        """log p(x) up to a constant."""
        bias = self.param("bias", linen.initializers.zeros, x.shape)
        features = self._convolution()((2 * x - 1)[..., None])
        for _ in range(self.blocks):
            inner = self._convolution()(jax.nn.swish(features))
            features += self._convolution()(jax.nn.swish(inner))
        weights = self.param("weights", linen.initializers.normal(0.1), (self.channels,))
        return (bias * x).sum() + (jax.nn.swish(features) @ weights).sum()

    def _convolution(self) -> linen.Conv:
        return linen.Conv(self.channels, (3, 3))
