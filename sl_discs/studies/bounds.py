"""Tests of the paper's bounds: exact gaps of models that meet Condition 1 with equality, and of random models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sl_discs.models.spin import SpinForm
from sl_discs.studies import gaps
from sl_discs.studies.gaps import KERNELS, STEP_SIZE, log_density, transitions

# DULA's flips have odds w exp(-1/(2 step)); with this step size the factor is 1.
LONG_STEP = 1e6
# Gaps are exact to rounding.
_ROUNDING = 1e-9


def families(num_sites: int, field: float) -> Iterator[tuple[str, SpinForm]]:
    """Models in the field |h| with the largest couplings that Condition 1 allows, and one without couplings."""
    site = np.arange(num_sites)
    apart = (site[:, None] - site) % num_sites
    patterns: dict[str, np.ndarray] = {"free": np.zeros((num_sites, num_sites))}
    if num_sites > 1:
        complete, ring = (apart > 0) * 1.0, ((apart == 1) | (apart == num_sites - 1)) * 1.0
        patterns |= {"ferromagnet": -complete, "antiferromagnet": complete, "ring": ring}
    for name, pattern in patterns.items():
        rows = max(np.abs(pattern).sum(axis=1).max(), 1.0)
        yield name, SpinForm(pattern * field / (2 * rows), np.full(num_sites, field), 1.0, 0.0)


def random_models(count: int, most_sites: int = 4, seed: int = 0) -> Iterator[tuple[str, SpinForm]]:
    """Sparse Gaussian couplings, scaled to meet Condition 1 with equality, in fields of random signs and sizes."""
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        size = int(rng.integers(2, most_sites + 1))
        upper = np.triu(rng.normal(size=(size, size)) * (rng.random((size, size)) < 0.7), 1)
        W = upper + upper.T
        fields = np.exp(rng.uniform(np.log(0.05), np.log(20)) + rng.exponential(0.3, size) * (rng.random(size) < 0.5))
        fields *= rng.choice([-1.0, 1.0], size)
        rows = np.abs(W).sum(axis=1).max()
        yield "random", SpinForm(W * (np.abs(fields).min() / (2 * rows) if rows else 0.0), fields, 1.0, 0.0)


def readings(kernel: str, form: SpinForm) -> dict[str, float]:
    """The gap in each normalisation to which a bound could refer."""
    density, size = log_density(form), len(form.b)
    if kernel == "dula":
        steps = {f"step size {STEP_SIZE}": STEP_SIZE, "no step size": LONG_STEP}
        return {name: gaps.gap_of(transitions(kernel, density, step)).one_sided for name, step in steps.items()}
    gap = gaps.gap_of(transitions(kernel, density))
    return {
        "one step": gap.one_sided, "N steps": size * gap.one_sided, "N steps, absolute gap": size * gap.absolute
    }  # fmt: skip


def scan(sites: tuple[int, ...], fields: tuple[float, ...], random: int) -> list[dict[str, Any]]:
    """Compares gaps with bounds.

    Args:
      sites: values of N for the families.
      fields: values of |h|.
      random: number of additional random models.

    Returns:
      the gap and the bound for each kernel, model and reading.
    """
    models = [(name, form) for n in sites for field in fields for name, form in families(n, field)]
    rows = []
    for name, form in [*models, *random_models(random)]:
        size, field = len(form.b), gaps.smallest_field(form)
        assert field >= gaps.needed_field(form) * (1 - 1e-9)
        for kernel in KERNELS:
            promised = gaps.bound(kernel, field, size)
            for reading, gap in readings(kernel, form).items():
                rows.append(
                    {"kernel": kernel, "reading": reading, "model": name, "sites": size, "field": field}
                    | {"gap": gap, "bound": promised}
                )
    return rows


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each kernel and reading, the number of models whose gap is below its bound, and the smallest such model.

    The smallest is the one with the fewest sites and, among those, the one farthest below its bound.
    """
    found = []
    for key in dict.fromkeys((row["kernel"], row["reading"]) for row in rows):
        own = [row for row in rows if (row["kernel"], row["reading"]) == key]
        failed = [row for row in own if row["gap"] < row["bound"] - _ROUNDING]
        smallest = min(failed, key=lambda row: (row["sites"], row["gap"] - row["bound"]), default=None)
        vacuous = sum(row["bound"] <= 0 for row in own)
        found.append(
            {"kernel": key[0], "reading": key[1], "models": len(own), "failed": len(failed)}
            | {"vacuous": vacuous, "smallest": smallest}
        )
    return found
