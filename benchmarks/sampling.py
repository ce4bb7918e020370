"""Compares the speed of draws at a temperature with that of thrml, dwave-samplers and loops that are
written by hand in NumPy and numba.

    python benchmarks/sampling.py --targets=ising-critical,ising-3 --repeats=5
    python benchmarks/sampling.py --targets=machine,cubic-glass --methods=chain,auto --by_errors --repeats=16

Repetitions of all contenders alternate. A rate is the number of site updates per CPU-second of all
threads, with warm-up and without compilation. The number of effective draws is the bulk effective
sample size or, with `--by_errors`, the number of independent draws whose mean has the mean square
error of the means over the repetitions, which also counts modes that chains miss; it is known to a
relative error of sqrt(2/repeats). `sweeps` is a plain chain with the schedule of the other packages; the other methods
choose their own. Calls of dwave-samplers at one temperature do not form a chain, so only its rate
is given. Where R-hat has a star, effective draws mean little.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from jaxtyping import Float64, Int
from scipy import sparse

import by_hand
from cases import ENGINES, family, torus
from contenders import NotPlayed, as_bqm, timed
from sl_discs.chains.budget import Budget
from sl_discs.commands.command import Command, own_flags
from sl_discs.engines.compiled import compile_cpu_seconds, compile_seconds
from sl_discs.engines.devices import describe_machine
from sl_discs.experiment.record import measured_by
from sl_discs.instances.form import QuadraticForm
from sl_discs.models.terms import Coefficients
from sl_discs.problems.forms import ising, qubo
from sl_discs.problems.problem import Problem
from sl_discs.sampling.diagnostics import LEAST_DRAWS, MOST_R_HAT, diagnose
from sl_discs.sampling.draw_samples import AUTO, METHODS, sample
from sl_discs.sampling.drawn import Drawn, Request, observed, packed
from sl_discs.sampling.plain_chains import RecordedChains, ordered_method
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_file
from sl_discs.support.terminal import progress_bar, say

sys.path.append(str(Path(__file__).parents[1] / "studies"))
from truths import CRITICAL, curie_weiss, ising_torus

_SIDE, _SPINS = 64, 200
# Of the Curie-Weiss model, whose two modes are close below the temperature 1.
_NEARLY_CRITICAL = 0.97


class Target(NamedTuple):
    problem: Callable[[], Problem]  # makes the problem
    temperature: float  # tau
    warm_up: int  # sweeps of contenders that do not choose it themselves
    sweeps: int  # between two draws of such contenders, about what method `chain` chooses


class Spins(NamedTuple):
    """A target in the form for peers: exp(sum_i field_i s_i + sum_edges coupling s_u s_v),
    temperature included.
    """

    fields: Float64[np.ndarray, "N"]  # [N]
    edges: Int[np.ndarray, "M 2"]  # [M, 2]
    couplings: Float64[np.ndarray, "M"]  # [M]
    blocks: list[np.ndarray]  # sites of each colour of a colouring, none of which are neighbours


def _grid(temperature: float) -> Problem:
    return ising_torus(_SIDE, temperature).problem


def _spin_glass() -> Problem:
    """Sherrington and Kirkpatrick's model, couplings with variance 1/N."""
    pairs = np.argwhere(np.triu(np.ones((_SPINS, _SPINS), bool), 1))
    couplings = np.random.default_rng(_SPINS).normal(size=len(pairs)) / np.sqrt(_SPINS)
    form = QuadraticForm.from_arrays(
        "sk", np.zeros(_SPINS), pairs, couplings, spins=True, maximise=True
    )
    return Problem("ising", "sk", range(_SPINS), form)


def _lattice_glass() -> Problem:
    """Couplings -1 or 1 on a square torus; its maximum cuts are its ground states."""
    graph = torus(32, 2, False, 0)
    form = QuadraticForm.from_arrays(
        "glass", np.zeros(graph.num_nodes), graph.edges, graph.weights, spins=True
    )
    return Problem("ising", "glass", range(graph.num_nodes), form)


def _independent_sets() -> Problem:
    [graph] = family("mis", "er_density", "r-0.05")(1)
    return Problem("mis", graph.name, range(graph.num_nodes), graph)


