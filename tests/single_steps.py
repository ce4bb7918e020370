"""An engine's single steps from every state of small targets, compared with the oracle of
`sl_discs.testing`.

All targets are instances of one batch; masks, tilts, temperatures and an adaptive radius or number
of flips are data. So a sampler is compiled once. Seeds are fixed; a correct engine fails the check
of a sampler with probability 1e-6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from chains import FALSE_ALARM, copied, program_at
from jaxtyping import ArrayLike, Bool, Float, Int
from scipy import stats

from sl_discs.engines.program import Batch, Engine, init_chains
from sl_discs.models.keys import StepKeys, Stream, chain_keys
from sl_discs.models.quadratic import QuadraticModel, QuadraticParams, field_dtype, quadratic_params
from sl_discs.models.terms import Coefficients
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.registry import BUILT_IN, base_samplers, registered
from sl_discs.samplers.sampler import Sampler
from sl_discs.testing.conformance import all_states, chi_squared, state_index
from sl_discs.testing.oracle import Kernel, LogDensity, kernel_of_steps


class Target(NamedTuple):
    """exp(f(x)/temperature + <s, h>) for f(x) = c.x + scale/2 x'Kx.

    Attributes:
      linear: [N] c.
      couplings: [N, N] K, symmetric with zero diagonal.
      scale: of K.
      tilt: [N] h, or None for a chain that is not localized.
      mask: [N] sites that may flip.
    """

    linear: Float[np.ndarray, " N"]
    couplings: Float[np.ndarray, "N N"]
    scale: float
    tilt: Float[np.ndarray, " N"] | None
    mask: Bool[np.ndarray, " N"]

    def log_density(self, temperature: float) -> LogDensity:
        """At every state, up to a constant."""
        x = all_states(len(self.mask)).astype(np.float64)
        value = x @ self.linear + self.scale / 2 * np.einsum("si,ij,sj->s", x, self.couplings, x)
        return value / temperature + (0 if self.tilt is None else (2 * x - 1) @ self.tilt)


def small_targets(num_sites: int, *, tilted: bool = True, whole: bool = True) -> list[Target]:
    """Four targets: coupled densely; with a masked site; with two open sites and no couplings;
    coupled sparsely.

    Args:
      num_sites: 3 or 4.
      tilted: whether they have tilts.
      whole: whether K has whole numbers, which are stored in another way than real ones.
    """
    couplings = np.array([[0, 1, 2, -1], [1, 0, 1, 3], [2, 1, 0, 1], [-1, 3, 1, 0]]) * (
        1.0 if whole else 0.7
    )
    path = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
    # Of these numbers no sum is 0, which would be a tie for some engines, but not for those that
    # round it otherwise.
    linear, tilt = np.array([0.5, -0.3, 1.0, 0.2]), np.array([0.43, -0.31, 0.17, 0.0])
    everywhere, some, two = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0]], bool)
    targets = [
        Target(linear, couplings, -0.5, tilt, everywhere),
        Target(-linear, couplings, 0.4, -tilt, some),
        Target(linear, 0 * couplings, 1.0, tilt, two),
        Target(linear, path, -1.0, 0 * tilt, everywhere),
    ]
    kept = slice(num_sites)
    return [
        Target(
            c[kept], K[kept, kept], scale, h[kept] if tilted and h is not None else None, mask[kept]
        )
        for c, K, scale, h, mask in targets
    ]


class Steps(NamedTuple):
    """The steps of an engine from every state of G targets.

    Attributes:
      before: [G, B] index of the state.
      after: [G, B] index of the state that followed.
      moved: [G, B] number of sites at which the two differ.
      acceptance: [G, B] acceptance that the engine reports.
      hops: [G, B] hops that the engine reports.
      sampler: the samplers' states afterwards, leaves [G, B].
    """

    before: Int[np.ndarray, "G B"]
    after: Int[np.ndarray, "G B"]
    moved: Int[np.ndarray, "G B"]
    acceptance: Float[np.ndarray, "G B"]
    hops: Float[np.ndarray, "G B"]
    sampler: Any


def _model(targets: list[Target], sparse: bool) -> tuple[QuadraticModel, QuadraticParams]:
    """The targets as instances of one model; sparse couplings have lists of the longest length, N -
    1.
    """
    num_sites = len(targets[0].mask)
    pairs = np.argwhere(np.triu(np.ones((num_sites, num_sites)), 1))
    each = []
    for target in targets:
        weights = target.couplings[tuple(pairs.T)]
        listed = Coefficients(
            target.linear, pairs[weights != 0], weights[weights != 0], target.scale
        )
        each.append(quadratic_params(listed, num_sites, num_sites - 1 if sparse else None))
    params = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    return QuadraticModel(num_sites, field_dtype(params.coupling)), params


def play_steps(
    engine: Engine, sampler: Sampler, targets: list[Target], temperature: float, *, copies: int, sparse: bool = False,
    steps: int = 1, calls: int = 1, state: dict[str, ArrayLike] | None = None,
) -> list[Steps]:  # fmt: skip
    """Plays steps of an engine from every state of quadratic targets; the only function here that
    calls an engine.

    Args:
      engine: the engine used.
      sampler: that takes the steps.
      targets: of one number of sites, all of them tilted or none.
      temperature: of the targets.
      copies: chains that start in each state of each target.
      sparse: whether couplings are stored as lists.
      steps: of each chain in a call.
      calls: number of calls; each continues the chains of the one before.
      state: fields of the samplers' states that differ from `init_state`, numbers or [G, 1].

    Returns:
      one `Steps` a call.
    """
    model, params = _model(targets, sparse)
    states = all_states(model.num_sites)
    x = np.broadcast_to(
        np.repeat(states, copies, axis=0), (len(targets), len(states) * copies, model.num_sites)
    )
    shape = x.shape[:2]
    streams = Stream.MCMC, Stream.OBSERVATION
    keys = StepKeys(*(chain_keys(0, stream, np.arange(shape[0]), shape[1]) for stream in streams))
    batch = Batch(params, np.stack([target.mask for target in targets]), keys)
    chains, field = init_chains(model, sampler, batch, x, None), None
    initial: Any = chains.chain.state
    for name, value in (state or {}).items():
        leaf = getattr(initial, name)
        initial = initial._replace(
            **{name: np.broadcast_to(np.asarray(value, leaf.dtype), leaf.shape)}
        )
    if targets[0].tilt is not None:
        field = np.broadcast_to(np.float32([target.tilt for target in targets])[:, None], x.shape)
    chains = chains._replace(chain=chains.chain._replace(state=initial))
    program = program_at(np.full(calls * steps, temperature), field=field)
    play = engine.prepare(model, sampler, batch, program)
    found, before = [], x
    for call in range(calls):
        chains, trace = play(copied(chains), call * steps, 1, steps)
        chains = jax.tree.map(np.asarray, chains)
        after = chains.chain.x
        acceptance, hops = (np.asarray(one)[0] for one in (trace.acceptance, trace.hops))
        moved = np.sum(before != after, axis=-1)
        found.append(
            Steps(
                state_index(before), state_index(after), moved, acceptance, hops, chains.chain.state
            )
        )
        before = after
    return found


class Disagreement(AssertionError):
    """An engine's step is not that of the oracle."""


