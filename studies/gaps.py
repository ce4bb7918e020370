"""Exact spectral gaps of Markov kernels under a tilted posterior, and the paper's lower bounds for
them.

The posterior is q(s) ~ exp(-beta/2 <s, Ws> + <s, h>) on spins, where h includes the target's own
field. The paper (Wang et al., ICML 2025) bounds the gap from below if its Condition 4.1 holds,

    |h| >= 2 beta max_i sum_k |W_ik|,

where |h| is interpreted as min_i |h_i|. Then, if all |h_i| are equal, the absolute value of each
local field h_i - beta (Ws)_i is between |h|/2 and 3|h|/2, whatever the other spins are. The
exponents of the bounds come from this range.

A reversible kernel P with stationary distribution pi is similar to the symmetric matrix sqrt(P(x,
y) P(y, x)), which can be computed without pi. On a quadratic model, DULA with a fixed step size is
also reversible, not with respect to q but to

    pi(x) ~ q(x) prod_i (1 + w_i(x)),  w_i(x) = exp(d_i(x)/2 - 1/(2 step_size)),

so its eigenvalues are real, and its gap determines how fast it converges to pi.

The error of a posterior mean that n steps of a stationary reversible chain estimate is bounded
through the gap as well: for a function with values in [-1, 1], Leon and Perron (Ann. Appl. Probab.
14, 2004) have P(U_n - m >= e) <= exp(-(1 - l)/(1 + l) n e^2/2), where l = max(lambda_2, 0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy import linalg, special

from sl_discs.samplers.path import GWG
from sl_discs.testing import oracle
from sl_discs.testing.conformance import all_states

# `gwg` and `langevin` are two readings of the paper's single-site gradient-informed
# Metropolis-Hastings.
KERNELS = ("glauber", "metropolis", "gwg", "langevin", "dula")
# The package's default step size of DMALA: a flip that changes nothing has odds exp(-2.5).
STEP_SIZE = 0.2


class Gap(NamedTuple):
    """Gaps of one step."""

    one_sided: float  # 1 - lambda_2, the constant of the Poincare inequality
    absolute: float  # 1 - max(lambda_2, |lambda_min|), the rate of convergence of a chain that is not lazy


class SpinModel(NamedTuple):
    """log nu(s) = -beta/2 s'Ws + b.s, as the paper writes it; W is symmetric and zero on the
    diagonal.
    """

    W: Float64[np.ndarray, "N N"]
    b: Float64[np.ndarray, "N"]
    beta: float = 1.0


def spins(num_sites: int) -> Float64[np.ndarray, "S N"]:
    """All states as -1 and 1; state k has bit i of k at site i."""
    return 2.0 * all_states(num_sites) - 1


def log_density(
    form: SpinModel, tilt: Float64[np.ndarray, "N"] | float = 0.0
) -> Float64[np.ndarray, "S"]:
    """-beta/2 <s, Ws> + <s, b + tilt> at every state."""
    states = spins(len(form.b))
    return -form.beta / 2 * np.einsum("si,ij,sj->s", states, form.W, states) + states @ (
        form.b + tilt
    )


def flip_gains(density: Float64[np.ndarray, "S"]) -> Float64[np.ndarray, "S N"]:
    states, sites = np.arange(len(density)), len(density).bit_length() - 1
    return np.stack([density[states ^ (1 << site)] - density for site in range(sites)], axis=1)


def transitions(
    name: str, density: Float64[np.ndarray, "S"], step_size: float = STEP_SIZE
) -> Float64[np.ndarray, "S S"]:
    """The matrix of one step.

    `glauber` and `metropolis` draw a site uniformly; `gwg` draws one from the balanced softmax of
    the flip gains, followed by a Metropolis-Hastings test; `langevin` draws one uniformly and
    proposes to flip it with probability sigmoid(d/2), followed by such a test; `dula` flips all
    sites independently without a test.
    """
    sites = range(len(density).bit_length() - 1)
    if name == "glauber":
        return oracle.single_site(density, sites, oracle.barker_test).transitions
    if name == "metropolis":
        return oracle.single_site(density, sites, oracle.metropolis_test).transitions
    if name == "gwg":
        return oracle.kernel_of(GWG(), density, np.ones(len(sites), bool)).transitions
    if name == "langevin":
        # sigmoid(d/2) min(1, exp(d) sigmoid(-d/2)/sigmoid(d/2)), where the ratio in the test is
        # exp(d/2).
        return oracle.single_site(
            density, sites, lambda ratio: min(1.0, ratio**0.5) / (1 + ratio**-0.5)
        ).transitions
    return dula(density, step_size)


def dula(density: Float64[np.ndarray, "S"], step_size: float) -> Float64[np.ndarray, "S S"]:
    """The oracle's matrix of DMALA with a fixed step and without a test, as sums over sites of all
    pairs at once.
    """
    logits = flip_gains(density) / 2 - 1 / (2 * step_size)
    flips, stays = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    states = np.arange(len(density))
    differs = all_states(logits.shape[1])[states[:, None] ^ states]  # [S, S, N]
    return np.exp(np.einsum("xyi,xi->xy", differs, flips - stays) + stays.sum(axis=1)[:, None])


def all_or_none(density: Float64[np.ndarray, "S"]) -> Float64[np.ndarray, "S S"]:
    """Theorem 4.9 as printed: flips all sites with the probability that each of them flips by
    itself, and otherwise stays.
    """
    states = np.arange(len(density))
    opposite = states ^ (len(states) - 1)
    flips = np.exp(-np.logaddexp(0, -flip_gains(density) / 2).sum(axis=1))
    matrix = np.diag(1 - flips)
    matrix[states, opposite] = flips
    return matrix


def spectrum(matrix: Float64[np.ndarray, "S S"]) -> Float64[np.ndarray, "S"]:
    """Eigenvalues of a reversible kernel, in increasing order; the last one is 1."""
    return linalg.eigvalsh(np.sqrt(matrix * matrix.T))


def gap_of(matrix: Float64[np.ndarray, "S S"]) -> Gap:
    values = spectrum(matrix)
    return Gap(float(1 - values[-2]), float(1 - max(values[-2], -values[0])))


def bound(name: str, field: float, num_sites: int) -> float:
    """The paper's lower bound of a kernel's gap at |h|; that of `dula` depends on N."""
    if name == "glauber":
        return float(1 - field / (2 * np.cosh(0.75 * field)))
    if name == "metropolis":
        return float(1 - 2 * field * np.exp(-field))
    loss = field / (2 * np.cosh(field / 4)) ** 2
    return float(1 - (4 * num_sites if name == "dula" else 1) * loss)


def smallest_field(form: SpinModel, tilt: Float64[np.ndarray, "N"] | float = 0.0) -> float:
    """|h| = min_i |b_i + tilt_i|."""
    return float(np.abs(form.b + tilt).min())


def needed_field(form: SpinModel) -> float:
    """2 beta max_i sum_k |W_ik|, the smallest |h| for which Condition 4.1 holds."""
    return float(2 * form.beta * np.abs(form.W).sum(axis=1).max())


# DULA's flips have odds w exp(-1/(2 step)); with this step size the factor is 1.
LONG_STEP = 1e6
# Gaps are exact to rounding.
_ROUNDING = 1e-9


def families(num_sites: int, field: float) -> Iterator[tuple[str, SpinModel]]:
    """Models in the field |h| with the largest couplings that Condition 4.1 allows, and one without
    couplings.
    """
    site = np.arange(num_sites)
    apart = (site[:, None] - site) % num_sites
    patterns: dict[str, np.ndarray] = {"free": np.zeros((num_sites, num_sites))}
    if num_sites > 1:
        complete, ring = (apart > 0) * 1.0, ((apart == 1) | (apart == num_sites - 1)) * 1.0
        patterns |= {"ferromagnet": -complete, "antiferromagnet": complete, "ring": ring}
    for name, pattern in patterns.items():
        rows = max(np.abs(pattern).sum(axis=1).max(), 1.0)
        yield name, SpinModel(pattern * field / (2 * rows), np.full(num_sites, field))


def random_models(
    count: int, most_sites: int = 4, seed: int = 0
) -> Iterator[tuple[str, SpinModel]]:
    """Sparse Gaussian couplings, scaled to meet Condition 4.1 with equality, in fields of random
    signs and sizes.
    """
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        size = int(rng.integers(2, most_sites + 1))
        upper = np.triu(rng.normal(size=(size, size)) * (rng.random((size, size)) < 0.7), 1)
        W = upper + upper.T
        fields = np.exp(
            rng.uniform(np.log(0.05), np.log(20))
            + rng.exponential(0.3, size) * (rng.random(size) < 0.5)
        )
        fields *= rng.choice([-1.0, 1.0], size)
        rows = np.abs(W).sum(axis=1).max()
        yield "random", SpinModel(W * (np.abs(fields).min() / (2 * rows) if rows else 0.0), fields)


def readings(kernel: str, form: SpinModel) -> dict[str, float]:
    """The gap in each normalisation to which a bound could refer."""
    density, size = log_density(form), len(form.b)
    if kernel == "dula":
        steps = {f"step size {STEP_SIZE}": STEP_SIZE, "no step size": LONG_STEP}
        return {
            name: gap_of(transitions(kernel, density, step)).one_sided
            for name, step in steps.items()
        } | {"all sites or none": gap_of(all_or_none(density)).one_sided}
    gap = gap_of(transitions(kernel, density))
    return {
        "one step": gap.one_sided, "N steps": size * gap.one_sided, "N steps, absolute "
            "gap": size * gap.absolute
    }  # fmt: skip


def scan(sites: tuple[int, ...], fields: tuple[float, ...], random: int) -> list[dict[str, Any]]:
    """The gap and the bound for each kernel, reading and model: `families` of each N and |h|, and
    random models.
    """
    models = [(name, form) for n in sites for field in fields for name, form in families(n, field)]
    rows = []
    for name, form in [*models, *random_models(random)]:
        size, field = len(form.b), smallest_field(form)
        assert field >= needed_field(form) * (1 - 1e-9)
        for kernel in KERNELS:
            promised = bound(kernel, field, size)
            for reading, gap in readings(kernel, form).items():
                rows.append(
                    {
                        "kernel": kernel,
                        "reading": reading,
                        "model": name,
                        "sites": size,
                        "field": field,
                    }
                    | {"gap": gap, "bound": promised}
                )
    return rows


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each kernel and reading, the number of models whose gap is below its bound, and the
    smallest such model.

    The smallest is the one with the fewest sites and, among those, the one farthest below its
    bound.
    """
    found = []
    for key in dict.fromkeys((row["kernel"], row["reading"]) for row in rows):
        own = [row for row in rows if (row["kernel"], row["reading"]) == key]
        failed = [row for row in own if row["gap"] < row["bound"] - _ROUNDING]
        smallest = min(
            failed, key=lambda row: (row["sites"], row["gap"] - row["bound"]), default=None
        )
        vacuous = sum(row["bound"] <= 0 for row in own)
        found.append(
            {"kernel": key[0], "reading": key[1], "models": len(own), "failed": len(failed)}
            | {"vacuous": vacuous, "smallest": smallest}
        )
    return found