def _machine() -> Problem:
    """A restricted Boltzmann machine of 150 visible and 30 hidden units."""
    rng = np.random.default_rng(0)
    weights = 0.5 * rng.normal(size=(150, 30))
    terms = {(i, i): float(one) for i, one in enumerate(0.3 * rng.normal(size=180))}
    terms |= {(i, 150 + j): float(one) for (i, j), one in np.ndenumerate(weights)}
    return qubo(terms, maximise=True)


def _cubic_glass() -> Problem:
    """Couplings -1 or 1 on a graph of 200 nodes with three neighbours each."""
    graph = nx.random_regular_graph(3, _SPINS, seed=0)
    rng = np.random.default_rng(0)
    return ising({}, {edge: float(rng.choice((-1, 1))) for edge in graph.edges})


def _triangular() -> Problem:
    """An antiferromagnet on a triangular torus of 24 x 24."""
    side = 24
    steps = [(0, 1), (1, 0), (1, 1)]
    pairs = {
        ((i, j), ((i + di) % side, (j + dj) % side)): 1.0
        for i, j in np.ndindex(side, side)
        for di, dj in steps
    }
    return ising({}, pairs)


def _cubic_lattice() -> Problem:
    """A ferromagnet on a cubic torus of 8 x 8 x 8."""
    graph = nx.grid_graph([8, 8, 8], periodic=True)
    return ising({}, dict.fromkeys(graph.edges, -1.0))


def _mean_field() -> Problem:
    return curie_weiss(600, _NEARLY_CRITICAL).problem


def _coupled(graph: nx.Graph) -> Problem:
    """Normal couplings and fields, for methods that are exact."""
    rng = np.random.default_rng(0)
    fields = {node: float(rng.normal()) for node in graph}
    return ising(fields, {edge: float(rng.normal()) for edge in graph.edges})


TARGETS = {
    "ising-critical": Target(functools.partial(_grid, CRITICAL), CRITICAL, 2_048, 64),
    "ising-3": Target(functools.partial(_grid, 3.0), 3.0, 64, 24),
    "spin-glass": Target(_spin_glass, 1 / 0.9, 256, 32),
    "lattice-glass": Target(_lattice_glass, 0.5, 2_048, 64),
    "mis-er": Target(_independent_sets, 0.3, 256, 16),
    "machine": Target(_machine, 1.0, 64, 2),
    "cubic-glass": Target(_cubic_glass, 0.7, 2_048, 64),
    "triangular": Target(_triangular, 0.8, 1_024, 56),
    "cubic-lattice": Target(_cubic_lattice, 4.6, 1_024, 32),
    "mean-field": Target(_mean_field, _NEARLY_CRITICAL, 256, 16),
    "grid-12": Target(lambda: _coupled(nx.grid_2d_graph(12, 12)), 1.0, 256, 16),
    "grid-16": Target(lambda: _coupled(nx.grid_2d_graph(16, 16)), 1.0, 256, 16),
    "tree": Target(lambda: _coupled(nx.random_labeled_tree(500, seed=0)), 1.0, 256, 16),
    "cubic-60": Target(lambda: _coupled(nx.random_regular_graph(3, 60, seed=0)), 1.0, 256, 16),
}


def as_spins(terms: Coefficients, temperature: float, *, coloured: bool = True) -> Spins:
    """The same distribution on spins, with a greedy colouring."""
    terms = terms.listed()
    weights, size = terms.scale * terms.weights / temperature, len(terms.linear)
    fields = terms.linear / temperature / 2
    for end in terms.edges.T:
        fields = fields + np.bincount(end, weights / 4, size)
    # Couplings of spins without fields leave rounding of sums.
    fields = np.where(np.abs(fields) < 1e-9, 0.0, fields)
    if not coloured:
        return Spins(fields, terms.edges, weights / 4, [])
    graph = nx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(terms.edges.tolist())
    # Breadth first gives a bipartite graph, such as a grid of even side, its two colours.
    colouring = nx.greedy_color(graph, "connected_sequential_bfs")
    colours = np.array([colouring[site] for site in range(size)])
    blocks = [np.flatnonzero(colours == colour) for colour in range(colours.max() + 1)]
    return Spins(fields, terms.edges, weights / 4, blocks)


