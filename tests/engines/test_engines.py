"""How engines are chosen, and how they carry chains; the law of their steps is tested in
tests/testing.
"""

import dataclasses

import jax
import jax.numpy as jnp
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
from engines_at_hand import ENGINES, known_to
from marks import slow_except

import sl_discs
from sl_discs.engines.choice import choose_engine, get_engine
from sl_discs.engines.cpu.chunk import ENTRIES
from sl_discs.engines.cpu.layout import ProgramSlices, as_targets, proposal_temperatures
from sl_discs.engines.program import Batch, ChainTemperatures, Program
from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models.quadratic import QuadraticModel, quadratic_params
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.samplers.single_site import Gibbs, Metropolis
from sl_discs.support.errors import InputError

CPU = ENGINES["cpu"]


def assert_carried(case, chains):
    """Fields, and the values of the best states, are those that are computed anew."""

    @jax.jit
    def anew(params, x):
        field = case.model.init(params, x)
        return field, case.model.value(params, x, field)

    anew = jax.vmap(anew, (None, 0))
    fields, _ = anew(case.target.params, jnp.asarray(chains.chain.x[0]))
    seen = np.asarray(case.mask)
    np.testing.assert_allclose(
        chains.chain.field.coupled[0][:, seen], fields.coupled[:, seen], atol=1e-3
    )
    for name in ("linear", "pairs"):
        np.testing.assert_allclose(
            getattr(chains.chain.field, name)[0], getattr(fields, name), atol=1e-2
        )
    _, values = anew(case.target.params, jnp.asarray(chains.best.x[0]))
    np.testing.assert_allclose(values, chains.best.value[0], atol=1e-2)
    assert (chains.best.value >= chains.best_logged.value).all()


CARRIED = {
    "path_auxiliary": PathAuxiliary(adaptive=True),
    "gibbs": Gibbs(scan="sequential"),
    "metropolis": Metropolis(scan="sequential"),
}


@pytest.mark.parametrize("budget", slow_except(["exp_decay", "identical", None], ["exp_decay"]))
@pytest.mark.parametrize(
    ("engine", "name"),
    [
        pytest.param(
            engine, name, marks=[pytest.mark.slow] * (engine == "reference" and name != "gibbs")
        )
        for engine in ENGINES
        for name in known_to(engine, CARRIED)
    ],
)
def test_chains_depend_neither_on_calls_nor_on_each_other(engine, name, budget):
    """Calls end in the middle of levels, and (identical ones) where they end; or chains are not
    localized.

    There are more chains than a block has, and then more sweeps than between refreshments of real
    couplings.
    """
    rng = np.random.default_rng(1)
    num_sites, steps = 19, 120 if budget else 760
    edges, mask = random_edges(rng, num_sites, 4), np.arange(num_sites) != 2
    weights = (
        rng.normal(size=len(edges))
        if engine == "in step" and not budget
        else rng.integers(-3, 4, len(edges))
    )
    case = quadratic_case(rng.normal(size=num_sites), edges, weights, -0.7, mask)
    levels = Localization(K=8, sigma=2.0, n_min=3, budget=budget).levels(steps) if budget else None
    program = program_at(np.linspace(2.0, 0.5, steps), levels)
    x = rng.integers(0, 2, (70, num_sites)).astype(np.int8)
    chains = check_independence(ENGINES[engine], case, CARRIED[name], x, program)
    np.testing.assert_array_equal(chains.chain.x[0][:, ~mask], x[:, ~mask])
    assert (chains.chain.x[0] != x).mean() > 0.1
    assert_carried(case, chains)


FAMILIES = [
    ("mis", "er_density", "r-0.05"), ("maxcut", "ba", "r-ba-4-n-256-300"), ("maxclique", "rb", "_"),
    ("maxcut", "er", "r-er-0.15-n-1024-1100"),
]  # fmt: skip
COMPARED = (
    "gwg",
    "path_auxiliary",
    "dmala",
    "gibbs",
    "metropolis",
    "sl_path_auxiliary",
    "sl_dmala",
)


def _comparisons():
    for engine, other, families in (("cpu", "reference", FAMILIES[:3]), ("cuda", "cpu", FAMILIES)):
        missing = engine == "cuda" and ENGINES["cuda"].missing()
        for family in families:
            for name in COMPARED:
                fast = engine == "cuda" or (family, name) == (FAMILIES[0], "sl_path_auxiliary")
                marks = [pytest.mark.skipif(bool(missing), reason=str(missing))] + [
                    pytest.mark.slow
                ] * (not fast)
                yield pytest.param(engine, other, family, name, marks=marks)


