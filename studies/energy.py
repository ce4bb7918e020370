"""Compares training of energy-based models by a sampler and by its localized variant.

    python studies/energy.py [--output=results/energy] [--seeds=3]

A restricted Boltzmann machine and a small convolutional energy are trained on scikit-learn's digits
by persistent contrastive divergence, with a base sampler and with its localized variant at equal
steps. The page reports the log-likelihood of held-out digits. Finished cells are kept in
OUTPUT/cells, so that a stopped command continues where it left off. It needs the extra study.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8
from scipy import special

from finished import finished
from sl_discs.commands.command import Command, own_flags
from sl_discs.experiment.record import Spread
from sl_discs.localization.algorithm import Localized
from sl_discs.localization.method import Method, build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models import keys
from sl_discs.models.batching import AnyArray, over_chains
from sl_discs.models.functions import DifferentiableModel
from sl_discs.models.model import Params, apply_flips
from sl_discs.problems.density import from_log_density
from sl_discs.reproduction.report import table
from sl_discs.samplers.sampler import Chain, Counters, Info, Sampler
from sl_discs.sampling.draw_samples import sample
from sl_discs.support.errors import InputError
from sl_discs.support.figures import or_warn, save_figure
from sl_discs.support.files import check_writable, write_text
from sl_discs.support.terminal import say
from truths import digit_images

SIDE = 8
PIXELS = SIDE * SIDE
# So many digits are kept for the test.
_TEST = 297
# Rows of data, and chains, in an update.
_BATCH = 64


# Restricted Boltzmann machines (Smolensky 1986): p(v, h) ~ exp(v'Wh + a.v + b.h) on {0,1}^V and
# {0,1}^H.


class RBMParams(NamedTuple):
    """Weights W and the biases a of visible and b of hidden units."""

    weights: Float[AnyArray, "V H"]
    visible: Float[AnyArray, "V"]
    hidden: Float[AnyArray, "H"]


def log_density(params: RBMParams, v: Float[AnyArray, "V"]) -> Float[Array, ""]:
    """log p(v) up to a constant, the hidden units summed out; multilinear only in the joint
    density, not here.
    """
    return jnp.asarray(params.visible) @ v + jnp.sum(
        jax.nn.softplus(params.hidden + v @ params.weights)
    )


def joint_log_density(params: RBMParams, x: Float[AnyArray, "N"]) -> Float[Array, ""]:
    """log p(v, h) up to the same constant, with x = (v, h), N = V + H."""
    v, h = jnp.split(x, [params.weights.shape[0]])
    return v @ jnp.asarray(params.weights) @ h + params.visible @ v + params.hidden @ h


def log_z(params: RBMParams) -> float:
    """log of the sum over all states, by enumerating the hidden units, of which there are at most
    20 or so.
    """
    weights, visible, hidden = (np.asarray(leaf, np.float64) for leaf in params)
    total = -np.inf
    for start in range(0, 2 ** len(hidden), 2**12):
        numbers = np.arange(start, min(start + 2**12, 2 ** len(hidden)))
        states = (numbers[:, None] >> np.arange(len(hidden)) & 1).astype(np.float64)
        logs = states @ hidden + np.logaddexp(0, visible + states @ weights.T).sum(axis=1)
        total = np.logaddexp(total, special.logsumexp(logs))
    return float(total)


@dataclasses.dataclass(frozen=True)
class LayerGibbs(Sampler):
    """Draws every pixel from its conditional distribution, and then every hidden unit.

    This is exact, as no two units of a layer are coupled.
    """

    def init_state(self, key, shape):
        return Counters()

    def kernel(self, key, target, chain):
        x, field, state = chain
        pixels = jnp.arange(x.shape[0]) < PIXELS
        for number, layer in enumerate((pixels, ~pixels)):
            chances = jax.nn.sigmoid(target.gains(x, field))
            flips = layer & target.mask & (keys.uniforms(keys.fold(key, number), x.shape) < chances)
            y = apply_flips(x, flips)
            x, field = y, target.update(x, field, y)
        return Chain(x, field, Counters(state.steps + 1)), Info(
            jnp.float32(1), jnp.sum(x != chain.x, dtype=jnp.float32)
        )


class Energy(NamedTuple):
    """A family of log-densities on images of 64 pixels."""

    name: str  # for tables
    log_density: Callable[..., Any]  # of (params, v [64]), up to a constant
    chain_density: Callable[
        ..., Any
    ]  # of (params, x [num_sites]), whose first 64 sites are v: what chains draw from
    num_sites: int  # of a chain
    init: Callable[[Any, Any], Params]  # parameters from a key and the mean of the data
    base: Method  # the base sampler
    steps: int  # of a chain in an update
    levels: int  # K of the localized variant
    rate: float  # of learning, at the beginning; it falls linearly to 0


def boltzmann_machine(hidden: int) -> Energy:
    """Chains of visible and hidden units, by `LayerGibbs`."""

    def init(key, mean):
        weights = 0.01 * jax.random.normal(key, (PIXELS, hidden))
        return RBMParams(weights, jnp.log(mean / (1 - mean)), jnp.zeros(hidden))

    sampler = Method("layer_gibbs", LayerGibbs(), None)
    densities = log_density, joint_log_density
    return Energy("RBM", *densities, PIXELS + hidden, init, sampler, steps=10, levels=5, rate=1e-2)


def convolutional(channels: int) -> Energy:
    """Chains of pixels, by path_auxiliary with an adaptive number of flips; InputError without
    flax.

    Log p is a bias of each pixel, and a sum over pixels of features of a residual block of two 3 x
    3 convolutions.
    """
    try:
        from flax import linen
    except ImportError:
        raise InputError(
            "this energy needs flax; install it with: pip install -e '.[study]' in the clone"
        ) from None

    class ResidualEnergy(linen.Module):
        @linen.compact
        def __call__(self, x: Float[Array, "height width"]) -> Float[Array, ""]:
            bias = self.param("bias", linen.initializers.zeros, x.shape)
            features = linen.Conv(channels, (3, 3))((2 * x - 1)[..., None])
            inner = linen.Conv(channels, (3, 3))(jax.nn.swish(features))
            features += linen.Conv(channels, (3, 3))(jax.nn.swish(inner))
            weights = self.param("weights", linen.initializers.normal(0.1), (channels,))
            return (bias * x).sum() + (jax.nn.swish(features) @ weights).sum()

    module = ResidualEnergy()

    def log_density(params, v):
        return module.apply(params, v.reshape(SIDE, SIDE))

    def init(key, mean):
        params = module.init(key, jnp.zeros((SIDE, SIDE)))
        params["params"]["bias"] = jnp.log(mean / (1 - mean)).reshape(SIDE, SIDE)
        return params

    sampler = build_method({"name": "path_auxiliary"})
    return Energy(
        "convolutional",
        log_density,
        log_density,
        PIXELS,
        init,
        sampler,
        steps=20,
        levels=5,
        rate=2e-3,
    )


def digits() -> tuple[Int8[np.ndarray, "S 64"], Int8[np.ndarray, "T 64"]]:
    """Training and test images, in an order of their own; InputError without scikit-learn."""
    data = digit_images().astype(np.int8)
    data = data[np.random.default_rng(0).permutation(len(data))]
    return data[_TEST:], data[:_TEST]


def method_of(energy: Energy, localized: bool) -> Method:
    """The base sampler of an energy, or its localized variant."""
    if not localized:
        return energy.base
    levels = Localization(K=energy.levels, n_min=2, sigma=2.0, eps=1e-3)
    return Method(f"sl_{energy.base.name}", energy.base.sampler, levels)


class Trained(NamedTuple):
    """Parameters after the last update, and the chains' states."""

    params: Params
    chains: Int8[np.ndarray, "B N"]


