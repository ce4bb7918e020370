"""Known truths of restricted Boltzmann machines with few hidden units, which are enumerated."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from sl_discs.checks import real, real_array
from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm
from sl_discs.problems.problem import Problem
from sl_discs.testing.truth import Truth, summed, weight_of_mode

_MOST_HIDDEN = 16


def boltzmann_machine(
    weights: Float64[np.ndarray, "V H"],
    visible: Float64[np.ndarray, "V"],
    hidden: Float64[np.ndarray, "H"],
    temperature: float = 1.0,
) -> Truth:
    """f(v, h) = v'Wh + visible . v + hidden . h for v in {0,1}^V and h in {0,1}^H, summed over all h.

    Variables are the visible units, then the hidden ones. The direction is on the hidden units: the signs of W's
    first right singular vector, the first of them positive.

    Args:
      weights: [V, H] W, with at most 16 hidden units.
      visible: [V] biases.
      hidden: [H] biases.
      temperature: above 0.

    Raises:
      InputError: shapes that do not fit, or too many hidden units.
    """
    weights, visible, hidden = (
        real_array(name, one)
        for name, one in (("weights", weights), ("visible", visible), ("hidden", hidden))
    )  # fmt: skip
    if weights.shape != (*visible.shape, *hidden.shape) or weights.ndim != 2 or weights.shape[1] > _MOST_HIDDEN:
        raise InputError(
            f"weights have shape {weights.shape}, biases {visible.shape} and {hidden.shape}; expected [V, H] with H "
            f"at most {_MOST_HIDDEN}, [V] and [H]"
        )
    size = len(hidden)
    states = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(float)  # [2^H, H]
    beta = 1 / real("temperature", temperature, above=0)
    gains = visible + states @ weights.T  # of the visible units
    log_counts = np.logaddexp(0, beta * gains).sum(axis=1)
    on = 1 / (1 + np.exp(-beta * gains))
    log_z, law, mean_hidden = summed(log_counts, states @ hidden, temperature)
    mean = mean_hidden + float(law @ (on * gains).sum(axis=1))
    signs = np.sign(np.linalg.svd(weights)[2][0])
    signs = np.where(signs == 0, 1, signs)
    direction = np.concatenate([np.zeros(len(visible)), signs * signs[0]]).astype(np.int8)
    agreeing = (states == (direction[len(visible) :] > 0)).sum(axis=1)
    counts = np.bincount(agreeing, law, size + 1)
    pairs = np.argwhere(np.ones(weights.shape, bool)) + np.array([0, len(visible)])
    form = QuadraticForm.from_arrays(
        "boltzmann-machine", np.concatenate([visible, hidden]), pairs, weights.ravel(), maximise=True
    )
    problem = Problem("qubo", form.name, range(form.num_variables), form)
    marginals = np.concatenate([law @ on, law @ states])
    return Truth(problem, temperature, log_z, mean, marginals, weight_of_mode(counts), counts, direction)
