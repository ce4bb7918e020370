"""Resampling of an instance's chains while they cool, as in population annealing (Hukushima and Iba 2003).

When the temperature has fallen, the chains of an instance are weighted by exp((1/tau_after - 1/tau_before) f), and
the same number is drawn with these weights: bad chains end, and good ones continue in several places, each with the
random numbers of its place. If the temperature is constant between two resamplings (`anneal_every` equal to
`resample_every`), this is population annealing, which is correct at every temperature for many chains. If it falls in
between, its whole change is treated as one step. A `resample_strength` other than 1 multiplies the exponent, which is
only useful for optimisation.

Resampling happens on the host between two calls to an engine, so that it is the same on every engine.
"""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, Int, UInt32

from sl_discs import keys
from sl_discs.arrays import AnyArray
from sl_discs.engines.base import Chains, Temperature
from sl_discs.experiment.settings import Settings


def places_after(log_weights: Float[np.ndarray, "B"], uniform: float) -> Int[np.ndarray, "B"]:
    """The chain that continues in each place, by systematic resampling.

    Chain i with normalised weight w_i continues in floor or ceil of B w_i places, B w_i on average, and in its own
    place if in any.

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
