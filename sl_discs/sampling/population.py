"""Method `population`: population annealing with exact weights (Hukushima and Iba 2003; Machta 2010).

Populations start at infinite temperature, where all states are equally likely, and cool in steps. At each step the
members are weighted by exp((b' - b) f), resampled with these weights, and moved by a few sweeps at the new
temperature. The product of the mean weights is an unbiased estimate of Z, and each population is weighted by its own.
A smaller run chooses the steps, so that they do not depend on the draws.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize
from scipy.special import logsumexp

from sl_discs.models.terms import Terms
from sl_discs.sampling.chain import chains_of
from sl_discs.sampling.draws import Budget, Drawn, Request, log_num_states, packed

# Members of the run that chooses the steps, and the effective part of them after a step.
_PILOT, _KEPT = 256, 0.9
_MOST_STEPS = 10_000
# A step that changes the weights by no more than this keeps all members.
_HARDLY = 1e-3
# Sweeps at each temperature.
_SWEEPS = 4
# Least number of members of a population, fewer if there are many variables.
_LEAST_MEMBERS, _MEMBERS_TIMES_VARIABLES = (64, 512), 2**19
# Parts of a time limit that the smaller run may take, and that the populations may plan with.
_PILOT_PART, _SAFE = 0.3, 0.7
# Above this error Z is a guess.
_MOST_LOG_Z_ERROR = 0.25


def places_after(log_weights: Float[np.ndarray, "B"], uniform: float) -> Int[np.ndarray, "B"]:
    """Returns the chain that continues in each place, by systematic resampling.

    Chain i with normalised weight w_i continues in floor or ceil of B w_i places, B w_i on average, and in its own
    place if in any.

    Args:
      log_weights: of the chains, up to a constant.
      uniform: a uniform number on [0, 1).
    """
    weights = np.exp(log_weights - log_weights.max())
    ends = np.cumsum(weights)
    marks = (np.arange(len(weights)) + uniform) / len(weights)
    copies = np.bincount(np.searchsorted(ends / ends[-1], marks, side="right"), minlength=len(weights))
    chosen = np.arange(len(weights))
    chosen[copies == 0] = np.repeat(chosen, np.maximum(copies - 1, 0))
    return chosen


def _effective(log_weights: np.ndarray) -> float:
    """Returns the effective number of weighted members divided by their number (Kish)."""
    return float(np.exp(2 * logsumexp(log_weights) - logsumexp(2 * log_weights))) / len(log_weights)


def _next_inverse(inverse: float, last: float, values: np.ndarray) -> float:
    """Returns the next inverse temperature, at which `_KEPT` of the members are effective."""

    def excess(step: float) -> float:
        return _effective(step * values) - _KEPT

    most = last - inverse
    if excess(most) >= 0:
        return last
    # On a logarithmic scale, as energies may be far larger than the temperature.
    least = _HARDLY / max(np.ptp(values[np.isfinite(values)]), _HARDLY / most)
    if excess(least) <= 0:  # members in states of probability 0 are lost in any step
        return min(last, inverse + least)
    found = optimize.brentq(lambda step: excess(np.exp(step)), np.log(least), np.log(most), xtol=1e-6)
    return min(last, inverse + np.exp(found))


class _Cooling:
    """Independent populations that cool together."""

    def __init__(self, terms: Terms, options: Request, groups: int, members: int, stream: int):
        self.groups, self.members = groups, members
        self.chains = chains_of(terms, options, groups * members, adapting=_SWEEPS, stream=stream, keeps_states=False)
        self.inverse = 0.0
        self.log_z = np.full(groups, log_num_states(terms))
        self.family = np.tile(np.arange(members), (groups, 1))
        self.values = self.chains.record(np.inf, 1).values[-1].astype(np.float64)

    def cool(self, inverse: float) -> None:
        weights = ((inverse - self.inverse) * self.values).reshape(self.groups, self.members)
        self.log_z += logsumexp(weights, axis=1) - np.log(self.members)
        chosen = [places_after(*one) for one in zip(weights, self.chains.uniforms(self.groups), strict=True)]
        self.family = np.take_along_axis(self.family, np.array(chosen), axis=1)
        self.chains.copy(np.concatenate([row + group * self.members for group, row in enumerate(chosen)]))
        self.inverse = inverse
        self.values = self.chains.record(1 / inverse, 1, _SWEEPS).values[-1].astype(np.float64)

    def families(self) -> np.ndarray:
        """Returns the effective number of families of each population."""
        counts = np.stack([np.bincount(row, minlength=self.members) for row in self.family]) / self.members
        return 1 / (counts**2).sum(axis=1)


def _steps(terms: Terms, temperature: float, options: Request, budget: Budget) -> tuple[list[float], int]:
    """Returns inverse temperatures between which a small run keeps most of its members, and its number of Markov
    steps.
    """
    is_over = budget.after(_PILOT_PART)
    pilot = _Cooling(terms, options, 1, _PILOT, 3)
    last = 1 / temperature
    found: list[float] = []
    while pilot.inverse < last and len(found) < _MOST_STEPS and not is_over():
        budget.check_interrupt()
        found.append(_next_inverse(pilot.inverse, last, pilot.values))
        pilot.cool(found[-1])
    return [*found, last] if pilot.inverse < last else found, pilot.chains.steps


def draw(terms: Terms, temperature: float, options: Request, budget: Budget) -> Drawn:
    """Returns one draw per member of every population, whose number of members is at least that of the draws."""
    begin = budget.left()
    steps, searched = _steps(terms, temperature, options, budget)
    least = int(np.clip(_MEMBERS_TIMES_VARIABLES // terms.num_sites, *_LEAST_MEMBERS))
    members = max(options.draws_each or 1, least)
    if budget.timed:
        fitting = int(_SAFE * budget.left() / (begin - budget.left()) * _PILOT / options.groups)
        members = max(fitting, _LEAST_MEMBERS[0])
    main = _Cooling(terms, options, options.groups, members, 4)
    for number, inverse in enumerate(steps):
        budget.check_interrupt()
        if budget.left() <= 0:
            # Weights are right for any steps; few families are left of a large one, which the verdict says.
            main.cool(steps[-1])
            break
        main.cool(inverse)
        done = number * options.groups * members // len(steps)
        budget.say((number + 1) * options.groups * members // len(steps) - done)
    log_z = float(logsumexp(main.log_z) - np.log(options.groups))
    weights = np.exp(main.log_z - main.log_z.max())
    relative = weights / weights.mean()
    error = float(relative.std(ddof=1) / np.sqrt(options.groups))
    families = float(main.families().sum() / options.groups / np.mean(relative**2) * options.groups)
    reasons = []
    if error > _MOST_LOG_Z_ERROR:
        reasons.append(f"the error of log Z is {error:.2f}, above {_MOST_LOG_Z_ERROR}: larger populations are needed")
    how = {
        "sampler": options.sampler, "engine": main.chains.engine.name, "populations": options.groups,
        "members": members, "temperatures": len(steps), "effective families": round(families),
        "steps": searched + main.chains.steps,
    }  # fmt: skip
    bits = packed(main.chains.current().reshape(options.groups, members, -1))
    return Drawn(
        bits, "group", how, tuple(reasons), log_weights=main.log_z, log_z=(log_z, error), families=families,
        recorded=main.values.reshape(options.groups, members), interrupted=budget.interrupted,
    )  # fmt: skip
