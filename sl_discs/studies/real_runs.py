"""Localized runs on real instances, level by level: the sites that meet the paper's Condition 1, and acceptance.

At temperature tau the posterior is that of `gaps` with beta W = -J/(4 tau) and h = (c/2 + J1/4)/tau + tilt, so site i
meets the condition of its own row where |h_i| >= sum_k |J_ik|/(2 tau). Condition 1 as printed asks for the largest of
the rows' right-hand sides at every site.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from sl_discs.engines.registry import choose_engine
from sl_discs.experiment.mesh import Layout, make_mesh
from sl_discs.experiment.packing import build_batch, initial_keys, plan
from sl_discs.experiment.player import compile_program, start_chains
from sl_discs.experiment.settings import Settings
from sl_discs.localization.alpha import parse_alpha
from sl_discs.localization.method import Method
from sl_discs.models.coefficients import Coefficients


class Fields(NamedTuple):
    """The quantities that are constant along a run, at temperature 1.

    Attributes:
      own: [N] c/2 + J1/4, the target's own field.
      needed: [N] sum_k |J_ik|/2.
    """

    own: Float64[np.ndarray, "N"]
    needed: Float64[np.ndarray, "N"]

    @classmethod
    def of(cls, terms: Coefficients) -> Fields:
        """Of a model."""
        listed = terms.listed()
        couplings = listed.scale * listed.weights
        ends, size = listed.edges.ravel(), len(listed.linear)
        sums, sizes = (
            np.bincount(ends, np.repeat(values, 2), minlength=size) for values in (couplings, np.abs(couplings))
        )
        return cls(listed.linear / 2 + sums / 4, sizes / 2)

    def met(self, tilt: Float64[np.ndarray, "B N"], temperature: float) -> tuple[float, float]:
        """The share of sites that meet the condition of their own row, and of those that meet that of all rows."""
        h = np.abs(self.own / temperature + tilt)
        return float((h >= self.needed / temperature).mean()), float((h >= self.needed.max() / temperature).mean())


def watch(terms: Coefficients, method: Method, settings: Settings, looks: int) -> list[dict[str, Any]]:
    """Observations at approximately evenly spaced levels, just before each level's first step.

    Args:
      terms: the instance.
      method: a localized method.
      settings: chains, steps, annealing, engine and seed.
      looks: number of levels to observe.

    Returns:
      for each of them its number, the step, alpha^2/(sigma^2 t), the temperature, the root mean square of the tilt,
      `own_row` and `all_rows` of `Fields.met`, and mean acceptance and hops of the steps since the look before.
    """
    localization, program = method.localization, compile_program(method, settings)
    levels = program.levels
    assert localization is not None and levels is not None
    [pack] = plan([terms], 1, settings.batch_size, 1, Layout(1, 1))
    model, batch = build_batch([terms], [0], pack.shape, settings.seed)
    noise = np.float32(localization.initial_noise())
    keys = initial_keys([0], pack.shape, settings.seed)
    chains = start_chains(batch, keys, None, noise, model=model, sampler=method.sampler)
    engine, _ = choose_engine(settings.engine, method.sampler)
    play = engine.prepare(model, method.sampler, batch, program, make_mesh(Layout(1, 1)), settings.threads)
    fields, rows, done = Fields.of(terms), [], 0
    times, alpha = localization.times(settings.chain_length), parse_alpha(localization.alpha, localization.horizon)
    count = min(looks, localization.K - 1)
    for level in np.unique(np.linspace(1, localization.K - 1, count).round().astype(int)):
        first = int(levels.last[level - 1]) + 1
        chains, trace = play(chains, done, 1, first - done)
        observation: Any = chains.chain.observation
        tilt = np.asarray(levels.tilt_scale)[level] * np.asarray(observation.y, np.float64)[0, :, : len(fields.own)]
        temperature, t = float(program.temperature[first]), np.asarray(times[first])
        own_row, all_rows = fields.met(tilt, temperature)
        rows.append(
            {"level": int(level), "step": first, "snr": float(alpha.value(t) ** 2 / (localization.sigma**2 * t))}
            | {"temperature": temperature, "tilt": float(np.sqrt((tilt**2).mean()))}
            | {"own_row": own_row, "all_rows": all_rows}
            | {"acceptance": float(np.mean(trace.acceptance)), "hops": float(np.mean(trace.hops))}
        )
        done = first
    return rows
