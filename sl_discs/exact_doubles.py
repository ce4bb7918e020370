"""Numbers in double precision that are the numbers that were given."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.errors import InputError


def exact_doubles(name: str, values: Any) -> Float64[np.ndarray, "..."]:
    """Numbers of any type in an array of any shape.

    Args:
      name: of the values, for the message.
      values: an array, or what NumPy makes an array of.

    Raises:
      InputError: they are not numbers, or there is a whole number beyond 2^53 that is not exact in double precision.
    """
    try:
        given = np.asarray(values)
        numbers = given.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(f"{name} holds something that is not a number; give numbers") from None
    except OverflowError:
        raise InputError(f"{name}: a number beyond the range of double precision; scale all of them") from None
    large = np.abs(numbers) >= 2**53
    if large.any():
        # Among fractions NumPy has rounded whole numbers already.
        given = given if isinstance(values, np.ndarray) else np.asarray(values, object)
        for value, number in zip(given[large].tolist(), numbers[large].tolist(), strict=True):
            value = value.item() if isinstance(value, np.generic) else value
            if value != number:
                raise InputError(
                    f"{name}: {value} is beyond 2^53 and not exact in double precision; scale all of them"
                )
    return numbers
