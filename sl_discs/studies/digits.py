"""A restricted Boltzmann machine fitted to the digits that ship with scikit-learn."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from sl_discs.errors import InputError
from sl_discs.testing.truth import Truth
from sl_discs.testing.truths_of_machines import boltzmann_machine

# A pixel with a value in 0 .. 16 is on if it is above this.
_ON = 7
_BATCH, _RATE = 64, 0.1


def digits_machine(hidden: int, seed: int, epochs: int = 200) -> Truth:
    """The known quantities of a machine with 64 pixels and a few hidden units after `epochs` of training.

    Raises:
      InputError: scikit-learn is not installed, or there are too many hidden units to enumerate.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise InputError("the digits need scikit-learn; install it with: pip install scikit-learn") from None
    return boltzmann_machine(*fit(load_digits().data > _ON, hidden, seed, epochs))


def fit(
    data: np.ndarray, hidden: int, seed: int, epochs: int
) -> tuple[Float64[np.ndarray, "V H"], Float64[np.ndarray, "V"], Float64[np.ndarray, "H"]]:
    """Weights and biases of a machine fitted by persistent contrastive divergence (Tieleman 2008).

    Args:
      data: [S, V] rows of zeros and ones.
      hidden: number H of hidden units.
      seed: of everything.
      epochs: how often each row is seen.
    """
    rng, data = np.random.default_rng(seed), np.asarray(data, float)

    def on(gains):
        return (rng.random(gains.shape) < 1 / (1 + np.exp(-gains))).astype(float)

    weights = 0.01 * rng.normal(size=(data.shape[1], hidden))
    mean = data.mean(axis=0).clip(0.01, 0.99)
    a, b = np.log(mean / (1 - mean)), np.zeros(hidden)
    free = data[rng.choice(len(data), _BATCH)]
    for epoch in range(epochs):
        rate = _RATE * (1 - epoch / epochs)
        for rows in np.array_split(rng.permutation(len(data)), len(data) // _BATCH):
            seen, up = data[rows], 1 / (1 + np.exp(-b - data[rows] @ weights))
            free = on(a + on(b + free @ weights) @ weights.T)
            dreamt = 1 / (1 + np.exp(-b - free @ weights))
            weights += rate * (seen.T @ up / len(rows) - free.T @ dreamt / len(free))
            a += rate * (seen.mean(axis=0) - free.mean(axis=0))
            b += rate * (up.mean(axis=0) - dreamt.mean(axis=0))
    return weights, a, b