def glauber_errors(
    density: Float64[np.ndarray, "S"], steps: Sequence[int], chains: int
) -> Float64[np.ndarray, "n C N"]:
    """U_n - E[s], for increasing n, of C chains that start in the law, each step at a uniformly
    drawn site.
    """
    law, table = np.exp(special.log_softmax(density)), spins(len(density).bit_length() - 1)
    chances, size = special.expit(flip_gains(density)), table.shape[1]
    rng = np.random.default_rng((0, 0))
    states = rng.choice(len(law), size=chains, p=law)
    total, found = np.zeros((chains, size)), []
    for step in range(1, steps[-1] + 1):
        rng = np.random.default_rng((0, step))
        sites = rng.integers(size, size=chains)
        states = np.where(
            rng.random(chains) < chances[states, sites], states ^ (1 << sites), states
        )
        total += table[states]
        if step in steps:
            found.append(total / step - law @ table)
    return np.array(found)


def exact_rms(
    density: Float64[np.ndarray, "S"], steps: Int[np.ndarray, "n"]
) -> Float64[np.ndarray, "n"]:
    """The root mean square of U_n - E[s] over sites for a stationary Glauber chain, from its
    spectrum.
    """
    matrix, law = transitions("glauber", density), np.exp(special.log_softmax(density))
    values, vectors = linalg.eigh(np.sqrt(matrix * matrix.T))
    values, vectors = values[:-1], vectors[:, :-1]  # without the eigenvalue 1
    weights = ((vectors.T @ (law[:, None] ** 0.5 * spins(len(law).bit_length() - 1))) ** 2).mean(
        axis=1
    )
    n = np.asarray(steps, np.float64)[:, None]
    variance = (1 + values) / (1 - values) / n - 2 * values * (1 - values**n) / (
        n * (1 - values)
    ) ** 2
    return np.sqrt(variance @ weights)


def chernoff(
    gap: float, steps: Int[np.ndarray, "n"], error: float, sites: int
) -> Float64[np.ndarray, "n"]:
    """The bound of the probability that any of the sites' means is off by `error` or more; at most
    1.
    """
    rate = gap / (2 - gap) if gap < 1 else 1.0
    return np.minimum(1.0, 2 * sites * np.exp(-rate * np.asarray(steps) * error**2 / 2))


def mean_errors(
    density: Float64[np.ndarray, "S"], gap: float, steps: Sequence[int], chains: int, error: float
) -> dict[str, Any]:
    """All three at each n, and how often a site's mean is off by `error`."""
    sites = len(density).bit_length() - 1
    errors = glauber_errors(density, steps, chains)
    return {
        "steps": list(steps),
        "rms": np.sqrt((errors**2).mean(axis=(1, 2))).tolist(),
        "exact_rms": exact_rms(density, np.array(steps)).tolist(),
        "missed": (np.abs(errors).max(axis=2) >= error).mean(axis=1).tolist(),
        "chernoff": chernoff(gap, np.array(steps), error, sites).tolist(),
    }