def check_steps(steps: Steps, kernels: list[Kernel], false_alarm: float, number: int = 1) -> None:
    """Compares steps with the oracle: the states that follow, and what the engine reports of the
    proposals.

    Args:
      steps: of G targets.
      kernels: of as many steps on the same targets.
      false_alarm: probability with which an engine that is right fails.
      number: of steps that each chain took; their hops are compared if it is 1.

    Raises:
      Disagreement: the engine is wrong, and about what.
    """
    size = len(kernels[0].transitions)
    laws = np.stack([kernel.transitions for kernel in kernels])
    counts = np.zeros(laws.shape, np.int64)
    instance = np.arange(len(laws))[:, None]
    np.add.at(counts, (np.broadcast_to(instance, steps.before.shape), steps.before, steps.after), 1)
    # Staying is never impossible, as float32 may round an acceptance of 1 to less.
    impossible = (counts > 0) & (laws == 0) & ~np.eye(size, dtype=bool)
    if impossible.any():
        target, x, y = np.argwhere(impossible)[0]
        raise Disagreement(f"target {target}: the step from state {x} to {y} is impossible")
    rows = counts.sum(axis=2, keepdims=True)
    visited = rows.sum(axis=2) > 0
    statistic, p_value = chi_squared(counts[visited], (laws * rows)[visited])
    if p_value < false_alarm / 2:
        each = [chi_squared(counts[g][v], (laws * rows)[g][v])[1] for g, v in enumerate(visited)]
        raise Disagreement(
            f"next states: chi-squared {statistic:.0f}, p = {p_value:.1e}; of each target {each}"
        )
    if number == 1 and not np.array_equal(steps.hops, steps.moved):
        raise Disagreement("hops are not the numbers of sites that changed")
    expected = np.stack([kernel.acceptance for kernel in kernels])[instance, steps.before]
    errors = np.float64(steps.acceptance) - expected
    # If no proposal is ever rejected, there are only rounding errors.
    deviation = errors.sum() / np.sqrt((errors**2).sum() + 1e-9 * errors.size)
    if 2 * stats.norm.sf(abs(deviation)) < false_alarm / 2:
        raise Disagreement(
            f"mean acceptance is {errors.mean():+.4f} off, {deviation:.1f} standard errors"
        )


