"""The table of refusals: names, and what is called, raised and named."""

import abc
import dataclasses
import functools
import gzip
import io
import lzma
import zipfile

import dimod
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pandas as pd
from refusals import ExitCode2, Refusal, command, read
from scipy import sparse

import sl_discs
from sl_discs.engines.choice import choose_engine
from sl_discs.experiment.experiment import request_of, samplers_of
from sl_discs.experiment.parts import Part
from sl_discs.experiment.settings import settings_from
from sl_discs.instances.archive import read_archive, read_forms, write_archive
from sl_discs.instances.dataset import load_dataset, write_discs
from sl_discs.instances.discs_files import load_pickle
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models.model import Categories
from sl_discs.problems.kind import KINDS
from sl_discs.reproduction.tuned import read_tuned
from sl_discs.samplers import registry
from sl_discs.samplers.path import GWG as Gwg
from sl_discs.samplers.registry import register_sampler
from sl_discs.samplers.sampler import Sampler
from sl_discs.support.errors import FormatError, InputError, NotSupported

REFUSALS: dict[str, Refusal] = {}

# Files, in all formats: the content, the line that is named, and the format where it is given.


def zip_of(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


MM = "%%MatrixMarket matrix coordinate"
REAL = f"{MM} real general\n"
PATTERN = f"{MM} pattern symmetric\n"
ARRAY = "%%MatrixMarket matrix array real general\n"
GRAPHS = {
    "empty": ("", None),
    "binary": (bytes(range(256)) * 8, None),
    "utf-16": ("3 1\n1 2 1\n".encode("utf-16"), None),
    "labels not utf-8": (b"a \xfe\n\xfa \xfb\n", 1, "edge_list"),
    "names of nodes": ("alice bob\nbob carol\n", None),
    "shortest paths": ("c a\np sp 3 2\na 1 2 4\n", None),
    "zip": (zip_of("a{}.txt", "1 2"), None),
    "dimacs in bits": (b"16\nc a\np col 4 3\n\x00\x80\xc0", None),
    "cut zip": (zip_of("a.txt", "1 2")[:30], None),
    "cut gzip": (gzip.compress(b"3 1\n1 2 1\n" * 99)[:-9], None),
    "damaged xz": (lzma.compress(b"2 1\n1 2 1\n").replace(b"YZ", b"XX"), None),
    "rudy: too few": ("9 5\n1 2\n2 3\n", 1, "rudy"),
    "rudy: node 4": ("3 2\n\n# x\n1 2 1\n2 4 1\n", 5, "rudy"),
    "rudy: nan": ("3 2\n1 2 1\n2 3 nan\n", 3, "rudy"),
    "rudy: loop": ("3 2\n1 2\n2 2\n", 3, "rudy"),
    "rudy: repeated": ("3 3\n1 2 1\n1 3 1\n2 1 1\n", 4, "rudy"),
    "rudy: 10^15 nodes": ("1000000000000000 1\n1 2 1\n", 1, "rudy"),
    "rudy: 10^9 nodes": ("1000000000 1\n1 2 1\n", 1, "rudy"),
    "dimacs: too few": ("p edge 3 3\ne 1 2\ne 2 1\n", 1),
    "dimacs: unknown line": ("p edge 3 1\nq 1 2\n", 2),
    "dimacs: node 4": ("p edge 3 2\ne 1 2\nc x\ne 4 1\n", 4),
    "dimacs: negative weight": ("p edge 3 1\nn 2 -1\ne 1 2\n", None),
    "metis: too few lines": ("4 3 1\n2 5\n1 5 3 1\n2 1\n", 1, "metis"),
    "metis: one way": ("3 1\n2\n\n\n", 2, "metis"),
    "metis: range": ("3 2\n2\n1 4\n2\n", 3, "metis"),
    "metis: edges": ("3 3\n2\n1 3\n2\n", 1, "metis"),
    "metis: weights": ("3 2 1\n2 1\n1 2 3 1\n2 1\n", 3, "metis"),
    "list: columns": ("0 1\n1 2\n2\n", 3, "edge_list"),
    "list: leading zeros": ("0" * 5000 + "1 2\n2 x\n", 1, "edge_list"),
    "list: digits": ("1 2 " + "1" * 10**5 + "x\n", 1, "edge_list"),
    "list: attributes": ("1 2 {}\n1 3 {(\n", 2),
    "list: conflict": ("0 1 2\n1 2 2\n1 0 3\n", 3, "edge_list"),
    "mm: complex": (f"{MM} complex general\n1 1 0\n", 1),
    "mm: two numbers": (PATTERN + "3 2\n2 1\n3 2\n", 2),
    "mm: not square": (REAL + "2 3 0\n", 2),
    "mm: too few": (PATTERN + "3 3 2\n2 1\n", 2),
    "mm: a dense one": (ARRAY + "2 2\n1\n", 2),
    "mm: 10^15 entries": (PATTERN + "3 3 1000000000000000\n2 1\n", 2),
    "mm: twice": (REAL + "3 3 2\n2 1 5\n2 1 5\n", 4),
    "mm: diagonal": (REAL + "3 3 2\n2 1 5\n2 2 4\n", 4),
    "cnf: too few": ("p cnf 2 2\n1 2 0\n", 1),
    "cnf: literal": ("p cnf 2 1\n1 3 0\n", 2),
    "cnf: many edges": (f"p cnf 5000 1\n{' '.join(map(str, range(1, 5001)))} 0\n", None),
    "cnf: nothing": ("p cnf 1 1\n0\n", None),
    "gml: cut short": ("graph [\n node [ id 1 ]\n", None),
    "graphml: cut short": ("<graphml><graph>\n", None),
    "graphml: a value twice": (
        "<graphml><key id='k' for='edge' attr.name='weight' attr.type='double'/><graph><node id='a'/><node id='b'/><edge source='a' target='b'><data key='k'>2</data><data key='k'>3</data></edge></graph></graphml>",
        None,
    ),
    "graphml: a weight of XML": (
        "<graphml><graph><node id='a'/><node id='b'/><edge source='a' target='b' weight='3'/></graph></graphml>",
        None,
    ),
    "json: a label": ('{"nodes":\n[{"id": {}}], "edges": []}', None),
    "json: a label of an edge": (
        '{"nodes":\n[{"id": 1}], "edges": [{"source": 1, "target": [1, {}]}]}',
        None,
    ),
    "json: a number as a node": ('{"nodes":\n[1], "edges": []}', None),
    "json: a list as an edge": ('{"nodes":\n[{"id": 1}], "edges": [[1, 1]]}', None),
    "gml: entities": ("<!DOCTYPE g [<!ENTITY a 'b'>]><graphml/>", None),
    "json: both": ('{"nodes": [{}], "edges": [], "links": []}', None),
    "json: a name twice": ('{"nodes": [], "nodes": [], "edges": []}', None),
    "npz: text": ("p qubo 0 2 0 1\n0 1 3\n", None, "npz"),
    "rudy: an archive": (zip_of("names.npy", b"\x93NUMPY"), None, "rudy"),
    "git lfs": (f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\n", None),
    "json: other content": ('{"best_value": 3}', None),
}
MODELS = {
    "qbsolv: couplers": ("c\np qubo 0 2 1 2\n0 0 1\n0 1 1\n", 2),
    "qbsolv: twice": ("p qubo 0 2 0 2\n0 1 1\n0 1 1\n", 3),
    "qbsolv: scale": ("c scale : 2\np qubo 0 1 1 0\n0 0 1\n", None),
    "coo: vartype": ("# vartype=TERNARY\n0 1 1\n", None),
    "biqmac: too few": ("3 3\n1 1 2\n1 2 2\n", 1, "biqmac"),
    "biqmac: twice": ("3 3\n1 1 2\n1 2 2\n2 1 2\n", 4, "biqmac"),
    "a sum that overflows": (REAL + "2 2 2\n1 1 1e308\n2 2 1e308\n", None),
}
NOT_SUPPORTED = {"binary", "utf-16", "names of nodes", "shortest paths", "zip", "dimacs in bits"}
for table, problem in ((GRAPHS, None), (MODELS, "qubo")):
    for name, (content, line, *format) in table.items():
        call = read(content, format[0] if format else None, problem)
        error = NotSupported if name in NOT_SUPPORTED else FormatError
        error = InputError if name == "git lfs" else error
        REFUSALS[f"file, {name}"] = Refusal(call, error, line)

# Archives of arrays that contradict each other: the arrays that are changed, or left out.
ARCHIVE = {
    "names": np.array(["a", "b"]),
    "num_nodes": np.array([3, 2]),
    "edge_ptr": np.array([0, 2, 3]),
    "edges": np.array([[0, 1], [1, 2], [0, 1]], np.uint16),
    "edge_weight": np.ones(3),
    "reference": np.array([1.0, np.nan]),
}
ARCHIVE_OF_MODELS = {
    "names": np.array(["a", "b"]),
    "num_variables": np.array([2, 1]),
    "pair_ptr": np.array([0, 1, 1]),
    "pairs": np.array([[0, 1]]),
    "linear": np.ones(3),
    "couplings": np.array([3.0]),
    "offset": np.zeros(2),
    "spins": np.array([True, False]),
    "maximise": np.array([True, False]),
    "reference": np.full(2, np.nan),
}


def archive(arrays, changes, reader, **options):
    def call(folder):
        changed = {name: one for name, one in (arrays | changes).items() if one is not None}
        np.savez(folder / "bad.npz", **changed)
        reader(folder / "bad.npz", **options)

    return Refusal(call, FormatError)


CHANGES = {
    "no edges": {"edges": None},
    "ends of graphs": {"edge_ptr": np.array([0, 1, 2])},
    "no graph": {name: array[:0] for name, array in ARCHIVE.items()} | {"edge_ptr": np.array([0])},
    "10^9 nodes": {"num_nodes": np.array([10**9, 2])},
    "an edge twice": {"edges": np.array([[0, 1], [1, 0], [0, 1]])},
    "objects": {"names": np.array(["a", None], dtype=object)},
    "2^53 + 1": {"edge_weight": np.array([1, 1, 2**53 + 1])},
}
CHANGES_OF_MODELS = {
    "negative": {"num_variables": np.array([4, -1])},
    "shape": {"num_variables": np.array([2, 2])},
    "type": {"spins": np.array([0, 1])},
}
for name, changes in CHANGES.items():
    REFUSALS[f"archive, {name}"] = archive(ARCHIVE, changes, read_archive)
for name, changes in CHANGES_OF_MODELS.items():
    REFUSALS[f"archive of models, {name}"] = archive(ARCHIVE_OF_MODELS, changes, read_forms)
REFUSALS["archive, of graphs where models are read"] = archive(ARCHIVE, {}, read_forms)

# Datasets, and the files that they are read from and written as.
BA = ("maxcut", "ba", "r-ba-4-n-16-20")
GRAPH = Graph.from_arrays("g", 3, [(0, 1)])
PAIR = Dataset("mis/ertest/r-800", "mis", "archive", "here", [GRAPH] * 2, [0, 1], 2)


def dataset(*arguments, error=InputError, named=None, **options):
    return Refusal(lambda folder: load_dataset(*arguments, **options), error, named)


def written(graphs, **options):
    """Writes two graphs, and again so many."""

    def call(folder):
        write_discs(PAIR, folder)
        again = dataclasses.replace(
            PAIR, graphs=PAIR.graphs[:graphs], index=PAIR.index[:graphs], total=graphs
        )
        write_discs(again, folder, **options)

    return Refusal(call, InputError)


def archives_of_one_name(folder):
    for name in ("0.10", "0.10_old"):
        write_archive(folder / f"mis_er_density_{name}.npz", [GRAPH])
    load_dataset("mis", "er_density", "r-0.10", folder)


REFUSALS |= {
    "dataset, satlib": dataset("mis", "satlib", "_"),
    "dataset, twitter": dataset("maxclique", "twitter", "_"),
    "dataset, a family": dataset("mis", "ba", "_"),
    "dataset, a size": dataset("mis", "ertest", "_"),
    "dataset, no value": dataset("maxcut", "ba", "r-../../x"),
    "dataset, p": dataset("mis", "er_density", "r-1.5"),
    "dataset, r": dataset("mis", "ertest", "r-9"),
    "dataset, sizes": dataset("maxcut", "ba", "r-ba-4-n-20-16"),
    "dataset, m": dataset("maxcut", "ba", "r-ba-4-n-4-9"),
    "dataset, first": dataset(*BA, first=-1, named=f"{'/'.join(BA)}: first"),
    "dataset, beyond": dataset(*BA, first=32),
    "dataset, stride": dataset(*BA, stride=0, named=f"{'/'.join(BA)}: stride"),
    "dataset, memory": dataset(*BA, num_instances=10**9),
    "dataset, position": dataset(*BA, num_instances=2, stride=2**31),
    "dataset, two archives": Refusal(archives_of_one_name, InputError),
    "written, already there": written(2),
    "written, others there": written(1, overwrite=True),
}

# Problems, `solve`, `sample` and `run`, by their public names.
TRIANGLE = sl_discs.mis([(0, 1), (1, 2), (0, 2)])
PAIR_OF_SPINS = sl_discs.ising({0: 0.5, 1: 0.0}, {(0, 1): 1.0})
LARGE = sl_discs.ising(dict.fromkeys(range(9), 1e300), {(0, 1): 1.0})
CLIQUES = sl_discs.maxclique([(0, 1)], num_nodes=20_000)
SET = {"name": "mis", "graph_type": "er_density", "cfg_str": "r-0.05"}


class Sparse:
    """A SciPy matrix of this shape, as far as anybody may look."""

    shape = (2**40, 2**40)

    def tocoo(self, copy):
        raise AssertionError("looked at")


def refuses(function, *arguments, error=InputError, named=None, **keywords):
    return Refusal(lambda folder: function(*arguments, **keywords), error, named)


def density(function, shape=4, **more):
    return refuses(sl_discs.from_log_density, function, (), shape, named="fn", **more)


def drawn(method, *arguments, **more):
    """A method of draws, called."""
    return refuses(
        lambda: getattr(sl_discs.sample(PAIR_OF_SPINS, draws=8), method)(*arguments), **more
    )


def panels(given):
    return refuses(lambda: sl_discs.sample(PAIR_OF_SPINS, draws=8).plot(panels=given))


WITHOUT_GRADIENT = sl_discs.from_log_density(
    lambda params, x: jax.lax.while_loop(lambda v: v < 9, lambda v: v + 1, x.sum()), (), 4
)
SUM = sl_discs.from_log_density(lambda params, x: x.sum(), (), 6)
WIDE = sl_discs.from_log_density(lambda params, x: x.sum(), (), 21)
BELOW = sl_discs.from_log_density(lambda scale, x: -scale * (1 + x.sum()), 1.0, (3,))
DENSE = sl_discs.ising({}, dict.fromkeys(nx.random_regular_graph(12, 5_000, seed=0).edges, -0.2))
solve, sample, run = sl_discs.solve, sl_discs.sample, sl_discs.run
REFUSALS |= {
    "mis, 2^40 nodes": refuses(sl_discs.mis, [(0, 2**40)]),
    "mis, an edge beyond": refuses(
        sl_discs.mis, np.array([[0, 2**63 + 1]], np.uint64), num_nodes=5
    ),
    "qubo, 2^40 variables": refuses(sl_discs.qubo, Sparse()),
    "solve, steps": refuses(solve, TRIANGLE, steps=10**12, named="steps"),
    "solve, chains": refuses(solve, TRIANGLE, chains=10**9),
    "solve, levels": refuses(solve, TRIANGLE, "sl_gwg", steps=10**9),
    "solve, variables": refuses(lambda: solve(sl_discs.mis([(0, 1)], num_nodes=2**25 + 1))),
    "solve, a colour that is shared": refuses(
        solve, TRIANGLE, "block_gibbs", colours=(0, 1, 0), presolve=False, named="colours"
    ),
    "sample, too few colours": refuses(
        sample,
        TRIANGLE,
        1.0,
        method="chain",
        sampler="block_gibbs",
        colours=(0, 1),
        named="colours",
    ),
    "solve, colours that are letters": refuses(
        solve, TRIANGLE, "block_gibbs", colours=("a", "b", "c"), presolve=False, named="colours"
    ),
    "sample, colours of a function": refuses(
        sample,
        SUM,
        1.0,
        method="chain",
        sampler="block_gibbs",
        colours=tuple(range(6)),
        named="colours",
    ),
    "solve, a dense complement": refuses(solve, CLIQUES, chains=2, steps=10, presolve=False),
    "sample, temperature nan": refuses(sample, TRIANGLE, float("nan"), named="temperature"),
    "sample, temperature below 0": refuses(sample, TRIANGLE, [1.0, -2.0], named="temperature"),
    "sample, no temperature": refuses(sample, TRIANGLE, [], named="temperature"),
    "sample, temperatures in rows": refuses(sample, TRIANGLE, [[1.0]], named="temperature"),
    "sample, a curve by chains": refuses(
        sample, TRIANGLE, [1.0, 2.0], method="chain", named="method"
    ),
    "sample, method": refuses(sample, TRIANGLE, method="magic", named="method"),
    "sample, a localized sampler": refuses(sample, TRIANGLE, sampler="sl_gibbs", named="sampler"),
    "sample, beta": refuses(sample, TRIANGLE, beta=2.0),
    "sample, sigma": refuses(sample, TRIANGLE, method="localization", sigma=10.0),
    "sample, coefficients": refuses(sample, LARGE, 1.0, 64, "chain"),
    "sample, 1e-300": refuses(sample, PAIR_OF_SPINS, 1e-300, 64, "low_rank"),
    "sample, 1e-310": refuses(sample, PAIR_OF_SPINS, 1e-310),
    "sample, 1e-310 beside an offset": refuses(
        lambda: sample(sl_discs.qubo([[0.0]], offset=5.0), 1e-310)
    ),
    "sample, 1e-310 of a density": refuses(sample, BELOW, 1e-310),
    "sample, a density on cpu": refuses(sample, SUM, method="chain", engine="cpu", named="engine"),
    "sample, no gradient": refuses(
        sample, WITHOUT_GRADIENT, method="chain", sampler="gwg", named="fn"
    ),
    "sample, a sampler with exact": refuses(
        sample, TRIANGLE, method="exact", sampler="gibbs", named="sampler"
    ),
    "sample, too many states": refuses(sample, WIDE, method="exact", named="method"),
    "sample, dense without a direction": refuses(sample, DENSE, 1.0, 10, "low_rank"),
    "samples, observable": drawn("mean", "energy level", named="observable"),
    "samples, label": drawn("marginal", "s99"),
    "samples, expectation": drawn("expectation", lambda states: states),
    "samples, expectation that is none": drawn("expectation", lambda states: states[:, 0] / 0.0),
    "samples, suffix": drawn("save", "draws.json"),
    "plot, text": panels("swaps"),
    "plot, no panel": panels([]),
    "plot, a name": panels(["swap"]),
    "plot, no ladder": panels(["swaps"]),
    "plot, no curve": panels(["entropy"]),
    "density, an array": density(lambda params, x: x),
    "density, nan": density(lambda params, x: jnp.log(x.sum() - 9)),
    "density, inf": density(lambda params, x: 1 / x.sum()),
    "density, no start": density(lambda params, x: x.sum() - jnp.inf, 40),
    "density, nan at the start": density(lambda params, x: -jnp.inf * x[0], 2, start=[0, 1]),
    "density, shape of the start": refuses(
        sl_discs.from_log_density, lambda params, x: x.sum(), (), 2, start=[[1, 0]], named="start"
    ),
    "run, no sampler": refuses(run, [], **SET),
    "run, a number": refuses(samplers_of, 3),
    "run, a list of numbers": refuses(samplers_of, [3]),
    "run, no name": refuses(samplers_of, [{"K": 4}]),
    "run, a sampler twice": refuses(run, ["PAS", "path_auxiliary"], **SET),
    "run, no set": refuses(run, ["PAS"]),
    "run, steps": refuses(run, ["PAS"], **SET, steps=3),
    "run, another set": refuses(
        run, ["PAS"], **SET, config={"model": {"name": "maxcut", "graph_type": "ba"}}
    ),
    "run, not finished": refuses(sl_discs.Experiment(None, note="part 1 of 2: done").summary),
    "run, draws by annealing": refuses(
        run, ["gwg"], model_config={"name": "ising"}, t_schedule="linear"
    ),
    "run, draws from several": refuses(
        run, ["gwg"], model_config={"name": "ising"}, num_instances=2
    ),
    "run, draws of few steps": refuses(
        run, ["gwg"], model_config={"name": "ising"}, chain_length=4
    ),
    "run, draws on an engine": refuses(run, ["gwg"], model_config={"name": "rbm"}, engine="cpu"),
    "run, draws in parts": refuses(
        request_of({}, {"name": "ising"}, {}, named={}, part=Part(1, 2)).load
    ),
    "run, a near name": refuses(settings_from, {"chain_lenght": 5}),
    "run, log_every_steps": refuses(settings_from, {"chain_length": 10, "log_every_steps": 100}),
    "run, t_schedule": refuses(settings_from, {"t_schedule": "cosine"}),
    "run, temperatures": refuses(settings_from, {"t_schedule": (1.0, -1.0)}),
}

# Content of files that this package writes or reads elsewhere.


def content(reader, name, text):
    def call(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        reader(path)

    return call


class Own(Sampler):
    """A sampler that no compiled engine knows."""

    def init_state(self, key, shape):
        raise NotImplementedError

    def kernel(self, key, target, chain):
        raise NotImplementedError


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize 4096\n" % (b"0" * 64)
ER = "er_700_800/ER-700-800-0.10.pkl"
REFUSALS |= {
    "read, a pointer of Git LFS": Refusal(content(load_pickle, "g.npz", LFS), InputError),
    "read, an archive in Git LFS": Refusal(content(read_archive, "g.npz", LFS), InputError),
    "read, a format": Refusal(read("1 2\n", "gexf", None), InputError, "format"),
    "read, draws": Refusal(content(sl_discs.Samples.load, "draws.npz", b""), FormatError),
    "read, arrays as draws": archive(ARCHIVE, {}, sl_discs.Samples.load),
    "engine, a sampler of one's own": refuses(
        choose_engine, "cpu", Own(), error=NotSupported, named="engine"
    ),
    "read, no file": refuses(lambda: sl_discs.read("missing.edges")),
    "read, a graph as a qubo": Refusal(
        content(lambda path: sl_discs.read(path, "qubo"), "g.edges", b"0 1\n"), InputError
    ),
    "read, tuned settings": Refusal(content(read_tuned, "tuned.json", b"{}"), FormatError),
    "read, a pickle": Refusal(
        content(
            lambda path: load_dataset("mis", "er_density", "r-0.10", path.parents[1]), ER, b"x"
        ),
        FormatError,
    ),
}

# Commands: `sl-discs`, and files in the working directory.
EDGES = {"g.edges": "0 1\n1 2\n2 0\n"}
RUN = "run --config=CLONE/configs/experiment/mis/er_density.py"
MODEL = "--model_config=CLONE/configs/model/mis_config.py"
GWG = f"{RUN} {MODEL} --samplers=gwg"
SL_GWG = f"{RUN} {MODEL} --sampler_config=CLONE/configs/sampler/sl_gwg_config.py"
EXAMPLE = "--sweep=CLONE/configs/sweep/seeds_and_samplers.py"
SWEEP = """from ml_collections import config_dict

def get_config():
    return config_dict.ConfigDict({
        "model": "mis",
        "graph_type": "er_density",
        "sampler": "gwg",
        "sweep": [{"sampler_config.name": ["gwg", "sl_gwg"], "config.experiment.seed": [0, 1]}],
    })
"""
BAD = "run --config=bad.py --samplers=gwg"
RUDY = {"in": "2 1\n1 2 5\n"}
COMMANDS = {
    "unknown": ("slove --help", None),
    "an argument": ("run more", None),
    "flagfile": ("solve g.edges --flagfile=/dev/zero", None),
    "no sampler": (f"{RUN} {MODEL}", None),
    "no config": (f"run --config=elsewhere/a.py {MODEL} --samplers=gwg", "--config"),
    "import": ("solve --import=none.py", "--import"),
    "import, a name": ("run --import=broken_code.py --samplers=mine", "--import"),
    "import, syntax": ("run --import=broken_code.py", "--import"),
    "import, exit": ("run --import=broken_code.py", "--import"),
    "import, taken": ("run --import=numpy.py", "--import"),
    "import, nothing registered": (f"{RUN} {MODEL} --import=nothing.py --samplers=mine", None),
    "run, a name of the paper": (f"{RUN} {MODEL} --samplers=pas", None),
    "run, penalty": (f"{GWG} --model_config.penalty=0.5", "--model_config.penalty"),
    "run, a near field": (
        f"{GWG} --config.experiment.chain_lenght=5",
        "--config.experiment.chain_lenght",
    ),
    "run, a field of a field": (f"{GWG} --config.experiment.x.y=5", "--config.experiment.x.y"),
    "run, a field of no config": (f"{GWG} --config=er_densty.py --config.experiment.seed=5", None),
    "run, data_root": (f"{GWG} --model_config.data_root=nowhere", None),
    "run, too short": (
        f"{RUN} {MODEL} --samplers=sl_gwg --config.experiment.chain_length=500",
        None,
    ),
    "run, a near field of a sampler": (f"{SL_GWG} --sampler_config.sigm=2", None),
    "run, a config of none": (f"{SL_GWG} --samplers=gwg,dmala", "--sampler_config"),
    "run, sigma of no sampler": (
        f"{RUN} {MODEL} --samplers=gwg,dmala --sampler_config.sigma=2.0",
        None,
    ),
    "run, sigma without samplers": (f"{RUN} {MODEL} --sampler_config.sigma=2.0", None),
    "run, anneal": (
        f"{RUN} {MODEL} --samplers=SL-PAS --sampler_config.anneal=levels",
        "--sampler_config.anneal",
    ),
    "run, another problem": (
        f"run --config=CLONE/configs/experiment/maxcut/ba.py {MODEL} --samplers=gwg",
        "--config",
    ),
    "run, another family": (f"{GWG} --model_config.graph_type=ertest", "--config"),
    "run, satlib": (
        f"run --config=CLONE/configs/experiment/mis/satlib.py {MODEL} --samplers=gwg",
        None,
    ),
    "run, part 0": (f"{GWG} --part=0/2", "--part"),
    "run, part without a count": (f"{GWG} --part=3", "--part"),
    "run, more parts than instances": (
        f"{GWG} --part=1/5 --config.experiment.num_instances=4",
        None,
    ),
    "config, no config": (f"{BAD} {MODEL}", "--config"),
    "config, an error": (f"{BAD} {MODEL}", None),
    "config, an exit": (f"{BAD} {MODEL}", None),
    "sweep, what": (f"sweep play {EXAMPLE}", None),
    "sweep, save_root": (f"sweep run {EXAMPLE} --save_root=/proc/none", None),
    "sweep, slurm": (f"sweep run {EXAMPLE} --slurm=--partition=gpu", "--slurm"),
    "sweep, array": (
        f"sweep run {EXAMPLE} --dry_run --executor=slurm --slurm=--array=1-4",
        "--slurm",
    ),
    "sweep, parallel": (f"sweep run {EXAMPLE} --parallel=2", "--parallel"),
    "sweep, retry": (f"sweep status {EXAMPLE} --retry", "--retry"),
    "sweep, a near flag": (f"sweep run {EXAMPLE} -- --engin=cpu", None),
    "sweep, part": (f"sweep run {EXAMPLE} -- --part=1/2", "--part"),
    "sweep, samplers": (f"sweep run {EXAMPLE} -- --samplers=gwg", "--samplers"),
    "sweep, import": (f"sweep run {EXAMPLE} -- --import=own.py", "--import"),
    "sweep, engine": (f"sweep run {EXAMPLE} -- --engine=gpu", None),
    "sweep, no number": (f"sweep run {EXAMPLE} -- --config.experiment.threads=two", None),
    "sweep, a number": (f"sweep run --dry_run {EXAMPLE} -- --config.experiment.threads=-1", None),
    "sweep, sigma of gwg": (f"sweep run {EXAMPLE} -- --sampler_config.sigma=-1.0", None),
    "sweep, sigma": (f"sweep run {EXAMPLE} --samplers=sl_gwg -- --sampler_config.sigma=-1.0", None),
    "sweep, data_root": (f"sweep run {EXAMPLE} -- --model_config.data_root=nowhere", None),
    "sweep file, an error": ("sweep run --dry_run --sweep=sweep.py", None),
    "sweep file, no config": ("sweep run --dry_run --sweep=sweep.py", None),
    "sweep file, no sweep": ("sweep run --dry_run --sweep=sweep.py", None),
    "sweep file, no flag": ("sweep run --dry_run --sweep=sweep.py", None),
    "sweep file, no runs": ("sweep run --dry_run --sweep=sweep.py", None),
    "sweep file, a model of DISCS": ("sweep run --dry_run --sweep=sweep.py", None),
    "sweep file, a graph type": ("sweep run --dry_run --sweep=sweep.py", None),
    "sweep file, runs that differ": (
        "sweep run --dry_run --sweep=sweep.py -- --config.experiment.seed=7",
        "--config.experiment.seed",
    ),
    "sweep file, a field": ("sweep run --dry_run --sweep=sweep.py", None),
    "solve, a graph without a problem": ("solve g.edges", None),
    "solve, a second file": ("solve g.edges more.edges", None),
    "solve, suffix": ("solve missing.rudy --problem=mis --save=new/a.md", "--save"),
    "solve, time_limit": ("solve missing.rudy --problem=mis --time_limit=0", "--time_limit"),
    "solve, a field": (
        "solve missing.rudy --problem=mis --sampler=sl_gwg --field=sigma=-1.0",
        "--field",
    ),
    "sample, a word": ("sample missing.coo --temperature=1,hot", None),
    "sample, 0": ("sample missing.coo --temperature=1,0", "--temperature"),
    "sample, a field": ("sample missing.coo --temperature=1 --field=scan=zigzag", "--field"),
    "sample, two sizes": ("sample missing.coo --temperature=1 --time_limit=1 --draws=9", "--draws"),
    "sample, suffix": ("sample missing.coo --temperature=1 --save=d.txt", "--save"),
    "sample, a folder": ("sample missing.coo --temperature=1 --plot=folder.png", None),
    "reproduce, what": ("reproduce", None),
    "reproduce, nothing left": ("reproduce main --datasets=", None),
    "reproduce, a set": ("reproduce main --datasets=mis", "--datasets"),
    "reproduce, a method": ("reproduce main --methods=gibbs", "--methods"),
    "reproduce, a reading": ("reproduce main --reading=level --held_out", "--held_out"),
    "reproduce, data_root": ("reproduce main --data_root=nowhere", None),
    "reproduce, memory": (
        "reproduce main --datasets=mis/er_density/r-0.10 --chains=1000000000",
        None,
    ),
    "convert, weights": ("convert in out.clq --from=rudy", None),
    "convert, a complement": ("convert in out.npz --from=rudy --complement", None),
    "convert, a suffix": ("convert in out.xyz", None),
    "convert, a model": ("convert in out.rudy", None),
    "discs files, no zip": ("discs files --data_root=data.zip", None),
    "discs data, satlib": ("discs data --data_root=sco --model=mis --graph_type=satlib", None),
    "discs data, twitter": (
        "discs data --data_root=sco --model=maxclique --graph_type=twitter",
        None,
    ),
    "discs data, source": (
        "discs data --data_root=sco --model=maxcut --graph_type=optsicom --source=no/such/folder",
        None,
    ),
}
# What stands in the working directory.
BESIDE: dict[str, dict[str, str]] = {
    "flagfile": EDGES,
    "solve, a graph without a problem": EDGES,
    "solve, a second file": EDGES,
    "import, a name": {"broken_code.py": "x = 1\ny = unknown"},
    "import, syntax": {"broken_code.py": "def f(:"},
    "import, exit": {"broken_code.py": "raise SystemExit(3)"},
    "import, taken": {"numpy.py": ""},
    "import, nothing registered": {"nothing.py": ""},
    "config, no config": {"bad.py": "def get_config():\n    return 3"},
    "config, an error": {"bad.py": "def get_config():\n    raise RuntimeError('of\\ntwo lines')"},
    "config, an exit": {"bad.py": "import sys\nsys.exit(3)"},
    "sweep file, an error": {"sweep.py": "1 / 0"},
    "sweep file, no config": {"sweep.py": "def get_config():\n    return 3"},
    "sweep file, no sweep": {"sweep.py": SWEEP.replace("[{", "3, #")},
    "sweep file, no flag": {"sweep.py": SWEEP.replace("config.experiment.seed", "num_models")},
    "sweep file, no runs": {"sweep.py": SWEEP.replace("[0, 1]", "[]")},
    "sweep file, a model of DISCS": {
        "sweep.py": SWEEP.replace("mis", "ising").replace('"graph_type": "er_density",', "")
    },
    "sweep file, a graph type": {"sweep.py": SWEEP.replace("er_density", "er_densty")},
    "sweep file, runs that differ": {"sweep.py": SWEEP},
    "sweep file, a field": {
        "sweep.py": SWEEP.replace("config.experiment.seed", "sampler_config.steps")
    },
    "discs files, no zip": {"data.zip": "PK"},
    "convert, weights": RUDY,
    "convert, a complement": RUDY,
    "convert, a suffix": RUDY,
    "convert, a model": {"in": "p qubo 0 2 0 1\n0 1 5\n"},
}
REFUSALS |= {
    f"sl-discs, {name}": Refusal(command(words, BESIDE.get(name, {})), ExitCode2, flag)
    for name, (words, flag) in COMMANDS.items()
}

# Problems, answers to them, and schedules.

NAN = float("nan")
TRIPLE = nx.Graph([("a", "b"), ("b", "c")])
PAIRED = nx.Graph([(0, 1, {"cost": 2})])
UNKNOWN = nx.Graph([("b", "c", {"weight": 1.0}), ("a", ("b", 1), {"weight": NAN})])
TWO = sl_discs.ising({"a": 1.0, "b": 1.0}, {})
PATH = sl_discs.mis(nx.path_graph(2))
SPINS = sl_discs.ising(np.ones(3), {})
maxcut, qubo, ising, mis = sl_discs.maxcut, sl_discs.qubo, sl_discs.ising, sl_discs.mis
from_arrays = QuadraticForm.from_arrays


def hidden(values, mask):
    return np.ma.masked_array(values, mask=mask)


def framed(entries, index, columns):
    return pd.DataFrame(entries, index=list(index), columns=list(columns))


def levels(named=None, **changes):
    plan = dataclasses.replace(Localization(), **changes)
    return refuses(lambda: plan.levels(1_100), named=named)


def sampler_of(factory, **defaults):
    """A sampler of one's own, registered and built."""

    def call(folder):
        register_sampler("refused", factory, **defaults)
        try:
            registry.registered("refused").build({})
        finally:
            registry._REGISTERED.pop("refused")

    return Refusal(call, InputError)


class NoKernel(Gwg):
    """Lacks a method."""

    kernel = abc.abstractmethod(Gwg.kernel)


class Unhashable(Gwg):
    """As dataclasses are that are not frozen."""

    __hash__ = None


REFUSALS |= {
    "maxcut, a self-loop": refuses(maxcut, nx.Graph([(0, 0), (0, 1)])),
    "maxcut, an edge twice": refuses(maxcut, [[0, 1], [1, 2], [1, 0]]),
    "maxcut, edges of labels": refuses(maxcut, [("a", "b")]),
    "maxcut, edges with weights": refuses(maxcut, [[0, 1, 2.5]]),
    "maxcut, a set of edges": refuses(maxcut, {(0, 1)}),
    "maxcut, a directed graph": refuses(maxcut, nx.DiGraph([(0, 1)])),
    "maxcut, an attribute": refuses(maxcut, PAIRED, "length"),
    "maxcut, the name of a file": refuses(maxcut, "G1.rudy"),
    "maxcut, a weight nan": refuses(maxcut, UNKNOWN),
    "maxcut, num_nodes": refuses(maxcut, [[0, 1]], num_nodes=-1, named="maxcut: num_nodes"),
    "maxcut, a table of edges": refuses(
        maxcut, pd.DataFrame({"s": [0, 1], "t": [1, 2], "w": [1.0, 2.0]})
    ),
    "maxcut, neither symmetric nor triangular": refuses(
        maxcut, framed([[0, 2], [1, 0]], "ab", "ab")
    ),
    "maxcut, masked edges": refuses(
        maxcut, hidden([[0, 1], [1, 2], [0, 2]], [[0, 0]] * 2 + [[0, 1]])
    ),
    "maxcut, masked weights": refuses(maxcut, [[0, 1], [1, 2]], hidden([1.0, 2.0], [0, 1])),
    "mis, a node far away": refuses(mis, [[0, 10**8]]),
    "mis, penalty nan": refuses(mis, [[0, 1]], penalty=NAN, named="mis: penalty"),
    "mis, penalty 0.5": refuses(mis, [[0, 1]], penalty=0.5, named="mis: penalty"),
    "mis, a diagonal": refuses(mis, framed([[1, 0], [0, 1]], "ab", "ab")),
    "mis, two weights": refuses(mis, TRIPLE, weight=[1, 2]),
    "mis, a weight below 0": refuses(
        mis, TRIPLE, weight=[1, -2, 3], named="mis: the weight of node 'b'"
    ),
    "mis, weight nan": refuses(
        mis, TRIPLE, weight=[1, 2, NAN], named="mis: the weight of node 'c'"
    ),
    "mis, weights of 1e307": refuses(mis, TRIPLE, weight=[1e307] * 3),
    "mis, a weight of no node": refuses(mis, TRIPLE, weight={"a": 1, "b": 2, "c": 3, "d": 4}),
    "mis, no weight": refuses(mis, TRIPLE, weight="mass"),
    "mis, weights of labels": refuses(mis, [[0, 1]], weight=pd.Series([1.0, 2.0], [0, "b"])),
    "qubo, a graph": refuses(qubo, nx.path_graph(2)),
    "qubo, a model of dimod": refuses(qubo, dimod.BQM("SPIN")),
    "qubo, nan": refuses(qubo, {("a", "b"): NAN}),
    "qubo, no pair": refuses(qubo, {"ab": 1}),
    "qubo, offset": refuses(qubo, np.eye(2), offset=float("inf"), named="qubo: offset"),
    "qubo, rows and columns": refuses(qubo, framed([[1, 2], [3, 4]], "ab", "cd")),
    "qubo, a label twice": refuses(qubo, framed([[1, 2], [3, 4]], "aa", "aa")),
    "ising, a label beside an array": refuses(ising, np.ones(2), {(0, "a"): 1}),
    "ising, maximise": refuses(ising, {"a": 1.0}, {}, maximise="no", named="ising: maximise"),
    "ising, an array beside a frame": refuses(ising, [1.0], framed([[0]], "a", "a")),
    "ising, a label of a Series twice": refuses(ising, pd.Series([1.0, 2.0], ["a", "a"]), None),
    "bqm, a dict": refuses(sl_discs.from_bqm, {}),
    "form, a pair beyond": refuses(from_arrays, "form", [0.0], [[0, 1]], [1.0]),
    "form, nan": refuses(from_arrays, "form", [0.0], [[0, 0]], [NAN]),
    "form, two couplings": refuses(from_arrays, "form", [0.0], [[0, 0]], [1.0, 2.0]),
    "value, a label without a value": refuses(TWO.value, {"a": 1}),
    "value, 0 of a spin": refuses(TWO.value, {"a": 1, "b": 0}),
    "value, three": refuses(TWO.value, [1, 1, 1]),
    "evaluate, a frame": refuses(PATH.evaluate, pd.DataFrame([[1, 0]])),
    "evaluate, masked": refuses(PATH.evaluate, hidden([[1, 0]], [[0, 1]])),
    "evaluate, padding": refuses(PATH.evaluate, np.array([[1, 0, 1]])),
    "evaluate, a half": refuses(PATH.evaluate, np.array([[0.5, 0]])),
    "fix, no label": refuses(TWO.fix, {"z": 1}),
    "fix, no dict": refuses(TWO.fix, 3),
    "fix, a value": refuses(TWO.fix, {"a": 2}),
    "fix, all": refuses(TWO.fix, {"a": 1, "b": 1}),
    "fix, a conflict": refuses(mis(nx.path_graph(3)).fix, {0: 1, 1: 1}),
    "register, a name twice": refuses(
        sl_discs.register_problem, dataclasses.replace(KINDS["mis"], unit="nodes")
    ),
    "register, no kind": refuses(sl_discs.register_problem, len),
    "solve, sizes": refuses(lambda: solve(qubo({(0, 0): 1e300, (1, 1): 1e-30}), "metropolis")),
    "solve, a sampler": refuses(solve, SPINS, "sa"),
    "solve, sigma nan": refuses(solve, SPINS, "sl_gwg", sigma=NAN),
    "solve, a seed of many bits": refuses(solve, SPINS, seed=2**64, named="seed"),
    "solve, no function": refuses(solve, SPINS, callback=3, named="callback"),
    "solve, a table with a 0": refuses(
        solve, SPINS, annealing={"t_schedule": [1.0, 0]}, named="annealing"
    ),
    "solve, heating": refuses(solve, SPINS, "metropolis", annealing=(1, 2), named="annealing"),
    "solve, ragged states": refuses(solve, SPINS, initial_states=[[1, 1], [1]]),
    "solve, an answer as states": refuses(
        solve, PATH, initial_states=solve(PATH).answer, named="initial_states"
    ),
    "solve, a number as states": refuses(
        solve, PATH, initial_states=np.int64(1), named="initial_states"
    ),
    "solve, masked states": refuses(solve, PATH, initial_states=hidden([1, 0], [0, 1])),
    "solve, a near argument": refuses(solve, SPINS, stepz=100),
    "solve, too many levels": refuses(solve, SPINS, "sl_gibbs", steps=100, K=64, n_min=4),
    "solve, presolve and states": refuses(solve, PATH, presolve=True, initial_states=[1, 0]),
    "solve, a log-density": refuses(solve, SUM),
    "solve, a number": refuses(solve, 3),
    "sample, a number": refuses(sample, 3),
    "levels, sigma": levels(sigma=NAN),
    "levels, eps": levels(eps=0.6, eps_end=0.4),
    "levels, eps_end": levels(eps_end=0.0),
    "levels, none": levels(K=0),
    "levels, many": levels(K=10**9),
    "levels, mc_ratio": levels(mc_ratio=0.0),
    "levels, r": levels(r=0.0),
    "levels, grid": levels("sampler_config.grid", grid="cosine"),
    "levels, anneal": levels("sampler_config.anneal", anneal="levels"),
    "levels, horizon": levels(alpha="classic", horizon=float("inf")),
    "levels, alpha": levels(alpha="cosine"),
    "levels, alpha of one number": levels(alpha="geom(2)"),
    "levels, alpha of 0": levels(alpha="geom(0,1)"),
    "method, unknown": refuses(build_method, {"name": "nuts"}),
    "method, sigma of a base": refuses(build_method, {"name": "gwg", "sigma": 3.0}),
    "method, K": refuses(build_method, {"name": "sl_gwg", "K": "many"}),
    "sites, one value": refuses(Categories, 1),
    "sites, 128 values": refuses(Categories, 128),
    "sampler, abstract": sampler_of(NoKernel),
    "sampler, a default of none": sampler_of(Gwg, flips=2),
    "sampler, a required argument": sampler_of(lambda strength: Gwg()),
    "sampler, no sampler": sampler_of(lambda: {}),
    "sampler, a builtin": sampler_of(dict),
    "sampler, unhashable": sampler_of(Unhashable),
    **{
        f"sampler, the name {name!r}": refuses(register_sampler, name, Gwg)
        for name in ("PAS", "auto", "", "a b", "a,b", "x:y:z")
    },
}

# What NumPy cannot compare with a name or a number, or shows in several lines.
MATRIX = np.eye(3)
NOT_PLAIN = {
    "vector": np.array([1.0, 2.0]), "matrix": MATRIX, "empty": np.array([]), "sparse": sparse.csr_array(MATRIX),
    "masked": np.ma.masked_array([1, 2], [0, 1]), "long": list(range(1000)),
}  # fmt: skip
PROBLEM = sl_discs.qubo({("a", "b"): 1.0})
TAKE_PLAIN = {
    "solve": (functools.partial(sl_discs.solve, PROBLEM), "sampler engine steps chains seed "
        "progress callback"),
    "sample": (
        functools.partial(sl_discs.sample, PROBLEM),
        "temperature draws method seed time_limit sampler groups engine interrupt progress scan",
    ),
    "maxcut": (functools.partial(sl_discs.maxcut, nx.path_graph(3)), "name num_nodes"),
    "mis": (functools.partial(sl_discs.mis, nx.path_graph(3)), "name penalty"),
    "qubo": (functools.partial(sl_discs.qubo, {("a", "b"): 1.0}), "name offset maximise"),
    "read": (functools.partial(sl_discs.read, "graph.edges"), "problem format"),
    "from_log_density": (
        functools.partial(sl_discs.from_log_density, lambda params, x: x.sum(), (), 3), "name start"
    ),
    "mean": (lambda observable: sl_discs.sample(PROBLEM, draws=8).mean(observable), "observable"),
    "marginal": (lambda value: sl_discs.sample(PROBLEM, draws=8).marginal("a", value), "value"),
    "save": (lambda path: sl_discs.sample(PROBLEM, draws=8).save(path), "path"),
}  # fmt: skip
