"""Sequential scans of many chains in step: kernels, random numbers, values, ladders, clusters and localization."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from chains import FALSE_ALARM, batch_of, chains_at
from localized import check_localized_law
from single_steps import check_single_steps

from sl_discs.engines.base import Batch, Best, Program, exchange, exchanges, init_chains
from sl_discs.engines.cpu import blocks
from sl_discs.engines.cpu.engine import Cpu
from sl_discs.engines.cpu.jit import from_python
from sl_discs.engines.cpu.lanes import REFRESHED, exchange_clusters
from sl_discs.errors import InputError
from sl_discs.models.quadratic import QuadraticModel, field_dtype, quadratic_params
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.single_site import Gibbs, Metropolis
from sl_discs.testing.cases import Case, all_states, state_index
from sl_discs.testing.conformance import chi_squared

GIBBS, METROPOLIS = Gibbs(scan="sequential"), Metropolis(scan="sequential")


def _keys(batch):
    return jax.tree.map(np.asarray, batch.keys)


@dataclasses.dataclass(frozen=True)
class InStep(Cpu):
    """The loop for any number of chains and neighbours."""

    def prepare(self, model, sampler, batch, program):
        return blocks.make_play(model, sampler, batch, program, self.threads or 1)


ENGINE = InStep()


@pytest.mark.parametrize("sampler", [GIBBS, METROPOLIS], ids=["gibbs", "metropolis"])
@pytest.mark.parametrize(("num_sites", "whole"), [(3, True), (4, False)])
def test_a_sweep_has_the_kernel_of_its_sites(sampler, num_sites, whole):
    """In all four targets of `small_targets`, tilted and with masks, in a call that begins within a sweep too."""
    check_single_steps(
        ENGINE,
        sampler,
        num_sites=num_sites,
        whole=whole,
        steps=num_sites,
        copies=600,
        temperatures=(1.0,),
        sparse=whole,
    )


def random_case(num_sites, *, whole, seed=0, degree=4) -> Case:
    """Random couplings, whole or real, with a site that is masked."""
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((num_sites, num_sites)) < degree / num_sites, 1))
    weights = rng.integers(-3, 4, len(edges)) if whole else rng.normal(size=len(edges))
    terms = Coefficients(rng.normal(size=num_sites), edges, np.float64(weights), -0.7)
    params = jax.tree.map(jnp.asarray, quadratic_params(terms, num_sites, None))
    model = QuadraticModel(num_sites, field_dtype(jax.tree.map(np.asarray, params.coupling)))
    mask = np.arange(num_sites) != 2
    return Case("random", model.target(params, mask), np.zeros(num_sites, np.int8))


def played(case, sampler, temperature, x, calls=1, intervals=1, chosen=None, engine=ENGINE, **fields):
    """The chains after a program that is played in equal calls, and the traces; only the chosen chains are played."""
    program, batch = Program(np.asarray(temperature, np.float32), None, **fields), batch_of(case, len(x))
    chosen = np.arange(len(x)) if chosen is None else chosen
    if program.temperature.ndim == 2:
        program = program._replace(temperature=program.temperature[:, chosen])
    batch = batch._replace(keys=jax.tree.map(lambda key: key[:, chosen], _keys(batch)))
    chains = chains_at(case, sampler, batch, np.asarray(x)[chosen])
    play, every = engine.prepare(case.model, sampler, batch, program), len(temperature) // (calls * intervals)
    traces = []
    for call in range(calls):
        chains, trace = play(chains, call * intervals * every, intervals, every)
        traces.append(trace)
    return chains, jax.tree.map(lambda *leaves: np.concatenate(leaves), *traces)


def starts(case, count, seed=5):
    return np.random.default_rng(seed).integers(0, 2, (count, case.model.num_sites)).astype(np.int8)


@pytest.mark.parametrize("sampler", [GIBBS, METROPOLIS], ids=["gibbs", "metropolis"])
def test_the_bits_of_a_chain_are_its_own(sampler):
    """However a run is cut into calls, and whichever chains are played beside it, in how many threads."""
    case = random_case(19, whole=False)
    steps = 21 * 40  # more sweeps than between two refreshments
    temperature = np.random.default_rng(1).uniform(0.3, 3, (steps, 90))
    x = starts(case, 90)
    once, trace = played(case, sampler, temperature, x)
    for other, _ in (
        played(case, sampler, temperature, x, calls=120),
        played(case, sampler, temperature, x, intervals=40),
        played(case, sampler, temperature, x, engine=InStep(threads=2)),
    ):
        np.testing.assert_array_equal(once.chain.x, other.chain.x)
        np.testing.assert_array_equal(once.chain.field.coupled, other.chain.field.coupled)
    alone, trace_alone = played(case, sampler, temperature, x, chosen=[7])
    np.testing.assert_array_equal(once.chain.x[:, 7], alone.chain.x[:, 0])
    np.testing.assert_array_equal(once.best.x[:, 7], alone.best.x[:, 0])
    np.testing.assert_array_equal(trace.hops[..., 7], trace_alone.hops[..., 0])
    assert once.chain.x[0].std(axis=0)[[0, 1, 3]].min() > 0.2


@pytest.mark.parametrize("whole", [True, False], ids=["whole couplings", "real couplings"])
def test_values_and_fields_are_those_of_the_states(whole):
    """Also between refreshments, whose period does not divide the number of sweeps; f in float64, from the states."""
    case = random_case(60, whole=whole, degree=12)
    steps = 59 * (REFRESHED * 2 + 20)
    temperature = np.geomspace(5, 0.5, steps)
    x = starts(case, 33)
    chains, trace = played(case, METROPOLIS, temperature, x, intervals=12, keeps_states=True)
    params = case.target.params
    linear, matrix = np.float64(params.linear), np.float64(params.coupling.matrix)

    def value(x):
        x = np.float64(x)
        return x @ linear + float(params.scale) / 2 * np.einsum("...i,ij,...j", x, matrix, x)

    np.testing.assert_allclose(trace.value, value(trace.states), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(chains.best.value, value(chains.best.x), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(chains.best_logged.value, value(chains.best_logged.x), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(chains.best_logged.value, trace.value.max(axis=0))
    assert (chains.best.value >= chains.best_logged.value).all()
    assert (chains.best.value > chains.best_logged.value).any()
    field = np.float64(chains.chain.x) @ matrix
    largest = np.abs(matrix).sum(axis=0).max()
    bound = 0 if whole else 2.0**-24 * (REFRESHED + 1) * np.count_nonzero(matrix, axis=0).max() * largest
    assert np.abs(chains.chain.field.coupled - field).max() <= bound
    np.testing.assert_array_equal(trace.hops, trace.acceptance)
    np.testing.assert_array_equal(chains.chain.x[..., 2], x[None, :, 2])


def grid(side):
    """A ferromagnet on a torus, f = (number of equal neighbours - unequal ones) of spins."""
    site = np.arange(side**2).reshape(side, side)
    edges = np.concatenate([np.stack([site, np.roll(site, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
    terms = Coefficients(np.full(side**2, -8.0), edges, np.full(len(edges), 4.0), 1.0)
    params = jax.tree.map(jnp.asarray, quadratic_params(terms, side**2, None))
    start = np.zeros(side**2, np.int8)
    return Case("torus", QuadraticModel(side**2, "int16").target(params, start == 0), start)


def test_metropolis_meets_states_of_equal_energy():
    """The law of the energy and the magnetization of a 4 x 4 torus at three temperatures, of one of them infinite."""
    case, temperatures = grid(4), np.array([3.0, 5.0, np.inf], np.float32)
    states = all_states(16)
    spins = 2 * np.int64(states).reshape(-1, 4, 4) - 1
    energy = (spins * (np.roll(spins, 1, 1) + np.roll(spins, 1, 2))).sum((1, 2))
    kind = (energy + 32) // 4 * 17 + states.sum(1)
    copies = 2_000
    x = np.zeros((3 * copies, 16), np.int8)
    program = np.tile(temperatures, (16 * 60, copies))
    found, _ = played(case, METROPOLIS, program, x)
    index = kind[state_index(found.chain.x[0])].reshape(-1, 3)
    for k, temperature in enumerate(temperatures):
        law = np.bincount(kind, np.exp((energy - 32) / temperature))
        counts = np.bincount(index[:, k], minlength=len(law))
        assert chi_squared(counts, law / law.sum() * copies)[1] > FALSE_ALARM


def test_a_ladder_exchanges_as_the_other_engines_do():
    """Interval by interval: the chains without exchanges, then those that `exchanges` names."""
    case, ladder, every, intervals = random_case(20, whole=True), 5, 30, 9
    rungs = np.tile(np.geomspace(0.5, 3, ladder).astype(np.float32), 8)
    x, steps = starts(case, len(rungs)), every * intervals
    temperature = np.tile(rungs, (steps, 1))
    chains, trace = played(case, GIBBS, temperature, x, intervals=intervals, ladder=ladder, keeps_states=True)
    batch = batch_of(case, len(rungs))
    one = chains_at(case, GIBBS, batch, x)
    play = ENGINE.prepare(case.model, GIBBS, batch, Program(temperature, None))
    drawn = jax.jit(exchanges, static_argnums=5)
    for interval in range(intervals):
        one, found = play(one, interval * every, 1, every)
        np.testing.assert_allclose(found.value[0], trace.value[interval], rtol=1e-6)  # sums are rounded at each call
        np.testing.assert_array_equal(found.hops[0], trace.hops[interval])
        np.testing.assert_array_equal(one.chain.x[:, ::ladder], trace.states[interval])
        step = np.int32((interval + 1) * every)
        swapped = drawn(batch.keys, found.value[0], rungs, step, step // every, ladder)
        np.testing.assert_array_equal(swapped, trace.exchanged[interval])
        x, field, value = jax.jit(exchange)((one.chain.x, one.chain.field, found.value[0]), swapped)
        better = value > one.best.value
        best = Best(np.where(better, value, one.best.value), np.where(better[..., None], x, one.best.x))
        one = one._replace(chain=one.chain._replace(x=x, field=field), best=best)
    assert 0.1 < trace.exchanged.mean() < 0.4
    for name in ("chain", "best", "best_logged"):
        np.testing.assert_array_equal(getattr(one, name).x, getattr(chains, name).x)
    np.testing.assert_array_equal(one.chain.field.coupled, chains.chain.field.coupled)


def spin_glass(edges, couplings, fields) -> Case:
    """f = sum of J s s' + sum of h s."""
    couplings, fields, edges = np.float64(couplings), np.float64(fields), np.array(edges)
    sums = sum(np.bincount(end, couplings, len(fields)) for end in edges.T)
    terms = Coefficients(2 * (fields - sums), edges, 4 * couplings, 1.0)
    params = jax.tree.map(jnp.asarray, quadratic_params(terms, len(fields), None))
    model = QuadraticModel(len(fields), field_dtype(jax.tree.map(np.asarray, params.coupling)))
    start = np.zeros(len(fields), np.int8)
    return Case("spin glass", model.target(params, start == 0), start)