@pytest.mark.parametrize(("engine", "other", "family", "name"), list(_comparisons()))
def test_engines_agree_on_benchmark_graphs(engine, other, family, name):
    """Means over 32 chains x 3 graphs of acceptance, hops and the best value: two-sided, five
    standard errors.
    """
    dataset = load_dataset(*family, None, num_instances=3)
    method = build_method({"name": name} | ({"K": 32} if name.startswith("sl_") else {}))
    # One site a step: after 600 steps most sites of a graph have not been tried once.
    steps = 15_000 if name in ("gibbs", "metropolis") else 600
    settings = Settings(
        batch_size=32, chain_length=steps, log_every_steps=100, instances_per_batch=3
    )
    records = [
        run_sampler(
            plan_of(
                dataset, 1.0001, method, dataclasses.replace(settings, engine=chosen, seed=seed)
            )
        )
        for seed, chosen in enumerate((engine, other))
    ]
    assert [record.engine for record in records] == [engine, other]
    for trace in ("acceptance", "hops"):
        ours, theirs = (getattr(record, trace) for record in records)
        # Each entry is a mean over 32 chains x 100 steps; graphs and times differ alike in both.
        error = 5 * np.std(ours - theirs) / np.sqrt(ours.size) + 0.01 * theirs.mean()
        assert abs((ours - theirs).mean()) < error
    best = [[instance.best for instance in record.instances] for record in records]
    # The best of 32 chains differs by a node or two between seeds, and by some edges of a cut.
    assert abs(np.subtract(*best).mean()) <= max(2, 0.02 * np.mean(best))
    assert all(instance.feasible for instance in records[0].instances)


def test_an_engine_that_cannot_run_the_sampler_is_refused():
    """By whatever runs chains: none falls back on another engine in silence."""
    problem = sl_discs.maxcut(nx.cycle_graph(4))
    dataset = load_dataset("mis", "er_density", "r-0.05", None, num_instances=1)
    calls = [
        lambda: choose_engine("cpu", DMALA(shared_scale=True)),
        lambda: sl_discs.solve(problem, "sl_dlmc", steps=400, chains=2, engine="cpu"),
        lambda: sl_discs.sample(problem, 1.0, 8, "localization", sampler="dlmc", engine="cpu"),
        lambda: plan_of(dataset, 1.0, build_method({"name": "dlmc"}), Settings(engine="cpu")),
    ]
    for call in calls:
        with pytest.raises(
            InputError, match=r"^engine is 'cpu', which cannot run \w+: .*; choose 'auto' or"
        ):
            call()


def test_the_choice_of_an_engine_is_explained(monkeypatch):
    reference = get_engine("reference")
    assert choose_engine("reference", GWG()) == (reference, "")
    assert choose_engine("cpu", GWG()) == (CPU, "")
    assert choose_engine("auto", GWG()) == (CPU, "auto: the fastest on CPU cores")
    engine, note = choose_engine("auto", DMALA(shared_scale=True))
    assert engine is reference and note.startswith("not cpu: its chains are independent")
    assert "SQRT" in CPU.obstacle(GWG(balancing_fn_type="MIN"))

    class Mine(GWG):
        """Another sampler, whatever it inherits."""

    assert (
        CPU.obstacle(Mine())
        == "it only supports gwg, path_auxiliary, dmala, gibbs, metropolis, exchange"
    )
    with pytest.raises(InputError, match="known: auto, reference, cpu, cuda"):
        get_engine("gpu")
    # It runs on the cores whatever devices JAX has.
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert choose_engine("auto", GWG())[0] == choose_engine("cpu", GWG())[0] == CPU


def test_couplings_of_0_are_not_listed():
    """They would be partners of `exchange`, which they are not on the reference."""
    edges = np.array([(0, 1), (1, 2)])
    params = quadratic_params(Coefficients(np.zeros(40), edges, np.array([1.0, 0.0]), 1.0), 40, 2)
    batch = Batch(jax.tree.map(lambda leaf: leaf[None], params), np.ones((1, 40), bool), None)
    [target] = as_targets(QuadraticModel(40), batch)
    assert target.neighbours.tolist() == [1, 0] and target.weights.tolist() == [1, 1]


@pytest.mark.parametrize("degree", [2, 60])
def test_closed_sites_beyond_the_open_ones_stay_and_count(degree):
    """A chain looks at whole lanes up to the last site that matters: open, or coupled to an open
    one.
    """
    rng = np.random.default_rng(degree)
    num_sites, num_open = 400, 100
    edges = np.unique(
        np.sort(rng.integers(0, [num_open, num_sites - 10], (degree * num_open, 2)), axis=1), axis=0
    )
    edges = edges[edges[:, 0] != edges[:, 1]]
    mask = np.arange(num_sites) < num_open
    case = quadratic_case(rng.normal(size=num_sites), edges, rng.normal(size=len(edges)), mask=mask)
    assert len(as_targets(case.model, batch_of(case, 8))[0].linear) == 16 * -(
        -(edges.max() + 1) // 16
    )
    x = rng.integers(0, 2, (8, num_sites)).astype(np.int8)
    program = program_at(np.full(100, 0.7))
    chains, _ = play_program(CPU, case, PathAuxiliary(num_flips=3), x, program, 2)
    found = chains.chain.x[0]
    np.testing.assert_array_equal(found[:, ~mask], x[:, ~mask])
    assert (found[:, mask] != x[:, mask]).any(axis=1).all()
    assert_carried(case, chains)


