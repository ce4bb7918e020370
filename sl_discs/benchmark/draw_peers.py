"""Other packages' samplers at a fixed temperature, and a plain NumPy loop for comparison."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from sl_discs.benchmark.contenders import NotPlayed
from sl_discs.benchmark.peers import as_bqm
from sl_discs.benchmark.targets import Spins, Target, as_spins
from sl_discs.models.coefficients import Coefficients
from sl_discs.sampling.drawn import Drawn
from sl_discs.sampling.packed import packed

# Peers that update one block of independent sites after the other compile, or loop over, each block.
_MOST_BLOCKS = 32
# For peers whose states do not form a chain, such as those after a call of annealing.
RATE_ONLY = "rate only"

Draw = Callable[[int], Drawn]


def _blocks_of(spins: Spins) -> None:
    if len(spins.blocks) > _MOST_BLOCKS:
        raise NotPlayed(f"{len(spins.blocks)} blocks of independent sites, above {_MOST_BLOCKS}")


def _imported(*names: str) -> list:
    absent = [name for name in names if importlib.util.find_spec(name.partition(".")[0]) is None]
    if absent:
        raise NotPlayed(f"{absent[0]} is not installed: pip install -e '.[peers]' in the clone")
    return [importlib.import_module(name) for name in names]


def numpy_gibbs(terms: Coefficients, target: Target, chains: int, draws: int) -> Draw:
    """Gibbs sampling of one block of independent sites after the other, all chains at once: NumPy and SciPy."""
    spins = as_spins(terms, target.temperature)
    _blocks_of(spins)
    size, (u, v) = len(terms.linear), spins.edges.T
    upper = sparse.csr_matrix((spins.couplings, (u, v)), (size, size))
    coupling = (upper + upper.T).tocsr().astype(np.float32)
    parts = [(block, coupling[block], spins.fields[block, None].astype(np.float32)) for block in spins.blocks]

    def draw(seed: int) -> Drawn:
        rng = np.random.default_rng(seed)
        state = rng.choice(np.array([-1, 1], np.float32), (size, chains))

        def sweep(count: int) -> np.ndarray:
            for _ in range(count):
                for block, rows, fields in parts:
                    odds = np.exp(-2 * (rows @ state + fields))
                    ones = rng.random(odds.shape, np.float32) * (1 + odds) < 1
                    state[block] = 2 * ones - np.float32(1)
            return packed((state > 0).T.astype(np.int8))

        sweep(target.warm_up)
        bits = np.stack([sweep(target.sweeps) for _ in range(draws)], axis=1)
        steps = (target.warm_up + draws * target.sweeps) * size * chains
        return Drawn(bits, "serial", {"steps": steps})

    return draw


def thrml(terms: Coefficients, target: Target, chains: int, draws: int) -> Draw:
    """`thrml.sample_states`, Gibbs sampling of blocks in JAX, all chains at once by `jax.vmap`."""
    library, models, equinox = _imported("thrml", "thrml.models", "equinox")
    spins = as_spins(terms, target.temperature)
    _blocks_of(spins)
    size = len(terms.linear)
    nodes = [library.SpinNode() for _ in range(size)]
    edges = [(nodes[u], nodes[v]) for u, v in spins.edges.tolist()]
    fields, couplings = jnp.asarray(spins.fields, jnp.float32), jnp.asarray(spins.couplings, jnp.float32)
    model = models.IsingEBM(nodes, edges, fields, couplings, jnp.float32(1))
    blocks = [library.Block([nodes[site] for site in block]) for block in spins.blocks]
    program = models.IsingSamplingProgram(model, blocks, [])
    schedule = library.SamplingSchedule(target.warm_up, draws, target.sweeps)

    @equinox.filter_jit
    def sample(keys, states, program):
        def one(key, state):
            [found] = library.sample_states(key, program, schedule, state, [], [library.Block(nodes)])
            return found

        return jax.vmap(one)(keys, states)

    def draw(seed: int) -> Drawn:
        first, second = jax.random.split(jax.random.key(seed))
        # With fields of zero these are uniformly random states, the start of all contenders.
        states = models.hinton_init(first, model, blocks, (chains,))
        found = np.asarray(jax.block_until_ready(sample(jax.random.split(second, chains), states, program)))
        # The first draw is the state after the warm-up.
        steps = (target.warm_up + (draws - 1) * target.sweeps) * size * chains
        return Drawn(packed(found), "serial", {"steps": steps})

    return draw


def dwave(terms: Coefficients, target: Target, chains: int, draws: int) -> Draw:
    """`dwave.samplers.SimulatedAnnealingSampler` with Gibbs acceptance, held at one temperature."""
    samplers, _ = _imported("dwave.samplers", "dimod")
    bqm = as_bqm(terms.listed())
    sampler = samplers.SimulatedAnnealingSampler()
    sweeps, size = target.warm_up + draws * target.sweeps, len(terms.linear)

    def draw(seed: int) -> Drawn:
        found = sampler.sample(
            bqm, num_reads=chains, seed=seed + 1, num_sweeps=sweeps, num_sweeps_per_beta=sweeps,
            beta_schedule_type="custom", beta_schedule=[1 / target.temperature],
            proposal_acceptance_criteria="Gibbs",
        )  # fmt: skip
        states = found.record.sample[:, None, np.argsort(found.variables)]
        return Drawn(packed(states), RATE_ONLY, {"steps": sweeps * size * chains})

    return draw


PEERS = {"thrml": thrml, "dwave-samplers": dwave, "numpy": numpy_gibbs}
