"""The number of MCMC steps of each level of stochastic localization, which sum exactly to the chain length."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from sl_discs.errors import InputError

BUDGETS = ("exp_decay", "identical")


def level_budgets(
    budget: str, chain_length: int, levels: int, n_min: int, decay_rate: float
) -> Int64[np.ndarray, "K"]:
    """Steps n_0..n_{K-1} with sum chain_length and each at least n_min (`identical`: at least 1).

    `exp_decay` is n_min + c r^(i/K), floored, where c uses up the whole chain; the steps lost to flooring go to
    the levels with the largest remainders, earlier levels first. `identical` is chain_length/K, rounded in the same
    way.

    Args:
      budget: `exp_decay` or `identical`.
      chain_length: total number of MCMC steps.
      levels: K.
      n_min: smallest budget of a level for `exp_decay`.
      decay_rate: r, in (0, 1].

    Raises:
      InputError: an unknown budget, K < 1, or more minimum steps than the chain has.
    """
    if budget not in BUDGETS:
        raise InputError(f"sampler_config.budget is {budget!r}; known: {', '.join(BUDGETS)}")
    if levels < 1:
        raise InputError(f"sampler_config.K is {levels}; expected at least 1")
    least = n_min if budget == "exp_decay" else 1
    if least < 1:
        raise InputError(f"sampler_config.n_min is {n_min}; expected at least 1 step per level")
    if not 0 < decay_rate <= 1:
        raise InputError(f"sampler_config.r is {decay_rate}; expected a decay in (0, 1]")
    if levels * least > chain_length:
        raise InputError(
            f"sampler_config.K * sampler_config.n_min = {levels} * {least} = {levels * least} steps exceed "
            f"chain_length = {chain_length}; lower K or n_min, or run longer"
        )
    if budget == "identical":
        shares = np.full(levels, chain_length / levels)
    else:
        decay = decay_rate ** (np.arange(levels) / levels)
        shares = n_min + (chain_length - levels * n_min) * decay / decay.sum()
    steps = np.maximum(np.floor(shares).astype(np.int64), least)
    left = chain_length - int(steps.sum())
    order = np.argsort(-(shares - steps), kind="stable")
    steps[order[:left]] += 1
    return steps
