"""Energy-based models trained on binary digits by persistent contrastive divergence (Tieleman 2008).

Each update takes the gradient of mean log p over a batch of digits minus that over persistent chains, which a sampler
has moved by a few steps. The localized variant spends the same number of steps on Algorithm 1: each update starts
from a new Y_0, the chain goes on from where it was, and its state after the last level counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int8

from sl_discs import keys
from sl_discs.batching import over_chains
from sl_discs.errors import InputError
from sl_discs.localization.algorithm import init_observation, localized_step
from sl_discs.localization.method import Method, build_method
from sl_discs.models import rbm
from sl_discs.models.base import Params
from sl_discs.models.general import DifferentiableModel
from sl_discs.models.tilted import Tilted, TiltedParams

SIDE = 8
PIXELS = SIDE * SIDE
# A pixel of 0 .. 16 is on above this; so many digits are kept for the test.
_ON, _TEST = 7, 297
# Rows of data, and chains, in an update.
_BATCH = 64


class Energy(NamedTuple):
    """A family of log-densities on images of 64 pixels.

    Attributes:
      name: for tables.
      log_density: of (params, v [64]), up to a constant.
      chain_density: of (params, x [num_sites]), whose first 64 sites are v: what chains draw from.
      num_sites: of a chain.
      init: parameters from a key and the mean of the data.
      sampler: fields of the base sampler's config.
      steps: of a chain in an update.
      levels: K of the localized variant.
      rate: of learning, at the beginning; it falls linearly to 0.
    """

    name: str
    log_density: Callable[..., Any]
    chain_density: Callable[..., Any]
    num_sites: int
    init: Callable[[Any, Any], Params]
    sampler: dict[str, Any]
    steps: int
    levels: int
    rate: float


def boltzmann_machine(hidden: int) -> Energy:
    """Chains of visible and hidden units, by bipartite_gibbs."""

    def init(key, mean):
        weights = 0.01 * jax.random.normal(key, (PIXELS, hidden))
        return rbm.RBMParams(weights, jnp.log(mean / (1 - mean)), jnp.zeros(hidden))

    sampler = {"name": "bipartite_gibbs", "split": PIXELS}
    return Energy(
        "RBM", rbm.log_density, rbm.joint_log_density, PIXELS + hidden, init, sampler, steps=10, levels=5, rate=1e-2
    )


def convolutional(channels: int, blocks: int = 1) -> Energy:
    """Chains of pixels, by path_auxiliary with an adaptive number of flips."""
    from sl_discs.models.convolutional import ResidualEnergy

    module = ResidualEnergy(channels, blocks)

    def log_density(params, v):
        return module.apply(params, v.reshape(SIDE, SIDE))

    def init(key, mean):
        params = module.init(key, jnp.zeros((SIDE, SIDE)))
        params["params"]["bias"] = jnp.log(mean / (1 - mean)).reshape(SIDE, SIDE)
        return params

    sampler = {"name": "path_auxiliary"}
    return Energy("convolutional", log_density, log_density, PIXELS, init, sampler, steps=20, levels=5, rate=2e-3)


def digits() -> tuple[Int8[np.ndarray, "S 64"], Int8[np.ndarray, "T 64"]]:
    """Training and test images, in an order of their own; InputError without scikit-learn."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise InputError("the digits need scikit-learn; install it with: pip install scikit-learn") from None
    data = (load_digits().data > _ON).astype(np.int8)
    data = data[np.random.default_rng(0).permutation(len(data))]
    return data[_TEST:], data[:_TEST]


def method_of(energy: Energy, localized: bool) -> Method:
    """The base sampler of an energy, or its localized variant."""
    fields = dict(energy.sampler)
    if localized:
        fields |= {"name": f"sl_{fields['name']}", "K": energy.levels, "n_min": 2, "sigma": 2.0, "eps": 1e-3}
    return build_method(fields, _BATCH)


class Trained(NamedTuple):
    """Parameters after the last update, and the chains' states."""

    params: Params
    chains: Int8[np.ndarray, "B N"]


def train(energy: Energy, data: Int8[np.ndarray, "S 64"], *, localized: bool, updates: int, seed: int) -> Trained:
    """Trains on the data; the same arguments give the same parameters."""
    import optax

    method, root = method_of(energy, localized), keys.from_seed(seed)
    mean = jnp.clip(jnp.asarray(data.mean(axis=0)), 0.01, 0.99)
    params = energy.init(jax.random.key(seed), mean)
    optimizer = optax.adam(optax.linear_schedule(energy.rate, 0.0, updates))
    play = functools.partial(_play, energy, method)

    def gain(params, rows, dreams):
        log_density = jax.vmap(energy.log_density, (None, 0))
        return jnp.mean(log_density(params, rows)) - jnp.mean(log_density(params, dreams))

    def update(carry, number):
        params, learnt, x, state = carry
        key = keys.fold(root, number)
        rows = (keys.uniforms(keys.fold(key, 0), (_BATCH,)) * len(data)).astype(int)
        chain_keys = jax.vmap(keys.fold, (None, 0))(keys.fold(key, 1), jnp.arange(_BATCH))
        x, state = over_chains(play, (None, 0, 0, 0))(params, chain_keys, x, state)
        dreams = x[:, :PIXELS].astype(jnp.float32)
        ascent = jax.grad(gain)(params, jnp.asarray(data, jnp.float32)[rows], dreams)
        step, learnt = optimizer.update(jax.tree.map(jnp.negative, ascent), learnt)
        return (optax.apply_updates(params, step), learnt, x, state), None

    x = (keys.uniforms(keys.fold(root, updates), (_BATCH, energy.num_sites)) < 0.5).astype(jnp.int8)
    state = jax.tree.map(lambda leaf: jnp.stack([leaf] * _BATCH), method.sampler.init_state(energy.num_sites))
    run = jax.jit(lambda carry: jax.lax.scan(update, carry, jnp.arange(updates)))
    (params, _, x, _), _ = run((params, optimizer.init(params), x, state))
    return Trained(params, np.asarray(x))


def _play(energy: Energy, method: Method, params: Params, key: keys.Key, x, state):
    """The steps of one chain in one update."""
    model, mask = Tilted(DifferentiableModel(energy.chain_density, energy.num_sites)), jnp.ones(x.shape, bool)

    def kernel(number, tilt, x, field, state):
        target = TiltedParams(params, jnp.float32(1), tilt)
        after = method.sampler.kernel(keys.fold(key, number), model, target, x, field, state, mask)
        return 2 * after[0] - 1, after[:3]

    def base_step(carry, number):
        return kernel(number, None, *carry)[1], None

    start = x, model.init(TiltedParams(params, jnp.float32(1)), x), state
    numbers = jnp.arange(energy.steps)
    if method.localization is None:
        (x, _, state), _ = jax.lax.scan(base_step, start, numbers)
        return x, state
    levels = method.localization.levels(energy.steps)
    observation = init_observation(keys.fold(key, -1), x.shape, method.localization.initial_noise())

    def step(carry, number):
        observation, level, chain = carry
        of_step = keys.fold(key, energy.steps + number)
        return localized_step(
            of_step, levels, level, number, observation, lambda tilt: kernel(number, tilt, *chain)
        ), None

    (_, _, (x, _, state)), _ = jax.lax.scan(step, (observation, jnp.int32(0), start), numbers)
    return x, state