# Peers that update one block of independent sites after the other compile, or loop over, each
# block.
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
    """Gibbs sampling of one block of independent sites after the other, all chains at once: NumPy
    and SciPy.
    """
    spins = as_spins(terms, target.temperature)
    _blocks_of(spins)
    size, (u, v) = len(terms.linear), spins.edges.T
    upper = sparse.csr_matrix((spins.couplings, (u, v)), (size, size))
    coupling = (upper + upper.T).tocsr().astype(np.float32)
    parts = [
        (block, coupling[block], spins.fields[block, None].astype(np.float32))
        for block in spins.blocks
    ]

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
    fields, couplings = (
        jnp.asarray(spins.fields, jnp.float32),
        jnp.asarray(spins.couplings, jnp.float32),
    )
    model = models.IsingEBM(nodes, edges, fields, couplings, jnp.float32(1))
    blocks = [library.Block([nodes[site] for site in block]) for block in spins.blocks]
    program = models.IsingSamplingProgram(model, blocks, [])
    schedule = library.SamplingSchedule(target.warm_up, draws, target.sweeps)

    @equinox.filter_jit
    def sample(keys, states, program):
        def one(key, state):
            [found] = library.sample_states(
                key, program, schedule, state, [], [library.Block(nodes)]
            )
            return found

        return jax.vmap(one)(keys, states)

    def draw(seed: int) -> Drawn:
        first, second = jax.random.split(jax.random.key(seed))
        # With fields of zero these are uniformly random states, the start of all contenders.
        states = models.hinton_init(first, model, blocks, (chains,))
        found = np.asarray(
            jax.block_until_ready(sample(jax.random.split(second, chains), states, program))
        )
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


def dwave_tree(terms: Coefficients, target: Target, chains: int, draws: int) -> Draw:
    """`dwave.samplers.TreeDecompositionSampler`: independent draws, and marginals."""
    samplers, _ = _imported("dwave.samplers", "dimod")
    bqm = as_bqm(terms.listed())
    sampler = samplers.TreeDecompositionSampler()

    def draw(seed: int) -> Drawn:
        try:
            found = sampler.sample(
                bqm, num_reads=chains * draws, beta=1 / target.temperature, seed=seed + 1
            )
        except ValueError as error:
            raise NotPlayed(str(error)) from error
        states = found.record.sample[:, np.argsort(found.variables)]
        rows = np.repeat(states, found.record.num_occurrences, axis=0)
        return Drawn(packed(rows.reshape(chains, draws, -1)), "none", {"steps": rows.size})

    return draw


# Loops over more neighbours than this take minutes.
_MOST_EDGES = 20_000
# Sweeps of a ladder, and clusters, from one draw to the next, as a part of the sweeps of a chain.
_TEMPERING_PART, _WOLFF_PART = 4, 8
_HAND_RUNGS = 10


