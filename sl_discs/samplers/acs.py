"""Langevin proposals whose step size and balance go through cycles (Pynadath, Bhattacharya, Hariharan and Zhang,
Gradient-based discrete sampling with automatic cyclical scheduling, NeurIPS 2024).

In step k of a cycle of s steps, with w = (cos(pi k/s) + 1)/2 falling from 1 to 0, the step size is
alpha = largest_step w and the balance beta = 1/2 + (largest_balance - 1/2) w; where alpha would fall below
smallest_step, it is smallest_step and beta is 1/2. Site i flips with probability sigmoid(beta d_i - 1/(2 alpha)),
and a Metropolis-Hastings test follows. Large steps with beta near 1 find new modes, small ones with beta = 1/2
explore them. The paper also tunes the bounds of both schedules automatically; here they are fields.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sl_discs.checks import whole
from sl_discs.errors import InputError
from sl_discs.samplers.independent import IndependentFlips, bounded


@dataclasses.dataclass(frozen=True)
class ACS(IndependentFlips):
    """Cyclical Langevin proposals. Every step leaves the target invariant, but a cycle is not reversible.

    Attributes:
      num_chains: chains per batch in DISCS's calling convention.
      cycle: number s of steps in a cycle.
      largest_step: step size at the start of a cycle.
      smallest_step: lower bound of the step size.
      largest_balance: beta at the start of a cycle, from 1/2 to 1.
    """

    calls_a_step: ClassVar[int] = 4

    num_chains: int = 1
    cycle: int = 20
    largest_step: float = 1.0
    smallest_step: float = 0.2
    largest_balance: float = 0.8

    def __post_init__(self):
        whole("sampler_config.cycle", self.cycle, 1, bits=31)
        if not 0 < self.smallest_step <= self.largest_step <= 1e30:
            raise InputError(
                f"sampler_config.smallest_step and largest_step are {self.smallest_step} and {self.largest_step}; "
                "expected positive numbers in increasing order"
            )
        if not 0.5 <= self.largest_balance <= 1:
            raise InputError(f"sampler_config.largest_balance is {self.largest_balance}; expected 0.5 to 1")

    @property
    def reversible(self):
        """Whether all steps are alike."""
        return self.cycle == 1

    def schedule(self, steps: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Step size and balance of the step after so many steps."""
        wave = (jnp.cos(jnp.pi * (steps % self.cycle) / self.cycle) + 1) / 2
        step_size = self.largest_step * wave
        small = step_size <= self.smallest_step
        balance = jnp.where(small, 0.5, 0.5 + (self.largest_balance - 0.5) * wave)
        return jnp.where(small, self.smallest_step, step_size), balance

    def logits(self, balanced, state, mask):
        """beta d_i - 1/(2 alpha)."""
        step_size, balance = self.schedule(state.steps)
        return bounded(balance * balanced - 1 / (2 * step_size), mask)
