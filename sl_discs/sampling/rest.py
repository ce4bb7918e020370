"""The model given an observation of its outlying directions: s|z ~ exp(1/2 s'J0 s + (b + U D^(1/2) z)'s).

`FreeRest` is for J0 = 0, where spins are independent and everything has a closed form; `CoupledRest` runs chains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int8
from scipy.special import expit

from sl_discs.errors import InputError
from sl_discs.models.quadratic import Coefficients
from sl_discs.sampling.arena import Arena
from sl_discs.sampling.chain import FIRST_ROUND, frozen_after
from sl_discs.sampling.directions import Directions, SpinTerms
from sl_discs.sampling.options import Options

# The largest number of variables: J0 is a dense matrix, whose rows would take gigabytes.
MOST_COUPLED = 4096
# Couplings whose sum over all pairs is below this change no probability measurably.
_NOTHING = 1e-7
# Sweeps between two records, each of which costs about as much as a sweep.
SWEEPS = 2
# Number of fractions of J0 at which its share of log Z0 is computed, and records at each: for warm-up and for use.
_PARTS, _WARM_UP, _MOMENTS = 6, 32, 128
# Rounds of the mean-field equations.
_ROUNDS = 50
# Numbers of a piece of work.
_PIECE = 2**24


def is_free(spin: SpinTerms, directions: Directions) -> bool:
    """Whether J0 = J - U D U' is zero except on its diagonal, which is a constant on spins."""
    size = len(spin.field)
    probes = np.random.default_rng(0).choice((-1.0, 1.0), (size, 2))
    loadings = directions.loadings
    diagonal = (loadings**2).sum(axis=1)
    left = spin.times(probes) - loadings @ (loadings.T @ probes) + diagonal[:, None] * probes
    return float(np.linalg.norm(left, axis=0).max()) * np.sqrt(size) < _NOTHING


