"""The plugin on the real DISCS, on sites of two and three values; skipped where no checkout is
importable.

Seeds are fixed. Statistical tests fail a correct sampler with probability 1e-6; bounds on total
variation are stated.
"""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from localized import FINE
from ml_collections import config_dict
from test_plugin_samplers import MASKED, POTTS, InCoordinates, play

from sl_discs.discs_plugin import upstream
from sl_discs.discs_plugin.modules import LocalizedSampler
from sl_discs.discs_plugin.upstream import DiscsSampler, States
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.registry import registered
from sl_discs.testing import ConformanceError, check_case, standard_cases, total_variation
from sl_discs.testing.conformance import Law, states_of

SAMPLERS = (
    "blockgibbs", "dlmc", "dmala", "gibbs", "gwg", "hammingball", "locallybalanced", "path_auxiliary", "randomwalk",
)  # fmt: skip
FIXED_STEP = {"adaptive": False}
SYSTEMATIC = ("blockgibbs", "gibbs", "hammingball")
CASES = standard_cases()


def raw_sampler(name, shape, combinatorial=True, num_values=2, **fields):
    """DISCS's own object, for states of this shape."""
    config = {
        "sampler": upstream.sampler_config(name).to_dict() | fields | {"name": name},
        "model": {"name": "test", "shape": shape, "num_categories": num_values},
        "experiment": {"co_opt_prob": combinatorial},
    }
    return importlib.import_module(f"discs.samplers.{name}").build_sampler(
        config_dict.ConfigDict(config)
    )


def base_sampler(name, shape, fixes=False, combinatorial=True, num_values=2, **fields):
    raw = raw_sampler(name, (int(np.prod(shape)),), combinatorial, num_values, **fields)
    return DiscsSampler(name, raw, States(shape, num_values), fixes)


class Tilting:
    """Gives the case's tilt to the sampler and takes it out of the model's parameters."""

    def __init__(self, sampler):
        self.sampler, self.make_init_state = sampler, sampler.make_init_state

    def step(self, model, rng, x, target, state, mask):
        tilt = (
            None
            if target.tilt is None
            else jnp.broadcast_to(target.tilt, (len(x), *target.tilt.shape))
        )
        model = InCoordinates() if self.sampler.states.num_values > 2 else model
        return self.sampler.step(model, rng, x, target.tilted(None), state, mask, tilt)


def check(name, case, fixes=False, **fields):
    values = case.target.sites.num_values
    sampler = base_sampler(name, (case.model.num_sites,), fixes, num_values=values, **fields)
    batches = 2**13 if values == 2 else 2**11
    check_case(Tilting(sampler), case, reversible=name not in SYSTEMATIC, batches=batches)


def test_names_and_defaults_are_those_of_discs(discs):
    """So that `sl_gwg` is the same sampler in DISCS, in the runner and in the report."""
    assert tuple(upstream.sampler_names()) == SAMPLERS
    for name in ("gwg", "path_auxiliary", "dmala", "dlmc"):
        ours, theirs = registered(name).fields, upstream.sampler_config(name).to_dict()
        shared = {field for field in theirs if field in ours}
        assert "adaptive" in shared
        assert {f: ours[f] for f in shared} == {f: theirs[f] for f in shared}


EXACT = [
    ("gwg", FIXED_STEP),
    ("gwg", FIXED_STEP | {"num_flips": 3}),
    ("path_auxiliary", FIXED_STEP | {"num_flips": 3}),
    ("dmala", FIXED_STEP),
    ("dlmc", FIXED_STEP),
    ("randomwalk", FIXED_STEP),
    ("blockgibbs", {}),
    ("gibbs", {}),
]


@pytest.mark.parametrize(("name", "fields"), EXACT)
@pytest.mark.usefixtures("quickly_compiled")
def test_exact_samplers_stay_exact_under_the_tilt(discs, name, fields):
    check(name, CASES[1], **fields)


# Each sampler on two values or on three by default, and on the others under `-m slow`.
BY_DEFAULT = [
    ("gwg", FIXED_STEP, CASES[2]),
    ("path_auxiliary", FIXED_STEP | {"num_flips": 3}, CASES[2]),
    ("dlmc", {"solver": "euler_forward"}, CASES[2]),
    ("hammingball", {"block_size": 5}, CASES[2]),
    ("dmala", {}, MASKED),
    ("randomwalk", FIXED_STEP, MASKED),
    ("blockgibbs", {}, MASKED),
    ("gibbs", {}, MASKED),
]
UNDER_SLOW = [
    ("gwg", FIXED_STEP | {"num_flips": 3}, CASES[2]),
    *((*exact, CASES[2]) for exact in EXACT[3:]),
    ("dmala", {}, CASES[2]),
    ("gwg", {}, MASKED),
    ("path_auxiliary", FIXED_STEP | {"num_flips": 2}, MASKED),
    ("dlmc", {}, MASKED),
    ("hammingball", {"block_size": 4}, MASKED),
]


@pytest.mark.parametrize(
    ("name", "fields", "case"),
    [*BY_DEFAULT, *(pytest.param(*case, marks=pytest.mark.slow) for case in UNDER_SLOW)],
)
@pytest.mark.usefixtures("quickly_compiled")
def test_with_fixes_the_target_is_invariant(discs, name, fields, case):
    """Tilted, cold and masked; a radius that never stops adapting would not be exact."""
    check(name, case, fixes=True, **fields)


