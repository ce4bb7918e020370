"""Denoising schedules alpha(t) of the observation process Y_t = alpha(t) X + sigma B_t.

In the paper (Wang et al., ICML 2025), GEOM(a, b)(t) = t^(a/2) (1 - t)^(-b/2) denotes alpha itself. In SLIPS (Grenioux
et al. 2024), Geom denotes the factor g of alpha(t) = sqrt(t) g(t), so the paper's GEOM(2, 1) is SLIPS's Geom(1, 1).
The names here are those of the paper.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float64

from sl_discs.errors import InputError


@dataclasses.dataclass(frozen=True)
class Classic:
    """alpha(t) = t on [0, horizon]: the original process of Eldan, El Alaoui and Montanari."""

    horizon: float = 1.0

    def __post_init__(self):
        if not (np.isfinite(self.horizon) and self.horizon > 0):
            raise InputError(
                f"sampler_config.horizon is {self.horizon}; the classic schedule needs a finite one above 0"
            )

    def value(self, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
        """alpha(t)."""
        return np.asarray(t, np.float64)

    def derivative(self, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
        """alpha'(t)."""
        return np.ones_like(np.asarray(t, np.float64))


@dataclasses.dataclass(frozen=True)
class Geometric:
    """alpha(t) = t^(a/2) (1 - t)^(-b/2) on [0, 1)."""

    a: float = 2.0
    b: float = 1.0

    def __post_init__(self):
        if not (1 <= self.a < np.inf and 0 <= self.b < np.inf) or (self.a == 1 and self.b == 0):
            raise InputError(
                f"sampler_config.alpha is geom({self.a:g},{self.b:g}); expected a >= 1 and b >= 0, not both at the "
                "bound, so that alpha^2/t grows"
            )

    @property
    def horizon(self) -> float:
        """1: alpha grows without bound towards it when b > 0."""
        return 1.0

    def value(self, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
        """alpha(t)."""
        t = np.asarray(t, np.float64)
        return np.asarray(t ** (self.a / 2) * (1 - t) ** (-self.b / 2))

    def derivative(self, t: Float64[np.ndarray, "*s"]) -> Float64[np.ndarray, "*s"]:
        """alpha'(t) = alpha(t) (a/(2t) + b/(2(1 - t)))."""
        t = np.asarray(t, np.float64)
        return np.asarray(self.value(t) * (self.a / (2 * t) + self.b / (2 * (1 - t))))


Alpha = Classic | Geometric


def parse_alpha(text: str, horizon: float = 1.0) -> Alpha:
    """`classic`, or `geom(a,b)` in any case.

    Args:
      text: the name, such as `geom(2,1)`.
      horizon: end of time for `classic`; geom always ends at 1.

    Raises:
      InputError: the name is unknown, or a number is out of range.
    """
    name = text.replace(" ", "").lower()
    if name == "classic":
        return Classic(horizon)
    if name.startswith("geom(") and name.endswith(")"):
        try:
            a, b = (float(part) for part in name[len("geom(") : -1].split(","))
        except ValueError:
            pass
        else:
            if horizon != 1:
                raise InputError(
                    f"sampler_config.horizon is {horizon}, but {text} ends at 1; leave it at 1, or choose "
                    "alpha=classic"
                )
            return Geometric(a, b)
    raise InputError(f"sampler_config.alpha is {text!r}; known: classic, geom(a,b) such as geom(2,1)")
