"""DISCS's samplers on sites of three values, by enumeration; skipped where no checkout is importable.

Seeds are fixed. Statistical tests fail a correct sampler with probability 1e-6; bounds on total variation are stated.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_plugin_several_values import CASE, MASKED, Tilting
from test_upstream import FINE, FIXED_STEP, SYSTEMATIC, base_sampler, play, upstream_model

from sl_discs.discs_plugin.localized_sampler import LocalizedSampler
from sl_discs.localization.schedule import Localization
from sl_discs.testing import ConformanceError, check_case, total_variation
from sl_discs.testing.cases import Law, states_of

SAMPLERS = ("gwg", "path_auxiliary", "dmala", "dlmc", "randomwalk", "blockgibbs", "gibbs", "hammingball")
BALL = {"block_size": 4}
# Not adaptive, as a radius that never stops adapting is not exact; and the step size of combinatorial problems.
MENDED = [
    ("gwg", {}),
    ("path_auxiliary", FIXED_STEP),
    ("path_auxiliary", FIXED_STEP | {"num_flips": 2}),
    ("dmala", FIXED_STEP),
    ("dmala", {}),
    ("dlmc", {}),
    ("dlmc", {"solver": "euler_forward"}),
    ("randomwalk", FIXED_STEP),
    ("blockgibbs", {}),
    ("gibbs", {}),
    ("hammingball", BALL),
]


def check(name, case, fixes, **fields):
    sampler = Tilting(base_sampler(name, (4,), fixes, num_values=3, **fields))
    check_case(sampler, case, reversible=name not in SYSTEMATIC, batches=2**11)


@pytest.mark.parametrize(("name", "fields"), MENDED)
def test_with_fixes_the_tilted_target_is_invariant(discs, name, fields):
    check(name, MASKED, True, **fields)


@pytest.mark.parametrize(("name", "fields"), [("gwg", {}), ("path_auxiliary", FIXED_STEP)])
def test_laws_that_break_without_fixes(discs, name, fields):
    with pytest.raises(ConformanceError, match="not invariant"):
        check(name, CASE, False, **fields)


def potts(shape):
    fields = {"shape": shape, "num_categories": 3, "lambdaa": 0.6, "mu": 0.3, "init_sigma": 0.7}
    return upstream_model("potts", **fields)


@pytest.mark.parametrize("name", SAMPLERS)
def test_wrapping_changes_nothing(discs, name):
    """Without a tilt, and called in the regular form, each sampler visits what DISCS's own object visits."""
    model, params = potts((2, 3))
    x = model.get_init_samples(jax.random.PRNGKey(2), 5)
    base = base_sampler(name, (2, 3), combinatorial=False, num_values=3)
    localized = LocalizedSampler(base, Localization(K=4, tilt=False), 16, 5)
    visited = play(localized, model, params, x, 16)[1]
    step, raw, state = jax.jit(functools.partial(base._sampler.step, model)), x, base.make_init_state(None)
    for number in range(16):
        raw, state, _ = step(jax.random.fold_in(jax.random.PRNGKey(1), number), raw, params, state)
        np.testing.assert_array_equal(visited[number], raw)


def test_localized_samples_have_the_law(discs):
    """Bound 0.08: noise of 4,000 samples of 81 states is at most 0.06."""
    model, params = potts((2, 2))
    states = states_of((3,) * 4)
    values = np.asarray(model.forward(params, jnp.asarray(states.reshape(-1, 2, 2), jnp.int32)), np.float64)
    law = Law(states, np.exp(values) / np.exp(values).sum())
    sampler = LocalizedSampler(base_sampler("gwg", (2, 2), True, False, num_values=3), FINE, 960, 4_000)
    (_, state), _ = play(sampler, model, params, jnp.zeros((4_000, 2, 2), jnp.int32), 960)
    assert total_variation(np.asarray(sampler.final_sample(state)).reshape(-1, 4), law) < 0.08
