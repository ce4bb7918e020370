"""Temperature schedules, DISCS's: tau at steps 1..chain_length."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float32

from sl_discs.errors import InputError

SCHEDULES = ("constant", "linear", "exp_decay")
# Steps whose temperatures are formed at a time, so that float64 takes no memory beside the result.
_BLOCK = 1 << 16


@functools.lru_cache(maxsize=2)
def temperatures(
    schedule: str, chain_length: int, initial: float, final: float, decay_rate: float, every: int = 1
) -> Float32[np.ndarray, "T"]:
    """Temperature of each step; not to be written to, since those of the last schedules are kept.

    A run asks for them several times, and with millions of steps they take as long as thousands of the steps.

    Args:
      schedule: `constant` (initial), `linear` (initial to final), or `exp_decay`: initial decay_rate^(step/T),
        never below final. `final` is thus only a floor there, reached if initial decay_rate lies below it.
      chain_length: T.
      initial: temperature at step 0.
      final: last temperature or floor.
      decay_rate: for `exp_decay`.
      every: steps that share the temperature of the first of them; 1 is DISCS's schedule.

    Raises:
      InputError: an unknown schedule, a temperature that is not positive, or an impossible rate or length.
    """
    if schedule not in SCHEDULES:
        raise InputError(f"config.experiment.t_schedule is {schedule!r}; known: {', '.join(SCHEDULES)}")
    if chain_length < 1:
        raise InputError(f"config.experiment.chain_length is {chain_length}; expected at least 1")
    for name, value in (("init_temperature", initial), ("final_temperature", final)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"config.experiment.{name} is {value}; expected a number above 0")
    if not 0 < decay_rate <= 1:
        raise InputError(f"config.experiment.decay_rate is {decay_rate}; expected a number in (0, 1]")
    found = np.empty(chain_length, np.float32)
    for begin in range(0, chain_length, _BLOCK):
        steps = np.arange(begin, min(begin + _BLOCK, chain_length)) // every * every
        part = (steps + 1) / chain_length
        if schedule == "constant":
            values = initial
        elif schedule == "linear":
            values = initial + (final - initial) * part
        else:
            values = np.maximum(initial * decay_rate**part, final)
        found[begin : begin + len(steps)] = values
    found.flags.writeable = False
    return found
