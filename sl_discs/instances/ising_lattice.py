"""DISCS's Ising models: open square lattices in a random field that differs inside and outside a disc."""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np

from sl_discs.capacity import check_memory
from sl_discs.checks import real, whole
from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm

# Bytes per site while a form is built: two bonds, their ends and the field, and copies of them.
_SITE = 200
# Values of f must be finite in single precision.
_LARGEST = 1e30


@dataclasses.dataclass(frozen=True)
class IsingLattice:
    """f(s) = lambdaa (sum of s_i s_j over neighbours) - sum b_i s_i, a distribution of such models.

    The field b_i is uniform on (-init_sigma, init_sigma), plus mu inside a disc that covers half of the lattice and
    minus mu outside it. The boundary is open: sites on an edge have three neighbours and those in a corner two.


    Attributes:
      shape: height and width.
      lambdaa: coupling of neighbours, spelt as in DISCS.
      mu: mean of the field inside the disc, and minus its mean outside.
      init_sigma: half the width of the field's distribution.
    """

    shape: tuple[int, int] = (50, 50)
    lambdaa: float = 0.5
    mu: float = 0.5
    init_sigma: float = 1.5

    def __post_init__(self):
        if not (isinstance(self.shape, tuple) and len(self.shape) == 2):
            raise InputError(f"model_config.shape is {self.shape!r}; expected a height and a width, such as (50, 50)")
        for side in self.shape:
            whole("a side of model_config.shape", side, least=1)
        for name in ("lambdaa", "mu", "init_sigma"):
            if abs(real(f"model_config.{name}", getattr(self, name))) > _LARGEST:
                raise InputError(f"model_config.{name} is {getattr(self, name)}; expected at most {_LARGEST:g}")

    @property
    def name(self) -> str:
        """Name of the distribution, such as `ising/50x50`."""
        return "ising/" + "x".join(map(str, self.shape))

    def draw(self, data_seed: int, index: int) -> QuadraticForm:
        """Lattice number `index` under `data_seed`; site (i, j) is variable i * width + j.

        Raises:
          InputError: memory cannot hold so large a lattice.
        """
        height, width = self.shape
        check_memory(f"model_config.shape: {height * width:,} sites", height * width * _SITE, "give a smaller shape")
        seed = np.random.SeedSequence([data_seed, zlib.crc32(self.name.encode()), index])
        uniform = np.random.Generator(np.random.PCG64(seed)).uniform(-1.0, 1.0, self.shape)
        field = self.init_sigma * uniform + self.mu * np.where(self._in_disc(), 1.0, -1.0)
        site = np.arange(height * width).reshape(self.shape)
        bonds = [(site[:-1], site[1:]), (site[:, :-1], site[:, 1:])]
        pairs = np.concatenate([np.stack(ends, axis=-1).reshape(-1, 2) for ends in bonds])
        return QuadraticForm.from_arrays(
            f"{self.name}/{index}",
            -field.ravel(),
            pairs,
            np.full(len(pairs), float(self.lambdaa)),
            spins=True,
            maximise=True,
        )

    def _in_disc(self) -> np.ndarray:
        """[height, width] whether a site lies in the central disc; the lattice is taken as a square of area 1."""
        rows, columns = (np.arange(side) / side - 0.5 for side in self.shape)
        return rows[:, None] ** 2 + columns**2 < 0.5 / np.pi
