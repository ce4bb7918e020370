"""Method `localization`: Algorithm 1 at the temperature, one independent draw per chain.

sigma is small enough for sign(Y) to be a draw, see `Localization.localizes`. The draws are as
accurate as the posterior means that the base sampler estimates at each level: if it cannot cross
between modes early in the run, mode weights are wrong, and nothing in the independent draws shows
it. Therefore chains of the base sampler, which leaves the target invariant, are continued from some
of the draws for as many sweeps as a draw takes. The draws are reliable only if the means stay the
same and these chains forget where they began; otherwise they carry no information on mode weights.
Modes may differ little in each variable and much in the overlap with one state, so this counts as
well. A change of the means that is too small for that still counts: the draws are worth no more
independent ones than have a standard error of its size, nor than the chains' own error allows to
say.

Y begins as pure noise, although it should hold the signal that alpha(eps) has. Where this is not
negligible, as with geom(1,1), the draws are biased whatever the chains do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int8
from scipy.special import ndtri

from sl_discs.chains.annealing import ChainSettings
from sl_discs.chains.batches import shape_of_one
from sl_discs.chains.budget import Budget
from sl_discs.chains.chains import Chains, anneal
from sl_discs.engines.choice import choose_engine
from sl_discs.localization.method import SIGN_OF_Y, Method
from sl_discs.samplers.registry import localized_name
from sl_discs.sampling.diagnostics import FALSE_ALARM, LEAST_ESS, above
from sl_discs.sampling.drawn import Drawn, Request, magnetisations, packed
from sl_discs.sampling.plain_chains import RecordedChains, ordered_method
from sl_discs.support.errors import InputError

# ChainSettings with which sign(Y) is a draw: alpha^2/(sigma^2 t) ends at 25.
SCHEDULE_FIELDS = {"sigma": 2.0, "eps": 1e-3, "eps_end": 1e-2, "mc_ratio": 0.5}
_LEVELS, _SWEEPS_A_LEVEL = 256, 8
# The largest signal-to-noise ratio of the first observation that may be left out.
_MOST_AT_FIRST = 0.01
# Records of the continued chains, and the largest fraction of an observable's variance that may lie
# between chains: it is a sixteenth if chains forget their state from one record to the next, and 1
# if they never leave their mode.
_RECORDS, _MOST_KEPT = 16, 0.5
# More records make the comparison as precise as the draws: up to this number of bytes.
_MOST_RECORDS = 256
_RECORD_BYTES = 2**23
# Of draws that these chains do not confirm: their error is in the posterior means, which more draws
# share.
_MORE_LEVELS = "raise K, the number of levels, or use another method"
# Draws that are compared with these chains at once.
_COMPARED = 4096
# Chains of a group that run at once; number of batches that are continued as chains, and the stream
# of their chains, which is above the numbers of all batches.
_TOGETHER = 8
_BATCHES_THAT_GO_ON = 2
_STREAM = 1 << 31


def localized_method(sampler: str, fields: Mapping[str, Any]) -> Method:
    """Returns Algorithm 1 around a base sampler; InputError for fields with wrong values."""
    fields = {**SCHEDULE_FIELDS, "K": _LEVELS, **fields}
    method = ordered_method(sampler, fields, localized_name(sampler))
    if method.final_is != SIGN_OF_Y:
        raise InputError(
            "localization: with these settings sign(Y) is mostly noise; lower sigma or eps_end "
            "so that alpha^2/(sigma^2 t) ends at 16 or more"
        )
    return method


def draw(request: Request, budget: Budget) -> Drawn:
    """Makes one draw of each chain."""
    terms = request.terms
    groups = request.groups
    size = terms.num_sites
    method = request.method
    assert method.localization is not None
    levels = method.localization.K
    at_first = method.localization.first_signal_to_noise()
    together = _TOGETHER * groups
    steps = levels * _SWEEPS_A_LEVEL * (size if method.sampler.counts_sweeps else 1)
    settings = ChainSettings(
        batch_size=together,
        chain_length=steps,
        t_schedule="constant",
        init_temperature=request.temperature,
        log_every_steps=steps,
    )
    engine, _ = choose_engine(request.engine, method.sampler, num_chains=0)
    shape = shape_of_one(terms, together)
    batches: list[np.ndarray] = []
    wanted = groups * (request.draws_each or 2**31)
    while sum(map(len, batches)) < wanted and not (batches and budget.is_over()):
        # Each batch has its own random numbers, and ends with sign(Y) of each chain.
        chains = Chains.of_one(terms, len(batches), shape, method.sampler, engine, request.seed)
        batches.append(anneal(chains, method, settings).final[0, :, :size])
        budget.advance(len(batches[-1]))
    every = np.concatenate(batches)
    states = every[:wanted]
    reasons, worth, going_on = _assess_by_chains(request, every, levels * _SWEEPS_A_LEVEL)
    if at_first > _MOST_AT_FIRST:
        reasons = (
            "the observation starts as noise where its signal-to-noise ratio should be "
            f"{at_first:.2g}, above {_MOST_AT_FIRST:g}: raise sigma, lower eps or take another "
            "alpha",
            *reasons,
        )
    how = {
        "sampler": method.name,
        "engine": engine.name,
        "chains": len(states),
        "levels": levels,
        "sweeps a level": _SWEEPS_A_LEVEL,
        "steps": len(batches) * steps * together + going_on,
    }
    note = (
        "each draw has the error of its posterior means: mode weights may be wrong where the "
        "base sampler is slow; chains continued from the draws confirm means to the precision of "
        f"{worth:,.0f} independent draws"
    )
    bits = packed(states.reshape(-1, groups, size).swapaxes(0, 1))
    return Drawn(
        bits,
        "none",
        how,
        reasons,
        (note,),
        most_effective=worth,
        remedy=_MORE_LEVELS if worth < LEAST_ESS <= len(states) else "",
    )


def _assess_by_chains(
    request: Request, states: Int8[np.ndarray, "B N"], sweeps: int
) -> tuple[tuple[str, ...], float, int]:
    """Reasons against the draws, found by continuing chains from some of them for `sweeps`; the
    number of independent draws that they are worth at most; and the steps taken.
    """
    # A large constant would hide differences.
    terms = request.terms._replace(constant=0.0)
    # A draw, which is left out of the others, is a direction along which modes may differ more than
    # in any variable.
    direction = states[0]
    states = states[1:]
    count = min(len(states), _BATCHES_THAT_GO_ON * _TOGETHER * request.groups)
    chains = RecordedChains(request, count, stream=_STREAM)
    chains.restart(states[:count])
    chains.record(1, -(-sweeps // 2))
    fitting = int(np.clip(_RECORD_BYTES // (count * chains.size), _RECORDS, _MOST_RECORDS))
    records = min(fitting, max(_RECORDS, sweeps // 2))
    later = chains.record(records, max(1, sweeps // (2 * records)))
    total = len(states)

    def observed(some: np.ndarray) -> np.ndarray:
        """Returns f, the magnetisation and the overlap with one draw."""
        return np.column_stack(
            [terms.values(some), magnetisations(some), (some == direction).mean(axis=1)]
        )

    here = np.concatenate(
        [observed(some) for some in np.array_split(states, -(-total // _COMPARED))]
    )
    shares = states.mean(axis=0)
    now = np.append(here.mean(axis=0), shares)
    variance = np.append(here.var(axis=0), shares * (1 - shares))
    then = np.stack([np.column_stack([observed(some), some]) for some in later.states])
    of_chains = then.mean(axis=0)
    hardly = 1e-9 + 1 / total
    of_error = of_chains.var(axis=0) / count
    change = np.abs(now - of_chains.mean(axis=0))
    deviation = float((change / np.maximum(np.sqrt(variance / total + of_error), hardly)).max())
    limit = float(-ndtri(FALSE_ALARM / (2 * len(now))))
    # In units of each observable's variance: what is left of the squared changes without their
    # noise.
    changed = np.maximum(variance, hardly)
    noise = float((of_error / changed).mean())
    bias = max(0.0, float((change**2 / changed).mean()) - 1 / total - noise)
    worth = 1 / (max(1 / (total + 1), noise) + bias)
    reasons = []
    if (of_chains.var(axis=0) / np.maximum(then.var(axis=(0, 1)), hardly)).max() > _MOST_KEPT:
        reasons.append(
            "chains continued from the draws stay where they began: mode weights are unknown"
        )
    if deviation > limit:
        reasons.append(
            "chains continued from the draws drift: the change of means in standard errors is "
            f"{above(deviation, limit, 1)}"
        )
    return tuple(reasons), worth, chains.steps
