"""The engine `cuda`: its functions for one lane of a CPU core, for simulated warps, and as code for cards."""

import dataclasses
import functools
import importlib.util
import re
import types

import networkx as nx
import numpy as np
import pytest
from lanes_on_cpu import OneLane, Threads
from localized import BASES, check_localized_law
from marks import slow_except
from single_steps import SAMPLERS, Disagreement, check_single_steps

import sl_discs
from sl_discs.engines.arrays import ChainArrays, Records
from sl_discs.engines.base import Program
from sl_discs.engines.cuda import engine as cuda_engine
from sl_discs.engines.cuda import path
from sl_discs.engines.cuda.arrays import as_instances, pack_rows
from sl_discs.engines.cuda.chain import adapted, make_chain, make_random
from sl_discs.engines.cuda.engine import MOST, Cuda, kind_of, numbers_of
from sl_discs.engines.cuda.play import (
    Instances,
    Steps,
    make_kernel,
    make_shared,
    needed_by,
    outside,
)
from sl_discs.engines.cuda.warp import WIDTH, gpu, one_lane
from sl_discs.engines.registry import choose_engine, get_engine
from sl_discs.errors import InputError
from sl_discs.experiment.batches import plan
from sl_discs.experiment.chains import Chains
from sl_discs.experiment.run import run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis

KNOWN = [name for name, sampler in SAMPLERS.items() if OneLane().obstacle(sampler) is None]
ADAPTIVE = {
    "gwg": GWG(adaptive=True, num_flips=3),
    "path_auxiliary": PathAuxiliary(adaptive=True, num_flips=3),
}
IN_TWO_WARPS = ADAPTIVE | {"dmala": DMALA(), "gibbs": Gibbs()}
IN_WARPS = IN_TWO_WARPS | {
    "gwg, 40 draws": GWG(num_flips=40),
    "path_auxiliary, 38 draws": PathAuxiliary(num_flips=38),
    "dmala, adaptive": DMALA(adaptive=True),
    "dmala, fixed": DMALA(scaling="fixed"),
    "metropolis": Metropolis(),
}


