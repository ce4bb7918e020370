"""The plugin on the real DISCS; skipped where no checkout is importable.

Seeds are fixed. Statistical tests fail a correct sampler with probability 1e-6; bounds on total variation are stated.
"""

import functools
import importlib

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from ml_collections import config_dict

import sl_discs
from sl_discs.discs_plugin import borrowed, upstream
from sl_discs.discs_plugin.base_sampler import BaseSampler, States
from sl_discs.discs_plugin.fixes import chosen_fixes
from sl_discs.discs_plugin.localized_sampler import LocalizedSampler
from sl_discs.engines.registry import get_engine
from sl_discs.experiment.batches import shape_of_one
from sl_discs.experiment.chains import Chains, anneal
from sl_discs.experiment.run import run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.registry import build_sampler, sampler_fields
from sl_discs.testing import ConformanceError, all_states, check_case, standard_cases, total_variation
from sl_discs.testing.cases import Law

SAMPLERS = (
    "blockgibbs", "dlmc", "dmala", "gibbs", "gwg", "hammingball", "locallybalanced", "path_auxiliary", "randomwalk",
)  # fmt: skip
FIXED_STEP = {"adaptive": False}
SYSTEMATIC = ("blockgibbs", "gibbs", "hammingball")


def base_sampler(name, shape, fixes=False, combinatorial=True, num_values=2, **fields):
    config = config_dict.ConfigDict(
        {
            "sampler": upstream.sampler_config(name).to_dict() | fields,
            "model": {"name": "test", "shape": shape, "num_categories": num_values},
            "experiment": {"co_opt_prob": combinatorial},
        }
    )
    sampler = upstream.build_upstream_sampler(name, config)
    return BaseSampler(name, sampler, States(shape, num_values), chosen_fixes(fixes))


class Tilting:
    """Gives the case's tilt to the sampler and takes it out of the model's parameters."""

    def __init__(self, sampler):
        self.sampler, self.make_init_state = sampler, sampler.make_init_state

    def step(self, model, rng, x, target, state, mask):
        tilt = jnp.broadcast_to(target.tilt, x.shape)
        return self.sampler.step(model, rng, x, target.tilted(None), state, mask, tilt)


def check(name, case, fixes=False, **fields):
    sampler = base_sampler(name, (case.model.num_sites,), fixes, **fields)
    if case.target.tilt is not None:
        sampler = Tilting(sampler)
    check_case(sampler, case, reversible=name not in SYSTEMATIC, batches=2**13)


def test_the_list_of_samplers(discs):
    assert tuple(upstream.sampler_names()) == SAMPLERS


@pytest.mark.parametrize("name", ["gwg", "path_auxiliary", "dmala", "dlmc"])
def test_a_name_has_the_defaults_of_discs(discs, name):
    """So that `sl_gwg` is the same sampler in DISCS, in the runner and in the report."""
    ours, theirs = sampler_fields(name), upstream.sampler_config(name).to_dict()
    shared = {field for field in theirs if field in ours}
    assert "adaptive" in shared and {f: ours[f] for f in shared} == {f: theirs[f] for f in shared}


EXACT = [
    ("gwg", FIXED_STEP),
    ("gwg", FIXED_STEP | {"num_flips": 3}),
    ("path_auxiliary", FIXED_STEP),
    ("path_auxiliary", FIXED_STEP | {"num_flips": 3}),
    ("dmala", FIXED_STEP),
    ("dlmc", FIXED_STEP),
    ("randomwalk", FIXED_STEP),
    ("blockgibbs", {}),
    ("gibbs", {}),
]


@pytest.mark.parametrize(("name", "fields"), EXACT)
def test_exact_samplers_stay_exact_under_the_tilt(discs, name, fields):
    check(name, standard_cases()[1], **fields)


@pytest.mark.parametrize("name", ["gwg", "path_auxiliary"])
def test_samplers_that_honour_the_mask(discs, name):
    check(name, standard_cases()[2], **FIXED_STEP)