def train(
    energy: Energy, data: Int8[np.ndarray, "S 64"], *, localized: bool, updates: int, seed: int
) -> Trained:
    """Trains by persistent contrastive divergence (Tieleman 2008); the same arguments give the same
    parameters.

    Each update takes the gradient of mean log p over a batch of digits minus that over persistent
    chains, which a sampler has moved by a few steps. The localized variant spends the same number
    of steps on Algorithm 1: each update starts from a new Y_0, the chain goes on from where it was,
    and its state after the last level counts.
    """
    import optax

    method, root = method_of(energy, localized), keys.from_rng(jax.random.key(seed))
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
    state = method.sampler.make_init_state(jax.random.key(seed), _BATCH, (energy.num_sites,))
    run = jax.jit(lambda carry: jax.lax.scan(update, carry, jnp.arange(updates)))
    (params, _, x, _), _ = run((params, optimizer.init(params), x, state))
    return Trained(params, np.asarray(x))


def _play(energy: Energy, method: Method, params: Params, key: keys.Key, x, state):
    """The steps of one chain in one update."""
    model = DifferentiableModel(energy.chain_density, energy.num_sites)
    target = model.target(params, jnp.ones(x.shape, bool))
    numbers = jnp.arange(energy.steps)
    if method.localization is None:

        def base_step(chain, number):
            return method.sampler.kernel(keys.fold(key, number), target, chain)[0], None

        chain, _ = jax.lax.scan(base_step, Chain(x, target.init(x), state), numbers)
        return chain.x, chain.state
    localized = Localized(method.sampler, method.localization.levels(energy.steps))
    first = localized.init_state(keys.fold(key, -1), x.shape)._replace(base=state)

    def step(chain, number):
        of_step = keys.StepKeys(keys.fold(key, number), keys.fold(key, energy.steps + number))
        return localized.kernel(of_step, target, chain)[0], None

    chain, _ = jax.lax.scan(step, Chain(x, target.init(x), first), numbers)
    return chain.x, chain.state.base


