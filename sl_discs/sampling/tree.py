"""The law exp(f/temperature) by tree decomposition, with D-Wave's sampler: exact wherever the treewidth is small."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8

from sl_discs.capacity import check_memory
from sl_discs.errors import InputError
from sl_discs.models.quadratic import Coefficients
from sl_discs.sampling.elimination import Elimination, narrow_elimination

# D-Wave's sampler refuses more.
MOST_WIDTH = 25
# It keeps a table for each variable in both directions.
_TABLES = 2


class TreeLaw(NamedTuple):
    """Draws and marginals.

    Attributes:
      states: [draws, N] independent exact draws.
      log_z: log sum_x exp(f(x)/temperature), the constant of f included.
      marginals: [N] P(x_i = 1).
      pair_marginals: [P] P(x_i = x_j = 1) of the pairs that were asked for.
      mean_value: of f.
      width: of the decomposition.
    """

    states: Int8[np.ndarray, "draws N"]
    log_z: float
    marginals: Float64[np.ndarray, "N"]
    pair_marginals: Float64[np.ndarray, "P"]
    mean_value: float
    width: int


def tree_decomposition(
    terms: Coefficients, temperature: float, draws: int, seed: int, pairs: Int[np.ndarray, "P 2"]
) -> TreeLaw:
    """Draws, marginals and log Z in time and memory of about N 2^width.

    Args:
      terms: f.
      temperature: above 0.
      draws: at least 1.
      seed: of the draws.
      pairs: of different variables, whose pair marginals are returned. They count as coupled, with coupling 0, so
        they may make the decomposition wider.

    Raises:
      InputError: dwave-samplers is not installed, or the decomposition is too wide for it or for this machine.
    """
    size = len(terms.linear)
    pairs = np.sort(np.asarray(pairs, np.int32).reshape(-1, 2), axis=1)
    _check_couplings(terms)
    listed = terms.listed()
    edges, place = np.unique(np.concatenate([listed.edges, pairs]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    couplings = np.bincount(place[: len(listed.edges)], listed.scale * listed.weights, len(edges))
    elimination = _eliminated(size, edges)
    dimod, samplers = _libraries()

    # dimod minimises and weighs a state by exp(-beta energy): the energy is -f, and beta is 1/temperature. The
    # sampler omits the marginals of pairs with coupling 0, so those get a coupling that is lost in any sum of
    # doubles.
    noticed = np.where(couplings == 0, np.finfo(np.float64).tiny, -couplings)
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        -terms.linear, (*edges.T, noticed), -terms.constant, dimod.BINARY
    )
    found = samplers.TreeDecompositionSampler().sample(
        model,
        num_reads=draws,
        elimination_order=elimination.order.tolist(),
        beta=1 / temperature,
        seed=int(np.random.default_rng(seed).integers(2**31)),  # its seeds have 31 bits
    )
    states = found.record.sample[:, np.argsort(found.variables)].astype(np.int8)
    marginals = np.array([found.info["variable_marginals"][v] for v in range(size)])
    both = {frozenset(pair): law[1, 1] for pair, law in found.info["interaction_marginals"].items()}
    joint = np.array([both[frozenset(pair)] for pair in edges.tolist()])
    mean = terms.constant + terms.linear @ marginals + couplings @ joint
    log_z = float(found.info["log_partition_function"])
    return TreeLaw(states, log_z, marginals, joint[place[len(listed.edges) :]], float(mean), elimination.width)


def _libraries() -> list[ModuleType]:
    try:
        return [importlib.import_module(name) for name in ("dimod", "dwave.samplers")]
    except ImportError:
        raise InputError(
            "tree decomposition needs dwave-samplers: pip install -e '.[exact]' in the clone, or use "
            "method='tempering'"
        ) from None


def _check_couplings(terms: Coefficients) -> None:
    """Refuses a model with too many couplings, before they are listed."""
    size, weights = len(terms.linear), terms.weights
    others = size * (size - 1) // 2 - len(weights) if terms.background else 0
    couplings = int(np.count_nonzero(weights)) + others
    # A graph of treewidth w has at most w N edges.
    if couplings > MOST_WIDTH * size:
        raise _too_wide(size, couplings)


def _eliminated(size: int, edges: np.ndarray) -> Elimination:
    elimination = narrow_elimination(size, edges, MOST_WIDTH)
    if elimination is None:
        raise _too_wide(size, len(edges))
    need = _TABLES * 8 * elimination.table_entries()
    check_memory(f"tree decomposition of width {elimination.width}", need, "use method='tempering'")
    return elimination


def _too_wide(size: int, couplings: int) -> InputError:
    return InputError(
        f"{size} variables with {couplings} couplings have a treewidth above {MOST_WIDTH} as far as "
        "min-fill and Cuthill-McKee orders tell, and memory grows as 2^width; use method='tempering'"
    )
