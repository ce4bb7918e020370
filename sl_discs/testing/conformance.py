"""Statistical tests that a sampler leaves its target invariant, for any sampler with DISCS's
calling convention.

    from sl_discs.testing import check_sampler
    check_sampler(MySampler())        # raises ConformanceError with the violated property

The sampler needs `make_init_state(rng)` and `step(model, rng, x, model_param, state, x_mask)`. The
model has `forward(params, x)` and `get_value_and_grad(params, x)`
(`sl_discs.models.model.TargetModel`). Chains start from exact draws of the target, so after any
number of steps their states must again be independent exact draws (except for chains that adapt
together). A chi-squared test checks this at a stated false-alarm rate, so a sampler that only looks
plausible on a benchmark does not pass.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int, Int8
from scipy import stats

from sl_discs.instances.graph import Graph
from sl_discs.models.batching import over_chains
from sl_discs.models.exact_sums import all_states as all_states
from sl_discs.models.functions import DifferentiableModel
from sl_discs.models.keys import from_rng
from sl_discs.models.model import Model, Target, TargetModel
from sl_discs.models.quadratic import QuadraticModel, field_dtype, quadratic_params
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.samplers.sampler import Chain, Sampler
from sl_discs.support.errors import InputError

# Small targets that a sampler must leave invariant: problems, temperatures, tilts and masks.

_NUM_SITES = 5


class Case(NamedTuple):
    """One target.

    Attributes:
      name: for messages.
      target: model, parameters, temperature, mask, and perhaps a tilt.
      start: [N] a state of positive probability; sites outside the mask keep its values.
    """

    name: str
    target: Target
    start: Int8[np.ndarray, "N"]

    @property
    def model(self) -> Model:
        """Returns the model of f."""
        return self.target.model

    @property
    def mask(self) -> Bool[np.ndarray, "N"]:
        """Sites that may change."""
        return self.target.mask


def _quadratic(problem: str, edges, weights=None, sparse: bool = False):
    graph = Graph.from_arrays(problem, _NUM_SITES, np.array(edges), weights)
    terms = graph_kind(problem).model(graph, 1.5)
    params = quadratic_params(terms, _NUM_SITES, terms.max_degree() if sparse else None)
    return QuadraticModel(_NUM_SITES, field_dtype(params.coupling)), jax.tree.map(
        jnp.asarray, params
    )


def _lattice(field: Float[Array, "6"], x: Float[Array, "6"]) -> Float[Array, ""]:
    """Returns the log-density of an Ising model on a torus of 2 x 3 spins, both bonds of the short
    side included.
    """
    spins = 2 * x - 1
    torus = spins.reshape(2, 3)
    bonds = jnp.sum(torus * jnp.roll(torus, 1, axis=0)) + jnp.sum(
        torus * jnp.roll(torus, 1, axis=1)
    )
    return 0.3 * bonds + jnp.sum(field * spins)


def standard_cases() -> list[Case]:
    """Returns six targets on five or six sites that together cover every part of a sampler's
    contract.
    """
    path = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)]
    tilt = jnp.array([0.4, -0.7, 0.2, 0.0, 0.9], jnp.float32)
    everywhere = np.ones(_NUM_SITES, bool)
    some = np.array([True, True, False, True, True])
    zeros = np.zeros(_NUM_SITES, np.int8)
    kept = np.array([0, 0, 1, 0, 0], np.int8)

    mis, mis_params = _quadratic("mis", path)
    cut, cut_params = _quadratic(
        "maxcut", path, np.array([1.0, -0.5, 0.75, 1.25, -1.0]), sparse=True
    )
    clique, clique_params = _quadratic("maxclique", path)
    lattice = DifferentiableModel(_lattice, 6)
    field = jnp.array([0.3, -0.2, 0.0, 0.1, 0.5, -0.4], jnp.float32)

    def case(name, model, params, temperature, mask, start, tilt=None):
        return Case(name, Target(model, params, jnp.float32(temperature), mask, tilt), start)

    return [
        case("mis", mis, mis_params, 1.0, everywhere, zeros),
        case("mis, tilted", mis, mis_params, 0.7, everywhere, zeros, tilt),
        case("mis, cold, tilted, masked", mis, mis_params, 0.25, some, kept, tilt),
        case("maxcut, weighted, masked", cut, cut_params, 0.5, some, kept),
        case("maxclique, tilted", clique, clique_params, 0.6, everywhere, zeros, -tilt),
        case(
            "ising lattice by autodiff, hot",
            lattice,
            field,
            2.0,
            np.ones(6, bool),
            np.zeros(6, np.int8),
        ),
    ]


# Laws on sites of two or more values, few enough to list every state.


class Law(NamedTuple):
    """Every state in the order of `states_of`, and its probability."""

    states: Int8[np.ndarray, "S N"]
    probabilities: Float64[np.ndarray, "S"]

    def numbers(self, states) -> Int[np.ndarray, "*B"]:
        """Returns the number of each state [..., N]."""
        return state_index(states, tuple(self.states.max(axis=0) + 1))

    def sample(self, rng: np.random.Generator, count: int) -> Int8[np.ndarray, "count N"]:
        """Returns independent exact draws."""
        return self.states[rng.choice(len(self.states), size=count, p=self.probabilities)]


def states_of(counts: Sequence[int]) -> Int8[np.ndarray, "S N"]:
    """Returns all states of sites with `counts` values, in order of their index; the first site
    varies fastest.
    """
    return np.stack(np.unravel_index(np.arange(np.prod(counts)), counts, order="F"), axis=1).astype(
        np.int8
    )


def state_index(states, counts: Sequence[int] | None = None) -> Int[np.ndarray, "*B"]:
    """Returns the index of each state [..., N] of sites with `counts` values; None: two."""
    states = np.asarray(states, np.int64)
    counts = (2,) * states.shape[-1] if counts is None else counts
    return states @ np.cumprod([1, *counts[:-1]])


def enumerate_law(target: Target, start: Int8[np.ndarray, "N"]) -> Law:
    """Returns the law of the target over the sites of its mask, the others held at `start`."""
    states = states_of((target.sites.num_values,) * target.num_sites)
    values = np.array(TargetModel().forward(target, jnp.asarray(states)), np.float64)
    values[(states != start)[:, ~np.asarray(target.mask)].any(axis=1)] = -np.inf
    weights = np.exp(values - values.max())
    return Law(states, weights / weights.sum())


# Pearson's chi-squared test of counts, with cells that are large enough for it.

# The smallest expected count of a cell.
_SMALLEST = 5


def _merged(observed: Int[np.ndarray, "S"], expected: Float[np.ndarray, "S"]):
    """Counts with the smallest cells merged into one, so that every cell expects at least
    `_SMALLEST`.
    """
    order = np.argsort(expected)
    total = np.cumsum(expected[order])
    # The merged cell takes as many cells as it needs to be large enough itself.
    rare = int(np.searchsorted(total, _SMALLEST)) + 1
    cells = np.split(order, np.arange(min(rare, len(order)), len(order)))
    return np.array([(observed[cell].sum(), expected[cell].sum()) for cell in cells]).T


def chi_squared(
    observed: Int[np.ndarray, "*R S"], expected: Float[np.ndarray, "*R S"]
) -> tuple[float, float]:
    """Tests independent rows of counts, each of which has the sum of its expectations.

    Args:
      observed: counts.
      expected: their expectations.

    Returns:
      the statistic, and its p-value.
    """
    size = np.shape(expected)[-1]
    statistic, freedom = 0.0, 0
    for row, law in zip(
        np.reshape(observed, (-1, size)), np.reshape(expected, (-1, size)), strict=True
    ):
        counts, expectations = _merged(row, law)
        statistic += ((counts - expectations) ** 2 / expectations).sum()
        freedom += len(counts) - 1
    return float(statistic), float(stats.chi2.sf(statistic, max(freedom, 1)))


FALSE_ALARM = 1e-6
# Of each of several targets, unless the user says otherwise.
_BATCHES = 2**14


class ConformanceError(AssertionError):
    """A sampler is incorrect; the message says which property it violates, on which target, and by
    how much.

    `check_sampler`, `check_case` and `check_convergence` raise it for the first property. It is an
    `AssertionError`, so that a test fails by it; an argument that is wrong is an `InputError`.

    Example: a sampler that accepts every flip.
        >>> @dataclasses.dataclass(frozen=True)
        ... class Hasty(Gibbs):
        ...     def acceptance(self, change, log_chance):
        ...         return jnp.float32(1)
        >>> try:
        ...     check_sampler(Hasty(), standard_cases()[:1])
        ... except ConformanceError as error:
        ...     print(error)
        mis: the target is not invariant: after 8 steps from exact draws, chi-squared ...
    """


def _check_kernel(sampler: Sampler, case: Case, starts: Int8[np.ndarray, "B N"]) -> None:
    """Checks that a `Sampler` can be a static argument, and that its kernel returns what the next
    step takes.
    """
    who = type(sampler).__name__
    root = jnp.zeros(2, jnp.uint32)
    if dataclasses.is_dataclass(sampler) and not sampler.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ConformanceError(
            f"{who} is not frozen; decorate it with @dataclasses.dataclass(frozen=True)"
        )
    x = jnp.asarray(starts, jnp.int8)
    target = case.target.masked(jnp.asarray(case.mask))
    states = sampler.make_init_state(
        jax.random.key(0), len(x), target.sites.shape(target.num_sites)
    )
    chains = Chain(x, jax.vmap(target.init)(x), states)
    step = over_chains(
        lambda number, chain: sampler.kernel(sampler.step_key(root, number), target, chain)
    )
    returned = jax.eval_shape(step, jnp.arange(len(x)), chains)
    if not (isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[0], Chain)):
        raise ConformanceError(
            f"{who}.kernel returns a {type(returned).__name__}; return the pair (Chain, Info)"
        )
    for part, before, after in zip(Chain._fields, chains, returned[0], strict=True):
        if _describe(before) != _describe(after):
            raise ConformanceError(
                f"{who}.kernel returns a chain whose {part} is {_describe(after)}; "
                f"expected {_describe(before)}, as given"
            )


def _describe(part: Any) -> str:
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{[*leaf.shape[1:]]}", part)).replace("'", "")


def _simulate(sampler, case: Case, starts, steps: int, seed: int, warm_up: int):
    """States [3, M, B, N] before, after one step and after all steps of M independent batches of B
    chains.
    """
    target = case.target
    x = jnp.asarray(case.start, jnp.int8)
    if target.tilt is None:  # so that all targets of a model share one program
        target = target.tilted(jnp.zeros_like(target.sites.spins(x), jnp.float32))
    dtype = jnp.int8 if isinstance(sampler, Sampler) else jnp.int32
    starts = jnp.asarray(starts, dtype)
    keys = jax.random.split(jax.random.key(seed), len(starts))
    mask = jnp.asarray(case.mask)
    first, last, kept = _played(sampler, keys, starts, target, mask, warm_up, steps)
    if not kept:
        raise ConformanceError(
            f"{case.name}: {type(sampler).__name__}.kernel returns a field that is not that of "
            "the state it returns; choose both by the same test, as accept_or_keep does"
        )
    return np.stack([np.asarray(one) for one in (starts, first, last)])


@functools.partial(jax.jit, static_argnums=0)
def _played(sampler, keys, starts, target, mask, warm_up, steps):
    """Returns the states after one step, after all, and whether the fields are those of the
    states.
    """
    own = isinstance(sampler, Sampler)
    target = target.masked(mask)
    number = jnp.arange(starts.shape[1])

    def moved(key, x, field, state):
        """Returns the next states, fields and samplers' states of a batch; fields are those of a
        `Sampler` alone.
        """
        if not own:
            x, state, _ = sampler.step(TargetModel(), key, x, target, state, mask)
            return x, field, state
        root = from_rng(key)
        step = over_chains(
            lambda number, chain: sampler.kernel(sampler.step_key(root, number), target, chain)
        )
        return step(number, Chain(x, field, state))[0]

    def fields(x):
        return jax.vmap(target.init)(x) if own else ()

    def one_batch(key, x, elsewhere):
        # From draws other than x, as the adaptation must not depend on the initial state of the
        # test.
        shape = target.sites.shape(target.num_sites)
        state = sampler.make_init_state(key, *((len(x), shape) if own else ()))
        begin = fields(x)

        def step(number, carry):
            begins = number == warm_up
            now, first = carry
            now = (
                *jax.tree.map(lambda new, old: jnp.where(begins, new, old), (x, begin), now[:2]),
                now[2],
            )
            now = tuple(moved(jax.random.fold_in(key, number), *now))
            return now, jnp.where(begins, now[0], first)

        (x_last, field, _), first = jax.lax.fori_loop(
            0, warm_up + steps, step, ((elsewhere, fields(elsewhere), state), elsewhere)
        )
        return first, x_last, field, fields(x_last)

    first, last, found, right = jax.vmap(one_batch)(keys, starts, jnp.roll(starts, 1, axis=0))
    leaves = zip(jax.tree.leaves(found), jax.tree.leaves(right), strict=True)
    kept = jnp.array(
        [jnp.allclose(one, other, rtol=1e-3, atol=1e-3, equal_nan=True) for one, other in leaves]
    ).all()
    return first, last, kept


def total_variation(states, law: Law) -> float:
    """Returns the total variation between the empirical distribution of states [..., N] and
    a law.
    """
    counts = np.bincount(law.numbers(states).ravel(), minlength=len(law.probabilities))
    return float(np.abs(counts / counts.sum() - law.probabilities).sum() / 2)


def check_case(
    sampler,
    case: Case,
    *,
    reversible: bool | None = None,
    batches: int = 2**16,
    chains: int = 4,
    steps: int = 8,
    warm_up: int = 1,
    seed: int = 0,
    false_alarm: float = FALSE_ALARM,
) -> float:
    """Checks the kernel's types, invariance, reversibility, the mask, and that the chain moves, on
    one target.

    Args:
      sampler: with DISCS's calling convention.
      case: the target.
      reversible: whether to test detailed balance, of one step and of all together; None: as given
        by a `Sampler`, and True for any other object.
      batches: independent batches of chains.
      chains: in a batch; more than one, so that coupling between chains shows.
      steps: between exact draw and test.
      warm_up: steps before, from another state, so that a sampler's state which remembers x shows;
        more for a sampler that adapts, whose adaptation must have ended by then.
      seed: of all random numbers.
      false_alarm: probability with which a correct sampler fails any one of the tests.

    Returns:
      the p-value of invariance.

    Raises:
      ConformanceError: the sampler is incorrect.
    """
    law = enumerate_law(case.target, case.start)
    rng = np.random.default_rng(seed)
    starts = law.sample(rng, batches * chains)
    if isinstance(sampler, Sampler):
        _check_kernel(sampler, case, starts[:2])
    starts = starts.reshape(batches, chains, -1)
    visited = _simulate(sampler, case, starts, steps, seed, warm_up)
    if (visited[..., ~case.mask] != case.start[~case.mask]).any():
        raise ConformanceError(f"{case.name}: a site outside the mask was flipped")
    if (visited[0] == visited[-1]).all():
        raise ConformanceError(f"{case.name}: no chain ever moved")

    last = np.bincount(law.numbers(visited[-1]).ravel(), minlength=len(law.probabilities))
    statistic, p_value = chi_squared(last, law.probabilities * last.sum())
    if p_value < false_alarm:
        raise ConformanceError(
            f"{case.name}: the target is not invariant: after {steps} steps from exact draws, "
            f"chi-squared {statistic:.0f} (p = {p_value:.1e}), total variation "
            f"{total_variation(visited[-1], law):.4f}"
        )
    if reversible if reversible is not None else getattr(sampler, "reversible", True):
        for number in {1, steps}:
            _check_detailed_balance(
                case, law, visited[0], visited[1 if number == 1 else 2], number, false_alarm
            )
    return p_value


def _check_detailed_balance(
    case: Case, law: Law, before, after, number: int, false_alarm: float
) -> None:
    size = len(law.probabilities)
    pairs = np.bincount(
        (law.numbers(before) * size + law.numbers(after)).ravel(), minlength=size * size
    )
    pairs = pairs.reshape(size, size)
    forth = pairs[np.triu_indices(size, 1)]
    back = pairs.T[np.triu_indices(size, 1)]
    often = forth + back >= 10
    statistic = float(((forth - back)[often] ** 2 / (forth + back)[often]).sum())
    p_value = float(stats.chi2.sf(statistic, max(int(often.sum()), 1)))
    if p_value < false_alarm:
        raise ConformanceError(
            f"{case.name}: detailed balance does not hold after {number} steps: chi-squared "
            f"{statistic:.0f} over {int(often.sum())} pairs of states (p = {p_value:.1e})"
        )


def check_convergence(
    sampler,
    case: Case,
    *,
    steps: int = 200,
    batches: int = 2**12,
    chains: int = 4,
    warm_up: int = 0,
    seed: int = 0,
    bound: float = 0.03,
) -> float:
    """Checks that from a fixed state the law after `steps` steps is within `bound` of the target in
    total variation.

    Example:
        >>> check_convergence(Gibbs(), standard_cases()[0], batches=2**10)
        0.02...

    Args:
      sampler: as for `check_case`.
      case: the target, and the state from which all chains start.
      steps: of each chain.
      batches: independent batches of chains.
      chains: in a batch.
      warm_up: steps before these, in which the sampler adapts on other states.
      seed: of the chains.
      bound: the largest distance.

    Raises:
      ConformanceError: the distance is larger.

    Returns:
      the distance, of which about 0.4 sqrt(states/chains) is sampling noise.
    """
    law = enumerate_law(case.target, case.start)
    starts = np.broadcast_to(case.start, (batches, chains, len(case.start)))
    visited = _simulate(sampler, case, starts, steps, seed, warm_up)
    distance = total_variation(visited[-1], law)
    if distance > bound:
        raise ConformanceError(
            f"{case.name}: total variation {distance:.3f} from the target after {steps} steps from "
            f"{case.start}"
        )
    return distance


@dataclasses.dataclass(frozen=True)
class Conformance:
    """What `check_sampler` found, for a correct sampler; `print` shows it as a few lines.

    Attributes:
      sampler: the name of its class.
      p_values: of invariance, by target.
      distance: total variation from the first target after many steps from one state.
    """

    sampler: str
    p_values: dict[str, float]
    distance: float

    def __str__(self) -> str:
        width = max(map(len, self.p_values))
        lines = [f"  {name:<{width}}  p = {p_value:.2g}" for name, p_value in self.p_values.items()]
        return "\n".join(
            [
                f"{self.sampler} leaves {len(lines)} targets invariant, keeps to the mask, and "
                "moves:",
                *lines,
                f"from one state, its total variation from {next(iter(self.p_values))} falls to "
                f"{self.distance:.3f}",
            ]
        )


def check_sampler(sampler, cases: list[Case] | None = None, **options) -> Conformance:
    """Calls `check_case` on every standard target and `check_convergence` on the first, in about 18
    CPU seconds.

    Example:
        >>> print(check_sampler(Gibbs(), standard_cases()[:1]))
        Gibbs leaves 1 targets invariant, keeps to the mask, and moves:
          mis  p = 0.0...
        from one state, its total variation from mis falls to 0.02...

    Args:
      sampler: as for `check_case`.
      cases: targets; the standard ones by default.
      **options: of `check_case`.

    Returns:
      a report.

    Raises:
      ConformanceError: the first violated property.
      InputError: `sampler` is a class.
    """
    if isinstance(sampler, type):
        raise InputError(
            f"sampler is the class {sampler.__name__}; give a sampler, such as {sampler.__name__}()"
        )
    cases = standard_cases() if cases is None else cases
    p_values = {
        case.name: check_case(sampler, case, **{"batches": _BATCHES, **options}) for case in cases
    }
    shared = {name: options[name] for name in ("chains", "warm_up", "seed") if name in options}
    return Conformance(
        type(sampler).__name__, p_values, check_convergence(sampler, cases[0], **shared)
    )