@pytest.mark.parametrize("name", slow_except(KNOWN, ("gwg", "path_auxiliary", "dmala", "gibbs")))
def test_single_steps_are_those_of_the_oracle(name):
    """With tilts and masks, at temperatures up to infinity."""
    check_single_steps(OneLane(), SAMPLERS[name], copies=1024, temperatures=(np.inf, 2.0, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_real_couplings_and_no_tilt(name):
    check_single_steps(OneLane(), SAMPLERS[name], copies=4096, whole=False, num_sites=3, tilted=False)


@pytest.mark.parametrize("name", slow_except([name for name in BASES if name in KNOWN], ("gwg", "dmala")))
def test_localized_runs_have_the_law(name):
    check_localized_law(OneLane(), BASES[name])


def test_a_wrong_step_differs_from_the_oracle(monkeypatch):
    """A repeated draw of gwg that is forgotten in the ratio, or counted twice as a flip."""

    def without_repeats(warp, sites, whole, localized, replacement):
        forgetful = warp._replace(jit=lambda function: warp.jit(_without_gains(function)))
        return path.make_step(forgetful, sites, whole, localized, replacement)

    def _without_gains(function):
        return (lambda *arguments: np.float32(0)) if function.__name__ == "repeated_gains" else function

    real = kind_of

    def wrong_kind(sampler, *arguments):
        return real(sampler, *arguments)._replace(step=without_repeats)

    monkeypatch.setattr("sl_discs.engines.cuda.engine.kind_of", wrong_kind)
    with pytest.raises(Disagreement):
        check_single_steps(OneLane(), GWG(num_flips=3), copies=1024, temperatures=(0.5,))


def _chains(engine, sampler, num_sites, num_chains, steps, *, cut=(1,), instances=2, localized=True, whole=True):
    """Plays chains on random graphs, in calls of these shares of the steps."""
    problems = []
    for seed in range(instances):
        graph = nx.gnp_random_graph(num_sites, 0.2, seed=seed)
        scale = 1.0 if whole else 0.7
        problems.append(sl_discs.mis(graph).terms() if whole else sl_discs.maxcut(_weighted(graph, scale)).terms())
    [pack] = plan(problems, instances, num_chains)
    shape = dataclasses.replace(pack.shape, num_instances=instances, num_sites=num_sites)
    chains = Chains(problems, list(range(instances)), shape, sampler, engine, 5)
    levels = Localization(K=2, sigma=2.0, n_min=2)
    temperature = np.linspace(1.0, 0.3, steps).astype(np.float32)
    noise = np.float32(levels.initial_noise()) if localized else None
    chains.start(Program(temperature, levels.levels(steps) if localized else None), None, noise)
    traces = [chains.advance(1, steps * share // sum(cut)) for share in cut]
    return chains.states, traces


def _weighted(graph, scale):
    for number, (one, other) in enumerate(graph.edges):
        graph[one][other]["weight"] = scale * (1 + number % 3)
    return graph


def assert_same(one, other, exact=True):
    compare = (
        np.testing.assert_array_equal
        if exact
        else functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4)
    )
    np.testing.assert_array_equal(one.chain.x, other.chain.x)
    np.testing.assert_array_equal(one.best.x, other.best.x)
    compare(one.best.value, other.best.value)
    compare(one.chain.field.coupled, other.chain.field.coupled)
    for field in ("y", "mean"):
        if hasattr(one.chain.state, field):
            compare(getattr(one.chain.state, field), getattr(other.chain.state, field))


def _check_independence(engine, sampler, num_sites, most):
    """Chains do not depend on calls, or on the other chains of their instance."""
    whole, _ = _chains(engine, sampler, num_sites, most, 60)
    in_parts, _ = _chains(engine, sampler, num_sites, most, 60, cut=(1, 2, 3))
    assert_same(whole, in_parts)
    alone, _ = _chains(engine, sampler, num_sites, 2, 60)
    np.testing.assert_array_equal(alone.chain.x, whole.chain.x[:, :2])
    return whole


def test_chains_do_not_depend_on_calls_on_the_other_chains_or_on_the_number_of_cards():
    sampler = PathAuxiliary(adaptive=True)
    whole = _check_independence(OneLane(), sampler, 20, 4)
    on_two, _ = _chains(OneLane(devices=2), sampler, 20, 4, 60)
    assert_same(whole, on_two)


# What needs a card; run_scripts/gpu_check.sh runs these tests.

on_card = pytest.mark.skipif(get_engine("cuda").missing() is not None, reason=f"{get_engine('cuda').missing()}")


@dataclasses.dataclass(frozen=True)
class Warps(Cuda):
    """Several warps a chain, also where one would do, with at least so many sites a lane."""

    warps: int = 2
    least: int = 4

    def lanes(self, num_sites):
        lanes = self.warps * WIDTH
        return lanes, max(self.least, -(-num_sites // (4 * lanes)) * 4)


@on_card
@pytest.mark.parametrize("name", KNOWN)
def test_on_a_card_two_warps_make_the_steps_of_the_oracle(name):
    check_single_steps(Warps(), SAMPLERS[name], copies=1024, temperatures=(np.inf, 2.0, 0.5))


@on_card
@pytest.mark.parametrize("engine", [Cuda(), Warps()], ids=["one warp", "two warps"])
@pytest.mark.parametrize("sampler", IN_TWO_WARPS.values(), ids=IN_TWO_WARPS)
def test_on_a_card_chains_do_not_depend_on_calls_or_on_the_other_chains(sampler, engine):
    _check_independence(engine, sampler, 300, 256)


@on_card
def test_on_a_card_eleven_warps_play_the_chains_of_one():
    """With 32 sites a lane what the lanes share is in the card's memory. Rounding may part a few of 512 chains."""
    one, other = (
        _check_independence(engine, ADAPTIVE["path_auxiliary"], 300, 256)
        for engine in (Cuda(), Warps(warps=11, least=32))
    )
    assert np.mean((one.chain.x == other.chain.x).all(axis=-1)) > 0.9


FAMILIES = [
    ("mis", "er_density", "r-0.05"), ("mis", "er_density", "r-0.25"), ("maxcut", "ba", "r-ba-4-n-512-600"),
    ("maxcut", "er", "r-er-0.15-n-1024-1100"), ("maxclique", "rb", "_"),
]  # fmt: skip


@on_card
@pytest.mark.parametrize("name", ["path_auxiliary", "dmala", "sl_path_auxiliary"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: "-".join(family))
def test_on_a_card_levels_are_those_of_the_cpu(family, name):
    """Means over 8 graphs x 32 chains of acceptance, hops and the best value: two-sided, five standard errors."""
    dataset = load_dataset(*family, None, num_instances=8)
    fields = {"name": name} | ({"K": 64} if name.startswith("sl_") else {})
    settings = Settings(batch_size=32, chain_length=1_000, log_every_steps=100, instances_per_batch=8)
    one, other = (
        run_sampler(
            dataset, 1.0001, build_method(fields, 32), dataclasses.replace(settings, engine=engine, seed=seed),
        )
        for seed, engine in enumerate(("cuda", "cpu"))
    )  # fmt: skip
    for trace in ("acceptance", "hops"):
        # Each entry is a mean over 32 chains x 100 steps; graphs and times differ alike in both.
        ours, theirs = getattr(one, trace), getattr(other, trace)
        error = 5 * np.std(ours - theirs) / np.sqrt(ours.size) + 0.01 * theirs.mean()
        assert abs((ours - theirs).mean()) < error
    bests = np.array([[instance.best for instance in record.instances] for record in (one, other)])
    difference = bests[0] - bests[1]
    assert abs(difference.mean()) <= 5 * difference.std(ddof=1) / np.sqrt(len(difference)) + 1e-3 * bests.mean()
    assert all(instance.feasible for instance in one.instances)


@pytest.mark.parametrize("localized", [False, True], ids=["base", "localized"])
@pytest.mark.parametrize("sampler", IN_WARPS.values(), ids=IN_WARPS)
def test_warps_of_32_lanes_play_the_chain_of_one_lane(sampler, localized):
    """On 40 sites with one warp; draws beyond the 31st need a second round."""
    one, [trace] = _chains(Threads(width=1), sampler, 40, 1, 4, instances=1, localized=localized)
    many, [other] = _chains(Threads(), sampler, 40, 1, 4, instances=1, localized=localized)
    assert_same(one, many, exact=False)
    np.testing.assert_allclose(trace.acceptance, other.acceptance, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("sampler", "warps"),
    [*((sampler, 2) for sampler in IN_TWO_WARPS.values()), (ADAPTIVE["path_auxiliary"], 5)],
    ids=[*IN_TWO_WARPS, "path_auxiliary in 5"],
)
def test_several_warps_play_the_chain_of_one_lane(sampler, warps):
    """With real couplings."""
    num_sites = {2: 70, 5: 200}[warps]
    one, _ = _chains(Threads(width=1), sampler, num_sites, 1, 4, instances=1, whole=False)
    many, _ = _chains(Threads(warps=warps), sampler, num_sites, 1, 4, instances=1, whole=False)
    assert_same(one, many, exact=False)


def test_packed_rows_are_sums_of_powers_of_256():
    rows = np.array([[[0, -3, 127], [-3, 0, -127], [127, -127, 0]]], np.int8)
    packed = pack_rows(rows, 4, 2).reshape(3, 1, 2)
    np.testing.assert_array_equal(packed[:, 0, 1], 0)
    weights = 256 ** np.arange(3)
    np.testing.assert_array_equal(packed[:, 0, 0], (rows[0].astype(np.int64) @ weights).astype(np.uint32))


def test_what_it_cannot_run_is_said():
    cuda = get_engine("cuda")
    assert "no NVIDIA GPU" in cuda.obstacle(GWG()) or cuda.obstacle(GWG()) is None
    assert "random scans" in cuda.obstacle(Gibbs(scan="sequential"))
    assert f"{MOST} sites" in OneLane().obstacle(GWG(), num_sites=MOST + 1)
    assert OneLane().obstacle(GWG(), num_sites=MOST) is None
    if cuda.obstacle(GWG()):
        with pytest.raises(InputError, match="engine is 'cuda', which cannot run gwg: there is no NVIDIA GPU"):
            choose_engine("cuda", GWG())


def test_auto_takes_a_card_for_many_chains(monkeypatch):
    monkeypatch.setattr("sl_discs.engines.registry.has_card", lambda: True)
    monkeypatch.setattr(Cuda, "missing", lambda self: None)
    assert choose_engine("auto", GWG())[0].name == "cuda"
    assert choose_engine("auto", GWG(), num_chains=32)[0].name == "cpu"
    assert choose_engine("auto", GWG(), num_sites=MOST + 1)[1].startswith("not cuda: a chain has at most")
    monkeypatch.setattr(Cuda, "missing", lambda self: "numba-cuda cannot be imported")
    engine, note = choose_engine("auto", GWG())
    assert engine.name == "cpu" and note == "not cuda: numba-cuda cannot be imported"


# Bytes of arrays that the compiler may keep in memory: three of gibbs, which has no unrolled loop over most sites.
MOST_STACK = 3 * 4 * 32


def _types(typeof, whole):
    """The types of a kernel's arguments."""
    numbers = numbers_of(GWG(), 1)
    f4, i4, i1, u4 = (lambda n, dtype=dtype: np.zeros((1,) * n, dtype) for dtype in ("f4", "i4", "i1", "u4"))
    instances = Instances((u4 if whole else f4)(2), f4(2), f4(1), i1(2), i4(2), i4(1), np.int32(1))
    chains = ChainArrays(
        u4(2), u4(2), i1(2), f4(2), f4(1), f4(1), f4(1), i4(1), f4(2), f4(2), f4(1), i1(2), f4(1), i1(2)
    )  # fmt: skip
    one = np.int32(1)
    steps = Steps(f4(2), one, one, one, f4(1), i4(1), i4(1), f4(1), f4(1))
    found = Records(f4(2), f4(2), f4(2), np.zeros((1, 1), bool), i1(3))
    return tuple(map(typeof, (numbers, instances, chains, steps, found, f4(3), one)))


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="numba-cuda and its compiler are not installed: pip install 'numba-cuda[cu13]'",
)
@pytest.mark.parametrize("capability", [(8, 0), (9, 0)], ids=str)
@pytest.mark.parametrize(
    ("whole", "localized", "sites", "warps"),
    [(True, False, 28, 1), (True, True, 28, 1), (True, True, 24, 2), (False, True, 20, 1), (True, True, 32, 11)],
)
@pytest.mark.parametrize("sampler", IN_TWO_WARPS.values(), ids=IN_TWO_WARPS)
def test_kernels_have_no_doubles_and_no_arrays_in_memory(
    monkeypatch, capability, sampler, whole, localized, sites, warps
):
    """Compiled for cards that are not there."""
    from numba import cuda
    from numba.cuda import dispatcher
    from numba.cuda.typing.typeof import typeof

    # Device functions ask for the card's capability when they are compiled.
    card = types.SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: card)
    for cached in (gpu, make_chain, make_random, adapted, path.make_draws):
        cached.cache_clear()
    kernel = make_kernel(cuda, gpu(warps), kind_of(sampler, sites, whole, localized))
    code, _ = cuda.compile(
        kernel.py_func, _types(typeof, whole), cc=capability, fastmath=True, device=False, abi="numba", output="ptx"
    )
    text = code if isinstance(code, str) else code.decode()
    assert ".f64" not in text
    assert sum(int(size) for size in re.findall(r"__local_depot\d+\[(\d+)\]", text)) <= MOST_STACK
    assert sum(int(size) for size in re.findall(r"\.shared .* \.b8 \S+\[(\d+)\]", text)) <= 48 << 10


def test_instances_are_packed_once_for_all_programs_of_a_batch(monkeypatch):
    terms, packs = [sl_discs.mis(nx.path_graph(n)).terms() for n in (4, 6)], []
    monkeypatch.setattr(cuda_engine, "as_instances", lambda *given: packs.append(given) or as_instances(*given))
    [pack] = plan(terms, 2, 2)
    chains = Chains(terms, [0, 1], pack.shape, GWG(adaptive=False), OneLane(), 0)
    for temperature in (1.0, 0.5):
        chains.start(Program(np.full(4, temperature, np.float32), None))
        chains.rename([2, 3])
    assert len(packs) == 1


@pytest.mark.parametrize("sampler", IN_TWO_WARPS.values(), ids=IN_TWO_WARPS)
@pytest.mark.parametrize("num_sites", [1_024, 3_600, 4_096, 11_000, MOST])
def test_the_memory_that_lanes_share_fits_on_every_card(num_sites, sampler):
    """A block has 48 KiB of it; other numbers of all sites are in the card's memory."""
    threads, sites = Cuda().lanes(num_sites)
    assert sites * threads >= num_sites and threads <= 512
    for localized in (False, True):
        kind = kind_of(sampler, sites, True, localized)
        unused = {name for name, needed in needed_by(kind).items() if not needed}
        shared = make_shared(one_lane(lambda function: function)._replace(lanes=threads), kind)._asdict()
        inside = set(shared) - unused - set(outside(kind, threads))
        assert sum(shared[name].nbytes for name in inside) <= 48 << 10
        assert num_sites > 1_024 or not outside(kind, threads)