# Images of each arm in the figure, and draws of an estimate of log Z.
_SHOWN, _DRAWS = 12, 400


class Size(NamedTuple):
    hidden: int = 16  # units of the Boltzmann machine
    channels: int = 4  # of the convolutional energy
    updates: tuple[int, int] = (3_000, 600)  # of the machine, and of the convolutional energy
    seeds: int = 3  # number of repetitions
    ladders: int = 4  # of an estimate of log Z


FULL = Size()


@dataclasses.dataclass(frozen=True)
class Arm:
    energy: str  # name of the model
    method: str  # name of the sampler
    localized: bool  # whether it is the localized variant
    seed: int  # of everything
    found: dict[str, Any]  # what was measured, in plain values

    @property
    def log_z(self) -> float:
        """By enumeration where it is known."""
        exact = self.found["exact_log_z"]
        return self.found["log_z"] if exact is None else exact

    @property
    def likelihood(self) -> float:
        """Mean log-likelihood of the test images, in nats."""
        return self.found["test"] - self.log_z


def run(folder: Path, size: Size = FULL) -> list[Arm]:
    """Trains, estimates, and writes energy.md and energy.png into the folder."""
    energies = zip(
        (boltzmann_machine(size.hidden), convolutional(size.channels)), size.updates, strict=True
    )
    arms = []
    for energy, updates in energies:
        for seed in range(size.seeds):
            for localized in (False, True):
                arms.append(_arm(folder / "cells", energy, updates, localized, seed, size))
                say(f"{energy.name}, {arms[-1].method}, seed {seed}: {arms[-1].likelihood:.2f}")
    write_text(folder / "energy.md", page(arms))
    or_warn(lambda: draw(folder / "energy.png", arms))
    return arms


def _arm(folder: Path, energy: Energy, updates: int, localized: bool, seed: int, size: Size) -> Arm:
    method = method_of(energy, localized).name
    identity = {
        "kind": "energy", "energy": energy.name, "method": method, "updates": updates, "seed": seed,
        "hidden": size.hidden, "channels": size.channels, "ladders": size.ladders,
        "steps": energy.steps, "levels": energy.levels, "rate": energy.rate,
    }  # fmt: skip
    found = finished(
        folder, identity, lambda: _measured(energy, updates, localized, seed, size.ladders)
    )
    return Arm(energy.name, method, localized, seed, found)


