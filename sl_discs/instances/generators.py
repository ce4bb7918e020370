"""Seeded random datasets: the distribution of each family, and the random stream of each of its graphs.

Graph k of a family is a function of (data seed, family, k) alone, and does not depend on the number of graphs drawn,
the machine or the number of devices. The streams are NumPy's PCG64, seeded through SeedSequence, and are pinned by
hashes in the tests. `GENERATOR_VERSION` is incremented whenever a seed would give a different graph than before.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import zlib
from collections.abc import Callable

import numpy as np

from sl_discs.errors import InputError
from sl_discs.instances.generate_ba import draw_maxcut_ba
from sl_discs.instances.generate_er import draw_maxcut_er, draw_mis_er
from sl_discs.instances.generate_rb import draw_rb
from sl_discs.instances.generate_torus import draw_torus
from sl_discs.instances.graph import Graph

GENERATOR_VERSION = 2


@dataclasses.dataclass(frozen=True)
class Generator:
    """A random dataset.

    Attributes:
      stream: what the random numbers are keyed by besides seed and index.
      count: the default number of graphs.
      description: the distribution, in words.
      sample: (random numbers, name) -> graph.
    """

    stream: str
    count: int
    description: str
    sample: Callable[[np.random.Generator, str], Graph]

    def draw(self, data_seed: int, index: int) -> Graph:
        """Graph number `index` of this dataset under `data_seed` (both non-negative)."""
        key = np.random.SeedSequence([data_seed, zlib.crc32(self.stream.encode()), index])
        return self.sample(np.random.Generator(np.random.PCG64(key)), self.name_of(index))

    def name_of(self, index: int) -> str:
        """The name of graph number `index` in results."""
        return f"{self.stream}/{index}"


def mis_er_density(p: str) -> Generator:
    """MIS on G(n, p), n in 700..800, p written as in `r-0.05` (DISCS uses .05, .10, .20 and .25).

    Raises:
      InputError: p is not a number between 0 and 1.
    """
    sample = functools.partial(draw_mis_er, low=700, high=800, p=parse_probability(p))
    return Generator(f"mis/er_density/{p}", 32, f"G(n, {p}), n in 700..800", sample)


def mis_ertest(r: str) -> Generator:
    """MIS on the Erdos-Renyi test distribution `800` (700-800 nodes, p = .15) or `10k` (9,000-11,000, p = .02).

    Raises:
      InputError: another name.
    """
    sizes = {"800": (700, 800, 0.15, 128), "10k": (9000, 11000, 0.02, 16)}
    if r not in sizes:
        raise InputError(f"ertest has r-{' and r-'.join(sizes)}, not r-{r}")
    low, high, p, count = sizes[r]
    sample = functools.partial(draw_mis_er, low=low, high=high, p=p)
    return Generator(f"mis/ertest/{r}", count, f"G(n, {p}), n in {low}..{high}", sample)


def maxcut_er(r: str) -> Generator:
    """MaxCut on the largest component of G(n, p): r is `er-<p>-n-<low>-<high>`.

    Raises:
      InputError: r has another form, p is not a probability, or the sizes are not in order.
    """
    p, low, high = _parse_random_cut(r, "er", "er-0.15-n-256-300")
    sample = functools.partial(draw_maxcut_er, low=low, high=high, p=parse_probability(p))
    return Generator(f"maxcut/er/{r}", 32, f"largest component of G(n, {p}), n in {low}..{high}, weight 1", sample)


def maxcut_ba(r: str) -> Generator:
    """MaxCut on Barabasi-Albert graphs: r is `ba-<m>-n-<low>-<high>`.

    Raises:
      InputError: r has another form, m is not a whole number below the smallest size, or the sizes are not in order.
    """
    m, low, high = _parse_random_cut(r, "ba", "ba-4-n-512-600")
    if not (m.isdecimal() and 1 <= int(m) < low):
        raise InputError(f"r-{r}: m must be a whole number, from 1 up to the smallest size less 1")
    sample = functools.partial(draw_maxcut_ba, low=low, high=high, m=int(m))
    return Generator(f"maxcut/ba/{r}", 32, f"Barabasi-Albert, m = {m}, n in {low}..{high}, weight 1", sample)


def maxcut_torus() -> Generator:
    """MaxCut on 5x5x5 tori with weights +-1, the family of the ten Optsicom graphs that DISCS uses."""
    return Generator("maxcut/optsicom", 10, "5x5x5 torus, weights -1 or 1 equally likely", draw_torus)


def maxclique_rb() -> Generator:
    """MaxClique on Model RB graphs; the reference is an upper bound, as in DISCS's set."""
    return Generator(
        "maxclique/rb", 500, "Model RB, n in 10..25, k in 5..20, p in (0.3, 1), unplanted; reference n", draw_rb
    )


def parse_probability(text: str) -> float:
    """The number written in `text`, strictly between 0 and 1.

    Raises:
      InputError: `text` is anything else.
    """
    if not re.fullmatch(r"0?\.\d+", text) or not 0 < float(text) < 1:
        raise InputError(f"{text!r} is not an edge probability; write one between 0 and 1, such as 0.15")
    return float(text)


def _parse_random_cut(r: str, kind: str, example: str) -> tuple[str, int, int]:
    """Splits `<kind>-<parameter>-n-<low>-<high>`."""
    match = re.fullmatch(rf"{kind}-([0-9.]+)-n-(\d+)-(\d+)", r)
    if match is None:
        raise InputError(f"r-{r} does not name a random {kind} dataset; write it like r-{example}")
    parameter, low, high = match[1], int(match[2]), int(match[3])
    if not 2 <= low <= high:
        raise InputError(f"r-{r}: sizes {low}-{high} are not in order; write the smaller first, at least 2")
    return parameter, low, high
