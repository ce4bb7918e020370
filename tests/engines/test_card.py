"""A card without a GPU: its memory is counted, and kernels that were compiled for it are found
again.
"""

import contextlib
import importlib.util
import os
import subprocess
import sys
import tracemalloc
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from chains import batch_of, quadratic_case, random_edges

from sl_discs.chains.batches import batch_bytes, shape_of_one
from sl_discs.engines.cuda import card
from sl_discs.engines.cuda.card import Card, KernelStore
from sl_discs.engines.cuda.cuda_engine import Cuda, as_instances, kind_of
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.support.cache import cache_folder
from sl_discs.support.errors import InputError

ROOT = Path(__file__).parents[2]


class FakeCuda:
    """`numba.cuda` with a card of so many bytes, of which those of deleted arrays are free when
    they are cleared.
    """

    def __init__(self, size):
        self._free, self._cleared = size, 0
        self.gpus = [contextlib.nullcontext()]

    def current_context(self):
        return types.SimpleNamespace(
            get_memory_info=lambda: (self._free, 1 << 40), deallocations=self
        )

    def clear(self):
        self._free += self._cleared

    def to_device(self, array):
        self._free -= array.nbytes
        return array


def instances_of(num_sites=64):
    batch = batch_of(quadratic_case(np.ones(num_sites), [(0, 1)], [-1.0]), 4)
    return as_instances(batch, num_sites, 4, 32)


def test_instances_that_do_not_fit_are_refused_with_numbers(monkeypatch):
    monkeypatch.setattr(card, "import_cuda", lambda: FakeCuda(1 << 10))
    with pytest.raises(
        InputError, match=r"1 instances need 0.01 MiB on GPU 0, which has 0.00 MiB free; lower"
    ):
        Card(0, 32, instances_of())


@pytest.mark.parametrize("cleared", [0, 1 << 20])
def test_chains_and_records_that_do_not_fit_are_refused_with_numbers(monkeypatch, cleared):
    fake = FakeCuda(1 << 16)
    fake._cleared = cleared
    monkeypatch.setattr(card, "import_cuda", lambda: fake)
    monkeypatch.setattr(card, "kernel_of", lambda kind, warps: (None, None))
    held, chains = (
        Card(0, 32, instances_of()),
        types.SimpleNamespace(x=np.zeros((256, 128), np.int8)),
    )
    monkeypatch.setattr(card, "num_bytes", lambda *groups: 1 << 18)
    kind = kind_of(GWG(), 4, True, False)
    if cleared:  # arrays that only wait to be freed are no obstacle: it goes on, to the kernel that is missing here
        with pytest.raises((TypeError, AttributeError)):
            held.begin(kind, None, chains, None, None, 4)
    else:
        with pytest.raises(
            InputError, match=r"256 chains of a batch and their records need 0.25 MiB on GPU 0"
        ):
            held.begin(kind, None, chains, None, None, 4)


@pytest.mark.parametrize("weight", [-1.0, 0.7], ids=["bytes", "float32"])
def test_the_estimate_covers_rows_of_sparse_instances(weight):
    """They are laid out dense for a card."""
    num_sites, rng = 2_048, np.random.default_rng(0)
    edges = random_edges(rng, num_sites, 4)
    case = quadratic_case(np.ones(num_sites), edges, np.full(len(edges), weight))
    batch, (threads, sites) = batch_of(case, 1), Cuda().lanes(num_sites)
    tracemalloc.start()
    instances = as_instances(batch, num_sites, sites, threads)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    degree = case.target.params.coupling[-1].shape[-1]
    shape = shape_of_one(types.SimpleNamespace(num_sites=num_sites, max_degree=lambda: degree), 2)
    assert instances.rows.nbytes <= peak <= batch_bytes(shape, 0, "cuda") // shape.num_instances


# The store of kernels.


def store_of(sampler):
    return KernelStore(kind_of(sampler, 8, True, False), 1)


def test_a_kernel_is_found_under_its_own_key_only(tmp_path, monkeypatch):
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    store, other = store_of(GWG()), store_of(PathAuxiliary())
    path = store.path("types", (1, (9, 0)))
    paths = {
        path,
        other.path("types", (1, (9, 0))),
        store.path("others", (1, (9, 0))),
        store.path("types", (1, (8, 0))),
    }
    assert len(paths) == 4 and all(tmp_path in one.parents for one in paths)
    assert store.load(path) is None
    store.save(path, "entry", b"\0code\0")
    assert store.load(path) == ("entry", b"\0code\0")
    path.write_bytes(path.read_bytes()[:-1])
    assert store.load(path) is None


