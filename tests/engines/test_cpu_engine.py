"""The CPU engine carries chains as the reference does; the law of its steps is tested in tests/testing."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from chains import batch_of, play_program

import sl_discs
from sl_discs.engines.base import Batch, Program, init_chains
from sl_discs.engines.cpu.arrays import as_targets
from sl_discs.engines.registry import choose_engine, get_engine
from sl_discs.errors import InputError
from sl_discs.experiment.run import run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.keys import StepKeys
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models.quadratic import QuadraticModel, QuadraticParams, quadratic_params, sparse_coupling
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis
from sl_discs.testing import standard_cases

CPU = get_engine("cpu")
QUADRATIC = [case for case in standard_cases() if isinstance(case.model, QuadraticModel)]
# Compiled as a whole: JAX would compile each of their operations by itself.


@functools.partial(jax.jit, static_argnums=0)
def fields_and_values(model, params, x):
    """Of the field and f at each of these states, computed anew."""

    def one(x):
        field = model.init(params, x)
        return field, model.value(params, x, field)

    return jax.vmap(one)(x)


def numbered_keys(chains):
    words = np.zeros((1, chains, 2), np.uint32)
    words[..., 1] = np.arange(chains)
    return StepKeys(jnp.asarray(words), jnp.asarray(words))


@pytest.mark.parametrize(
    "case",
    [QUADRATIC[2], pytest.param(QUADRATIC[3], marks=pytest.mark.slow)],
    ids=["whole couplings", "real couplings"],
)
@pytest.mark.parametrize(
    ("sampler", "budget"),
    [
        (PathAuxiliary(adaptive=True), "exp_decay"),
        (PathAuxiliary(adaptive=True), "identical"),
        (Gibbs(scan="sequential"), "exp_decay"),
    ],
    ids=["exp_decay", "identical", "sequential scan"],
)
def test_cut_into_calls_it_is_the_same_run(case, sampler, budget):
    """In the middle of levels, and (identical ones) where they end; and the field that is carried along is right."""
    steps = 120
    plan = Localization(K=8, sigma=2.0, n_min=3, budget=budget)
    program = Program(np.linspace(2.0, 0.5, steps).astype(np.float32), plan.levels(steps))
    batch = batch_of(case, 16)
    x = jnp.asarray(np.tile(case.start, (1, 16, 1)))
    begin = init_chains(case.model, sampler, batch, x, plan.initial_noise())
    once, _ = play_program(CPU, case.model, sampler, batch, begin, program, intervals=4)
    play = CPU.prepare(case.model, sampler, batch, program)
    twice = begin
    for k in range(4):
        twice, _ = play(twice, 30 * k, 1, 30)
    # The posterior mean is summed in parts.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), once, twice)
    np.testing.assert_array_equal(once.chain.x, twice.chain.x)
    field, _ = fields_and_values(case.model, case.target.params, once.chain.x[0])
    np.testing.assert_allclose(once.chain.field.coupled[0], field.coupled, atol=1e-4)
    np.testing.assert_allclose(once.chain.field.pairs[0], field.pairs, atol=1e-4)
    _, values = fields_and_values(case.model, case.target.params, once.best.x[0])
    np.testing.assert_allclose(values, once.best.value[0], atol=1e-4)
    assert (once.best.value >= once.best_logged.value).all()


@pytest.mark.parametrize(
    ("problem", "graph_type", "cfg_str", "name"),
    [
        ("mis", "er_density", "r-0.05", "sl_path_auxiliary"),
        *(
            pytest.param(*family, name, marks=pytest.mark.slow)
            for family in (
                ("mis", "er_density", "r-0.05"), ("maxcut", "ba", "r-ba-4-n-256-300"), ("maxclique", "rb", "_")
            )
            for name in ("gwg", "path_auxiliary", "dmala", "gibbs", "metropolis", "sl_path_auxiliary", "sl_dmala")
        ),
    ],
)  # fmt: skip
def test_it_agrees_with_the_reference_on_benchmark_graphs(problem, graph_type, cfg_str, name):
    """Means over 32 chains x 3 graphs of acceptance, hops and the best value: two-sided, five standard errors."""
    dataset = load_dataset(problem, graph_type, cfg_str, None, num_instances=3)
    fields = {"name": name} | ({"K": 32} if name.startswith("sl_") else {})
    # One site a step: after 600 steps most sites of a graph have not been tried once.
    steps = 15_000 if name in ("gibbs", "metropolis") else 600
    settings = Settings(batch_size=32, chain_length=steps, log_every_steps=100, instances_per_batch=3)
    method = build_method(fields, 32)
    found = {}
    for engine, seed in (("reference", 0), ("cpu", 1)):
        chosen = dataclasses.replace(settings, engine=engine, seed=seed)
        found[engine] = run_sampler(dataset, 1.0001, method, chosen)
    assert found["cpu"].engine == "cpu" and found["reference"].engine == "reference"
    for trace in ("acceptance", "hops"):
        one, other = (getattr(found[engine], trace) for engine in ("reference", "cpu"))
        # Each entry is a mean over 32 chains x 100 steps; graphs and times differ alike in both.
        error = 5 * np.std(one - other) / np.sqrt(one.size) + 0.01 * one.mean()
        assert abs((one - other).mean()) < error
    best = [[instance.best for instance in found[engine].instances] for engine in ("reference", "cpu")]
    # The best of 32 chains differs by a node or two between seeds, and by some edges of a cut.
    assert abs(np.subtract(*best).mean()) <= max(2, 0.02 * np.mean(best))
    assert all(instance.feasible for instance in found["cpu"].instances)


def test_an_engine_that_cannot_run_the_sampler_is_refused():
    """By whatever runs chains: none falls back on another engine in silence."""
    problem = sl_discs.maxcut(nx.cycle_graph(4))
    dataset = load_dataset("mis", "er_density", "r-0.05", None, num_instances=1)
    calls = [
        lambda: choose_engine("cpu", DMALA(shared_scale=True)),
        lambda: sl_discs.solve(problem, "sl_dlmc", steps=400, chains=2, engine="cpu"),
        lambda: sl_discs.sample(problem, 1.0, 8, "localization", sampler="dlmc", engine="cpu"),
        lambda: run_sampler(dataset, 1.0, build_method({"name": "dlmc"}, 2), Settings(engine="cpu")),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"^engine is 'cpu', which cannot run \w+: .*; choose 'auto' or"):
            call()


def test_the_choice_of_an_engine_is_explained():
    reference = get_engine("reference")
    assert choose_engine("reference", GWG()) == choose_engine("xla", GWG()) == (reference, "")
    assert choose_engine("cpu", GWG()) == (CPU, "")
    assert choose_engine("auto", GWG()) == (CPU, "auto: the fastest on CPU cores")
    engine, note = choose_engine("auto", DMALA(shared_scale=True))
    assert engine is reference and note.startswith("not cpu: its chains are independent")
    assert choose_engine("auto", DMALA(scaling="fixed"))[1] == "not cpu: it only supports the normalized step size"
    assert choose_engine("auto", Metropolis(scan="sequential"))[0] is CPU
    assert "SQRT" in CPU.obstacle(GWG(balancing_fn_type="MIN"))
    assert "shared" in CPU.obstacle(GWG(adaptive=True, shared_adaptation=True))

    class Mine(GWG):
        """Another sampler, whatever it inherits."""

    assert CPU.obstacle(Mine()) == "it only supports gwg, path_auxiliary, dmala, gibbs, metropolis, exchange"
    with pytest.raises(InputError, match="known: auto, reference, cpu, cuda, xla"):
        get_engine("gpu")


def test_it_runs_on_the_cores_whatever_devices_jax_has(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert choose_engine("auto", GWG())[0] == choose_engine("cpu", GWG())[0] == CPU


def test_couplings_of_0_are_not_listed():
    """They would be partners of `exchange`, which they are not on the reference."""
    coupling = sparse_coupling(np.array([(0, 1), (1, 2)]), np.array([1.0, 0.0]), 40, 2)
    params = QuadraticParams(np.zeros(40, np.float32), coupling, np.float32(1))
    batch = Batch(jax.tree.map(lambda leaf: leaf[None], params), np.ones((1, 40), bool), None)
    targets = as_targets(QuadraticModel(40), batch)
    assert targets.neighbours.tolist() == [1, 0] and targets.weights.tolist() == [1, 1]


@pytest.mark.parametrize("degree", [2, 60])
def test_closed_sites_beyond_the_open_ones_stay_and_count(degree):
    """A chain looks at whole lanes up to the last site that matters: open, or coupled to an open one."""
    rng = np.random.default_rng(degree)
    num_sites, num_open = 400, 100
    edges = np.unique(np.sort(rng.integers(0, [num_open, num_sites - 10], (degree * num_open, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    terms = Coefficients(rng.normal(size=num_sites), edges.astype(np.int32), rng.normal(size=len(edges)), 1.0)
    params = quadratic_params(terms, num_sites, None)
    model, mask = QuadraticModel(num_sites), np.arange(num_sites) < num_open
    keys = numbered_keys(8)
    batch = Batch(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params), jnp.asarray(mask)[None], keys)
    assert as_targets(model, batch).sizes[0] == 16 * -(-(edges.max() + 1) // 16)
    x = jnp.asarray(rng.integers(0, 2, (1, 8, num_sites)), jnp.int8)
    sampler = PathAuxiliary(num_flips=3)
    program = Program(np.full(100, 0.7, np.float32), None)
    chains, _ = play_program(CPU, model, sampler, batch, init_chains(model, sampler, batch, x, None), program, 2)
    found = np.asarray(chains.chain.x[0])
    np.testing.assert_array_equal(found[:, num_open:], np.asarray(x)[0, :, num_open:])
    assert (found[:, :num_open] != np.asarray(x)[0, :, :num_open]).any(axis=1).all()
    fields, _ = fields_and_values(model, params, found)
    open_ones = np.asarray(chains.chain.field.coupled)[0, :, :num_open]
    np.testing.assert_allclose(open_ones, np.asarray(fields.coupled)[:, :num_open], atol=1e-3)
    for name in ("linear", "pairs"):
        np.testing.assert_allclose(getattr(chains.chain.field, name)[0], getattr(fields, name), atol=1e-2)


@pytest.mark.parametrize("rule", [Gibbs, Metropolis])
def test_a_sequential_scan_is_that_of_one_step_after_the_other(rule):
    """Many steps at once, among vectors of sites, meet the states that the same thresholds lead to one by one."""
    rng = np.random.default_rng(7)
    num_sites, chains, steps = 90, 6, 1_000
    edges = np.unique(np.sort(rng.integers(0, num_sites, (200, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]].astype(np.int32)
    terms = Coefficients(rng.normal(size=num_sites), edges, rng.normal(size=len(edges)), 1.0)
    params, model = quadratic_params(terms, num_sites, None), QuadraticModel(num_sites)
    keys = numbered_keys(chains)
    mask = jnp.asarray((rng.random(num_sites) < 0.98) & (np.arange(num_sites) < 85))[None]
    batch = Batch(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params), mask, keys)
    x = jnp.asarray(rng.integers(0, 2, (1, chains, num_sites)), jnp.int8)
    sampler, program = rule(scan="sequential"), Program(np.geomspace(3, 0.1, steps).astype(np.float32), None)
    begin = init_chains(model, sampler, batch, x, None)
    found = {every: play_program(CPU, model, sampler, batch, begin, program, steps // every) for every in (1, 1_000)}
    for name in ("chain", "best"):
        one, other = (getattr(found[every][0], name).x for every in found)
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.asarray(found[1][0].chain.x)[..., ~np.asarray(mask[0])], x[..., ~mask[0]])
    moves = np.mean(found[1][1].hops, axis=0)
    assert (moves > 0.05).all() and (moves < 0.9).all()


@pytest.mark.parametrize("expected_flips", [3.0, 290.0, 800.0])
def test_dmala_flips_free_sites_at_any_rate(expected_flips):
    """Odds n/N at each of N sites without couplings: N n/(N + n) flips a step, all accepted; five standard errors."""
    num_sites, chains, steps = 1_000, 8, 50
    terms = Coefficients(np.zeros(num_sites), np.zeros((0, 2), np.int32), np.zeros(0), 1.0)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], quadratic_params(terms, num_sites, None))
    keys = numbered_keys(chains)
    model, sampler = QuadraticModel(num_sites, "int16"), DMALA(expected_flips=expected_flips)
    batch = Batch(params, jnp.ones((1, num_sites), bool), keys)
    start = init_chains(model, sampler, batch, jnp.zeros((1, chains, num_sites), jnp.int8), None)
    program = Program(np.ones(steps, np.float32), None)
    _, trace = play_program(CPU, model, sampler, batch, start, program)
    odds = expected_flips / num_sites
    error = np.sqrt(num_sites * odds / (1 + odds) ** 2 / (chains * steps))
    assert abs(trace.hops.mean() - num_sites * odds / (1 + odds)) < 5 * error
    np.testing.assert_allclose(trace.acceptance, 1, atol=1e-5)
