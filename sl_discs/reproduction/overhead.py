"""Run times compared with the paper's: seconds, chain-steps per second, and the overhead of localization."""

from __future__ import annotations

from typing import Any

from sl_discs.experiment.published import published_seconds
from sl_discs.reproduction.cell import DEFAULTS
from sl_discs.reproduction.rows import by_dataset
from sl_discs.reproduction.runner import Done


def overhead_rows(done: list[Done]) -> list[dict[str, Any]]:
    """One row per cell at default settings: our seconds and the paper's, and both ratios of SL to its base.

    Our ratio is that of seconds per chain-step, so it does not depend on the size of the runs.
    """
    rows = []
    for name, group in by_dataset(done):
        found = {one.cell.method: one for one in group if one.cell.protocol == DEFAULTS}
        for method, one in found.items():
            base = found.get(method.removeprefix("sl_")) if method.startswith("sl_") else None
            seconds = published_seconds(name, method)
            of_base = published_seconds(name, method.removeprefix("sl_"))
            rows.append(
                {
                    "dataset": name,
                    "method": method,
                    "n": len(one.dataset.graphs),
                    "run_s": one.result.run_s,
                    "chain_steps_per_s": one.result.chain_steps_per_s,
                    "sl_over_base": base and base.result.chain_steps_per_s / one.result.chain_steps_per_s,
                    "published_s": seconds,
                    "published_sl_over_base": seconds / of_base if base and seconds and of_base else None,
                }
            )
    return rows
