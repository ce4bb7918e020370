"""Arguments of the wrong shape are refused while tests run; see conftest.py."""

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

from sl_discs.localization.schedule import Geometric
from sl_discs.models.model import apply_flips


def test_a_shape_that_would_be_broadcast_is_refused():
    state = jnp.zeros(3, jnp.int8)
    assert apply_flips(state, jnp.ones(3, bool)).all()
    with pytest.raises(TypeCheckError, match="flips"):
        apply_flips(state, jnp.ones(1, bool))


def test_an_array_of_another_dtype_is_refused():
    with pytest.raises(TypeCheckError, match="Float64"):
        Geometric().value(np.ones(2, np.float32))