@pytest.mark.parametrize("rule", [Gibbs, Metropolis])
def test_a_sequential_scan_is_that_of_one_step_after_the_other(rule):
    """Many steps at once, among vectors of sites, meet the states that the same thresholds lead to
    one by one.
    """
    rng = np.random.default_rng(7)
    num_sites, steps = 90, 1_000
    edges = random_edges(rng, num_sites, 4)
    mask = (rng.random(num_sites) < 0.98) & (np.arange(num_sites) < 85)
    case = quadratic_case(rng.normal(size=num_sites), edges, rng.normal(size=len(edges)), mask=mask)
    x = rng.integers(0, 2, (6, num_sites)).astype(np.int8)
    program = program_at(np.geomspace(3, 0.1, steps))
    (one, trace), (many, _) = (
        play_program(CPU, case, rule(scan="sequential"), x, program, n) for n in (steps, 1)
    )
    for name in ("chain", "best"):
        np.testing.assert_array_equal(getattr(one, name).x, getattr(many, name).x)
    np.testing.assert_array_equal(one.chain.x[0][:, ~mask], x[:, ~mask])
    moves = np.mean(trace.hops, axis=0)
    assert (moves > 0.05).all() and (moves < 0.9).all()


@pytest.mark.parametrize("expected_flips", [3.0, 290.0, 800.0])
def test_dmala_flips_free_sites_at_any_rate(expected_flips):
    """Odds n/N at each of N sites without couplings: N n/(N + n) flips a step, all accepted; five
    standard errors.
    """
    num_sites, chains, steps = 1_000, 8, 50
    case, x = quadratic_case(np.zeros(num_sites), [], []), np.zeros((chains, num_sites), np.int8)
    program = program_at(np.ones(steps))
    _, trace = play_program(CPU, case, DMALA(expected_flips=expected_flips), x, program)
    odds = expected_flips / num_sites
    error = np.sqrt(num_sites * odds / (1 + odds) ** 2 / (chains * steps))
    assert abs(trace.hops.mean() - num_sites * odds / (1 + odds)) < 5 * error
    np.testing.assert_allclose(trace.acceptance, 1, atol=1e-5)


# Temperatures of proposals: close to the target's, and seldom another.

TIME = np.arange(10_000) / 10_000
SCHEDULES = {
    "exponential": 0.05**TIME,
    "to a floor": np.maximum(0.1 ** (3 * TIME), 1e-2),
    "up and down": np.exp(0.3 * np.sin(20 * TIME)),
    "inside each level": np.asarray(
        Settings(decay_rate=0.05, chain_length=len(TIME)).temperatures(
            Localization(K=256).levels(len(TIME)).last
        )
    ),
}


@pytest.mark.parametrize("levels", [0, 1, 256])
@pytest.mark.parametrize("name", SCHEDULES)
def test_proposal_temperatures_are_close_to_the_target_s(name, levels):
    temperature = SCHEDULES[name]
    proposed = proposal_temperatures(
        temperature, Localization(K=levels).levels(len(TIME)) if levels else None
    )
    assert np.abs(np.log(proposed / temperature)).max() < 0.76 / 256


def test_an_unadjusted_sampler_proposes_at_the_temperature_of_the_target():
    """No acceptance test makes up for another one."""
    program = program_at(SCHEDULES["exponential"], Localization(K=16).levels(len(TIME)))
    for one, same in ((DMALA(adjusted=False), True), (DMALA(), False)):
        part = ProgramSlices(program, keeps_weights=ENTRIES[DMALA].keeps_weights(one)).part(
            0, 1, len(TIME)
        )
        assert np.array_equal(part.rate, part.proposal_rate) == same


@pytest.mark.parametrize(
    ("chains", "rows"), [([2, 2, 2, 2], 1), ([1, 2, 1, 2], 2), ([1, 2, 2, 1], 4)]
)
def test_temperatures_that_chains_share_are_formed_once(chains, rows):
    program = Program(ChainTemperatures(np.float32(chains)), None)
    rate = ProgramSlices(program, keeps_weights=True).part(0, 2, 5).rate
    assert rate.shape == (rows, 10)
    np.testing.assert_array_equal(
        rate[np.arange(len(chains)) % rows], 1 / np.float32(chains)[:, None].repeat(10, 1)
    )
    assert ProgramSlices(program, keeps_weights=True).part(0, 0, 5).rate.shape[1] == 0