def clusters_of(graph, one, other, *, symmetric) -> list[set[int]]:
    """Those that may be exchanged: all but the first of the largest ones."""
    apart = np.flatnonzero(one != other)
    if symmetric and 2 * len(apart) > len(one):
        apart = np.flatnonzero(one == other)
    found = sorted(
        nx.connected_components(graph.subgraph(apart.tolist())), key=lambda sites: (-len(sites), min(sites))
    )
    return found[1:]


PATH = [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize("fields", [[0.5, -1, 0.25, 0, 2], [0] * 5], ids=["fields", "symmetric"])
def test_cluster_moves_exchange_clusters_and_keep_the_law_of_independent_states(fields):
    """All 1,024 pairs of states of five sites: which pairs follow, their values, and the transition matrix."""
    case, graph, symmetric = spin_glass(PATH, [1, -2, 0.5, -1], fields), nx.Graph(PATH), not np.any(fields)
    [target] = blocks.make_targets(case.model, batch_of(case, 1))
    assert target.symmetric is symmetric
    states, move = all_states(5), from_python(exchange_clusters)
    coupling = np.zeros((5, 5))
    for (u, v), weight in zip(PATH, [4, -8, 2, -4], strict=True):
        coupling[u, v] = coupling[v, u] = weight
    linear = np.float64(case.target.params.linear)
    values = states @ linear + np.einsum("si,ij,sj->s", states, coupling, states) / 2
    rng, matrix = np.random.default_rng(0), np.zeros((1024, 1024))
    lanes = blocks.make_lanes(len(target.linear), 16, False)
    lanes.spins[:] = -1
    for first, second in itertools.product(range(32), repeat=2):
        clusters = clusters_of(graph, states[first], states[second], symmetric=symmetric)
        expected = set()
        for chosen in itertools.product((False, True), repeat=len(clusters)):
            pair = states[[first, second]].copy()
            for cluster in itertools.compress(clusters, chosen):
                pair[:, list(cluster)] ^= 1
            expected.add(tuple(state_index(pair).tolist()))
        seen = set()
        for _ in range(16 if clusters else 1):
            pair = states[[first, second]]
            lanes.spins[:5, [3, 9]] = 2 * pair.T - 1
            lanes.coupled[:5, [3, 9]] = (pair @ coupling).T
            lanes.sums[0, [3, 9]] = pair @ linear
            lanes.sums[1, [3, 9]] = values[[first, second]] - pair @ linear
            key = rng.integers(0, 2**32, 2, np.uint32)
            move(target, lanes.spins, lanes.coupled, lanes.sums, lanes.clusters, 3, 9, *key)
            after = np.int8(lanes.spins[:5, [3, 9]].T > 0)
            index = state_index(after)
            np.testing.assert_allclose(lanes.sums[:2, [3, 9]].sum(axis=0), values[index])
            np.testing.assert_allclose(lanes.coupled[:5, [3, 9]].T, after @ coupling)
            assert values[index].sum() == pytest.approx(values[[first, second]].sum())
            seen.add(tuple(index.tolist()))
        # One of two or four pairs is not seen in 16 moves with probability below 2%; here all are.
        assert seen == expected
        for one, other in expected:
            matrix[32 * first + second, 32 * one + other] = 1 / len(expected)
    weights = np.exp(values / 0.7)
    law = np.outer(weights, weights).ravel() / weights.sum() ** 2
    np.testing.assert_allclose(law @ matrix, law, atol=1e-15)
    assert (matrix[np.arange(1024), np.arange(1024)] < 1).sum() > 100


@pytest.mark.parametrize("fields", [[0.5, -1, 0.25, 0], [0] * 4], ids=["fields", "symmetric"])
def test_ladders_with_cluster_moves_have_the_law_of_independent_ladders(fields):
    """Both states at the colder of two temperatures: all 256 pairs of a frustrated square, by enumeration."""
    edges, couplings, copies = [(0, 1), (1, 2), (2, 3), (0, 3)], [1, 0.5, -1, 1], 12_000
    case, ladder = spin_glass(edges, couplings, fields), np.float32([0.8, 3.0])
    temperature = np.tile(ladder, (4 * 30, 2 * copies))
    x = np.zeros((4 * copies, 4), np.int8)
    found, trace = played(case, GIBBS, temperature, x, intervals=30, ladder=2, clusters=2)
    alone, _ = played(case, GIBBS, temperature, x, intervals=30, ladder=2)
    spins = 2.0 * all_states(4) - 1
    values = spins @ np.float64(fields) + sum(
        c * spins[:, u] * spins[:, v] for (u, v), c in zip(edges, couplings, strict=True)
    )
    for k, tau in enumerate(ladder):
        law = np.exp(values / tau)
        joint = np.outer(law, law).ravel() / law.sum() ** 2
        pairs = state_index(found.chain.x[0]).reshape(copies, 2, 2)[:, :, k]
        counts = np.bincount(pairs @ [16, 1], minlength=256)
        assert chi_squared(counts, joint * copies)[1] > FALSE_ALARM
    assert (found.chain.x != alone.chain.x).any() and 0.1 < trace.exchanged.mean() < 0.6
    field = np.float64(found.chain.x) @ np.float64(case.target.params.coupling.matrix)
    np.testing.assert_allclose(found.chain.field.coupled, field)
    with pytest.raises(InputError, match="6 chains do not form pairs of ladders of 2"):
        Cpu().prepare(case.model, GIBBS, batch_of(case, 6), Program(np.ones(4), None, ladder=2, clusters=1))


@pytest.mark.parametrize("sampler", [GIBBS, METROPOLIS], ids=["gibbs", "metropolis"])
def test_localized_chains_sample_from_the_target(sampler):
    check_localized_law(ENGINE, sampler)


def test_chains_without_open_sites_stay():
    case = random_case(5, whole=True)
    case = case._replace(target=case.target.masked(np.zeros(5, bool)))
    x = starts(case, 20)
    found, trace = played(case, GIBBS, np.ones(10), x, intervals=2)
    np.testing.assert_array_equal(found.chain.x[0], x)
    assert (trace.hops == 0).all() and (found.chain.state.steps == 10).all()


def test_which_chains_are_played_in_step_depends_on_their_instance_only():
    """Two instances of one batch, in one call, and each by itself: one with few neighbours and one with many."""
    cases = [random_case(150, whole=False, degree=degree) for degree in (4, 120)]
    params = jax.tree.map(lambda *leaves: np.stack(leaves), *(case.target.params for case in cases))
    keys = jax.tree.map(lambda key: np.tile(key, (2, 1, 1)), _keys(batch_of(cases[0], 14)))
    both = Batch(params, np.array([case.mask for case in cases]), keys)
    assert blocks.in_step(GIBBS, both).tolist() == [True, False]
    assert not blocks.in_step(Gibbs(), both).any()
    few = both._replace(keys=jax.tree.map(lambda key: key[:, :8], keys))
    assert not blocks.in_step(GIBBS, few).any()
    model, x = cases[0].model, starts(cases[0], 14)
    program = Program(np.full(450, 1.5, np.float32), None)
    begin = init_chains(model, GIBBS, both, np.stack([x, x]), None)
    chains, trace = Cpu().prepare(model, GIBBS, both, program)(begin, 0, 3, 150)
    for g in range(2):
        one = jax.tree.map(lambda leaf, g=g: np.asarray(leaf)[g : g + 1], (both, begin))
        found, record = Cpu().prepare(model, GIBBS, one[0], program)(one[1], 0, 3, 150)
        np.testing.assert_array_equal(found.chain.x[0], chains.chain.x[g])
        np.testing.assert_array_equal(record.value[:, 0], trace.value[:, g])
        assert record.hops.mean() > 0.05