def test_two_that_compile_at_once_find_their_own_kernels(tmp_path, monkeypatch):
    """As processes do, whose files have no name in common but that of the kernel."""
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    numbers = range(100)
    code = {GWG: 30_000 * b"g", PathAuxiliary: 30_000 * b"p"}

    def found(kind, number):
        store = store_of(kind())
        return store.load(store.path(number, ())) == ("entry", code[kind])

    def write(kind):
        store = store_of(kind())
        for number in numbers:
            store.save(store.path(number, ()), "entry", code[kind])
            assert found(kind, number)

    with ThreadPoolExecutor() as writers:
        list(writers.map(write, (GWG, GWG, PathAuxiliary)))
    assert all(found(kind, number) for kind in code for number in numbers)
    assert len([file for file in cache_folder().rglob("*") if file.is_file()]) == 200


def test_a_store_that_is_not_asked_says_so(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba_cuda", types.SimpleNamespace(__version__="99.0"))
    store = store_of(GWG())
    store.check_use()
    assert (
        "kernels are compiled anew in each process: with numba-cuda 99.0" in capsys.readouterr().err
    )


@pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="numba-cuda and its compiler are not installed",
)
def test_a_compiled_kernel_is_found_again(tmp_path, monkeypatch):
    """Compiled and linked for a card that is not there."""
    from compiled_kernels import compiled_for

    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path))
    kind = kind_of(PathAuxiliary(), 4, True, False)
    kernel, signature, context = compiled_for(monkeypatch, kind, 1, (9, 0))
    KernelStore(kind, 1).save_overload(signature, kernel)
    found = KernelStore(kind, 1).load_overload(signature, context)
    assert found.entry_name == kernel.entry_name and found.argument_types == kernel.argument_types
    assert found.library.get_cubin((9, 0)).code == kernel.library.get_cubin((9, 0)).code
    assert KernelStore(kind, 2).load_overload(signature, context) is None


FORKED = """
import ctypes, os
from sl_discs.engines import devices

class Driver:
    def cuInit(self, flags):
        return 0
    def cuDeviceGetCount(self, count):
        count._obj.value = 1
        return 0

devices.ctypes.CDLL = lambda name: Driver()
assert devices.missing_card() is None
if os.fork() == 0:
    print(devices.has_card(), devices.missing_card(), flush=True)
    os._exit(0)
os.wait()
assert devices.has_card()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_card_does_not_survive_a_fork():
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("False this process was forked from one that had opened the GPU")


# Every command with a choice of engines leaves the card to `cuda`, before JAX opens it. The card is
# a fake.

COMMAND = """
import sys
import jax
from sl_discs.commands.main import main
from sl_discs.engines import choice, devices

def has_card():
    print("in use:", devices._in_use())
    return True

choice.has_card = has_card
code = main(sys.argv)
print("platforms:", jax.config.jax_platforms, "code:", code)
"""
CONFIG = """
from sl_discs.experiment.settings import experiment_config

def get_config():
    return experiment_config(batch_size=2, chain_length=40, log_every_steps=20, num_instances=1)
"""
COMMANDS = {
    "run": [
        "--config=small.py", "--config.experiment.save_root=out", "--samplers=gibbs",
        f"--model_config={ROOT}/configs/model/maxcut_config.py", "--model_config.graph_type=ba",
        "--model_config.cfg_str=r-ba-4-n-16-20",
    ],
    "reproduce": [
        "main", "--datasets=maxcut/optsicom/r-b", "--methods=gwg", "--noheld_out", "--instances=1", "--steps=100",
        "--chains=2", "--output=out",
    ],
    "solve": ["small.edges", "--problem=maxcut", "--sampler=gibbs", "--steps=40"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_keep_jax_off_the_card(tmp_path, name):
    (tmp_path / "small.py").write_text(CONFIG)
    (tmp_path / "small.edges").write_text("0 1\n1 2\n")
    environment = {key: value for key, value in os.environ.items() if key != "JAX_PLATFORMS"}
    command = [sys.executable, "-c", COMMAND, name, *COMMANDS[name], "--engine=cpu"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert "in use: False" in done.stdout and "in use: True" not in done.stdout, (
        done.stdout + done.stderr
    )
    assert "platforms: cpu code: 0" in done.stdout, done.stdout + done.stderr
