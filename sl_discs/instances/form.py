"""Quadratic forms as the user gives them: a QUBO or an Ising model, with its terms in any order, sense and offset."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float64, Int, Int32

from sl_discs.checks import boolean, real, real_array
from sl_discs.errors import InputError
from sl_discs.exact_sum import check_sum, exact_sum


@dataclasses.dataclass(frozen=True)
class QuadraticForm:
    """offset + sum linear_i v_i + sum couplings_k v_a v_b over the pairs (a, b), exactly as it was given.

    Nothing is merged: a pair may appear in several rows and in both directions, and also with a = b, where v_a v_a is
    v_a for variables in {0, 1} and 1 for spins. So `value` is what the source defines, independently of any model.

    Attributes:
      name: name of this instance in results.
      linear: [N] linear coefficients.
      pairs: [M, 2] indices 0 .. N - 1.
      couplings: [M] coefficients of the pairs.
      offset: a constant.
      spins: whether variables are -1 and 1 instead of 0 and 1.
      maximise: whether the largest value is the best; otherwise the smallest one is.
      reference: best known value, or None.
      offset_rest: further constants, where one number in double precision cannot hold their sum.
    """

    name: str
    linear: Float64[np.ndarray, "N"]
    pairs: Int32[np.ndarray, "M 2"]
    couplings: Float64[np.ndarray, "M"]
    offset: float = 0.0
    spins: bool = False
    maximise: bool = False
    reference: float | None = None
    offset_rest: tuple[float, ...] = ()

    @property
    def offsets(self) -> Float64[np.ndarray, "K"]:
        """All constants."""
        return np.array([self.offset, *self.offset_rest])

    @property
    def num_variables(self) -> int:
        """Number of variables N."""
        return len(self.linear)

    def magnitude(self) -> float:
        """The sum of all absolute terms as a function of zeros and ones."""
        return float(sum(np.abs(terms).sum() for terms in (4 * self.couplings, 2 * self.linear, self.offsets)))

    @classmethod
    def from_arrays(
        cls,
        name,
        linear,
        pairs,
        couplings,
        offset=0.0,
        *,
        spins=False,
        maximise=False,
        reference=None,
        offset_rest=(),
    ) -> QuadraticForm:
        """Checks arrays of any integer or float dtype.

        Raises:
          InputError: no variables, an index out of range, a number that is not finite or a whole number that is not
            exact in double precision, numbers too large to be added up, or arrays of unequal length.
        """
        linear = real_array(f"{name}: linear coefficients", linear)
        couplings = real_array(f"{name}: couplings", couplings)
        offset, maximise = real(f"{name}: offset", offset), boolean(f"{name}: maximise", maximise)
        pairs = np.asarray(pairs)
        pairs = pairs.reshape(-1, 2) if pairs.size == 0 else pairs
        if linear.ndim != 1 or not len(linear):
            raise InputError(f"{name}: linear coefficients of shape {linear.shape}; expected [N], one a variable")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InputError(f"{name}: pairs have shape {pairs.shape}; expected [M, 2]")
        if pairs.size and pairs.dtype.kind not in "iu":
            raise InputError(f"{name}: pairs have dtype {pairs.dtype}; expected integers")
        if couplings.shape != (len(pairs),):
            raise InputError(f"{name}: {couplings.shape} couplings for {len(pairs)} pairs")
        if pairs.size and (pairs.min() < 0 or pairs.max() >= len(linear)):
            row = int(np.argmax(((pairs < 0) | (pairs >= len(linear))).any(axis=1)))
            pair = tuple(int(v) for v in pairs[row])
            raise InputError(f"{name}: pair {row} is {pair}, but variables are 0..{len(linear) - 1}")
        for what, numbers in ("linear coefficient", linear), ("coupling", couplings):
            if not np.isfinite(numbers).all():
                row = int(np.argmax(~np.isfinite(numbers)))
                raise InputError(f"{name}: {what} {row} is {numbers[row]}; expected a finite number")
        check_sum(name, linear, couplings, offset)
        if reference is not None and not np.isfinite(reference):
            reference = None
        pairs = pairs.astype(np.int32, copy=False)
        return cls(str(name), linear, pairs, couplings, offset, bool(spins), maximise, reference, tuple(offset_rest))

    def value(self, x: Int[np.ndarray, "N"]) -> float:
        """The form at x, [N] zeros and ones (a one is spin 1): the exact sum of its terms, rounded once.

        Raises:
          InputError: x is not [N] zeros and ones.
        """
        x = np.asarray(x)
        if x.shape != self.linear.shape or not np.isin(x, (0, 1)).all():
            raise InputError(f"{self.name}: expected {self.num_variables} zeros and ones, got shape {x.shape}")
        v = 2.0 * x - 1.0 if self.spins else x.astype(np.float64)
        # Products with -1, 0 and 1 are exact.
        products = self.couplings * v[self.pairs[:, 0]] * v[self.pairs[:, 1]]
        return exact_sum(np.concatenate([self.offsets, self.linear * v, products]))