MENDED = [
    *EXACT,
    ("dmala", {}),
    ("dlmc", {}),
    ("dlmc", {"solver": "euler_forward"}),
    ("hammingball", {"block_size": 5}),
]


@pytest.mark.parametrize("case", [1, 2], ids=["tilted", "cold, tilted, masked"])
@pytest.mark.parametrize(("name", "fields"), MENDED)
def test_with_fixes_the_target_is_invariant(discs, name, fields, case):
    check(name, standard_cases()[case], fixes=True, **fields)


@pytest.mark.parametrize(
    ("name", "case", "law"),
    [
        ("dmala", 4, "detailed balance"),
        ("hammingball", 1, "not invariant"),
        ("locallybalanced", 0, "not invariant"),
        ("dmala", 2, "outside the mask"),
        ("dlmc", 2, "outside the mask"),
        ("randomwalk", 2, "outside the mask"),
        ("blockgibbs", 2, "outside the mask"),
        ("hammingball", 2, "outside the mask"),
        ("gibbs", 2, "outside the mask"),
    ],
)
def test_laws_that_break_without_fixes(discs, name, case, law):
    with pytest.raises(ConformanceError, match=law):
        check(name, standard_cases()[case], **({"block_size": 5} if name == "hammingball" else {}))


def upstream_model(name, **fields):
    module = importlib.import_module(f"discs.models.{name}")
    model = module.build_model(config_dict.ConfigDict({"model": fields}))
    return model, model.make_init_params(jax.random.PRNGKey(0))


def play(sampler, model, params, x, steps):
    def step(carry, number):
        x, state = carry
        x, state, _ = sampler.step(model, jax.random.fold_in(jax.random.PRNGKey(1), number), x, params, state)
        return (x, state), x

    state = sampler.make_init_state(jax.random.PRNGKey(0))
    return jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(steps)))((x, state))


def ising_law(shape):
    model, params = upstream_model("ising", shape=shape, lambdaa=0.3, init_sigma=0.3, mu=0.2)
    states = all_states(int(np.prod(shape)))
    values = model.forward(params, jnp.asarray(states.reshape(-1, *shape), jnp.float32))
    weights = np.exp(np.asarray(values, np.float64))
    return model, params, Law(states, weights / weights.sum())


@pytest.mark.parametrize("name", ["randomwalk", "blockgibbs", "gibbs"])
def test_whole_couplings_of_ising(discs, name):
    """On integer states DISCS's Ising model cuts its couplings; noise alone is 0.02."""
    model, params, law = ising_law((2, 3))
    x = jnp.asarray(law.sample(np.random.default_rng(0), 2**15).reshape(-1, 2, 3), jnp.int32)
    distances = []
    for fixes in (False, True):
        sampler = base_sampler(name, (2, 3), fixes, False, **({"adaptive": False} if name == "randomwalk" else {}))
        (x_end, _), _ = play(sampler, model, params, x, 40)
        distances.append(total_variation(np.asarray(x_end).reshape(-1, 6), law))
    assert distances[0] > 0.2 and distances[1] < 0.04


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("model_name", ["ising", "bernoulli"])
def test_without_tilt_it_is_the_base_sampler(discs, name, model_name):
    shape = (3, 4) if model_name == "ising" else (12,)
    fields = {"lambdaa": 0.3, "mu": 0.2} if model_name == "ising" else {}
    model, params = upstream_model(model_name, shape=shape, init_sigma=0.5, **fields)
    base = base_sampler(name, shape, combinatorial=False)
    localized = LocalizedSampler(base, Localization(K=8, tilt=False), 60, 5)
    x = model.get_init_samples(jax.random.PRNGKey(2), 5)
    (_, state), plain = play(base, model, params, x, 60)
    (_, localized_state), visited = play(localized, model, params, x, 60)
    np.testing.assert_array_equal(plain, visited)
    # The sampler's own scale is a mean over chains, whose order of summation the compiler may choose.
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5), state, localized_state["chains"].base)


