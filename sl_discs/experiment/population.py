"""Resampling of an instance's chains while they cool, as in population annealing (Hukushima and Iba 2003).

When the temperature has fallen, the chains of an instance are weighted by exp((1/tau_after - 1/tau_before) f), and as
many are drawn from them with these weights: bad ones end, good ones go on in several places, each with the random
numbers of its place. Where the temperature is constant between two resamplings (`anneal_every` equal to
`resample_every`), that is population annealing, which leaves the law at every temperature right for many chains.
Where it falls in between, its whole change counts as if it came at once. A `resample_strength` other than 1
multiplies the exponent: an optimiser's choice.

It happens on the host between two calls of an engine, so that it is the same whatever runs the chains.
"""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, Int, UInt32

from sl_discs import keys
from sl_discs.arrays import AnyArray
from sl_discs.engines.contract import Chains, Temperature
from sl_discs.experiment.settings import Settings


def places_after(log_weights: Float[np.ndarray, "B"], uniform: float) -> Int[np.ndarray, "B"]:
    """Which chain goes on in each place, by systematic resampling.

    Each chain goes on in floor or ceil of B w_i places, w its part of the weight, B w_i on average; in its own place
    if in any.

    Args:
      log_weights: of the chains, up to a constant.
      uniform: a uniform number on [0, 1).
    """
    weights = np.exp(log_weights - log_weights.max())
    ends = np.cumsum(weights)
    marks = (np.arange(len(weights)) + uniform) / len(weights)
    copies = np.bincount(np.searchsorted(ends / ends[-1], marks, side="right"), minlength=len(weights))
    chosen = np.arange(len(weights))
    chosen[copies == 0] = np.repeat(chosen, np.maximum(copies - 1, 0))
    return chosen


@jax.jit
def _uniforms(initial_keys: UInt32[Array, "G 2"], step: Int[Array, ""]) -> Float[Array, "G"]:
    """A number for each instance and step; nothing else folds the keys of initial states."""
    return jax.vmap(lambda key: keys.uniforms(keys.fold(key, step)))(initial_keys)


class Population:
    """The resamplings of a run.

    Attributes:
      every: steps between two of them; 0: there are none.
    """

    def __init__(self, settings: Settings, temperature: Temperature):
        self.every = settings.resample_every
        self._strength, self._size = settings.resample_strength, settings.batch_size
        self._temperature = temperature

    def is_due(self, step: int) -> bool:
        """Whether chains are resampled after so many steps."""
        return self.every > 0 and step % self.every == 0 and step < len(self._temperature)

    def resample(
        self, chains: Chains, value: Float32[AnyArray, "G B"], initial_keys: UInt32[AnyArray, "G B 2"], step: int
    ) -> Chains:
        """The chains after a resampling, on the host; the best states stay with their places.

        Args:
          chains: leaves [G, B, ...]; surplus chains, past the settings' `batch_size`, take no part.
          value: f of each chain now.
          initial_keys: that the chains' initial states were drawn with.
          step: steps done.
        """
        before, after = self._temperature[[max(0, step - self.every), step]].astype(np.float64)
        change = 1 / after - 1 / before
        log_weights = self._strength * change * np.asarray(value, np.float64)[:, : self._size]
        uniforms = np.asarray(_uniforms(np.asarray(initial_keys)[:, 0], np.int32(step)))
        chosen = np.tile(np.arange(np.shape(value)[1]), (len(log_weights), 1))
        for instance, row in enumerate(log_weights):
            chosen[instance, : self._size] = places_after(row, float(uniforms[instance]))

        def taken(leaf):
            return np.asarray(leaf)[np.arange(len(chosen))[:, None], chosen]

        return chains._replace(chain=jax.tree.map(taken, chains.chain))
