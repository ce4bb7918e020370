"""The engine `cuda`: its functions for one lane of a CPU core, for simulated warps, and as code for
cards.
"""

import dataclasses
import functools
import importlib.util

import jax
import networkx as nx
import numpy as np
import pytest
from chains import (
    batch_of,
    check_independence,
    play_program,
    program_at,
    quadratic_case,
    random_edges,
)
from compiled_kernels import ptx_of, sizes
from engines_at_hand import ENGINES, PLAIN_LANE, OneLane, Threads, known_to
from host_lanes import make_shared, one_lane
from single_steps import SAMPLERS, Disagreement, check_single_steps

import sl_discs
from sl_discs.chains.batches import plan
from sl_discs.chains.chains import Chains
from sl_discs.engines.choice import choose_engine, get_engine
from sl_discs.engines.cuda import cuda_engine
from sl_discs.engines.cuda import path_step as path
from sl_discs.engines.cuda.cuda_engine import MOST, Cuda, as_instances, kind_of
from sl_discs.engines.cuda.play import needed_by, outside
from sl_discs.engines.cuda.registers import PLANES, RECOMPUTED
from sl_discs.engines.cuda.warp import WIDTH
from sl_discs.engines.program import init_chains
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis
from sl_discs.support.errors import InputError

ADAPTIVE = {
    "gwg": GWG(adaptive=True, num_flips=3),
    "path_auxiliary": PathAuxiliary(adaptive=True, num_flips=3),
}
IN_TWO_WARPS = ADAPTIVE | {"dmala": DMALA(), "gibbs": Gibbs()}
IN_WARPS = IN_TWO_WARPS | {
    "gwg, 40 draws": GWG(num_flips=40),
    "path_auxiliary, 38 draws": PathAuxiliary(num_flips=38),
    "dmala, adaptive": DMALA(adaptive=True),
    "dmala, fixed": DMALA(scaling="fixed", step_size=10.0),
    "metropolis": Metropolis(),
}


@pytest.mark.slow
def test_a_wrong_step_differs_from_the_oracle(monkeypatch):
    """A repeated draw of gwg that is forgotten in the ratio, or counted twice as a flip."""

    def without_repeats(warp, kind):
        return path.make_step(
            warp._replace(jit=lambda function: warp.jit(_without_gains(function))), kind
        )

    def _without_gains(function):
        return (
            (lambda *arguments: np.float32(0))
            if function.__name__ == "repeated_gains"
            else function
        )

    real = kind_of

    def wrong_kind(sampler, *arguments):
        return real(sampler, *arguments)._replace(step=without_repeats)

    monkeypatch.setattr("sl_discs.engines.cuda.cuda_engine.kind_of", wrong_kind)
    with pytest.raises(Disagreement):
        check_single_steps(OneLane(), GWG(num_flips=3), copies=1024, temperatures=(0.5,))


def _play(engine, sampler, num_sites, localized=True, whole=True):
    """Plays a chain for four steps on a random graph."""
    rng = np.random.default_rng(0)
    edges = random_edges(rng, num_sites, num_sites / 5)
    weights = np.full(len(edges), -1.0) if whole else 0.7 * rng.integers(1, 4, len(edges))
    case, levels = (
        quadratic_case(rng.normal(size=num_sites), edges, weights),
        Localization(K=2, sigma=2.0, n_min=2),
    )
    program = program_at(np.linspace(1.0, 0.3, 4), levels.levels(4) if localized else None)
    chains, trace = play_program(engine, case, sampler, rng.integers(0, 2, (1, num_sites)), program)
    return chains, trace.acceptance


def assert_same(one, other, tolerance=1e-4):
    np.testing.assert_array_equal(one.chain.x, other.chain.x)
    np.testing.assert_array_equal(one.best.x, other.best.x)
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=tolerance, atol=tolerance),
        (one.best, one.chain.field.coupled, one.chain.state),
        (other.best, other.chain.field.coupled, other.chain.state),
    )


def test_chains_do_not_depend_on_the_number_of_cards():
    """Two instances, of which each core has one."""
    cases, sampler = (
        [quadratic_case(linear, [(0, 1)], [-1.0]) for linear in np.eye(2, 20)],
        PathAuxiliary(adaptive=True),
    )
    batch = jax.tree.map(
        lambda *leaves: np.concatenate(leaves),
        *(batch_of(case, 4, k) for k, case in enumerate(cases)),
    )
    chains = init_chains(cases[0].model, sampler, batch, np.zeros((2, 4, 20), np.int8), None)
    program = program_at(np.ones(60))
    one, two = (
        dataclasses.replace(PLAIN_LANE, devices=devices).prepare(
            cases[0].model, sampler, batch, program
        )(chains, 0, 1, 60)[0]
        for devices in (1, 2)
    )
    assert_same(one, two, tolerance=0)


