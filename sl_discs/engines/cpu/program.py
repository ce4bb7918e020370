"""A run's program as the loops have it."""

from __future__ import annotations

import numpy as np

from sl_discs.engines import contract
from sl_discs.engines.cpu.chunk import Program
from sl_discs.engines.cpu.proposal_temperatures import proposal_temperatures
from sl_discs.localization.schedule import Levels

# Sums of weights are formed anew at least this often.
_LONGEST_WITHOUT_REFRESH = 4096
_NONE = Levels(*(np.zeros(0, dtype) for dtype in (np.float32, np.int32, np.int32, np.float32, np.float32)))


def as_loops_program(program: contract.Program, *, keeps_weights: bool) -> Program:
    """The whole run's program.

    Args:
      program: of the run.
      keeps_weights: whether proposals are weighed at temperatures that stay the same for many steps.
    """
    rows = np.atleast_2d(np.asarray(program.temperature, np.float32).T)
    levels = _NONE if program.levels is None else Levels(*map(np.ascontiguousarray, program.levels))
    proposed = rows
    if keeps_weights:
        proposed = np.stack([proposal_temperatures(row, program.levels) for row in rows])
    refresh = np.ones(rows.shape, bool)
    refresh[:, 1:] = np.diff(proposed) != 0
    refresh[:, _LONGEST_WITHOUT_REFRESH - 1 :: _LONGEST_WITHOUT_REFRESH] = True
    begins = levels.last + 1
    refresh[:, begins[begins < rows.shape[1]]] = True
    return Program(1 / rows, 1 / proposed, refresh, program.levels is not None, 0, levels)


def part_of(program: Program, done: int, steps: int) -> Program:
    """So many steps of it, after those that are done; weights are formed anew before the first one."""
    rate, proposal_rate, refresh = (
        np.ascontiguousarray(leaf[:, done : done + steps])
        for leaf in (program.rate, program.proposal_rate, program.refresh)
    )
    refresh = refresh.copy()
    refresh[:, :1] = True
    level = program.levels.at(done) if program.localized else 0
    return program._replace(rate=rate, proposal_rate=proposal_rate, refresh=refresh, level=level)
