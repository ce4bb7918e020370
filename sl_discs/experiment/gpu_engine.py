"""The engine for GPUs: `advance` with a whole interval of steps in one kernel (`sl_discs.fused`), a program a chain.

It plays the same program on the same chains as the reference engine and leaves the same law, not the same numbers:
keys are those of the reference, but they are spent differently and sums are formed in another order.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from sl_discs.batching import DEVICE_CHAINS, DEVICE_INSTANCES
from sl_discs.experiment.engine import Batch, Best, Chains, Trace
from sl_discs.experiment.sampler_states import CALLS, SCALES, unknown_to
from sl_discs.fused.play import STEPS, FusedChain, Instance
from sl_discs.fused.steps import Adapting
from sl_discs.fused.target import State
from sl_discs.localization.observation import Observation
from sl_discs.localization.transition import Chain, ProgramStep
from sl_discs.models.coupling import Dense, Sparse
from sl_discs.models.quadratic import QuadraticField, QuadraticModel
from sl_discs.samplers.base import Sampler


def why_not(sampler: Sampler) -> str | None:
    """Why this engine cannot play a sampler here; None if it can."""
    if jax.default_backend() != "gpu":
        return f"it runs on GPUs, and JAX on {jax.default_backend()}"
    return unknown(sampler)


def unknown(sampler: Sampler) -> str | None:
    """Why this engine cannot play a sampler anywhere; None if it can."""
    return unknown_to(STEPS, sampler)


def dense_rows(coupling: Dense | Sparse, size: int):
    """K as rows [G, N, P]: lists are written out, as a step looks at every site anyway."""
    if isinstance(coupling, Dense):
        return _padded(coupling.rows, size)

    def write_out(neighbours, weights):
        num_sites = neighbours.shape[0]
        sites = jnp.arange(num_sites)[:, None]
        rows = jnp.zeros((num_sites, size), weights.dtype)
        # Places of no neighbour name a row's first column beyond the sites, or no column at all.
        return rows.at[sites, neighbours].add(weights, mode="drop")

    return jax.vmap(write_out)(coupling.neighbours, coupling.weights)


def _padded(array, size: int, fill=0):
    """The array with its last axis filled up to `size`."""
    widths = [(0, 0)] * (array.ndim - 1) + [(0, size - array.shape[-1])]
    return jnp.pad(array, widths, constant_values=fill)


def _instances(batch: Batch, size: int) -> Instance:
    params = batch.params
    rows = dense_rows(params.coupling, size)
    return Instance(rows, _padded(params.linear, size), params.scale, _padded(batch.mask, size, False))


def _to_spins(x, size: int):
    return _padded(2.0 * x.astype(jnp.float32) - 1.0, size, -1.0)


def _fused_chains(chains: Chains, size: int) -> FusedChain:
    chain = chains.chain
    field, sampler, observation = chain.field, chain.sampler, chain.observation
    scale = getattr(sampler, SCALES.get(type(sampler), ""), jnp.zeros_like(field.linear))
    return FusedChain(
        State(_to_spins(chain.x, size), _padded(field.coupled.astype(jnp.float32), size), field.linear, field.pairs),
        Adapting(sampler.steps, scale),
        observation and Observation(*(_padded(leaf, size) for leaf in observation)),
        chains.best.value,
        _to_spins(chains.best.x, size),
    )


def _as_chains(before: Chains, fused: FusedChain, logged: Best) -> Chains:
    """The kernel's chains in the form of the reference engine; `logged` holds padded spins."""
    num_sites = before.chain.x.shape[-1]

    def states(spins):
        return (spins[..., :num_sites] > 0).astype(jnp.int8)

    old, state, observation = before.chain.sampler, fused.state, fused.observation
    steps = fused.adapting.steps
    sampler = old._replace(steps=steps, num_ll_calls=old.num_ll_calls + CALLS[type(old)] * (steps - old.steps))
    if type(old) in SCALES:
        sampler = sampler._replace(**{SCALES[type(old)]: fused.adapting.scale})
    coupled = state.coupled[..., :num_sites].astype(before.chain.field.coupled.dtype)
    field = QuadraticField(coupled, state.linear, state.pairs)
    observation = observation and Observation(*(leaf[..., :num_sites] for leaf in observation))
    return Chains(
        Chain(states(state.spins), field, sampler, observation),
        Best(fused.best, states(fused.best_spins)),
        Best(logged.value, states(logged.x)),
    )


def _play(sampler: Sampler, way: str, batch: Batch, chains: Chains, program: ProgramStep, first_step):
    """Plays program [L, E], an interval a kernel."""
    from sl_discs.fused.call import padded_size, play_all

    size = padded_size(chains.chain.x.shape[-1])
    instances = _instances(batch, size)

    def interval(carry, rows):
        fused, logged, number = carry
        fused, info = play_all(way, sampler, instances, batch.keys, rows, number, fused)
        value = fused.state.linear + instances.scale[:, None] * fused.state.pairs
        better = value > logged.value
        logged = Best(
            jnp.where(better, value, logged.value), jnp.where(better[..., None], fused.state.spins, logged.x)
        )
        return (fused, logged, number + rows.temperature.shape[0]), Trace(value, info.acceptance, info.hops)

    logged = Best(chains.best_logged.value, _to_spins(chains.best_logged.x, size))
    start = (_fused_chains(chains, size), logged, jnp.asarray(first_step, jnp.int32))
    (fused, logged, _), trace = lax.scan(interval, start, program)
    return _as_chains(chains, fused, logged), trace


@functools.partial(jax.jit, static_argnames=("model", "sampler", "mesh", "way"))
def advance(
    model: QuadraticModel,
    sampler: Sampler,
    batch: Batch,
    chains: Chains,
    program: ProgramStep,
    first_step,
    *,
    mesh: Mesh | None = None,
    way: str = "triton",
) -> tuple[Chains, Trace]:
    """As `engine.advance`.

    Args:
      model: any quadratic model.
      sampler: with `unknown(sampler)` None.
      batch: G instances of B chains each, multiples of the mesh's parts.
      chains: the chains before the slice.
      program: leaves [L, E]: L intervals of E steps each, every interval ending in a logged step.
      first_step: number of the slice's first step, from 1.
      mesh: of `experiment.mesh`, whose parts divide instances and chains; None: one device.
      way: one of `sl_discs.fused.call.WAYS`; all but `triton` are for tests.
    """
    del model
    play = functools.partial(_play, sampler, way)
    if mesh is None:
        return play(batch, chains, program, first_step)
    instances, both = PartitionSpec(DEVICE_INSTANCES), PartitionSpec(DEVICE_INSTANCES, DEVICE_CHAINS)
    return jax.shard_map(
        play,
        mesh=mesh,
        in_specs=(Batch(instances, instances, both), both, PartitionSpec(), PartitionSpec()),
        out_specs=(both, PartitionSpec(None, *both)),
        check_vma=False,
    )(batch, chains, program, first_step)