# What needs a card; run_scripts/gpu_check.sh runs these tests.

on_card = pytest.mark.skipif(
    get_engine("cuda").missing() is not None, reason=f"{get_engine('cuda').missing()}"
)


@dataclasses.dataclass(frozen=True)
class Warps(Cuda):
    """Several warps a chain, also where one would do, with at least so many sites a lane."""

    warps: int = 2
    least: int = 4

    def lanes(self, num_sites):
        lanes = self.warps * WIDTH
        return lanes, max(self.least, -(-num_sites // (4 * lanes)) * 4)


@on_card
@pytest.mark.parametrize("name", known_to("one lane", SAMPLERS))
def test_on_a_card_two_warps_make_the_steps_of_the_oracle(name):
    check_single_steps(Warps(), SAMPLERS[name], copies=1024, temperatures=(np.inf, 2.0, 0.5))


def _check_on_card(engine, sampler):
    """Plays 256 chains on 300 sites with whole couplings, which depend neither on calls nor on each
    other.
    """
    rng = np.random.default_rng(0)
    edges = random_edges(rng, 300, 60)
    case, levels = (
        quadratic_case(np.ones(300), edges, np.full(len(edges), -1.0)),
        Localization(K=2, sigma=2.0),
    )
    program = program_at(np.linspace(1.0, 0.3, 60), levels.levels(60))
    x = rng.integers(0, 2, (256, 300)).astype(np.int8)
    return check_independence(engine, case, sampler, x, program)


@on_card
@pytest.mark.parametrize("engine", [Cuda(), Warps()], ids=["one warp", "two warps"])
@pytest.mark.parametrize("sampler", IN_TWO_WARPS.values(), ids=IN_TWO_WARPS)
def test_on_a_card_chains_do_not_depend_on_calls_or_on_the_other_chains(sampler, engine):
    _check_on_card(engine, sampler)


@on_card
def test_on_a_card_eleven_warps_play_the_chains_of_one():
    """With 32 sites a lane what the lanes share is in the card's memory. Rounding may part a few of
    256 chains.
    """
    one, other = (
        _check_on_card(engine, ADAPTIVE["path_auxiliary"])
        for engine in (Cuda(), Warps(warps=11, least=32))
    )
    assert np.mean((one.chain.x == other.chain.x).all(axis=-1)) > 0.9


@pytest.mark.parametrize(
    ("name", "warps", "num_sites", "options"),
    [
        *(
            (name, 1, 40, {"localized": localized})
            for name in IN_WARPS
            for localized in (False, True)
        ),
        *((name, 2, 70, {"whole": False}) for name in IN_TWO_WARPS),
        ("path_auxiliary", 5, 200, {"whole": False}),
    ],
)
def test_warps_of_32_lanes_play_the_chain_of_one_lane(name, warps, num_sites, options):
    """With one warp draws beyond the 31st need a second round."""
    one, acceptance = _play(PLAIN_LANE, IN_WARPS[name], num_sites, **options)
    many, other = _play(Threads(warps=warps), IN_WARPS[name], num_sites, **options)
    assert_same(one, many)
    np.testing.assert_allclose(acceptance, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("largest", [63, 64, 100, 127])
def test_whole_couplings_of_any_size_have_exact_sums(largest):
    """Two rows are added before packed sums are looked at, so that bytes hold couplings up to 63
    only.
    """
    rng, num_sites = np.random.default_rng(1), 12
    weights = np.array([largest, *rng.choice([-largest, largest], 65)])
    edges = np.array([(i, j) for i in range(num_sites) for j in range(i)])
    case, x = (
        quadratic_case(rng.normal(size=num_sites), edges, weights),
        rng.integers(0, 2, (2, num_sites)),
    )
    program = program_at(np.full(100, 500, np.float32))
    chains, _ = play_program(
        PLAIN_LANE, case, PathAuxiliary(num_flips=5, adaptive=False), x, program
    )
    matrix = np.zeros((num_sites, num_sites))
    matrix[edges[:, 0], edges[:, 1]] = matrix[edges[:, 1], edges[:, 0]] = weights
    assert (chains.chain.x != x).any()
    np.testing.assert_array_equal(chains.chain.field.coupled[0], chains.chain.x[0] @ matrix)


@pytest.mark.slow
def test_probabilities_of_dmala_that_are_small_beside_1_count():
    """Of 1,000 sites each flips with probability 5.6e-8: 11 flips in all."""
    steps, sampler = 50_000, DMALA(scaling="fixed", step_size=1 / (2 * 16.7))
    case = quadratic_case(np.zeros(1_000), [(0, 1)], [-1.0])
    _, trace = play_program(
        OneLane(), case, sampler, np.zeros((4, 1_000)), program_at(np.ones(steps))
    )
    assert 1 <= trace.hops.sum() * steps <= 30


def test_values_of_real_coefficients_do_not_drift():
    """c.x is summed anew like Kx: after 41,000 steps its changes alone would be off by several last
    bits.
    """
    rng, num_sites = np.random.default_rng(0), 20
    linear, x = rng.normal(size=num_sites), np.zeros((4, num_sites))
    case = quadratic_case(linear, [(0, 1)], [0.5])
    chains, _ = play_program(
        OneLane(), case, Gibbs(), x, program_at(np.full(10 * RECOMPUTED + 1, 1.0))
    )
    exact = (chains.chain.x[0] * np.float32(linear)).sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(chains.chain.field.linear[0], exact, rtol=0, atol=1e-6)


def test_the_posterior_mean_is_that_of_all_counted_states():
    """Over more steps than the counters of spins hold, and with a spin that is 1 in each of
    them.
    """
    rng, steps = np.random.default_rng(0), 2 ** (PLANES + 1) + 5
    case = quadratic_case([100, *rng.normal(size=19)], [(0, 1)], [0.5])
    levels = Localization(K=1, sigma=2.0, mc_ratio=1.0).levels(steps + 1)
    program = program_at(np.full(steps + 1, 1.0), levels, keeps_states=True)
    x, sampler = rng.integers(0, 2, (2, 20)), PathAuxiliary(adaptive=False)
    x[:, 0] = 1
    chains, trace = play_program(
        PLAIN_LANE, case, sampler, x, program, intervals=steps, steps=steps
    )
    spins = 2.0 * trace.states[:, 0] - 1
    assert (spins[..., 0] == 1).all()
    np.testing.assert_allclose(
        chains.chain.state.mean[0], spins.sum(axis=0) / levels.collected[0], atol=1e-5
    )


def test_sums_of_real_couplings_are_computed_anew():
    """At the first step, too: chains that begin with wrong sums end with right ones."""
    rng = np.random.default_rng(0)
    matrix = np.triu(rng.normal(size=(12, 12)), 1).astype(np.float32)
    edges = np.argwhere(matrix != 0)
    case, x = quadratic_case(np.zeros(12), edges, matrix[matrix != 0]), rng.integers(0, 2, (2, 12))
    batch, program = batch_of(case, 2), program_at(np.ones(8))
    chains = init_chains(case.model, Gibbs(), batch, np.int8(x)[None], None)
    field = chains.chain.field._replace(coupled=np.asarray(chains.chain.field.coupled) + 1)
    wrong = chains._replace(chain=chains.chain._replace(field=field))
    after, _ = PLAIN_LANE.prepare(case.model, Gibbs(), batch, program)(wrong, 0, 1, 8)
    np.testing.assert_allclose(
        after.chain.field.coupled[0], after.chain.x[0] @ (matrix + matrix.T), atol=1e-5
    )


def check_gains_beyond_single_precision(engine, sampler):
    """Gains of 1e9 at temperature 1e-30 are beyond float32: draws by weights that are not numbers
    have no end.
    """
    case = quadratic_case([1e9, -1e9, 2e9, 3e8], [(0, 1)], [-3.0])
    program = program_at(np.full(64, 1e-30, np.float32))
    sampler = (
        dataclasses.replace(sampler, num_flips=1) if hasattr(sampler, "num_flips") else sampler
    )
    chains, trace = play_program(engine, case, sampler, np.zeros((4, 4)), program)
    assert np.isfinite(trace.acceptance).all()
    np.testing.assert_array_equal(chains.best.x[0], np.tile([1, 0, 1, 1], (4, 1)))


@pytest.mark.parametrize("engine", [ENGINES["cpu"], PLAIN_LANE], ids=["cpu", "one lane"])
@pytest.mark.parametrize("sampler", IN_TWO_WARPS.values(), ids=IN_TWO_WARPS)
def test_gains_beyond_single_precision_end_at_the_best_state(engine, sampler):
    check_gains_beyond_single_precision(engine, sampler)


def test_what_it_cannot_run_is_said():
    cuda = get_engine("cuda")
    assert "no NVIDIA GPU" in cuda.obstacle(GWG()) or cuda.obstacle(GWG()) is None
    assert "random scans" in OneLane().obstacle(Gibbs(scan="sequential"))
    assert f"{MOST} sites" in OneLane().obstacle(GWG(), num_sites=MOST + 1)
    assert OneLane().obstacle(GWG(), num_sites=MOST) is None
    if cuda.obstacle(GWG()):
        with pytest.raises(
            InputError, match=r"engine is 'cuda': there is no NVIDIA GPU.*; choose 'auto' or 'cpu'"
        ):
            choose_engine("cuda", GWG())


def test_ten_thousand_steps_of_a_run_are_one_call():
    """Each call copies all chains to the card and back, and a GPU plays ten thousand steps in a
    part of a second.
    """
    steps = {
        name: get_engine(name).visible_steps(GWG(), 10_000) for name in ("cuda", "cpu", "reference")
    }
    assert steps == {"cuda": 10_000, "cpu": 1_000, "reference": 1_000}


def test_auto_takes_a_card_for_many_chains(monkeypatch):
    monkeypatch.setattr("sl_discs.engines.choice.has_card", lambda: True)
    monkeypatch.setattr(Cuda, "missing", lambda self: None)
    assert choose_engine("auto", GWG())[0].name == "cuda"
    assert choose_engine("auto", GWG(), num_chains=32)[0].name == "cpu"
    for cores, name in ((16, "cuda"), (200, "cpu")):
        monkeypatch.setattr("sl_discs.engines.choice.num_cores", lambda cores=cores: cores)
        engine, note = choose_engine("auto", GWG())
        assert engine.name == name and f"{cores} cores" in note
    monkeypatch.undo()
    monkeypatch.setattr("sl_discs.engines.choice.has_card", lambda: True)
    monkeypatch.setattr(Cuda, "missing", lambda self: None)
    assert choose_engine("auto", GWG(), num_sites=MOST + 1)[1].startswith(
        "not cuda: a chain has at most"
    )
    monkeypatch.setattr(Cuda, "missing", lambda self: "numba-cuda cannot be imported")
    engine, note = choose_engine("auto", GWG())
    assert engine.name == "cpu" and note == "not cuda: numba-cuda cannot be imported"


# Bytes of arrays that the compiler may keep in memory: three of gibbs, which has no unrolled loop
# over most sites.
MOST_STACK = 3 * 4 * 32


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="numba-cuda and its compiler are not installed: pip install 'numba-cuda[cu13]'",
)
@pytest.mark.parametrize("capability", [(8, 0), (9, 0)], ids=str)
@pytest.mark.parametrize(
    ("whole", "localized", "sites", "warps"),
    [
        (True, False, 28, 1),
        (True, True, 28, 1),
        (True, True, 24, 2),
        (False, True, 20, 1),
        (True, True, 32, 11),
    ],
)
@pytest.mark.parametrize("sampler", IN_TWO_WARPS.values(), ids=IN_TWO_WARPS)
def test_kernels_have_no_doubles_and_no_arrays_in_memory(
    monkeypatch, capability, sampler, whole, localized, sites, warps
):
    """Compiled for cards that are not there, with registers for 12 warps where they are scarce."""
    kind = kind_of(sampler, sites, whole, localized)
    ptx = ptx_of(monkeypatch, kind, warps, capability)
    assert (f".minnctapersm {max(12 // warps, 1)}" in ptx) == (kind.has_sums and sites >= 24)
    assert ".f64" not in ptx
    assert sizes(ptx, r"__local_depot\d+\[(\d+)\]") <= MOST_STACK
    assert sizes(ptx, r"\.shared .* \.b8 \S+\[(\d+)\]") <= 48 << 10


def test_instances_are_packed_once_for_all_programs_of_a_batch(monkeypatch):
    terms, packs = [sl_discs.mis(nx.path_graph(n)).terms() for n in (4, 6)], []
    monkeypatch.setattr(
        cuda_engine, "as_instances", lambda *given: packs.append(given) or as_instances(*given)
    )
    [pack] = plan(terms, 2, 2)
    chains = Chains(terms, [0, 1], pack.shape, GWG(adaptive=False), PLAIN_LANE, 0)
    for temperature in (1.0, 0.5):
        chains.start(program_at(np.full(4, temperature)))
        chains.set_instance_ids([2, 3])
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
        shared = make_shared(
            one_lane(lambda function: function)._replace(lanes=threads), kind
        )._asdict()
        inside = set(shared) - unused - set(outside(kind, threads))
        assert sum(shared[name].nbytes for name in inside) <= 48 << 10
        assert num_sites > 1_024 or not outside(kind, threads)