def _measured(
    energy: Energy, updates: int, localized: bool, seed: int, ladders: int
) -> dict[str, Any]:
    data, test = digits()
    begin = time.process_time()
    trained = train(energy, data, localized=localized, updates=updates, seed=seed)
    seconds = time.process_time() - begin
    problem = from_log_density(energy.log_density, trained.params, PIXELS, name=energy.name)
    # On pixels, whatever the chains of training were.
    drawn = sample(
        problem, 1.0, _DRAWS, "tempering", sampler="path_auxiliary", groups=ladders, seed=seed
    )
    assert drawn.log_z is not None
    log_density = jax.jit(jax.vmap(energy.log_density, (None, 0)))
    values = [
        float(log_density(trained.params, rows.astype(np.float32)).mean()) for rows in (data, test)
    ]
    chosen = np.random.default_rng(seed).choice(len(drawn), _SHOWN)
    exact = log_z(trained.params) if isinstance(trained.params, RBMParams) else None
    return {
        "train": values[0], "test": values[1], "log_z": float(drawn.log_z[0]), "error": float(drawn.log_z[1]),
        "exact_log_z": exact, "cpu_s": seconds, "draws": drawn.states[chosen].tolist(),
        "chains": trained.chains[:_SHOWN, :PIXELS].tolist(),
    }  # fmt: skip


def page(arms: list[Arm]) -> str:
    titles = ["energy", "sampler", "seed", "test log-likelihood", "training"]
    titles += ["log Z, tempering", "log Z, exact", "CPU s"]
    rows = []
    for arm in arms:
        found, exact = arm.found, arm.found["exact_log_z"]
        numbers = f"{arm.likelihood:.2f}", f"{found['train'] - arm.log_z:.2f}"
        log_z = (
            f"{found['log_z']:.2f} ± {found['error']:.2f}",
            "" if exact is None else f"{exact:.2f}",
        )
        rows.append(
            [arm.energy, arm.method, str(arm.seed), *numbers, *log_z, f"{found['cpu_s']:.0f}"]
        )
    names = dict.fromkeys(arm.energy for arm in arms)
    said = [_difference([arm for arm in arms if arm.energy == name]) for name in names]
    return "\n".join([table(titles, rows), "", *said]) + "\n"


def _difference(arms: list[Arm]) -> str:
    """Localized minus base, paired by seed, with a 95 per cent interval by Student's t."""
    base, localized = (
        [arm.likelihood for arm in arms if arm.localized == which] for which in (False, True)
    )
    gains = np.subtract(localized, base)
    mean = gains.mean()
    if len(gains) < 2:
        return f"- {arms[0].energy}: localized minus base {mean:+.2f} nats a test image (one seed)."
    half = Spread.of(gains).half_width
    verdict = (
        "no clear difference"
        if abs(mean) < half
        else "localized is better"
        if mean > 0
        else "base is better"
    )
    return (
        f"- {arms[0].energy}: localized minus base {mean:+.2f} nats a test image, 95 % interval "
        f"[{mean - half:+.2f}, {mean + half:+.2f}] over {len(gains)} seeds: {verdict}."
    )


def draw(path: Path, arms: list[Arm]) -> Path:
    """Digits, and for each arm of seed 0 draws from the model and the chains of training."""
    rows = [("digits", digits()[1][:_SHOWN])]
    for arm in (arm for arm in arms if arm.seed == 0):
        name = f"{arm.energy}\n{arm.method}"
        rows += [(f"{name}\ndraws", arm.found["draws"]), (f"{name}\nchains", arm.found["chains"])]

    def paint(figure):
        axes = figure.subplots(len(rows), 1)
        for axis, (name, images) in zip(axes, rows, strict=True):
            padded = np.pad(np.reshape(images, (_SHOWN, SIDE, SIDE)), ((0, 0), (1, 1), (1, 1)))
            axis.imshow(
                np.concatenate(list(padded), axis=1), cmap="gray_r", interpolation="nearest"
            )
            axis.set_ylabel(name, rotation=0, ha="right", va="center")
            axis.set(xticks=[], yticks=[])

    return save_figure(path, (7.0, 0.62 * len(rows)), paint)


FLAGS, define = own_flags()
define.string("output", "results/energy", "Folder of the page, the figure and the cells.")
define.integer("seeds", FULL.seeds, "Number of repetitions.", lower_bound=1)


def _main(_) -> int:
    run(check_writable(FLAGS.output), FULL._replace(seeds=FLAGS.seeds))
    return 0


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