def label_of(name: str, fields: Mapping[str, Any]) -> str:
    """The name of a sampler with fields that differ from those of its class."""
    return ", ".join([name, *(f"{field}={value}" for field, value in fields.items())])


def examples_of(name: str) -> dict[str, Sampler]:
    """The examples of a registered base sampler, which tests compare with the oracle."""
    kind = type(registered(name).build({}))
    return {label_of(name, fields): kind(**fields) for fields in kind.examples}


# The first example of each sampler of the package, and all of them.
USUAL = {name: next(iter(examples_of(name))) for name in base_samplers() if name in BUILT_IN}
SAMPLERS = {label: one for name in USUAL for label, one in examples_of(name).items()}


def _moments(sampler: Sampler) -> list[tuple[float, bool]]:
    """Scales at which an adaptive sampler takes its step, integer and fractional; and whether they
    are frozen.
    """
    if isinstance(sampler, DMALA):
        return [(1.3, False), (3.0, True)]
    return [(1.2, False), (2.0, False), (3.3, False), (2.0, True), (2.6, True)]


def _check_moment(engine, sampler, targets, temperature, scale, frozen, steps, **options):
    """Checks that the scale follows the reported acceptance, with the gain of step 10, or stays
    once it is frozen.
    """
    name, factor = ("expected_flips", 3) if isinstance(sampler, DMALA) else ("radius", 1)
    sites = np.array([[target.mask.sum()] for target in targets])
    scales = np.minimum(scale, sites)
    kernels = [
        kernel_of_steps(
            sampler, one.log_density(temperature), one.mask, steps, scale=scale, frozen=frozen
        )
        for one, [scale] in zip(targets, scales, strict=True)
    ]
    number, gain = (sampler.adapt_until, 0) if frozen else (10, 1 - 10 / sampler.adapt_until)
    # A scale that adapts differs from chain to chain in the next call.
    options |= {
        "steps": steps,
        "state": {name: scales, "steps": number},
        "calls": 2 if frozen else 1,
    }
    played = play_steps(engine, sampler, targets, temperature, **options)
    for one in played:
        check_steps(one, kernels, FALSE_ALARM / 20, number=steps)
    if steps == 1:
        moved = scales + factor * gain * (played[0].acceptance - sampler.target_acceptance_rate)
        np.testing.assert_allclose(
            getattr(played[0].sampler, name), np.clip(moved, 1, sites), rtol=1e-5
        )


def _check_calls(engine, sampler, targets, temperature, steps, **options):
    """Checks two calls, of which the second continues the chains."""
    played = play_steps(engine, sampler, targets, temperature, steps=steps, calls=2, **options)
    for call, found in enumerate(played):
        kernels = [
            kernel_of_steps(
                sampler,
                one.log_density(temperature),
                one.mask,
                steps,
                coupled=one.couplings != 0,
                done=call * steps,
            )
            for one in targets
        ]
        check_steps(found, kernels, FALSE_ALARM / 20, number=steps)


def check_single_steps(
    engine: Engine, sampler: Sampler, *, num_sites: int = 4, temperatures: Sequence[float] = (2.0, 0.5),
    tilted: bool = True, whole: bool = True, steps: int = 1, **options: Any,
) -> None:  # fmt: skip
    """Checks that a sampler's step on an engine is the oracle's; AssertionError if it is not.

    Args:
      engine: the engine to check.
      sampler: a sampler that it supports.
      num_sites: of the targets, like `tilted` and `whole` (`small_targets`).
      temperatures: of the targets.
      tilted: whether the targets have tilts.
      whole: whether their couplings are whole numbers.
      steps: of a call, whose kernel is that power of the oracle's.
      **options: options of `play_steps`, such as `copies`.
    """
    targets = small_targets(num_sites, tilted=tilted, whole=whole)
    for temperature in temperatures:
        if not getattr(sampler, "adaptive", False):
            _check_calls(engine, sampler, targets, temperature, steps, **options)
            continue
        for scale, frozen in _moments(sampler):
            if steps == 1 or frozen:
                _check_moment(
                    engine, sampler, targets, temperature, scale, frozen, steps, **options
                )
