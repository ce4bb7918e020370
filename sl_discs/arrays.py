"""The type of arrays that are NumPy's on the host and JAX's in a computation."""

import jax
import numpy as np

AnyArray = jax.Array | np.ndarray
