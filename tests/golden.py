"""Compares states, values and draws of each sampler, engine and driver with an earlier record, bit
by bit.

    python tests/golden.py FILE

writes digests to FILE where there is none, before a change that is meant to change no bit, and
afterwards prints the entries that differ. Floating point depends on processor and JAX, so a record
counts only where it was made.
"""

import hashlib
import json
import platform
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from chains import play_program, program_at, quadratic_case, random_edges
from engines_at_hand import PLAIN_LANE
from tqdm import tqdm

import sl_discs
from sl_discs.discs_plugin.modules import OwnSampler
from sl_discs.discs_plugin.upstream import States
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models.model import TargetModel
from sl_discs.samplers.registry import base_samplers, is_localized
from sl_discs.testing import standard_cases

BASES = sorted(base_samplers())
ENGINES = ("reference", "cpu")
LEVELS = {"K": 4, "n_min": 4, "sigma": 2.0, "eps_end": 0.01}
# Samplers by which the methods of `sample` are recorded, in addition to chains by all of them.
FEW = ("gibbs", "metropolis", "path_auxiliary", "dmala")


def problem():
    """A lattice of 16 nodes."""
    return sl_discs.mis(nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4)), penalty=1.5)


def solved(sampler, engine):
    fields = LEVELS if sampler.startswith("sl_") else {}
    found = sl_discs.solve(
        problem(), sampler, steps=64, chains=4, engine=engine, seed=3, presolve=False, **fields
    )
    return found.values, found.states, found.final_states, found.trajectory.best


def sampled(method, sampler, engine):
    fields = LEVELS if method == "localization" else {}
    found = sl_discs.sample(
        problem(), 0.7, 64, method, seed=3, sampler=sampler, engine=engine, groups=4, **fields
    )
    return found.states, found.values


def run(sampler, engine):
    fields = {"name": sampler} | (LEVELS if is_localized(sampler) else {})
    settings = Settings(batch_size=4, chain_length=64, log_every_steps=16, engine=engine, seed=3)
    dataset = load_dataset("mis", "er_density", "r-0.05", num_instances=1)
    record = run_sampler(plan_of(dataset, 1.0001, build_method(fields), settings))
    (one,) = record.instances
    return one.best, one.solution, record.trajectory, record.acceptance, record.hops


def stepped(sampler):
    case = standard_cases()[1]
    size = case.model.num_sites
    own = OwnSampler(build_method({"name": sampler}).sampler, 4, States((size,)))
    x, state = jnp.zeros((4, size), jnp.int32), own.make_init_state(jax.random.PRNGKey(0))
    target = case.model.target(case.target.params, case.mask)
    step = jax.jit(lambda key, x, state: own.step(TargetModel(), key, x, target, state))
    for number in range(8):
        x, state, acceptance = step(jax.random.PRNGKey(number), x, state)
    return x, acceptance


def in_one_lane(sampler):
    """Two localized chains of the engine `cuda` by one lane that runs as Python."""
    rng = np.random.default_rng(0)
    edges = random_edges(rng, 40, 8)
    case = quadratic_case(rng.normal(size=40), edges, rng.choice([-3, -1, 1], len(edges)))
    levels = Localization(K=3, sigma=2.0, n_min=2)
    program = program_at(np.linspace(2.0, 0.5, 12), levels.levels(12))
    return play_program(PLAIN_LANE, case, sampler, rng.integers(0, 2, (2, 40)), program, 3)


def cases():
    """Name of each entry and the call that makes it."""
    for engine in ENGINES:
        for base in BASES:
            for name in (base, f"sl_{base}"):
                yield (
                    f"solve {name} {engine}",
                    lambda name=name, engine=engine: solved(name, engine),
                )
                yield f"run {name} {engine}", lambda name=name, engine=engine: run(name, engine)
            for method in ("chain", "tempering", "localization", "low_rank"):
                few = (
                    ("gibbs",) if method == "low_rank" and engine == "reference" else FEW
                )  # which takes a minute each
                if method == "chain" or base in few:
                    yield (
                        f"sample {method} {base} {engine}",
                        lambda m=method, base=base, engine=engine: sampled(m, base, engine),
                    )
    for name in BASES:
        yield f"plugin {name}", lambda name=name: stepped(name)
        sampler = build_method({"name": name}).sampler
        if PLAIN_LANE.obstacle(sampler) is None:
            yield f"one lane {name}", lambda sampler=sampler: in_one_lane(sampler)


def digest(call):
    """The digest of what a call returns, or the one line with which it is refused."""
    try:
        values = call()
    except sl_discs.InputError as error:
        return f"refused: {error}"
    hasher = hashlib.sha256()
    for leaf in jax.tree.leaves(values):
        array = np.asarray(leaf)
        hasher.update(
            f"{array.dtype.kind}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()
        )
    return hasher.hexdigest()[:16]


def machine():
    """What the bits depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    flags = sorted(
        next((line for line in lines if line.startswith("flags")), "").split(":")[-1].split()
    )
    return {
        "processor": platform.machine()
        + " "
        + hashlib.sha256(" ".join(flags).encode()).hexdigest()[:8],
        "jax": jax.__version__,
    }


def main(path: Path) -> int:
    """Writes the record, or returns 1 after the names of entries that differ from it."""
    found = {name: digest(call) for name, call in tqdm(list(cases()))}
    if not path.exists():
        path.write_text(json.dumps({"machine": machine(), "digests": found}, indent=1) + "\n")
        print(f"saved: {path}")
        return 0
    record = json.loads(path.read_text())
    if record["machine"] != machine():
        print(
            f"{path} was recorded on {record['machine']}, and this is {machine()}; record it anew "
            "here"
        )
        return 2
    expected = record["digests"]
    changed = [name for name in found | expected if found.get(name) != expected.get(name)]
    print("\n".join(changed) or f"{len(found)} entries are equal")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
