"""Temperature schedules, DISCS's: tau at steps 1..chain_length."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float32

from sl_discs.errors import InputError

SCHEDULES = ("constant", "linear", "exp_decay")


@functools.lru_cache(maxsize=2)
def temperatures(
    schedule: str | tuple[float, ...],
    chain_length: int,
    initial: float,
    final: float,
    decay_rate: float,
    every: int = 1,
) -> Float32[np.ndarray, "T"]:
    """Temperature of each step; not to be written to, since those of the last schedules are kept.

    A run asks for them several times, and with millions of steps they take as long as thousands of the steps.

    Args:
      schedule: `constant` (initial), `linear` (initial to final), or `exp_decay`: initial decay_rate^(step/T),
        never below final. `final` is thus only a floor there, reached if initial decay_rate lies below it. Or a tuple
        of temperatures, each of which lasts for an equal part of the chain; the other numbers do not count then.
      chain_length: T.
      initial: temperature at step 0.
      final: last temperature or floor.
      decay_rate: for `exp_decay`.
      every: steps that share the temperature of the first of them; 1 is DISCS's schedule.

    Raises:
      InputError: an unknown schedule, a temperature that is not positive, or an impossible rate or length.
    """
    table = np.asarray(schedule, np.float64) if isinstance(schedule, tuple) else None
    if table is not None and not (table.ndim == 1 and len(table) and (np.isfinite(table) & (table > 0)).all()):
        raise InputError(
            "config.experiment.t_schedule: a tuple of temperatures holds one that is not above 0, or none"
        )
    if table is None and schedule not in SCHEDULES:
        raise InputError(f"config.experiment.t_schedule is {schedule!r}; known: {', '.join(SCHEDULES)}")
    if chain_length < 1:
        raise InputError(f"config.experiment.chain_length is {chain_length}; expected at least 1")
    for name, value in (("init_temperature", initial), ("final_temperature", final)):
        if not 1e-30 <= value <= 1e30:  # what energies are divided by, in single precision
            raise InputError(f"config.experiment.{name} is {value}; expected a number from 1e-30 to 1e30")
    if not 0 < decay_rate <= 1:
        raise InputError(f"config.experiment.decay_rate is {decay_rate}; expected a number in (0, 1]")
    part = np.arange(1, chain_length + 1) / chain_length
    if table is not None:
        values = table[np.arange(chain_length) * len(table) // chain_length]
    elif schedule == "constant":
        values = np.full(chain_length, initial)
    elif schedule == "linear":
        values = initial + (final - initial) * part
    else:
        values = np.maximum(initial * decay_rate**part, final)
    found = values.astype(np.float32)
    if every > 1:
        every = min(every, chain_length)
        found = found[np.arange(chain_length) // every * every]
    found.flags.writeable = False
    return found