def test_the_regular_form_changes_nothing(discs):
    """`BaseSampler` visits what DISCS's own object visits, called as DISCS calls it."""
    model, params = upstream_model("bernoulli", shape=(12,), init_sigma=0.5)
    x = model.get_init_samples(jax.random.PRNGKey(2), 5)
    for name in SAMPLERS:
        if name == "locallybalanced":
            continue  # DISCS's own cannot be called with this model
        base = base_sampler(name, (12,), combinatorial=False)
        regular, raw = x, x
        state, raw_state = base.make_init_state(None), base._sampler.make_init_state(None)
        raw_step, step = (jax.jit(functools.partial(one.step, model)) for one in (base._sampler, base))
        for number in range(20):
            key = jax.random.PRNGKey(number)
            regular, state, _ = step(key, regular, params, state)
            raw, raw_state, _ = raw_step(key, raw, params, raw_state)
            np.testing.assert_array_equal(regular, raw, err_msg=name)


FINE = Localization(K=64, sigma=1.0, grid="log_snr", eps=1e-2, eps_end=1e-2, budget="identical", mc_ratio=0.75)


@pytest.mark.parametrize("name", ["gwg", "path_auxiliary", "dmala", "dlmc", "gibbs"])
def test_localized_samples_have_the_law(discs, name):
    """Bound 0.08: noise of 6,000 samples of 64 states is 0.04."""
    model, params, law = ising_law((2, 3))
    sampler = LocalizedSampler(base_sampler(name, (2, 3), True, False), FINE, 1_600, 6_000)
    (_, state), _ = play(sampler, model, params, jnp.zeros((6_000, 2, 3), jnp.int32), 1_600)
    assert total_variation(np.asarray(sampler.final_sample(state)).reshape(-1, 6), law) < 0.08


@pytest.mark.parametrize("name", ["discs:gwg", "sl:discs:hammingball", "sl:discs:dlmc"])
def test_samplers_of_discs_in_this_projects_runner(discs, name):
    borrowed.borrow_samplers()
    borrowed.borrow_samplers()  # does nothing
    fields = {"name": name, "fixes": True} | ({"K": 8} if name.startswith("sl:") else {})
    method = build_method(fields, num_chains=4)
    dataset = load_dataset("mis", "er_density", "r-0.05", None, num_instances=1)
    settings = Settings(batch_size=4, chain_length=60, log_every_steps=20)
    [instance] = run_sampler(dataset, 1.0001, method, settings, lambda steps: None).instances
    assert instance.feasible and instance.best >= 40


def test_borrowed_samplers_pass_the_conformance_suite(discs):
    borrowed.borrow_samplers()
    sampler = build_sampler("discs:dmala", {"fixes": True} | sampler_fields("discs:dmala") | {"fixes": True}, 4)
    check_case(sampler, standard_cases()[2], batches=2**13)


def test_dmala_of_discs_adapts_on_models_that_are_not_combinatorial(discs):
    """As DISCS's flag co_opt_prob says: without adaptation it flips three sites a step, which are mostly accepted."""
    borrowed.borrow_samplers()
    graph, rng = nx.grid_2d_graph(8, 8), np.random.default_rng(0)
    terms = sl_discs.ising(
        {node: rng.uniform(-1.5, 1.5) for node in graph}, dict.fromkeys(graph.edges, -0.05)
    ).terms()
    settings = Settings(batch_size=4, chain_length=600, t_schedule="constant", log_every_steps=1)

    def acceptance(co_opt_prob):
        method = build_method({"name": "discs:dmala", "co_opt_prob": co_opt_prob}, 4)
        chains = Chains.of_one(terms, 0, shape_of_one(terms, 4), method.sampler, get_engine("reference"), 0)
        return anneal(chains, method, settings).trace.acceptance[300:, 0].mean()

    assert acceptance(True) > 0.9
    assert abs(acceptance(False) - 0.574) < 0.05
