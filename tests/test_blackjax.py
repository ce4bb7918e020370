"""The samplers as algorithms of blackjax: each step is that of our own kernel, whose law other
tests check.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_except

from sl_discs import InputError
from sl_discs.localization.algorithm import Localized
from sl_discs.localization.method import build_method
from sl_discs.models import keys
from sl_discs.models.functions import DifferentiableModel
from sl_discs.models.keys import StepKeys
from sl_discs.samplers import registry
from sl_discs.samplers.sampler import Chain
from sl_discs.samplers.single_site import Metropolis

pytest.importorskip("blackjax", reason="needs the extra blackjax")

from blackjax.base import SamplingAlgorithm
from blackjax.util import run_inference_algorithm

import sl_discs.blackjax as sl_blackjax

pytestmark = pytest.mark.usefixtures("quickly_compiled")
NAMES = registry.base_samplers()
# Not multilinear, so that flip gains are only estimates.
WEIGHTS = np.array(
    [[0.4, 1.1, -0.7, 0.2], [0, -0.3, 0.9, 1.2], [0, 0, 0.5, -1.4], [0, 0, 0, 0.1]], np.float32
)
SHAPE = (2, 2)


def logdensity_fn(x):
    x = x.reshape(-1)
    return 1.5 * jnp.tanh(x @ WEIGHTS @ x) + 0.3 * x[0]


@pytest.mark.parametrize("name", slow_except(NAMES, ("path_auxiliary", "dmala", "exchange")))
def test_steps_are_those_of_our_kernel(name):
    fields = {"adapt_until": 20} if "adapt_until" in registry.registered(name).fields else {}
    algorithm = getattr(sl_blackjax, name)(logdensity_fn, **fields)
    assert isinstance(algorithm, SamplingAlgorithm)
    sampler = build_method({"name": name} | fields).sampler
    model = DifferentiableModel(lambda params, x: logdensity_fn(x), 4)
    start = jnp.array([[1, 0], [0, 1]], jnp.float32)
    state, step = algorithm.init(start), jax.jit(algorithm.step)
    x, target = start.reshape(-1).astype(jnp.int8), model.target((), jnp.ones(4, bool))
    chain = Chain(x, target.init(x), sampler.init_state(keys.from_rng(jax.random.key(0)), x.shape))
    kernel = jax.jit(sampler.kernel)
    moved = 0
    for number in range(40):
        rng_key = jax.random.key(number)
        state, info = step(rng_key, state)
        chain, known = kernel(keys.from_rng(rng_key), target, chain)
        np.testing.assert_array_equal(state.position, chain.x.reshape(SHAPE))
        np.testing.assert_allclose(
            (state.logdensity, info.acceptance_rate, info.num_flips),
            (chain.field.value, *known),
            rtol=1e-5,
        )
        if state.logdensity_grad is not None:
            np.testing.assert_allclose(
                state.logdensity_grad.reshape(-1), chain.field.grad, rtol=1e-4, atol=1e-6
            )
        jax.tree.map(
            lambda ours, theirs: np.testing.assert_allclose(theirs, ours, rtol=1e-5),
            chain.state,
            state.sampler,
        )
        moved += int(info.num_flips)
    assert moved > 5


def test_the_localized_chain_is_that_of_our_kernel():
    """From its first observation, with a key for the sampler and one for the observation."""
    algorithm = sl_blackjax.localized("gwg", logdensity_fn, 12, K=3, n_min=2)
    fields = {"K": 3, "n_min": 2, "sigma": 2.0, "eps": 1e-3, "eps_end": 1e-2, "adapt_until": 1000}
    method = build_method({"name": "sl_gwg", **fields})
    sampler = Localized(method.sampler, method.localization.levels(12))
    model = DifferentiableModel(lambda params, x: logdensity_fn(x), 4)
    first, *rng_keys = jax.random.split(jax.random.key(3), 13)
    state, step = algorithm.init(jnp.zeros(SHAPE, bool), first), jax.jit(algorithm.step)
    x, target = jnp.zeros(4, jnp.int8), model.target((), jnp.ones(4, bool))
    chain = Chain(x, target.init(x), sampler.init_state(keys.from_rng(first), x.shape))
    kernel = jax.jit(sampler.kernel)
    for rng_key in rng_keys:
        key = keys.from_rng(rng_key)
        chain, _ = kernel(StepKeys(keys.fold(key, 0), keys.fold(key, 1)), target, chain)
        state, _ = step(rng_key, state)
        np.testing.assert_array_equal(state.position, chain.x.reshape(SHAPE))
        np.testing.assert_allclose(state.sampler.y, chain.state.y, rtol=1e-5)
    assert state.draw.dtype == bool
    np.testing.assert_array_equal(state.draw.reshape(-1), chain.state.y > 0)
    later, _ = step(first, state)
    np.testing.assert_array_equal(later.draw, state.draw)


def test_gradients_are_computed_only_where_they_are_used():
    lookup = jnp.log(jnp.arange(1.0, 17.0))
    state = sl_blackjax.gibbs(lambda x: lookup[x @ (1 << jnp.arange(4))]).init(
        jnp.array([0, 1, 0, 0])
    )
    assert state.logdensity_grad is None and np.isclose(state.logdensity, np.log(3))


def test_states_without_probability_are_never_entered():
    """Also where the gradient is not a number there, and while the radius adapts."""
    algorithm = sl_blackjax.path_auxiliary(lambda x: jnp.log(2.5 - x.sum()) * 3, adapt_until=100)
    state, states = run_inference_algorithm(
        jax.random.key(0),
        algorithm,
        500,
        initial_position=np.zeros(6),
        transform=lambda state, info: state.position,
    )
    assert np.isfinite(state.sampler.radius)
    assert {0, 1} <= set(np.asarray(states).sum(axis=1)) <= {0, 1, 2}


@pytest.mark.usefixtures("own_samplers")
def test_what_is_registered_is_there():
    registry.register_sampler("of_ones_own", Metropolis)
    for algorithm in (
        sl_blackjax.of_ones_own(logdensity_fn),
        sl_blackjax.algorithm("of_ones_own", logdensity_fn),
    ):
        assert algorithm.init(np.zeros(4)).logdensity == 0
    assert {"of_ones_own", "gwg", "localized"} <= set(dir(sl_blackjax))
    with pytest.raises(AttributeError, match="sl_gwg"):
        _ = sl_blackjax.sl_gwg


@pytest.mark.parametrize("name", ["gwg", "gibbs"])
def test_a_position_may_be_a_pytree(name):
    """With the steps of the flat one, in the structure and dtypes given; -log-densities see them
    too.
    """

    def of_tree(position):
        return logdensity_fn(jnp.concatenate([position["a"].reshape(-1), position["b"][0]]))

    tree, flat = sl_blackjax.algorithm(name, of_tree), sl_blackjax.algorithm(name, logdensity_fn)
    state = tree.init({"a": np.zeros((3, 1), bool), "b": (np.ones(1),)})
    known = flat.init(np.array([0, 0, 0, 1.0]))
    step, step_flat = jax.jit(tree.step), jax.jit(flat.step)
    for number in range(20):
        state = step(jax.random.key(number), state)[0]
        known = step_flat(jax.random.key(number), known)[0]
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype.kind), state.position) == {
        "a": ((3, 1), "b"),
        "b": (((1,), "f"),),
    }
    np.testing.assert_array_equal(jax.flatten_util.ravel_pytree(state.position)[0], known.position)
    np.testing.assert_allclose(state.logdensity, known.logdensity, rtol=1e-6)


@pytest.mark.parametrize("name", ["path_auxiliary", "gibbs"])
def test_values_are_subtracted_in_the_type_that_the_function_returns(name):
    """A constant of 1e8 changes no step, which in single precision would see multiples of 8."""
    with jax.enable_x64(True):
        weights = jnp.array([0.0, 1.0, 2.0])

        def above(constant):
            return sl_blackjax.algorithm(name, lambda x: constant + weights @ x)

        @jax.jit
        def visited(constant, state):
            def step(state, key):
                return (above(constant).step(key, state)[0],) * 2

            return jax.lax.scan(step, state, jax.random.split(jax.random.key(0), 50))[1]

        chains = [visited(constant, above(constant).init(jnp.zeros(3))) for constant in (0.0, 1e8)]
        assert chains[1].logdensity.dtype == jnp.float64
        np.testing.assert_array_equal(chains[0].position, chains[1].position)
        assert np.ptp(np.asarray(chains[0].position), axis=0).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: sl_blackjax.gwg(logdensity_fn).init({"spins": "up"}),
        lambda: sl_blackjax.gwg(logdensity_fn).init(np.array([0, np.nan, 1, 0])),
        lambda: sl_blackjax.gwg(lambda x: WEIGHTS[x]).init(np.zeros(4)),
        lambda: sl_blackjax.localized("gwg", logdensity_fn, 100, sigma=10.0),
        lambda: sl_blackjax.localized("gwg", logdensity_fn, 100).init(np.zeros(4)),
    ],
    ids=["position", "values", "gradient", "sigma", "rng_key"],
)
def test_what_is_wrong_is_refused(make):
    with pytest.raises(InputError):
        make()
