"""Exact independent draws from exp(f/temperature), and the exact log Z and marginals."""

from __future__ import annotations

import importlib
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int8

from sl_discs.errors import InputError, check_memory
from sl_discs.models.elimination import narrow_elimination
from sl_discs.models.enumeration import enumerate_law, enumerate_values
from sl_discs.models.terms import Coefficients, Terms
from sl_discs.sampling.draws import Budget, Drawn, Options, packed

# The law exp(f/temperature) by enumeration, or by D-Wave's tree decomposition: exact where the treewidth is small.

# D-Wave's sampler refuses more.
MOST_WIDTH = 25
# Above this number of variables, tree decomposition is tried first.
_ENUMERATED = 20
# It keeps a table for each variable in both directions.
_TABLES = 2


class ExactDraws(NamedTuple):
    """Draws, and exact values of what other methods estimate.

    Attributes:
      states: [draws, N] independent draws.
      log_z: log sum_x exp(f(x)/temperature), the constant of f included.
      marginals: [N] P(x_i = 1).
      mean_value: of f.
      pairs: [P, 2] all pairs after enumeration, coupled ones after a tree decomposition.
      pair_marginals: [P] P(x_i = x_j = 1).
      width: of the tree decomposition; None after enumeration.
    """

    states: Int8[np.ndarray, "draws N"]
    log_z: float
    marginals: Float64[np.ndarray, "N"]
    mean_value: float
    pairs: Int[np.ndarray, "P 2"]
    pair_marginals: Float64[np.ndarray, "P"]
    width: int | None


def exact(terms: Coefficients, temperature: float, draws: int, seed: int) -> ExactDraws:
    """Draws by enumeration of up to 20 variables, and by tree decomposition of more.

    InputError if the treewidth is too large, or dwave-samplers is not installed, which more than 20 variables need.
    """
    if terms.num_sites > _ENUMERATED:
        return tree_decomposition(terms, temperature, draws, seed)
    law = enumerate_law(terms, temperature)
    states = law.sample(np.random.default_rng(seed), draws)
    pairs = np.stack(np.triu_indices(terms.num_sites, 1), axis=1)
    return ExactDraws(states, law.log_z, law.marginals.copy(), law.mean_value, pairs, law.moments[*pairs.T], None)


def tree_decomposition(terms: Coefficients, temperature: float, draws: int, seed: int) -> ExactDraws:
    """Draws, marginals and log Z in time and memory of about N 2^width, as `exact`."""
    size, weights = terms.num_sites, terms.weights
    others = size * (size - 1) // 2 - len(weights) if terms.background else 0
    num_couplings = int(np.count_nonzero(weights)) + others
    # A graph of treewidth w has at most w N edges; this is known before they are listed.
    if num_couplings > MOST_WIDTH * size:
        raise _too_wide(size, num_couplings)
    listed = terms.listed()
    edges, couplings = listed.edges, listed.scale * listed.weights
    elimination = narrow_elimination(size, edges, MOST_WIDTH)
    if elimination is None:
        raise _too_wide(size, len(edges))
    need = _TABLES * 8 * elimination.table_entries()
    check_memory(f"tree decomposition of width {elimination.width}", need, "use method='tempering'")
    try:
        dimod, samplers = (importlib.import_module(name) for name in ("dimod", "dwave.samplers"))
    except ImportError:
        raise InputError(
            "tree decomposition needs dwave-samplers: pip install -e '.[exact]' in the clone, or use "
            "method='tempering'"
        ) from None

    # dimod minimises and weighs a state by exp(-beta energy): the energy is -f, and beta is 1/temperature. The
    # sampler omits the marginals of pairs with coupling 0, and sets variables without any coefficient to 0, so those
    # get a coefficient that is lost in any sum of doubles.
    linear, quadratic = (np.where(one == 0, np.finfo(np.float64).tiny, -one) for one in (terms.linear, couplings))
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        linear, (*edges.T, quadratic), -terms.constant, dimod.BINARY
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
    return ExactDraws(states, log_z, marginals, float(mean), np.asarray(edges), joint, elimination.width)


def _too_wide(size: int, couplings: int) -> InputError:
    return InputError(
        f"{size} variables with {couplings} couplings have a treewidth above {MOST_WIDTH} as far as "
        "min-fill and Cuthill-McKee orders tell, and memory grows as 2^width; use method='tempering'"
    )


_DRAWS_IN_TIME = 10_000


def draw(terms: Terms, temperature: float, options: Options, budget: Budget) -> Drawn:
    """The requested number of exact draws; 10,000 if there is a time limit."""
    each, most = options.draws_each or -(-_DRAWS_IN_TIME // options.groups), 2
    if terms.quadratic is None:
        law = enumerate_values(terms, temperature)
        states, log_z = law.sample(np.random.default_rng(options.seed), each * options.groups), law.log_z
        how, most = {"states": math.prod(terms.num_values)}, max(terms.num_values)
    else:
        found = exact(terms.quadratic, temperature, each * options.groups, options.seed)
        states, log_z = found.states, found.log_z
        how = {"states": 2**terms.num_sites} if found.width is None else {"width": found.width}
    budget.say(each * options.groups)
    bits = packed(states.reshape(options.groups, each, -1), most)
    return Drawn(bits, "none", how, log_z=(log_z, 0.0), exact=True)
