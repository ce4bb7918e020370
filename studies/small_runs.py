"""Algorithm 1 for many chains of a small target at once, in NumPy, with several estimators of the
posterior mean.

Random numbers are determined by the level.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64
from scipy import special

from gaps import SpinModel, log_density, spins
from sl_discs.localization.schedule import Localization

Chains = Float64[np.ndarray, "C N"]
Random = np.random.Generator
# Maps random numbers, the tilts and the chains' states to U and the next states.
Mean = Callable[[Random, Chains, Chains], tuple[Chains, Chains]]

# Largest number of array entries when the states of all chains are enumerated in parts.
_AT_ONCE = 2_000_000


def curie_weiss(num_sites: int, coupling: float, field: float) -> SpinModel:
    """coupling/N sum_{i<j} s_i s_j + field sum_i s_i: two modes where the coupling exceeds 1."""
    W = -coupling / num_sites * (np.ones((num_sites, num_sites)) - np.eye(num_sites))
    return SpinModel(W, np.full(num_sites, field))


def glass(num_sites: int, strength: float, field: float, seed: int = 0) -> SpinModel:
    """Sherrington-Kirkpatrick couplings of variance strength^2/N in Gaussian fields of this
    standard deviation.
    """
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(num_sites, num_sites)), 1) * strength / num_sites**0.5
    return SpinModel(upper + upper.T, field * rng.normal(size=num_sites))


def name_of(form: SpinModel) -> str:
    """A digest of a target's couplings and fields, used in identities of cells."""
    return hashlib.sha256(
        form.beta.hex().encode() + form.W.tobytes() + form.b.tobytes()
    ).hexdigest()[:16]


def law_of(form: SpinModel) -> Float64[np.ndarray, "S"]:
    return np.exp(special.log_softmax(log_density(form)))


def random_numbers(level: int) -> Random:
    """Those of a level; level -1 is the start."""
    return np.random.default_rng((0, 0, level + 1))


def localize(
    form: SpinModel,
    localization: Localization,
    mean: Mean,
    chains: int,
    watch: Callable[[int, Chains], object] | None = None,
) -> tuple[Chains, Chains]:
    """sign(Y_K) and the last states, as spins.

    The budget of the schedule is ignored, since `mean`, which estimates U, determines the cost of a
    level. `watch` is called with each level's number and tilts.
    """
    levels = Localization(**{**vars(localization), "budget": "identical"}).levels(localization.K)
    rng = random_numbers(-1)
    y = levels.first_noise * rng.normal(size=(chains, len(form.b)))
    states = rng.choice([-1.0, 1.0], size=y.shape)
    for level in range(localization.K):
        rng = random_numbers(level)
        tilt = np.asarray(levels.tilt_scale)[level] * y
        if watch is not None:
            watch(level, tilt)
        u, states = mean(rng, tilt, states)
        y = (
            y
            + np.asarray(levels.drift)[level] * u
            + np.asarray(levels.noise)[level] * rng.normal(size=y.shape)
        )
    return np.where(y > 0, 1.0, -1.0), states


def exact_mean(form: SpinModel) -> Mean:
    table, density = spins(len(form.b)), log_density(form)

    def mean(rng, tilt, states):
        parts = np.array_split(tilt, -(-tilt.shape[0] * len(table) // _AT_ONCE))
        return np.concatenate(
            [special.softmax(density + part @ table.T, axis=1) @ table for part in parts]
        ), states

    return mean


def curie_weiss_mean(coupling: float, field: float, num_sites: int) -> Mean:
    """The posterior mean of `curie_weiss`, by quadrature over the Gaussian field that decouples its
    spins.

    exp(c/(2N) M^2) is the mean of exp(sqrt(c/N) z M) over standard normal z. For such smooth
    integrands the trapezoidal rule is exact up to rounding.
    """
    root = (coupling / num_sites) ** 0.5
    reach = coupling**0.5 * num_sites**0.5 + 6
    z = np.linspace(-reach, reach, 81)

    def mean(rng, tilt, states):
        weights = np.zeros((len(tilt), len(z)))
        for site in range(num_sites):
            one = np.abs(root * z + field + tilt[:, site, None])
            weights += one + np.log1p(np.exp(-2 * one))
        weights = special.softmax(weights - z**2 / 2, axis=1)
        u = [
            (weights * np.tanh(root * z + field + tilt[:, site, None])).sum(axis=1)
            for site in range(num_sites)
        ]
        return np.stack(u, axis=1), states

    return mean


def gibbs_mean(
    form: SpinModel, sweeps: int, collected: int, *, rao_blackwell: bool = False, sharing: int = 1
) -> Mean:
    """U from sequential Gibbs sweeps, whose states continue from level to level.

    The last `collected` sweeps of a level count for U. If it is 1, U is the last state; then
    (states, Y) is a Markov chain that keeps the joint distribution of X and Y_t once its states
    have that of X. With `rao_blackwell` a site counts with its conditional mean instead of the spin
    drawn from it. `sharing` neighbouring chains share one U, their mean, and one Y.
    """

    def mean(rng, tilt, states):
        states, total = states.copy(), np.zeros_like(states)
        for sweep in range(sweeps):
            counts = sweep >= sweeps - collected
            for site in range(states.shape[1]):
                local = form.b[site] + tilt[:, site] - form.beta * (states @ form.W[site])
                states[:, site] = np.where(
                    rng.random(len(states)) < special.expit(2 * local), 1.0, -1.0
                )
                if counts and rao_blackwell:
                    total[:, site] += np.tanh(local)
            if counts and not rao_blackwell:
                total += states
        return total / collected, states

    if sharing == 1:
        return mean

    def shared(rng, tilt, states):
        # The states of all chains that share one Y are in one row: [C, sharing * N].
        several = np.repeat(states, sharing, axis=0) if states.shape == tilt.shape else states
        several = several.reshape(len(tilt) * sharing, -1)
        u, several = mean(rng, np.repeat(tilt, sharing, axis=0), several)
        return u.reshape(len(tilt), sharing, -1).mean(axis=1), several.reshape(len(tilt), -1)

    return shared


def tap_mean(form: SpinModel) -> Mean:
    """The Thouless-Anderson-Palmer equations, m = tanh(h - Wm - (W^2)(1 - m^2) m), iterated."""
    W = form.beta * form.W

    def mean(rng, tilt, states):
        m = np.tanh(form.b + tilt)
        for _ in range(50):
            m = 0.5 * m + 0.5 * np.tanh(form.b + tilt - m @ W - ((1 - m**2) @ W**2) * m)
        return m, states

    return mean


def gibbs_chain(form: SpinModel, sweeps: int, chains: int) -> Chains:
    """Last states of chains without localization, after `sweeps` from random states."""
    rng = random_numbers(-1)
    states = rng.choice([-1.0, 1.0], size=(chains, len(form.b)))
    return gibbs_mean(form, sweeps, 1)(rng, np.zeros_like(states), states)[1]


def counts_of(states: Chains) -> Float64[np.ndarray, "S"]:
    index = (states > 0) @ (1 << np.arange(states.shape[1]))
    return np.bincount(index, minlength=2 ** states.shape[1]).astype(np.float64)