@pytest.mark.parametrize(
    ("name", "case", "law"),
    [
        ("dmala", CASES[4], "detailed balance"),
        ("hammingball", CASES[1], "not invariant"),
        ("locallybalanced", CASES[0], "not invariant"),
        ("dmala", CASES[2], "outside the mask"),
        ("randomwalk", CASES[2], "outside the mask"),
        ("gwg", POTTS, "not invariant"),
        ("path_auxiliary", POTTS, "not invariant"),
    ],
)
@pytest.mark.usefixtures("quickly_compiled")
def test_laws_that_break_without_fixes(discs, name, case, law):
    fields = {"hammingball": {"block_size": 5}, "path_auxiliary": FIXED_STEP}.get(name, {})
    with pytest.raises(ConformanceError, match=law):
        check(name, case, **fields)


def upstream_model(name, **fields):
    module = importlib.import_module(f"discs.models.{name}")
    model = module.build_model(config_dict.ConfigDict({"model": fields}))
    return model, model.make_init_params(jax.random.PRNGKey(0))


MODELS = {
    "ising": {"shape": (3, 4), "init_sigma": 0.5, "lambdaa": 0.3, "mu": 0.2},
    "bernoulli": {"shape": (12,), "init_sigma": 0.5},
    "potts": {"shape": (2, 3), "num_categories": 3, "lambdaa": 0.6, "mu": 0.3, "init_sigma": 0.7},
}


@pytest.mark.parametrize(
    ("model_name", "name"),
    [
        pytest.param(model, name, marks=[pytest.mark.slow] * (model != list(MODELS)[number % 3]))
        for number, name in enumerate(SAMPLERS)
        for model in MODELS
    ],
)
@pytest.mark.usefixtures("quickly_compiled")
def test_without_tilt_and_fixes_it_visits_what_the_object_of_discs_visits(discs, name, model_name):
    """Wrapped and localized, on models of several axes too, which DISCS's own object takes."""
    if name == "locallybalanced" and model_name != "bernoulli":
        pytest.skip("DISCS's own takes flat states of two values")
    fields = MODELS[model_name]
    model, params = upstream_model(model_name, **fields)
    values = fields.get("num_categories", 2)
    base = base_sampler(name, fields["shape"], combinatorial=False, num_values=values)
    localized = LocalizedSampler(base, Localization(K=4, tilt=False), 16, 5)
    x = model.get_init_samples(jax.random.PRNGKey(2), 5)
    visited, localized_state = play(localized, model, params, x, 16)
    if name == "locallybalanced":  # DISCS's own cannot be called with this model
        plain, state = play(base, model, params, x, 16)
        np.testing.assert_array_equal(visited, plain)
    else:
        raw = raw_sampler(name, fields["shape"], False, values)
        step, state = jax.jit(functools.partial(raw.step, model)), base.make_init_state(None)
        for number in range(16):
            x, state, _ = step(jax.random.PRNGKey(number), x, params, state)
            np.testing.assert_array_equal(visited[number], x)
    # The sampler's own scale is a mean over chains, whose order of summation the compiler may
    # choose.
    for field, found in localized_state["chains"].base.items():
        np.testing.assert_allclose(found, state[field], rtol=1e-5)


def law_of(model_name, shape):
    model, params = upstream_model(model_name, **MODELS[model_name] | {"shape": shape})
    states = states_of((MODELS[model_name].get("num_categories", 2),) * int(np.prod(shape)))
    dtype = jnp.int32 if model_name == "potts" else jnp.float32
    values = np.asarray(
        model.forward(params, jnp.asarray(states.reshape(-1, *shape), dtype)), np.float64
    )
    return model, params, Law(states, np.exp(values) / np.exp(values).sum())


@pytest.mark.parametrize("name", ["randomwalk", "gibbs"])
def test_whole_couplings_of_ising(discs, name):
    """On integer states DISCS's Ising model cuts its couplings; noise alone is 0.02."""
    model, params, law = law_of("ising", (2, 3))
    x = jnp.asarray(law.sample(np.random.default_rng(0), 2**15).reshape(-1, 2, 3), jnp.int32)
    distances = []
    for fixes in (False, True):
        sampler = base_sampler(
            name, (2, 3), fixes, False, **(FIXED_STEP if name == "randomwalk" else {})
        )
        visited, _ = play(sampler, model, params, x, 40)
        distances.append(total_variation(np.asarray(visited[-1]).reshape(-1, 6), law))
    assert distances[0] > 0.2 and distances[1] < 0.04


@pytest.mark.parametrize(
    ("name", "model_name"),
    [
        ("dlmc", "ising"),
        pytest.param("path_auxiliary", "ising", marks=pytest.mark.slow),
        pytest.param("hammingball", "ising", marks=pytest.mark.slow),
        pytest.param("gwg", "potts", marks=pytest.mark.slow),
    ],
)
def test_localized_samples_have_the_law(discs, name, model_name):
    """Bound 0.08: noise of 4,000 samples of 64 or 81 states is at most 0.06."""
    shape, values = ((2, 2), 3) if model_name == "potts" else ((2, 3), 2)
    model, params, law = law_of(model_name, shape)
    fields = {"block_size": 6} if name == "hammingball" else {}
    base = base_sampler(name, shape, True, False, values, **fields)
    sampler = LocalizedSampler(base, FINE, 1_600, 4_000)
    _, state = play(sampler, model, params, jnp.zeros((4_000, *shape), jnp.int32), 1_600)
    assert total_variation(np.asarray(sampler.final_sample(state)).reshape(4_000, -1), law) < 0.08