def _numba_loop(loop: Callable, part: int, *more: np.ndarray) -> Callable:
    """Returns a peer that plays a loop of `by_hand`, one chain after the other."""

    def peer(terms: Coefficients, target: Target, chains: int, draws: int) -> Draw:
        spins = as_spins(terms, target.temperature, coloured=False)
        if len(spins.edges) > _MOST_EDGES:
            raise NotPlayed(f"{len(spins.edges):,} couplings, above {_MOST_EDGES:,}")
        ferromagnet = bool((spins.couplings >= 0).all() and not spins.fields.any())
        if loop is by_hand.wolff and not ferromagnet:
            raise NotPlayed("Wolff's clusters need a ferromagnet without fields")
        lists = by_hand.neighbour_lists(len(spins.fields), spins.edges, spins.couplings)
        sweeps = max(1, target.sweeps // part)
        warm_up = max(1, target.warm_up // part)

        def draw(seed: int) -> Drawn:
            states = np.empty((chains, draws, len(spins.fields)), np.int8)
            steps = sum(
                loop(seed * chains + chain, lists, spins.fields, warm_up, sweeps, row, *more)
                for chain, row in enumerate(states)
            )
            return Drawn(packed(states > 0), "serial", {"steps": steps})

        return draw

    return peer


def auxiliary_field(terms: Coefficients, target: Target, chains: int, draws: int) -> Draw:
    """An auxiliary field, for equal couplings of all pairs without fields."""
    spins = as_spins(terms, target.temperature, coloured=False)
    size = len(spins.fields)
    coupling = float(spins.couplings[0])
    if (
        len(spins.couplings) != size * (size - 1) // 2
        or np.ptp(spins.couplings) > 1e-9 * coupling
        or np.abs(spins.fields).max() > 1e-9
    ):
        raise NotPlayed("an auxiliary field needs equal couplings of all pairs without fields")

    def draw(seed: int) -> Drawn:
        states = np.empty((chains, draws, size), np.int8)
        steps = by_hand.auxiliary_field(seed, coupling, target.warm_up, target.sweeps, states)
        return Drawn(packed(states > 0), "serial", {"steps": steps})

    return draw


PEERS = {
    "thrml": thrml,
    "dwave-samplers": dwave,
    "numpy": numpy_gibbs,
    "numba-gibbs": _numba_loop(by_hand.gibbs, 1),
    "numba-tempering": _numba_loop(
        by_hand.tempering, _TEMPERING_PART, np.linspace(0, 1, _HAND_RUNGS + 1)[1:]
    ),
    "numba-wolff": _numba_loop(by_hand.wolff, _WOLFF_PART),
    "auxiliary-field": auxiliary_field,
    "dwave-tree": dwave_tree,
}
# Those that every target is compared with where none are named.
_USUAL_PEERS = "thrml", "dwave-samplers", "numpy"


# The name of the plain loop with the peers' schedule, rather than one that a method chooses.
SWEEPS = "sweeps"
SWEEPING = {"scan": "sequential"}
OWN = (SWEEPS, "chain", "tempering", "localization")
OTHERS = ("low_rank", "exact", AUTO)
OBSERVABLES = ("value", "magnetisation", "overlap")
# The reference engine runs methods on targets up to this size; on larger ones it runs this many
# steps for its rate.
_REFERENCE_SIZE, _REFERENCE_STEPS = 300, 20_000
# Repetitions from which errors are known to half of their size.
_LEAST_REPEATS = 8
# A localized draw costs thousands of sweeps, so there is one for this many draws of a chain.
_LOCALIZED = 8


class Played(NamedTuple):
    """One repetition.

    Attributes:
      steps: site updates of all chains, including those of warm-ups and searches.
      seconds: wall time without compilation.
      cpu_seconds: CPU time of this process without compilation.
      effective: effective sample sizes of the observables; None if only the rate counts.
      r_hat: the largest R-hat of the observables; None likewise, and for independent draws.
      means: of the value and the magnetisation.
      variances: of the same.
    """

    steps: int
    seconds: float
    cpu_seconds: float
    effective: tuple[float, ...] | None
    r_hat: float | None
    means: tuple[float, ...] = ()
    variances: tuple[float, ...] = ()

    @property
    def rate(self) -> float:
        """Site updates per CPU-second."""
        return self.steps / self.cpu_seconds


class Row(NamedTuple):
    target: str
    contender: str
    played: list[Played]


def play(draw: Draw, seed: int, terms: Coefficients) -> Played:
    """One repetition; diagnostics are computed after the clock has stopped."""
    wall, cpu = compile_seconds(), compile_cpu_seconds()
    cpu_seconds, seconds, drawn = timed(draw, seed)
    wall, cpu = compile_seconds() - wall, compile_cpu_seconds() - cpu
    seen = observed(terms, drawn.bits)
    compared = [seen[name] for name in OBSERVABLES[:2]]
    # Independent draws count one step of each site.
    steps = drawn.how.get("steps", compared[0].size * terms.num_sites)
    return Played(
        steps,
        seconds - wall,
        cpu_seconds - cpu,
        *_judged(drawn, seen),
        tuple(float(one.mean()) for one in compared),
        tuple(float(one.var()) for one in compared),
    )


def _judged(
    drawn: Drawn, seen: dict[str, np.ndarray]
) -> tuple[tuple[float, ...] | None, float | None]:
    if drawn.dependence == RATE_ONLY or drawn.bits.shape[1] < LEAST_DRAWS:
        return None, None
    if drawn.dependence != "serial":
        return (float(drawn.bits.shape[0] * drawn.bits.shape[1]),) * len(OBSERVABLES), None
    found = [diagnose(name, column) for name, column in seen.items()]
    return tuple(one.ess_bulk for one in found), max(one.r_hat for one in found)


def counted_by_errors(rows: list[Row]) -> list[Row]:
    """Returns the contenders of one target with effective sample sizes by mean square errors.

    The truth is the mean of the contenders' means, weighted by their precision over repetitions.
    """
    means = np.array([[one.means for one in row.played] for row in rows])
    repeats = means.shape[1]
    precision = repeats / np.maximum(means.var(axis=1, ddof=1), 1e-300)
    truth = (means.mean(axis=1) * precision).sum(axis=0) / precision.sum(axis=0)
    spread = np.median([one.variances for row in rows for one in row.played], axis=0)
    errors = ((means - truth) ** 2).mean(axis=1)
    return [
        row._replace(played=[one._replace(effective=tuple(spread / error)) for one in row.played])
        for row, error in zip(rows, errors, strict=True)
    ]


def contender(name: str, terms: Coefficients, target: Target, chains: int, draws: int) -> Draw:
    """The function that draws for a contender, `METHOD/ENGINE` or a peer; NotPlayed if it
    cannot.
    """
    if name in PEERS:
        return PEERS[name](terms, target, chains, draws)
    method, _, engine = name.partition("/")
    slow = engine == "reference" and len(terms.linear) > _REFERENCE_SIZE
    if method == SWEEPS:
        return _sweeps(terms, target, chains, draws, engine, rate_only=slow)
    if slow:
        raise NotPlayed(
            f"more than {_REFERENCE_SIZE} variables would take hours; sweeps/{engine} has its rate"
        )
    if method == AUTO:
        return _auto(target, chains * draws, engine)
    each = max(1, draws // _LOCALIZED) if method == "localization" else draws

    def draw(seed: int) -> Drawn:
        request = Request(
            terms, target.temperature, each, chains, ordered_method("gibbs", {}), engine, seed
        )
        return METHODS[method](request, Budget())

    return draw


def _auto(target: Target, draws: int, engine: str) -> Draw:
    """A whole call of `sample`, with its evidence, which the clock of other methods leaves out."""
    problem = target.problem()

    def draw(seed: int) -> Drawn:
        found = sample(problem, target.temperature, draws, seed=seed, engine=engine)
        if found.method == "exact":
            raise NotPlayed("auto enumerates or eliminates it")
        how: dict[str, Any] = dict(found.how)
        return Drawn(found.bits, found.dependence, how)

    return draw


def _sweeps(
    terms, target: Target, chains: int, draws: int, engine: str, *, rate_only: bool
) -> Draw:
    warm_up, sweeps = target.warm_up, target.sweeps
    if rate_only:
        draws, warm_up, sweeps = 1, 1, -(-_REFERENCE_STEPS // len(terms.linear))

    def draw(seed: int) -> Drawn:
        request = Request(
            terms,
            target.temperature,
            draws,
            chains,
            ordered_method("gibbs", SWEEPING),
            engine,
            seed,
        )
        sweeping = RecordedChains(request, chains)
        sweeping.restart()
        sweeping.record(1, warm_up)
        states = sweeping.record(draws, sweeps).states
        kind = RATE_ONLY if rate_only else "serial"
        return Drawn(packed(np.swapaxes(states, 0, 1)), kind, {"steps": sweeping.steps})

    return draw


def compare(
    target: str, names: list[str], chains: int, draws: int, repeats: int, progress
) -> list[Row]:
    """Alternating repetitions of all contenders on a target, after a first one of each for
    compilation.
    """
    chosen = TARGETS[target]
    terms = chosen.problem().terms()
    rows, drawers = [], []
    for name in names:
        try:
            drawers.append(contender(name, terms, chosen, chains, draws))
            rows.append(Row(target, name, []))
        except NotPlayed as reason:
            say(f"{target}: {name} is left out: {reason}")
    for seed in range(repeats + 1):
        for row, draw in zip(rows, drawers, strict=True):
            found = play(draw, seed, terms)
            if seed:
                row.played.append(found)
            progress("benchmark", 1)
    return rows


def mean_and_error(values) -> tuple[float, float]:
    """The mean of repetitions and its standard error, nan for a single one."""
    values = list(values)
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return statistics.fmean(values), error


def effective_rates(row: Row, by_errors: bool = False) -> list[tuple[float, float]] | None:
    """Effective draws of each observable per CPU-second, with errors."""
    if by_errors:  # the same in each repetition
        seconds = statistics.fmean(one.cpu_seconds for one in row.played)
        relative = (2 / len(row.played)) ** 0.5
        rates = [one / seconds for one in row.played[0].effective or ()]
        return [(one, relative * one) for one in rates]
    rates = [
        [one / p.cpu_seconds for one in p.effective] for p in row.played if p.effective is not None
    ]
    return [mean_and_error(column) for column in zip(*rates, strict=True)] or None


def as_json(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        {
            "target": row.target,
            "contender": row.contender,
            "repetitions": [one._asdict() for one in row.played],
        }
        for row in rows
    ]


def format_rows(rows: list[Row], by_errors: bool = False) -> str:
    """A table of millions of site updates and effective draws per CPU-second, with errors over
    repetitions.
    """
    first = rows[0]
    observables = OBSERVABLES[:2] if by_errors else OBSERVABLES
    lines = [
        f"{first.target}",
        f"  {'':<22} {'M updates/CPU-s':>16} {'M/s of wall':>12} {f'{first.contender} is':>16}"
        + "".join(f"{name:>20}" for name in observables) + f"{'R-hat':>8}",
    ]  # fmt: skip
    for row in rows:
        rate, error = mean_and_error(one.rate / 1e6 for one in row.played)
        wall, _ = mean_and_error(one.steps / one.seconds / 1e6 for one in row.played)
        ratio, spread = mean_and_error(
            a.rate / b.rate for a, b in zip(first.played, row.played, strict=True)
        )
        found = effective_rates(row, by_errors)
        cells = (
            [f"{one:.3g} ({bar:.2g})" for one, bar in found] if found else ["-"] * len(observables)
        )
        worst = max((one.r_hat for one in row.played if one.r_hat is not None), default=None)
        mark = "-" if worst is None else f"{worst:.2f}" + "*" * (worst > MOST_R_HAT)
        lines.append(
            f"  {row.contender:<22} {f'{rate:.3g} ({error:.2g})':>16} {wall:>12.3g} "
            f"{f'{ratio:.2f}x ({spread:.2f})':>16}"
            + "".join(f"{cell:>20}" for cell in cells) + f"{mark:>8}"
        )  # fmt: skip
    return "\n".join(lines)


FLAGS, define = own_flags()
define.list("targets", list(TARGETS)[:5], f"Targets: {', '.join(TARGETS)}.")
define.list("methods", list(OWN), f"Methods of this package; and {', '.join(OTHERS)}.")
define.boolean(
    "by_errors", False, "Count effective draws by errors over the repetitions, at least 8 of them."
)
define.list("engines", ["cpu", "reference"], "Engines of this package.")
define.list("peers", list(_USUAL_PEERS), f"Peers: {', '.join(PEERS)}.")
define.integer("chains", 8, "Chains or ladders per contender.", lower_bound=2)
define.integer("draws", 64, "Draws per chain.", lower_bound=4)
define.integer("repeats", 3, "Repetitions, with different seeds.", lower_bound=1)
define.integer(
    "cores", 1, "Cores for every contender, on systems that can restrict them.", lower_bound=1
)
define.string("output", "bench_sampling.json", "File for the results.")


def _stay_on(cores: int) -> None:
    """Restricts the process to so many cores, before JAX starts its threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def run(_) -> int:
    check_choice("targets", FLAGS.targets, TARGETS)
    check_choice("methods", FLAGS.methods, (*OWN, *OTHERS))
    check_choice("engines", FLAGS.engines, ENGINES)
    check_choice("peers", FLAGS.peers, PEERS)
    output = check_file(FLAGS.output)
    if FLAGS.by_errors and FLAGS.repeats < _LEAST_REPEATS:
        raise InputError(f"--by_errors needs --repeats of at least {_LEAST_REPEATS}", "by_errors")
    _stay_on(FLAGS.cores)
    names = [
        f"{method}/{engine}" for engine in FLAGS.engines for method in FLAGS.methods
    ] + FLAGS.peers
    machine = describe_machine()
    say(
        f"{machine}; {FLAGS.chains} chains x {FLAGS.draws} draws, {FLAGS.repeats} repetitions, "
        "alternating; "
        "standard errors in brackets"
    )
    record: dict = {"measured": measured_by(), "chains": FLAGS.chains, "draws_each": FLAGS.draws}
    rows = []
    total = len(FLAGS.targets) * len(names) * (FLAGS.repeats + 1)
    with progress_bar(total, " repetitions") as progress:
        for target in FLAGS.targets:
            found = compare(target, names, FLAGS.chains, FLAGS.draws, FLAGS.repeats, progress)
            if FLAGS.by_errors:
                found = counted_by_errors(found)
            if found:
                say("\n" + format_rows(found, FLAGS.by_errors))
            rows += found
    record["draws"] = as_json(rows)
    write_json(output, record)
    say(f"\nsaved {output}")
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
