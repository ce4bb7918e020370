"""Estimates from draws as rows of text, for a terminal."""

from __future__ import annotations

import math

from sl_discs.sampling.diagnostics import Diagnostic
from sl_discs.sampling.draws import Estimate, variable_name
from sl_discs.sampling.samples import MAGNETISATION, OVERLAP, VALUE, Samples

ESTIMATES = "", "mean", "error", "R-hat", "limit", "ESS bulk", "ESS tail"


def estimates(samples: Samples) -> list[tuple[str, ...]]:
    """Rows under `ESTIMATES`: means, the variables with the largest R-hat and the least ESS, and log Z."""
    found = {one.name: one for one in samples.diagnostics}
    rows: list[tuple[str, ...]] = []
    for name in (VALUE, MAGNETISATION, OVERLAP):
        rows.append((name, *_numbers(samples.mean(name)), *_evidence(found.pop(name))))
    if found:
        known = {variable_name(label): label for label in samples.labels}
        apart = max(found.values(), key=lambda one: -1.0 if math.isnan(one.r_hat) else one.r_hat)
        least = min(found.values(), key=lambda one: min(one.ess_bulk, one.ess_tail))
        for one in dict.fromkeys((apart, least)):
            rows.append((f"P({one.name} = 1)", *_numbers(samples.marginal(known[one.name])), *_evidence(one)))
    if samples.log_z is not None:
        rows.append(("log Z", *_numbers(samples.log_z), "", "", "", ""))
    return rows


def marginals(samples: Samples, top: int) -> tuple[list[tuple[str, ...]], str]:
    """The titles and rows of a table of `top` marginals, those nearest to 1/2 first, and how many of how many."""
    found = sorted(samples.marginals.items(), key=lambda row: abs(row[1].mean - 0.5))
    rows: list[tuple[str, ...]] = [("variable", "P(x = 1)", "error")]
    rows += [(str(label), *_numbers(one)) for label, one in found[:top]]
    return rows, "all" if len(found) <= top else f"the {top} of {len(found):,} variables nearest to 1/2"


def played(samples: Samples) -> str:
    """The number of draws, the method, and why it was chosen."""
    chosen = f" ({samples.chosen})" if samples.chosen else ""
    how = ", ".join(f"{name} {value}" for name, value in samples.how.items())
    return f"{len(samples):,} draws by {samples.method}{chosen}: {how}"


def _numbers(found: Estimate) -> tuple[str, str]:
    """A mean to the digit of its error, and the error."""
    if found.error == 0:
        return f"{found.mean:.10g}", "exact"
    if math.isnan(found.error):
        return f"{found.mean:.10g}", "unknown: all draws agree"
    if not math.isfinite(found.error):
        return f"{found.mean:.6g}", "unknown"
    digits = min(12, max(0, 1 - math.floor(math.log10(found.error))))
    return f"{found.mean:,.{digits}f}", f"{found.error:,.{digits}f}"


def _evidence(found: Diagnostic) -> tuple[str, ...]:
    """R-hat and its limit, empty where it has no meaning, and effective sample sizes."""
    known = not math.isnan(found.r_hat)
    r_hat = [f"{one:.3f}" if known and not math.isnan(one) else "" for one in (found.r_hat, found.limit)]
    return *r_hat, f"{found.ess_bulk:,.0f}", f"{found.ess_tail:,.0f}"
