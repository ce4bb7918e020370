"""Numbers in double precision that are the numbers that were given."""

from typing import Any

import numpy as np
from jaxtyping import Float64

from sl_discs.support.errors import InputError


def unmasked(name: str, values: Any) -> Any:
    """Returns values without NumPy's mask; InputError where it hides some, which `np.asarray` would
    uncover.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if np.ma.is_masked(values):
        raise InputError(f"{name}: masked entries; fill them, or leave them out")
    return values.data


# Numbers in double precision that are the numbers that were given.


def exact_doubles(name: str, values: Any) -> Float64[np.ndarray, "..."]:
    """Numbers of any type as float64; InputError for a whole number beyond 2^53 that is not exact,
    or no number.
    """
    try:
        array = np.asarray(values)
        numbers = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(f"{name} holds something that is not a number; give numbers") from None
    except OverflowError:
        raise InputError(
            f"{name}: a number beyond the range of double precision; scale all of them"
        ) from None
    large = np.abs(numbers) >= 2**53
    if large.any():
        # Among fractions NumPy has rounded whole numbers already.
        array = array if isinstance(values, np.ndarray) else np.asarray(values, object)
        for value, double in zip(array[large].tolist(), numbers[large].tolist(), strict=True):
            value = value.item() if isinstance(value, np.generic) else value
            if value != double:
                raise InputError(
                    f"{name}: {value} is beyond 2^53 and not exact in double precision; scale all "
                    "of them"
                )
    return numbers
