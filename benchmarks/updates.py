"""Measures how many sites Gibbs sampling tries in a second of one core, here and with what else
there is.

    python benchmarks/updates.py --cases=torus,ba --chains=64 --repeats=5

A row is a target exp(1/2 s'Js / T) on spins s; a number is millions of site updates in a second of
CPU time of all threads (`taskset -c 0` keeps them on one core), the best of several repeats, which
alternate between contenders. The last column is ours over the best peer.

Contenders: `ours`, `gibbs` with a sequential scan on the CPU engine; `numba`, the loop over sites
that one would write; `numpy`, block Gibbs on the two colours of a bipartite graph for all chains at
once; `dwave`, simulated annealing of `dwave-samplers` (Metropolis) at a constant temperature, if
that is installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import networkx as nx
import numba
import numpy as np
import scipy.sparse

import sl_discs
from sampling import SWEEPING
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import measured_by
from sl_discs.sampling.drawn import Request
from sl_discs.sampling.plain_chains import RecordedChains, ordered_method
from sl_discs.support.checks import check_choice
from sl_discs.support.documents import write_json
from sl_discs.support.files import check_file


class Case(NamedTuple):
    """A target: couplings of spins, and a temperature."""

    graph: Callable[[], nx.Graph]
    coupling: float | None
    temperature: float

    def matrix(self) -> scipy.sparse.csr_array:
        """J [N, N]; couplings are standard normal over sqrt(N) if none is given."""
        matrix = nx.to_scipy_sparse_array(self.graph(), format="csr", dtype=np.float64)
        if self.coupling is not None:
            return matrix * self.coupling
        upper = scipy.sparse.triu(matrix, format="csr")
        upper.data = np.random.default_rng(0).normal(size=upper.nnz) / np.sqrt(matrix.shape[0])
        return (upper + upper.T).tocsr()


def _torus():
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(64, 64, periodic=True))


CASES = {
    "torus": Case(_torus, 1.0, 2.269),
    "torus-hot": Case(_torus, 1.0, 3.0),
    "3-regular": Case(lambda: nx.random_regular_graph(3, 10_000, seed=1), -1.0, 0.5),
    "ba": Case(lambda: nx.barabasi_albert_graph(512, 4, seed=0), -1.0, 1.5),
    "er": Case(lambda: nx.gnp_random_graph(800, 0.05, seed=0), -1.0, 1.0),
    "er-hot": Case(lambda: nx.gnp_random_graph(800, 0.05, seed=0), -1.0, 4.0),
    "sk": Case(lambda: nx.complete_graph(200), None, 0.7),
}

FLAGS, define = own_flags()
define.list("cases", list(CASES), f"Cases, of {', '.join(CASES)}.")
define.integer("chains", 64, "Number of chains.", lower_bound=1)
define.integer("repeats", 5, "Repeats, of which the best counts.", lower_bound=1)
define.float("seconds", 0.2, "CPU seconds of a repeat.", lower_bound=0.001)
define.string("output", "bench_updates.json", "File for the results.")

# What a contender runs: a number of sweeps of all chains.
Run = Callable[[int], object]


def ours(matrix: scipy.sparse.csr_array, temperature: float, chains: int) -> Run:
    """The CPU engine, whose records are the values at the end of each run alone."""
    terms = sl_discs.ising(None, scipy.sparse.triu(matrix), maximise=True).terms()
    played = RecordedChains(
        Request(terms, temperature, None, chains, ordered_method("gibbs", SWEEPING), "cpu", 0),
        chains,
    )
    played.restart()
    return lambda sweeps: played.record(1, sweeps)


@numba.njit(nogil=True)
def _sweeps(starts, neighbours, couplings, spins, temperature, sweeps):
    for _ in range(sweeps):
        for site in range(spins.shape[0]):
            field = 0.0
            for k in range(starts[site], starts[site + 1]):
                field += couplings[k] * spins[neighbours[k]]
            up = np.random.random() < 1 / (1 + np.exp(-2 * field / temperature))  # noqa: NPY002
            spins[site] = 1 if up else -1


def plain_numba(matrix: scipy.sparse.csr_array, temperature: float, chains: int) -> Run:
    """One chain after the other."""
    spins = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (chains, matrix.shape[0]))

    def run(sweeps):
        for chain in spins:
            _sweeps(matrix.indptr, matrix.indices, matrix.data, chain, temperature, sweeps)

    return run


def numpy_blocks(matrix: scipy.sparse.csr_array, temperature: float, chains: int) -> Run | None:
    """The sites of one colour given the others, in all chains; None if the graph is not
    bipartite.
    """
    graph = nx.from_scipy_sparse_array(matrix)
    if not nx.is_bipartite(graph):
        return None
    colours = nx.bipartite.color(graph)
    parts = [np.array([site for site in graph if colours[site] == colour]) for colour in (0, 1)]
    rng = np.random.default_rng(0)
    spins = [rng.choice(np.array([-1, 1], np.float32), (len(part), chains)) for part in parts]
    blocks = [matrix[parts[k]][:, parts[1 - k]].astype(np.float32) for k in (0, 1)]

    def run(sweeps):
        for _ in range(sweeps):
            for k, block in enumerate(blocks):
                up = 1 / (1 + np.exp(np.float32(-2 / temperature) * (block @ spins[1 - k])))
                spins[k] = np.where(
                    rng.random(up.shape, np.float32) < up, np.float32(1), np.float32(-1)
                )

    return run


def dwave(matrix: scipy.sparse.csr_array, temperature: float, chains: int) -> Run | None:
    """Simulated annealing at one temperature; None if it is not installed."""
    try:
        import dimod
        from dwave.samplers import SimulatedAnnealingSampler
    except ImportError:
        return None
    upper = scipy.sparse.triu(matrix, format="coo")
    couplings = zip(upper.row.tolist(), upper.col.tolist(), (-upper.data).tolist(), strict=True)
    model = dimod.BinaryQuadraticModel.from_ising({}, {(u, v): J for u, v, J in couplings})

    def run(sweeps):
        SimulatedAnnealingSampler().sample(
            model, num_reads=chains, num_sweeps_per_beta=sweeps, beta_schedule_type="custom",
            beta_schedule=[1 / temperature], seed=1,
        )  # fmt: skip

    return run


CONTENDERS = {"ours": ours, "numba": plain_numba, "numpy": numpy_blocks, "dwave": dwave}


def measure(case: Case, chains: int, repeats: int, seconds: float) -> dict[str, float]:
    """Millions of site updates a CPU second of each contender that can play a case."""
    matrix = case.matrix()
    runs = {name: make(matrix, case.temperature, chains) for name, make in CONTENDERS.items()}
    played = {name: run for name, run in runs.items() if run is not None}
    sweeps = {}
    for name, run in played.items():
        run(1)
        sweeps[name] = 1
        # Long enough that what happens once a run does not count.
        while (taken := _cpu_seconds(run, sweeps[name])) < seconds:
            sweeps[name] = int(sweeps[name] * min(max(2, seconds / max(taken, 1e-6)), 16))
    least = dict.fromkeys(played, np.inf)
    for _ in range(repeats):
        for name, run in played.items():
            least[name] = min(least[name], _cpu_seconds(run, sweeps[name]) / sweeps[name])
    return {name: matrix.shape[0] * chains / taken / 1e6 for name, taken in least.items()}


def _cpu_seconds(run: Run, sweeps: int) -> float:
    begin = time.process_time()
    run(sweeps)
    return time.process_time() - begin


def run(_) -> int:
    """Prints the table."""
    check_choice("cases", FLAGS.cases, list(CASES))
    output, found = check_file(FLAGS.output), {}
    print(
        "case            N degree     T "
        + " ".join(f"{name:>6}" for name in CONTENDERS)
        + "  ratio"
    )
    for name in FLAGS.cases:
        case = CASES[name]
        rates, matrix = measure(case, FLAGS.chains, FLAGS.repeats, FLAGS.seconds), case.matrix()
        found[name] = rates
        columns = " ".join(f"{rates[one]:6.0f}" if one in rates else "     -" for one in CONTENDERS)
        ratio = rates["ours"] / max(rate for one, rate in rates.items() if one != "ours")
        size = f"{matrix.shape[0]:6} {matrix.nnz / matrix.shape[0]:6.1f} {case.temperature:5.3f}"
        print(f"{name:>10} {size} {columns} {ratio:6.1f}", flush=True)
    write_json(
        output,
        {
            "measured": measured_by(),
            "chains": FLAGS.chains,
            "repeats": FLAGS.repeats,
            "rates": found,
        },
    )
    print(f"saved {output}")
    return 0


main = Command("", __doc__, FLAGS, run, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