class FreeRest:
    """s given z with independent spins."""

    def __init__(self, spin: SpinTerms, loadings: Float64[np.ndarray, "N r"]):
        self._spin, self._loadings = spin, loadings
        # s_i^2 = 1: the diagonal of U D U' counts in the observation and not in J.
        self._constant = spin.constant - (loadings**2).sum() / 2

    def log_z(self, points: Float64[np.ndarray, "Q r"]) -> Float64[np.ndarray, "Q"]:
        """log of the sum over s, sum_i log 2 cosh(b_i + (U D^(1/2) z)_i) and a constant."""
        step = max(1, _PIECE // len(self._loadings))
        found = []
        for start in range(0, len(points), step):
            fields = np.abs(self._spin.field + points[start : start + step] @ self._loadings.T)
            found.append((fields + np.log1p(np.exp(-2 * fields))).sum(axis=1))
        return self._constant + np.concatenate(found)

    def draw(self, rng: np.random.Generator, points: Float64[np.ndarray, "Q r"]) -> Int8[np.ndarray, "Q N"]:
        """A state for each z."""
        step = max(1, _PIECE // len(self._loadings))
        found = []
        for start in range(0, len(points), step):
            chances = expit(2 * (self._spin.field + points[start : start + step] @ self._loadings.T))
            found.append((rng.random(chances.shape) < chances).astype(np.int8))
        return np.concatenate(found)


class Series(NamedTuple):
    """L records of B chains: sums of K observables, of their squares, and of their squared changes.

    Attributes:
      moments: L, the number of records.
      sums: [B, K].
      squares: [B, K].
      moves: [B, K].
    """

    moments: int
    sums: Float64[np.ndarray, "B K"]
    squares: Float64[np.ndarray, "B K"]
    moves: Float64[np.ndarray, "B K"]

    @property
    def means(self) -> Float64[np.ndarray, "B K"]:
        """The means of each chain."""
        return self.sums / self.moments

    def joined(self, later: Series) -> Series:
        """Both series joined."""
        return Series(self.moments + later.moments, *(a + b for a, b in zip(self[1:], later[1:], strict=True)))


class CoupledRest:
    """s given z by chains of a base sampler at temperature 1, each with a z of its own.

    Attributes:
      terms: of 1/2 s'J0 s, without its constant.
      seed: of all random numbers.
      steps: Markov steps so far.
      engine: name of the engine used.
    """

    def __init__(self, spin: SpinTerms, loadings: Float64[np.ndarray, "N r"], options: Options):
        size = len(spin.field)
        if size > MOST_COUPLED:
            raise InputError(
                f"method low_rank: without the outlying directions, the remaining coupling is dense on "
                f"{size:,} variables, above {MOST_COUPLED:,}; use method='tempering'"
            )
        self._loadings, self._options = loadings, options
        self._field = spin.field.astype(np.float32)
        couplings = spin.matrix() - loadings @ loadings.T
        np.fill_diagonal(couplings, 0.0)
        self._couplings = couplings.astype(np.float32)
        pairs = np.stack(np.triu_indices(size, 1), axis=1).astype(np.int32)
        sums = couplings.sum(axis=1)
        self.terms = Coefficients(-2 * sums, pairs, 4 * couplings[pairs[:, 0], pairs[:, 1]], 1.0)
        # Constants that f omits, from x in {0,1}^N and from s_i^2 = 1.
        self._pairs_constant, self._constant = sums.sum() / 2, spin.constant - (loadings**2).sum() / 2
        self.seed, self.steps, self.engine = options.seed, 0, ""

    def arena(self, num_chains: int, stream: int) -> Arena:
        """Chains whose z is not set yet."""
        options = self._options
        fields = frozen_after(FIRST_ROUND, options, len(self._field))
        arena = Arena(
            self.terms, options.sampler, fields, num_chains, engine=options.engine, seed=options.seed, stream=stream,
            tilted=True,
        )  # fmt: skip
        self.engine = arena.engine.name
        return arena

    def fields(self, points: Float64[np.ndarray, "B r"]) -> Float32[np.ndarray, "B N"]:
        """b + U D^(1/2) z, the tilt of each chain."""
        return self._field + points.astype(np.float32) @ self._loadings.T.astype(np.float32)

    def along(self, points: Float64[np.ndarray, "B r"]) -> Int8[np.ndarray, "B N"]:
        """The states in which every spin follows its field."""
        return (self.fields(points) > 0).astype(np.int8)

    def mean_field(self, points: Float64[np.ndarray, "Q r"]) -> Float64[np.ndarray, "Q r"]:
        """About D^(1/2) U'E[s|z], by the naive mean-field equations m = tanh(b + U D^(1/2) z + J0 m)."""
        fields = self.fields(points)
        means = np.tanh(fields)
        for _ in range(_ROUNDS):
            means = (means + np.tanh(fields + means @ self._couplings)) / 2
        return means @ self._loadings

    def log_z(self, z: Float64[np.ndarray, "r"], stream: int) -> Float64[np.ndarray, "G"]:
        """log of the sum over s, for each group.

        Without J0 it has a closed form. The rest is the mean of 1/2 s'J0 s under lambda J0, integrated over lambda in
        [0, 1]. The tilt holds all other terms, so that lambda is an inverse temperature.
        """
        groups = self._options.groups
        parts, weights = np.polynomial.legendre.leggauss(_PARTS)
        temperatures = np.tile(2 / (1 + parts), groups)
        arena = self.arena(len(temperatures), stream)
        fields = self.fields(np.tile(z, (len(temperatures), 1)))
        arena.restart((fields > 0).astype(np.int8), fields)
        arena.record(temperatures, 1, _WARM_UP)
        values = arena.record(temperatures, _MOMENTS, SWEEPS).values.mean(axis=0, dtype=float) + self._pairs_constant
        self.steps += arena.steps
        free = np.abs(fields[0].astype(np.float64))
        free_log_z = (free + np.log1p(np.exp(-2 * free))).sum()
        return self._constant + free_log_z + values.reshape(groups, -1) @ weights / 2

    def watch(self, arena: Arena, points: Float64[np.ndarray, "B r"], moments: int) -> Series:
        """Continues the chains, and sums D^(1/2) U'E[s_i | other spins] and 1/2 s'J0 s over so many records.

        These conditional means have the same expectations as the spins, and less variance (Rao-Blackwell).
        """
        loadings, fields = self._loadings.astype(np.float32), self.fields(points)
        shape = len(points), loadings.shape[1] + 1
        total, last = Series(moments, *(np.zeros(shape) for _ in range(3))), None
        before = arena.steps
        for recorded in arena.play(1.0, moments, SWEEPS):
            for states, values in zip(recorded.states, recorded.values, strict=True):
                spins = 2 * states.astype(np.float32) - 1
                seen = np.tanh(spins @ self._couplings + fields) @ loadings
                now = np.concatenate([seen, values[:, None]], axis=1).astype(np.float64)
                total.sums[...] += now
                total.squares[...] += now**2
                total.moves[...] += (now - (now if last is None else last)) ** 2
                last = now
        self.steps += arena.steps - before
        return total
