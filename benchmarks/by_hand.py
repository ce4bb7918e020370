"""Samplers that a user writes in an afternoon: loops in numba, and an auxiliary field in NumPy.

Each draws from exp(sum_i field_i s_i + sum_edges coupling s_u s_v), temperature included, by chains
one after the other, from random states.
"""

# ruff: noqa: NPY002
# numba's own generator, whose draws cost least, has the names of NumPy's legacy functions.

from __future__ import annotations

import numba
import numpy as np
from jaxtyping import Float32, Float64, Int8, Int64
from scipy import sparse


def neighbour_lists(
    size: int, edges: np.ndarray, couplings: np.ndarray
) -> tuple[Int64[np.ndarray, "N+1"], Int64[np.ndarray, "2M"], Float32[np.ndarray, "2M"]]:
    """Returns where each site's neighbours begin, these, and their couplings."""
    upper = sparse.csr_matrix((couplings, tuple(edges.T)), (size, size))
    both = (upper + upper.T).tocsr()
    return both.indptr.astype(np.int64), both.indices.astype(np.int64), both.data.astype(np.float32)


@numba.njit(fastmath=True)
def _sweep(spins, starts, neighbours, couplings, fields, beta):
    for site in range(len(spins)):
        field = fields[site]
        for k in range(starts[site], starts[site + 1]):
            field += couplings[k] * spins[neighbours[k]]
        up = np.random.random() * (1 + np.exp(-2 * beta * field)) < 1
        spins[site] = 1 if up else -1


@numba.njit(fastmath=True)
def _log_density(spins, starts, neighbours, couplings, fields):
    total = 0.0
    for site in range(len(spins)):
        field = 0.0
        for k in range(starts[site], starts[site + 1]):
            field += couplings[k] * spins[neighbours[k]]
        total += spins[site] * (fields[site] + field / 2)
    return total


@numba.njit
def _random_spins(rows, size):
    spins = np.empty((rows, size), np.int8)
    for row in range(rows):
        for site in range(size):
            spins[row, site] = 1 if np.random.random() < 0.5 else -1
    return spins


@numba.njit
def gibbs(
    seed: int,
    lists,
    fields: Float64[np.ndarray, "N"],
    warm_up: int,
    sweeps: int,
    drawn: Int8[np.ndarray, "D N"],
) -> int:
    """Fills the draws of one chain by sequential sweeps; returns the number of site updates."""
    np.random.seed(seed)
    starts, neighbours, couplings = lists
    size = len(fields)
    spins = _random_spins(1, size)[0]
    for _ in range(warm_up):
        _sweep(spins, starts, neighbours, couplings, fields, 1.0)
    for number in range(len(drawn)):
        for _ in range(sweeps):
            _sweep(spins, starts, neighbours, couplings, fields, 1.0)
        drawn[number] = spins
    return (warm_up + len(drawn) * sweeps) * size


@numba.njit
def tempering(
    seed: int,
    lists,
    fields: Float64[np.ndarray, "N"],
    warm_up: int,
    sweeps: int,
    drawn: Int8[np.ndarray, "D N"],
    betas: Float64[np.ndarray, "R"],
) -> int:
    """Fills the draws of the coldest rung, the last one, of a ladder; a sweep of all rungs is
    followed by swaps of the pairs of one parity.
    """
    np.random.seed(seed)
    starts, neighbours, couplings = lists
    size = len(fields)
    rungs = len(betas)
    spins = _random_spins(rungs, size)
    place = np.arange(rungs)
    values = np.zeros(rungs)
    for step in range(warm_up + len(drawn) * sweeps):
        for rung in range(rungs):
            state = spins[place[rung]]
            _sweep(state, starts, neighbours, couplings, fields, betas[rung])
            values[rung] = _log_density(state, starts, neighbours, couplings, fields)
        for rung in range(step % 2, rungs - 1, 2):
            gained = (betas[rung] - betas[rung + 1]) * (values[rung + 1] - values[rung])
            if np.random.random() < np.exp(min(0.0, gained)):
                place[rung], place[rung + 1] = place[rung + 1], place[rung]
        done = step + 1 - warm_up
        if done > 0 and done % sweeps == 0:
            drawn[done // sweeps - 1] = spins[place[-1]]
    return (warm_up + len(drawn) * sweeps) * size * rungs


@numba.njit
def wolff(
    seed: int,
    lists,
    fields: Float64[np.ndarray, "N"],
    warm_up: int,
    clusters: int,
    drawn: Int8[np.ndarray, "D N"],
) -> int:
    """Fills the draws of one chain by `clusters` updates, of a ferromagnet without fields.

    Draws after a number of flipped sites would follow large clusters too often.
    """
    np.random.seed(seed)
    starts, neighbours, couplings = lists
    size = len(fields)
    spins = _random_spins(1, size)[0]
    stack = np.empty(size, np.int64)
    join = 1 - np.exp(-2 * couplings)
    flipped = 0
    for number in range(warm_up + len(drawn) * clusters):
        site = np.random.randint(size)
        sign = spins[site]
        spins[site] = -sign
        stack[0] = site
        count = 1
        flipped += 1
        while count:
            count -= 1
            site = stack[count]
            for k in range(starts[site], starts[site + 1]):
                near = neighbours[k]
                if spins[near] == sign and np.random.random() < join[k]:
                    spins[near] = -sign
                    stack[count] = near
                    count += 1
                    flipped += 1
        done = number + 1 - warm_up
        if done > 0 and done % clusters == 0:
            drawn[done // clusters - 1] = spins
    return flipped


def auxiliary_field(
    seed: int, coupling: float, warm_up: int, sweeps: int, drawn: Int8[np.ndarray, "C D N"]
) -> int:
    """Fills the draws of exp(coupling/2 (sum_i s_i)^2) of all chains: z given the spins is normal,
    and spins given z are independent (Hubbard and Stratonovich).
    """
    rng = np.random.default_rng(seed)
    chains, draws, size = drawn.shape
    root = np.sqrt(coupling)
    spins = rng.choice(np.array([-1, 1], np.int8), (chains, size))
    for number in range(warm_up + draws * sweeps):
        z = root * spins.sum(axis=1) + rng.normal(size=chains)
        up = rng.random((chains, size), np.float32) * (1 + np.exp(-2 * root * z))[:, None] < 1
        spins = np.where(up, np.int8(1), np.int8(-1))
        done = number + 1 - warm_up
        if done > 0 and done % sweeps == 0:
            drawn[:, done // sweeps - 1] = spins
    return (warm_up + draws * sweeps) * size * chains
